"""Neighbouring pairs by the thousand: dense families and random ones, and what a target needs of them.

A batch of pairs is two arrays of shape (pairs, outcomes) whose rows are laws.

>>> law0, law1 = grid_pairs(0.5, 2)
>>> bool(np.allclose(law0.sum(axis=1), 1)), bool((np.abs(np.log(law0 / law1)) <= 0.5 + 1e-9).all())
(True, True)
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


RATIOS: Final = (-1.0, -0.5, 0.0, 0.5, 1.0)
MASSES: Final = (1e-6, 1e-3, 0.05, 0.2, 0.5, 1.0)


def balanced(
    weights: NDArray[np.float64], log_ratios: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pairs with these ln(law0/law1), the masses as close to the weights as two sums of 1 allow.

    Scaling the outcomes that rise by the loss of those that fall, and conversely, makes both sums equal. Every row
    must have an outcome that rises and one that falls.
    """
    change = weights * np.expm1(log_ratios)
    gain = np.where(change > 0, change, 0).sum(axis=-1, keepdims=True)
    loss = np.where(change < 0, -change, 0).sum(axis=-1, keepdims=True)
    law1 = weights * np.where(change > 0, loss, np.where(change < 0, gain, np.sqrt(gain * loss)))
    law1 /= law1.sum(axis=-1, keepdims=True)
    return law1 * np.exp(log_ratios), law1


def grid_pairs(epsilon: float, outcomes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the dense family: every combination of a few masses and of ratios from e^{-ε} to e^ε."""
    ratios = np.array(
        [row for row in itertools.product(RATIOS, repeat=outcomes) if max(row) > 0 > min(row)], dtype=np.float64
    )
    masses = np.array(list(itertools.product(MASSES, repeat=outcomes)), dtype=np.float64)
    left, right = np.repeat(masses, len(ratios), axis=0), np.tile(ratios, (len(masses), 1))
    return balanced(left, epsilon * right)


def random_pairs(
    rng: np.random.Generator, count: int, outcomes: int, epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ε-indistinguishable pairs: even to very uneven masses, ratios from moderate to all of e^{±ε}.

    Some outcomes have ratio 1: those are common parts. The first outcome rises, the second falls.
    """
    unevenness = rng.choice([0.1, 1.0, 6.0], (count, 1))
    weights = np.exp(-unevenness * rng.exponential(size=(count, outcomes)))
    reach = rng.choice([1.0, 2.0, 100.0], (count, 1))
    scaled = np.clip(reach * rng.uniform(-1, 1, (count, outcomes)), -1, 1)
    scaled[rng.random((count, outcomes)) < 0.15] = 0
    scaled[:, 0] = np.maximum(np.abs(scaled[:, 0]), 1e-3)
    scaled[:, 1] = -np.maximum(np.abs(scaled[:, 1]), 1e-3)
    return balanced(weights, epsilon * scaled)


def shuffled(
    rng: np.random.Generator, law0: NDArray[np.float64], law1: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pairs with the outcomes of each in another order."""
    places = rng.permuted(np.tile(np.arange(law0.shape[1]), (len(law0), 1)), axis=1)
    return np.take_along_axis(law0, places, axis=1), np.take_along_axis(law1, places, axis=1)


def even_pairs(epsilon: float, outcomes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return pairs around the boundary wrapper's worst: one outcome of mass near 1/2, the rest in even pieces."""
    firsts = np.unique(
        np.concatenate([np.linspace(0.02, 0.98, 49), 0.5 * np.exp(epsilon * np.linspace(-1, 1, 9))])
    )
    rows = []
    for first, share in itertools.product(firsts[firsts < 1], np.linspace(0.0, 1.0, 21)):
        ratio = share * math.exp(epsilon) + (1 - share) * math.exp(-epsilon)
        other = 1 - (1 - first) * ratio
        if 0 < other < 1 and abs(math.log(other / first)) <= epsilon:
            pieces = np.array([share, 1 - share]).repeat(outcomes) / outcomes * (1 - first)
            scale = np.exp([epsilon, -epsilon]).repeat(outcomes)
            kept = np.maximum(pieces, 1e-300)
            rows.append((np.append(other, kept * scale), np.append(first, kept)))
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def run_twice(laws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the product laws; outcome (i, j) is at i * outcomes + j."""
    return (laws[:, :, None] * laws[:, None, :]).reshape(len(laws), -1)


def boundary_wrapped(laws: NDArray[np.float64], caution: float = 1.0) -> NDArray[np.float64]:
    """Return the laws of the boundary wrapper: the mark, then each outcome of the wrapped algorithm."""
    doubt = caution * np.minimum(1 - laws.max(axis=1, keepdims=True), 0.5)
    mark = doubt / (1 + doubt)
    return np.hstack([mark, (1 - mark) * laws])


def needed_price(
    law0: NDArray[np.float64], law1: NDArray[np.float64], hits: NDArray[np.bool_], order: float
) -> NDArray[np.float64]:
    """Return the price each pair needs, in the worse direction: -ln((1 - S_off)/S_on), infinite if S_off ≥ 1."""
    log_ratio = np.log(law0) - np.log(law1)
    return np.maximum(_one_way(law1, log_ratio, hits, order), _one_way(law0, -log_ratio, hits, order))


def _one_way(
    base: NDArray[np.float64], log_ratio: NDArray[np.float64], hits: NDArray[np.bool_], order: float
) -> NDArray[np.float64]:
    """Return -ln(1 - (S_off + S_on - 1)/S_on).

    S - 1 = Σ base (r^a - 1 - a(r - 1)) = Σ base (r (r^{a-1} - 1) - (a - 1)(r - 1)) keeps prices that are small.
    """
    beyond = order - 1
    terms = np.exp(log_ratio) * np.expm1(beyond * log_ratio) - beyond * np.expm1(log_ratio)
    excess = (base * terms).sum(axis=-1)
    on = np.where(hits, base * np.exp(order * log_ratio), 0).sum(axis=-1)
    share = np.divide(excess, on, out=np.where(excess > 0, np.inf, 0.0), where=on > 0)
    return np.where(share < 1, -np.log1p(-np.where(share < 1, share, 0)), np.inf)


def largest_q(
    law0: NDArray[np.float64], law1: NDArray[np.float64], hits: NDArray[np.bool_], epsilon: float
) -> NDArray[np.float64]:
    """Return q* of each pair: min_b Z^b(⊤) / (1 - Σ_{y∉⊤} c(y)), c = (e^ε min - max)/(e^ε - 1)."""
    growth = math.exp(epsilon)
    unshared = np.abs(law0 - law1) / (growth - 1) * np.where(law0 > law1, growth, 1)
    hit0, hit1 = (np.where(hits, law, 0).sum(axis=-1) for law in (law0, law1))
    whole = hit0 + np.where(hits, 0, unshared).sum(axis=-1)
    shares = np.divide(np.minimum(hit0, hit1), whole, out=np.ones_like(whole), where=whole > 0)
    return np.asarray(np.minimum(1.0, shares))
