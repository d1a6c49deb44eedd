"""Neighbouring pairs of laws, random and extremal, what the wrappers publish of them, and what they need.

A batch of pairs is two arrays of shape (pairs, outcomes) whose rows are laws. Nothing here uses the closed forms
or the structure lemma: it is what they are tested against.

>>> law0, law1 = balanced(np.array([[1.0, 1.0]]), np.array([[math.log(3), -math.log(3)]]))
>>> law0.round(9).tolist(), law1.round(9).tolist()
([[0.75, 0.25]], [[0.25, 0.75]])
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from tests.sizes import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from targetcharge.accounting.targets import Target

PAIRS = size(300_000, 3_000_000)
"""How many pairs, at least, each target type is tested against."""

LARGEST_BATCH = 50_000

OUTCOMES = range(2, 7)

Laws = tuple[np.ndarray, np.ndarray]


def batches(total: int, settings: int) -> Iterator[int]:
    """Yield batch sizes that add up to one setting's share of the total."""
    left = math.ceil(total / settings)
    while left > 0:
        yield min(left, LARGEST_BATCH)
        left -= LARGEST_BATCH


def order_at(target: Target, epsilon: float, fraction: float) -> float:
    """Return the order at a fraction of the way from 1 to the target's largest order with a finite price.

    That order is taken as 1 + 5/ε if the price is still finite there.
    """
    low, high = 1.0, 1 + 5 / epsilon
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if target.kappa(middle, epsilon) < math.inf else (low, middle)
    return 1 + fraction * (low - 1)


# Pairs.


def balanced(weights: np.ndarray, log_ratios: np.ndarray) -> Laws:
    """Return pairs with these ln(law0/law1); law1 is near the weights, as far as both laws can sum to 1.

    The masses of outcomes that rise are divided by all that rises, of those that fall by all that falls: so as
    much rises as falls. Every row needs an outcome of either sort.
    """
    change = weights * np.expm1(log_ratios)
    rise, fall = (np.clip(sign * change, 0, None).sum(axis=1, keepdims=True) for sign in (1, -1))
    divisor = np.select([log_ratios > 0, log_ratios < 0], [rise, fall], np.sqrt(rise * fall))
    law1 = weights / divisor
    law1 = law1 / law1.sum(axis=1, keepdims=True)
    return law1 * np.exp(log_ratios), law1


def random_pairs(rng: np.random.Generator, count: int, outcomes: int, epsilon: float) -> Laws:
    """Return ε-indistinguishable pairs: even to very uneven masses; extreme, moderate and no differences.

    The first outcome rises, the second falls.
    """
    concentration = rng.choice([0.3, 1.0, 10.0], (count, 1))
    weights = rng.gamma(concentration, size=(count, outcomes)) + 1e-4
    signs = rng.choice([-1.0, 1.0], (count, outcomes))
    signs[:, :2] = 1.0, -1.0
    sizes = rng.uniform(1e-3, 1, (count, outcomes))
    sizes[rng.random((count, outcomes)) < rng.choice([0.0, 0.5, 0.95], (count, 1))] = 1.0
    sizes[:, 2:][rng.random((count, outcomes - 2)) < 0.15] = 0.0
    return balanced(weights, epsilon * signs * sizes)


def extremal_pairs(rng: np.random.Generator, count: int, outcomes: int, epsilon: float) -> Laws:
    """Return pairs with ratio e^{±ε} on all outcomes but the first, which often has a mass of 1/2 or the least.

    The first outcome is the most likely one, or the two sides differ in which it is, or all are small.
    """
    weights = rng.dirichlet(np.full(outcomes - 1, rng.choice([0.5, 5.0])), count) + 1e-9
    weights /= weights.sum(axis=1, keepdims=True)
    signs = np.where(rng.random((count, outcomes - 1)) < rng.random((count, 1)), 1.0, -1.0)
    ratios = np.exp(epsilon * signs)
    mean_ratio = (weights * ratios).sum(axis=1)
    most = 1 - _least_first_mass(mean_ratio, epsilon)
    choices = np.stack([most * rng.random(count), most, np.full(count, 0.5), 0.5 / mean_ratio])
    others = choices[rng.integers(len(choices), size=count), np.arange(count)]
    others = np.clip(others, 1e-6, np.minimum(most, 1 - 1e-9))[:, None]
    law1 = np.hstack([1 - others, weights * others])
    law0 = np.hstack([1 - others * mean_ratio[:, None], weights * others * ratios])
    return law0, law1


