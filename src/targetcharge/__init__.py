"""Ask a sensitive dataset many questions; pay privacy only for the surprises.

>>> import targetcharge as tc
>>> tc.plan(tc.Budget(1.0, 1e-6), query_epsilon=0.01)["exact"].hits
229
"""

from targetcharge import accounting
from targetcharge.accounting.budget import Budget
from targetcharge.accounting.plan import Plan, PlanRow, plan
from targetcharge.accounting.targets import (
    BOUNDARY,
    Between,
    Boundary,
    Disagreement,
    Everything,
    NotPrior,
    QTarget,
    Side,
)
from targetcharge.errors import (
    BudgetSpent,
    InvalidParameter,
    NotAllowed,
    Refused,
    TargetChargeError,
    TooLarge,
)

__version__ = "0.1.0"

__all__ = [
    "BOUNDARY",
    "Between",
    "Boundary",
    "Budget",
    "BudgetSpent",
    "Disagreement",
    "Everything",
    "InvalidParameter",
    "NotAllowed",
    "NotPrior",
    "Plan",
    "PlanRow",
    "QTarget",
    "Refused",
    "Side",
    "TargetChargeError",
    "TooLarge",
    "accounting",
    "plan",
]
