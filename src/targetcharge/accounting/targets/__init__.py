"""Targets: the sets of outcomes that cost. One file each.

>>> [type(target).__name__ for target in (NotPrior(0), Everything(), Boundary(), Disagreement())]
['NotPrior', 'Everything', 'Boundary', 'Disagreement']
"""

from targetcharge.accounting.targets.between import Between
from targetcharge.accounting.targets.boundary import Boundary
from targetcharge.accounting.targets.disagreement import Disagreement
from targetcharge.accounting.targets.everything import Everything
from targetcharge.accounting.targets.not_prior import NotPrior
from targetcharge.accounting.targets.q_target import QTarget
from targetcharge.accounting.targets.target import Target

__all__ = [
    "Between",
    "Boundary",
    "Disagreement",
    "Everything",
    "NotPrior",
    "QTarget",
    "Target",
]
