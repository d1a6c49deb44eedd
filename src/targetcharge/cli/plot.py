"""The plan's picture: ε' of the whole session against the number of hits, one line for each accounting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from targetcharge.accounting.catalogue import HITS, catalogue
from targetcharge.errors import InvalidParameter, TooLarge

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.accounting.catalogue import Accounting
    from targetcharge.accounting.plan import Plan

_POINTS = 24


def draw(plan: Plan, file: Path) -> None:
    """Draw the plan into a file; its ending chooses the format.

    Raises:
        InvalidParameter: if matplotlib is missing or cannot write such a file.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        expected = "left out, or matplotlib installed: pip install 'targetcharge[plot]'"
        raise InvalidParameter("--plot", str(file), expected) from None
    query = next(row.query_epsilon for row in reversed(plan.rows) if row.query_epsilon)
    bought = [row.hits for row in plan.rows if row.pays_for == HITS and row.hits]
    most = max(10, 2 * max(bought))
    counts = np.unique(np.geomspace(1, most, _POINTS).round().astype(int))
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for way in catalogue(plan.target):
        values = _values(way, query, counts, plan.budget.delta)
        if values:
            solid = way.pays_for == HITS
            axes.plot(
                counts[: len(values)],
                values,
                label=way.name if solid else f"{way.name} (questions)",
                linestyle="-" if solid else ":",
                linewidth=2.5 if way.name == "exact" else 1.3,
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
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidParameter("--plot", str(file), f"a file that can be written ({error})") from None


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
