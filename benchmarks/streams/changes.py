"""What is paid for: the changes of a stream, not its updates."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.table import Table

import targetcharge as tc
from targetcharge.streaming import DistinctValues, RobustStream

if TYPE_CHECKING:
    from numpy.typing import NDArray

UPDATES: Final = int(os.environ.get("STREAM_UPDATES", "1000000"))
COPIES, TOLERANCE, SMALLEST = 400, 0.2, 100.0
BUDGET: Final = tc.Budget(5.0, 1e-6)


@dataclass(frozen=True)
class Followed:
    """A stream that was followed to its end.

    Attributes:
        updates: how many.
        distinct: different items in it.
        needed: the fewest changes that keep a value within the tolerance of the exact number.
        paid: changes that were paid for.
        error: the largest relative error of a published value, from twice the smallest value on.
    """

    updates: int
    distinct: int
    needed: int
    paid: int
    error: float


@cache
def followed(updates: int, distinct: int) -> Followed:
    """Follow a stream whose distinct items come at equal distances, among repetitions of earlier ones."""
    ranks = np.arange(updates) * distinct // updates
    new = np.diff(ranks, prepend=-1) > 0
    earlier = (np.random.default_rng(1).random(updates) * (ranks + 1)).astype(np.int64)
    stream = RobustStream(
        *(DistinctValues(), COPIES, BUDGET), tolerance=TOLERANCE, smallest=SMALLEST, estimates=updates
    )
    published = stream.follow(np.where(new, ranks, earlier))
    if len(published) < updates:
        msg = f"the budget ended after {len(published)} updates"
        raise RuntimeError(msg)
    truth = ranks + 1.0
    large = truth >= 2 * SMALLEST
    error = np.abs(published[large] / truth[large] - 1).max(initial=0.0)
    return Followed(updates, distinct, fewest(truth), stream.changes, float(error))


def fewest(truth: NDArray[np.floating]) -> int:
    """Return the fewest values that keep within the tolerance of rising numbers, from the smallest value on."""
    rising = truth[truth >= SMALLEST]
    return 0 if not len(rising) else 1 + int(np.log(rising[-1] / rising[0]) / (2 * np.log1p(TOLERANCE)))


def changes_table(updates: int | None = None) -> Table:
    """Return the table: streams of one length with more or fewer changes, then of other lengths with the same."""
    most = min(UPDATES, 50_000) if updates is None else updates
    table = Table("updates", "distinct items", "changes needed", "changes paid for", "largest error")
    table.title = f"{COPIES} copies of DistinctValues(), tolerance {TOLERANCE:g}, budget {BUDGET}"
    table.title_justify = "left"
    streams = [(most, size) for size in (100, 1_000, 10_000, most)] + [(most // 10, 1_000), (most // 50, 1_000)]
    for count, size in streams:
        found = followed(count, size)
        table.add_row(
            *(
                f"{found.updates:,}",
                f"{found.distinct:,}",
                str(found.needed),
                str(found.paid),
                f"{found.error:.0%}",
            )
        )
    return table
