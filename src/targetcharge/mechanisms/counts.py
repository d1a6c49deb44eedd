"""Noisy counts: an integer plus discrete Laplace noise, and what is published of the sum.

>>> from targetcharge.randomness import SystemEntropy
>>> entropy = SystemEntropy()
>>> abs(noisy_count(len, epsilon=1.0).run(range(1000), entropy) - 1000) < 100
True
>>> test = above_threshold(len, threshold=100, epsilon=1.0)
>>> test.run(range(10), entropy) is None, test.default_target
(True, NotPrior(prior=None))
>>> side_of_threshold(len, threshold=100, epsilon=1.0).run(range(10), entropy)
<Side.BELOW: 'below'>
>>> band = between_thresholds(len, low=90, high=110, epsilon=1.0)
>>> band.run(range(1000), entropy), band.default_target
(<Side.ABOVE: 'above'>, Between(low=90, high=110, sensitivity=1))
>>> change = changed(len, prior=1000, tolerance=50, epsilon=1.0)
>>> change.run(range(1010), entropy), change.default_target
(UNCHANGED, NotPrior(prior=UNCHANGED))
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, Protocol, final

from targetcharge import checks
from targetcharge.accounting.targets import Between, NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.accuracy import Accuracy, exactly
from targetcharge.mechanisms.algorithm import ANY_PRIOR, Algorithm, FiniteOracle, algorithm_name
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.outcomes import UNCHANGED, Mark, Side
from targetcharge.randomness import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.targets import Target
    from targetcharge.mechanisms.accuracy import Range
    from targetcharge.mechanisms.algorithm import Oracle, Support
    from targetcharge.randomness import Entropy

    Count = Callable[[Any], int]
    """A function of the data whose value is an integer."""


def noisy_count(count: Count, epsilon: float, *, sensitivity: int = 1, name: str | None = None) -> Algorithm:
    """Return the algorithm that publishes a count plus discrete Laplace noise of rate ε/sensitivity.

    Args:
        count: a function of the data whose value is an integer.
        epsilon: ε of one run.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    return _noisy("noisy_count", count, epsilon, sensitivity, name, _Values())


