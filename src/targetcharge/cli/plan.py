"""`tct plan`: what a budget buys under each accounting; and files of pictures, whose endings choose the format."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting.catalogue import HITS
from targetcharge.accounting.plan import INDIVIDUAL, SPARSE, TABLE
from targetcharge.cli.options import Json  # noqa: TC001 - typer reads the annotations
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from targetcharge.accounting.plan import PlanRow
    from targetcharge.accounting.targets import Target

_POINTS: Final = 7
_MOST_HITS: Final = 100
_STYLES: Final = {
    "basic composition": ("0.75", 1.2),
    "advanced composition": ("0.55", 1.2),
    "optimal composition": ("0.3", 1.6),
    "paper, simple Chernoff": ("#fdbe85", 1.5),
    "paper, raw Chernoff": ("#fd8d3c", 1.5),
    "paper, exact tail": ("#d94701", 1.5),
    "Rényi": ("#6baed6", 2.2),
    "exact": ("#08519c", 2.2),
    TABLE: ("#238b45", 3.0),
    SPARSE: ("#005a32", 3.0),
}
"""Colour and width of a line; others are red."""

Width = Annotated[int | None, typer.Option(help="Integers in the band, for --target between.")]
Q = Annotated[float | None, typer.Option(help="The declared q, for --target q.")]
TargetName = Literal["not-prior", "disagreement", "boundary", "between", "q", "everything"]
TargetOption = Annotated[
    TargetName,
    typer.Option(
        metavar="TARGET", help="What a hit is: not-prior, disagreement, boundary, between, q or everything."
    ),
]


def plan(
    *,
    epsilon: Annotated[float, typer.Option(help="ε of the whole session.")],
    delta: Annotated[float, typer.Option(help="δ of the whole session.")],
    query_epsilon: Annotated[float | None, typer.Option(help="ε of one computation: how many hits?")] = None,
    hits: Annotated[int | None, typer.Option(help="A number of hits: which query ε?")] = None,
    hits_per_unit: Annotated[
        int | None, typer.Option(help="The most of --hits that one unit contributes to, for a budget for each.")
    ] = None,
    target: TargetOption = "not-prior",
    width: Width = None,
    q: Q = None,
    caution: Annotated[float | None, typer.Option(help="Of --target boundary; 1 as in the paper.")] = None,
    as_json: Json = False,
    plot: Annotated[Path | None, typer.Option(help="Draw noise against hits into this file.")] = None,
) -> None:
    """Show what a budget buys under each accounting: hits for a query ε, or the query ε for a number of hits."""
    budget = tc.Budget(epsilon, delta)
    planned = tc.plan(
        budget,
        query_epsilon=query_epsilon,
        hits=hits,
        hits_per_unit=hits_per_unit,
        target=target_of(target, width, q, caution),
    )
    if plot is not None:
        _draw(planned, plot)
    if as_json:
        typer.echo(json.dumps(planned.as_dict(), indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(_table(planned))
    if planned.advice:
        console.print(planned.advice, highlight=False)
    if plot is not None:
        console.print(f"picture: {plot}", highlight=False)


def target_of(name: TargetName, width: int | None, q: float | None, caution: float | None = None) -> Target:
    """Return the target that the options name."""
    owners: dict[str, tuple[str, float | None]] = {"width": ("between", width), "q": ("q", q)}
    if caution is not None:
        owners["caution"] = "boundary", caution
    for option, (owner, value) in owners.items():
        if (value is not None) != (name == owner):
            raise InvalidParameter(f"--{option}", value, f"given with --target {owner}, and only with it")
    if width is not None and width < 1:
        raise InvalidParameter("--width", width, "at least 1")
    targets: dict[TargetName, Target] = {
        "not-prior": tc.NotPrior(prior=False),
        "disagreement": tc.Disagreement(),
        "boundary": tc.Boundary(1.0 if caution is None else caution),
        "between": tc.Between(1, width or 1),
        "q": tc.QTarget(1.0 if q is None else q, frozenset()),
        "everything": tc.Everything(),
    }
    return targets[name]


def _table(planned: tc.Plan) -> Table:
    table = Table(title=planned.title, title_justify="left")
    heads, rows = planned.table_in_words
    for head in heads:
        table.add_column(head, justify="right" if head in ("buys", "query ε", "noise") else "left")
    for row in rows:
        table.add_row(*row, style="bold" if row[0] in ("exact", TABLE, INDIVIDUAL, SPARSE) else None)
    return table


def _draw(planned: tc.Plan, file: Path) -> None:
    """Draw the standard deviation of an answer against the hits that a budget shall buy, by accounting."""
    figure = new_figure(file)
    bought = max((row.hits or 0 for row in planned.rows if row.pays_for == HITS), default=0)
    counts = np.unique(np.geomspace(1, min(max(10, 2 * bought), _MOST_HITS), _POINTS).round().astype(int)).tolist()
    lines: dict[str, list[PlanRow]] = {}
    for count in counts:
        with suppress(InvalidParameter):  # at no query ε
            for row in tc.plan(planned.budget, hits=count, target=planned.target).all_rows:
                lines.setdefault(row.accounting, []).append(row)
    axes = figure.add_subplot()
    for name, rows in lines.items():
        points = [(row.hits, row.standard_deviation) for row in rows if row.standard_deviation]
        color, width = _STYLES.get(name, ("tab:red", 1.5))
        asked = rows[0].pays_for != HITS
        label = f"{name} (questions)" if asked else name
        axes.plot(*zip(*points, strict=True), ":" if asked else "-", label=label, color=color, linewidth=width)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="hits (dotted: questions)",
        ylabel="standard deviation of an answer",
        title=f"A budget of ({planned.budget.epsilon:g}, {planned.budget.delta:g})",
    )
    save_figure(figure, axes, file)


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


def save_figure(figure: Figure, axes: Axes, file: Path) -> None:
    """Write a figure with a grid and a legend."""
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(fontsize="small")
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidParameter("--plot", str(file), f"a file that can be written ({error})") from None
