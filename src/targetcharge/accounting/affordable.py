"""The other way round: the largest query ε that a budget affords.

>>> from targetcharge.accounting.composition import basic_epsilon
>>> round(largest_query_epsilon(lambda e: basic_epsilon(e, 10), 1.0), 6)
0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.checks import MAX_QUERY_EPSILON, MIN_QUERY_EPSILON
from targetcharge.numerics.search import largest_real

if TYPE_CHECKING:
    from collections.abc import Callable

_PRECISION = 1e-6


def largest_query_epsilon(
    epsilon_of: Callable[[float], float], epsilon: float, most: float = MAX_QUERY_EPSILON
) -> float | None:
    """Return a query ε whose whole session costs at most `epsilon`, within 1e-6 of the largest; None if none.

    Args:
        epsilon_of: the ε' of the whole session as an increasing function of the query ε.
        epsilon: the budget's ε.
        most: nothing above this is tried.
    """
    if epsilon_of(MIN_QUERY_EPSILON) > epsilon:
        return None
    # A session is never better than one of its computations, so a query ε above the budget's is hopeless.
    high = min(most, max(epsilon, MIN_QUERY_EPSILON))
    return largest_real(lambda query: epsilon_of(query) <= epsilon, MIN_QUERY_EPSILON, high, _PRECISION)
