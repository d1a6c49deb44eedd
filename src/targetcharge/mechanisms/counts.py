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
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from numbers import Rational
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks
from targetcharge.accounting.targets import Between, NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.algorithm import ANY_PRIOR, Algorithm, Counted, algorithm_name
from targetcharge.mechanisms.noise import Accuracy, Carried, CountNoise, NoiseLaw, exactly
from targetcharge.outcomes import UNCHANGED, Side

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.targets import Target
    from targetcharge.mechanisms.algorithm import Support
    from targetcharge.mechanisms.noise import NoiseOf, Range, TotalLaw
    from targetcharge.randomness import Entropy

    Count = Callable[[Any], int]
    """A function of the data whose value is an integer."""

_ITSELF: Final = object()
"""Stands for a noisy count that is published as it is."""


def noisy_count(
    count: Count, epsilon: float, *, sensitivity: int = 1, monotone: bool = False, name: str | None = None
) -> Algorithm:
    """Return the algorithm that publishes a count plus discrete Laplace noise of rate ε/sensitivity.

    Args:
        count: a function of the data whose value is an integer.
        epsilon: ε of one run.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        monotone: whether adding a unit never lowers it; then it carries the offset of a session that has one.
        name: what the transcript calls it.
    """
    ranges = _Ranges((), (_ITSELF,))
    return _noisy("noisy_count", count, epsilon, sensitivity, name, ranges, monotone=monotone)


