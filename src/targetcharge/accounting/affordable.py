"""The other way round: the largest query ε that a budget affords.

>>> from targetcharge.accounting.composition import basic_epsilon
>>> round(largest_query_epsilon(lambda query: basic_epsilon(query, 10) <= 1.0, 1.0), 6)
0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.checks import MIN_QUERY_EPSILON
from targetcharge.numerics.search import largest_real

if TYPE_CHECKING:
    from collections.abc import Callable

_PRECISION = 1e-6


def largest_query_epsilon(affordable: Callable[[float], bool], most: float) -> float | None:
    """Return an affordable query ε, within 1e-6 of the largest up to `most`; None if there is none."""
    if most < MIN_QUERY_EPSILON or not affordable(MIN_QUERY_EPSILON):
        return None
    return largest_real(affordable, MIN_QUERY_EPSILON, most, _PRECISION)
