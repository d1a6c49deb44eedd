"""Prepared questions: what was asked of a table, parsed, measured and described, to the ledger and back.

>>> from targetcharge.queries.tree import Column, Kind
>>> from targetcharge.tables import questions
>>> schema = {"age": Column("age", Kind.NUMBER)}
>>> prepared = prepare(questions.above("age > 65", threshold=100), schema, epsilon=0.1)
>>> prepared.name, prepared.record
('count(age > 65) >= 100', '{"what":{"count":"age > 65"},"above":100}')
>>> read_back(prepared.record, 0.1, schema).measure == prepared.measure
True
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks
from targetcharge.accounting.targets import Between, Boundary, NotPrior
from targetcharge.errors import InvalidParameter, NotAllowed, Setting, TargetChargeError
from targetcharge.mechanisms import (
    above_threshold,
    batch_by_key,
    between_thresholds,
    boundary,
    changed,
    noisy_count,
    side_of_threshold,
)
from targetcharge.mechanisms.gauge import gauged
from targetcharge.mechanisms.wrappers import rewrapped
from targetcharge.queries.keys import declare, from_published
from targetcharge.queries.measures import Count, Sketch, Total
from targetcharge.queries.tree import All
from targetcharge.sessions.select import check_selection
from targetcharge.tables.measured import (
    band_steps,
    check_figures,
    check_grid,
    least_steps,
    measured,
    prior_value,
    unchanged_steps,
)
from targetcharge.tables.questions import (
    Above,
    BetweenQuestion,
    CountQuestion,
    Question,
    SideQuestion,
    Top,
    Watch,
    What,
    figure,
    record_of,
    recorded,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from targetcharge.accounting.targets import Target
    from targetcharge.mechanisms import Algorithm, Batch
    from targetcharge.mechanisms.gauge import Gauge
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure
    from targetcharge.queries.tree import Column
    from targetcharge.randomness import Entropy
    from targetcharge.tables.individual import UnitMeters
    from targetcharge.tables.numbers import SharedNumbers

    Read = Callable[[Any], int]
    """From what a table's algorithms get to a number, in steps."""

_LOWEST: Final = -(2.0**53)
"""A threshold that every score reaches, where a selection has none."""


