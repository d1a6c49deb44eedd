"""What others offer for the same work, as plain functions with their source named.

They protect different things with different noise: read the docstrings before comparing.

>>> sparse_vector_epsilon(0.1, 5)
0.6...
"""

from __future__ import annotations

import math

from targetcharge import checks
from targetcharge.accounting.composition import optimal_epsilon


def sparse_vector_epsilon(query_epsilon: float, hits: int, *, monotone: bool = True) -> float:
    """Return ε' of the classic sparse vector technique with δ = 0.

    Laplace noise of scale 1/ε on the threshold, drawn once, and on every query: (c+1)ε for c positives when
    the queries are monotone (counts under adding or removing a unit all move the same way), (2c+1)ε otherwise.
    It answers "above" or "below" only: a noisy value on a hit costs ε more each time.

    Source: Lyu, Su, Li, "Understanding the sparse vector technique for differential privacy", VLDB 2017,
    Algorithm 7 and Theorem 5; Dwork and Roth, "Algorithmic foundations", section 3.6.
    """
    factor = 1 if monotone else 2
    return (1 + factor * checks.hits(hits)) * checks.query_epsilon(query_epsilon)


def between_thresholds_gap(query_epsilon: float, run_delta: float) -> float:
    """Return the gap between thresholds that Bun, Steinke and Ullman's BetweenThresholds needs, on counts.

    With noise of scale 1/ε on the queries a run, which ends at its first "between", is (6ε, δ)-DP provided
    the gap is at least (12/(6ε))·(ln(10/(6ε)) + ln(1/δ) + 1).

    Source: Bun, Steinke, Ullman, "Make up your mind: the price of online queries in differential privacy",
    SODA 2017 (noise Lap(2/ε) on the thresholds, Lap(6/ε) on the queries).
    """
    run_epsilon = 6 * checks.query_epsilon(query_epsilon)
    run_delta = checks.share_of_delta(run_delta, "run_delta")
    return 12 / run_epsilon * (math.log(10 / run_epsilon) - math.log(run_delta) + 1)


def between_thresholds_epsilon(query_epsilon: float, hits: int, delta: float) -> float:
    """Return ε' of `hits` runs of Bun, Steinke and Ullman's BetweenThresholds with query noise 1/ε.

    Half of δ' goes to the runs, half to optimal composition; the gap must be at least
    `between_thresholds_gap(query_epsilon, delta / (2 * hits))`.
    """
    run_epsilon = checks.query_epsilon(6 * checks.query_epsilon(query_epsilon), "6 * query_epsilon")
    return optimal_epsilon(run_epsilon, checks.hits(hits), checks.positive_delta(delta) / 2)


def selection_epsilon(query_epsilon: float, *, known_threshold: bool = False) -> float:
    """Return ε' of selecting the best of many private candidates, each of them ε-DP.

    3ε with a random (geometric) number of trials; 2ε when the first candidate above a known threshold is
    taken and the search gives up at random. One hit here costs `exact_epsilon(query_epsilon, 1, delta)` and
    tries every candidate once.

    Source: Liu and Talwar, "Private selection from private candidates", STOC 2019.
    """
    return (2 if known_threshold else 3) * checks.query_epsilon(query_epsilon)
