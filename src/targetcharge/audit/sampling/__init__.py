"""Sampling audits: what can be told from outside, by running code many times on two neighbouring inputs.

>>> from targetcharge.audit.sampling import Counts, epsilon_at_least
>>> epsilon_at_least(Counts(500, 1000), Counts(500, 1000), delta=0.0, alpha=0.001)
0.0
"""

from targetcharge.audit.sampling.black_box import black_box
from targetcharge.audit.sampling.bounds import (
    Counts,
    delta_at_least,
    detectable,
    epsilon_at_least,
    fewest_seen,
    rarest,
    runs_needed,
)
from targetcharge.audit.sampling.subject import check_neighbours, interaction

__all__ = [
    "Counts",
    "black_box",
    "check_neighbours",
    "delta_at_least",
    "detectable",
    "epsilon_at_least",
    "fewest_seen",
    "interaction",
    "rarest",
    "runs_needed",
]
