"""One level of the recursion: the best the adversary can do with s hits, given s-1.

    V_s(j) = max over moves of  Σ_miss p·V_s(j + step) + Σ_hit p·V_{s-1}(j + step)

The first sum is on the same level, so a level is a fixed point. For NotPrior the optimal policy is known and
a pair of sweeps solves it; in general policy iteration does, in two or three banded solves. Whether the
result is right is not taken on trust: `bellman` measures it (see certificate.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_banded
from scipy.linalg.blas import dtbsv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from targetcharge.accounting.exact.moves import Move

    Array = NDArray[np.float64]

REACH = 2
"""The longest step of any move, and so the number of ghost cells beyond each end of the lattice."""

_SETTLED = 1e-14
_MOST_ROUNDS = 1000
_MOST_WORK = 20_000_000


def with_ghosts(level: Array, top: Array) -> Array:
    """Return a level with its ghost cells: the lowest value repeated below, `top` above."""
    return np.concatenate((np.full(REACH, level[0]), level, top))


def _expect(steps: Mapping[int, float], ghosted: Array) -> Array:
    """Return the expectation of a level after the given steps, at every cell of the lattice."""
    size = len(ghosted) - 2 * REACH
    total = np.zeros(size)
    for step, probability in steps.items():
        total += probability * ghosted[REACH + step : REACH + step + size]
    return total


def bellman(moves: Sequence[Move], level: Array, hits: Sequence[Array], top: Array) -> Array:
    """Return, move by move, the value of making that move and then playing the level."""
    ghosted = with_ghosts(level, top)
    return np.stack([_expect(move.miss, ghosted) + hit for move, hit in zip(moves, hits, strict=True)])


def after_hits(moves: Sequence[Move], below: Array, top: Array) -> list[Array]:
    """Return, move by move, what its hits are worth on the level below."""
    ghosted = with_ghosts(below, top)
    return [_expect(move.hit, ghosted) for move in moves]


def sweep_not_prior(below: Array, top: Array, zero: int, up: float, down: float) -> Array:
    """Return the level of a NotPrior session: A is best below cell `zero`, B above, both tie in it.

    At the tie V_s(0) = [x² V_{s-1}(2) + (1-x) V_{s-1}(-1)] / (1 - x + x²); then each side is a first-order
    linear recurrence.
    """
    ghosted = with_ghosts(below, top)
    higher, lower = ghosted[REACH + 1 : -1], ghosted[1 : -REACH - 1]
    level = np.empty_like(below)
    level[zero] = (up * up * ghosted[REACH + zero + 2] + down * lower[zero]) / (down + up * up)
    level[zero + 1 :] = _recur(down, level[zero], up * higher[zero + 1 :])
    level[:zero] = _recur(up, level[zero], down * lower[:zero][::-1])[::-1]
    return level


def _recur(factor: float, start: float, inputs: Array) -> Array:
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
    size = len(policy)
    bands = np.zeros((2 * REACH + 1, size))
    bands[REACH] = 1.0
    right = worth.copy()
    for step in range(-REACH, REACH + 1):
        weights = np.array([move.miss.get(step, 0.0) for move in moves])[policy]
        if not weights.any():
            continue
        if step > 0:
            bands[REACH - step, step:] -= weights[:-step]
            right[-step:] += weights[-step:] * top[:step]
        else:
            bands[REACH - step, :step] -= weights[-step:]
            for cell in range(-step):
                bands[REACH + cell, 0] -= weights[cell]
    return np.asarray(solve_banded((REACH, REACH), bands, right, overwrite_ab=True, overwrite_b=True))
