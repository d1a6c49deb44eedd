"""`tct meter` and `tct ledger`: how a ledger stands, that nobody changed it, and that a copy is complete."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from targetcharge.accounting.targets.plain import costs_in_words
from targetcharge.cli.command import Command
from targetcharge.cli.errors import Mistake
from targetcharge.cli.options import Json  # noqa: TC001 - typer reads the annotations
from targetcharge.cli.results import console, note
from targetcharge.cli.words import moment
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import DeltaSpent, Restored, Spent, entry_of, text_of
from targetcharge.ledger.sqlite import Inspection, inspect, restore, verify
from targetcharge.ledger.sqlite.database import Database
from targetcharge.ledger.sqlite.witness import WitnessFile
from targetcharge.ledger.words import PICKED, key, line, outcome
from targetcharge.markup import counted
from targetcharge.numerics.rounding import from_grains
from targetcharge.tables.individual.departures import Departures
from targetcharge.tables.individual.departures import in_words as departed_in_words
from targetcharge.tables.monitor.alerts import asked_by
from targetcharge.tables.opening import ledger_place
from targetcharge.tables.prepared import TAKING_PART

if TYPE_CHECKING:
    from targetcharge.ledger import Entry, Terms

app = typer.Typer(help="Look at a ledger, or vouch for one from a backup.", no_args_is_help=True)

_SQLITE: Final = b"SQLite format 3\0"
_LONGEST: Final = 60
_HELD: Final = "held back by open sessions"
_OF_METER: Final = (
    "budget",
    "unit",
    "meter",
    "targets",
    "charging",
    "noise",
    "numbers",
    "hits used",
    "hits left",
    _HELD,
)

TableOrLedger = Annotated[
    str, typer.Argument(metavar="TABLE|LEDGER", help="The table, or its ledger.", show_default=False)
]


def ledger_of(file: str) -> Path:
    """Return the ledger beside a table, or the file itself if that is one."""
    path = Path(file)
    if path.is_file():
        with path.open("rb") as opened:
            if opened.read(len(_SQLITE)) == _SQLITE or WitnessFile.beside(path).path.exists():
                return path
    beside = Path(ledger_place(file))
    if beside.exists():
        return beside
    elsewhere = f"there is no ledger {beside}. If it is elsewhere, name it instead"
    raise Mistake(file, elsewhere if path.exists() else f"there is no such file, and no ledger {beside}")


def meter(file: TableOrLedger, *, as_json: Json = False) -> None:
    """Show budget, unit, hits used and left, and what a further hit costs. The table itself is not opened."""
    ledger = ledger_of(file)
    inspection = inspect(ledger)
    plain = _plain_meter(inspection)
    departed = _departed(ledger, inspection)
    if as_json:
        plain |= departed
        typer.echo(json.dumps({**plain, "ledger": str(ledger)}, indent=2))
    else:
        facts = _facts(inspection, departed)
        kind = "" if inspection.terms.meter != "renyi" else ", if it is of the declared kind"
        whose = " to each unit that contributed" if inspection.individual else ""
        rows: dict[str, str] = {
            "ledger": str(ledger),
            **{name: facts[name] for name in _OF_METER if name in facts},
            "a further hit costs": f"{plain['price']:.4g} of {plain['capacity']:.4g}{kind}{whose}",
        }
        wide = max(map(len, rows))
        for name, value in rows.items():
            console().print(f"{name:<{wide}}  {value}")
        console().print("The budget holds for all that was and will be published, however it ends.")
    if inspection.restored:
        note(inspection.restored)


def _departed(ledger: Path, inspection: Inspection) -> dict[str, int | None]:
    """Return at most how many units take no part any more, by its name, where each has a budget; else nothing."""
    if not inspection.individual:
        return {}
    departures = Departures.of_terms(inspection.terms)
    with closing(Database(ledger, read_only=True)) as database:
        for _, _, body, _ in database.rows():
            departures.add(entry_of(body))
    return {"may_have_left": departures.most()}


@app.command("show", cls=Command)
def show(
    file: TableOrLedger,
    *,
    last: Annotated[int, typer.Option(min=0, help="How many of the last entries to print.")] = 10,
    as_json: Json = False,
) -> None:
    """Print budget, hits used and left, and the last entries."""
    ledger = ledger_of(file)
    inspection = inspect(ledger, last)
    departed = _departed(ledger, inspection)
    if as_json:
        entries = [json.loads(text_of(entry)) for entry in inspection.last]
        typer.echo(json.dumps({**inspection.as_dict(), **departed, "entries": entries}, indent=2))
        return
    out = Console()
    table = Table("what", Column("is", overflow="fold"), show_header=False, box=None)
    for name, value in _facts(inspection, departed).items():
        table.add_row(name, escape(value))
    out.print(table)
    if inspection.last:
        table = Table("entry", "received", "what", "outcome", "price")
        for number, entry in enumerate(inspection.last, inspection.state.last_entry - len(inspection.last) + 1):
            table.add_row(str(number), *map(escape, _cells(entry)))
        out.print(table)
    if inspection.restored:
        out.print(f"[red]{escape(inspection.restored)}[/red]", highlight=False, soft_wrap=True)


@app.command("verify", cls=Command)
def check(file: TableOrLedger) -> None:
    """Compute every hash and every total again; an entry that was changed, dropped or put in is found."""
    ledger = ledger_of(file)
    typer.echo(f"{ledger}: {counted(verify(ledger), 'entry', 'entries')}, every hash and every total is right")


@app.command("restore", cls=Command)
def vouch(
    file: TableOrLedger,
    *,
    number: Annotated[int, typer.Option(min=0, help="Of the last entry that was ever published.")],
    head: Annotated[str, typer.Option("--hash", help="Of that entry: 64 digits and letters.")],
) -> None:
    """Vouch for a ledger from a backup: that it holds all that was ever published.

    Such a ledger has forgotten what was charged since, so it opens as spent. `tct ledger show` prints number and
    hash of the last entry: keep them elsewhere. If more was published than the copy holds, it stays spent.
    """
    ledger = ledger_of(file)
    restore(ledger, number, head)
    typer.echo(f"{ledger}: entry {number} is the last that was published, so it opens as it is")


def _facts(inspection: Inspection, departed: dict[str, int | None]) -> dict[str, str]:
    """Return all facts, in words."""
    terms, state = inspection.terms, inspection.state
    most = departed.get("may_have_left")
    numbers = {"numbers": f"{TAKING_PART}; {departed_in_words(most)}"} if departed else {}
    return {
        "budget": f"({terms.epsilon:g}, {terms.delta:g})",
        "unit": str(terms.unit) or "not said",
        "meter": f"{terms.meter}, query ε {terms.query_epsilon:g}",
        "targets": ", ".join(terms.targets_in_words),
        "charging": terms.charging,
        **_noise(terms),
        **numbers,
        "hits used": " / ".join(_used(inspection)),
        "hits left": f"{inspection.hits_left:,}" + (" for each unit, in all" if inspection.individual else ""),
        _HELD: counted(inspection.held.count, "hit"),
        "releases pending": f"{inspection.pending}",
        "δ of computations": f"{from_grains(state.sums.delta):g} of {terms.computation_delta:g}",
        "last entry": f"{state.last_entry}",
        "its hash": state.head.hex(),
    }


def _used(inspection: Inspection) -> list[str]:
    """Return how many hits each meter has counted, and what they cost where some cost several."""
    sums = inspection.state.sums
    if inspection.terms.meter == "renyi" or inspection.individual:
        return [f"{hits:,}" for hits in sums.hits]
    pairs = zip(sums.hits, sums.spent, strict=True)
    return [f"{hits:,}" + (f", which cost {spent:,}" if spent != hits else "") for hits, spent in pairs]


def _noise(terms: Terms) -> dict[str, str]:
    """Return what is known of the noise of counts."""
    if terms.standard_deviation is None:
        return {}
    common = ", a part of it common to all answers" if terms.offset is not None else ""
    return {"noise": f"standard deviation {terms.standard_deviation:.4g} for a count{common}"}


def _plain_meter(inspection: Inspection) -> dict[str, object]:
    """Return how the meter stands, as `tct ask --json` does, and what a hit of the declared kind costs on it."""
    terms, facts, which = inspection.terms, inspection.as_dict(), inspection.roomiest
    names = (
        "unit", "meter", "charging", "query_epsilon", "standard_deviation", "hits", "hits_left", "restored"
    )  # fmt: skip
    amount = float if terms.meter != "renyi" else from_grains  # in hits, or κ
    costs = {"price": amount(terms.typical[which]), "capacity": amount(terms.capacities[which])}
    return {**{name: facts[name] for name in names}, "guarantee": facts["budget"], **costs}


def _published(answer: Answer) -> str:
    """Return what an answer published, in a line: the key, too, if it has one; of a pick nothing else."""
    if answer.outcome is None and not answer.hit:
        return outcome(answer)
    if answer.key is None or not answer.hit:
        return line(answer.outcome, _LONGEST, repr)
    told = (key(answer),) if outcome(answer) == PICKED else (key(answer), line(answer.outcome, _LONGEST, repr))
    return ": ".join(told)


def _cells(entry: Entry) -> tuple[str, str, str, str]:
    match entry:
        case Answer():
            price, outcome = f"{entry.price:.4g}" if entry.hit else "free", _published(entry)
            called = f", {entry.call}" if entry.call != "ask" else ""
            if not called and not entry.question:  # the name of a table's question says it
                called = f", pays for {costs_in_words(*entry.targets)}"
            what = ": ".join(filter(None, (asked_by(entry), f"{entry.algorithm}{called}")))
            return moment(entry.received), what, outcome, price
        case BatchEntry(first=Answer(key=None)) if len(entry) == 1:
            return _cells(entry.answers[0])
        case BatchEntry():
            hits = entry.hits
            received, what, outcome, price = _cells(hits[0] if hits else entry.first)
            outcomes = outcome if len(hits) == 1 else counted(len(hits), "hit")
            count, paid = counted(len(entry), "answer"), f"{len(hits):,} × {price}" if hits else "free"
            return received, f"{count} of {what}", outcomes, price if len(hits) == 1 else paid
        case Spent(why, _, count, algorithm):
            return "", f"reservation {why} {algorithm}".strip(), "", counted(count, "hit")
        case DeltaSpent(grains):
            return "", "a computation's δ", "", f"{from_grains(grains):g}"
        case Restored(number):
            return "", f"the owner vouched for a copy that ends at entry {number}", "", ""
