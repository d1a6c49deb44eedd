"""Always paid: numbers that are published whatever they are, with the least noise that one hit pays for.

How much noise that is depends on a session's meter, so these algorithms are drawn by the session
(`Algorithm.paid`). On their own they are ε-DP.

>>> from targetcharge.accounting.exchange import exact_rates
>>> noise = PaidNoise(exact_rates(0.1))
>>> counts = histogram(lambda data: [len(data), 0], 0.1, keys=2)
>>> paid(counts, noise).default_target
Everything(curve=Gaussian(shift_squared=1, variance=Fraction(...)))
>>> round(CountNoise.natural(0.1, 1).standard_deviation, 1), round(noise.least(1, 1)[0].standard_deviation, 1)
(14.1, 7.6)
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from targetcharge import checks
from targetcharge.accounting.curves import Gaussian, Pure
from targetcharge.accounting.exchange import PaidRates
from targetcharge.accounting.targets import Everything, NotPrior
from targetcharge.mechanisms.accuracy import Accuracy, exactly
from targetcharge.mechanisms.algorithm import ANY_PRIOR, Algorithm, algorithm_name, paid, redrawn, row_of
from targetcharge.mechanisms.counts import noisy_count
from targetcharge.mechanisms.noise import CountNoise, rate_for
from targetcharge.mechanisms.ranges import ITSELF, NoisyOracle, Ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from targetcharge.mechanisms.noise import NoiseOf
    from targetcharge.randomness import Entropy

    Paid = Callable[["PaidNoise"], Algorithm]

__all__ = ["PaidNoise", "always_count", "histogram", "mean", "paid"]


@final
@dataclass(frozen=True)
class PaidNoise:
    """What a session lets a computation draw whose every outcome is paid for, at the price of one hit.

    Attributes:
        rates: what one hit pays for.
        session: the session's own noise for counts that no unit lowers, if it has one.
    """

    rates: PaidRates
    session: NoiseOf | None = None

    def least(self, moved: int, squared: int) -> tuple[CountNoise, Everything]:
        """Return the noise with the least variance for a vector of numbers, and what is paid for it.

        Args:
            moved: how far a unit moves all numbers together at most, in steps.
            squared: the sum of the squares of that.
        """
        laplace = CountNoise("laplace", rate_for(self.rates.pure, moved))
        rate = self.rates.gaussian(squared)
        gaussian = laplace if rate is None else CountNoise("gaussian", rate)
        if rate is None or laplace.standard_deviation <= gaussian.standard_deviation:
            return laplace, Everything(Pure(self.rates.pure))
        return gaussian, Everything(Gaussian(squared, Fraction(rate.denominator, rate.numerator) ** 2))


def always_count(
    count: Callable[[Any], int],
    epsilon: float,
    *,
    sensitivity: int = 1,
    monotone: bool = False,
    name: str | None = None,
) -> Algorithm:
    """Return `noisy_count`, which in a session gets its noise or fresh noise, whichever is less.

    Its arguments are those of `noisy_count`.
    """
    natural = noisy_count(count, epsilon, sensitivity=sensitivity, monotone=monotone, name=name)

    def drawn(noise: PaidNoise) -> Algorithm:
        fresh, target = noise.least(sensitivity, sensitivity**2)
        if noise.session is not None and monotone:
            carried = noise.session(sensitivity)
            if carried.standard_deviation <= fresh.standard_deviation:
                return replace(redrawn(natural, noise.session), default_target=NotPrior(None))
        return replace(
            natural,
            run=lambda data, entropy: operator.index(count(data)) + fresh.draw(entropy),
            oracle=NoisyOracle(count, fresh.law, Ranges((), (ITSELF,))),
            accuracy=Accuracy.of(fresh, exactly),
            targets=(target,),
            default_target=target,
        )

    return replace(natural, default_target=Everything(), paid=drawn)


def histogram(
    counts: Callable[[Any], Iterable[int]],
    epsilon: float,
    keys: int,
    *,
    per_unit: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes all counts of a computation, noisy: a tuple of integers.

    Args:
        counts: a function of the data: one integer for each key.
        epsilon: ε of one run.
        keys: how many there are.
        per_unit: how many of the counts a unit changes at most, by 1 each.
        name: what the transcript calls it.
    """
    checks.function_of_data(counts, "counts")
    keys, per_unit = checks.positive_integer(keys, "keys"), checks.positive_integer(per_unit, "per_unit")
    named, moved = algorithm_name(name, "histogram", counts), min(per_unit, keys)

    def drawn(noise: PaidNoise) -> Algorithm:
        fresh, target = noise.least(moved, moved)

        def run(data: object, entropy: Entropy) -> object:
            true = row_of(counts(data), keys)
            return tuple(map(operator.add, map(operator.index, true), fresh.draws(entropy, keys)))

        return _always(named, epsilon, run, target, Accuracy.of(fresh, exactly))

    return _on_its_own(drawn, epsilon)


