"""The q of a target: how often, at least, the part of a computation that uses the data hits.

The paper's q of each target in closed form (proofs: docs/theory/paper.md#q-values); and the exact q of one pair of
laws, that is what a computation looks like on two neighbouring datasets, which verifies them. Pairs are for study
and tests: sums and ratios may be off by 1e-9, and results are rounded to nearest, not to a safe side.

>>> round(not_prior(0.1), 4), round(disagreement(0.1), 4)
(0.475, 0.2585)
>>> best_q([0.5, 0.5], [0.6, 0.4], target=[False, True], epsilon=0.25)
0.469438...
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_SUM_TOLERANCE = 1e-9
_RATIO_TOLERANCE = 1e-9


def not_prior(epsilon: float) -> float:
    """Return 1/(e^ε + 1): all outcomes but one, of an ε-DP computation."""
    return 1 / (math.exp(epsilon) + 1)


def between(epsilon: float, width: int) -> float:
    """Return (1 - e^{-wε})/(e^ε + 1): a closed band of w integers under discrete Laplace noise."""
    return -math.expm1(-width * epsilon) / (math.exp(epsilon) + 1)


def boundary_epsilon(epsilon: float, caution: float = 1.0) -> float:
    """Return the tight ε + ln((2+c)/(2 + c·e^{-ε})) of the boundary-wrapped computation; ≤ 4ε/3 for c = 1."""
    return epsilon - math.log1p(math.expm1(-epsilon) * caution / (2 + caution))


def boundary(epsilon: float) -> float:
    """Return (e^t - 1)/(2(e^{ε+t} - 1)) for the boundary mark, with t = `boundary_epsilon(epsilon)`."""
    wrapped = boundary_epsilon(epsilon)
    return math.expm1(wrapped) / (2 * math.expm1(epsilon + wrapped))


def disagreement(epsilon: float) -> float:
    """Return 1 - sqrt(e^{2ε}/(1 + e^{2ε})): two runs differ, a 2ε-DP computation."""
    return -math.expm1(-0.5 * math.log1p(math.exp(-2 * epsilon)))


@dataclass(frozen=True)
class Split:
    """The structure lemma: Z^b = common + residual_b, the residuals being randomised response.

    Attributes:
        common: the part that ignores the data; its mass is at most 1.
        residual0: Z⁰ - common: e^ε times residual1 on one set of outcomes, e^{-ε} times it on another.
        residual1: Z¹ - common.
    """

    common: NDArray[np.float64]
    residual0: NDArray[np.float64]
    residual1: NDArray[np.float64]


def split(p0: ArrayLike, p1: ArrayLike, epsilon: float) -> Split:
    """Return the structure lemma's parts of an ε-indistinguishable pair (docs/theory/paper.md#structure-lemma)."""
    law0, law1 = _pair(p0, p1)
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    common = _common(law0, law1, epsilon)
    return Split(common, law0 - common, law1 - common)


def best_q(p0: ArrayLike, p1: ArrayLike, target: ArrayLike, epsilon: float) -> float:
    """Return the largest q for which a set of outcomes is a q-target of this pair of laws.

    q* = min_b Z^b(⊤) / (1 - Σ_{y∉⊤} c(y)), with c(y) = (e^ε min - max)/(e^ε - 1) the most mass that can be
    shared at y off the target. It is 1 if the data-dependent part hits surely or does not exist.

    Args:
        p0: the law of the outcome on one dataset.
        p1: the law on its neighbour.
        target: which outcomes are in the target: one truth value per outcome.
        epsilon: what the pair is private with (t(ε) for the boundary wrapper, 2ε for a run-twice pair).
    """
    law0, law1 = _pair(p0, p1)
    members = np.asarray(target)
    if members.dtype != np.bool_ or members.shape != law0.shape:
        raise InvalidParameter("target", target, f"one truth value for each of the {law0.size} outcomes")
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    shared = math.fsum(_common(law0, law1, epsilon)[~members])
    hit = min(math.fsum(law0[members]), math.fsum(law1[members]))
    return min(1.0, hit / (1 - shared)) if shared < 1 else 1.0


def _pair(p0: ArrayLike, p1: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    laws = []
    for name, value in (("p0", p0), ("p1", p1)):
        expected = "a list of probabilities that sum to 1"
        try:
            law = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidParameter(name, value, expected) from None
        if law.ndim != 1 or not law.size or not (law >= 0).all() or abs(law.sum() - 1) > _SUM_TOLERANCE:
            raise InvalidParameter(name, value, expected)
        laws.append(law)
    if laws[0].shape != laws[1].shape:
        raise InvalidParameter(
            "p1", p1, f"as long as p0: it has {laws[1].size:,} outcomes and p0 has {laws[0].size:,}"
        )
    return laws[0], laws[1]


def _common(law0: NDArray[np.float64], law1: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    low, high = np.minimum(law0, law1), np.maximum(law0, law1)
    if (high > low * math.exp(epsilon) * (1 + _RATIO_TOLERANCE)).any():
        with np.errstate(divide="ignore"):
            actual = float(np.log((high / np.where(high > 0, low, 1.0)).max()))
        expected = f"at least {actual:.6g}, the largest log-ratio of the two laws"
        raise InvalidParameter("epsilon", epsilon, expected)
    return np.maximum(0.0, (math.exp(epsilon) * low - high) / math.expm1(epsilon))
