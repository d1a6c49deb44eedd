"""`tct monitor`: look at every day since the last one, and tell what fired.

Every alert leaves at least once, also after kill -9, and one run at a time. A note beside the ledger says how far
alerts were told. It is written after them: one that left just before a crash is told again, with the same seq. The
kernel's lock on the note makes runs wait for each other. The alerts file may be shared with monitors on other
ledgers, so it is locked while it is written.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

import targetcharge as tc
from targetcharge.cli.asking import is_first, opening_of, rehearsed, stoppable
from targetcharge.cli.errors import FIRED, INTERRUPTED, Mistake, given_by, written_at
from targetcharge.cli.monitor_file import read_file
from targetcharge.cli.questions import names_of
from targetcharge.cli.results import note
from targetcharge.cli.words import listed
from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import answers_in
from targetcharge.ledger.sqlite import inspect
from targetcharge.markup import counted
from targetcharge.queries.values import as_date
from targetcharge.tables.individual.departures import in_words
from targetcharge.tables.monitor import Monitor
from targetcharge.tables.monitor.alerts import Label
from targetcharge.tables.monitor.monitor import opening_for
from targetcharge.tables.monitor.rules import check_rule, day_column
from targetcharge.tables.prepared import TAKING_PART

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO

    from targetcharge.cli.asking import Stop
    from targetcharge.cli.monitor_file import MonitorFile
    from targetcharge.engines.engine import Engine
    from targetcharge.tables.monitor import Alert
    from targetcharge.tables.monitor.rules import CheckedRule
    from targetcharge.tables.opening import TableOpening

    Notify = Callable[[str], None]

_DAY: Final = dt.timedelta(days=1)
_ENDING: Final = "-monitor"
_LINE: Final = b'{"monitor"'  # how a line of alerts begins
_TAIL: Final = 1 << 16  # bytes at the end of the alerts file in which its last line begins, if it is one of ours


def monitor(
    questions: Annotated[Path, typer.Argument(metavar="QUESTIONS.yaml", help="Table, budget and rules.")],
    *,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="The last day to look at; yesterday if left out.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Of the first run: the first day; the last one if left out.")
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
    first, last = _date("--since", since), _date("--until", until) or _yesterday()
    run = MonitorRun(read_file(questions), first, last, (lambda _: None) if quiet else note)
    if dry_run:
        run.rehearse()
    else:
        with questions.open("rb") as file:  # runs of one file wait, also where there is no ledger yet
            _lock(file.fileno(), run.notify)
            run.look()


@final
@dataclass(frozen=True)
class MonitorRun:
    """One run of the rules of a file.

    Attributes:
        file: what is asked.
        first: the first day to look at, if the monitor has looked at none yet.
        last: the last day to look at.
        notify: tells something on the error stream.
    """

    file: MonitorFile
    first: dt.date | None
    last: dt.date
    notify: Notify

    def look(self) -> None:
        """Look at the days that are due; end with the code that says what happened, what needs a hand first."""
        opening = _opening(self.file)
        ledger = Path(str(opening.ledger))
        with ExitStack() as until_end:
            engine: Engine | None = None
            rules: list[CheckedRule] = []
            if is_first(opening):  # a mistake makes nothing
                engine = opening.engine()
                until_end.callback(engine.close)
                rehearsal = opening.rehearse(engine)
                rules = _checked_rules(rehearsal, self.file)
                self._days(Monitor(rehearsal, rules, self.file.day, name=self.file.name))
            noted = until_end.enter_context(note_locked(ledger, self.notify))
            stop = until_end.enter_context(stoppable())
            if is_first(opening):
                self.notify(f"making the ledger {ledger}")
            else:  # maybe since the wait: then it says which files the source had
                engine = None
            table = until_end.enter_context(opening.open(engine or opening.engine(), grown=True))
            rules = rules or _checked_rules(table, self.file)
            checked = Monitor(table, rules, self.file.day, name=self.file.name)
            delivery = Delivery(noted, inspect(ledger).state.ledger, self.file.name, self.file.alerts)
            looked, fired, refusal = self._catch_up(checked, delivery, stop)
            left = f", {counted(table.meter.hits_left, 'hit')} left"
            if table.meter.individual:
                left = f"; numbers are {TAKING_PART}; {in_words(table.may_have_left())}"
            self.notify(f"{counted(looked, 'day')} looked at, {counted(fired, 'alert')}{left}")
        if stop.wanted:
            raise typer.Exit(INTERRUPTED)
        if refusal is not None:
            raise refusal
        if fired:
            raise typer.Exit(FIRED)

    def _catch_up(self, checked: Monitor, delivery: Delivery, stop: Stop) -> tuple[int, int, tc.Refused | None]:
        """Deliver what an earlier run did not, look at days; return how many, how many alerts, why it ended."""
        days = self._days(checked)
        looked, fired = 0, self._deliver(checked, delivery)
        try:
            for day in days:
                look = checked.look(day)
                looked += 1
                fired += self._deliver(checked, delivery)
                if look.refusal is not None:
                    left = listed([rule if key is None else f"{rule} {key}" for rule, key in look.unanswered])
                    self.notify(f"{day}: not answered: {left}")
                    return looked, fired, look.refusal
                if stop.wanted:
                    break
        except (KeyboardInterrupt, tc.ComputationFailed):  # what an engine makes of the second Ctrl-C
            if not stop.hurried:
                raise
        return looked, fired, None

    def _deliver(self, checked: Monitor, delivery: Delivery) -> int:
        alerts = checked.alerts(delivery.last_seq, former=True)
        delivery.deliver(alerts)
        for alert in alerts:
            self.notify(str(alert))
        return len(alerts)

    def _days(self, checked: Monitor) -> list[dt.date]:
        """Return the days to look at: from the last one on, if something about that is unanswered."""
        if self.first is not None and checked.last is not None:
            self.notify(f"--since is ignored: the monitor {checked.name!r} has looked at {checked.last} already")
        checked.check_day(self.last, "--until")
        start = checked.last or self.first or self.last
        if self.last < start:
            expected = f"{self.last} or earlier, the last day to look at"
            raise tc.InvalidParameter("--since", start.isoformat(), expected)
        days = [self.last] if self.file.day is None else tc.days(start, self.last).listed()
        return days if checked.due(days[0]) else days[1:]  # an earlier run looked at the last day

    def rehearse(self) -> None:
        """Print what would be asked first. The ledger is read and not opened: nothing is noted beside it."""
        opening = _opening(self.file)
        with rehearsed(opening, lambda table: _checked_rules(table, self.file)) as (table, rules):
            checked = Monitor(table, rules, self.file.day, name=self.file.name)
            if not is_first(opening):
                entries = inspect(Path(str(opening.ledger)), last=sys.maxsize).last
                checked.learn(answer for entry in entries for answer in answers_in(entry))
            days = self._days(checked)
            if not days:
                say("nothing is due\n")
                return
            span = f", from {days[0]} to {days[-1]}" if len(days) > 1 else ""
            say(f"{counted(len(days), 'day')} to look at{span}. Asked about {days[0]}:\n")
            for question in checked.due(days[0]):
                label = Label.read(question.label)
                say(f"\n{'' if label is None else label.words}\n{table.preview(question)}\n")


def _opening(file: MonitorFile) -> TableOpening:
    """Return how to open the table; refuse a place that alerts cannot be, or must not be, appended to."""
    opening = opening_for([rule for _, rule in file.rules], opening_of(file.source, file.options))
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


def _checked_rules(table: tc.Table, file: MonitorFile) -> list[CheckedRule]:
    """Return the rules, checked against the table's columns; a mistake in one names its place."""
    day, checked = day_column(table, file.day), []
    for place, rule in file.rules:
        with written_at(place), given_by(names_of(rule.where)):
            checked.append(check_rule(rule, table, day))
    return checked


