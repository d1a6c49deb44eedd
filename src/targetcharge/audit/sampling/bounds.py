"""What samples prove: a lower bound on ε that is true with a stated confidence.

From n runs on each of two inputs an event was seen a and b times. There are two bounds, and which one is taken is
decided before the counted runs are looked at.

Intervals, the better one for events that happen often: with probability at least 1 - α both chances lie in their
Clopper-Pearson intervals, and then any (ε, δ) that is true satisfies e^ε ≥ (p₀ - δ)/p₁.

Tilting, the better one for events that are rare on the other input: if p₀ ≤ e^ε·p₁ + δ then for all s, t ≥ 0 with
e^ε·(e^s - 1) = 1 - e^-t the mean of exp(s·a - t·b) is at most exp(n·δ·(e^s - 1)), since 1 + x ≤ e^x. By Markov's
inequality s·a - t·b exceeds n·δ·(e^s - 1) + ln(1/α) with probability at most α. For b = 0, δ = 0 and t → ∞ this is
the exact test (e^ε/(1 + e^ε))^a ≤ α.

>>> round(epsilon_at_least(Counts(900, 1000), Counts(100, 1000), delta=0.0, alpha=0.05), 3)
1.99
>>> rare = Counts(40, 10_000), Counts(0, 10_000)
>>> [round(epsilon_at_least(*rare, delta=0.0, alpha=0.00025, tilt=tilt), 2) for tilt in (None, 6.0)]
[0.84, 1.47]
>>> runs_needed(epsilon=1.0, delta=0.0, alpha=0.001)
25
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
from scipy.special import betaincc, betainccinv, betaincinv

from targetcharge.errors import InvalidParameter
from targetcharge.numerics.search import largest_integer, smallest_real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Seen = NDArray[np.integer | np.floating]
    """How often events are seen, or are expected to be."""

MOST_RUNS: Final = 10**12
"""More runs than anybody will wait for."""

_TAIL: Final = 0.05
"""How unlucky the counts may be, on each input, when the power is stated: together 90%."""

_MOST_EXCESS: Final = 40
"""Above the claim: no larger ε is looked for."""

_STEEPEST: Final = 30.0
"""A tilt that is as good as infinite: what never happens on the other input."""


@final
@dataclass(frozen=True)
class Counts:
    """How often an event was seen, or each of many events.

    Attributes:
        seen: runs in which it happened; an array for many events.
        runs: all runs.
    """

    seen: int | Seen
    runs: int

    def at_least(self, alpha: float) -> NDArray[np.float64]:
        """Return a lower bound on its probability that fails with probability at most α (Clopper, Pearson)."""
        seen = np.asarray(self.seen)
        return np.where(seen > 0, betaincinv(np.maximum(seen, 1), self.runs - seen + 1, alpha), 0.0)[()]

    def at_most(self, alpha: float) -> NDArray[np.float64]:
        """Return an upper bound on its probability that fails with probability at most α."""
        seen = np.asarray(self.seen)
        return np.where(seen < self.runs, betainccinv(seen + 1, np.maximum(self.runs - seen, 1), alpha), 1.0)[()]


def by_intervals(likely: Counts, rare: Counts, delta: float, alpha: float) -> NDArray[np.float64]:
    """Return a lower bound on ε at δ, by intervals, that fails with probability at most α; -inf says nothing."""
    above = likely.at_least(alpha / 2) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above > 0, np.log(above / rare.at_most(alpha / 2)), -np.inf)


def by_tilting(
    likely: Counts, rare: Counts, delta: float, alpha: float, tilt: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a lower bound on ε at δ, by tilting, that fails with probability at most α; -inf says nothing.

    The rejected ε are those up to the bound. For this e^s - 1 beside δ is replaced by the chord above it, from 0
    to the largest s there is, that of ε = 0: then the left side of the test grows with s, so that no ε below a
    rejected one is kept.
    """
    gain = -np.expm1(-tilt)
    most = rare.runs / likely.runs * gain  # e^s - 1 at ε = 0
    above = likely.seen - delta * likely.runs * most / np.log1p(most)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = (tilt * rare.seen - math.log(alpha)) / above
        return np.where(above > 0, np.log(most / np.expm1(slope)), -np.inf)


