"""Room: whether the meters cover a call, and what they show. Shared by all ledgers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.accounting.meter import Totals
from targetcharge.errors import BudgetSpent, NotAllowed

if TYPE_CHECKING:
    from targetcharge.accounting.meter import Meter
    from targetcharge.ledger.entries import Sums
    from targetcharge.ledger.ledger import Most


def check(meters: tuple[Meter, ...], most: Most, held: tuple[int, ...] | None = None) -> None:
    """Refuse a call that no meter has room for, or whose δ is not covered."""
    if most.delta:
        meters[0].check_delta(most.delta)
    refusals = []
    for index, (meter, price) in enumerate(zip(meters, most.prices, strict=True)):
        try:
            meter.check(price, most.count, held=held[index] if held else 0)
        except BudgetSpent as refusal:
            refusals.append(refusal)
        else:
            return
    raise refusals[0].with_traceback(None)


def load(meters: tuple[Meter, ...], sums: Sums) -> None:
    """Let the meters show these sums."""
    for meter, spent, hits in zip(meters, sums.spent, sums.hits, strict=True):
        meter.load(Totals(spent, hits, sums.delta))


def already_published(release: int) -> NotAllowed:
    """Return the error of a revision that comes too late."""
    return NotAllowed(f"release {release} was published: there is nothing left to revise")
