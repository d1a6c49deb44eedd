"""Drawn docs/images/labels.svg: labels against ε' at one accuracy, and against accuracy at one ε'."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.pate import ours, peers
from benchmarks.pate.offers import BUDGETS, Offer, best, frontier
from benchmarks.pate.tables import LEVELS, bids
from benchmarks.pate.votes import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACE = Path("docs/images/labels.svg")
_GREY = "#7d8590"
"""Legible on white and on black."""

_LEVEL = LEVELS[1]
_FIXED = 5.0
_LINES = {
    ours.way("boundary", "permute-and-flip"): ("pay for doubt (boundary), any caution", "#d9480f", "o", "-"),
    ours.way(ours.PAPER, "permute-and-flip"): ("the same with caution 1, as in the paper", "#d9480f", "o", ":"),
    ours.way("twice", "permute-and-flip"): ("pay when two runs differ (twice)", "#e8a13a", "s", "-"),
    peers.TUNED: ("Confident-GNMax, best accounting, tuned", "#3b82f6", "^", "--"),
    peers.AS_PUBLISHED: ("Confident-GNMax, as published", "#14a08c", "v", ":"),
    peers.EXPONENTIAL: ("exponential, every request paid", "#a06cd5", "D", "-."),
}


def draw(offers: dict[float, list[Offer]], place: Path) -> None:
    """Drawn the picture into a file."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "labels", "font.size": 10}):
        figure = Figure(figsize=(9.6, 5.0), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for way, (name, colour, marker, dashes) in _LINES.items():
            look = {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 5, "label": name}
            found = [(each, best(offers[each], way, _LEVEL)) for each in BUDGETS]
            points = [(each, offer.labels) for each, offer in found if offer]
            left.plot([point[0] for point in points], [point[1] for point in points], **look)
            front = [offer for offer in frontier(offers[_FIXED], way) if offer.accuracy >= LEVELS[0]]
            look["marker"] = marker if len(front) == 1 else ""
            right.plot([100 * offer.accuracy for offer in front], [offer.labels for offer in front], **look)
        left.set(
            xlabel="ε' (δ' = 1e-5)", title=f"at least {_LEVEL:.1%} of the labels right", ylabel="labels bought"
        )
        right.set(xlabel="accuracy of the labels, %", title=f"ε' = {_FIXED:g}", xlim=(100 * LEVELS[0] - 0.1, 98.2))
        for axes in (left, right):
            _plain(axes)
        handles, names = left.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, labelcolor=_GREY)
        figure.savefig(place, transparent=True, metadata={"Date": None} if place.suffix == ".svg" else None)


def _plain(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.set_ylim(10, 6_000)
    axes.set_yticks([10, 30, 100, 300, 1_000, 3_000], ["10", "30", "100", "300", "1,000", "3,000"])
    axes.minorticks_off()
    axes.grid(color=_GREY, alpha=0.25, linewidth=0.6)
    axes.tick_params(colors=_GREY)
    axes.xaxis.label.set_color(_GREY)
    axes.yaxis.label.set_color(_GREY)
    axes.title.set_color(_GREY)
    for spine in axes.spines.values():
        spine.set_color(_GREY)


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else PLACE
    draw(bids(load()), where)
    print(where)
