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

from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, final, overload

from targetcharge import checks
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.sessions.heart import Failure, attempt
from targetcharge.tables import questions
from targetcharge.tables.asking import Asker
from targetcharge.tables.description import Description, describe
from targetcharge.tables.individual import UnitMeters
from targetcharge.tables.individual.departures import Departures
from targetcharge.tables.prepared import Prepared
from targetcharge.tables.preparing import prepare
from targetcharge.tables.questions import (
    Asked,
    CountQuestion,
    Histogram,
    Keyed,
    Quantiles,
    Question,
    Single,
    Top,
    Watch,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.ledger import Answer, Unit
    from targetcharge.queries.tree import Schema
    from targetcharge.sessions import Release, Session
    from targetcharge.sessions.reading import Reading, Transcript
    from targetcharge.sessions.release import When
    from targetcharge.sessions.select import Stop
    from targetcharge.tables.answers import Answers, LazyAnswers
    from targetcharge.tables.difference import Difference
    from targetcharge.tables.numbers import SharedNumbers
    from targetcharge.tables.preview import Preview
    from targetcharge.tables.questions import By


@final
class Table:
    """One table, one unit, one budget, one ledger. Made by `tc.open`.

    A predicate is text, such as "age > 65 AND diagnosis = 'flu'". Wherever one is taken, `tc.questions.sum` and
    `tc.questions.distinct` ask about other numbers than how many units there are.

    A question whose hit is published is free: it returns that answer, marked as a repeat, unless `again=True` asks
    for another one. After rows were appended it is another question. A release is drawn each time.
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
        self._asker = Asker(session, numbers, self._schema)
        self._departures = (
            Departures.of_tariff(session.meter.tariff, query_epsilon) if numbers.individual else None
        )

    # One answer.

    def above(
        self,
        where: Asked,
        threshold: float,
        prior: object = None,
        tolerance: float | str | None = None,
        *,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answer:
        """Publish the noisy number if it is at least the threshold; pay for that. Else nothing, for free.

        Args:
            where: what to count.
            threshold: the least noisy number that is published.
            prior: the last published answer, or a number: then pay only if it has changed. Within the tolerance
                the outcome is tc.UNCHANGED, for free; a fall below the threshold costs, and publishes None.
            tolerance: how far from the prior is unchanged, or by which share of it, such as "20%": beyond the
                noise, or nearly every answer costs.
            epsilon: of this computation, if not the query ε of the table.
            again: whether it is asked, and paid for, also if its hit is published.
        """
        return self._ask(questions.above(where, threshold, prior, tolerance), epsilon, again=again)

    def count(
        self,
        where: Asked = None,
        prior: object = None,
        tolerance: float | str | None = None,
        *,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answer:
        """Publish the noisy number and pay for it; with a prior, only if it has changed beyond the tolerance."""
        return self._ask(questions.count(where, prior, tolerance), epsilon, again=again)

    def sum(
        self,
        column: str,
        lower: float,
        upper: float,
        where: str | None = None,
        *,
        grid: questions.Grid | None = None,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answer:
        """Publish a noisy sum (`tc.questions.sum`) and pay for it."""
        return self._ask(
            questions.count(questions.sum(column, lower, upper, where, grid=grid)), epsilon, again=again
        )

    def mean(
        self,
        column: str,
        lower: float,
        upper: float,
        where: str | None = None,
        *,
        grid: questions.Grid | None = None,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answer:
        """Publish the noisy mean of one number for each unit, the mean of its rows, and pay for it.

        Args:
            column: a number.
            lower: the least value of a row; what is less counts as this.
            upper: the largest value of a row.
            where: which rows count.
            grid: values are rounded to multiples of it; left out for a millionth of the bounds.
            epsilon: it costs what a test with this ε costs; left out for the query ε of the table.
            again: whether it is asked, and paid for, also if its hit is published.
        """
        return self._ask(questions.mean(column, lower, upper, where, grid=grid), epsilon, again=again)

    def quantile(
        self,
        column: str,
        q: float,
        lower: float,
        upper: float,
        where: str | None = None,
        *,
        grid: questions.Grid | None = None,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answer:
        """Publish about where a share q of the units lie, by one number for each, and pay for it.

        Args (others as in `mean`):
            q: above 0 and below 1: 0.5 for the median.
            grid: the answer is a multiple of it; left out for whole numbers, or 1,000 to 10,000 steps.
        """
        return self._ask(questions.quantile(column, q, lower, upper, where, grid=grid), epsilon, again=again)

    def between(
        self, where: Asked, low: float, high: float, *, epsilon: float | None = None, again: bool = False
    ) -> Answer:
        """Publish whether the noisy number is below, between or above two thresholds; pay for between."""
        return self._ask(questions.between(where, low, high), epsilon, again=again)

    def side(self, where: Asked, threshold: float, *, epsilon: float | None = None, again: bool = False) -> Answer:
        """Publish on which side of a threshold the number is, for free; pay where it is too close to call.

        That outcome is tc.BOUNDARY. It needs a table opened with meter="renyi".
        """
        return self._ask(questions.side(where, threshold), epsilon, again=again)

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
        again: bool = False,
    ) -> Answer:
        """Publish a noisy sum (`tc.questions.sum`) if it is at least the threshold; pay for that."""
        total = questions.sum(column, lower, upper, where, grid=grid)
        return self._ask(questions.above(total, threshold), epsilon, again=again)

    def distinct_above(
        self,
        column: str,
        threshold: float,
        where: str | None = None,
        *,
        per_unit: int = 1,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answer:
        """Publish about how many distinct values a column has, if that is at least the threshold; pay for that."""
        return self._ask(
            questions.above(questions.distinct(column, where, per_unit=per_unit), threshold), epsilon, again=again
        )

    def _ask(self, question: Single | Quantiles, epsilon: float | None, *, again: bool) -> Answer:
        again = checks.flag(again, "again")
        return self._asker.one(self.prepare(question, epsilon=epsilon), again=again)

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
        self._asker.check_price(prepared)
        return prepared

    def release(self, where: Asked | Prepared, when: When, *, epsilon: float | None = None) -> Release:
        """Draw a noisy number; publish and pay for it if the condition holds, else keep it for revisions.

        Args:
            where: what to count, or a `tc.questions.count(…)` that was prepared.
            when: a function of the number, a set of numbers, or the least. It is tried on made-up numbers first,
                and refused if it raises there; one that raises later counts as false.
            epsilon: of this computation, if not the query ε of the table.
        """
        asked = where if isinstance(where, Prepared | CountQuestion) else questions.count(where)
        return self._asker.release(self.prepare(asked, epsilon=epsilon), when)

    @property
    def pending(self) -> tuple[Release, ...]:
        """Return the releases that wait for a revision, also those from before a restart."""
        return self._session.pending

    # Many answers.

    @overload
    def ask(
        self, question: Keyed | Quantiles, *, epsilon: float | None = None, again: bool = False
    ) -> Answers: ...

    @overload
    def ask(self, question: Single, *, epsilon: float | None = None, again: bool = False) -> Answer: ...

    @overload
    def ask(
        self, question: Question | Prepared, *, epsilon: float | None = None, again: bool = False
    ) -> Answer | Answers: ...

    def ask(
        self, question: Question | Prepared, *, epsilon: float | None = None, again: bool = False
    ) -> Answer | Answers:
        """Ask a question that was made by `tc.questions`: one answer, or those of a batch."""
        again, prepared = checks.flag(again, "again"), self.prepare(question, epsilon=epsilon)
        match prepared.question:
            case Watch():
                return self.iter_ask(prepared, again=again).all()
            case Top():
                return self._asker.top(prepared, None, again=again)
            case Histogram():
                return self._asker.histogram(prepared, again=again)
            case Quantiles(shares=shares) if len(shares) > 1:
                return self._asker.quantiles(prepared, again=again)
            case _:
                return self._asker.one(prepared, again=again)

    def iter_ask(
        self,
        question: Watch | Prepared,
        *,
        max_hits: int | None = None,
        epsilon: float | None = None,
        again: bool = False,
    ) -> LazyAnswers:
        """Ask a watch that was made by `tc.questions`, lazily: see `iter_watch`."""
        again, prepared = checks.flag(again, "again"), self.prepare(question, epsilon=epsilon)
        if not isinstance(prepared.question, Watch):
            raise InvalidParameter("question", prepared.question, "made by tc.questions.watch")
        return self._asker.watch(prepared, max_hits, again=again)

    def watch(
        self,
        where: Asked,
        by: By,
        keys: object,
        threshold: float,
        max_hits: int | None = None,
        *,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answers:
        """Ask `above` for every declared key, in one scan; pay for the keys that reach the threshold.

        Keys whose hit is published come back as repeats, and are not asked. When the budget is spent on the way,
        or after as many new hits as are wanted, what was answered is returned, and `.stopped` says so.

        Args:
            where: what to count.
            by: one or two columns.
            keys: their declared values (tuples for two), or `tc.days` or `tc.hours`.
            threshold: the least noisy number that is published.
            max_hits: how many new hits end the asking; left out for any number.
            epsilon: of one test, if not the query ε of the table.
            again: whether keys whose hit is published are asked all the same.
        """
        return self.iter_watch(where, by, keys, threshold, max_hits, epsilon=epsilon, again=again).all()

    def iter_watch(
        self,
        where: Asked,
        by: By,
        keys: object,
        threshold: float,
        max_hits: int | None = None,
        *,
        epsilon: float | None = None,
        again: bool = False,
    ) -> LazyAnswers:
        """Ask a watch lazily: the scan runs for the first answer; answers up to the next hit leave together."""
        asked = questions.watch(where, by, keys, threshold)
        return self.iter_ask(asked, max_hits=max_hits, epsilon=epsilon, again=again)

    def top(
        self,
        where: Asked = None,
        by: By = (),
        keys: object = None,
        k: int = 1,
        *,
        values: bool = True,
        threshold: float | None = None,
        stop: Stop | None = None,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answers:
        """Publish the k declared keys with the largest numbers, best first; pay for each. One scan.

        With values the noisy numbers are published too: the largest of them, a hit each. Where that is sharper,
        keys are picked first, and each number costs one more hit: `preview` says so. Without values keys are only
        picked, or, where every unit has a budget, chosen by noisy numbers that are not published. A budget that
        does not cover all of them answers none, and `.stopped` says so.

        Args:
            where: what to count.
            by: one or two columns.
            keys: their declared values.
            k: how many to publish; all of them must be covered.
            values: whether the noisy numbers are published.
            threshold: no number below it is published.
            stop: from the answers so far to the lowest number that may follow, or None; see `tc.sessions.gap`.
            epsilon: of one test, if not the query ε of the table.
            again: whether it is asked, and paid for, also if they are published.
        """
        asked = questions.top(where, by, keys, k, values=values, threshold=threshold)
        again = checks.flag(again, "again")
        return self._asker.top(self.prepare(asked, epsilon=epsilon), stop, again=again)

    def histogram(
        self,
        where: Asked,
        by: By,
        keys: object,
        per_unit: int = 1,
        *,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answers:
        """Publish the noisy counts of all declared keys at once, and pay one hit for all of them. One scan.

        A unit counts for at most `per_unit` of the keys, which are chosen for it by a keyed hash: the noise is for
        so many. With rows as units, or where units have one key each, nothing is left out. A budget that does not
        cover it answers none, and `.stopped` says so.

        Args:
            where: which rows count.
            by: one or two columns.
            keys: their declared values.
            per_unit: how many keys a unit counts for at most.
            epsilon: it costs what a test with this ε costs; left out for the query ε of the table.
            again: whether it is asked, and paid for, also if it was published.
        """
        again, asked = checks.flag(again, "again"), questions.histogram(where, by, keys, per_unit)
        return self._asker.histogram(self.prepare(asked, epsilon=epsilon), again=again)

    def quantiles(
        self,
        column: str,
        qs: Sequence[float],
        lower: float,
        upper: float,
        where: str | None = None,
        *,
        grid: questions.Grid | None = None,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answers:
        """Publish several quantiles of one number for each unit, from one scan, and pay for each.

        A budget that does not cover all of them answers none, and `.stopped` says so.

        Args (others as in `quantile`):
            qs: shares of the units.
        """
        asked = questions.quantiles(column, qs, lower, upper, where, grid=grid)
        return self.ask_quantiles(asked, epsilon=epsilon, again=again)

    def ask_quantiles(
        self, question: Quantiles | Prepared, *, epsilon: float | None = None, again: bool = False
    ) -> Answers:
        """Ask for quantiles that were made by `tc.questions`, one or several: see `quantiles`."""
        again = checks.flag(again, "again")
        return self._asker.quantiles(self.prepare(question, epsilon=epsilon), again=again)

    def ask_many(
        self,
        questions: Sequence[Question | Prepared],
        *,
        max_hits: int | None = None,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Answers:
        """Ask questions with one answer each, in their order; many that are alike share scans.

        Those whose hit is published come back as repeats, and are not asked. When the budget is spent on the way,
        or after as many new hits as are wanted, what was answered is returned, and `.stopped` says so. If one of
        them cannot be asked on this table, that is raised and none is asked.

        Args:
            questions: made by `tc.questions`.
            max_hits: how many new hits end the asking; left out for any number.
            epsilon: of one computation, if not the query ε of the table.
            again: whether those whose hit is published are asked all the same.
        """
        if not isinstance(questions, list | tuple) or not questions:
            raise InvalidParameter("questions", questions, "a list of questions, made by tc.questions")
        for question in questions:
            if not isinstance(question.question if isinstance(question, Prepared) else question, Single):
                expected = "a question with one answer; ask a watch or a top by itself, with `ask`"
                raise InvalidParameter("question", question, expected)
        # What cannot be asked is refused here.
        prepared = [self.prepare(question, epsilon=epsilon) for question in questions]
        return self._asker.many(prepared, questions, max_hits, again=checks.flag(again, "again"))

    def difference(self, first: Answer, second: Answer) -> Difference:
        """Return how much larger one published number of this table is than another, whenever they were asked.

        Where all answers carry a secret offset, a part of their errors is the same in all: here it cancels out.

        Args:
            first: an answer with a number.
            second: another, to whose number a unit adds at most as much.
        """
        return self._asker.difference(None, first, second)

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
            distances: of a true number from the threshold, negative below it, or from where a change begins; left
                out for some that fit.
            epsilon: of one computation, if not the query ε of the table.
        """
        return self._asker.preview(self.prepare(question, epsilon=epsilon), distances)

    def describe(self) -> Description:
        """Tell what may be asked: columns, unit, budget. Nothing of it comes from the rows."""
        meter, types = self._session.meter, self._numbers.snapshots.types
        return describe(self._engine, self._unit, self._epsilon, meter, self.may_have_left(), types)

    def may_have_left(self, hits: int = 1) -> int | None:
        """Return at most how many units take no part any more, where each has a budget of its own; else 0.

        It is told from what was published alone, and holds in at least 95% of draws, at all moments together.
        None if the table is closed, or nothing bounds it, such as after as many means as a unit has hits: they do
        not tell how many they charged.

        Args:
            hits: that a question may charge one unit: k for a `top`, and 1 for others.
        """
        hits = checks.hits(hits)
        if self._departures is None or not isinstance(self._numbers, UnitMeters):
            return 0
        if self._session.closed:  # others may have published more since
            return None
        self._departures.read(self._numbers.ledger)
        return self._departures.most(hits)

    @property
    def schema(self) -> Schema:
        """Return the columns that may be asked about, by name. Nothing of it comes from the rows."""
        return dict(self._schema)

    @property
    def meter(self) -> Reading:
        """Return the meter, to look at."""
        return self._session.meter.with_noise(self._standard_deviation)

    @cached_property
    def _standard_deviation(self) -> float:
        return describe(self._engine, self._unit, self._epsilon, self._session.meter).standard_deviation

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

    def _repr_html_(self) -> str:
        """Return what may be asked, and how the meter stands, for notebooks."""
        return self.meter._repr_html_() + self.describe()._repr_html_()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: two tables would spend one budget twice."""
        msg = "a table cannot be pickled or copied: open it again on the same ledger"
        raise NotAllowed(msg)
