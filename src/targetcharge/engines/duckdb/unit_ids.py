"""The ids of units: 0, 1, …, a function of the data alone. As secret as the data.

Of the units of a column in the order of the first snapshot that has them, then of their values (of canonical
texts, the shorter ones first); of rows in the order of snapshots, files and rows. So what is appended changes
none, and every process that opens the same data gives the same.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.engines.duckdb.parquet_files import ROW_BITS, patterns
from targetcharge.engines.duckdb.types import FLOATING, NUMBERED, identifier, listed
from targetcharge.identity import Way

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.engines.duckdb.table import LoadedTable
    from targetcharge.engines.sql import Relation

    Integers = NDArray[np.int64]

_AT_ONCE: Final = 100_000
"""Units whose values are hashed at once."""

_HASHED: Final = {
    Way.EQUAL: "",
    Way.BY_VALUE: (
        "however typed: 1, 1.0 and '1' are one unit, and long numbers that floating point takes for one"
    ),
    Way.NANOSECONDS: "to the nanosecond",
    Way.READ_AS: "read as {}; what is none, as it is written",
    Way.TEXT_OF: "as the text of a {}",
}
"""What stands for each way in the digests that are kept beside ledgers. Never to be reworded."""


@final
class RowIds:
    """Every row is a unit, which is known by its place: its id is how many rows are before it."""

    def __init__(self, table: LoadedTable) -> None:
        """Find out how many rows the table was opened with: from what DuckDB knows, not by a scan."""
        self._table = table
        table.relation(placed=True)  # refused if there are no places
        first = table.first
        self._after = first.after
        self._offsets: Integers | None = None
        self._kept: Integers | None = None
        if first.parquet is not None:
            self._offsets = self._files()
            self._opened = int(self._offsets[-1])
        elif first.gaps:
            place = identifier(str(first.place))
            self._opened, last = table.link.rows(f"SELECT count(*), max({place}) FROM {NUMBERED}")[0]
            if self._opened and last + 1 != self._opened:  # rows were deleted, and the others kept their places
                self._kept = table.link.arrays(f"SELECT {place} AS p FROM {NUMBERED} ORDER BY p")["p"]
        else:
            self._opened = first.end

    def _files(self) -> Integers:
        """Return how many rows are before each file, and all."""
        first = self._table.first
        assert first.parquet is not None  # noqa: S101 - the caller looked
        paths = first.parquet.paths[: first.end >> ROW_BITS]
        metadata = f"SELECT file_name, num_rows FROM parquet_file_metadata({listed(patterns(paths))})"
        rows = dict(self._table.link.rows(metadata))
        return np.cumsum([0, *(rows[str(path)] for path in paths)], dtype=np.int64)

    def relation(self, snapshot: int | None) -> Relation:
        """Return the rows of the first snapshots, with their places."""
        return self._table.relation(snapshot, placed=True)

    def numbered(self, units: str) -> str:
        """Return a query of units u, and what belongs to them, with n in place of them."""
        return f"SELECT u AS n, * EXCLUDE (u) FROM ({units})"

    def arrays(self, query: str, parameters: list[object] | None = None) -> dict[str, Integers]:
        """Return the columns of a query, with ids for n."""
        columns = self._table.link.arrays(query, parameters)
        columns["n"] = self._ids(columns["n"])
        return columns

    def _ids(self, places: Integers) -> Integers:
        if self._offsets is None and self._kept is None and self._after == self._opened:
            return places
        opened = np.minimum(places, self._after - 1)
        if self._offsets is not None:
            file = np.minimum(opened >> ROW_BITS, len(self._offsets) - 1)
            opened = self._offsets[file] + (opened & ((1 << ROW_BITS) - 1))
        elif self._kept is not None:
            opened = np.searchsorted(self._kept, opened).astype(np.int64)
        return np.where(places < self._after, opened, places - self._after + self._opened)

    def count(self, snapshot: int) -> int:
        """Return how many rows the first snapshots have."""
        first, end = self._table.first, self._table.snapshots[snapshot - 1].end
        if end > first.end:
            return self._opened + end - self._after
        if self._offsets is not None:
            return int(self._offsets[end >> ROW_BITS])
        return self._opened if first.gaps else end

    def digest(self, key: bytes, snapshot: int) -> str:
        """Return a keyed hash of how many rows each snapshot has, and of the rows of frames in their order.

        The rows of files have theirs.
        """
        counts = [self.count(first) for first in range(1, snapshot + 1)]
        ordered: object = None
        if any(part.files is None for part in self._table.snapshots[:snapshot]):
            relation = self.relation(snapshot)
            # Twice: DuckDB's hash of several values is such that bit_xor() would lose which of them go together.
            row = f"hash(xor(hash({relation.place}), hash({', '.join(relation.by.values())})))"
            ordered = self._table.link.rows(f"SELECT bit_xor({row}), sum({row}) FROM {relation.rows}")
        return hmac.new(key, repr(("rows", counts, ordered)).encode(), hashlib.sha256).hexdigest()

    def forget(self) -> None:
        """Do nothing: nothing was made."""


@final
class ValueIds:
    """The values of a column are units: a table of them holds their ids."""

    def __init__(self, table: LoadedTable) -> None:
        """Number them, in one scan; once for a table."""
        self._table = table
        self._digests: dict[tuple[bytes, int], str] = {}
        link, unit, name = table.link, table.shape.unit, f"units_{len(table.snapshots)}"
        self._name = name
        link.rows(f"CREATE OR REPLACE TEMP TABLE {name}_seen AS {self._seen()}")
        canonical = unit is not None and unit.identity.way is not Way.EQUAL and unit.kind == "VARCHAR"
        order = "s, strlen(u), u" if canonical else "s, u"  # numbers that are written as text are in their order
        ordered = f"SELECT u, row_number() OVER (ORDER BY {order}) - 1 AS id FROM {name}_seen"
        link.rows(f"CREATE OR REPLACE TEMP TABLE {name} AS {ordered}")
        new = dict(link.rows(f"SELECT s, count(*) FROM {name}_seen GROUP BY s"))
        link.rows(f"DROP TABLE {name}_seen")
        added = [new.get(snapshot, 0) for snapshot, _ in enumerate(table.snapshots, 1)]
        self._counts = np.cumsum(added).tolist()

    def _seen(self) -> str:
        """Return the query of all units u with the first snapshot s that has them."""
        snapshots = self._table.snapshots
        if len(snapshots) == 1:
            relation = self._table.relation()
            values = f"SELECT {relation.unit} AS u FROM {relation.rows}"
            return f"SELECT DISTINCT u, CAST(1 AS BIGINT) AS s FROM ({values}) WHERE u IS NOT NULL"
        relation = self._table.relation(placed=True)
        values = f"SELECT {relation.unit} AS u, {relation.place} AS p FROM {relation.rows}"
        first = f"SELECT u, min(p) AS p FROM ({values}) WHERE u IS NOT NULL GROUP BY u"
        starts = {0: 1}  # of snapshots that start at the same place all but the last are empty
        starts |= {snapshot.end: number for number, snapshot in enumerate(snapshots[:-1], 2)}
        begins = ", ".join(
            f"(CAST({start} AS BIGINT), CAST({number} AS BIGINT))" for start, number in starts.items()
        )
        return f"SELECT u, s FROM ({first}) ASOF JOIN (VALUES {begins}) b(start, s) ON p >= start"

    def relation(self, snapshot: int | None) -> Relation:
        """Return the rows of the first snapshots."""
        return self._table.relation(snapshot)

    def numbered(self, units: str) -> str:
        """Return a query of units u, and what belongs to them, with their ids n in place of them."""
        return f"SELECT id AS n, * EXCLUDE (u, id) FROM ({units}) JOIN {self._name} USING (u)"

    def arrays(self, query: str, parameters: list[object] | None = None) -> dict[str, Integers]:
        """Return the columns of a query."""
        return self._table.link.arrays(query, parameters)

    def count(self, snapshot: int) -> int:
        """Return how many units the first snapshots have."""
        return int(self._counts[snapshot - 1])

    def digest(self, key: bytes, snapshot: int) -> str:
        """Return a keyed hash of the units in the order of their ids."""
        if (key, snapshot) not in self._digests:
            self._digests[key, snapshot] = self._digest(key, self.count(snapshot))
        return self._digests[key, snapshot]

    def _digest(self, key: bytes, count: int) -> str:
        unit = self._table.shape.unit
        kind = ""
        if unit is not None:
            kind = f"{unit.kind} {_HASHED[unit.identity.way].format(unit.identity.kind)}"
        keyed = hmac.new(key, repr(("units", kind, count)).encode(), hashlib.sha256)
        written = "CAST(u AS VARCHAR)"  # never a time: those are told apart by numbers
        if unit is not None and unit.kind in FLOATING:  # 0.0 and -0.0 are one unit
            written = f"CASE WHEN u = 0 THEN '0' ELSE {written} END"
        for begin in range(0, count, _AT_ONCE):
            part = f"id >= {begin} AND id < {min(begin + _AT_ONCE, count)}"
            values = f"SELECT id, {written} AS t FROM {self._name} WHERE {part}"
            texts = f"SELECT string_agg(concat(strlen(t), ':', t), '' ORDER BY id) FROM ({values})"
            keyed.update(str(self._table.link.rows(texts)[0][0]).encode())
        return keyed.hexdigest()

    def forget(self) -> None:
        """Drop the table of ids."""
        self._table.link.rows(f"DROP TABLE IF EXISTS {self._name}")


UnitIds = RowIds | ValueIds
