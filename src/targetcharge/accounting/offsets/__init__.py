"""Secret offsets: the guarantee of a session whose numbers share one, and the least noise that a budget allows.

>>> from targetcharge.accounting.budget import Budget
>>> round(offset_epsilon(0.3, 0.1, 100, 1e-6, "gumbel", "at least"), 2)
2.43
>>> round(least_noise(Budget(1.0, 1e-6), 20).standard_deviation, 1)
15.4
"""

from targetcharge.accounting.offsets.bounds import (
    gumbel_delta,
    gumbel_epsilon,
    gumbel_hits,
    offset_delta,
    offset_epsilon,
    offset_hits,
)
from targetcharge.accounting.offsets.least_noise import LeastNoise, least_noise
from targetcharge.accounting.offsets.noise import OffsetNoise

__all__ = [
    "LeastNoise",
    "OffsetNoise",
    "gumbel_delta",
    "gumbel_epsilon",
    "gumbel_hits",
    "least_noise",
    "offset_delta",
    "offset_epsilon",
    "offset_hits",
]
