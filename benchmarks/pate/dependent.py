"""The authors' data-dependent figure for Confident-GNMax: smaller, and not private.

Where the votes are clear, the most likely outcome barely moves when a vote does, and the divergence is far below
its worst case. With q the probability of any other outcome, and any orders μ₁, μ₂ at which the divergence is at
most ε₁, ε₂ in the worst case, at the orders a ≤ μ₁ (Theorem 6 of the paper)

    (a-1)·ε(a) ≤ ln( (1-q)·A^{a-1} + q·B^{a-1} ),  A = (1-q)/(1 - (q·e^{ε₂})^{1-1/μ₂}),  B = e^{ε₁}/q^{1/(μ₁-1)}

as long as q ≤ e^{(μ₂-1)ε₂}/(μ₁/(μ₁-1) · μ₂/(μ₂-1))^{μ₂}. *Idea of the proof:* the moment splits into the likely
outcome and the rest; Hölder's inequality at the order μ₁ bounds the rest by B, and at the order μ₂, in the other
direction, how much more likely the rest is on the neighbour, hence A. For Gaussian noise ε_i = μ_i/σ² and a good
choice is μ₂ = σ·√ln(1/q), μ₁ = μ₂ + 1.

The figure depends on the votes: it cannot be published as it is, nor promised beforehand, and no session can
stop at it. (The authors publish a noisy version, which costs more.) It is computed here only to show that the
votes and the reading of the paper are theirs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from benchmarks.pate.gnmax import AUTHORS_ORDERS, Confident

if TYPE_CHECKING:
    from numpy.typing import NDArray


def dependent_epsilon(votes: NDArray[np.float64], parameters: Confident, delta: float) -> float:
    """Return the authors' data-dependent ε, in expectation over which queries are answered. Not private.

    Args:
        votes: counts, one row for each query.
        parameters: of Confident-GNMax.
        delta: of the conversion.
    """
    best = votes.max(axis=1)
    distance = (best - parameters.threshold) / parameters.test_sigma
    log_answered, log_refused = log_ndtr(distance), log_ndtr(-distance)
    # The test is a Gaussian whose mean moves by 1, the answer one whose mean moves by √2: σ₁ counts as √2·σ₁.
    tests = _divergence(np.minimum(log_answered, log_refused), math.sqrt(2) * parameters.test_sigma)
    answers = _divergence(_log_other(votes, parameters.answer_sigma), parameters.answer_sigma)
    total = (tests + np.exp(log_answered) * answers).sum(axis=1)
    return float(np.min(total - math.log(delta) / (AUTHORS_ORDERS - 1)))


def _log_other(votes: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Return ln of a bound on the probability that not the largest count wins: a union over the others."""
    ordered = -np.sort(-votes, axis=1)
    each = log_ndtr((ordered[:, 1:] - ordered[:, :1]) / (sigma * math.sqrt(2)))
    return np.asarray(np.minimum(np.logaddexp.reduce(each, axis=1), math.log(1 - 1 / votes.shape[1])))


def _divergence(log_q: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Return the bound for every order (rows) and query (columns): the data-dependent one where it holds."""
    orders = AUTHORS_ORDERS[:, None]
    second = sigma * np.sqrt(-log_q)
    first = second + 1
    worst = orders / sigma**2
    with np.errstate(
        all="ignore"
    ):  # where a bound does not apply its formula is not a number; it is left out below
        most = (second - 1) * second / sigma**2 - second * (np.log(first / second) + np.log(second / (second - 1)))
        log_rest = np.log(-np.expm1(log_q))
        log_a = log_rest - np.log(-np.expm1((log_q + second / sigma**2) * (1 - 1 / second)))
        log_b = first / sigma**2 - log_q / second
        moment = np.logaddexp(log_rest + (orders - 1) * log_a, log_q + (orders - 1) * log_b)
        applies = (orders < first) & (second > 1) & (log_q <= most) & (-log_q > second / sigma**2)
    return np.where(applies, np.minimum(worst, moment / (orders - 1)), worst)
