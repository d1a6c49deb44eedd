"""Exact accounting: the best possible guarantee of a session, computed and certified from above.

>>> round(exact_epsilon(0.1, 20, 1e-6), 3)
4.294
"""

from targetcharge.accounting.exact.bounds import (
    ExactProfile,
    exact_delta,
    exact_epsilon,
    exact_hits,
    exact_profile,
)

__all__ = ["ExactProfile", "exact_delta", "exact_epsilon", "exact_hits", "exact_profile"]
