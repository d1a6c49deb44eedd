"""One level of the recursion: the best the adversary can do with s hits, given s-1.

    V_s(j) = max over moves of  Σ_miss p·V_s(j + step) + Σ_hit p·V_{s-1}(j + step)

A session's privacy loss is j·ε for an integer j. By the structure lemma the worst computation is randomised
response with x = e^ε/(1 + e^ε): it moves j up with probability x or down with 1-x, and each way either hits or
not. Which ways may hit is what the kind of target decides (docs/theory/exact.md#exact-accounting).

The first sum is on the same level, so a level is a fixed point. For NotPrior the optimal policy is known and
a pair of sweeps solves it; in general policy iteration does, in two or three banded solves. Whether the
result is right is not taken on trust: `bellman` measures it (see certificate.py).

>>> from targetcharge.accounting.targets import Kind
>>> [move.name for move in moves_of(Kind(disagreement=True), 0.1)]
['A', 'B', 'C', 'D']
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.linalg import solve_banded
from scipy.linalg.blas import dtbsv

from targetcharge.accounting.targets import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_REACH = 2
"""The fewest ghost cells beyond each end of the lattice: as many as the longest step of any move."""

_SETTLED = 1e-14
_MOST_ROUNDS = 1000
_MOST_WORK = 20_000_000


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

    @property
    def reach(self) -> int:
        """Return its longest step."""
        return max(abs(step) for step in (*self.miss, *self.hit))


STOP = Move("stop", miss={}, hit={0: 1.0})
"""Giving a hit away: the adversary may always do with fewer (V_{s-1} ≤ V_s)."""


class Game(Protocol):
    """What an adversary may play other than the computations of a kind of session, in cells of some width."""

    @property
    def all_hits(self) -> bool:
        """Return whether every outcome is a hit."""
        ...

    @property
    def most_cells(self) -> int:
        """Return the limit on the cells of all levels together."""
        ...

    def query_epsilon(self, epsilon: float) -> float:
        """Return the query ε of a game in cells of width ε."""
        ...

    def kappa(self, order: float, epsilon: float) -> float:
        """Return a Rényi price that covers every move in cells of width ε (infinite where there is none)."""
        ...

    def check_epsilon(self, epsilon: float, name: str = "epsilon") -> float:
        """Return the width of a cell; refuse one that has no price."""
        ...

    def moves(self, epsilon: float) -> tuple[Move, ...]:
        """Return the moves in cells of width ε: the best one at low losses first, that at high losses second."""
        ...


def moves_of(kind: Kind | Game, epsilon: float) -> tuple[Move, ...]:
    """Return the extreme computations of a session of this kind, or of a game."""
    if not isinstance(kind, Kind):
        return kind.moves(epsilon)
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


def with_ghosts(level: Array, top: Array) -> Array:
    """Return a level with its ghost cells: `top` above, and as many below that repeat the lowest value."""
    return np.concatenate((np.full(len(top), level[0]), level, top))


def _expect(steps: Mapping[int, float], ghosted: Array, reach: int) -> Array:
    """Return the expectation of a level after the given steps, at every cell of the lattice."""
    size = len(ghosted) - 2 * reach
    total = np.zeros(size)
    for step, probability in steps.items():
        total += probability * ghosted[reach + step : reach + step + size]
    return total


def bellman(moves: Sequence[Move], level: Array, hits: Sequence[Array], top: Array) -> Array:
    """Return, move by move, the value of making that move and then playing the level."""
    ghosted = with_ghosts(level, top)
    return np.stack([_expect(move.miss, ghosted, len(top)) + hit for move, hit in zip(moves, hits, strict=True)])


def after_hits(moves: Sequence[Move], below: Array, top: Array) -> list[Array]:
    """Return, move by move, what its hits are worth on the level below."""
    ghosted = with_ghosts(below, top)
    return [_expect(move.hit, ghosted, len(top)) for move in moves]


def sweep_not_prior(below: Array, top: Array, zero: int, up: float, down: float) -> Array:
    """Return the level of a NotPrior session: A is best below cell `zero`, B above, both tie in it.

    At the tie V_s(0) = [x² V_{s-1}(2) + (1-x) V_{s-1}(-1)] / (1 - x + x²); then each side is a first-order
    linear recurrence.
    """
    ghosted = with_ghosts(below, top)
    reach = len(top)
    higher, lower = ghosted[reach + 1 : 1 - reach], ghosted[reach - 1 : -reach - 1]
    level = np.empty_like(below)
    level[zero] = (up * up * ghosted[reach + zero + 2] + down * lower[zero]) / (down + up * up)
    level[zero + 1 :] = recur(down, level[zero], up * higher[zero + 1 :])
    level[:zero] = recur(up, level[zero], down * lower[:zero][::-1])[::-1]
    return level


def recur(factor: float, start: float, inputs: Array) -> Array:
    """Return y₁, y₂, … with y₀ = start and yₖ = factor·yₖ₋₁ + inputₖ, a triangular system with one band."""
    bands = np.full((2, len(inputs)), -factor, order="F")
    right = inputs.copy()
    right[0] += factor * start
    return np.asarray(dtbsv(1, bands, right, lower=1, diag=1, overwrite_x=1))


def iterate_policy(
    moves: Sequence[Move], hits: Sequence[Array], top: Array, policy: NDArray[np.intp]
) -> tuple[Array, NDArray[np.intp]]:
    """Return the level and its optimal policy, by Howard's policy iteration from the given policy."""
    worth = np.stack(hits)
    cells = np.arange(len(policy))
    for _ in range(min(_MOST_ROUNDS, 1 + _MOST_WORK // len(policy))):
        level = _play(moves, policy, worth[policy, cells], top)
        options = bellman(moves, level, hits, top)
        better = options.max(axis=0) > level * (1 + _SETTLED)
        if not better.any():
            break
        policy = np.where(better, options.argmax(axis=0), policy)
    return level, policy


def _play(moves: Sequence[Move], policy: NDArray[np.intp], worth: Array, top: Array) -> Array:
    """Return the value of a fixed policy: the solution of a banded linear system.

    A step below the lattice lands on the lowest cell (its ghosts repeat it), one above it on `top`.
    """
    size, reach = len(policy), len(top)
    bands = np.zeros((2 * reach + 1, size))
    bands[reach] = 1.0
    right = worth.copy()
    for step in range(-reach, reach + 1):
        weights = np.array([move.miss.get(step, 0.0) for move in moves])[policy]
        if not weights.any():
            continue
        if step > 0:
            bands[reach - step, step:] -= weights[:-step]
            right[-step:] += weights[-step:] * top[:step]
        else:
            bands[reach - step, :step] -= weights[-step:]
            for cell in range(-step):
                bands[reach + cell, 0] -= weights[cell]
    return np.asarray(solve_banded((reach, reach), bands, right, overwrite_ab=True, overwrite_b=True))
