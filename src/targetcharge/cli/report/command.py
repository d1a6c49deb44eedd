"""`tct report`: write the page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from targetcharge.cli.place import ledger_of
from targetcharge.cli.report import writing
from targetcharge.cli.report.findings import Findings, gather
from targetcharge.cli.report.page import page
from targetcharge.cli.report.words import counted
from targetcharge.cli.tables.showing import note
from targetcharge.errors import LedgerError

_STANDARD: Final = Path("-")


def command(
    file: Annotated[
        str, typer.Argument(metavar="TABLE|LEDGER", help="The table, or its ledger.", show_default=False)
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The page, or - for the standard output. Left out: named as the ledger, in this folder.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write one HTML page about a ledger: guarantee, questions, hits, meter, what the noise means.

    It loads nothing, and holds public facts only: the table is not opened, pending outcomes are not read.
    """
    ledger = ledger_of(file)
    findings = gather(ledger)
    target = writing.place(ledger) if output is None else output
    if target != _STANDARD:
        writing.check(target, findings.identity)
    made = _page(findings)
    if target == _STANDARD:
        typer.echo(made, nl=False)
    else:
        writing.write(target, made)
        typer.echo(f"{target}: {counted(findings.answers, 'answer')}, {counted(findings.hits, 'hit')}")
        if show and typer.launch(str(target.resolve())):
            note(f"no browser was found: open {target} yourself")
    if findings.verdict.problem:
        msg = f"{findings.verdict.problem.rstrip('.')}. The report says so"
        raise LedgerError(msg)


def _page(findings: Findings) -> str:
    try:
        return page(findings, time.time())
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError):
        if not findings.verdict.problem:
            raise
    raise LedgerError(findings.verdict.problem)
