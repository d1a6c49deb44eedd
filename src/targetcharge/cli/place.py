"""The place of a ledger: beside its table, or where somebody names it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from targetcharge.cli.mistakes import Mistake
from targetcharge.tables.opening import ledger_place

_SQLITE: Final = b"SQLite format 3\0"


def ledger_of(file: str) -> Path:
    """Return the ledger beside a table, or the file itself if that is one.

    Raises:
        Mistake: if there is none.
    """
    path = Path(file)
    if path.is_file():
        with path.open("rb") as opened:
            if opened.read(len(_SQLITE)) == _SQLITE:
                return path
    beside = Path(ledger_place(file))
    if beside.exists():
        return beside
    if not path.exists():
        raise Mistake(file, f"there is no such file, and no ledger {beside}")
    raise Mistake(file, f"there is no ledger {beside}. If it is elsewhere, name it instead")