def _date(option: str, text: str | None) -> dt.date | None:
    if text is None:
        return None
    day = as_date(text)
    if day is None:
        raise tc.InvalidParameter(option, text, "a date such as 2024-01-31")
    if day > (today := dt.date.today()):
        raise tc.InvalidParameter(option, text, f"{today} or earlier: a day that has come")
    return day


def _yesterday() -> dt.date:
    """Return the last day that is over both here and in UTC, of which the days of zoned times are."""
    return min(dt.date.today(), dt.datetime.now(dt.UTC).date()) - _DAY


@final
class Delivery:
    """Tells alerts on the standard output, and keeps them in a file; knows the last seq that the monitor told."""

    def __init__(self, note: FileIO, ledger: str, monitor: str, alerts: Path | None) -> None:
        """Go on where the last run on this ledger ended; one that was started anew counts from the beginning."""
        self._note = note
        self._ledger = ledger
        self._monitor = monitor
        self._alerts = alerts
        self._last_seqs = _noted(note, ledger)
        self.last_seq = self._last_seqs.get(monitor, 0)

    def deliver(self, alerts: Sequence[Alert]) -> None:
        """Tell alerts, and note that they were told; where that cannot be written, the next run tells them."""
        if not alerts:
            return
        lines = "".join(alert.to_json() + "\n" for alert in alerts)
        if self._alerts is not None:
            with _writing(f"the alerts file {self._alerts}"):
                _append(self._alerts, lines.encode())
        say(lines)
        self.last_seq = max(self.last_seq, *(alert.seq for alert in alerts))
        self._last_seqs[self._monitor] = self.last_seq
        with _writing("the note beside the ledger"):
            self._note.seek(0)
            self._note.truncate()
            _write(self._note, json.dumps({"ledger": self._ledger, "told": self._last_seqs}).encode())


