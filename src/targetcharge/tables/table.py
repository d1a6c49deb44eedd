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

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, cast, final, overload

from targetcharge import checks
from targetcharge.errors import BudgetSpent, InvalidParameter, NotAllowed
from targetcharge.ledger import Answer
from targetcharge.mechanisms import Algorithm, Batch
from targetcharge.mechanisms.noise import CountNoise
from targetcharge.sessions.heart import Failure, attempt
from targetcharge.sessions.priced import session_noise
from targetcharge.tables import questions
from targetcharge.tables.answers import Answers, LazyAnswers
from targetcharge.tables.description import Description, describe
from targetcharge.tables.difference import Difference, PublishedNumber, difference
from targetcharge.tables.individual import UnitMeters
from targetcharge.tables.numbers import SharedNumbers, SharedScans, calls_of
from targetcharge.tables.prepared import Prepared, prepare, read_back
from targetcharge.tables.preview import Preview, preview
from targetcharge.tables.questions import Asked, CountQuestion, Question, Single, Top, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from targetcharge.ledger import Unit
    from targetcharge.queries.tree import Schema
    from targetcharge.sessions import Release, Session
    from targetcharge.sessions.reading import Reading, Transcript
    from targetcharge.sessions.release import When
    from targetcharge.sessions.select import Stop
    from targetcharge.tables.questions import By