def above_threshold(
    count: Count,
    threshold: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes a noisy count where it is at least the threshold, else None.

    It costs only when it publishes a count: `default_target` is NotPrior(None).

    Args:
        count: a function of the data whose value is an integer.
        threshold: the least noisy count that is published.
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    least = _least(threshold)
    values = _Values(least, range(least, least))
    return _noisy("above_threshold", count, epsilon, sensitivity, name, values, target=NotPrior(None))


def changed(
    count: Count,
    prior: float | Fraction,
    tolerance: float | Fraction,
    epsilon: float,
    *,
    threshold: float | None = None,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes UNCHANGED where a noisy count is close to an earlier value, else itself.

    It costs only when the count has changed: `default_target` is NotPrior(UNCHANGED). A changed count below the
    threshold, if there is one, is published as None, and costs too.

    Args:
        count: a function of the data whose value is an integer.
        prior: the earlier value: a published one, or a guess; never one that was read off the data.
        tolerance: how far the noisy count may be from the prior to be UNCHANGED, ends included.
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        threshold: the least changed count that is published; None to publish all.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    exact = _exact("prior", prior, "a finite number")
    values = _Values(None if threshold is None else _least(threshold), _close(exact, prior, tolerance))
    # A ledger keeps none but Python's own numbers.
    plain = int(exact) if isinstance(prior, Rational) and exact.denominator == 1 else float(exact)
    target = NotPrior(UNCHANGED)
    return _noisy("changed", count, epsilon, sensitivity, name, values, target=target, prior=plain)


def side_of_threshold(
    count: Count,
    threshold: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes whether a noisy count is BELOW a threshold, or at least it: ABOVE.

    As it is, ABOVE costs: `default_target` is NotPrior(Side.BELOW). Wrapped by `boundary`, either side is free and
    only counts close to the threshold cost.

    Args:
        count: a function of the data whose value is an integer.
        threshold: the least noisy count that is ABOVE.
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    least = _least(threshold)
    sides = _Sides(least, least - 1)
    return _noisy("side_of_threshold", count, epsilon, sensitivity, name, sides, target=NotPrior(Side.BELOW))


def between_thresholds(
    count: Count,
    low: float,
    high: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes on which side of the closed band [low, high] a noisy count lies.

    Asked with `Between(low, high, sensitivity)`, its default target, only BETWEEN costs.

    Args:
        count: a function of the data whose value is an integer.
        low: lower threshold.
        high: upper threshold, with at least one integer in [low, high].
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    band = Between(low, high, sensitivity)
    sides = _Sides(math.ceil(low), math.floor(high))
    targets = (*ANY_PRIOR, band)
    return _noisy("between_thresholds", count, epsilon, sensitivity, name, sides, target=band, targets=targets)


def _least(threshold: float) -> int:
    return math.ceil(checks.threshold(threshold, "threshold"))


def _close(middle: Fraction, prior: float | Fraction, tolerance: float | Fraction) -> range:
    """Return the integers within the tolerance of the prior, of which there is at least one."""
    expected = "a finite number of at least 0"
    reach = _exact("tolerance", tolerance, expected)
    if reach < 0:
        raise InvalidParameter("tolerance", tolerance, expected)
    close = range(math.ceil(middle - reach), math.floor(middle + reach) + 1)
    if not close:
        needed = float(min(middle - math.floor(middle), math.ceil(middle) - middle))
        raise InvalidParameter("tolerance", tolerance, f"at least {needed:g}: no integer is closer to {prior!r}")
    return close


def _exact(name: str, value: float | Fraction, expected: str) -> Fraction:
    """Return a finite number as it was given, unrounded."""
    real = checks.real(value, name, expected)  # type: ignore[arg-type]  # a fraction is a real number too
    if not math.isfinite(real):
        raise InvalidParameter(name, value, expected)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(real)


class _Rule(Protocol):
    """What is published of a noisy count."""

    def publish(self, value: int) -> object: ...
    def span(self, outcome: object) -> Range | None: ...
    def oracle(self, count: Count, noise: NoiseLaw) -> Oracle: ...


def _noisy(
    mechanism: str,
    count: Count,
    epsilon: float,
    sensitivity: int,
    name: str | None,
    rule: _Rule,
    *,
    target: Target | None = None,
    targets: tuple[Support, ...] = ANY_PRIOR,
    prior: float | None = None,
) -> Algorithm:
    checks.function_of_data(count, "count")
    rate = rate_for(epsilon, sensitivity)
    index, publish = operator.index, rule.publish

    def run(data: object, entropy: Entropy) -> object:
        return publish(index(count(data)) + discrete_laplace(entropy, rate))

    return Algorithm(
        name=algorithm_name(name, mechanism, count),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        targets=targets,
        default_target=target,
        oracle=rule.oracle(count, NoiseLaw.of(rate)),
        accuracy=Accuracy.of(rate, rule.span),
        prior=prior,
    )


@final
@dataclass(frozen=True)
class _Sides:
    """BELOW, BETWEEN `least` and `most`, or ABOVE; nothing is between where `most` is smaller."""

    least: int
    most: int

    def publish(self, value: int) -> Side:
        if value < self.least:
            return Side.BELOW
        return Side.ABOVE if value > self.most else Side.BETWEEN

    def span(self, outcome: object) -> Range | None:
        spans: dict[object, Range] = {
            Side.BELOW: (None, self.least - 1),
            Side.BETWEEN: (self.least, self.most),
            Side.ABOVE: (self.most + 1, None),
        }
        return spans.get(outcome)

    def oracle(self, count: Count, noise: NoiseLaw) -> FiniteOracle:
        def law(data: object) -> list[float]:
            return noise.sides(operator.index(count(data)), self.least, self.most)

        return FiniteOracle((Side.BELOW, Side.BETWEEN, Side.ABOVE), law)


@final
@dataclass(frozen=True)
class _Values:
    """UNCHANGED for integers close to an earlier value, None for others below `least`, else the value itself."""

    least: int | None = None
    unchanged: range = range(0)

    def publish(self, value: int) -> int | Mark | None:
        if value in self.unchanged:
            return UNCHANGED
        return value if self.least is None or value >= self.least else None

    def span(self, outcome: object) -> Range | None:
        if outcome is UNCHANGED and self.unchanged:
            return self.unchanged.start, self.unchanged.stop - 1
        if outcome is None and self.least is not None:
            most = self.least - 1
            return None, self.unchanged.start - 1 if most in self.unchanged else most
        return exactly(outcome)

    def oracle(self, count: Count, noise: NoiseLaw) -> _ValueOracle:
        return _ValueOracle(count, noise, self.least, self.unchanged.start, self.unchanged.stop - 1)


@final
@dataclass(frozen=True)
class _ValueOracle:
    """The law of a noisy count that is UNCHANGED from `low` to `high`, and else published from `least` on.

    Where nothing is UNCHANGED, `low` is `least` and `high` is one less.
    """

    count: Count
    noise: NoiseLaw
    least: int | None
    low: int
    high: int

    def probability(self, data: object, outcome: object) -> float:
        """Return the mass of the integers close to the prior, of those that are not published, or of one count."""
        count = operator.index(self.count(data))
        if outcome is UNCHANGED:
            return self._unchanged(count)
        if outcome is None:
            return self._nothing(count)
        return self.noise.mass(outcome - count) if type(outcome) is int and self._is_published(outcome) else 0.0

    def peak(self, data: object) -> float:
        """Return the largest of UNCHANGED's mass, None's and that of the true count, if it is published.

        No other count is the peak: what stands for the true count has at least the noise's largest mass.
        """
        count = operator.index(self.count(data))
        return max(self._unchanged(count), self._nothing(count), self._itself(count))

    def rest(self, data: object) -> float:
        """Return the mass of everything else."""
        count = operator.index(self.count(data))
        unchanged, nothing, itself = self._unchanged(count), self._nothing(count), self._itself(count)
        if itself > max(unchanged, nothing):
            return 2 * self.noise.at_least(1)
        return min(unchanged, nothing) + self._published(count)

    def _is_published(self, value: int) -> bool:
        return not self.low <= value <= self.high and (self.least is None or value >= self.least)

    def _unchanged(self, count: int) -> float:
        return self._within(count, self.low, self.high)

    def _itself(self, count: int) -> float:
        return self.noise.mass(0) if self._is_published(count) else 0.0

    def _nothing(self, count: int) -> float:
        if self.least is None:
            return 0.0
        under = self.noise.at_least(count - min(self.low, self.least) + 1)
        return under + self._within(count, self.high + 1, self.least - 1)

    def _published(self, count: int) -> float:
        if self.least is None:
            return self.noise.at_least(count - self.low + 1) + self.noise.at_least(self.high + 1 - count)
        above = self.noise.at_least(max(self.least, self.high + 1) - count)
        return above + self._within(count, self.least, self.low - 1)

    def _within(self, count: int, first: int, last: int) -> float:
        return self.noise.sides(count, first, last)[1] if first <= last else 0.0
