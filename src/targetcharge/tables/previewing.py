"""Previews: what a question would cost and how well it would work. Made from public facts, without an engine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks, markup
from targetcharge.accounting.targets import Boundary, NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms import side_of_threshold
from targetcharge.outcomes import Side as Where
from targetcharge.tables.batteries import by_keys
from targetcharge.tables.computing import Single, algorithm_of, number_asked, prior_value
from targetcharge.tables.individual.charges import additive
from targetcharge.tables.questions import Above, Between, Question, Side, Top, Value, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from targetcharge.mechanisms import Algorithm
    from targetcharge.queries.columns import Column
    from targetcharge.sessions.reading import Reading
    from targetcharge.tables.numbers import Number

_SCALES: Final = (1, 2, 3, 5, 10)
"""How many times the noise's scale a number is away from the threshold, where the caller does not say."""


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
        scale: of the noise.
        margin: a published number is at most so far off, in at least 95% of draws.
        threshold: that distances are from; None if there is none.
        chances: for some distances.
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

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def __str__(self) -> str:
        """Return it as text."""
        lines = [f"{name}: {value}" for name, value in self._facts()]
        if self.chances:
            lines.append(f"if the true number is so far from {markup.number(self.threshold)}:")
            lines += [f"  {row[0]:>10}  hit {row[1]:<9} {row[2]}" for row in self._rows()]
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("question", self.question),
            ("price of a hit", f"{self.price:.4g} (at most {self.most_hits:,} of {self.keys:,} tests)"),
            ("noise", f"scale {self.scale:.4g}, within {self.margin:.6g} in 95% of draws, at ε {self.epsilon:g}"),
        ]
        return facts if self.keys > 1 else [facts[0], (facts[1][0], f"{self.price:.4g}"), facts[2]]

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(f"{each.distance:+g}", _percent(each.hit), _wrong(each)) for each in self.chances]

    def _repr_html_(self) -> str:
        """Return it as HTML."""
        facts = markup.table([], self._facts())
        if not self.chances:
            return facts
        heads = [f"distance from {markup.number(self.threshold)}", "chance of a hit", "chance of being wrong"]
        return facts + markup.table(heads, self._rows())


def _percent(chance: float) -> str:
    return f"{chance:.2%}" if chance >= 1e-4 or chance == 0 else f"{chance:.1e}"


def _wrong(chance: Chance) -> str:
    if chance.false_alarm is not None:
        return f"false alarm {_percent(chance.false_alarm)}"
    return "" if chance.miss is None else f"miss {_percent(chance.miss)}"


def preview(
    question: Question,
    schema: Mapping[str, Column],
    epsilon: float,
    meter: Reading,
    distances: Sequence[float] | None,
) -> Preview:
    """Return what a question would cost and how well it would work."""
    keys, most, single, name = 1, 1, question, ""
    if isinstance(question, Watch):
        tests, _ = by_keys(question, epsilon, schema)
        keys, most, single = len(tests), len(tests), Above(question.what, question.threshold)
        name = tests.algorithms[0].name
    elif isinstance(question, Top):
        tests, _ = by_keys(question, epsilon, schema)
        keys, most, single = len(tests), int(question.k), Value(question.what)
        name = f"{tests.algorithms[0].name}, the {most} largest"
    if not isinstance(single, Single):
        raise InvalidParameter("question", question, "made by tc.questions, such as tc.questions.above(…)")
    number = number_asked(single, schema)
    if meter.individual:
        additive(number.measure)
    algorithm = algorithm_of(single, number, epsilon, _itself)
    target = algorithm.default_target or NotPrior(None)
    accuracy = algorithm.accuracy
    assert accuracy is not None  # noqa: S101 - all algorithms of tables have one
    shown = accuracy.through(number.gauge)
    threshold = _threshold(single)
    chances: tuple[Chance, ...] = ()
    if threshold is not None:
        away = _distances(distances, shown.scale)
        chances = tuple(_chance(single, algorithm, number, threshold, each, epsilon) for each in away)
    elif distances is not None:
        chances_of = "its chances depend on the other keys" if isinstance(question, Top) else "it has no threshold"
        raise InvalidParameter("distances", distances, f"left out for this question: {chances_of}")
    return Preview(
        question=name or algorithm.name,
        epsilon=epsilon,
        price=meter.quote(target, epsilon).value,
        keys=keys,
        most_hits=most,
        scale=shown.scale,
        margin=_margin(number, accuracy.margin, threshold),
        threshold=threshold,
        chances=chances,
    )