def above_threshold(
    count: Count,
    threshold: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    monotone: bool = False,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes a noisy count where it is at least the threshold, else None.

    It costs only when it publishes a count: `default_target` is NotPrior(None).

    Args:
        count: a function of the data whose value is an integer.
        threshold: the least noisy count that is published.
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        monotone: whether adding a unit never lowers it; then it carries the offset of a session that has one.
        name: what the transcript calls it.
    """
    ranges, target = _Ranges((_least(threshold),), (None, _ITSELF)), NotPrior(None)
    return _noisy("above_threshold", count, epsilon, sensitivity, name, ranges, target=target, monotone=monotone)


def changed(
    count: Count,
    prior: float | Fraction,
    tolerance: float | Fraction,
    epsilon: float,
    *,
    threshold: float | None = None,
    sensitivity: int = 1,
    monotone: bool = False,
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
        monotone: whether adding a unit never lowers it; then it carries the offset of a session that has one.
        name: what the transcript calls it.
    """
    exact = _exact("prior", prior, "a finite number")
    ranges = _changed_ranges(_close(exact, prior, tolerance), None if threshold is None else _least(threshold))
    # A ledger keeps none but Python's own numbers.
    plain = int(exact) if isinstance(prior, Rational) and exact.denominator == 1 else float(exact)
    target = NotPrior(UNCHANGED)
    return _noisy(
        "changed", count, epsilon, sensitivity, name, ranges, target=target, prior=plain, monotone=monotone
    )


def side_of_threshold(
    count: Count,
    threshold: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    monotone: bool = False,
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
        monotone: whether adding a unit never lowers it; then it carries the offset of a session that has one.
        name: what the transcript calls it.
    """
    ranges = _Ranges((_least(threshold),), (Side.BELOW, Side.ABOVE))
    below = NotPrior(Side.BELOW)
    return _noisy("side_of_threshold", count, epsilon, sensitivity, name, ranges, target=below, monotone=monotone)


def between_thresholds(
    count: Count,
    low: float,
    high: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    monotone: bool = False,
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
        monotone: whether adding a unit never lowers it; then it carries the offset of a session that has one.
        name: what the transcript calls it.
    """
    band = Between(low, high, sensitivity)
    ranges = _Ranges((math.ceil(low), math.floor(high) + 1), (Side.BELOW, Side.BETWEEN, Side.ABOVE))
    targets = (*ANY_PRIOR, band)
    return _noisy(
        "between_thresholds",
        count,
        epsilon,
        sensitivity,
        name,
        ranges,
        target=band,
        targets=targets,
        monotone=monotone,
    )


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


def _noisy(
    mechanism: str,
    count: Count,
    epsilon: float,
    sensitivity: int,
    name: str | None,
    ranges: _Ranges,
    *,
    target: Target | None = None,
    targets: tuple[Support, ...] = ANY_PRIOR,
    prior: float | None = None,
    monotone: bool = False,
) -> Algorithm:
    checks.function_of_data(count, "count")
    noise = CountNoise.natural(epsilon, sensitivity)
    return Algorithm(
        name=algorithm_name(name, mechanism, count),
        epsilon=float(epsilon),
        delta=0.0,
        run=_Run(count, noise, ranges),
        targets=targets,
        default_target=target,
        oracle=_NoisyOracle(count, noise.law, ranges),
        accuracy=Accuracy.of(noise, ranges.span),
        prior=prior,
        counted=_counted(count, sensitivity, ranges) if checks.flag(monotone, "monotone") else None,
    )


def _counted(count: Count, sensitivity: int, ranges: _Ranges) -> Counted:
    always = ranges.labels == (_ITSELF,)

    def redrawn(noise_of: NoiseOf) -> Algorithm:
        noise = noise_of(sensitivity)
        on_lattice = _Ranges(tuple(noise.lattice * start for start in ranges.starts), ranges.labels)
        return Algorithm(
            name="",
            epsilon=0.0,
            delta=0.0,
            run=_Run(count, noise, on_lattice),
            oracle=_RedrawnOracle.of(count, noise, on_lattice),
            accuracy=Accuracy.of(noise, ranges.span),
            carries=noise.offset is not None,
        )

    return Counted(redrawn, always or ranges.labels == (None, _ITSELF), always)


@final
@dataclass(frozen=True)
class _Run:
    """Draws a noisy count, less its share of the offset if the data carries one."""

    count: Count
    noise: CountNoise
    ranges: _Ranges

    def __call__(self, data: object, entropy: Entropy) -> object:
        """Return what is published of the noisy count: compared on the lattice, then rounded to whole steps."""
        published = self.ranges.publish(_on_lattice(self.count, self.noise, data) + self.noise.draw(entropy))
        return self.noise.shown(published) if type(published) is int else published


def _on_lattice(count: Count, noise: CountNoise, data: object) -> int:
    """Return the true count less its share of the offset, if the data carries one, in steps of the lattice."""
    if type(data) is Carried:
        return noise.lattice * operator.index(count(data.data)) - noise.weight * data.offset
    return noise.lattice * operator.index(count(data))


@final
@dataclass(frozen=True)
class _Ranges:
    """What is published of a noisy count, by the range of integers that it is in.

    Attributes:
        starts: the first integer of each range but the lowest, which has none.
        labels: what is published in each range; _ITSELF where that is the noisy count.
    """

    starts: tuple[int, ...]
    labels: tuple[object, ...]

    def label(self, value: int) -> object:
        return self.labels[bisect_right(self.starts, value)]

    def publish(self, value: int) -> object:
        label = self.label(value)
        return value if label is _ITSELF else label

    @cached_property
    def ends(self) -> dict[object, list[tuple[int | None, int | None]]]:
        """Return the first and the last integer of each range, by its label; None where it has no end."""
        ends: dict[object, list[tuple[int | None, int | None]]] = {label: [] for label in self.labels}
        lasts = [*(start - 1 for start in self.starts), None]
        for label, first, last in zip(self.labels, (None, *self.starts), lasts, strict=True):
            ends[label].append((first, last))
        return ends

    def span(self, outcome: object) -> Range | None:
        for label, ends in self.ends.items():
            if label is outcome:
                return ends[0][0], ends[-1][1]
        return exactly(outcome)


def _changed_ranges(unchanged: range, least: int | None) -> _Ranges:
    """Return the ranges of integers that are UNCHANGED, else None below `least`, else published."""

    def label(value: int) -> object:
        if value in unchanged:
            return UNCHANGED
        return _ITSELF if least is None or value >= least else None

    starts = sorted({unchanged.start, unchanged.stop, unchanged.start if least is None else least})
    return _Ranges(tuple(starts), (label(starts[0] - 1), *map(label, starts)))


@final
@dataclass(frozen=True)
class _NoisyOracle:
    """The law of what is published of a noisy count."""

    count: Count
    noise: NoiseLaw | TotalLaw
    ranges: _Ranges

    def probability(self, data: object, outcome: object) -> float:
        """Return the mass of the ranges with that label, or of one count that is published."""
        count = operator.index(self.count(data))
        if type(outcome) is int:
            return self.noise.mass(outcome - count) if self.ranges.label(outcome) is _ITSELF else 0.0
        return sum(mass for label, mass in self._masses(count).items() if label is outcome)

    def peak(self, data: object) -> float:
        """Return the largest mass of a label, or that of the true count, if it is published.

        No other count is the peak: what stands for the true count has at least the noise's largest mass.
        """
        count = operator.index(self.count(data))
        masses = self._masses(count) | {_ITSELF: self._itself(count)}
        return max(masses.values())

    def rest(self, data: object) -> float:
        """Return the mass of everything else."""
        count = operator.index(self.count(data))
        if len(self.ranges.labels) == 2 and _ITSELF not in self.ranges.labels:
            start = self.ranges.starts[0]  # of two sides the smaller one: at every question of a boundary
            return self.noise.at_least(max(start - count, count - start + 1))
        masses = self._masses(count)
        published = masses.pop(_ITSELF, 0.0)
        *others, largest = sorted(masses.values()) or [0.0]
        if published and self._itself(count) > largest:
            return 2 * self.noise.at_least(1)
        return sum(others) + published

    def _itself(self, count: int) -> float:
        """Return the mass of the true count; 0 if it is not published."""
        return self.noise.mass(0) if self.ranges.label(count) is _ITSELF else 0.0

    def _masses(self, count: int) -> dict[object, float]:
        """Return the mass of each label, and of all counts that are published."""
        within = self.noise.within
        return {label: sum([within(count, *pair) for pair in ends]) for label, ends in self.ranges.ends.items()}


@final
@dataclass(frozen=True)
class _RedrawnOracle:
    """The law of what is published of a count with a session's noise.

    Given data that carries the offset it is the law of the fresh noise: what a wrapper sees when it runs. Given
    the bare count, as previews do, the offset is a part of the noise.
    """

    with_offset: _NoisyOracle
    without: _NoisyOracle

    @classmethod
    def of(cls, count: Count, noise: CountNoise, ranges: _Ranges) -> _RedrawnOracle:
        """Return the oracle of a count with this noise; the ranges are in steps of its lattice."""
        on_lattice = partial(_on_lattice, count, noise)
        fresh = _NoisyOracle(on_lattice, noise.fresh_law, ranges)
        return cls(fresh, _NoisyOracle(on_lattice, noise.law, ranges))

    def probability(self, data: object, outcome: object) -> float:
        """Return the mass of what is published; of a count that is published, that of one step of the lattice."""
        return self._for(data).probability(data, outcome)

    def peak(self, data: object) -> float:
        """Return the largest mass."""
        return self._for(data).peak(data)

    def rest(self, data: object) -> float:
        """Return the mass of everything else."""
        return self._for(data).rest(data)

    def _for(self, data: object) -> _NoisyOracle:
        return self.with_offset if type(data) is Carried else self.without
