"""Allowances: what each unit may be charged, where every unit has a meter of its own.

A unit is charged by what it contributes. One that moves a number by c of at most Δ steps, under noise of rate
ε/Δ, sees a computation with ε·c/Δ (docs/theory/tables.md#individual-charging). Counters are arrays of 64-bit
integers or less, so prices and capacity are put on a scale that fits: prices rounded up, the capacity down.

>>> from targetcharge.accounting.budget import Budget
>>> from targetcharge.accounting.meter.tariff import exact_tariff, renyi_tariff
>>> from targetcharge.accounting.targets import NotPrior
>>> exact = Allowance.of(exact_tariff(Budget(3.0, 1e-6), 0.1, NotPrior(None)))
>>> exact.capacity, exact.prices(NotPrior(None), 0.1, 4).of(np.array([1, -4])).tolist()
(7, [1, 1])
>>> renyi = Allowance.of(renyi_tariff(Budget(3.0, 1e-6), 0.1, NotPrior(None)))
>>> low, high = renyi.prices(NotPrior(None), 0.1, 4).of(np.array([1, -4])).tolist()
>>> 16 < high / low  # four times the ε costs sixteen times as much, and more where a hit is dear
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.accounting import prices
from targetcharge.accounting.targets import Between, Everything
from targetcharge.numerics.rounding import grains_up, up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.accounting.meter.tariff import Tariff
    from targetcharge.accounting.targets import Target

_BITS: Final = 40
"""Of the largest capacity: what a million keys could cost a unit can be added up in 64 bits."""

_COUNTERS: Final = (np.uint8, np.uint16, np.uint32)

_LEVELS: Final = 4096
"""Contributions are priced at the next of so many levels, if they have more steps."""


def scale_of(meter: str, capacity: int, typical: int) -> Fraction:
    """Return what one grain is worth on the scale of the units' own meters.

    Args:
        meter: "exact" or "renyi".
        capacity: in grains.
        typical: the grains of a hit of the declared kind: there a power of 2.
    """
    power = _BITS - math.ceil(Fraction(capacity, typical)).bit_length() if meter == "renyi" else 0
    return Fraction(2) ** power / typical


@final
@dataclass(frozen=True)
class Allowance:
    """What each unit may be charged, in whole grains of its own scale.

    Attributes:
        tariff: of the session.
        capacity: the most one unit may ever be charged; at most 2^40.
        scale: what one grain of the tariff is worth in them. A typical hit is a power of 2, so that a unit can pay
            for exactly as many as the tariff grants.
    """

    tariff: Tariff
    capacity: int
    scale: Fraction

    @classmethod
    def of(cls, tariff: Tariff) -> Allowance:
        """Return the allowance that a tariff gives to every unit."""
        scale = scale_of(tariff.name, tariff.capacity, tariff.typical.grains)
        return cls(tariff, math.floor(tariff.capacity * scale), scale)

    @property
    def counter(self) -> type[np.integer]:
        """Return the smallest type that holds the capacity; never uint64, which numpy adds to others as floats."""
        return next((kind for kind in _COUNTERS if self.capacity <= np.iinfo(kind).max), np.int64)

    def scaled(self, grains: int) -> int:
        """Return grains of the tariff on this scale, rounded up; at most the capacity."""
        return min(self.capacity, math.ceil(grains * self.scale))

    def prices(self, target: Target, epsilon: float, sensitivity: int) -> Prices:
        """Return the prices of a hit by what a unit contributes.

        Args:
            target: of the computation.
            epsilon: of the computation, whose noise has rate ε/sensitivity.
            sensitivity: the most steps that a unit contributes.

        Raises:
            NotAllowed: if the tariff has no price for it.
        """
        full = math.ceil(self.tariff.quote(target, epsilon).grains * self.scale)
        return Prices(self, target, epsilon, sensitivity, min(full, self.capacity + 1))


@final
@dataclass(frozen=True, eq=False)
class Prices:
    """What one hit costs a unit, by the steps it contributes.

    Attributes:
        allowance: of each unit.
        target: of the computation.
        epsilon: of the computation.
        sensitivity: the most steps that a unit contributes.
        full: the price of a unit that contributes so many; one more than the capacity if nobody can pay it.
    """

    allowance: Allowance
    target: Target
    epsilon: float
    sensitivity: int
    full: int
    _known: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Know the price of nothing and of everything; the others are found when they are needed."""
        known = np.full(min(_LEVELS, self.sensitivity) + 1, -1, np.int64)
        known[0], known[-1] = 0, self.full
        if self.allowance.tariff.name == "exact":
            known[1:] = self.full
        object.__setattr__(self, "_known", known)

    def of(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the price of each contribution, of either sign."""
        levels = len(self._known) - 1
        level = -(-np.abs(steps) * levels // self.sensitivity) if levels < self.sensitivity else np.abs(steps)
        charged: NDArray[np.int64] = self._known[level]
        if (charged < 0).any():
            for missing in np.unique(level[charged < 0]).tolist():
                self._known[missing] = self._price(missing, levels)
            charged = self._known[level]
        return charged

    def _price(self, level: int, levels: int) -> int:
        """Return the Rényi price at a level: that of a smaller ε, which is never higher than the full one."""
        order, steps = self.allowance.tariff.order, -(-level * self.sensitivity // levels)
        curve = self.target.curve if isinstance(self.target, Everything) else None
        if curve is not None:
            kappa = curve.of_share(Fraction(steps, self.sensitivity)).moment(order)
        elif isinstance(self.target, Between):
            kappa = prices.q_target(order, *self.target.part(self.epsilon, steps))
        else:
            kappa = self.target.kappa(order, min(self.epsilon, up(self.epsilon * steps / self.sensitivity)))
        if kappa == math.inf:
            return self.full
        return min(self.full, math.ceil(grains_up(kappa) * self.allowance.scale))
