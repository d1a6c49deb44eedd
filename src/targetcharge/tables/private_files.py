"""Private files: what lies beside a ledger and is as secret as the data."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_private(path: Path, content: bytes, *, durable: bool) -> None:
    """Write a file that only its owner can read: as a whole or not at all, and without leaving a draft behind.

    Args:
        path: of the file.
        content: all of it.
        durable: whether it must survive a loss of power.

    Raises:
        OSError: if it cannot be written.
    """
    draft = path.with_name(f"{path.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
        if durable:
            _sync(path.parent)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
