"""Picks: choices by the exponential mechanism that are always paid for; several of one computation, one hit each.

A pick with probability proportional to e^{rate·score} has bounded range rate·w, if no unit changes the score of
one outcome by more than w more than that of another. One hit pays for a range, and a pick gets all of it.

>>> from targetcharge.accounting.exchange import exact_rates
>>> from targetcharge.randomness import SystemEntropy
>>> from targetcharge.mechanisms.paid import PaidNoise
>>> best = peeled(lambda data: [len(data), 0, 500], 2, 0.1, keys=("all", "none", "some"), width=1)
>>> best.parts(PaidNoise(exact_rates(0.1))).draw(range(1000), SystemEntropy())
[('all', None), ('some', None)]
>>> ages = lambda data: (np.array([30, 40, 90]), np.array([300, 500, 300]))
>>> middle = quantiles(ages, [Fraction(1, 2)], 0.1, cells=100)
>>> middle.parts(PaidNoise(exact_rates(0.1))).draw(None, SystemEntropy())
[(None, 40)]
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.curves import BoundedRange
from targetcharge.accounting.targets import Everything
from targetcharge.mechanisms.accuracy import Accuracy, exactly
from targetcharge.mechanisms.algorithm import algorithm_name, row_of
from targetcharge.mechanisms.gauge import COUNTED
from targetcharge.numerics.rounding import down
from targetcharge.randomness import Rate, exponential_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from targetcharge.mechanisms.gauge import Gauge
    from targetcharge.mechanisms.paid import PaidNoise
    from targetcharge.randomness import Entropy

    Distribution = tuple[NDArray[np.int64], NDArray[np.int64]]
    """Cells that occur, ascending, and how many units have each."""

_UNLIKELY: Final = 20.0
"""One over the probability with which a pick may be further off than its margin."""

_FARTHEST: Final = 2**62
"""Scores that are further below the best one count as so far: that moves no score by more than it moved."""


@final
@dataclass(frozen=True)
class Parts:
    """What a session draws of several outcomes.

    Attributes:
        paid: what each of them costs, all together.
        draw: a function of the data and of entropy: the key and the outcome of each.
        accuracy: what an outcome says about the true value, if that can be told.
        margin: by how much the score of a pick is less than the best one at most, with a probability of 95%.
    """

    paid: tuple[Everything, ...]
    draw: Callable[[object, Entropy], list[tuple[object, object]]]
    accuracy: Accuracy | None = None
    margin: float = 0.0


@final
@dataclass(frozen=True)
class Several:
    """Outcomes of one computation that are published whatever they are, and paid for one by one.

    Attributes:
        name: what the transcript calls them.
        epsilon: each costs what a test with this ε costs.
        count: how many there are.
        parts: from what a session lets an always-paid computation be to how it draws them.
        question: what they answer, as canonical JSON, if they are about a table.
    """

    name: str
    epsilon: float
    count: int
    parts: Callable[[PaidNoise], Parts]
    question: str = ""


def peeled(
    counts: Callable[[Any], Iterable[int]],
    k: int,
    epsilon: float,
    keys: Sequence[object],
    *,
    width: int,
    sensitivity: int = 1,
    values: bool = False,
    gauge: Gauge = COUNTED,
    name: str | None = None,
    question: str = "",
) -> Several:
    """Return k picks among keys, one after another: each by the exponential mechanism among those that are left.

    Args:
        counts: a function of the data: one integer for each key.
        k: how many to pick.
        epsilon: each pick costs what a test with this ε costs.
        keys: what is published of the picks.
        sensitivity: the most a unit changes a count, either way.
        width: how much more it changes one than another at most; the sensitivity where it lowers none.
        values: whether each is followed by its noisy count, for one more hit.
        gauge: how steps are shown.
        name: what the transcript calls them.
        question: what was asked, as the ledger keeps it.
    """
    checks.function_of_data(counts, "counts")
    k = checks.integer(k, "k", 1, len(keys), "the number of keys")

    def parts(noise: PaidNoise) -> Parts:
        rate = _rate(noise, width)
        fresh, target = noise.least(sensitivity, sensitivity**2)

        def draw(data: object, entropy: Entropy) -> list[tuple[object, object]]:
            true = [operator.index(count) for count in row_of(counts(data), len(keys))]
            best, drawn = max(true), list[tuple[object, object]]()
            gaps, places = np.array([min(best - count, _FARTHEST) for count in true]), np.arange(len(keys))
            for _ in range(k):
                pick = exponential_choice(entropy, gaps - gaps.min(), rate)
                place = int(places[pick])
                noisy = gauge.value(true[place] + fresh.draw(entropy)) if values else None
                drawn.append((keys[place], noisy))
                gaps, places = np.delete(gaps, pick), np.delete(places, pick)
            return drawn

        pick = Everything(BoundedRange(noise.rates.bounded_range))
        margin = float(math.log(_UNLIKELY * len(keys)) / rate * gauge.value(1))
        if not values:
            return Parts((pick,), draw, margin=margin)
        return Parts((pick, target), draw, Accuracy.of(fresh, exactly).through(gauge), margin)

    return Several(algorithm_name(name, "peeled", counts), float(epsilon), k, parts, question)


def quantiles(
    distribution: Callable[[Any], Distribution],
    shares: Sequence[Fraction],
    epsilon: float,
    cells: int,
    value: Callable[[int], float] = int,
    *,
    name: str | None = None,
    question: str = "",
) -> Several:
    """Return the cells where shares of all units lie: for each a pick by how many ranks a cell is away.

    With n units, a of them below a cell and b in it or below, the cell is max(0, a - qn, qn - b) ranks away
    from the share q. A unit adds 1-q to the first distance at cells above it and takes q off elsewhere, and the
    other way round at the second one: at most 2·max(q, 1-q) more at one cell than at another.

    Args:
        distribution: a function of the data: which cells units are in, and how many.
        shares: q of each; above 0 and below 1.
        epsilon: each pick costs what a test with this ε costs.
        cells: they are numbered from 0 to one less.
        value: what a cell is worth.
        name: what the transcript calls them.
        question: what was asked, as the ledger keeps it.
    """
    checks.function_of_data(distribution, "distribution")

    def parts(noise: PaidNoise) -> Parts:
        def draw(data: object, entropy: Entropy) -> list[tuple[object, object]]:
            occupied, units = distribution(data)
            below = np.zeros(cells + 1, dtype=np.int64)
            below[occupied + 1] = units
            below = np.cumsum(below)
            drawn = list[tuple[object, object]]()
            for share in shares:
                gaps = _ranks_away(below, share)
                cell = exponential_choice(entropy, gaps, _rate(noise, _most_ranks(share)) / share.denominator)
                drawn.append((float(share) if len(shares) > 1 else None, value(cell)))
            return drawn

        margin = max(math.log(_UNLIKELY * cells) / _rate(noise, _most_ranks(share)) for share in shares)
        return Parts((Everything(BoundedRange(noise.rates.bounded_range)),), draw, margin=float(margin))

    named = algorithm_name(name, "quantiles", distribution)
    return Several(named, float(epsilon), len(shares), parts, question)


def _ranks_away(below: NDArray[np.int64], share: Fraction) -> NDArray[np.int64]:
    """Return how many ranks each cell is away from a share of all units, times the share's denominator.

    One cell is none away: that where the number of units up to it first reaches the share.
    """
    wanted = share.numerator * int(below[-1])
    counted = below * share.denominator
    return np.maximum(np.maximum(counted[:-1] - wanted, wanted - counted[1:]), 0)


def _most_ranks(share: Fraction) -> Fraction:
    """Return how many ranks more a unit moves one cell away than another."""
    return 2 * max(share, 1 - share)


def _rate(noise: PaidNoise, width: int | Fraction) -> Fraction:
    """Return the rate of a pick, where a unit changes one score by at most so much more than another."""
    most = Rate.at_most(down(noise.rates.bounded_range))
    return Fraction(most.numerator, most.denominator) / width
