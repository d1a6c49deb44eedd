"""The paper's q of each target: how often, at least, the part of a computation that uses the data hits.

`tc.accounting.best_q` verifies each of them over neighbouring pairs. Proofs: docs/theory/paper.md#q-values.

>>> round(not_prior(0.1), 4), round(disagreement(0.1), 4)
(0.475, 0.2585)
"""

from __future__ import annotations

import math


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