def mean(
    totals: Callable[[Any], tuple[int, int]],
    epsilon: float,
    lower: int,
    upper: int,
    step: Fraction = Fraction(1),
    *,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes the mean of one number for each unit.

    Two sums get noise: of what lies between lower bound and values, and of what lies between values
    and upper bound. A unit adds upper - lower to both together, whatever its value. The mean is the share of the
    first: with t the true share, and noise e₁ and e₂, (1-t)·noisy₁ - t·noisy₂ = (1-t)·e₁ - t·e₂, which is at most
    as far from 0 as one noise alone, with any probability (Proschan 1965: the noises are alike, symmetric and
    log-concave), but for less than a step, as they are discrete. So t is within
    (noisy₁ ± margin)/(noisy₁ + noisy₂), with the margin of one noise and a step.

    Args:
        totals: a function of the data: the sum of value - lower over all units, and how many there are.
        epsilon: ε of one run.
        lower: the least value, in steps.
        upper: the largest, in steps, above the least.
        step: what one step is worth.
        name: what the transcript calls it.
    """
    checks.function_of_data(totals, "totals")
    named, width = algorithm_name(name, "mean", totals), upper - lower

    def value(share: Fraction) -> float:
        return float((lower + width * min(max(share, Fraction(0)), Fraction(1))) * step)

    def drawn(noise: PaidNoise) -> Algorithm:
        fresh, target = noise.least(width, width**2)
        margin = max(fresh.margins) + 1

        def run(data: object, entropy: Entropy) -> object:
            above, units = totals(data)
            noisy = operator.index(above) + fresh.draw(entropy)
            whole = noisy + (width * operator.index(units) - operator.index(above)) + fresh.draw(entropy)
            if whole <= 0:
                return value(Fraction(1, 2)), value(Fraction(0)), value(Fraction(1))
            return tuple(value(Fraction(shifted, whole)) for shifted in (noisy, noisy - margin, noisy + margin))

        algorithm = _always(named, epsilon, run, target, None)
        return replace(
            algorithm, publish=_first, interval=lambda outcome: outcome[1:], margin=float(margin * step)
        )

    return _on_its_own(drawn, epsilon)


def _first(outcome: tuple[object, ...], *, hit: bool) -> object:  # noqa: ARG001 - it always hits
    return outcome[0]


def _always(
    name: str,
    epsilon: float,
    run: Callable[[object, Entropy], object],
    target: Everything,
    accuracy: Accuracy | None,
) -> Algorithm:
    """Return an algorithm whose every outcome is paid for."""
    return Algorithm(name, float(epsilon), 0.0, run, targets=(target,), default_target=target, accuracy=accuracy)


def _on_its_own(drawn: Paid, epsilon: float) -> Algorithm:
    """Return what a session draws in its own way, as ε-DP as it is, with any target."""
    alone = drawn(PaidNoise(PaidRates(epsilon, epsilon)))
    return replace(alone, targets=ANY_PRIOR, default_target=Everything(), paid=drawn)
