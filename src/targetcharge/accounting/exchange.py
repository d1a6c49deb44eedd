"""Exchange rates: how many hits of an exact meter pay for a computation whose every outcome is paid for.

The game of private tests at query ε, with values V_s, lets an adversary do with n hits whatever a computation does
that costs n hits (docs/theory/exchange.md). A pair of laws with two log-ratios is covered by n hits if and only if
its hockey stick lies below V_n at the nodes e^{mε} of the lattice. So one hit pays for ε-DP at about 4ε/3 and for
twice that range; more hits for more. One hit pays for Gaussian noise that a unit moves by about 1.35ε standard
deviations, and n hits for n times the square of that.

>>> round(largest_pure(0.1) / 0.1, 4), round(largest_range(0.1) / 0.1, 4), round(largest_shift(0.1) / 0.1, 3)
(1.3331, 2.6662, 1.353)
>>> [hits_of(Pure(0.1 * times), 0.1, most=9) for times in (1.3, 1.8, 2.2, 2.6, 3.5, 4)]
[1, 2, 3, 4, 8, None]
>>> hits_of(BoundedRange(0.26), 0.1, most=9), hits_of(Concentrated(0.001), 0.1, most=9)
(1, None)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np
from scipy.special import ndtr

from targetcharge import checks
from targetcharge.accounting.curves import MIN_RHO, BoundedRange, Concentrated, Pure
from targetcharge.accounting.exact.levels import LEAST_REACH, sweep_not_prior
from targetcharge.accounting.targets import NOT_PRIOR
from targetcharge.numerics.rounding import down
from targetcharge.numerics.search import largest_real
from targetcharge.randomness import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.accounting.curves import Curve
    from targetcharge.accounting.targets import Kind

    Array = NDArray[np.float64]

MOST_HITS: Final = 1_000
"""Of one computation: more are not looked for."""

SPREAD: Final = Fraction(5, 2)
"""What is added to the variance of discrete Gaussian noise: then it is continuous noise, and a random rounding.

