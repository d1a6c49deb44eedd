"""Mechanisms: private algorithms, and wrappers that change what they publish. One file each.

>>> from targetcharge.randomness import SystemEntropy
>>> visits = [3, 1, 4, 1, 5]
>>> test = above_threshold(len, threshold=1000, epsilon=0.5)
>>> test.run(visits, SystemEntropy()) is None
True
"""

from targetcharge.mechanisms.algorithm import Algorithm, Oracle
from targetcharge.mechanisms.battery import Battery, batch, battery
from targetcharge.mechanisms.between import between_thresholds
from targetcharge.mechanisms.boundary_wrapper import boundary
from targetcharge.mechanisms.change import changed
from targetcharge.mechanisms.count import noisy_count
from targetcharge.mechanisms.declared import private
from targetcharge.mechanisms.distinct_count import distinct_count
from targetcharge.mechanisms.exponential_mechanism import exponential
from targetcharge.mechanisms.noisy_maximum import noisy_max
from targetcharge.mechanisms.opendp_measurement import from_opendp
from targetcharge.mechanisms.permute_and_flip import permute_and_flip
from targetcharge.mechanisms.run_twice import agreement, twice
from targetcharge.mechanisms.series import Series
from targetcharge.mechanisms.side import side_of_threshold
from targetcharge.mechanisms.threshold import above_threshold

__all__ = [
    "Algorithm",
    "Battery",
    "Oracle",
    "Series",
    "above_threshold",
    "agreement",
    "batch",
    "battery",
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
