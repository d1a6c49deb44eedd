"""Streaming: estimates of a stream that may be chosen by who sees them; pay only for change.

>>> import targetcharge as tc
>>> tc.streaming.plan(tc.Budget(3.0, 1e-6), copies=1000).changes
289
"""

from targetcharge.streaming import apache
from targetcharge.streaming.planning import StreamPlan, plan, share_of_wrong_copies
from targetcharge.streaming.robust import RobustStream
from targetcharge.streaming.sketches import DistinctValues, SecondMoment

__all__ = [
    "DistinctValues",
    "RobustStream",
    "SecondMoment",
    "StreamPlan",
    "apache",
    "plan",
    "share_of_wrong_copies",
]
