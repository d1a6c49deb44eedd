"""Accounting: prices, meters and guarantees. Pure functions of public parameters; no data anywhere.

>>> round(exact_epsilon(0.1, 20, 1e-6), 3), round(paper_epsilon(0.1, 20, 1e-6), 3)
(4.294, 6.835)
"""

from targetcharge.accounting.baselines import (
    advanced_epsilon,
    basic_epsilon,
    between_thresholds_epsilon,
    between_thresholds_gap,
    optimal_delta,
    optimal_epsilon,
    selection_epsilon,
    sparse_vector_epsilon,
)
from targetcharge.accounting.budget import Budget
from targetcharge.accounting.exact import (
    ExactProfile,
    exact_delta,
    exact_epsilon,
    exact_hits,
    exact_profile,
)
from targetcharge.accounting.meter import Meter, Odometer
from targetcharge.accounting.offsets import (
    LeastNoise,
    OffsetNoise,
    gumbel_delta,
    gumbel_epsilon,
    gumbel_hits,
    least_noise,
    offset_delta,
    offset_epsilon,
    offset_hits,
)
from targetcharge.accounting.paper import overrun_probability, paper_epsilon
from targetcharge.accounting.qvalues import Split, best_q, split
from targetcharge.accounting.renyi import renyi_delta, renyi_epsilon, renyi_hits
from targetcharge.accounting.targets import Kind

__all__ = [
    "Budget",
    "ExactProfile",
    "Kind",
    "LeastNoise",
    "Meter",
    "Odometer",
    "OffsetNoise",
    "Split",
    "advanced_epsilon",
    "basic_epsilon",
    "best_q",
    "between_thresholds_epsilon",
    "between_thresholds_gap",
    "exact_delta",
    "exact_epsilon",
    "exact_hits",
    "exact_profile",
    "gumbel_delta",
    "gumbel_epsilon",
    "gumbel_hits",
    "least_noise",
    "offset_delta",
    "offset_epsilon",
    "offset_hits",
    "optimal_delta",
    "optimal_epsilon",
    "overrun_probability",
    "paper_epsilon",
    "renyi_delta",
    "renyi_epsilon",
    "renyi_hits",
    "selection_epsilon",
    "sparse_vector_epsilon",
    "split",
]
