"""Numbering: every unit's id, a function of the data alone. As secret as the data.

Ids are 0, 1, …: of the units of a column in the order of the first snapshot that has them, then of their values
(of canonical texts, the shorter ones first);
of rows in the order of snapshots, files and rows. So what is appended changes none, and every process that opens
the same data gives the same.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final, Protocol, final

import numpy as np

from targetcharge.engines.duckdb.parquet_files import ROW_BITS, patterns
from targetcharge.engines.duckdb.quoting import NUMBERED, identifier, listed
from targetcharge.engines.duckdb.types import FLOATING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.engines.duckdb.loading import Loaded
    from targetcharge.engines.duckdb.parts import Relation

_AT_ONCE: Final = 100_000
"""Units whose values are hashed at once."""


class Numbers(Protocol):
    """The ids of all units of a table."""

    @property
    def table(self) -> str | None:
        """Return the table of units u with their ids; None if rows are units, which are known by their places."""

    def relation(self, snapshot: int | None) -> Relation:
        """Return the rows of the first snapshots, with what their ids are found by."""

    def ids(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return ids, from what queries give: ids already, or places."""

    def count(self, snapshot: int) -> int:
        """Return how many units the first snapshots have."""

    def digest(self, key: bytes, snapshot: int) -> str:
        """Return a keyed hash of who has which id among the units of the first snapshots."""

    def forget(self) -> None:
        """Let go of what was made for them."""


