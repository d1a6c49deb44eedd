"""Snapshots: whether a ledger is opened on the data that it was used with before.

A keyed hash of the data is kept beside the ledger, readable by the owner only. It is as secret as the data.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from targetcharge.errors import LedgerError, NotAllowed

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.engines.engine import Engine

_ENDING: Final = "-private"
_VERSION: Final = 1


def check_snapshot(engine: Engine, ledger: Path, *, new_data: bool) -> None:
    """Refuse to go on with a ledger on other data than before, unless the owner says so.

    Raises:
        NotAllowed: if the data is not what it was.
        LedgerError: if the note beside the ledger cannot be read or written.
    """
    path = ledger.with_name(ledger.name + _ENDING)
    same: bool | None = None
    with suppress(OSError, ValueError, KeyError, TypeError):
        same = _is_noted(engine, path, new_data=new_data)
    if same is None:  # raised here, where what the note holds is not its context
        msg = (
            f"the private note {path} cannot be read or written: make its folder writable, or remove it if damaged"
        )
        raise LedgerError(msg)
    if not same:
        msg = (
            f"the data is not what it was when the ledger {ledger} was last used. If it grew or was corrected,"
            " and the same budget is to cover the new data too, open it with new_data=True; else"
            " choose another ledger"
        )
        raise NotAllowed(msg)


def _is_noted(engine: Engine, path: Path, *, new_data: bool) -> bool:
    """Return whether the data is what the note says; note it where there is no note, or it is to be a new one."""
    if new_data or not path.exists():
        _note(engine, path)
        return True
    noted = json.loads(path.read_text(encoding="utf-8"))
    return hmac.compare_digest(engine.fingerprint(bytes.fromhex(noted["key"])), noted["fingerprint"])


def _note(engine: Engine, path: Path) -> None:
    key = secrets.token_bytes(32)
    note = {"version": _VERSION, "key": key.hex(), "fingerprint": engine.fingerprint(key)}
    draft = path.with_name(f"{path.name}-{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(note, file)
    draft.replace(path)
