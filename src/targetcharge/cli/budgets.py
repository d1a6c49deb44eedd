"""`tct budgets`: the budgets of all tables that were opened with a ledger. Nothing in them is changed."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from targetcharge.cli.options import Json  # noqa: TC001 - typer reads the annotations
from targetcharge.cli.results import console
from targetcharge.ledger.budgets import budgets as all_budgets
from targetcharge.ledger.budgets import forget


def budgets(
    *,
    path: Annotated[
        str | None,
        typer.Option(
            "--forget",
            metavar="PATH",
            help="Forget ledgers that are gone, of a table that is no more: at PATH, or in a folder.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the tables that you opened, their ledgers, and what is left of each budget: those of one table add up.

    They come from the registry in your state folder, where opening a table enters its ledger.
    """
    listed = all_budgets() if path is None else forget(path)
    if as_json:
        typer.echo(json.dumps([known.plain() for known in listed], indent=2))
        return
    if path is not None:
        console().print(f"forgotten: {len(listed):,}")
    console().print(str(listed))
