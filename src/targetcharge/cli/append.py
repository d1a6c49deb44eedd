"""`tct append`: add rows to a table, on the same budget."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from targetcharge.cli.asking import opening_of
from targetcharge.cli.errors import Mistake, given_by
from targetcharge.cli.options import Source, TableOptions
from targetcharge.tables.opening import new_ledger_place
from targetcharge.tables.snapshots import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def append(
    source: Source,
    more: Annotated[
        list[str],
        typer.Argument(metavar="MORE...", help="Files, folders or patterns of the same columns, to be added."),
    ],
    *,
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="The file that keeps the budget; beside the table.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a DuckDB file with several tables.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="The most to use before spilling to disk.")
    ] = None,
) -> None:
    """Add rows to a table that was asked before, on the same budget: each of MORE is its next snapshot.

    Example: tct append visits.parquet february.parquet

    The files stay where they are, and a note beside the ledger says which they are: later commands read them with
    the table, and refuse it if one of them has changed or is gone. Exit codes: 2 mistake, 3 refused, 4 ledger, 7
    table cannot be read.
    """
    place = Path(new_ledger_place(source) if ledger is None else ledger)
    if not place.exists():
        raise Mistake(
            source, f"there is no ledger {place} yet: ask the table first, or put all files into a folder"
        )
    opening = opening_of(source, TableOptions(ledger=ledger, table=table, memory=memory))
    _check_new(source, more, opening.appended)
    with opening.open(opening.engine(), grown=True) as opened, given_by({"source": "MORE"}):
        for path in more:
            typer.echo(f"{path} is snapshot {opened.append(path)} of {source}, on the same budget")


def _check_new(source: str, more: Sequence[str], appended: Sequence[str]) -> None:
    """Refuse what is in the table already: its rows would count twice."""
    whole, known = path_of(source), list(appended)
    for path in more:
        if Path(path_of(path)).is_relative_to(whole) or fnmatch(path_of(path), whole):
            folder = ": with --new-data the next question takes up what a folder has more" * Path(whole).is_dir()
            raise Mistake(path, f"it is in the table {source} already{folder}")
        if path_of(path) in known:
            raise Mistake(path, f"it was appended to {source} before")
        known.append(path_of(path))
