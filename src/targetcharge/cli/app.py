"""The `tct` command and how its errors reach the user."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer
from rich.console import Console

from targetcharge import __version__
from targetcharge.cli import audit, ledger, plan, self_audit
from targetcharge.cli.exits import exit_code
from targetcharge.cli.mistakes import spelled
from targetcharge.cli.monitor import command as monitor
from targetcharge.cli.report import command as report
from targetcharge.cli.tables import ask, describe, meter, top, watch
from targetcharge.errors import TargetChargeError

app = typer.Typer(
    name="tct",
    help="Ask a sensitive dataset many questions; pay privacy only for the surprises.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.command("plan")(plan.command)
app.command("describe")(describe.command)
app.command("ask")(ask.command)
app.command("watch")(watch.command)
app.command("top")(top.command)
app.command("monitor")(monitor.command)
app.command("meter")(meter.command)
app.command("report")(report.command)
app.command("audit")(audit.command)
app.command("attack")(self_audit.attack)
app.command("certify")(self_audit.certify)
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
        app()
    except TargetChargeError as error:
        Console(stderr=True, soft_wrap=True).print(
            spelled(f"tct: {error}"), style="red", markup=False, highlight=False
        )
        sys.exit(exit_code(error))
