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
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, final

from targetcharge import checks
from targetcharge.accounting.targets import Between, NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.accuracy import Accuracy
from targetcharge.mechanisms.algorithm import ANY_PRIOR, Algorithm, Counted, algorithm_name
from targetcharge.mechanisms.noise import CountNoise
from targetcharge.mechanisms.ranges import ITSELF, NoisyOracle, Ranges, RedrawnOracle, changed_ranges, on_lattice
from targetcharge.outcomes import UNCHANGED, Side

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.targets import Target
    from targetcharge.mechanisms.algorithm import Support
    from targetcharge.mechanisms.noise import NoiseOf
    from targetcharge.randomness import Entropy

    Count = Callable[[Any], int]
    """A function of the data whose value is an integer."""


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
    ranges = Ranges((), (ITSELF,))
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
    ranges, target = Ranges((_least(threshold),), (None, ITSELF)), NotPrior(None)
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
    ranges = changed_ranges(_close(exact, prior, tolerance), None if threshold is None else _least(threshold))
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
    ranges = Ranges((_least(threshold),), (Side.BELOW, Side.ABOVE))
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
    ranges = Ranges((math.ceil(low), math.floor(high) + 1), (Side.BELOW, Side.BETWEEN, Side.ABOVE))
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
    ranges: Ranges,
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
        oracle=NoisyOracle(count, noise.law, ranges),
        accuracy=Accuracy.of(noise, ranges.span),
        prior=prior,
        counted=_counted(count, sensitivity, ranges) if checks.flag(monotone, "monotone") else None,
        examples=ranges.examples,
    )


def _counted(count: Count, sensitivity: int, ranges: Ranges) -> Counted:
    always = ranges.labels == (ITSELF,)

    def redrawn(noise_of: NoiseOf) -> Algorithm:
        noise = noise_of(sensitivity)
        scaled = Ranges(tuple(noise.lattice * start for start in ranges.starts), ranges.labels)
        return Algorithm(
            name="",
            epsilon=0.0,
            delta=0.0,
            run=_Run(count, noise, scaled),
            oracle=RedrawnOracle.of(count, noise, scaled),
            accuracy=Accuracy.of(noise, ranges.span),
            carries=noise.offset is not None,
        )

    return Counted(redrawn, always or ranges.labels == (None, ITSELF), always)


@final
@dataclass(frozen=True)
class _Run:
    """Draws a noisy count, less its share of the offset if the data carries one."""

    count: Count
    noise: CountNoise
    ranges: Ranges

    def __call__(self, data: object, entropy: Entropy) -> object:
        """Return what is published of the noisy count: compared on the lattice, then rounded to whole steps."""
        published = self.ranges.publish(on_lattice(self.count, self.noise, data) + self.noise.draw(entropy))
        return self.noise.shown(published) if type(published) is int else published
