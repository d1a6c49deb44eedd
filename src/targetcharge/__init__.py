"""Ask a sensitive dataset many questions; pay privacy only for the surprises.

>>> import targetcharge as tc
>>> tc.plan(tc.Budget(1.0, 1e-6), query_epsilon=0.01)["exact"].hits
229
"""

from targetcharge import accounting, audit, learning, mechanisms, sessions, streaming, tables
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
    BudgetWarning,
    ComputationFailed,
    EngineError,
    InvalidKey,
    InvalidParameter,
    InvalidQuestion,
    LedgerError,
    NotAllowed,
    Refused,
    TargetChargeError,
    TooLarge,
)
from targetcharge.ledger import Answer
from targetcharge.ledger.budgets import budgets
from targetcharge.mechanisms import agreement, boundary, from_opendp, private, twice
from targetcharge.outcomes import BOUNDARY, LOW, MISSING, UNCHANGED, Side
from targetcharge.queries.keys import days, hours
from targetcharge.sessions import Release, Session
from targetcharge.tables import ROW, Answers, Monitor, Table, questions
from targetcharge.tables import open_table as open  # noqa: A004 - tc.open is what a reader expects

__version__ = "0.1.0"

__all__ = [
    "BOUNDARY",
    "LOW",
    "MISSING",
    "ROW",
    "UNCHANGED",
    "Answer",
    "Answers",
    "Between",
    "Boundary",
    "Budget",
    "BudgetSpent",
    "BudgetWarning",
    "ComputationFailed",
    "Disagreement",
    "EngineError",
    "Everything",
    "InvalidKey",
    "InvalidParameter",
    "InvalidQuestion",
    "LedgerError",
    "Monitor",
    "NotAllowed",
    "NotPrior",
    "Plan",
    "PlanRow",
    "QTarget",
    "Refused",
    "Release",
    "Session",
    "Side",
    "Table",
    "TargetChargeError",
    "TooLarge",
    "accounting",
    "agreement",
    "audit",
    "boundary",
    "budgets",
    "days",
    "from_opendp",
    "hours",
    "learning",
    "mechanisms",
    "open",
    "plan",
    "private",
    "questions",
    "sessions",
    "streaming",
    "tables",
    "twice",
]
