"""The `tct` command and how its errors reach the user."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperOption

from targetcharge import __version__
from targetcharge.cli import audit, ledger, numbers, tables
from targetcharge.cli.errors import exit_code, given_by, sentence
from targetcharge.cli.monitor import monitor
from targetcharge.cli.plan import plan
from targetcharge.cli.report.page import report
from targetcharge.errors import TargetChargeError


class _Command(TyperCommand):
    """A command whose errors name its options, and not the parameters of the library."""

    def invoke(self, ctx: Any) -> object:  # noqa: ANN401 - of click, or of the copy of it that typer has
        """Run the command."""
        named: dict[str, str] = {}
        for given in self.params:
            place = given.opts[0] if isinstance(given, TyperOption) else given.metavar
            if given.nargs > 1 and given.metavar:  # LOW HIGH of --between: a name for each of its values
                named |= {value.lower(): f"{place} {value}" for value in given.metavar.split()}
            elif given.name and place:
                named[given.name] = place
        with given_by(named):
            return super().invoke(ctx)


app = typer.Typer(
    name="tct",
    help="Ask a sensitive dataset many questions; pay privacy only for the surprises.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
for command in (
    *(plan, tables.describe, tables.ask, tables.watch, tables.top),
    *(numbers.count, numbers.total, numbers.mean, numbers.quantile, numbers.histogram),
    *(monitor, ledger.meter, report, audit.audit, audit.attack, audit.certify),
):
    app.command("sum" if command is numbers.total else command.__name__, cls=_Command)(command)
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
        console = Console(stderr=True, soft_wrap=True)
        console.print(f"tct: {sentence(error)}", style="red", markup=False, highlight=False)
        sys.exit(exit_code(error))
