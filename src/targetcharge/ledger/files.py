"""Files that only their owner can read, written as a whole or not at all, whenever the process is killed.

What is written as a whole has another name until it is complete.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     path = Path(folder, "witness")
...     write_whole(path, b"7", durable=False)
...     path.read_bytes(), [file.name for file in path.parent.iterdir()]
(b'7', ['witness'])
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def state_folder() -> Path:
    """Return the folder in the user's home where what must outlive a ledger's folder is kept."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111 - never raises
    return Path(state) / "targetcharge"


def write_whole(path: Path, content: bytes, draft: Path | None = None, *, durable: bool = True) -> None:
    """Write a file, and leave no draft behind if that fails.

    Args:
        path: of the file.
        content: all of it.
        draft: its name until it is complete, in a locked folder: a fixed one, so that the next writer overwrites
            what a killed one left. Left out for a name that nobody else uses.
        durable: whether it must survive a loss of power.

    Raises:
        OSError: if it cannot be written.
    """
    how = os.O_EXCL if draft is None else os.O_TRUNC
    draft = draft or path.with_name(f"{path.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | how, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        put_in_place(draft, path, durable=durable)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def put_in_place(draft: Path, path: Path, *, durable: bool = True) -> None:
    """Give a complete and synced file its name."""
    draft.replace(path)
    if durable:
        sync(path.parent, os.O_RDONLY)


def sync(path: Path, flags: int) -> None:
    """Make a file or folder durable, opened with these flags."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def unfinished(path: Path) -> Path:
    """Return the fixed name of a file that is not complete yet."""
    return path.with_name(path.name + "-unfinished")
