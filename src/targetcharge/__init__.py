"""Ask a sensitive dataset many questions; pay privacy only for the surprises.

>>> import targetcharge as tc
>>> tc.plan(tc.Budget(1.0, 1e-6), query_epsilon=0.01)["exact"].hits
229
"""

from targetcharge import accounting, audit, mechanisms, sessions
from targetcharge.accounting.budget import Budget
from targetcharge.accounting.plan import Plan, PlanRow, plan
from targetcharge.accounting.targets import (
    Between,
    Boundary,
    Disagreement,
    Everything,
    NotPrior,
    QTarget,
)
from targetcharge.errors import (
    BudgetSpent,
    ComputationFailed,
    InvalidParameter,
    LedgerError,
    NotAllowed,
    Refused,
    TargetChargeError,
    TooLarge,
)
from targetcharge.ledger import Answer
from targetcharge.mechanisms import agreement, boundary, from_opendp, private, twice
from targetcharge.outcomes import BOUNDARY, Side
from targetcharge.sessions import Release, Session

__version__ = "0.1.0"

__all__ = [
    "BOUNDARY",
    "Answer",
    "Between",
    "Boundary",
    "Budget",
    "BudgetSpent",
    "ComputationFailed",
    "Disagreement",
    "Everything",
    "InvalidParameter",
    "LedgerError",
    "NotAllowed",
    "NotPrior",
    "Plan",
    "PlanRow",
    "QTarget",
    "Refused",
    "Release",
    "Session",
    "Side",
    "TargetChargeError",
    "TooLarge",
    "accounting",
    "agreement",
    "audit",
    "boundary",
    "from_opendp",
    "mechanisms",
    "plan",
    "private",
    "sessions",
    "twice",
]
