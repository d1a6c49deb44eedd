"""`tct ledger`: look at a ledger file, and check that nobody changed it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from targetcharge.accounting.targets.plain import in_words
from targetcharge.cli.standing import facts, plain
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import DeltaSpent, Restored, Spent, text_of
from targetcharge.ledger.plain import to_plain
from targetcharge.ledger.sqlite import Inspection, inspect, verify
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from targetcharge.ledger import Entry

app = typer.Typer(help="Look at a ledger file. Nothing in it is changed.", no_args_is_help=True)

_MOST_SHOWN = 60

File = Annotated[Path, typer.Argument(help="The ledger file.", show_default=False)]


@app.command("show")
def show(
    file: File,
    *,
    last: Annotated[int, typer.Option(min=0, help="How many of the last entries to print.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print budget, hits used and left, and the last entries."""
    found = inspect(file, last)
    if as_json:
        typer.echo(json.dumps(_plain(found), indent=2))
        return
    console = Console()
    console.print(_summary(found))
    if found.last:
        console.print(_entries(found))
    if found.restored:
        console.print(f"[red]{escape(found.restored)}[/red]", highlight=False, soft_wrap=True)


@app.command("verify")
def check(file: File) -> None:
    """Compute every hash and every total again; an entry that was changed, dropped or put in is found."""
    count = verify(file)
    entries = "1 entry" if count == 1 else f"{count:,} entries"
    typer.echo(f"{file}: {entries}, every hash and every total is right")


def _summary(found: Inspection) -> Table:
    table = Table("what", Column("is", overflow="fold"), show_header=False, box=None)
    for name, value in facts(found).items():
        table.add_row(name, escape(value))
    return table


def _entries(found: Inspection) -> Table:
    table = Table("entry", "received", "what", "outcome", "price")
    first = found.state.number - len(found.last) + 1
    for number, entry in enumerate(found.last, first):
        table.add_row(str(number), *map(escape, _cells(entry)))
    return table


def _cells(entry: Entry) -> tuple[str, str, str, str]:
    match entry:
        case Answer():
            received = datetime.fromtimestamp(entry.received, UTC).strftime("%Y-%m-%d %H:%M:%S")
            price = f"{entry.price:.4g}" if entry.hit else "free"
            return received, f"{entry.algorithm}, {_asked(entry)}", _outcome(entry.outcome), price
        case BatchEntry():
            received, what, _, price = _cells(entry.first)
            count, paid = f"{len(entry):,} answer" + "s" * (len(entry) > 1), f"{len(entry.hit_places):,} × {price}"
            return received, f"{count} of {what}", f"from {entry.first.key!r} on", paid
        case Spent(why, _, count, algorithm):
            return "", f"reservation {why} {algorithm}".strip(), "", f"{count} hits"
        case DeltaSpent(grains):
            return "", "a computation's δ", "", f"{from_grains(grains):g}"
        case Restored(number):
            return "", f"the owner vouched for a copy that ends at entry {number}", "", ""


def _asked(answer: Answer) -> str:
    return in_words(*answer.targets) if answer.call == "ask" else answer.call


def _outcome(outcome: object) -> str:
    """Return a published outcome, cut to a line; in hexadecimal if Python refuses to write it in decimal."""
    try:
        text = repr(outcome)
    except ValueError:
        text = json.dumps(to_plain(outcome))
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


def _plain(found: Inspection) -> dict[str, object]:
    return {**plain(found), "entries": [json.loads(text_of(entry)) for entry in found.last]}
