"""The adversary's moves: the extreme computations, on the lattice of privacy losses.

A session's privacy loss is j·ε for an integer j. By the structure lemma the worst computation is randomised
response with x = e^ε/(1 + e^ε): it moves j up with probability x or down with 1-x, and each way either
hits or not. Which ways may hit is what the kind of target decides (docs/theory/exact.md#exact-accounting).

>>> from targetcharge.accounting.kind import Kind
>>> [move.name for move in moves_of(Kind(disagreement=True), 0.1)]
['A', 'B', 'C', 'D']
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.accounting.kind import Kind


@dataclass(frozen=True)
class Move:
    """One extreme computation: where the loss goes, with which probability, with and without a hit.

    Attributes:
        name: as in docs/theory/exact.md.
        miss: probability by step, when the outcome is free.
        hit: probability by step, when the outcome costs one hit.
    """

    name: str
    miss: Mapping[int, float] = field(hash=False)
    hit: Mapping[int, float] = field(hash=False)

    @property
    def hit_probability(self) -> float:
        """Return how likely a hit is."""
        return sum(self.hit.values())


STOP = Move("stop", miss={}, hit={0: 1.0})
"""Giving a hit away: the adversary may always do with fewer (V_{s-1} ≤ V_s)."""


def moves_of(kind: Kind, epsilon: float) -> tuple[Move, ...]:
    """Return the extreme computations of a session of this kind."""
    up, down = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    moves: list[Move] = []
    if kind.not_prior:
        moves += [
            Move("A", miss={+1: up}, hit={-1: down}),
            Move("B", miss={-1: down}, hit={+1: up}),
            Move("C", miss={}, hit={+1: up, -1: down}),
        ]
    if kind.disagreement:
        moves.append(Move("D", miss={+2: up * up, -2: down * down}, hit={0: 2 * up * down}))
    if kind.q is not None:
        moves += _q_moves(kind.q, up, down)
    return tuple(moves)


def _q_moves(q: float, up: float, down: float) -> list[Move]:
    """Return the least hit probabilities (h₊, h₋) with x h₊ + (1-x) h₋ ≥ q and (1-x) h₊ + x h₋ ≥ q.

    They are (0, q/(1-x)), (q, q) and (q/(1-x), 0) while q ≤ 1-x, then ((q-(1-x))/x, 1), (q, q) and
    (1, (q-(1-x))/x). Masses are written without differences of nearly equal numbers.
    """
    even = Move("q=", miss={+1: up * (1 - q), -1: down * (1 - q)}, hit={+1: up * q, -1: down * q})
    if q <= down:
        rest = (down - q) / down
        return [
            Move("q-", miss={+1: up, -1: down * rest}, hit={-1: q}),
            even,
            Move("q+", miss={+1: up * rest, -1: down}, hit={+1: up * q / down}),
        ]
    return [
        Move("q-", miss={+1: 1 - q}, hit={+1: q - down, -1: down}),
        even,
        Move("q+", miss={-1: down * (1 - q) / up}, hit={+1: up, -1: down * (q - down) / up}),
    ]
