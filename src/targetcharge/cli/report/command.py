"""`tct report`: write the page, and never over anything but an earlier page about the same ledger."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from targetcharge.cli.errors import Mistake
from targetcharge.cli.ledger import TableOrLedger, ledger_of
from targetcharge.cli.results import note
from targetcharge.cli.words import counted
from targetcharge.errors import LedgerError

_STANDARD: Final = Path("-")
_OPTION: Final = "--output"
_ENDINGS: Final = (".db", ".ledger")


def report(
    file: TableOrLedger,
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
    from targetcharge.cli.report.history import read_history  # noqa: PLC0415 - other commands need none of it
    from targetcharge.cli.report.page import page, signature  # noqa: PLC0415 - as above: Jinja2

    ledger = ledger_of(file)
    history = read_history(ledger)
    place = page_place(ledger) if output is None else output
    if place != _STANDARD:
        _check(place, signature(history.identity).encode())
    html = page(history, time.time())
    if place == _STANDARD:
        typer.echo(html, nl=False)
    else:
        _write(place, html)
        contents = history.contents
        typer.echo(f"{place}: {counted(contents.answers, 'answer')}, {counted(contents.hits, 'hit')}")
        if show and typer.launch(str(place.resolve())):
            note(f"no browser was found: open {place} yourself")
    if history.problem:
        msg = f"{history.problem.rstrip('.')}. The report says so"
        raise LedgerError(msg)


def page_place(ledger: Path) -> Path:
    """Return where the page of a ledger goes if nobody says: into the current folder.

    >>> str(page_place(Path("/data/visits.parquet.ledger.db")))
    'visits.parquet.report.html'
    """
    name = ledger.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending) or name
    return Path(f"{name}.report.html")


def _check(output: Path, signature: bytes) -> None:
    """Refuse a place that holds anything but what begins with the signature of a page about the same ledger."""
    if not output.parent.is_dir():
        raise Mistake(_OPTION, f"there is no folder {output.parent}")
    if not os.path.lexists(output):
        return
    if not output.is_file():
        raise Mistake(_OPTION, f"{output} is no file that a report could replace: name another")
    try:
        with output.open("rb") as opened:
            begin = opened.read(len(signature))
    except OSError as error:
        raise Mistake(_OPTION, f"{output} cannot be read ({error.strerror})") from None
    if begin != signature:
        raise Mistake(_OPTION, f"{output} is no earlier report on this ledger: remove it, or name another file")


def _write(output: Path, page: str) -> None:
    """Write the page, as a whole or not at all."""
    target = output.resolve()
    made = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with made.open("x", encoding="utf-8", newline="\n") as opened:
            opened.write(page)
        os.replace(made, target)  # noqa: PTH105 - a test lets it fail
    except OSError as error:
        with suppress(OSError):
            made.unlink()
        raise Mistake(_OPTION, f"{output} cannot be written ({error.strerror})") from None
