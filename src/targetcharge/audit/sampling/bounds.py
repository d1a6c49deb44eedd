"""What samples prove: a lower bound on ε that is true with a stated confidence.

From n runs on each of two inputs an event was seen a and b times. With probability at least 1 - α both of its
chances lie in their Clopper-Pearson intervals, and then any (ε, δ) that is true satisfies e^ε ≥ (p₀ - δ)/p₁.

>>> round(epsilon_at_least(Counts(900, 1000), Counts(100, 1000), delta=0.0, alpha=0.05), 3)
1.99
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MOST_RUNS: Final = 10**12
"""More runs than anybody will wait for."""

_TAIL: Final = 0.05
"""How unlucky the counts may be, on each input, when the power is stated: together 90%."""

_STEPS: Final = 40


def at_least(seen: NDArray[np.int64], runs: int, alpha: float) -> NDArray[np.float64]:
    """Return lower bounds on probabilities (Clopper, Pearson 1934); each fails with probability at most α."""
    return np.where(seen > 0, betaincinv(np.maximum(seen, 1), runs - seen + 1, alpha), 0.0)


def at_most(seen: NDArray[np.int64], runs: int, alpha: float) -> NDArray[np.float64]:
    """Return upper bounds on probabilities, each of which fails with probability at most α."""
    return np.where(seen < runs, betainccinv(seen + 1, np.maximum(runs - seen, 1), alpha), 1.0)


def log_ratios(
    likely: NDArray[np.int64], rare: NDArray[np.int64], runs: tuple[int, int], delta: float, alpha: float
) -> NDArray[np.float64]:
    """Return for each event a lower bound on ε at δ that fails with probability at most α; -inf says nothing."""
    above = at_least(likely, runs[0], alpha / 2) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above > 0, np.log(above / at_most(rare, runs[1], alpha / 2)), -np.inf)


@final
@dataclass(frozen=True)
class Counts:
    """How often an event was seen.

    Attributes:
        seen: runs in which it happened.
        runs: all runs.
    """

    seen: int
    runs: int

    def at_least(self, alpha: float) -> float:
        """Return a lower bound on its probability that fails with probability at most α."""
        return float(at_least(np.asarray(self.seen), self.runs, alpha))

    def at_most(self, alpha: float) -> float:
        """Return an upper bound on its probability that fails with probability at most α."""
        return float(at_most(np.asarray(self.seen), self.runs, alpha))


def epsilon_at_least(likely: Counts, rare: Counts, delta: float, alpha: float) -> float:
    """Return a lower bound on ε at δ that fails with probability at most α; 0 if nothing is shown.

    Args:
        likely: the event on the input where it should be likelier.
        rare: the event on the other input.
        delta: the δ of the claim.
        alpha: shared by the two intervals.
    """
    seen = np.asarray(likely.seen), np.asarray(rare.seen)
    return max(0.0, float(log_ratios(*seen, (likely.runs, rare.runs), delta, alpha)))


def delta_at_least(likely: Counts, rare: Counts, epsilon: float, alpha: float) -> float:
    """Return a lower bound on δ at ε; true for every ε at once with probability at least 1 - α."""
    return max(0.0, likely.at_least(alpha / 2) - math.exp(epsilon) * rare.at_most(alpha / 2))


def runs_needed(epsilon: float, delta: float, alpha: float) -> int:
    """Return the fewest runs on each input that could ever show more than ε at δ.

    The clearest event there can be is seen in every run on one input and in none on the other.

    Raises:
        InvalidParameter: if no number of runs that anybody will wait for could.
    """

    def says_something(runs: int) -> bool:
        return epsilon_at_least(Counts(runs, runs), Counts(0, runs), delta, alpha) > epsilon

    if not says_something(MOST_RUNS):
        raise InvalidParameter("epsilon", epsilon, "small enough that samples can say something about it")
    return _first(says_something, 1, MOST_RUNS)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first integer at which a property holds, one that stays once it holds."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _quantile(q: float, runs: int, chance: float) -> int:
    """Return the fewest successes that a binomial count exceeds with probability at most 1 - q."""
    return _first(lambda seen: bool(betaincc(seen + 1, runs - seen, chance) >= q), 0, runs)


def detectable(epsilon: float, delta: float, runs: int, alpha: float) -> float:
    """Return the ε from which on a false claim of ε at δ is seen nine times out of ten, in the best case.

    The best case is an event that tells the inputs apart as randomised response does: it needs the fewest runs.
    Infinity if no event is clear enough for so few runs.
    """

    def seen_at(true: float) -> bool:
        chance = delta + (1 - delta) / (1 + math.exp(-true))
        likely = _quantile(_TAIL, runs, chance)
        rare = _quantile(1 - _TAIL, runs, 1 - chance)
        return epsilon_at_least(Counts(likely, runs), Counts(rare, runs), delta, alpha) > epsilon

    low, high = epsilon, epsilon + 1.0
    while not seen_at(high):
        low, high = high, high + 1.0
        if high > epsilon + _STEPS:
            return math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if seen_at(middle) else (middle, high)
    return high
