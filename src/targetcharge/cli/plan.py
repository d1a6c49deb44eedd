"""`tct plan`: what a budget buys under each accounting."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting.plan import HITS
from targetcharge.cli.figures import draw_plan
from targetcharge.cli.options import Json  # noqa: TC001 - typer reads the annotations

if TYPE_CHECKING:
    from targetcharge.accounting.targets import Target


Width = Annotated[int | None, typer.Option(help="Integers in the band, for --target between.")]
Q = Annotated[float | None, typer.Option(help="The declared q, for --target q.")]


class TargetName(StrEnum):
    """The targets one can plan for."""

    NOT_PRIOR = "not-prior"
    DISAGREEMENT = "disagreement"
    BOUNDARY = "boundary"
    BETWEEN = "between"
    Q = "q"
    EVERYTHING = "everything"


def plan(
    *,
    epsilon: Annotated[float, typer.Option(help="ε of the whole session.")],
    delta: Annotated[float, typer.Option(help="δ of the whole session.")],
    query_epsilon: Annotated[float | None, typer.Option(help="ε of one computation: how many hits?")] = None,
    hits: Annotated[int | None, typer.Option(help="A number of hits: which query ε?")] = None,
    target: Annotated[TargetName, typer.Option(help="What a hit is.")] = TargetName.NOT_PRIOR,
    width: Width = None,
    q: Q = None,
    caution: Annotated[
        float | None, typer.Option(help="How readily doubt is marked, for --target boundary; 1 as in the paper.")
    ] = None,
    as_json: Json = False,
    plot: Annotated[Path | None, typer.Option(help="Draw ε' against hits into this file.")] = None,
) -> None:
    """Show what a budget buys under each accounting: hits for a query ε, or the query ε for a number of hits."""
    budget = tc.Budget(epsilon, delta)
    found = tc.plan(budget, query_epsilon=query_epsilon, hits=hits, target=target_of(target, width, q, caution))
    if plot is not None:
        draw_plan(found, plot)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(_table(found, by_hits=query_epsilon is not None))
    if found.advice:
        console.print(found.advice, highlight=False)
    if plot is not None:
        console.print(f"picture: {plot}", highlight=False)


def target_of(name: TargetName, width: int | None, q: float | None, caution: float | None = None) -> Target:
    """Return the target that the options name."""
    if (width is not None) != (name is TargetName.BETWEEN):
        raise tc.InvalidParameter("--width", width, "given with --target between, and only with it")
    if (q is not None) != (name is TargetName.Q):
        raise tc.InvalidParameter("--q", q, "given with --target q, and only with it")
    if caution is not None and name is not TargetName.BOUNDARY:
        raise tc.InvalidParameter("--caution", caution, "given with --target boundary, and only with it")
    if width is not None:
        if width < 1:
            raise tc.InvalidParameter("--width", width, "at least 1")
        return tc.Between(1, width)
    if q is not None:
        return tc.QTarget(q, frozenset())
    plain: dict[TargetName, Target] = {
        TargetName.NOT_PRIOR: tc.NotPrior(prior=False),
        TargetName.DISAGREEMENT: tc.Disagreement(),
        TargetName.BOUNDARY: tc.Boundary(1.0 if caution is None else caution),
        TargetName.EVERYTHING: tc.Everything(),
    }
    return plain[name]


def _table(found: tc.Plan, *, by_hits: bool) -> Table:
    budget = found.budget
    given = f"query ε {found.rows[0].query_epsilon:g}" if by_hits else f"{found.rows[0].hits} hits"
    table = Table(title=f"A budget of ({budget.epsilon:g}, {budget.delta:g}) at {given}", title_justify="left")
    table.add_column("accounting")
    table.add_column("pays for")
    table.add_column("buys" if by_hits else "query ε", justify="right")
    noted = any(row.note for row in found.rows)
    if noted:
        table.add_column("note")
    for row in found.rows:
        query = "" if row.query_epsilon is None else f"{row.query_epsilon:.4g}"
        counted = "hits" if row.pays_for == HITS else "questions"
        bought = "" if row.hits is None else f"{row.hits:,} {counted}"
        cells = [row.accounting, row.pays_for, bought if by_hits else query]
        if noted:
            cells.append(row.note)
        table.add_row(*cells, style="bold" if row.accounting == "exact" else None)
    return table
