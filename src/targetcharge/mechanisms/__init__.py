"""Mechanisms: private algorithms, and wrappers that change what they publish.

>>> from targetcharge.randomness import SystemEntropy
>>> visits = [3, 1, 4, 1, 5]
>>> test = above_threshold(len, threshold=1000, epsilon=0.5)
>>> test.run(visits, SystemEntropy()) is None
True
"""

from targetcharge.mechanisms.algorithm import Algorithm, private
from targetcharge.mechanisms.batch import Batch, batch_by_key, batch_by_name
from targetcharge.mechanisms.choice import exponential, noisy_max, permute_and_flip
from targetcharge.mechanisms.counts import (
    above_threshold,
    between_thresholds,
    changed,
    noisy_count,
    side_of_threshold,
)
from targetcharge.mechanisms.distinct import distinct_count
from targetcharge.mechanisms.oracles import Oracle
from targetcharge.mechanisms.wrappers import agreement, boundary, from_opendp, twice

__all__ = [
    "Algorithm",
    "Batch",
    "Oracle",
    "above_threshold",
    "agreement",
    "batch_by_key",
    "batch_by_name",
    "between_thresholds",
    "boundary",
    "changed",
    "distinct_count",
    "exponential",
    "from_opendp",
    "noisy_count",
    "noisy_max",
    "permute_and_flip",
    "private",
    "side_of_threshold",
    "twice",
]
