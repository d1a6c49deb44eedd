"""Targets: the sets of outcomes that cost.

>>> [type(target).__name__ for target in (NotPrior(0), Everything(), Boundary(), Disagreement())]
['NotPrior', 'Everything', 'Boundary', 'Disagreement']
"""

from targetcharge.accounting.targets.between import Between
from targetcharge.accounting.targets.boundary import Boundary
from targetcharge.accounting.targets.target import (
    NOT_PRIOR,
    Disagreement,
    Everything,
    Kind,
    NotPrior,
    QTarget,
    Target,
)

__all__ = [
    "NOT_PRIOR",
    "Between",
    "Boundary",
    "Disagreement",
    "Everything",
    "Kind",
    "NotPrior",
    "QTarget",
    "Target",
]