def epsilon_at_least(likely: Counts, rare: Counts, delta: float, alpha: float, tilt: float | None = None) -> float:
    """Return a lower bound on ε at δ that fails with probability at most α; 0 if nothing is shown.

    Args:
        likely: the event on the input where it should be likelier.
        rare: the event on the other input.
        delta: the δ of the claim.
        alpha: shared by the two intervals.
        tilt: the t above, chosen without these counts; None for intervals.
    """
    if tilt is None:
        return max(0.0, float(by_intervals(likely, rare, delta, alpha)))
    return max(0.0, float(by_tilting(likely, rare, delta, alpha, tilt)))


def delta_at_least(likely: Counts, rare: Counts, epsilon: float, alpha: float, tilt: float | None = None) -> float:
    """Return a lower bound on δ at ε that fails with probability at most α.

    By intervals it is true for every ε at once with probability at least 1 - α, by tilting for each.
    """
    if tilt is None:
        return max(0.0, float(likely.at_least(alpha / 2) - math.exp(epsilon) * rare.at_most(alpha / 2)))
    gain = rare.runs / likely.runs * -math.expm1(-tilt) * math.exp(-epsilon)  # e^s - 1
    evidence = math.log1p(gain) * likely.seen - tilt * rare.seen + math.log(alpha)
    return max(0.0, float(evidence / (likely.runs * gain)))


def fewest_seen(epsilon: float, delta: float, runs: int, alpha: float) -> int:
    """Return how often an event must be seen that never happens on the other input, to show more than ε at δ.

    At δ = 0 it is the first integer above ln(1/α)/ln(1 + e^-ε). One more than the runs if so few show nothing.
    """

    def shows_nothing(seen: int) -> bool:
        likely, rare = Counts(seen, runs), Counts(0, runs)
        return all(epsilon_at_least(likely, rare, delta, alpha, tilt) <= epsilon for tilt in (None, _STEEPEST))

    return largest_integer(shows_nothing, runs) + 1


def rarest(epsilon: float, delta: float, runs: int, alpha: float) -> float:
    """Return the chance from which on an event that is impossible on the other input is seen to break a claim.

    It is seen nine times out of ten, if it is known beforehand and none other is counted in its place. 1 if so few
    runs show nothing.
    """
    fewest = fewest_seen(epsilon, delta, runs, alpha)
    return float(betaincinv(fewest, runs - fewest + 1, 1 - 2 * _TAIL)) if fewest <= runs else 1.0


def runs_needed(epsilon: float, delta: float, alpha: float) -> int:
    """Return the fewest runs on each input that could ever show more than ε at δ.

    The clearest event there can be is seen in every run on one input and in none on the other.

    Raises:
        InvalidParameter: if no number of runs that anybody will wait for could.
    """

    def show_nothing(runs: int) -> bool:
        return epsilon_at_least(Counts(runs, runs), Counts(0, runs), delta, alpha) <= epsilon

    needed = largest_integer(show_nothing, MOST_RUNS) + 1
    if needed > MOST_RUNS:
        raise InvalidParameter("epsilon", epsilon, "small enough that samples can say something about it")
    return needed


def detectable(epsilon: float, delta: float, runs: int, alpha: float) -> float:
    """Return the ε from which on a false claim of ε at δ is seen nine times out of ten, in the best case.

    The best case is an event that tells the inputs apart as randomised response does: it needs the fewest runs.
    Infinity if no event is clear enough for so few runs.
    """

    def is_seen(true: float) -> bool:
        chance = delta + (1 - delta) / (1 + math.exp(-true))
        likely, rare = _quantile(_TAIL, runs, chance), _quantile(1 - _TAIL, runs, 1 - chance)
        return epsilon_at_least(Counts(likely, runs), Counts(rare, runs), delta, alpha) > epsilon

    for step in range(_MOST_EXCESS):
        if is_seen(epsilon + step + 1):
            return smallest_real(is_seen, epsilon + step, epsilon + step + 1)
    return math.inf


def _quantile(q: float, runs: int, chance: float) -> int:
    """Return the fewest successes that a binomial count exceeds with probability at most 1 - q."""
    return largest_integer(lambda seen: bool(betaincc(seen, runs - seen + 1, chance) < q), runs)