Rounding at random by a discrete Gaussian of this variance makes of continuous Gaussian noise the discrete one, for
any whole shifts at once, but for a factor of 1 ± 4e^{-2π²·SPREAD} = 1 ± 2e-21 in each law
(docs/theory/exchange.md#gaussian).
"""

_SLACK: Final = 1e-9
"""More than what values of a few sweeps, relatively, are off by: by so much less a computation must be covered."""

_GAUSSIAN_SLACK: Final = 1e-6
"""The same where Gaussian noise is covered."""

_FARTHEST_NODE: Final = 64
"""Beyond it a Gaussian hockey stick is nothing, also beside y^m, which falls at most by half from node to node."""


@final
@dataclass(frozen=True)
class PaidRates:
    """What a session lets a computation be, at the price of one hit, if its every outcome is paid for.

    Attributes:
        pure: the largest ε.
        bounded_range: the largest range.
        shift: how many standard deviations of Gaussian noise a unit may move numbers; None if that has no price.
        spread: what is added to the variance of discrete noise.
    """

    pure: float
    bounded_range: float
    shift: float | None = None
    spread: Fraction = Fraction(0)

    def gaussian(self, shift_squared: int) -> Rate | None:
        """Return 1/σ of the discrete Gaussian noise that hides a shift of this squared length, rounded down.

        None where Gaussian noise has no price, or would be wider than can be drawn.
        """
        if self.shift is None:
            return None
        rate = down(1 / math.sqrt(shift_squared / self.shift**2 + float(self.spread)))
        if rate < checks.MIN_QUERY_EPSILON or shift_squared * rate**2 / 2 < 2 * MIN_RHO:
            return None
        return Rate.at_most(rate)


def exact_rates(query_epsilon: float, kind: Kind = NOT_PRIOR) -> PaidRates:
    """Return what one hit of an exact meter at this query ε pays for.

    Args:
        query_epsilon: of the meter.
        kind: of the targets that its session may ask: where private tests are not among them, ε-DP is all.
    """
    if not kind.not_prior:
        return PaidRates(query_epsilon, query_epsilon)
    shift = largest_shift(query_epsilon) if kind == NOT_PRIOR else None
    most = checks.MAX_QUERY_EPSILON
    pure, bounded = min(largest_pure(query_epsilon), most), min(largest_range(query_epsilon), most)
    return PaidRates(pure, bounded, shift, SPREAD)


def largest_pure(query_epsilon: float) -> float:
    """Return the largest s such that one hit pays for s-DP: ε + ln((2e^ε + 1)/(e^ε + 2)), rounded down."""
    rise = math.expm1(query_epsilon)
    return down(query_epsilon + math.log1p(rise / (rise + 3)))


def largest_range(query_epsilon: float) -> float:
    """Return the largest range that one hit pays for: twice the largest ε."""
    return 2 * largest_pure(query_epsilon)


@lru_cache(maxsize=1024)
def largest_shift(query_epsilon: float) -> float:
    """Return the largest μ such that one hit pays for Gaussian noise of 1/μ times what a unit moves numbers by."""
    return largest_real(lambda shift: _covers_gaussian(query_epsilon, shift), 0.0, 2 * query_epsilon, 1e-7)


@lru_cache(maxsize=4096)
def hits_of(curve: Curve, query_epsilon: float, most: int, kind: Kind = NOT_PRIOR) -> int | None:
    """Return how many hits of an exact meter pay for a computation whose every outcome is paid for.

    None if `most` do not.

    Args:
        curve: what one run of it may tell.
        query_epsilon: of the meter.
        most: how many hits are looked at.
        kind: of the targets that its session may ask.
    """
    most, rates = min(most, MOST_HITS), exact_rates(query_epsilon, kind)
    if isinstance(curve, Pure | BoundedRange):
        if curve.epsilon <= (rates.pure if isinstance(curve, Pure) else rates.bounded_range):
            return 1
        return _hits_of_pairs(curve, query_epsilon, most) if kind.not_prior else None
    if isinstance(curve, Concentrated) or rates.shift is None or curve.variance <= SPREAD:
        return None
    shifts = curve.shift_squared / (curve.variance - SPREAD) / Fraction(rates.shift) ** 2
    hits = max(1, math.ceil(shifts * (1 - Fraction(1, 10**12))))
    return hits if hits <= most else None


def _hits_of_pairs(curve: Pure | BoundedRange, query_epsilon: float, most: int) -> int | None:
    """Return the fewest hits n whose V_n is above the hockey sticks of all pairs of a curve, at all nodes.

    At node 0 alone that takes few cells: so many hits are needed at least, and then nodes are not many more.
    """
    stick = float(hockey_sticks(curve, np.zeros(1))[0])
    if all(stick > (1 - _SLACK) * values[0] for values in values_at_nodes(query_epsilon, 0, most)):
        return None
    nodes = math.ceil(curve.epsilon / query_epsilon)
    sticks = hockey_sticks(curve, query_epsilon * np.arange(-nodes, nodes + 1.0))
    for hits, values in enumerate(values_at_nodes(query_epsilon, nodes, most), 1):
        if (sticks <= (1 - _SLACK) * values).all():
            return hits
    return None


def hockey_sticks(curve: Pure | BoundedRange, losses: Array) -> Array:
    """Return the largest of max(0, P - e^t·Q) less (1 - e^t)⁺ over a curve's pairs, at t = each loss.

    Randomised response has x - (1-x)e^t, x = e^s/(1 + e^s); of a range s the largest line is
    (e^{s/2} - e^{t/2})²/(e^s - 1), as long as |t| ≤ s. Both are mirrored: what is returned is symmetric up to e^t,
    and so computed at |t|.
    """
    length, distance = curve.epsilon, np.minimum(np.abs(losses), curve.epsilon)
    if isinstance(curve, Pure):
        line = -np.expm1(distance - length) / (1 + math.exp(-length))
    else:
        line = np.exp(distance) * np.expm1((length - distance) / 2) ** 2 / math.expm1(length)
    return np.asarray(line * np.exp(np.minimum(losses, 0.0)))


def values_at_nodes(query_epsilon: float, nodes: int, hits: int) -> Iterator[Array]:
    """Yield V_1, V_2, … of private tests at losses -mε for m = -nodes, …, nodes, less the payoff (1 - e^{mε})⁺.

    The lattice is as wide as the adversary's best strategy reaches, so nothing is cut off.
    """
    up, down_ = 1 / (1 + math.exp(-query_epsilon)), 1 / (1 + math.exp(query_epsilon))
    middle = nodes + hits + LEAST_REACH
    losses = np.arange(-middle, middle + 1 + LEAST_REACH) * query_epsilon
    payoff = -np.expm1(-np.maximum(losses, 0.0))
    top, values = payoff[-LEAST_REACH:], payoff[:-LEAST_REACH]
    inside = slice(middle - nodes, middle + nodes + 1)
    for _ in range(hits):
        values = sweep_not_prior(values, top, middle, up, down_)
        yield (values[inside] - payoff[inside])[::-1]


def _covers_gaussian(query_epsilon: float, shift: float) -> bool:
    """Return whether one hit pays for Gaussian noise, by three conditions on its hockey stick at the nodes.

    In units of e^{t/2}·tanh(ε/2) let g be the stick less (1 - e^t)⁺, and y = √(x(1-x)). One hit pays for it if
    g_m ≤ y^|m|/(1-y²) at all m, the sum over all m is at most 1/(1-y), and that over all m ≥ j, for every j ≥ 1,
    at most y^j/(1-y): the levels of the game bend symmetrically, and the less the farther from node 0.
    """
    up = 1 / (1 + math.exp(-query_epsilon))
    root = math.sqrt(up * (1 - up))  # y
    nodes = np.arange(_FARTHEST_NODE + 1.0)
    sticks = _gaussian_sticks(shift, query_epsilon * nodes) / math.tanh(query_epsilon / 2) * (1 + _GAUSSIAN_SLACK)
    shares = sticks * np.exp(-nodes * (query_epsilon / 2 + math.log(root)))  # g_m/y^m
    if shares[-1] > min(shares[-2], 1e-9):
        return False
    powers = root**nodes
    tails = (shares * powers)[::-1].cumsum()[::-1] + shares[-1] * powers[-1] / (1 - root)
    in_all = 2 * tails[0] - shares[0]
    return bool(
        (shares <= 1 / (1 - root**2)).all()
        and in_all <= 1 / (1 - root)
        and (tails[1:] <= powers[1:] / (1 - root)).all()
    )


def _gaussian_sticks(shift: float, losses: Array) -> Array:
    """Return Φ(μ/2 - t/μ) - e^t·Φ(-μ/2 - t/μ) at t = each loss, from above: the hockey stick for t ≥ 0."""
    first, second = ndtr(shift / 2 - losses / shift), ndtr(-shift / 2 - losses / shift)
    weighed = np.exp(losses) * second
    return np.maximum(first - weighed, 0.0) + 1e-14 * (first + weighed)