def _margin(number: Number, margin: int, threshold: float | None) -> float:
    """Return how far a published number may be off; of a sketch, near the threshold."""
    gauge = number.gauge
    steps = 0 if threshold is None or gauge.full is None else gauge.least(threshold)
    return float(gauge.value(steps + margin + gauge.blur(steps)) - gauge.value(steps))


def _itself(steps: int) -> int:
    return steps


def _threshold(question: Single) -> float | None:
    """Return what distances are from: the threshold, the lower end of a band, or the prior."""
    match question:
        case Between():
            return question.low
        case Side():
            return question.threshold
        case Above():
            prior = prior_value(question.prior)
            return question.threshold if prior is None else prior
        case Value():
            return prior_value(question.prior)


def _distances(given: Sequence[float] | None, scale: float) -> list[float]:
    if given is None:
        steps = [max(1.0, round(times * scale)) if scale >= 1 else times * scale for times in _SCALES]
        return [*(-each for each in reversed(steps)), 0.0, *steps]
    expected = "a list of numbers, negative for below the threshold"
    if not isinstance(given, list | tuple):
        raise InvalidParameter("distances", given, expected)
    found = [checks.real("distances", each, expected) for each in given]
    for each in found:
        if not abs(each) <= checks.MAX_THRESHOLD:
            raise InvalidParameter("distances", each, expected)
    return found


def _chance(
    question: Single, algorithm: Algorithm, number: Number, threshold: float, distance: float, epsilon: float
) -> Chance:
    steps = _steps(number, threshold, distance)
    if algorithm.default_target == Boundary():
        return _boundary_chance(number, threshold, distance, epsilon)
    oracle = algorithm.oracle
    assert oracle is not None  # noqa: S101 - all algorithms of tables have one
    probability: Callable[[object, object], float] = oracle.probability
    if isinstance(question, Between):
        hit = probability(steps, Where.BETWEEN)
        inside = number.gauge.least(question.low) <= steps <= number.gauge.most(question.high)
        return Chance(distance, hit, miss=1 - hit) if inside else Chance(distance, hit, false_alarm=hit)
    free = algorithm.default_target.prior if isinstance(algorithm.default_target, NotPrior) else None
    missed = probability(steps, free)
    hit = oracle.rest(steps) if missed > 1 / 2 else 1 - missed  # small chances without the cancellation
    if not isinstance(question, Above) or prior_value(question.prior) is not None:
        return Chance(distance, hit)
    return Chance(distance, hit, false_alarm=hit) if distance < 0 else Chance(distance, hit, miss=missed)


def _steps(number: Number, threshold: float, distance: float) -> int:
    """Return the steps of a number so far from the threshold; where there is none, of the next one beyond."""
    wanted = threshold + distance
    return number.gauge.most(wanted) if distance < 0 else number.gauge.least(wanted)


def _boundary_chance(number: Number, threshold: float, distance: float, epsilon: float) -> Chance:
    """Return the chance of the mark, and of the wrong side where it does not come first."""
    least, steps = number.gauge.least(threshold), _steps(number, threshold, distance)
    inside = side_of_threshold(_itself, least, epsilon, sensitivity=number.measure.sensitivity)
    assert inside.oracle is not None  # noqa: S101 - it has one
    mark = Boundary().mark_probability(inside.oracle.rest(steps))
    other = inside.oracle.probability(steps, Where.ABOVE if distance < 0 else Where.BELOW)
    wrong = (1 - mark) * other
    return Chance(distance, mark, false_alarm=wrong) if distance < 0 else Chance(distance, mark, miss=wrong)