def _least_first_mass(mean_ratio: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the smallest law1 of an outcome that balances the others with ratio within e^{±ε}."""
    growth, decay = math.exp(epsilon), math.exp(-epsilon)
    above, below = np.maximum(mean_ratio - decay, 1e-300), np.maximum(growth - mean_ratio, 1e-300)
    return 1 - np.minimum(1, np.minimum((1 - decay) / above, (growth - 1) / below))


# What is published.


def run_twice(laws: np.ndarray) -> np.ndarray:
    """Return the laws of two independent runs; outcome (i, j) is at i * outcomes + j."""
    return np.einsum("ni,nj->nij", laws, laws).reshape(len(laws), -1)


def boundary_wrapped(laws: np.ndarray, caution: float = 1.0) -> np.ndarray:
    """Return the laws of the boundary wrapper: the mark, then every outcome of the wrapped algorithm.

    The paper's Algorithm 3 has the mark with probability min(1/3, r/(1 + r)), r being all but the likeliest mass;
    caution c makes r as much larger, of r up to 1/2.
    """
    rest = np.sort(laws, axis=1)[:, :-1].sum(axis=1, keepdims=True)
    doubt = caution * np.clip(rest, 0, 0.5)
    mark = doubt / (1 + doubt)
    return np.hstack([mark, laws * (1 - mark)])


def hit_or_nothing(laws: np.ndarray, prior: int) -> np.ndarray:
    """Return the laws of "nothing" (the prior) and "hit" (any other outcome)."""
    nothing = laws[:, [prior]]
    return np.hstack([nothing, np.delete(laws, prior, axis=1).sum(axis=1, keepdims=True)])


def conditional_release(laws: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the laws of "nothing" (any outcome outside the target), then of each outcome in it."""
    return np.hstack([laws[:, ~target].sum(axis=1, keepdims=True), laws[:, target]])


def off_diagonal(outcomes: int) -> np.ndarray:
    """Return which outcomes of `run_twice` are disagreements."""
    return ~np.eye(outcomes, dtype=bool).ravel()


def mark_only(outcomes: int) -> np.ndarray:
    """Return which outcomes of `boundary_wrapped` are the mark."""
    return np.arange(outcomes + 1) == 0


def between_laws(counts: np.ndarray, width: int, epsilon: float) -> np.ndarray:
    """Return the laws of below, between and above: count plus discrete Laplace noise against [0, width - 1].

    The noise k has probability (1-p)/(1+p) p^|k|, p = e^{-ε}.
    """
    p = math.exp(-epsilon)
    band = np.arange(width)
    between = (1 - p) / (1 + p) * (p ** np.abs(band - counts[:, None])).sum(axis=1)
    below, above = _noise_tail(counts + 1, p), _noise_tail(width - counts, p)
    return np.stack([below, between, above], axis=1)


def _noise_tail(distance: np.ndarray, p: float) -> np.ndarray:
    """Return Pr[noise ≥ distance] = Pr[noise ≤ -distance]."""
    far = p ** np.abs(np.where(distance >= 1, distance, 1 - distance)) / (1 + p)
    return np.where(distance >= 1, far, 1 - far)


BETWEEN_ONLY = np.array([False, True, False])


# What a pair needs.


def needed_price(law0: np.ndarray, law1: np.ndarray, target: np.ndarray, order: float) -> np.ndarray:
    """Return the price each pair needs, in the worse direction: -ln((1 - S_off)/S_on), infinite if S_off ≥ 1."""
    log_ratio = np.log(law0) - np.log(law1)
    return np.maximum(
        _needed_one_way(law1, log_ratio, target, order), _needed_one_way(law0, -log_ratio, target, order)
    )


def _needed_one_way(base: np.ndarray, log_ratio: np.ndarray, target: np.ndarray, order: float) -> np.ndarray:
    """Return -ln(1 - (S_off + S_on - 1)/S_on), with S - 1 = Σ base (r^a - 1 - a(r - 1)) to keep small prices."""
    growth = np.expm1(order * log_ratio)
    excess = (base * (growth - order * np.expm1(log_ratio))).sum(axis=-1)
    hits = np.where(target, base * (1 + growth), 0).sum(axis=-1)
    share = excess / hits
    return np.where(share < 1, -np.log1p(-np.where(share < 1, share, 0)), np.inf)


def largest_q(law0: np.ndarray, law1: np.ndarray, target: np.ndarray, epsilon: float) -> np.ndarray:
    """Return q* of each pair: min_b Z^b(⊤) / (1 - Σ_{y∉⊤} c(y)), c = (e^ε min - max)/(e^ε - 1).

    The denominator is taken as Z⁰(⊤) + Σ_{y∉⊤} (Z⁰ - c), all terms positive, to keep pairs that rarely hit.
    """
    growth = math.exp(epsilon)
    unshared = np.abs(law0 - law1) / (growth - 1) * np.where(law0 > law1, growth, 1)
    hit0, hit1 = (np.where(target, law, 0).sum(axis=-1) for law in (law0, law1))
    return np.minimum(1, np.minimum(hit0, hit1) / (hit0 + np.where(target, 0, unshared).sum(axis=-1)))


# Search for the worst pair.


def pairs_at(points: np.ndarray, epsilon: float) -> Laws:
    """Return the pairs at points of the unit cube: half of the coordinates are masses, half are ratios.

    Ratios are clipped to e^{±ε}, so that the extremes have a neighbourhood; the first two rise and fall.
    """
    masses, ratios = np.hsplit(points, 2)
    scaled = np.clip(2.4 * ratios - 1.2, -1, 1)
    scaled[:, 0] = np.maximum(np.abs(scaled[:, 0]), 1e-6)
    scaled[:, 1] = -np.maximum(np.abs(scaled[:, 1]), 1e-6)
    return balanced(np.exp(-12 * masses**2), epsilon * scaled)


def evolved(value: Callable[[np.ndarray], np.ndarray], dimensions: int, generations: int = 150) -> float:
    """Return the largest value that differential evolution finds on the unit cube, all members moving at once."""
    rng = np.random.default_rng(dimensions)
    size = 12 * dimensions
    points = rng.random((size, dimensions))
    values = value(points)
    for _ in range(generations):
        base, one, other = points[rng.integers(size, size=(3, size))]
        guide = np.where(rng.random((size, 1)) < 0.5, points[values.argmax()], base)
        moved = guide + rng.uniform(0.4, 1, (size, 1)) * (one - other)
        trial = np.clip(np.where(rng.random(points.shape) < 0.8, moved, points), 0, 1)
        found = value(trial)
        better = found >= values
        points[better], values[better] = trial[better], found[better]
    return float(values.max())
