"""The `tct` command and how its errors reach the user."""

from __future__ import annotations

import io
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from targetcharge import __version__
from targetcharge.cli import audit, ledger, numbers, tables
from targetcharge.cli.append import append
from targetcharge.cli.budgets import budgets
from targetcharge.cli.command import Command
from targetcharge.cli.errors import exit_code, sentence
from targetcharge.cli.monitor import monitor
from targetcharge.cli.plan import plan
from targetcharge.cli.report.page import report
from targetcharge.cli.results import note
from targetcharge.errors import BudgetWarning, TargetChargeError

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(
    name="tct",
    help="Ask a sensitive dataset many questions; pay privacy only for the surprises.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
for command in (
    *(plan, tables.describe, tables.ask, tables.watch, tables.top),
    *(numbers.count, numbers.total, numbers.mean, numbers.quantile, numbers.histogram),
    *(append, monitor, ledger.meter, budgets, report, audit.audit, audit.attack, audit.certify),
):
    app.command("sum" if command is numbers.total else command.__name__, cls=Command)(command)
app.add_typer(ledger.app, name="ledger")


@app.callback(invoke_without_command=True)
def _main(
    *, version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False
) -> None:
    if version:
        typer.echo(f"targetcharge {__version__}")
        raise typer.Exit


def run() -> None:
    """Run the command; an error of ours becomes one plain sentence and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal shows ? for ε; that is no reason to fail
    try:
        with _warnings_as_notes():
            app()
    except TargetChargeError as error:
        console = Console(stderr=True, soft_wrap=True)
        console.print(f"tct: {sentence(error)}", style="red", markup=False, highlight=False)
        sys.exit(exit_code(error))


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print what the owner of a budget should know as a note, and nothing of where in the code it was said."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", BudgetWarning)
        show = warnings.showwarning

        def shown(message: Warning | str, *place: Any, **more: Any) -> None:  # noqa: ANN401 - as Python calls it
            if isinstance(message, BudgetWarning):
                note(sentence(message))
            else:
                show(message, *place, **more)

        warnings.showwarning = shown
        yield
