"""`tct describe`: which columns a table has. From its schema; nothing comes from the rows."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import targetcharge as tc
from targetcharge.cli.tables.opening import types_of
from targetcharge.cli.tables.options import Source  # noqa: TC001 - typer reads the annotations
from targetcharge.cli.tables.showing import console, grid
from targetcharge.sessions.opening import MEMORY


def command(
    source: Source,
    *,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a DuckDB file with several tables.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="COLUMN=KIND", help="What a CSV file's column is.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a table's columns and what kind they are: what a question may name. No row is looked at."""
    unasked = tc.Budget(1.0, 1e-6)  # nothing is asked, so it is spent on nothing and kept nowhere
    with tc.open(source, tc.ROW, unasked, 0.05, ledger=MEMORY, table=table, types=types_of(types)) as found:
        columns = found.describe().columns
    if as_json:
        typer.echo(json.dumps({"columns": dict(columns)}, indent=2))
    else:
        console().print(grid(["column", "kind"], columns))
