"""Numbers: counts on two neighbouring datasets, drawn with the noise and the secret offset of a session.

In place of the offset that it drew, a session gets all values of its offset at once: `Offsets`. A run then has a
probability for each of them, and their sum at its end has the offset integrated out.

>>> from targetcharge.accounting import OffsetNoise
>>> carried = OffsetNoise(2.0, 2.0)
>>> offsets = Offsets.of(carried)
>>> len(offsets.values), round(float(offsets.masses.sum()), 12)
(71, 1.0)
>>> law = law_of(at_least(1, told=2), (0, 1), CountNoise.carried(carried, sensitivity=1), offsets)
>>> {outcome: [round(float(offsets.masses @ side), 3) for side in chances] for outcome, chances in law.items()}
{None: [0.822, 0.36], 1: [0.142, 0.462], 2: [0.036, 0.178]}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.ledger import MemoryLedger
from targetcharge.mechanisms.noise import CountNoise, centre, rate_for
from targetcharge.outcomes import UNCHANGED, Side

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.accounting import OffsetNoise
    from targetcharge.accounting.targets import Between, Target
    from targetcharge.audit.exact.pairs import Chance, Law
    from targetcharge.randomness import Rate
    from targetcharge.randomness.laws import Noise
    from targetcharge.sessions import Session

_REACH: Final = 35
"""Of offsets, in multiples of 1/rate: beyond lies less than 1e-15, which the outermost values have."""

_LARGEST_EXPONENT: Final = 700.0


# The offset.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Offsets:
    """All values of the secret offset of a session.

    Attributes:
        values: in steps of its lattice, as sessions hold them.
        masses: how likely each is.
    """

    values: NDArray[np.int64]
    masses: NDArray[np.float64]

    @staticmethod
    @lru_cache(maxsize=32)
    def of(offset: OffsetNoise) -> Offsets:
        """Return the offsets of a session with these laws and rates."""
        noise: Noise = "geometric" if offset.offset_noise == "geometric" else "laplace"
        rate = rate_for(offset.offset_epsilon, offset.lattice)
        most = math.ceil(_REACH * rate.denominator / rate.numerator)
        values = np.arange(0 if noise == "geometric" else -most, most + 1)
        lows, highs = values.astype(np.float64), values.astype(np.float64)
        lows[0], highs[-1] = -math.inf, math.inf
        return Offsets(values - centre(noise, rate), _within(noise, rate, lows, highs))


def hand_over(session: Session) -> Offsets | None:
    """Give a session all offsets in place of the one that it drew, and return them; None if it has none."""
    offset, ledger = session.meters[0].tariff.offset, session._ledger  # noqa: SLF001 - what nobody else may see
    if offset is None:
        return None
    if not isinstance(ledger, MemoryLedger):
        raise InvalidParameter("opened", ledger, "one that opens sessions in memory: files keep one offset")
    offsets = Offsets.of(offset)
    ledger._offset = offsets  # type: ignore[assignment]  # noqa: SLF001 - one integer, as a rule
    return offsets


# What is asked about a count.


@final
@dataclass(frozen=True)
class Published:
    """What is published of a noisy count.

    Attributes:
        cells: each outcome, and the least and the largest whole step that it stands for.
        target: the one that it is asked with unless another is named; None if it has none.
        sensitivity: the most that a unit adds to the count.
        at_least: whether it publishes the count from some value on, and nothing below.
        always: whether it publishes the count whatever it is.
    """

    cells: tuple[tuple[object, float, float], ...]
    target: Target | None = None
    sensitivity: int = 1
    at_least: bool = False
    always: bool = False


def at_least(threshold: int, told: int = 2, sensitivity: int = 1) -> Published:
    """Return a question that publishes a count from a threshold on; the last of so many values stands for more."""
    cells = ((None, -math.inf, threshold - 1), *_upwards(threshold, told))
    return Published(cells, NotPrior(None), sensitivity, at_least=True)


def side(threshold: int, sensitivity: int = 1) -> Published:
    """Return a question that publishes whether a count is BELOW a threshold, or at least it: ABOVE."""
    cells = (Side.BELOW, -math.inf, threshold - 1), (Side.ABOVE, threshold, math.inf)
    return Published(cells, NotPrior(Side.BELOW), sensitivity)


def between(band: Between) -> Published:
    """Return a question that publishes on which side of a band a count lies."""
    low, high = math.ceil(band.low), math.floor(band.high)
    cells = (Side.BELOW, -math.inf, low - 1), (Side.BETWEEN, low, high), (Side.ABOVE, high + 1, math.inf)
    return Published(cells, band, band.sensitivity)


def changed(prior: int, tolerance: int, told: int = 1, sensitivity: int = 1) -> Published:
    """Return a question that publishes a count unless it is within a tolerance of a prior."""
    low, high = prior - tolerance, prior + tolerance
    below = ((-value, -last, -first) for value, first, last in _upwards(1 - low, told))
    cells = ((UNCHANGED, low, high), *_upwards(high + 1, told), *below)
    return Published(cells, NotPrior(UNCHANGED), sensitivity)


def always(least: int, most: int, sensitivity: int = 1) -> Published:
    """Return a question that publishes a count; all up to `least` are one outcome, and all from `most` on."""
    cells = ((least, -math.inf, least), *_upwards(least + 1, most - least))
    return Published(cells, None, sensitivity, at_least=True, always=True)


def _upwards(first: int, told: int) -> list[tuple[int, float, float]]:
    """Return the cells of so many values, the last one for all from there on."""
    values = range(first, first + told)
    return [(value, value, math.inf if value == values[-1] else value) for value in values]


# Laws, from their definitions.


@lru_cache(maxsize=256)
def law_of(
    published: Published, counts: tuple[int, int], noise: CountNoise, offset: Offsets | int | None = None
) -> Law:
    """Return the probabilities of each outcome on two datasets with these counts; for each offset, if several.

    A count f is published as ⌊(L·f - w·ρ + ν)/L⌋: ν is centred noise, L the lattice, w the weight of the offset ρ.
    """
    values = np.asarray(offset.values if isinstance(offset, Offsets) else offset or 0, np.float64)
    moved, lattice = noise.weight * values + centre(noise.noise, noise.rate), noise.lattice

    def chance(count: int, low: float, high: float) -> Chance:
        first, last = lattice * (low - count), lattice * (high - count + 1) - 1
        chances = _within(noise.noise, noise.rate, first + moved, last + moved)
        return chances if isinstance(offset, Offsets) else float(chances)

    return {
        outcome: (chance(counts[0], low, high), chance(counts[1], low, high))
        for outcome, low, high in published.cells
    }


def _within(noise: Noise, rate: Rate, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pr[low ≤ X ≤ high] for noise X, as precise where it is small."""
    upper = _from(noise, rate, low) - _from(noise, rate, high + 1)
    return np.where(low > 0, upper, _up_to(noise, rate, high) - _up_to(noise, rate, low - 1))


def _from(noise: Noise, rate: Rate, least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pr[X ≥ least]."""
    decay = rate.numerator / rate.denominator
    if noise == "geometric":
        return np.exp(-decay * np.maximum(least, 0))
    if noise == "gumbel":
        return -np.expm1(-np.exp(np.minimum(-decay * (least - 1), _LARGEST_EXPONENT)))
    near = np.where(least > 0, least, 1 - least)  # the smaller tail: that from there on, or its mirror image
    tail = np.exp(-decay * near) / (1 + math.exp(-decay))
    return np.where(least > 0, tail, 1 - tail)


def _up_to(noise: Noise, rate: Rate, most: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pr[X ≤ most]."""
    decay = rate.numerator / rate.denominator
    if noise == "geometric":
        return -np.expm1(-decay * np.maximum(most + 1, 0))
    if noise == "gumbel":
        return np.exp(-np.exp(np.minimum(-decay * most, _LARGEST_EXPONENT)))
    return _from(noise, rate, -most)
