"""A table with a budget: what an analyst holds.

>>> import pandas as pd
>>> import targetcharge as tc
>>> flights = pd.DataFrame({"plane": range(4000), "day": [1, 1, 1, 2] * 1000, "late": [70, 80, 10, 5] * 1000})
>>> with tc.open(flights, unit="plane", budget=tc.Budget(3.0, 1e-6), query_epsilon=0.1) as t:
...     answers = t.watch("late > 60", by="day", keys=[1, 2, 3], threshold=1000)
...     [answer.key for answer in answers.hits], t.meter.hits
([1], 1)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, final, overload

from targetcharge import checks
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.tables import questions
from targetcharge.tables.answers import Answers
from targetcharge.tables.asking import Asking, Stopped
from targetcharge.tables.describing import Description, describe
from targetcharge.tables.previewing import Preview, preview
from targetcharge.tables.questions import Question, Top, Value, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from targetcharge.ledger import Answer
    from targetcharge.mechanisms import Batch
    from targetcharge.queries.columns import Schema
    from targetcharge.sessions import Release
    from targetcharge.sessions.reading import Reading
    from targetcharge.sessions.release import When
    from targetcharge.sessions.select import Stop
    from targetcharge.sessions.transcript import Transcript
    from targetcharge.tables.access import Access
    from targetcharge.tables.computing import Single
    from targetcharge.tables.questions import Asked


@final
class Table:
    """One table, one unit, one budget, one ledger. Made by `tc.open`.

    A predicate is text, such as "age > 65 AND diagnosis = 'flu'". Wherever one is taken, `tc.questions.total` and
    `tc.questions.distinct` ask about other numbers than how many units there are.
    """

    def __init__(self, access: Access) -> None:
        """Ask with what was opened."""
        self._access = access
        self._engine = access.engine
        self._session = access.session
        self._asking = Asking(access)

    def above(
        self,
        where: Asked,
        threshold: float,
        prior: object = None,
        tolerance: float = 0,
        *,
        epsilon: float | None = None,
    ) -> Answer:
        """Publish the noisy number if it is at least the threshold; pay for that. Else nothing, for free.

        Args:
            where: what to count.
            threshold: the least noisy number that is published.
            prior: the last published answer, or a number: then pay only if it has changed. Within the tolerance
                the outcome is tc.UNCHANGED, for free; a fall below the threshold costs, and publishes None.
            tolerance: how far from the prior is unchanged.
            epsilon: of this computation, if not the query ε of the table.
        """
        return self._asking.one(questions.above(where, threshold, prior, tolerance), epsilon)

    def count(
        self, where: Asked = None, prior: object = None, tolerance: float = 0, *, epsilon: float | None = None
    ) -> Answer:
        """Publish the noisy number and pay for it; with a prior, only if it has changed beyond the tolerance."""
        return self._asking.one(questions.value(where, prior, tolerance), epsilon)

    def between(self, where: Asked, low: float, high: float, *, epsilon: float | None = None) -> Answer:
        """Publish whether the noisy number is below, between or above two thresholds; pay for between."""
        return self._asking.one(questions.between(where, low, high), epsilon)

    def side(self, where: Asked, threshold: float, *, epsilon: float | None = None) -> Answer:
        """Publish on which side of a threshold the number is, for free; pay where it is too close to call.

        That outcome is tc.BOUNDARY. It needs a table opened with meter="renyi".
        """
        return self._asking.one(questions.side(where, threshold), epsilon)

    def sum_above(
        self,
        column: str,
        lower: float,
        upper: float,
        where: str | None = None,
        threshold: float | None = None,
        *,
        grid: questions.Grid | None = None,
        epsilon: float | None = None,
    ) -> Answer:
        """Publish a noisy sum of bounded contributions if it is at least the threshold; pay for that.

        Args:
            column: a number.
            lower: the least a unit contributes.
            upper: the most a unit contributes.
            where: which rows count.
            threshold: the least noisy sum that is published.
            grid: values are rounded to multiples of it.
            epsilon: of this computation, if not the query ε of the table.
        """
        if threshold is None:
            raise InvalidParameter("threshold", threshold, "a number: the least noisy sum that is published")
        return self._asking.one(
            questions.above(questions.total(column, lower, upper, where, grid=grid), threshold), epsilon
        )

    def distinct_above(
        self,
        column: str,
        threshold: float,
        where: str | None = None,
        *,
        per_unit: int = 1,
        epsilon: float | None = None,
    ) -> Answer:
        """Publish about how many distinct values a column has, if that is at least the threshold; pay for that."""
        return self._asking.one(
            questions.above(questions.distinct(column, where, per_unit=per_unit), threshold), epsilon
        )

    @overload
    def ask(self, question: Watch) -> Answers: ...

    @overload
    def ask(self, question: Top) -> list[Answer]: ...

    @overload
    def ask(self, question: Single) -> Answer: ...

    @overload
    def ask(self, question: Question) -> Answer | Answers | list[Answer]: ...

    def ask(self, question: Question) -> Answer | Answers | list[Answer]:
        """Ask a question that was made by `tc.questions`: one answer, or those of a batch."""
        match question:
            case Watch():
                return self._watch(question, None)
            case Top(what, by, keys, k, threshold):
                return self.top(by, keys, k, what, threshold=threshold)
            case _:
                return self._asking.one(question)

    def ask_many(self, asked: Sequence[Question]) -> Answers:
        """Ask questions with one answer each, in their order; many that are alike share scans.

        When the budget is spent on the way, what was answered is returned, with what was not.

        Raises:
            BudgetSpent: if not even the first is covered.
        """
        return self._asking.many(asked)

    def watch(
        self,
        where: Asked,
        by: str | Sequence[str],
        keys: object,
        threshold: float,
        *,
        epsilon: float | None = None,
    ) -> Answers:
        """Ask `above` for every declared key, in one scan; pay for the keys that reach the threshold.

        When the budget is spent on the way, what was answered is returned, with the keys that were not.

        Args:
            where: what to count.
            by: one or two columns.
            keys: their declared values (tuples for two), or `tc.days` or `tc.hours`.
            threshold: the least noisy number that is published.
            epsilon: of one test, if not the query ε of the table.

        Raises:
            BudgetSpent: if not even the first is covered.
        """
        return self._watch(questions.watch(where, by, keys, threshold), epsilon)

    def _watch(self, asked: Watch, epsilon: float | None) -> Answers:
        tests, names = self._watched(asked, epsilon)
        try:
            return Answers(self._asking.all(tests), names)
        except Stopped as stop:
            if not stop.answers:
                raise stop.why from None
            return Answers(stop.answers, names, tests.keys[len(stop.answers) :], str(stop.why))

    def iter_watch(
        self,
        where: Asked,
        by: str | Sequence[str],
        keys: object,
        threshold: float,
        *,
        epsilon: float | None = None,
    ) -> Iterator[Answer]:
        """Do as `watch`, lazily: the scan runs for the first answer; answers up to the next hit leave together.

        Raises:
            BudgetSpent: at the first answer that is not covered.
        """
        tests, _ = self._watched(questions.watch(where, by, keys, threshold), epsilon)
        return self._asking.each(tests)

    def top(
        self,
        by: str | Sequence[str],
        keys: object,
        k: int = 1,
        where: Asked = None,
        *,
        threshold: float | None = None,
        stop: Stop | None = None,
        epsilon: float | None = None,
    ) -> list[Answer]:
        """Publish the k declared keys with the largest noisy numbers, best first; pay for each. One scan.

        Args:
            by: one or two columns.
            keys: their declared values.
            k: how many to publish; all of them must be covered.
            where: what to count.
            threshold: no number below it is published.
            stop: from the answers so far to the lowest number that may follow, or None; see `tc.sessions.gap`.
            epsilon: of one test, if not the query ε of the table.
        """
        if threshold is not None:
            checks.threshold("threshold", threshold)
        asked = questions.top(where, by, keys, k, threshold)
        tests, _ = self._asking.tests(asked, epsilon)
        self._engine.check_unchanged()
        return self._session.select(tests, k, stop, threshold)

    def _watched(self, asked: Watch, epsilon: float | None) -> tuple[Batch, tuple[str, ...]]:
        checked = replace(asked, threshold=checks.threshold("threshold", asked.threshold))
        return self._asking.tests(checked, epsilon)

    def release(self, what: Asked | Value, when: When, *, epsilon: float | None = None) -> Release:
        """Draw a noisy number; publish and pay for it if the condition holds, else keep it for revisions.

        Args:
            what: what to count, or `tc.questions.value(…)` of it.
            when: a function of the number, or a set of numbers. One that raises counts as false.
            epsilon: of this computation, if not the query ε of the table.
        """
        if isinstance(what, Value) and what.prior is not None:
            raise InvalidParameter(
                "what", what, "a question without a prior: its condition says what is published"
            )
        question = what if isinstance(what, Value) else questions.value(what)
        algorithm = self._asking.algorithm(question, epsilon)
        self._engine.check_unchanged()
        return self._session.release(algorithm, when)

    @property
    def pending(self) -> tuple[Release, ...]:
        """Return the releases that wait for a revision, also those from before a restart."""
        return self._session.pending

    def preview(
        self, question: Question, distances: Sequence[float] | None = None, *, epsilon: float | None = None
    ) -> Preview:
        """Tell what a question would cost and how well it would work, without asking it.

        Nothing of the data is used: the chances are for hypothetical numbers, so far from the threshold.

        Args:
            question: made by `tc.questions`.
            distances: of a true number from the threshold, negative below it; left out for some that fit the
                noise.
            epsilon: of one computation, if not the query ε of the table.
        """
        return preview(question, self._engine.schema, self._asking.query(epsilon), self._session.meter, distances)

    def describe(self) -> Description:
        """Tell what may be asked: columns, unit, budget. Nothing of it comes from the rows."""
        return describe(self._engine, self._access.unit, self._access.epsilon, self._session.meter)

    @property
    def schema(self) -> Schema:
        """Return the columns that may be asked about, by name. Nothing of it comes from the rows."""
        return dict(self._engine.schema)

    @property
    def meter(self) -> Reading:
        """Return the meter, to look at."""
        return self._session.meter

    @property
    def meters(self) -> tuple[Reading, ...]:
        """Return all meters, to look at: one, or one for each alternative."""
        return self._session.meters

    @property
    def transcript(self) -> Transcript:
        """Return all that was published on this table's ledger, in order."""
        return self._session.transcript

    def append(self, source: object) -> int:
        """Add rows, such as those of a new day; return the number of the snapshot that answers now name.

        Rows of a unit that was there before belong to it, and its meter carries on. After reopening, what was
        appended must be appended again, in the same order, and is known by its contents.

        Args:
            source: files or a frame, as `tc.open` takes them, with the same columns of the same types: pandas goes
                with pandas, Parquet with Parquet.

        Raises:
            InvalidParameter: if the columns are not those of the table; nothing was added.
            EngineError: if it cannot be read; nothing was added.
            NotAllowed: if other rows were appended as this snapshot before.
        """
        return self._access.append(source)

    @property
    def snapshot(self) -> int:
        """Return the number of the snapshot that questions are asked on: 1, and one more for every append."""
        return self._access.snapshots.number(self._engine)

    def close(self) -> None:
        """Let go of what is reserved and not used; close the ledger and the table."""
        self._access.close()

    def __enter__(self) -> Table:
        """Return the table; it is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Return public facts only."""
        budget = self._session.meter.guarantee
        return f"<table of {self._access.unit}, budget ({budget.epsilon:g}, {budget.delta:g})>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: two tables would spend one budget twice."""
        msg = "a table cannot be pickled or copied: open it again on the same ledger"
        raise NotAllowed(msg)
