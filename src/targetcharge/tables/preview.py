"""Previews: what a question would cost and how well it would work. Made from public facts, without an engine."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, final

from targetcharge import checks, markup
from targetcharge.accounting.targets import Boundary, NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms import side_of_threshold
from targetcharge.mechanisms.noise import Carried, offsets_of
from targetcharge.outcomes import Side as Where
from targetcharge.tables.measured import prior_value, reach_of
from targetcharge.tables.questions import (
    Above,
    BetweenQuestion,
    CountQuestion,
    Mean,
    Quantiles,
    SideQuestion,
    Top,
    Watch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.mechanisms import Algorithm
    from targetcharge.mechanisms.gauge import Gauge
    from targetcharge.sessions import Session
    from targetcharge.tables.prepared import Prepared
    from targetcharge.tables.questions import Question, Single

_SCALES: Final = (1, 2, 3, 5, 10)
"""How many times the noise's scale a number is away from the threshold, where the caller does not say."""

MarginOf = Literal["number", "times units", "rank", "beside the best"]

_MARGIN_OF: Final[dict[type, MarginOf]] = {Mean: "times units", Quantiles: "rank", Top: "beside the best"}

_NO_END: Final = 2.0**30
"""A tolerance of so many times the noise's scale is none: no number is so far off."""

_OFFSETS: Final = 400
"""Into how many cases the offset is divided, where its effect is not added up in closed form."""


@final
@dataclass(frozen=True)
class Chance:
    """How a question would go for a hypothetical number.

    Attributes:
        distance: of the true number from the threshold; below it if negative.
        hit: the chance that it costs.
        false_alarm: the chance that it is said to be where it is not; None where it is there.
        miss: the chance that it is not said to be where it is; None where it is not there.
    """

    distance: float
    hit: float
    false_alarm: float | None = None
    miss: float | None = None


@final
@dataclass(frozen=True)
class Preview:
    """What a question would cost and how well it would work.

    Attributes:
        question: in canonical words.
        epsilon: of one computation.
        price: of one hit, on the table's meter.
        keys: how many tests it is.
        most_hits: the most that could be charged.
        scale: of the noise of a number; 0 where that says little, or none is published.
        margin: a published number is at most so far off, in at least 95% of draws.
        threshold: that distances are from; where a change is asked for, an end of what is unchanged; None if there
            is none.
        chances: for some distances.
        margin_of: what is off by so much: the "number"; the number "times units", of a mean: it is off by so
            much divided by how many units count; the "rank" among the units, of a quantile; or the count of a key
            that is picked, "beside the best".
        selects: whether only the largest of the keys are published.
        unchanged: between which numbers one is unchanged, ends included, None for an upper end that is none; None
            if no change is asked for.
        repeats: how many of the tests, or of the keys, were published before: asked again they are free.
    """

    question: str
    epsilon: float
    price: float
    keys: int
    most_hits: int
    scale: float
    margin: float
    threshold: float | None
    chances: tuple[Chance, ...]
    margin_of: MarginOf = "number"
    selects: bool = False
    unchanged: tuple[float, float | None] | None = None
    repeats: int = 0

    def with_repeats(self, repeats: int) -> Preview:
        """Return the preview of a question of which so many tests, or keys, were published before."""
        most = 0 if repeats == self.keys else min(self.most_hits, self.keys - repeats)
        return replace(self, repeats=repeats, most_hits=most) if repeats else self

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @property
    def _heading(self) -> str:
        """Return what the chances are of."""
        heading = f"if the true number is so far from {markup.number(self.threshold)}"
        if self.unchanged is None or self.unchanged[0] == self.unchanged[1]:
            return heading
        low, high = self.unchanged
        if high is None:
            return f"{heading}, below which it has changed"
        return f"{heading}, above which it has changed (as it has below {markup.number(low)})"

    def __str__(self) -> str:
        """Return the preview as text."""
        lines = [f"{name}: {value}" for name, value in self._facts()]
        if self.chances:
            lines.append(f"{self._heading}:")
            lines += [f"  {row[0]:>10}  hit {row[1]:<9} {row[2]}" for row in self._rows()]
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        price = f"{self.price:.4g}"
        margin, scale = markup.number(self.margin), markup.number(self.scale, 4)
        if self.margin_of == "rank" and self.keys > 1:
            price += f", for each of {markup.counted(self.keys, 'quantile')}"
        elif self.repeats == self.keys:
            price += ", if it is asked again all the same"
        elif self.most_hits > 1 or self.repeats:
            price += f" (at most {self.most_hits:,} of {markup.counted(self.keys, 'test')})"
        elif self.keys > 1:
            price += (
                f", for one of {self.keys:,} keys" if self.selects else f", for all {self.keys:,} keys together"
            )
        noise = {
            "number": f"scale {scale}, within {margin} in 95% of draws",
            "times units": f"within {margin} divided by the number of units in 95% of draws",
            "rank": f"at most {margin} units from the rank that is asked for in 95% of draws",
            "beside the best": f"keys at most {margin} below the best that is left in 95% of picks",
        }[self.margin_of]
        if self.margin_of == "beside the best" and self.scale:
            noise += f", their numbers of scale {scale}"
        before = []
        if self.repeats:
            many = "" if self.keys == 1 else f"{self.repeats:,} of {self.keys:,}: "
            before = [("published before", f"{many}asked again it is free, and the answer is the same")]
        return [
            ("question", self.question),
            *before,
            ("price of a hit", price),
            ("noise", f"{noise}, {'at' if self.chances else 'priced like a test at'} ε {self.epsilon:g}"),
        ]

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(_signed(chance.distance), _percent(chance.hit), _wrong(chance)) for chance in self.chances]

    def _repr_html_(self) -> str:
        """Return the preview as HTML, for notebooks."""
        facts = markup.table([], self._facts())
        if not self.chances:
            return facts
        heads = [f"distance from {markup.number(self.threshold)}", "chance of a hit", "chance of being wrong"]
        return facts + markup.table(heads, self._rows())