def _noted(note: FileIO, ledger: str) -> dict[str, int]:
    """Return the last seqs by monitor; none if a crash tore the note, so that all is told again."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        content = json.loads(note.read())
        if content["ledger"] == ledger:
            return {str(name): int(seq) for name, seq in content["told"].items()}
    return {}


def say(lines: str) -> None:
    """Write lines to the standard output; a LedgerError if nobody reads it any more, say."""
    try:
        with _writing("the standard output"):
            typer.echo(lines, nl=False)
    except LedgerError:
        with suppress(OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - else Python tries again at its end
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise


@contextmanager
def note_locked(ledger: Path, notify: Notify) -> Iterator[FileIO]:
    """Open the note beside a ledger, when no other run of a monitor on it is under way; others wait for this."""
    try:
        note = _opened(ledger.with_name(ledger.name + _ENDING), os.O_RDWR, 0o600)
    except OSError as error:
        raise Mistake(str(ledger), f"this ledger cannot be written: {error.strerror}") from None
    with note:
        _lock(note.fileno(), notify)
        yield note


def _lock(file: int, notify: Notify) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        notify("waiting for another run of a monitor to end")
        fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def _writing(place: str) -> Iterator[None]:
    """Say which place could not be written, and that nothing is lost by it."""
    try:
        yield
    except OSError as error:
        untold = "What was published and not told is told by the next run"
        msg = f"{place} cannot be written: {error.strerror}. {untold}"
        raise LedgerError(msg) from None


def _append(path: Path, lines: bytes) -> None:
    """Append lines; first drop one of ours that a crash left unfinished (it is told again), and end other text."""
    with _opened(path, os.O_RDWR | os.O_APPEND, 0o644) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        start = file.seek(max(0, size - _TAIL))
        tail = file.read()
        last = tail[tail.rfind(b"\n") + 1 :]
        if last.startswith(_LINE) and (len(last) < len(tail) or not start):
            file.truncate(size - len(last))
        elif last:
            _write(file, b"\n")
        _write(file, lines)


def _opened(path: Path, flags: int, mode: int) -> FileIO:
    return open(os.open(path, flags | os.O_CREAT, mode), "r+b", buffering=0)  # noqa: PTH123 - with a mode


def _write(file: FileIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
    os.fsync(file.fileno())
