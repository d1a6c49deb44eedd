"""Places: where alerts may be kept. Not where they would harm the ledger, the table, or the monitor's own file."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from targetcharge.cli.mistakes import Mistake
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from targetcharge.cli.monitor.files import MonitorFile


def check_alerts(file: MonitorFile, ledger: Path) -> None:
    """Refuse a place that alerts cannot be, or must not be, appended to. Nothing is made.

    Raises:
        Mistake: naming the file and its field.
    """
    if file.alerts is not None and (expected := _expected(file.alerts, file, ledger)):
        raise Mistake(str(file.path), str(InvalidParameter("alerts", str(file.alerts), expected)))


def _expected(alerts: Path, file: MonitorFile, ledger: Path) -> str:
    """Return what a place must be and is not; empty if it is good."""
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