@final
class Table:
    """One table, one unit, one budget, one ledger. Made by `tc.open`.

    A predicate is text, such as "age > 65 AND diagnosis = 'flu'". Wherever one is taken, `tc.questions.sum` and
    `tc.questions.distinct` ask about other numbers than how many units there are.
    """

    def __init__(
        self, session: Session, numbers: SharedNumbers | UnitMeters, unit: Unit, query_epsilon: float
    ) -> None:
        """Ask a session that is open on the numbers of an engine."""
        self._session = session
        self._numbers = numbers
        self._engine = numbers.engine
        self._schema = MappingProxyType(dict(self._engine.schema))
        self._unit = unit
        self._epsilon = query_epsilon

    # One answer.

    def above(
        self,
        where: Asked,
        threshold: float,
        prior: object = None,
        tolerance: float | None = None,
        *,
        epsilon: float | None = None,
    ) -> Answer:
        """Publish the noisy number if it is at least the threshold; pay for that. Else nothing, for free.

        Args:
            where: what to count.
            threshold: the least noisy number that is published.
            prior: the last published answer, or a number: then pay only if it has changed. Within the tolerance
                the outcome is tc.UNCHANGED, for free; a fall below the threshold costs, and publishes None.
            tolerance: how far from the prior is unchanged; left out for 0.
            epsilon: of this computation, if not the query ε of the table.
        """
        return self._ask(questions.above(where, threshold, prior, tolerance), epsilon)

    def count(
        self,
        where: Asked = None,
        prior: object = None,
        tolerance: float | None = None,
        *,
        epsilon: float | None = None,
    ) -> Answer:
        """Publish the noisy number and pay for it; with a prior, only if it has changed beyond the tolerance."""
        return self._ask(questions.count(where, prior, tolerance), epsilon)

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
        threshold: float,
        where: str | None = None,
        *,
        grid: questions.Grid | None = None,
        epsilon: float | None = None,
    ) -> Answer:
        """Publish a noisy sum (`tc.questions.sum`) if it is at least the threshold; pay for that."""
        total = questions.sum(column, lower, upper, where, grid=grid)
        return self._ask(questions.above(total, threshold), epsilon)

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

    def _ask(self, question: Single | Prepared, epsilon: float | None = None) -> Answer:
        algorithm = self.prepare(question, epsilon=epsilon).algorithm()
        self._engine.check_unchanged()
        return self._session.ask(algorithm)

    def prepare(self, question: Question | Prepared, *, epsilon: float | None = None) -> Prepared:
        """Check a question, once: what takes a question takes what this returns, on this table and its like.

        Args:
            question: made by `tc.questions`; one that was prepared before is returned as it is.
            epsilon: of one computation, if not the query ε of the table.
        """
        if isinstance(question, Prepared):
            question.check_fits(self._schema, epsilon, individual=self._numbers.individual)
            prepared = question
        else:
            query = self._epsilon if epsilon is None else checks.query_epsilon(epsilon, "epsilon")
            prepared = prepare(question, self._schema, query, individual=self._numbers.individual)
        self._session.check_target(prepared.target, prepared.epsilon, monotone=prepared.monotone)
        return prepared

    def release(self, where: Asked | Prepared, when: When, *, epsilon: float | None = None) -> Release:
        """Draw a noisy number; publish and pay for it if the condition holds, else keep it for revisions.

        Args:
            where: what to count, or a `tc.questions.count(…)` that was prepared.
            when: a function of the number, or a set of numbers. One that raises counts as false.
            epsilon: of this computation, if not the query ε of the table.
        """
        asked = where if isinstance(where, Prepared | CountQuestion) else questions.count(where)
        prepared = self.prepare(asked, epsilon=epsilon)
        if not isinstance(prepared.question, CountQuestion) or prepared.question.prior is not None:
            expected = "a count without a prior: its condition says what is published"
            raise InvalidParameter("where", prepared.question, expected)
        self._engine.check_unchanged()
        return self._session.release(prepared.algorithm(), when)

    @property
    def pending(self) -> tuple[Release, ...]:
        """Return the releases that wait for a revision, also those from before a restart."""
        return self._session.pending

    # Many answers.

    @overload
    def ask(self, question: Watch | Top, *, epsilon: float | None = None) -> Answers: ...

    @overload
    def ask(self, question: Single, *, epsilon: float | None = None) -> Answer: ...

    @overload
    def ask(self, question: Question | Prepared, *, epsilon: float | None = None) -> Answer | Answers: ...

    def ask(self, question: Question | Prepared, *, epsilon: float | None = None) -> Answer | Answers:
        """Ask a question that was made by `tc.questions`: one answer, or those of a batch."""
        prepared = self.prepare(question, epsilon=epsilon)
        match prepared.question:
            case Watch():
                return self.iter_ask(prepared).all()
            case Top():
                return self._top(prepared, None)
            case _:
                return self._ask(prepared)

    def iter_ask(self, question: Watch | Prepared, *, epsilon: float | None = None) -> LazyAnswers:
        """Ask a watch that was made by `tc.questions`, lazily: see `iter_watch`."""
        prepared = self.prepare(question, epsilon=epsilon)
        if not isinstance(prepared.question, Watch):
            raise InvalidParameter("question", prepared.question, "made by tc.questions.watch")
        batch = prepared.batch()
        return LazyAnswers(self._answers([batch]), prepared.by, batch.keys, partial(self._compared, prepared))

    def watch(
        self, where: Asked, by: By, keys: object, threshold: float, *, epsilon: float | None = None
    ) -> Answers:
        """Ask `above` for every declared key, in one scan; pay for the keys that reach the threshold.

        When the budget is spent on the way, what was answered is returned, and `.stopped` says so.

        Args:
            where: what to count.
            by: one or two columns.
            keys: their declared values (tuples for two), or `tc.days` or `tc.hours`.
            threshold: the least noisy number that is published.
            epsilon: of one test, if not the query ε of the table.
        """
        return self.iter_watch(where, by, keys, threshold, epsilon=epsilon).all()

    def iter_watch(
        self, where: Asked, by: By, keys: object, threshold: float, *, epsilon: float | None = None
    ) -> LazyAnswers:
        """Ask a watch lazily: the scan runs for the first answer; answers up to the next hit leave together."""
        return self.iter_ask(questions.watch(where, by, keys, threshold), epsilon=epsilon)

    def top(
        self,
        where: Asked = None,
        by: By = (),
        keys: object = None,
        k: int = 1,
        *,
        threshold: float | None = None,
        stop: Stop | None = None,
        epsilon: float | None = None,
    ) -> Answers:
        """Publish the k declared keys with the largest noisy numbers, best first; pay for each. One scan.

        A budget that does not cover all of them answers none, and `.stopped` says so.

        Args:
            where: what to count.
            by: one or two columns.
            keys: their declared values.
            k: how many to publish; all of them must be covered.
            threshold: no number below it is published.
            stop: from the answers so far to the lowest number that may follow, or None; see `tc.sessions.gap`.
            epsilon: of one test, if not the query ε of the table.
        """
        return self._top(
            self.prepare(questions.top(where, by, keys, k, threshold=threshold), epsilon=epsilon), stop
        )

    def _top(self, prepared: Prepared, stop: Stop | None) -> Answers:
        question = cast("Top", prepared.question)
        batch = prepared.batch()
        self._engine.check_unchanged()
        try:
            answers = self._session.select(batch, question.k, stop, question.threshold)
            return Answers(answers, prepared.by, compare=partial(self._compared, prepared))
        except BudgetSpent as spent:
            return Answers((), prepared.by, batch.keys, spent.with_traceback(None))

    def ask_many(self, questions: Sequence[Question | Prepared], *, epsilon: float | None = None) -> Answers:
        """Ask questions with one answer each, in their order; many that are alike share scans.

        When the budget is spent on the way, what was answered is returned, and `.stopped` says so. If one of them
        cannot be asked on this table, that is raised and none is asked.
        """
        if not isinstance(questions, list | tuple) or not questions:
            raise InvalidParameter("questions", questions, "a list of questions, made by tc.questions")
        for question in questions:
            if not isinstance(question.question if isinstance(question, Prepared) else question, Single):
                expected = "a question with one answer; ask a watch or a top by itself, with `ask`"
                raise InvalidParameter("question", question, expected)
        # What cannot be asked is refused here.
        prepared = [self.prepare(question, epsilon=epsilon) for question in questions]
        scans = SharedScans(self._numbers) if isinstance(self._numbers, SharedNumbers) else None
        calls = calls_of(prepared, scans, batches=len(self._session.meters) == 1)
        for call in calls:
            self._session.check_price(call)  # all of them are priced before the first is asked
        try:
            return LazyAnswers(self._answers(calls), ("question",), questions, self.difference).all()
        finally:
            if scans is not None:
                scans.forget()

    def _answers(self, calls: Sequence[Batch | Algorithm]) -> Iterator[Answer]:
        """Yield the answers of one call after another, each on files that are what they were."""
        for call in calls:
            self._engine.check_unchanged()
            if isinstance(call, Batch):
                yield from self._session.ask_each(call)
            else:
                yield self._session.ask(call)

    def difference(self, first: Answer, second: Answer) -> Difference:
        """Return how much larger one published number of this table is than another, whenever they were asked.

        Where all answers carry a secret offset, a part of their errors is the same in all: here it cancels out.

        Args:
            first: an answer with a number.
            second: another, to whose number a unit adds at most as much.
        """
        return self._compared(None, first, second)

    def _compared(self, prepared: Prepared | None, *answers: Answer) -> Difference:
        """Return the difference of two answers to a question, or to those that the ledger keeps."""
        numbers = []
        for name, answer in zip(("first", "second"), answers, strict=True):
            if not isinstance(answer, Answer):
                raise InvalidParameter(name, answer, "an answer of this table")
            asked = prepared or read_back(answer.question, answer.epsilon, self._schema)
            if asked is None:
                raise InvalidParameter(name, answer, "an answer whose question is known; of a selection the first")
            noise_of = session_noise(self.meter.tariff, answer.epsilon) if asked.monotone else None
            noise = (noise_of or partial(CountNoise.natural, answer.epsilon))(asked.measure.sensitivity)
            numbers.append(PublishedNumber.of(name, answer, noise, asked.gauge))
        return difference(*numbers)

    # What may be asked, and what was.

    def preview(
        self,
        question: Question | Prepared,
        distances: Sequence[float] | None = None,
        *,
        epsilon: float | None = None,
    ) -> Preview:
        """Tell what a question would cost and how well it would work, without asking it.

        Nothing of the data is used: the chances are for hypothetical numbers, so far from the threshold.

        Args:
            question: made by `tc.questions`.
            distances: of a true number from the threshold, negative below it; left out for some that fit.
            epsilon: of one computation, if not the query ε of the table.
        """
        return preview(self.prepare(question, epsilon=epsilon), self._session, distances)

    def describe(self) -> Description:
        """Tell what may be asked: columns, unit, budget. Nothing of it comes from the rows."""
        return describe(self._engine, self._unit, self._epsilon, self._session.meter)

    @property
    def schema(self) -> Schema:
        """Return the columns that may be asked about, by name. Nothing of it comes from the rows."""
        return dict(self._schema)

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
        with self._session.exclusive():
            self._numbers.snapshots.append(self._engine, source)
            return self.snapshot

    @property
    def snapshot(self) -> int:
        """Return the number of the snapshot that questions are asked on: 1, and one more for every append."""
        return self._numbers.snapshot

    def close(self) -> None:
        """Let go of what is reserved and not used; close the ledger and the table."""
        saved: Failure | None = None
        if isinstance(self._numbers, UnitMeters):
            saved = attempt(partial(self._session.up_to_date, self._numbers.leave))  # else it is made again
        try:
            self._session.close()
        finally:
            self._engine.close()
        if isinstance(saved, Failure) and not isinstance(error := saved.error(), Exception):
            raise error  # somebody pressed Ctrl-C

    def __enter__(self) -> Table:
        """Return the table; it is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the table."""
        self.close()

    def __repr__(self) -> str:
        """Return public facts only."""
        budget = self._session.meter.guarantee
        return f"<table of {self._unit}, budget ({budget.epsilon:g}, {budget.delta:g})>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: two tables would spend one budget twice."""
        msg = "a table cannot be pickled or copied: open it again on the same ledger"
        raise NotAllowed(msg)
