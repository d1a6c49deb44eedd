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
from typing import TYPE_CHECKING, Final, final

import typer

from targetcharge.cli.errors import Mistake
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


@final
class Delivery:
    """Tells alerts on the standard output, and keeps them in a file.

    Attributes:
        last_seq: of the alerts that a monitor of this name told, in this run or before.
    """

    def __init__(self, note: FileIO, ledger: str, monitor: str, alerts: Path | None) -> None:
        """Go on where the last run on this ledger ended; one that was started anew counts from the beginning."""
        self._note = note
        self._ledger = ledger
        self._monitor = monitor
        self._alerts = alerts
        self._last_seqs = _noted(note, ledger)
        self.last_seq = self._last_seqs.get(monitor, 0)

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
    try:
        content = json.loads(note.read())
        if content["ledger"] == ledger:
            return {str(name): int(seq) for name, seq in content["told"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
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
def file_locked(questions: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Let runs of one file wait for each other from their start, also where there is no ledger yet."""
    with questions.open("rb") as file:
        _lock(file.fileno(), tell)
        yield


@contextmanager
def note_locked(ledger: Path, tell: Callable[[str], None]) -> Iterator[FileIO]:
    """Open the note beside a ledger, when no other run of a monitor on it is under way; others wait for this."""
    try:
        note = _opened(ledger.with_name(ledger.name + _ENDING), os.O_RDWR, 0o600)
    except OSError as error:
        raise Mistake(str(ledger), f"this ledger cannot be written: {error.strerror}") from None
    with note:
        _lock(note.fileno(), tell)
        yield note


def _lock(file: int, tell: Callable[[str], None]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell("waiting for another run of a monitor to end")
        fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def _writing(place: str) -> Iterator[None]:
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
    """Append lines; first drop one of ours that a crash left unfinished: its alert is told again.

    Other text is left, and ended.
    """
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
