"""Drawn docs/images/streams.svg: changes paid for against changes and updates, changes survived against copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from matplotlib.figure import Figure

from benchmarks.streams.changes import BUDGET, COPIES, TOLERANCE, UPDATES, followed
from benchmarks.streams.survival import BUDGETS, survived
from benchmarks.streams.survival import COPIES as NUMBERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACE: Final = Path("docs/images/streams.svg")

_BLUE, _GREY = "#1f5fa8", "#9a9a9a"
_SIZES: Final = (100, 1_000, 10_000, 100_000, 1_000_000)
_LENGTHS: Final = (10_000, 100_000, 1_000_000)


def draw() -> Figure:
    """Return the picture."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    by_changes, by_updates, by_copies = figure.subplots(1, 3)
    _by_changes(by_changes)
    _by_updates(by_updates)
    _by_copies(by_copies)
    for axes in (by_changes, by_updates, by_copies):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(bottom=0 if axes is not by_copies else None)
    return figure


def _by_changes(axes: Axes) -> None:
    found = [followed(UPDATES, size) for size in _SIZES if size <= UPDATES]
    axes.plot([each.needed for each in found], [each.paid for each in found], "o-", color=_BLUE)
    axes.set_title(f"{UPDATES:,} updates each", fontsize=10)
    axes.set_xlabel("fewest changes that keep within the tolerance")
    axes.set_ylabel("changes paid for")


def _by_updates(axes: Axes) -> None:
    found = [followed(length, 10_000) for length in _LENGTHS if length <= UPDATES]
    axes.semilogx([each.updates for each in found], [each.paid for each in found], "o-", color=_BLUE)
    axes.set_title("10,000 distinct items each", fontsize=10)
    axes.set_xlabel("updates")
    axes.set_ylabel("changes paid for")


def _by_copies(axes: Axes) -> None:
    for budget, style in zip(BUDGETS, ("^-", "s-", "o-"), strict=True):
        found = [(copies, changes) for copies in NUMBERS if (changes := survived(budget, copies))]
        axes.loglog(*zip(*found, strict=True), style, color=_BLUE, label=f"ε' = {budget.epsilon:g}")
    low, high = NUMBERS[2], NUMBERS[-1]
    top = survived(BUDGETS[1], high)
    axes.loglog([low, high], [top * (low / high) ** 2, top], "--", color=_GREY, label="square of the copies")
    axes.set_title("1,000,000 estimates, δ' = 1e-6", fontsize=10)
    axes.set_xlabel("copies")
    axes.set_xticks(NUMBERS, [f"{number:,}" for number in NUMBERS])
    axes.minorticks_off()
    axes.set_ylabel("changes survived")
    axes.legend(frameon=False, fontsize=8)


if __name__ == "__main__":
    draw().savefig(PLACE, metadata={"Date": None})
    print(f"{PLACE}: {COPIES} copies, tolerance {TOLERANCE:g}, budget {BUDGET}")
