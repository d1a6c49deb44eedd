"""`tct monitor`: look at every day since the last one, and tell what fired."""

from __future__ import annotations

import datetime as dt
import os
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import targetcharge as tc
from targetcharge.cli.asking import stoppable
from targetcharge.cli.delivery import Delivery, file_locked, note_locked, say
from targetcharge.cli.errors import FIRED, INTERRUPTED, Mistake
from targetcharge.cli.monitor_file import read_file
from targetcharge.cli.opening import is_first, opening_of, rehearsed
from targetcharge.cli.results import note
from targetcharge.cli.words import counted, listed
from targetcharge.ledger.entries import answers_in
from targetcharge.ledger.sqlite import inspect
from targetcharge.queries.values import iso_date
from targetcharge.tables.monitor import Monitor
from targetcharge.tables.monitor.rules import check_rule, day_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from targetcharge.cli.asking import Stop
    from targetcharge.cli.monitor_file import MonitorFile
    from targetcharge.tables.opening import TableOpening

_DAY: Final = dt.timedelta(days=1)


def monitor(
    questions: Annotated[Path, typer.Argument(metavar="QUESTIONS.yaml", help="Table, budget and rules.")],
    *,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="The last day to look at; yesterday if left out.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Of the first run: the first day; the last one if left out."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask nothing: tell what would be asked.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on the error stream but errors.")] = False,
) -> None:
    """Ask the rules of a file about every day since the last run; pay only for what crosses or moves.

    Example: tct monitor flights.yaml --since 2013-01-01

    Alerts are JSON lines on the standard output. Exit codes: 0 nothing fired, 8 something fired, 2 mistake,
    3 refused or budget spent (also if something fired), 4 ledger or output cannot be written, 5 computation
    failed, 7 table cannot be read, 130 Ctrl-C.
    """
    file, first, last = read_file(questions), _date("--since", since), _date("--until", until) or _yesterday()
    tell = (lambda _: None) if quiet else note
    if dry_run:
        _rehearse(file, first, last, tell)
    else:
        with file_locked(questions, tell):
            _look(file, first, last, tell)


def _look(file: MonitorFile, first: dt.date | None, last: dt.date, tell: Callable[[str], None]) -> None:
    """Look at the days that are due; end with the code that says what happened, what needs a hand comes first."""
    opening = _opening(file)
    ledger = Path(str(opening.ledger))
    if is_first(opening):  # a mistake makes nothing; after the wait the source may be another, and is opened anew
        with rehearsed(opening, lambda table: _days(_monitor(table, file), file, first, last)):
            pass
    with note_locked(ledger, tell) as noted, stoppable() as stop:
        if is_first(opening):
            tell(f"making the ledger {ledger}")
        with opening.open(opening.engine()) as table:
            checked = _monitor(table, file)
            delivery = Delivery(noted, inspect(ledger).state.ledger, file.name, file.alerts)
            _tell_of_since(checked, first, tell)
            looked, fired, stopped = _catch_up(checked, _days(checked, file, first, last), delivery, stop, tell)
            left = "" if table.meter.individual else f", {table.meter.hits_left:,} hits left"
            tell(f"{counted(looked, 'day')} looked at, {counted(fired, 'alert')}{left}")
    if stop.wanted:
        raise typer.Exit(INTERRUPTED)
    if stopped:
        raise tc.Refused(stopped)
    if fired:
        raise typer.Exit(FIRED)


def _catch_up(
    checked: Monitor, days: Iterable[dt.date], delivery: Delivery, stop: Stop, tell: Callable[[str], None]
) -> tuple[int, int, str]:
    """Look at days in their order; first tell what an earlier run published and did not tell.

    Returns:
        How many days were looked at, how many alerts were told, and why the budget does not cover more.
    """
    looked, fired = 0, _deliver(checked, delivery, tell)
    try:
        for day in days:
            look = checked.look(day)
            looked += 1
            fired += _deliver(checked, delivery, tell)
            if look.stopped:
                left = listed([rule if key is None else f"{rule} {key}" for rule, key in look.unanswered])
                tell(f"{day}: not answered: {left}")
                return looked, fired, look.stopped
            if stop.wanted:
                break
    except (KeyboardInterrupt, tc.ComputationFailed):  # what an engine makes of the second Ctrl-C
        if not stop.hurried:
            raise
    return looked, fired, ""


