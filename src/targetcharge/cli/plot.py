"""The plan's picture: ε' of the whole session against the number of hits, one line for each accounting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.accounting.plan import HITS, catalogue
from targetcharge.cli.figures import new_figure, save
from targetcharge.errors import TooLarge

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.accounting.plan import Accounting, Plan

_POINTS = 24
_STYLES: Final = {
    "basic composition": ("0.75", 1.2),
    "advanced composition": ("0.55", 1.2),
    "optimal composition": ("0.3", 1.6),
    "paper, simple Chernoff": ("#fdbe85", 1.5),
    "paper, raw Chernoff": ("#fd8d3c", 1.5),
    "paper, exact tail": ("#d94701", 1.5),
    "Rényi": ("#6baed6", 2.2),
    "exact": ("#08519c", 3.0),
}
"""Colour and width of a line; others are red."""


def draw(plan: Plan, file: Path) -> None:
    """Draw the plan into a file; its ending chooses the format.

    Raises:
        InvalidParameter: if matplotlib is missing or cannot write such a file.
    """
    figure = new_figure(file)
    query = next(row.query_epsilon for row in reversed(plan.rows) if row.query_epsilon)
    bought = [row.hits for row in plan.rows if row.pays_for == HITS and row.hits]
    most = max(10, 2 * max(bought))
    counts = np.unique(np.geomspace(1, most, _POINTS).round().astype(int))
    axes = figure.add_subplot()
    for way in catalogue(plan.target):
        values = _values(way, query, counts, plan.budget.delta)
        if values:
            color, width = _STYLES.get(way.name, ("tab:red", 1.5))
            asked = way.pays_for != HITS
            label = f"{way.name} (questions)" if asked else way.name
            axes.plot(
                counts[: len(values)], values, ":" if asked else "-", label=label, color=color, linewidth=width
            )
    axes.axhline(plan.budget.epsilon, color="black", linestyle="--", linewidth=1)
    axes.annotate(f"budget ε = {plan.budget.epsilon:g}", (counts[0], plan.budget.epsilon), va="bottom")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="hits (dotted: questions)",
        ylabel=f"ε of the whole session at δ = {plan.budget.delta:g}",
        title=f"Query ε = {query:.4g}",
    )
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(fontsize="small")
    save(figure, file)


def _values(way: Accounting, query: float, counts: np.ndarray, delta: float) -> list[float]:
    """Return ε' at each count, as far as this accounting can compute it."""
    values: list[float] = []
    if query <= way.max_epsilon:
        for count in counts:
            try:
                values.append(way.epsilon(query, int(count), delta))
            except TooLarge:
                break
    return values