def _percent(chance: float) -> str:
    if 0 < chance < 1e-12:
        return "< 1e-12"
    return f"{chance:.2%}" if chance >= 1e-4 or chance == 0 else f"{chance:.1e}"


def _wrong(chance: Chance) -> str:
    if chance.false_alarm is not None:
        return f"false alarm {_percent(chance.false_alarm)}"
    return "" if chance.miss is None else f"miss {_percent(chance.miss)}"


def preview(prepared: Prepared, session: Session, distances: Sequence[float] | None, *, picks: bool) -> Preview:
    """Return what a question would cost and how well it would work.

    Args:
        prepared: the question.
        session: that it would be asked of.
        distances: of a true number from the threshold.
        picks: whether a selection would pick its keys one by one.
    """
    if prepared.always_paid or picks:
        if distances is not None:
            raise InvalidParameter("distances", distances, "left out for this question: it has no threshold")
        return _always_paid(prepared, session)
    question, name, keys, most = prepared.question, prepared.name, 1, 1
    single = prepared
    if isinstance(question, Watch | Top):
        keys = most = prepared.count
        alone: Single = CountQuestion(question.what)
        if isinstance(question, Watch):
            alone = Above(question.what, question.threshold)
        elif isinstance(question, Top):
            most = question.k
            name = f"{name}, the {most} largest"
        single = replace(prepared, question=alone, keys=None)
    asked = single.in_steps(_itself)
    if isinstance(question, Top):
        asked = replace(asked, default_target=NotPrior(None))  # a candidate, and not what is always paid for
    algorithm = session.drawn(asked)
    accuracy = algorithm.accuracy
    if isinstance(question, Top) and accuracy is not None:
        accuracy = accuracy.of_rank(most, keys)
    assert accuracy is not None  # noqa: S101 - all algorithms of tables have one
    shown = accuracy.through(prepared.gauge)
    unchanged = _unchanged(single.question, shown.scale)
    threshold = _threshold(single.question, unchanged)
    chances: tuple[Chance, ...] = ()
    if threshold is not None:
        away = _distances(distances, shown.scale)
        chances = tuple(_chance(single, algorithm, session, threshold, distance) for distance in away)
    elif distances is not None:
        chances_of = "its chances depend on the other keys" if isinstance(question, Top) else "it has no threshold"
        raise InvalidParameter("distances", distances, f"left out for this question: {chances_of}")
    named = isinstance(question, Top) and not question.values  # a key is off by its noise and that of a better one
    margin = -(-sum(accuracy.margins) // accuracy.lattice) if named else accuracy.margin
    return Preview(
        question=name,
        epsilon=prepared.epsilon,
        price=session.meter.quote(
            algorithm.default_target or NotPrior(None), prepared.epsilon, carried=algorithm.carries
        ).value,
        keys=keys,
        most_hits=most,
        scale=0.0 if named else shown.scale,
        margin=_margin(prepared.gauge, margin, threshold),
        threshold=threshold,
        chances=chances,
        margin_of="beside the best" if named else "number",
        selects=isinstance(question, Top),
        unchanged=unchanged,
    )


def _always_paid(prepared: Prepared, session: Session) -> Preview:
    """Return what numbers or picks cost that are published whatever they are, and how far off they are."""
    most, scale, margin_of, name = 1, 0.0, _MARGIN_OF.get(type(prepared.question), "number"), prepared.name
    if isinstance(prepared.question, Quantiles | Top):
        several = prepared.several()
        price, parts = session.price_of_several(several)
        most, margin, accuracy = several.count, parts.margin, parts.accuracy
        if isinstance(prepared.question, Top):
            name = f"{name}, the {most} largest"
    else:
        algorithm = session.drawn(prepared.algorithm())
        price, accuracy, margin = session.price_of(algorithm), algorithm.accuracy, algorithm.margin
    if accuracy is not None:
        scale = accuracy.scale
        margin = _margin(prepared.gauge, accuracy.margin, None) if margin_of == "number" else margin
    keys = most if isinstance(prepared.question, Quantiles) else max(1, prepared.count)
    selects = isinstance(prepared.question, Top)
    return Preview(name, prepared.epsilon, price, keys, most, scale, margin, None, (), margin_of, selects)


def _margin(gauge: Gauge, margin: int, threshold: float | None) -> float:
    """Return how far a published number may be off; of a sketch, near the threshold."""
    steps = 0 if threshold is None or gauge.full is None else gauge.least(threshold)
    return float(gauge.value(steps + margin + gauge.blur(steps)) - gauge.value(steps))


def _itself(steps: int) -> int:
    return steps


def _unchanged(question: Question, scale: float) -> tuple[float, float | None] | None:
    """Return between which numbers one is unchanged, None for no upper end; None if no change is asked for."""
    if not isinstance(question, Above | CountQuestion):
        return None
    prior = prior_value(question.prior)
    if prior is None:
        return None
    reach = Fraction(reach_of(question, prior))
    low, high = (float(Fraction(prior) + change) for change in (-reach, reach))
    return low, high if reach < _NO_END * scale else None


def _threshold(question: Question, unchanged: tuple[float, float | None] | None) -> float | None:
    """Return what distances are from: the threshold, the lower end of a band, or the end of what is unchanged."""
    if unchanged is not None:
        low, high = unchanged
        return low if high is None else high
    if isinstance(question, BetweenQuestion):
        return question.low
    return question.threshold if isinstance(question, SideQuestion | Above) else None


def _distances(given: Sequence[float] | None, scale: float) -> list[float]:
    if given is None:
        steps = [max(1.0, round(times * scale)) if scale >= 1 else times * scale for times in _SCALES]
        return [*(-distance for distance in reversed(steps)), 0.0, *steps]
    expected = "a list of numbers, negative for below the threshold"
    if not isinstance(given, list | tuple):
        raise InvalidParameter("distances", given, expected)
    distances = [checks.real(distance, "distances", expected) for distance in given]
    for distance in distances:
        if not abs(distance) <= checks.MAX_THRESHOLD:
            raise InvalidParameter("distances", distance, expected)
    return distances


def _chance(
    prepared: Prepared, algorithm: Algorithm, session: Session, threshold: float, distance: float
) -> Chance:
    question, gauge = prepared.question, prepared.gauge
    steps = _steps(gauge, threshold, distance)
    if algorithm.default_target == Boundary():
        return _boundary_chance(prepared, session, threshold, distance)
    oracle = algorithm.oracle
    assert oracle is not None  # noqa: S101 - all algorithms of tables have one
    probability: Callable[[object, object], float] = oracle.probability
    if isinstance(question, BetweenQuestion):
        hit = probability(steps, Where.BETWEEN)
        inside = gauge.least(question.low) <= steps <= gauge.most(question.high)
        return Chance(distance, hit, miss=1 - hit) if inside else Chance(distance, hit, false_alarm=hit)
    free = algorithm.default_target.prior if isinstance(algorithm.default_target, NotPrior) else None
    missed = probability(steps, free)
    hit = oracle.rest(steps) if missed > 1 / 2 else 1 - missed  # small chances without the cancellation
    if not isinstance(question, Above) or prior_value(question.prior) is not None:
        return Chance(distance, hit)
    return Chance(distance, hit, false_alarm=hit) if distance < 0 else Chance(distance, hit, miss=missed)


def _steps(gauge: Gauge, threshold: float, distance: float) -> int:
    """Return the steps of a number so far from the threshold; where there is none, of the next one beyond."""
    wanted = threshold + distance
    return gauge.most(wanted) if distance < 0 else gauge.least(wanted)


def _boundary_chance(prepared: Prepared, session: Session, threshold: float, distance: float) -> Chance:
    """Return the chance of the mark, and of the wrong side where it does not come first, over all offsets."""
    least, steps = prepared.gauge.least(threshold), _steps(prepared.gauge, threshold, distance)
    common: dict[str, Any] = {"sensitivity": prepared.measure.sensitivity, "monotone": prepared.monotone}
    inside = session.drawn(side_of_threshold(_itself, least, prepared.epsilon, **common))
    oracle, offset = inside.oracle, session.meter.tariff.offset
    assert oracle is not None  # noqa: S101 - it has one
    cases: list[tuple[object, float]] = [(steps, 1.0)]
    if inside.carries and offset is not None:
        offsets, masses = offsets_of(offset, _OFFSETS)
        cases = [(Carried(steps, int(one)), mass) for one, mass in zip(offsets, masses.tolist(), strict=True)]
    marked = wrong = 0.0
    for data, mass in cases:
        mark = Boundary().mark_probability(oracle.rest(data))
        marked += mass * mark
        wrong += mass * (1 - mark) * oracle.probability(data, Where.ABOVE if distance < 0 else Where.BELOW)
    return Chance(distance, marked, false_alarm=wrong) if distance < 0 else Chance(distance, marked, miss=wrong)


def _signed(distance: float) -> str:
    return ("+" if distance >= 0 else "") + markup.number(distance)