@final
class RowNumbers:
    """Every row is a unit: its id is how many rows are before it."""

    table: None = None

    def __init__(self, loaded: Loaded) -> None:
        """Find out how many rows the table was opened with: from what DuckDB knows, not by a scan."""
        self._loaded = loaded
        loaded.relation(placed=True)  # refused if there are no places
        first = loaded.parts.first
        self._after = first.after
        self._offsets: NDArray[np.int64] | None = None
        self._kept: NDArray[np.int64] | None = None
        if first.parquet is not None:
            self._offsets = self._files()
            self._opened = int(self._offsets[-1])
        elif first.gaps:
            place = identifier(str(first.place))
            self._opened, last = loaded.link.rows(f"SELECT count(*), max({place}) FROM {NUMBERED}")[0]
            if self._opened and last + 1 != self._opened:  # rows were deleted, and the others kept their places
                self._kept = loaded.link.arrays(f"SELECT {place} AS p FROM {NUMBERED} ORDER BY p")["p"]
        else:
            self._opened = first.ends[-1]

    def _files(self) -> NDArray[np.int64]:
        """Return how many rows are before each file, and all."""
        first = self._loaded.parts.first
        assert first.parquet is not None  # noqa: S101 - the caller looked
        paths = first.parquet.paths[: first.ends[-1] >> ROW_BITS]
        metadata = f"SELECT file_name, num_rows FROM parquet_file_metadata({listed(patterns(paths))})"
        rows = dict(self._loaded.link.rows(metadata))
        return np.concatenate(([0], np.cumsum([rows[str(path)] for path in paths], dtype=np.int64))).astype(
            np.int64
        )

    def relation(self, snapshot: int | None) -> Relation:
        """Return the rows with their places."""
        return self._loaded.relation(snapshot, placed=True)

    def ids(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return ids, from places."""
        if self._offsets is None and self._kept is None and self._after == self._opened:
            return found
        opened = np.minimum(found, self._after - 1)
        if self._offsets is not None:
            file = np.minimum(opened >> ROW_BITS, len(self._offsets) - 1)
            opened = self._offsets[file] + (opened & ((1 << ROW_BITS) - 1))
        elif self._kept is not None:
            opened = np.searchsorted(self._kept, opened).astype(np.int64)
        return np.where(found < self._after, opened, found - self._after + self._opened)

    def count(self, snapshot: int) -> int:
        """Return how many rows the first snapshots have."""
        parts = self._loaded.parts
        end = parts.snapshots[snapshot - 1].end
        if end > parts.first.ends[-1]:
            return self._opened + end - self._after
        if self._offsets is not None:
            return int(self._offsets[end >> ROW_BITS])
        return self._opened if parts.first.gaps else end

    def digest(self, key: bytes, snapshot: int) -> str:
        """Return a keyed hash of how many rows each snapshot has, and of the rows of frames in their order.

        The rows of files have theirs.
        """
        counts = [self.count(each) for each in range(1, snapshot + 1)]
        ordered: object = None
        if any(each.files is None for each in self._loaded.parts.snapshots[:snapshot]):
            relation = self.relation(snapshot)
            # Twice: DuckDB's hash of several values is such that bit_xor() would lose which of them go together.
            row = f"hash(xor(hash({relation.place}), hash({', '.join(relation.by.values())})))"
            ordered = self._loaded.link.rows(f"SELECT bit_xor({row}), sum({row}) FROM {relation.rows}")
        return hmac.new(key, repr(("rows", counts, ordered)).encode(), hashlib.sha256).hexdigest()

    def forget(self) -> None:
        """Nothing was made."""


@final
class UnitNumbers:
    """The values of a column are units."""

    def __init__(self, loaded: Loaded) -> None:
        """Number them, in one scan; once for a table."""
        self._loaded = loaded
        self._digests: dict[tuple[bytes, int], str] = {}
        snapshots = loaded.parts.snapshots
        self.table: str = f"units_{len(snapshots)}"
        seen = self._seen()
        loaded.link.rows(f"CREATE OR REPLACE TEMP TABLE {self.table}_seen AS {seen}")
        written = loaded.shape.unit is not None and loaded.shape.unit.rule and loaded.shape.unit.kind == "VARCHAR"
        order = "s, strlen(u), u" if written else "s, u"  # numbers that are written as text are in their order
        ordered = f"SELECT u, row_number() OVER (ORDER BY {order}) - 1 AS id FROM {self.table}_seen"
        loaded.link.rows(f"CREATE OR REPLACE TEMP TABLE {self.table} AS {ordered}")
        new = dict(loaded.link.rows(f"SELECT s, count(*) FROM {self.table}_seen GROUP BY s"))
        loaded.link.rows(f"DROP TABLE {self.table}_seen")
        self._counts = np.cumsum([new.get(number, 0) for number in range(1, len(snapshots) + 1)]).tolist()

    def _seen(self) -> str:
        """Return the query of all units u with the first snapshot s that has them."""
        snapshots = self._loaded.parts.snapshots
        if len(snapshots) == 1:
            relation = self._loaded.relation()
            values = f"SELECT {relation.unit} AS u FROM {relation.rows}"
            return f"SELECT DISTINCT u, CAST(1 AS BIGINT) AS s FROM ({values}) WHERE u IS NOT NULL"
        relation = self._loaded.relation(placed=True)
        values = f"SELECT {relation.unit} AS u, {relation.place} AS p FROM {relation.rows}"
        first = f"SELECT u, min(p) AS p FROM ({values}) WHERE u IS NOT NULL GROUP BY u"
        starts = {0: 1}  # of snapshots that start at the same place all but the last are empty
        for number, snapshot in enumerate(snapshots[:-1], 2):
            starts[snapshot.end] = number
        begins = ", ".join(
            f"(CAST({start} AS BIGINT), CAST({number} AS BIGINT))" for start, number in starts.items()
        )
        return f"SELECT u, s FROM ({first}) ASOF JOIN (VALUES {begins}) b(start, s) ON p >= start"

    def relation(self, snapshot: int | None) -> Relation:
        """Return the rows."""
        return self._loaded.relation(snapshot)

    def ids(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return them."""
        return found

    def count(self, snapshot: int) -> int:
        """Return how many units the first snapshots have."""
        return int(self._counts[snapshot - 1])

    def digest(self, key: bytes, snapshot: int) -> str:
        """Return a keyed hash of the units in the order of their ids."""
        if (key, snapshot) not in self._digests:
            self._digests[key, snapshot] = self._digest(key, self.count(snapshot))
        return self._digests[key, snapshot]

    def _digest(self, key: bytes, number: int) -> str:
        identity = self._loaded.shape.unit
        kind = "" if identity is None else f"{identity.kind} {identity.rule}"
        keyed = hmac.new(key, repr(("units", kind, number)).encode(), hashlib.sha256)
        written = "CAST(u AS VARCHAR)"  # never a time: those are told apart by numbers
        if identity is not None and identity.kind in FLOATING:  # 0.0 and -0.0 are one unit
            written = f"CASE WHEN u = 0 THEN '0' ELSE {written} END"
        for begin in range(0, number, _AT_ONCE):
            some = f"id >= {begin} AND id < {min(begin + _AT_ONCE, number)}"
            values = f"SELECT id, {written} AS t FROM {self.table} WHERE {some}"
            together = f"SELECT string_agg(concat(strlen(t), ':', t), '' ORDER BY id) FROM ({values})"
            keyed.update(str(self._loaded.link.rows(together)[0][0]).encode())
        return keyed.hexdigest()

    def forget(self) -> None:
        """Drop the table."""
        self._loaded.link.rows(f"DROP TABLE IF EXISTS {self.table}")


def numbers_of(loaded: Loaded) -> Numbers:
    """Return the ids of a table's units."""
    return RowNumbers(loaded) if loaded.shape.unit is None else UnitNumbers(loaded)
