"""Probabilities of every label for rows of votes, computed and not sampled.

Scores are counts; two of them move by one when a vote does, so exponential-type mechanisms use the rate ε/2.

>>> votes = np.array([[6.0, 4.0, 0.0]])
>>> [law(votes, 1.0).round(3).tolist()[0] for law in (exponential, permute_and_flip, noisy_maximum)]
[[0.705, 0.259, 0.035], [0.797, 0.181, 0.022], [0.755, 0.221, 0.024]]
>>> gaussian_maximum(votes, 2.0, np.array([0])).round(3).tolist()
[0.756]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Law = NDArray[np.float64]

_LEGENDRE = np.polynomial.legendre.leggauss(6)
"""Exact for polynomials up to degree 11: those of up to 12 classes."""

_HERMITE = np.polynomial.hermite_e.hermegauss(48)
_FAR = 25.0
"""Laplace noise beyond this many times its scale has probability below 1e-10."""


def exponential(votes: Law, epsilon: float) -> Law:
    """Return the law of the exponential mechanism: proportional to e^{ε·count/2}."""
    weights = np.exp(epsilon / 2 * (votes - votes.max(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def permute_and_flip(votes: Law, epsilon: float) -> Law:
    """Return the law of permute-and-flip: p_r·∫₀¹ Π_{s≠r}(1 - p_s·t) dt, p_s = e^{ε(count_s - best)/2}."""
    coins = np.exp(epsilon / 2 * (votes - votes.max(axis=1, keepdims=True)))
    law: Law = np.zeros_like(coins)
    for node, weight in zip(*_LEGENDRE, strict=True):
        tails = 1 - coins * (node + 1) / 2
        law += weight / 2 * coins * tails.prod(axis=1, keepdims=True) / tails
    return law


def noisy_maximum(votes: Law, epsilon: float) -> Law:
    """Return the law of the largest count plus discrete Laplace noise of rate ε/2; of equal ones the first."""
    decay = math.exp(-epsilon / 2)
    reach = math.ceil(2 * _FAR / epsilon)
    span = int(votes.max()) + reach + 1
    distances = np.arange(-span, span + 1)
    tails = decay ** np.abs(distances) / (1 + decay)
    mass = (1 - decay) * tails
    at_most = np.where(distances >= 0, 1 - decay * tails, tails)
    counts = votes.astype(np.int64)
    best = counts.max(axis=1)
    law = np.zeros_like(votes)
    for value in range(-reach, reach + 1):
        index = (best + value)[:, None] - counts + span
        index = np.clip(index, 1, 2 * span)
        before = np.cumprod(at_most[index - 1], axis=1)
        after = np.cumprod(at_most[index][:, ::-1], axis=1)[:, ::-1]
        rest = np.ones_like(law)
        rest[:, 1:] *= before[:, :-1]
        rest[:, :-1] *= after[:, 1:]
        law += mass[index] * rest
    return law


def gaussian_maximum(votes: Law, sigma: float, classes: NDArray[np.int64]) -> Law:
    """Return the probability of one class of each row to have the largest count plus N(0, σ²)."""
    rows = np.arange(len(votes))
    gaps = (votes[rows, classes][:, None] - votes) / sigma
    gaps[rows, classes] = math.inf
    nodes, weights = _HERMITE
    chances = (ndtr(gaps + node).prod(axis=1) for node in nodes)
    total = sum(weight * chance for weight, chance in zip(weights, chances, strict=True))
    return np.asarray(total / weights.sum())


def reaches(top: NDArray[np.float64], threshold: float, epsilon: float) -> NDArray[np.float64]:
    """Return the probability that the top count plus discrete Laplace noise of rate ε is at least a threshold."""
    decay = math.exp(-epsilon)
    distance = np.ceil(threshold - top)
    tail = decay ** np.where(distance > 0, distance, 1 - distance) / (1 + decay)
    return np.where(distance > 0, tail, 1 - tail)


def marks(likeliest: NDArray[np.float64], caution: float) -> NDArray[np.float64]:
    """Return the probability of the boundary wrapper's mark: cπ/(1+cπ), π being 1 - the likeliest, at most ½."""
    doubt = caution * np.minimum(1 - likeliest, 0.5)
    return np.asarray(doubt / (1 + doubt))
