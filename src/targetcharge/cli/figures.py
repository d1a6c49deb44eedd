"""Figures: the pictures of `tct plan` and `tct audit`. Their files' endings choose the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.accounting.plan import HITS, catalogue
from targetcharge.errors import InvalidParameter, TooLarge

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from targetcharge.accounting.plan import Accounting, Plan
    from targetcharge.audit import Verdict

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


def new_figure(file: Path) -> Figure:
    """Return an empty figure that can be saved in this file: matplotlib, the folder and the ending are checked."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        expected = "left out, or matplotlib installed: pip install 'targetcharge[plot]'"
        raise InvalidParameter("--plot", str(file), expected) from None
    if not file.suffix:
        raise InvalidParameter("--plot", str(file), "a file name with an ending, such as plan.png or plan.svg")
    if not file.parent.is_dir():
        raise InvalidParameter("--plot", str(file), f"in a folder that exists; there is no {file.parent}")
    figure = Figure(figsize=(8, 5), layout="constrained")
    known = figure.canvas.get_supported_filetypes()
    if file.suffix[1:].lower() not in known:
        expected = f"a file that can be written: one of {', '.join(sorted(known))}"
        raise InvalidParameter("--plot", str(file), expected)
    return figure


def _save(figure: Figure, axes: Axes, file: Path) -> None:
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(fontsize="small")
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidParameter("--plot", str(file), f"a file that can be written ({error})") from None


def draw_plan(plan: Plan, file: Path) -> None:
    """Draw ε' of the whole session against the number of hits, one line for each accounting."""
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
    _save(figure, axes, file)


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


def draw_audit(verdict: Verdict, name: str, file: Path) -> None:
    """Draw the δ(ε) that a claim implies, and the δ(ε) that the runs show."""
    figure = new_figure(file)
    axes = figure.add_subplot()
    epsilons, claimed, attained = zip(*verdict.curve, strict=True)
    colour = "#08519c" if verdict.passed else "tab:red"
    axes.plot(epsilons, claimed, color="black", linestyle="--", linewidth=1.5, label="claimed: no more than this")
    axes.fill_between(epsilons, attained, color=colour, alpha=0.15)
    axes.plot(epsilons, attained, color=colour, linewidth=2.2, label="attained: at least this")
    axes.axvline(verdict.claimed, color="0.6", linewidth=1, label=f"claimed ε = {verdict.claimed:g}")
    word = "passed" if verdict.passed else "FAILED"
    axes.set(
        xlabel="ε",
        ylabel="δ",
        ylim=(0, None),
        xlim=(0, max(epsilons)),
        title=f"{name}: {word}, {verdict.runs:,} runs on each input, confidence {verdict.confidence:g}",
    )
    _save(figure, axes, file)
