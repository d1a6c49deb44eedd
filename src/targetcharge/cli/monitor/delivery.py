"""Delivery: every alert leaves at least once, also after kill -9, and one run at a time.

A note beside the ledger says how far alerts were told. It is written after them: an alert that left just before a
crash is told again, with the same seq. The kernel's lock on the note makes runs wait for each other.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import typer

from targetcharge.cli.mistakes import Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO
    from pathlib import Path

    from targetcharge.streaming.monitoring import Alert

_ENDING: Final = "-monitor"


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

    def __init__(self, note: FileIO, monitor: str, alerts: FileIO | None) -> None:
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
        """Tell alerts, and note that they were told."""
        if not alerts:
            return
        lines = "".join(alert.to_json() + "\n" for alert in alerts)
        typer.echo(lines, nl=False)
        if self._alerts is not None:
            _write(self._alerts, lines.encode())
        self.told = max(self.told, *(alert.seq for alert in alerts))
        self._known.told[self._monitor] = self.told
        self._note.seek(0)
        self._note.truncate()
        _write(self._note, json.dumps(vars(self._known)).encode())


@contextmanager
def alone(questions: Path) -> Iterator[None]:
    """Let runs of one file wait for each other from their start, also where there is no ledger yet."""
    with questions.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def delivery(ledger: Path, monitor: str, alerts: Path | None) -> Iterator[Delivery]:
    """Wait until no other run of a monitor on this ledger is under way; others wait until this one ends.

    Raises:
        Mistake: if a file cannot be written.
    """
    kept = nullcontext() if alerts is None else _opened(alerts, 0o644)
    with kept as file, _opened(ledger.with_name(ledger.name + _ENDING), 0o600) as note:
        fcntl.flock(note, fcntl.LOCK_EX)
        if file is not None:
            _mend(file)
        yield Delivery(note, monitor, file)


def _opened(path: Path, mode: int) -> FileIO:
    """Open a file to read and write; make it if there is none."""
    try:
        return open(os.open(path, os.O_RDWR | os.O_CREAT, mode), "r+b", buffering=0)  # noqa: PTH123 - with a mode
    except OSError as error:
        problem = error.strerror
    raise Mistake(str(path), f"it cannot be written: {problem}")


def _mend(file: FileIO) -> None:
    """Drop a line that a crash left unfinished: its alert is told again."""
    whole = file.read().rfind(b"\n") + 1
    file.seek(whole)
    file.truncate()


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
