"""Writing: where the page goes, and what it never overwrites."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from targetcharge.cli.mistakes import Mistake
from targetcharge.cli.report.page import signature

_OPTION: Final = "--output"
_ENDINGS: Final = (".db", ".ledger")


def place(ledger: Path) -> Path:
    """Return where the page of a ledger goes if nobody says: into the current folder.

    >>> str(place(Path("/data/visits.parquet.ledger.db")))
    'visits.parquet.report.html'
    """
    name = ledger.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending) or name
    return Path(f"{name}.report.html")


def check(output: Path, ledger: str) -> None:
    """Refuse a place that holds anything but an earlier page about the same ledger.

    Raises:
        Mistake: if the folder is missing, or something else is there.
    """
    if not output.parent.is_dir():
        raise Mistake(_OPTION, f"there is no folder {output.parent}")
    if not os.path.lexists(output):
        return
    if not output.is_file():
        raise Mistake(_OPTION, f"{output} is no file that a report could replace: name another")
    begin = signature(ledger).encode()
    try:
        with output.open("rb") as opened:
            found = opened.read(len(begin))
    except OSError as error:
        raise Mistake(_OPTION, f"{output} cannot be read ({error.strerror})") from None
    if found != begin:
        raise Mistake(_OPTION, f"{output} is no earlier report on this ledger: remove it, or name another file")


def write(output: Path, page: str) -> None:
    """Write the page, as a whole or not at all.

    Raises:
        Mistake: if that fails.
    """
    target = output.resolve()
    made = ""
    try:
        file, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(file, "w", encoding="utf-8", newline="\n") as opened:
            opened.write(page)
        os.chmod(made, 0o666 & ~_mask())  # noqa: PTH101 - as any new file: it is made to be handed on
        os.replace(made, target)  # noqa: PTH105 - tempfile gives names, not paths
    except OSError as error:
        with suppress(OSError):
            os.unlink(made)  # noqa: PTH108 - as above
        raise Mistake(_OPTION, f"{output} cannot be written ({error.strerror})") from None


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
