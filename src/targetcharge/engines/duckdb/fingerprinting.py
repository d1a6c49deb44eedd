"""Fingerprinting: a keyed hash of a snapshot, as secret as the data."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from targetcharge.engines.duckdb.quoting import RELATION, identifier

if TYPE_CHECKING:
    from targetcharge.engines.duckdb.loading import Loaded


def fingerprint_of(loaded: Loaded, key: bytes, snapshot: int | None) -> str:
    """Return a keyed hash of one snapshot's files, or of its rows in any order; of all snapshots for None."""
    if snapshot is None:
        parts = [_of_one(loaded, key, number) for number in range(1, len(loaded.parts.snapshots) + 1)]
        return parts[0] if len(parts) == 1 else hmac.new(key, repr(parts).encode(), hashlib.sha256).hexdigest()
    return _of_one(loaded, key, snapshot)


def _of_one(loaded: Loaded, key: bytes, snapshot: int) -> str:
    files = loaded.parts.snapshots[snapshot - 1].files
    if files is not None:
        return files.fingerprint(key)
    names, rows = _rows(loaded, snapshot)
    found = loaded.link.rows(
        f"SELECT count(*), bit_xor(h), sum(h) FROM (SELECT hash({', '.join(names)}) AS h FROM {rows})"
    )
    return hmac.new(key, repr((found, list(loaded.shape.schema.values()))).encode(), hashlib.sha256).hexdigest()


def _rows(loaded: Loaded, snapshot: int) -> tuple[list[str], str]:
    """Return the columns and the rows of a frame: as it was loaded, or as it was copied when it was appended."""
    if snapshot == 1:
        return [identifier(name) for name, *_ in loaded.link.rows(f"DESCRIBE {RELATION}")], RELATION
    start, end = (loaded.parts.snapshots[number].end for number in (snapshot - 2, snapshot - 1))
    start = max(start, loaded.parts.first.after)
    names = [
        *(f"c{place}" for place, _ in enumerate(loaded.shape.schema)),
        *(["unit"] if loaded.shape.unit else []),
    ]
    parts = [
        f"SELECT {', '.join(names)} FROM {copy.name}"
        f" WHERE rowid >= {start - copy.start} AND rowid < {end - copy.start}"
        for copy in loaded.parts.copies
        if copy.start < end and copy.start + copy.rows > start
    ]
    none = f"SELECT {', '.join(f'NULL AS {name}' for name in names)} WHERE FALSE"
    return names, f"({' UNION ALL '.join(parts or [none])})"
