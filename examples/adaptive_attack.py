"""An adversary who sees every estimate breaks a sketch, and does not break a robust stream.

The stream is Σ f², the second moment of how often items come. The adversary sends one heavy item, then many light
ones. When an item raises the published estimate by less than it should, its random signs happen to cancel what is
there: it stays. Any other is taken back. The true moment grows, and the estimate goes to nothing.

Three defenders: one sketch; the mean of many copies, published as it is; and the same number of copies behind
private consensus, which tells the adversary only that the value has changed, a few times.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import targetcharge as tc
from targetcharge.randomness import SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Callable

    Update = Callable[[int, float], None]
    Look = Callable[[], float]

HEAVY, ROWS, COPIES = 300.0, 61, 300
BUDGET, TOLERANCE = tc.Budget(5.0, 1e-6), 0.2

console = Console()


@dataclass(frozen=True)
class Fight:
    """How an attack ended.

    Attributes:
        name: of the defender.
        truth: the second moment of the stream that the adversary chose.
        published: the estimate of it.
        changes: how many changes were paid for, if that is limited.
    """

    name: str
    truth: float
    published: float
    changes: int | None = None


def attack(name: str, update: Update, look: Look, rows: int, steps: int) -> tuple[float, float]:
    """Play the adversary; return the true moment and the last estimate.

    Args:
        name: what to show.
        update: takes in an item with a weight.
        look: returns the published estimate.
        rows: of all copies together: light items weigh what moves their mean most.
        steps: how many light items are tried.
    """
    update(0, HEAVY)
    truth, seen = HEAVY**2, look()
    for item in track(range(1, steps + 1), description=f"{name:<24}", console=console):
        weight = 0.8 * math.sqrt(max(seen, 1.0) / rows)
        update(item, weight)
        after = look()
        if after - seen < weight**2:
            truth, seen = truth + weight**2, after
        else:
            update(item, -weight)
            seen = look()
    return truth, seen


def without_privacy(name: str, copies: int, steps: int) -> Fight:
    """Attack the mean of some copies, published as it is."""
    defender = tc.streaming.SecondMoment(ROWS).copies(copies, SystemEntropy())

    def update(item: int, weight: float) -> None:
        defender.update(np.array([item], dtype=np.uint64), np.array([weight]))

    return Fight(name, *attack(name, update, lambda: float(defender.estimates().mean()), ROWS * copies, steps))


def with_privacy(name: str, copies: int, steps: int) -> tuple[Fight, tc.streaming.StreamPlan]:
    """Attack a robust stream."""
    stream = tc.streaming.RobustStream(
        *(tc.streaming.SecondMoment(ROWS), copies, BUDGET),
        tolerance=TOLERANCE,
        smallest=100.0,
        estimates=2 * steps,
    )
    truth, published = attack(name, stream.update, stream.estimate, ROWS * copies, steps)
    return Fight(name, truth, published, stream.changes), stream.plan


def main(copies: int, steps: int) -> list[Fight]:
    """Run the three fights and show them."""
    robust, plan = with_privacy(f"robust, {copies} copies", copies, steps)
    fights = [
        without_privacy("one sketch", 1, steps),
        without_privacy(f"mean of {copies} copies", copies, steps),
        robust,
    ]
    table = Table("defender", "true Σ f²", "published", "share of the truth", "changes paid for")
    for fight in fights:
        paid = "" if fight.changes is None else f"{fight.changes} of {plan.changes}"
        share = f"{fight.published / fight.truth:.1%}"
        table.add_row(fight.name, f"{fight.truth:,.0f}", f"{fight.published:,.0f}", share, paid)
    console.print(table)
    console.print(
        f"The robust stream has ε = {plan.query_epsilon:.3f} for each look and ε' = {BUDGET.epsilon:g} in all,"
        " for the randomness of its copies; the elements of the stream are not protected."
    )
    return fights


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=COPIES)
    parser.add_argument("--steps", type=int, default=30_000)
    arguments = parser.parse_args()
    main(arguments.copies, arguments.steps)
