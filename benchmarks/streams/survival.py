"""How many changes a stream survives: it grows with the square of the copies."""

from __future__ import annotations

from typing import Final

from rich.table import Table

import targetcharge as tc
from targetcharge.streaming import plan

COPIES: Final = (125, 250, 500, 1_000, 2_000, 4_000)
BUDGETS: Final = (tc.Budget(1.0, 1e-6), tc.Budget(3.0, 1e-6), tc.Budget(8.0, 1e-6))
ESTIMATES: Final = 1_000_000


def survived(budget: tc.Budget, copies: int) -> int:
    """Return the changes that a budget covers, for a million estimates."""
    return plan(budget, copies, estimates=ESTIMATES).changes


def survival_table() -> Table:
    """Return the changes for some numbers of copies, and by how much they grow."""
    table = Table("copies", "query ε", *(f"changes, ({each.epsilon:g}, {each.delta:g})" for each in BUDGETS))
    table.title = f"changes survived in {ESTIMATES:,} estimates (and times those of half the copies)"
    table.title_justify = "left"
    before = [0] * len(BUDGETS)
    for copies in COPIES:
        found = [survived(budget, copies) for budget in BUDGETS]
        told = [
            f"{now:,}" + (f"  (× {now / earlier:.1f})" if earlier else "")
            for now, earlier in zip(found, before, strict=True)
        ]
        table.add_row(f"{copies:,}", f"{plan(BUDGETS[0], copies).query_epsilon:.4f}", *told)
        before = found
    return table