@final
@dataclass(frozen=True)
class Prepared:
    """What was asked of a table.

    Attributes:
        question: as the caller made it.
        epsilon: of one computation.
        measure: what an engine computes.
        gauge: how its steps are shown.
        words: what the transcript calls the number.
        keys: of a watch or a selection; those of one that was read back are not all known.
        record: what was asked, as canonical JSON: enough to tell, from the table and an answer's key, who
            contributed to the answer and how much.
        schema: the columns that it was checked against; none if it was read back.
        individual: whether it was checked for a table where every unit has a meter of its own.
    """

    question: Question
    epsilon: float
    measure: Measure
    gauge: Gauge = field(repr=False)
    words: str
    keys: Keys | None = field(default=None, repr=False)
    record: str = field(default="", repr=False)
    schema: Mapping[str, Column] = field(default_factory=dict, repr=False, compare=False)
    individual: bool = field(default=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Return what the transcript calls the question."""
        match self.question:
            case Above(threshold=threshold):
                return f"{self.words} >= {figure(threshold)}"
            case CountQuestion():
                return self.words
            case BetweenQuestion(_, low, high):
                return f"{self.words} between {figure(low)} and {figure(high)}"
            case SideQuestion(_, threshold):
                return f"{self.words} side of {figure(threshold)}"
            case Watch(threshold=threshold):
                return f"{self.words} by {', '.join(self.by)} >= {figure(threshold)}"
            case Top():
                return f"{self.words} by {', '.join(self.by)}"

    @property
    def monotone(self) -> bool:
        """Return whether no unit lowers the measure: then it carries the offset of a table that has one."""
        return not isinstance(self.measure, Total) or self.measure.lower >= 0

    @property
    def identity(self) -> tuple[str, float]:
        """Return what tells questions apart in a ledger: the record and the ε."""
        return self.record, self.epsilon

    @property
    def by(self) -> tuple[str, ...]:
        """Return the columns of the keys."""
        return () if self.keys is None else tuple(column.name for column in self.keys.columns)

    @property
    def target(self) -> Target:
        """Return the outcomes that cost, in steps: what a hit is priced by."""
        match self.question:
            case SideQuestion():
                return Boundary()
            case BetweenQuestion():
                return Between(*band_steps(self.gauge, self.question), self.measure.sensitivity)
            case _:
                return NotPrior(None)

    def check_fits(self, schema: Mapping[str, Column], epsilon: float | None, *, individual: bool) -> None:
        """Refuse another table than the one it was prepared by, or its like, and another ε than its own."""
        if self.schema != schema:
            raise InvalidParameter("question", self.question, "prepared by a table with the same columns")
        if self.individual != individual:
            charging = "individual" if individual else "shared"
            expected = f"prepared by a table that was opened with charging={charging!r}, as this one was"
            raise InvalidParameter("question", self.question, expected)
        if epsilon is not None and epsilon != self.epsilon:
            raise InvalidParameter("epsilon", epsilon, "left out: the question was prepared with one")

    # How it is computed.

    def read(self, numbers: SharedNumbers | UnitMeters) -> int:
        """Return the number, in steps."""
        return numbers.one(self)

    def read_keys(self, numbers: SharedNumbers | UnitMeters) -> Iterable[int]:
        """Return the numbers of all keys at once."""
        return numbers.of_keys(self)

    def read_keys_when_due(self, numbers: UnitMeters) -> Callable[[int, int], Iterable[int]]:
        """Return what gives the numbers of the keys from one place up to another, each when it is due."""
        return numbers.of_keys_when_due(self)

    def algorithm(self, read: Read | None = None) -> Algorithm:
        """Return the algorithm that answers a question with one answer.

        Args:
            read: the number; left out for `self.read`.
        """
        inner = gauged(self.in_steps(read or self.read), self.gauge)
        return replace(inner, default_target=inner.default_target or NotPrior(None), question=self.record)

    def in_steps(self, read: Read) -> Algorithm:
        """Return the algorithm that answers in steps of the grid."""
        question, epsilon = self.question, self.epsilon
        common: dict[str, Any] = {
            "sensitivity": self.measure.sensitivity,
            "monotone": self.monotone,
            "name": self.name,
        }
        match question:
            case Above() | CountQuestion():
                least = (
                    least_steps(self.gauge, "threshold", question.threshold)
                    if isinstance(question, Above)
                    else None
                )
                prior, band = prior_value(question.prior), unchanged_steps(self.gauge, question)
                if band is not None:
                    return replace(changed(read, *band, epsilon, threshold=least, **common), prior=prior)
                if least is None:
                    return noisy_count(read, epsilon, **common)
                return above_threshold(read, least, epsilon, **common)
            case BetweenQuestion():
                low, high = band_steps(self.gauge, question)
                return between_thresholds(read, low, high, epsilon, **common)
            case SideQuestion():
                least = least_steps(self.gauge, "threshold", question.threshold)
                return _one_scan(lambda seen: boundary(side_of_threshold(seen, least, epsilon, **common)), read)
            case _:
                raise InvalidParameter("question", question, "a question with one answer")

    def batch(self) -> Batch:
        """Return the tests of every key of a watch, or the candidates of a selection."""
        if self.keys is None:
            raise InvalidParameter("question", self.question, "a watch or a top")
        watch = self.question if isinstance(self.question, Watch) else None
        return batch_by_key(
            self.read_keys,
            self.keys.published(),
            _LOWEST if watch is None else watch.threshold,
            self.epsilon,
            sensitivity=self.measure.sensitivity,
            monotone=self.monotone,
            gauge=self.gauge,
            name=self.name,
            question=self.record,
            # A test may change who takes part in the next.
            counts_when_due=self.read_keys_when_due if self.individual and watch is not None else None,
        )

    # Who contributes.

    @property
    def additive(self) -> Count | Total:
        """Return the measure, which is the sum of what units contribute.

        Raises:
            NotAllowed: if it is none.
        """
        return _additive(self.measure)

    def measure_of(self, key: object) -> Count | Total:
        """Return the measure of one key, as it is published; of all rows if there are no keys."""
        if self.keys is None:
            return self.additive
        chosen = self.known_keys((key,)).where(0)
        where = self.measure.where
        return replace(self.additive, where=chosen if where is None else All((where, chosen)))

    def known_keys(self, published: tuple[object, ...]) -> Keys:
        """Return keys of this question that were published as these."""
        columns, period = ((), None) if self.keys is None else (self.keys.columns, self.keys.period)
        return from_published(self.by, published, period, {column.name: column for column in columns})


def prepare(
    question: Question, schema: Mapping[str, Column], epsilon: float, *, individual: bool = False
) -> Prepared:
    """Return a question, ready to be asked: its predicate is parsed here, and nowhere else.

    Args:
        question: made by `tc.questions`.
        schema: the columns there are.
        epsilon: of one computation.
        individual: whether every unit has a meter of its own: then a selection records its candidates, and
            distinct values are refused.

    Raises:
        InvalidParameter: if it makes no sense on these columns; it names what.
        NotAllowed: if it cannot be asked.
    """
    if isinstance(question, What):
        expected = "a question about that, such as tc.questions.above(tc.questions.sum(…), threshold)"
        raise InvalidParameter("question", question, expected)
    if not isinstance(question, Question):
        raise InvalidParameter("question", question, "made by tc.questions, such as tc.questions.above(…)")
    if isinstance(question, Watch | Top) and question.threshold is not None:
        checks.threshold(question.threshold, "threshold")
    threshold = question.threshold if isinstance(question, Above | Watch) else None
    measure, gauge, words = measured(question.what, schema, threshold)
    check_grid(measure, gauge, epsilon)
    check_figures(question, gauge)
    keys = None
    if isinstance(question, Watch | Top):
        if isinstance(measure, Sketch):
            msg = "distinct values are not counted key by key: ask for those of one key at a time"
            raise NotAllowed(msg)
        keys = declare(question.by, question.keys, schema)
    if isinstance(question, Top) and keys is not None:
        question = replace(question, k=check_selection(keys.values, question.k, None, question.threshold))
    if individual:
        _additive(measure)
    record = record_of(question, measure, keys, candidates=individual and isinstance(question, Top))
    return Prepared(question, epsilon, measure, gauge, words, keys, record, schema, individual)


def read_back(record: str, epsilon: float, schema: Mapping[str, Column]) -> Prepared | None:
    """Return the question that a ledger keeps; None if this version reads none, or the table lacks its columns."""
    kept = recorded(record)
    if kept is None:
        return None
    question = kept.question
    try:
        keys = None
        if isinstance(question, Watch | Top):
            keys = from_published(question.by, question.keys, kept.period, schema)
        return Prepared(question, epsilon, *measured(question.what, schema, 1.0), keys, record)
    except TargetChargeError:
        return None


def _additive(measure: Measure) -> Count | Total:
    """Return a measure that is the sum of what units contribute; refuse another."""
    if isinstance(measure, Count | Total):
        return measure
    msg = (
        "distinct values cannot be asked with a budget for every individual: what a unit adds depends on the"
        " others. Ask a ledger for them that was made with "
    )
    raise NotAllowed(msg, Setting("charging", "shared"))


def _one_scan(make: Callable[[Read], Algorithm], read: Read) -> Algorithm:
    """Return an algorithm that looks at its number twice, with one scan for each run; then it is forgotten."""
    known: list[int] = []

    def again(numbers: object) -> int:
        if not known:
            known.append(read(numbers))
        return known[0]

    def forgetting(inner: Algorithm) -> Algorithm:
        def run(data: object, entropy: Entropy) -> object:
            try:
                return inner.run(data, entropy)
            finally:
                known.clear()

        return replace(inner, run=run, counted=rewrapped(inner, forgetting))

    return forgetting(make(again))
