"""Prepared questions: what was asked of a table, parsed, measured and described, in one value.

>>> from targetcharge.queries.tree import Column, Kind
>>> from targetcharge.tables import questions
>>> from targetcharge.tables.preparing import prepare
>>> schema = {"age": Column("age", Kind.NUMBER)}
>>> prepared = prepare(questions.above("age > 65", threshold=100), schema, epsilon=0.1)
>>> prepared.name, prepared.always_paid, prepared.algorithm().epsilon
('count(age > 65) >= 100', False, 0.1)
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast, final

from targetcharge.accounting.targets import Between, Boundary, NotPrior
from targetcharge.errors import InvalidParameter, NotAllowed, Setting
from targetcharge.ledger import QuestionId
from targetcharge.mechanisms import (
    above_threshold,
    batch_by_key,
    between_thresholds,
    boundary,
    changed,
    side_of_threshold,
)
from targetcharge.mechanisms.gauge import gauged
from targetcharge.mechanisms.paid import always_count, histogram, mean, paid
from targetcharge.mechanisms.picks import peeled, quantiles
from targetcharge.mechanisms.wrappers import rewrapped
from targetcharge.outcomes import UNCHANGED, canonical_json
from targetcharge.queries.keys import from_published
from targetcharge.queries.measures import Count, Sketch, Total, UnitValue
from targetcharge.queries.tree import All
from targetcharge.sessions.priced import paid_noise
from targetcharge.tables.measured import (
    band_steps,
    least_steps,
    prior_value,
    unchanged_steps,
)
from targetcharge.tables.questions import (
    Above,
    BetweenQuestion,
    CountQuestion,
    Histogram,
    Mean,
    Quantiles,
    Question,
    SideQuestion,
    Top,
    Watch,
    figure,
)
from targetcharge.tables.records import record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from targetcharge.accounting.meter import Tariff
    from targetcharge.accounting.targets import Target
    from targetcharge.mechanisms import Algorithm, Batch
    from targetcharge.mechanisms.gauge import Gauge
    from targetcharge.mechanisms.picks import Distribution, Several
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Additive, Measure
    from targetcharge.queries.tree import Column
    from targetcharge.randomness import Entropy
    from targetcharge.tables.individual import UnitMeters
    from targetcharge.tables.numbers import SharedNumbers

    Read = Callable[[Any], int]
    """From what a table's algorithms get to a number, in steps."""

