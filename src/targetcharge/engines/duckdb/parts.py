"""Parts: where the rows of a table are, snapshot after snapshot, and the SQL that reads some of them.

Every row has a place: a number that grows with its snapshot, its file and its row. The rows that a table was
opened with come first, in one relation. What was appended comes after them in tables of our own, the copies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from targetcharge.engines.duckdb.parquet_files import ROW_BITS
from targetcharge.engines.duckdb.quoting import NUMBERED, RELATION, identifier
from targetcharge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.engines.duckdb.describing import Shape
    from targetcharge.engines.duckdb.files import Files
    from targetcharge.engines.duckdb.parquet_files import ParquetRows

SPAN: Final = 1 << 58
"""The place of the first row of a copy, after rows whose number is not known. Larger than any place of theirs."""


@final
@dataclass(frozen=True)
class First:
    """The rows that a table was opened with: `data`, and with their places `numbered`.

    Attributes:
        ends: the place after the last row of each snapshot.
        after: the place where copies begin.
        place: the name of the column of places; None if a column of the table hides the numbers of rows.
        parquet: how they are read, if they are Parquet files.
        gaps: whether places may be left out, where rows were deleted.
    """

    ends: tuple[int, ...]
    after: int
    place: str | None
    parquet: ParquetRows | None = None
    gaps: bool = False


@final
@dataclass(frozen=True)
class Copy:
    """Rows that were appended, in a table of our own.

    Attributes:
        name: of the table.
        start: the place of its first row.
        rows: how many of its rows are part of the table that we are: the first.
        held: how many it has.
    """

    name: str
    start: int
    rows: int
    held: int


@final
@dataclass(frozen=True)
class Snapshot:
    """What was opened, or appended, at once.

    Attributes:
        files: that it is made of; None for a frame.
        end: the place after its last row.
    """

    files: Files | None
    end: int


@final
@dataclass(frozen=True)
class Relation:
    """Rows, and how they are asked about.

    Attributes:
        rows: what stands after FROM.
        by: from a column's name to the SQL of its value, NULL where it is missing.
        unit: the SQL that tells units apart; None if every row is one.
        place: the SQL of a row's place, where it was asked for.
    """

    rows: str
    by: Mapping[str, str]
    unit: str | None
    place: str | None


@final
@dataclass(frozen=True)
class Parts:
    """All rows of a table.

    Attributes:
        first: those it was opened with.
        snapshots: at least one.
        copies: those that were appended and are not in place, in order.
    """

    first: First
    snapshots: tuple[Snapshot, ...]
    copies: tuple[Copy, ...] = ()

    def until(self, number: int) -> Parts:
        """Return the rows of the first snapshots."""
        end = self.snapshots[number - 1].end
        copies = tuple(
            replace(copy, rows=min(copy.rows, end - copy.start)) for copy in self.copies if copy.start < end
        )
        return Parts(self.first, self.snapshots[:number], copies)

    def relation(self, shape: Shape, *, placed: bool = False) -> Relation:
        """Return all rows as one relation.

        Args:
            shape: of the rows that the table was opened with.
            placed: whether the place of every row is needed.

        Raises:
            EngineError: if it is, and cannot be told.
        """
        rows, place = self._opened(placed=placed), self.first.place if placed else None
        copies = [copy for copy in self.copies if copy.rows]
        unit = None if shape.unit is None else shape.unit.sql
        if not copies:
            return Relation(rows, shape.expressions, unit, None if place is None else identifier(place))
        numbered = "" if place is None else f", {identifier(place)} AS place"
        parts = [f"SELECT {shape.copied(shape.schema)}{numbered} FROM {rows}"]
        names = [*(f"c{number}" for number in range(len(shape.schema))), *([] if unit is None else ["unit"])]
        for copy in copies:
            placing = f", {copy.start} + rowid AS place" if placed else ""
            within = f" WHERE rowid < {copy.rows}" if copy.rows < copy.held else ""
            parts.append(f"SELECT {', '.join(names)}{placing} FROM {copy.name}{within}")
        by = {name: f"c{number}" for number, name in enumerate(shape.schema)}
        union = " UNION ALL ".join(parts)
        return Relation(f"({union})", by, None if unit is None else "unit", "place" if placed else None)

    def _opened(self, *, placed: bool) -> str:
        """Return the rows that the table was opened with, as far as they are in these snapshots."""
        first, end = self.first, self.snapshots[-1].end
        whole = end >= first.ends[-1]
        if first.place is None and (placed or not (whole or first.parquet)):
            hides = "file_row_number" if first.parquet else "rowid"
            msg = f"the table has a column called {hides}, which hides the numbers of its rows: rename it"
            raise EngineError(msg)
        if whole:
            return NUMBERED if placed else RELATION
        if first.parquet is not None:
            files = end >> ROW_BITS
            return first.parquet.placed(files) if placed else first.parquet.plain(files)
        return f"(SELECT * FROM {NUMBERED} WHERE {identifier(str(first.place))} < {end})"
