"""Delivery: every alert leaves at least once, also after kill -9, and one run at a time.

A note beside the ledger says how far alerts were told. It is written after them: an alert that left just before a
crash is told again, with the same seq. The kernel's lock on the note makes runs wait for each other. The alerts
file may be shared with monitors on other ledgers, so it is locked while it is written.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import typer

from targetcharge.cli.mistakes import Mistake
from targetcharge.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO
    from pathlib import Path

    from targetcharge.tables.monitor import Alert

_ENDING: Final = "-monitor"
_LINE: Final = b'{"monitor"'
"""How a line of alerts begins."""

_TAIL: Final = 1 << 16
"""Bytes at the end of the alerts file in which its last line begins, if it is one of ours."""

_WAITING: Final = "waiting for another run of a monitor to end"


@final
@dataclass(frozen=True)
class _Note:
    """How far alerts were told.

    Attributes:
        ledger: which one it is about; another one in the same place starts from the beginning.
        told: the seq of the last alert of each monitor.
    """

    ledger: str = ""
    told: dict[str, int] = field(default_factory=dict)


@final
class Delivery:
    """Tells alerts on the standard output, and keeps them in a file.

    Attributes:
        told: the seq of the last alert that was told by a monitor of this name.
    """

    def __init__(self, note: FileIO, monitor: str, alerts: Path | None) -> None:
        """Write to these files, once it is known which ledger they are about."""
        self._note = note
        self._monitor = monitor
        self._alerts = alerts
        self._known = _Note()
        self.told = 0

    def resume(self, ledger: str) -> None:
        """Go on where the last run on this ledger ended; one that was started anew counts from the beginning."""
        kept = _read(self._note)
        self._known = kept if kept.ledger == ledger else _Note(ledger)
        self.told = self._known.told.get(self._monitor, 0)

    def tell(self, alerts: Sequence[Alert]) -> None:
        """Tell alerts, and note that they were told.

        Raises:
            LedgerError: if one of the places cannot be written. Then the note is as it was, and the next run tells
                them again.
        """
        if not alerts:
            return
        lines = "".join(alert.to_json() + "\n" for alert in alerts)
        if self._alerts is not None:
            with _told(f"the alerts file {self._alerts}"):
                _append(self._alerts, lines.encode())
        say(lines)
        self.told = max(self.told, *(alert.seq for alert in alerts))
        self._known.told[self._monitor] = self.told
        with _told("the note beside the ledger"):
            self._note.seek(0)
            self._note.truncate()
            _write(self._note, json.dumps(vars(self._known)).encode())


def say(lines: str) -> None:
    """Write lines to the standard output.

    Raises:
        LedgerError: if it cannot be written, such as where nobody reads it any more.
    """
    try:
        with _told("the standard output"):
            typer.echo(lines, nl=False)
    except LedgerError:
        with suppress(OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - else Python tries again at its end
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise


@contextmanager
def alone(questions: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Let runs of one file wait for each other from their start, also where there is no ledger yet."""
    with questions.open("rb") as file:
        _lock(file.fileno(), tell)
        yield


@contextmanager
def delivery(ledger: Path, monitor: str, alerts: Path | None, tell: Callable[[str], None]) -> Iterator[Delivery]:
    """Wait until no other run of a monitor on this ledger is under way; others wait until this one ends.

    Args:
        ledger: beside which the note is.
        monitor: its name.
        alerts: the file of alerts, if there is to be one; made for the first of them.
        tell: says that it waits.

    Raises:
        Mistake: if nothing can be written beside the ledger.
    """
    try:
        note = _opened(ledger.with_name(ledger.name + _ENDING), os.O_RDWR, 0o600)
    except OSError as error:
        raise Mistake(str(ledger), f"this ledger cannot be written: {error.strerror}") from None
    with note:
        _lock(note.fileno(), tell)
        yield Delivery(note, monitor, alerts)


def _opened(path: Path, flags: int, mode: int) -> FileIO:
    """Open a file to read and write; make it if there is none."""
    return open(os.open(path, flags | os.O_CREAT, mode), "r+b", buffering=0)  # noqa: PTH123 - with a mode


def _lock(file: int, tell: Callable[[str], None]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell(_WAITING)
        fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def _told(place: str) -> Iterator[None]:
    """Say which place could not be written, and that nothing is lost by it."""
    try:
        yield
    except OSError as error:
        problem = error.strerror
    else:
        return
    msg = f"{place} cannot be written: {problem}. What was published and not told is told by the next run"
    raise LedgerError(msg)


def _append(path: Path, lines: bytes) -> None:
    with _opened(path, os.O_RDWR | os.O_APPEND, 0o644) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _mend(file)
        _write(file, lines)


def _mend(file: FileIO) -> None:
    """Drop a line of ours that a crash left unfinished: its alert is told again. Other text is left, and ended."""
    size = file.seek(0, os.SEEK_END)
    start = file.seek(max(0, size - _TAIL))
    tail = file.read()
    last = tail[tail.rfind(b"\n") + 1 :]
    if last.startswith(_LINE) and (len(last) < len(tail) or not start):
        file.truncate(size - len(last))
    elif last:
        _write(file, b"\n")


def _read(note: FileIO) -> _Note:
    """Return what was told; nothing if a crash tore the note, so that all is told again."""
    try:
        found = json.loads(note.read())
        return _Note(str(found["ledger"]), {str(name): int(seq) for name, seq in found["told"].items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return _Note()


def _write(file: FileIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
    os.fsync(file.fileno())
