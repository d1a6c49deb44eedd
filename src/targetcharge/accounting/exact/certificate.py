"""Why a computed level is an upper bound: a supersolution, checked cell by cell.

Value iteration approaches the truth from below, the unsafe side. So nothing here relies on how the levels
were computed. Let V* be the computed levels on the cells -b..t, and suppose (1+η)V* ≥ TV* at each of them,
T being the Bellman operator; η is *measured*. Then (docs/theory/exact.md#certificate)

    truth_s(j)  ≤  (1+η)^N · ( V*_s(j) + top_s(j) + bottom_s(j) ) + 1e-100,

- top_s(j) = e^{-(t+1)ε}·e^{uε(j-t-1) + sκ}: above cell t the computation used 1 - e^{-jε}, the truth is at
  most 1, and this supersolution covers the difference;
- bottom_s(j) = C·e^{-uε(b+1) + sκ}·e^{-ε(j+b+1)}: below cell -b the truth is at most the Rényi bound
  C·e^{uεj + sκ}, C = u^u/(1+u)^{1+u}, and this covers it;
- κ is a Rényi price at order 1+u, so both are supersolutions (e^{-εj} is harmonic for every move);
- after N = (2τ + 1840)/h steps, h the least hit probability of a move, τ hits have occurred but for a chance
  below e^{-900} (Chernoff), so at most N relative errors η compound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from targetcharge.accounting.exact.levels import Move

ROUNDING = 2.0**-48
"""Relative rounding of one Bellman evaluation and of x, 1-x and the payoff, generously."""

FLOOR = 1e-100
"""Added to the payoff so that no value is zero or denormal; bounds the Chernoff remainder too."""

_HOPELESS = 700.0
"""An exponent beyond which a bound is 1 in any case, and exp would overflow."""


@dataclass(frozen=True)
class Certificate:
    """Everything that turns a computed value into a bound.

    Attributes:
        epsilon: query ε.
        shift: the lattice stands at losses (j - shift)·ε.
        bottom: b, the lowest cell is -b.
        top: t, the highest cell.
        exponent: u, the Rényi order less one.
        price: κ at that order.
        least_hit: the smallest hit probability of a move.
    """

    epsilon: float
    shift: float
    bottom: int
    top: int
    exponent: float
    price: float
    least_hit: float

    def bound(
        self, values: NDArray[np.float64], depth: NDArray[np.int64], hits: int, violation: float
    ) -> NDArray[np.float64]:
        """Return upper bounds of the true δ' at cells -depth of level `hits`, at most 1.

        Args:
            values: the computed V* at these cells.
            depth: how far below zero the cells lie.
            hits: the level.
            violation: the largest relative Bellman violation measured on levels 1 to `hits`.
        """
        step = self.exponent * self.epsilon
        charged = hits * self.price
        constant = self.exponent * math.log(self.exponent) - (1 + self.exponent) * math.log1p(self.exponent)
        log_top = -(self.top + 1 - self.shift) * self.epsilon - step * (depth + self.top + 1) + charged
        log_bottom = (
            constant - step * (self.bottom + 1 + self.shift) + charged - self.epsilon * (self.bottom + 1 - depth)
        )
        edges = np.exp(np.minimum(log_top, 1.0)) + np.exp(np.minimum(log_bottom, 1.0))
        steps = (2 * hits + 1840) / self.least_hit
        inflation = math.exp(min(steps * (violation + ROUNDING), _HOPELESS))
        return np.asarray(np.minimum(inflation * (values + edges) + FLOOR, 1.0))


def violation(options: NDArray[np.float64], level: NDArray[np.float64]) -> float:
    """Return by how much, relatively, the best option exceeds the level anywhere (0 if nowhere).

    Infinite if the level is no level at all: a value that is not finite and above 0 certifies nothing.
    """
    if not (np.isfinite(level).all() and (level > 0).all()):
        return math.inf
    return max(0.0, float((options.max(axis=0) / level).max()) - 1.0)


def least_hit(moves: Sequence[Move]) -> float:
    """Return the smallest probability with which a move hits."""
    return min(move.hit_probability for move in moves)