TAKING_PART: Final = "of the units that still take part"
"""Whom numbers are about where each unit has a budget of its own."""

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
        conditional: whether a count is published under a condition that is not in the question: that of a release,
            or of a change that was read back, whose prior is not known.
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
    conditional: bool = field(default=False, repr=False)

    @property
    def name(self) -> str:
        """Return what the transcript calls the question, and whom it is about if that is not all units."""
        return ", ".join(filter(None, (self._asked, self.whose)))

    @property
    def whose(self) -> str:
        """Return whom its numbers are about, in words; empty for all units."""
        return TAKING_PART if self.individual else ""

    @property
    def _asked(self) -> str:
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
            case Histogram():
                return f"histogram of {self.words} by {', '.join(self.by)}"
            case Mean():
                return f"mean({self.words})"
            case Quantiles(shares=shares):
                return f"quantile({self.words}) at {', '.join(f'{float(share):g}' for share in shares)}"

    @property
    def always_paid(self) -> bool:
        """Return whether it is published whatever it is."""
        question = self.question
        if isinstance(question, CountQuestion):
            return question.prior is None and not self.conditional
        return isinstance(question, Mean | Quantiles | Histogram)

    @property
    def moved(self) -> int:
        """Return how far a unit moves all numbers that are made noisy together at most, in steps."""
        return (
            min(self.measure.sensitivity, self.count)
            if isinstance(self.question, Histogram)
            else self.measure.sensitivity
        )

    @property
    def paid_by_share(self) -> bool:
        """Return whether a unit with a smaller contribution may pay less: not where it is a value or a choice."""
        return isinstance(self.measure, Count | Total)

    @property
    def monotone(self) -> bool:
        """Return whether no unit lowers the measure: then it carries the offset of a table that has one."""
        return not isinstance(self.measure, Total) or self.measure.lower >= 0

    @property
    def identity(self) -> tuple[str, float]:
        """Return what tells questions apart in a ledger: the record and the ε."""
        return self.record, self.epsilon

    def question_id(self, snapshot: int) -> QuestionId:
        """Return what its published answer is found by again in a ledger."""
        question = self.question
        prior = prior_value(question.prior) if isinstance(question, Above | CountQuestion) else None
        return QuestionId(*self.identity, prior, snapshot)

    @property
    def charged_as(self) -> tuple[tuple[str, float], bool]:
        """Return what tells questions apart by whom a hit charges how much: their records hold no priors."""
        return self.identity, self.always_paid

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
            case Above(prior=prior) | CountQuestion(prior=prior) if prior is not None:
                return NotPrior(UNCHANGED)
            case _:
                return NotPrior(None)

    def target_on(self, tariff: Tariff) -> Target:
        """Return the target by which units pay on a meter: that of an always-paid sum falls with their shares."""
        if isinstance(self.question, CountQuestion) and self.always_paid:
            drawn = paid(self.in_steps(self.read), paid_noise(tariff, self.epsilon))
            return drawn.default_target or self.target
        return self.target

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

    def read_totals(self, numbers: SharedNumbers | UnitMeters) -> tuple[int, int]:
        """Return how far the values of all units are above the least, added up, and how many units have one."""
        return numbers.totals(self)

    def read_distribution(self, numbers: SharedNumbers | UnitMeters) -> Distribution:
        """Return how many steps the values are above the least, those that occur, and how many units have each."""
        return numbers.distribution(self)

    def read_keys_when_due(self, numbers: UnitMeters) -> Callable[[int, int], Iterable[int]]:
        """Return what gives the numbers of the keys from one place up to another, each when it is due."""
        return numbers.of_keys_when_due(self)

    def algorithm(self, read: Read | None = None) -> Algorithm:
        """Return the algorithm that answers a question with one answer.

        Args:
            read: the number; left out for `self.read`.
        """
        inner = gauged(self.in_steps(read or self.read), self.gauge)
        target = inner.default_target or NotPrior(None)
        return replace(inner, name=self.name, default_target=target, question=self.record)

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
                    return always_count(read, epsilon, **common)
                return above_threshold(read, least, epsilon, **common)
            case BetweenQuestion():
                low, high = band_steps(self.gauge, question)
                return between_thresholds(read, low, high, epsilon, **common)
            case Mean():
                value = self.value
                bounds = value.lower, value.upper, value.grid
                return mean(self.read_totals, epsilon, *bounds, name=self.name)
            case Histogram(per_unit=per_unit):
                return histogram(self.read_keys, epsilon, self.count, per_unit=per_unit, name=self.name)
            case SideQuestion():
                least = least_steps(self.gauge, "threshold", question.threshold)
                return _one_scan(lambda seen: boundary(side_of_threshold(seen, least, epsilon, **common)), read)
            case _:
                raise InvalidParameter("question", question, "a question with one answer")

    def several(self) -> Several:
        """Return the quantiles, or the picks of a selection."""
        common: dict[str, Any] = {"name": self.name, "question": self.record}
        match self.question:
            case Quantiles(shares=shares):
                value = self.value
                cells, gauge = value.upper - value.lower + 1, self.gauge
                return quantiles(
                    self.read_distribution,
                    shares,
                    self.epsilon,
                    cells,
                    lambda cell: gauge.value(value.lower + cell),
                    **common,
                )
            case Top(k=k, values=values):
                measure = self.additive
                width = measure.sensitivity
                if isinstance(measure, Total):
                    width = max(measure.upper, 0) - min(measure.lower, 0)
                names = () if self.keys is None else self.keys.published()
                common |= {"sensitivity": measure.sensitivity, "width": width, "gauge": self.gauge}
                return peeled(self.read_keys, k, self.epsilon, names, values=values, **common)
            case question:
                raise InvalidParameter("question", question, "one for quantiles, or a selection")

    def one_by_one(self) -> list[Prepared]:
        """Return questions for one quantile each."""
        asked = cast("Quantiles", self.question)
        alone = [replace(asked, shares=(share,)) for share in asked.shares]
        return [replace(self, question=one, record=record_of(one, self.measure, None)) for one in alone]

    @property
    def shares(self) -> int:
        """Return how many quantiles it asks for."""
        return len(self.question.shares) if isinstance(self.question, Quantiles) else 0

    def stopped_by_rule(self) -> Prepared:
        """Return a selection that a caller's rule may end, which is another question. The rule is not kept."""
        return replace(self, record=canonical_json({**json.loads(self.record), "stop": True}))

    @property
    def value(self) -> UnitValue:
        """Return the measure, which is one number for each unit."""
        if not isinstance(self.measure, UnitValue):
            raise InvalidParameter("question", self.question, "about one number for each unit")
        return self.measure

    @property
    def count(self) -> int:
        """Return how many keys there are."""
        return 0 if self.keys is None else len(self.keys.values)

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
    def additive(self) -> Additive:
        """Return the measure, which is the sum of what units contribute.

        Raises:
            NotAllowed: if it is none.
        """
        return additive(self.measure)

    def measure_of(self, key: object) -> Additive:
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


def additive(measure: Measure) -> Additive:
    """Return a measure that is the sum of what units contribute; refuse another."""
    if not isinstance(measure, Sketch):
        return measure
    msg = (
        "distinct values cannot be asked with a budget for every individual: what a unit adds depends on the"
        " others. Ask a ledger for them that was made with "
    )
    raise NotAllowed(msg, Setting("charging", "shared"))