def _deliver(checked: Monitor, delivery: Delivery, tell: Callable[[str], None]) -> int:
    alerts = checked.alerts(delivery.last_seq, former=True)
    delivery.tell(alerts)
    for alert in alerts:
        tell(str(alert))
    return len(alerts)


def _rehearse(file: MonitorFile, first: dt.date | None, last: dt.date, tell: Callable[[str], None]) -> None:
    """Print what would be asked first. The ledger is read and not opened, so that nothing is noted beside it."""
    opening = _opening(file)
    with rehearsed(opening, lambda table: _monitor(table, file)) as (table, checked):
        if not is_first(opening):
            entries = inspect(Path(str(opening.ledger)), last=sys.maxsize).last
            checked.learn(answer for entry in entries for answer in answers_in(entry))
        _tell_of_since(checked, first, tell)
        days = _days(checked, file, first, last)
        if not checked.due(days[0]):  # the last day was answered
            days = days[1:]
        if not days:
            say("nothing is due\n")
            return
        say(f"{counted(len(days), 'day')} to look at, from {days[0]} to {days[-1]}. Asked about {days[0]}:\n")
        for question in checked.due(days[0]):
            say(f"\n{table.preview(question)}\n")


def _opening(file: MonitorFile) -> TableOpening:
    """Return how to open the table; refuse a place that alerts cannot be, or must not be, appended to."""
    opening = opening_of(file.source, file.options)
    if file.alerts is not None and (expected := _expected(file.alerts, file, Path(str(opening.ledger)))):
        raise Mistake(str(file.path), str(tc.InvalidParameter("alerts", str(file.alerts), expected)))
    return opening


def _expected(alerts: Path, file: MonitorFile, ledger: Path) -> str:
    """Return what a place of alerts must be and is not; empty if it harms no ledger, table or file of rules."""
    place, book, table = alerts.resolve(), ledger.resolve(), Path(file.source).resolve()
    if place == file.path.resolve():
        return "another file than this one"
    if place.parent == book.parent and place.name.startswith(book.name):
        return f"another file than the ledger {ledger} and those beside it"
    if place.is_relative_to(table) or fnmatch(str(place), str(table)):
        return "outside of the table"
    if place.exists() and not place.is_file():
        return "a regular file"
    if not place.parent.is_dir() or not os.access(place if place.exists() else place.parent, os.W_OK):
        return "a file that can be written"
    return ""


def _monitor(table: tc.Table, file: MonitorFile) -> Monitor:
    """Return the monitor; a mistake in a rule names its place."""
    day = day_column(table, file.day)
    for place, rule in file.rules:
        try:
            check_rule(rule, table, day)
        except tc.InvalidParameter as error:
            raise Mistake(place, str(error)) from None
        except tc.NotAllowed as error:
            msg = f"{place}: {error}"
            raise tc.NotAllowed(msg) from None
    return Monitor(table, [rule for _, rule in file.rules], file.day, name=file.name)


def _days(checked: Monitor, file: MonitorFile, first: dt.date | None, last: dt.date) -> list[dt.date]:
    """Return the days to look at: from the last one on, of which something may be unanswered."""
    checked.check_day(last, "--until")
    start = checked.last or first or last
    if last < start:
        raise tc.InvalidParameter("--since", start.isoformat(), f"{last} or earlier, the last day to look at")
    return [last] if file.day is None else tc.days(start, last).listed()


def _tell_of_since(checked: Monitor, first: dt.date | None, tell: Callable[[str], None]) -> None:
    if first is not None and checked.last is not None:
        tell(f"--since is ignored: the monitor {checked.name!r} has looked at {checked.last} already")


def _date(option: str, text: str | None) -> dt.date | None:
    if text is None:
        return None
    try:
        day = iso_date(text)
    except ValueError:
        raise tc.InvalidParameter(option, text, "a date such as 2024-01-31") from None
    if day > (today := dt.date.today()):
        raise tc.InvalidParameter(option, text, f"{today} or earlier: a day that has come")
    return day


def _yesterday() -> dt.date:
    """Return the last day that is over both here and in UTC, of which the days of zoned times are."""
    return min(dt.date.today(), dt.datetime.now(dt.UTC).date()) - _DAY
