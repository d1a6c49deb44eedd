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
from typing import TYPE_CHECKING, NoReturn, final

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import BudgetSpent, InvalidParameter, NotAllowed
from targetcharge.mechanisms import Battery
from targetcharge.mechanisms.gauge import gauged
from targetcharge.tables import questions
from targetcharge.tables.answers import Answers
from targetcharge.tables.batteries import by_keys, runs, together
from targetcharge.tables.computing import Single, algorithm_of, number_asked, reading
from targetcharge.tables.describing import Description, describe
from targetcharge.tables.previewing import Preview, preview
from targetcharge.tables.questions import Above, Question, Top, Value, Watch, what_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from targetcharge.engines.engine import Engine
    from targetcharge.ledger import Answer
    from targetcharge.mechanisms import Algorithm
    from targetcharge.sessions import Release, Session
    from targetcharge.sessions.reading import Reading
    from targetcharge.sessions.release import When
    from targetcharge.sessions.selection import Stop
    from targetcharge.sessions.transcript import Transcript
    from targetcharge.tables.questions import Asked


@final
class Table:
    """One table, one unit, one budget, one ledger. Made by `tc.open`.

    A predicate is text, such as "age > 65 AND diagnosis = 'flu'". Wherever one is taken, `tc.questions.total` and
    `tc.questions.distinct` ask about other numbers than how many units there are.
    """

    def __init__(self, engine: Engine, session: Session, unit: str, epsilon: float) -> None:
        """Ask an engine through a session that was opened over it."""
        self._engine = engine
        self._session = session
        self._unit = unit
        self._epsilon = epsilon

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
        return self._ask(questions.above(where, threshold, prior, tolerance), epsilon)

    def count(
        self, where: Asked = None, prior: object = None, tolerance: float = 0, *, epsilon: float | None = None
    ) -> Answer:
        """Publish the noisy number and pay for it; with a prior, only if it has changed beyond the tolerance."""
        return self._ask(questions.value(where, prior, tolerance), epsilon)

    def between(self, where: Asked, low: float, high: float, *, epsilon: float | None = None) -> Answer:
        """Publish whether the noisy number is below, between or above two thresholds; pay for between."""
        return self._ask(questions.between(where, low, high), epsilon)

    def side(self, where: Asked, threshold: float, *, epsilon: float | None = None) -> Answer:
        """Publish on which side of a threshold the number is, for free; pay where it is too close to call.

        That outcome is tc.BOUNDARY. It needs a table opened with meter="renyi".
        """
        return self._ask(questions.side(where, threshold), epsilon)

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
        return self._ask(
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
        return self._ask(questions.above(questions.distinct(column, where, per_unit=per_unit), threshold), epsilon)

    def ask(self, question: Question) -> Answer | Answers | list[Answer]:
        """Ask a question that was made by `tc.questions`: one answer, or those of a batch."""
        match question:
            case Watch(what, by, keys, threshold):
                return self.watch(what, by, keys, threshold)
            case Top(what, by, keys, k, threshold):
                return self.top(by, keys, k, what, threshold=threshold)
            case _:
                return self._ask(question)

    def ask_many(self, asked: Sequence[Question]) -> Answers:
        """Ask questions with one answer each, in their order; those about counts share scans.

        When the budget is spent on the way, what was answered is returned, with what was not.

        Raises:
            BudgetSpent: if not even the first is covered.
        """
        if not isinstance(asked, list | tuple) or not asked:
            raise InvalidParameter("asked", asked, "a list of questions, made by tc.questions")
        answers: list[Answer] = []
        for each in [self._prepared(run) for run in (runs(asked) if len(self.meters) == 1 else asked)]:
            try:
                answers.extend(self._all(each) if isinstance(each, Battery) else [self._put(each)])
            except _Stopped as stop:
                answers += stop.answers
                spent = stop.spent
            except BudgetSpent as error:
                spent = error
            else:
                continue
            if not answers:
                raise spent
            return Answers(answers, ("question",), asked[len(answers) :], str(spent))
        return Answers(answers, ("question",))

    def _prepared(self, run: list[Above] | Question) -> Battery | Algorithm:
        """Return what answers some questions; refuse what cannot be asked, before any of a batch is."""
        if isinstance(run, list):
            return together(run, self._epsilon, self._engine.schema)
        algorithm = self._algorithm(run, None)
        if algorithm.default_target is not None and len(self.meters) == 1:
            self.meter.quote(algorithm.default_target, algorithm.epsilon)
        return algorithm

    def _all(self, tests: Battery) -> list[Answer]:
        """Return all answers of a battery; those before the budget was spent travel with that news."""
        self._engine.check_unchanged()
        answers: list[Answer] = []
        try:
            answers.extend(self._session.ask_each(tests))
        except BudgetSpent as error:
            raise _Stopped(answers, error) from None
        return answers

    def _ask(self, question: Question, epsilon: float | None = None) -> Answer:
        return self._put(self._algorithm(question, epsilon))

    def _put(self, algorithm: Algorithm) -> Answer:
        self._engine.check_unchanged()
        return self._session.ask(algorithm)

    def _algorithm(self, question: Question, epsilon: float | None) -> Algorithm:
        if not isinstance(question, Single):
            raise InvalidParameter("question", question, "made by tc.questions, with one answer")
        number = number_asked(question, self._engine.schema)
        algorithm = algorithm_of(question, number, self._query(epsilon), reading(number.measure))
        if algorithm.default_target is None:
            algorithm = replace(algorithm, default_target=NotPrior(None))
        return gauged(algorithm, number.gauge)

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
        tests, names = self._tests(where, by, keys, checks.threshold("threshold", threshold), epsilon)
        try:
            return Answers(self._all(tests), names)
        except _Stopped as stop:
            if not stop.answers:
                raise stop.spent from None
            return Answers(stop.answers, names, tests.keys[len(stop.answers) :], str(stop.spent))

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
        tests, _ = self._tests(where, by, keys, checks.threshold("threshold", threshold), epsilon)
        return self._each(tests)

    def _each(self, tests: Battery) -> Iterator[Answer]:
        self._engine.check_unchanged()
        yield from self._session.ask_each(tests)

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
        tests, _ = self._tests(where, by, keys, None, epsilon)
        self._engine.check_unchanged()
        return self._session.select(tests, k, stop, threshold)

    def _tests(
        self,
        where: Asked,
        by: str | Sequence[str],
        keys: object,
        threshold: float | None,
        epsilon: float | None,
    ) -> tuple[Battery, tuple[str, ...]]:
        return by_keys(what_of(where), by, keys, threshold, self._query(epsilon), self._engine.schema)

    def _query(self, epsilon: float | None) -> float:
        return self._epsilon if epsilon is None else checks.query_epsilon(epsilon, "epsilon")

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
        algorithm = self._algorithm(question, epsilon)
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
        return preview(question, self._engine.schema, self._query(epsilon), self._session.meter, distances)

    def describe(self) -> Description:
        """Tell what may be asked: columns, unit, budget. Nothing of it comes from the rows."""
        return describe(self._engine.schema, self._unit, self._epsilon, self._session.meter)

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

    def close(self) -> None:
        """Let go of what is reserved and not used; close the ledger and the table."""
        self._session.close()
        self._engine.close()

    def __enter__(self) -> Table:
        """Return the table; it is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Return public facts only."""
        budget = self._session.meter.guarantee
        return f"<table of {self._unit}, budget ({budget.epsilon:g}, {budget.delta:g})>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: two tables would spend one budget twice."""
        msg = "a table cannot be pickled or copied: open it again on the same ledger"
        raise NotAllowed(msg)


class _Stopped(Exception):  # noqa: N818 - not an error: the budget's end, with what was answered before it
    def __init__(self, answers: list[Answer], spent: BudgetSpent) -> None:
        super().__init__()
        self.answers = answers
        self.spent = spent
