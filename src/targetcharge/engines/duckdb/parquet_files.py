"""Parquet files: read in place, and if need be with the place of every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from glob import escape
from typing import TYPE_CHECKING, Final, final

import duckdb

from targetcharge.engines.duckdb.parquet_footers import copy_without_doubt, time_of
from targetcharge.engines.duckdb.quoting import NUMBERED, RELATION, identifier, listed, text, unused
from targetcharge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from targetcharge.engines.duckdb.files import Files

ROW_BITS: Final = 36
"""A row's place is its file's number and then, in so many bits, its own."""

_TYPE: Final = "file_names"
_ROW: Final = "file_row_number"


@final
@dataclass(frozen=True)
class ParquetRows:
    """How files are read.

    Attributes:
        paths: of the files that are read, in the order of snapshots: the table's, or copies of them.
        partitioned: whether folders are columns.
        file: the name of the column that has a row's file: none of theirs.
        place: likewise, of the column that has its place; None if a column of theirs hides the number of a row.
        mended: columns of copies whose times must be made of integers.
    """

    paths: tuple[Path, ...]
    partitioned: bool
    file: str
    place: str | None
    mended: tuple[str, ...] = ()

    def plain(self, number: int | None = None) -> str:
        """Return the SQL of the rows of the first files; of all if no number is given."""
        rows = f"read_parquet({listed(patterns(self.paths[:number]))}, {self._options()})"
        return f"(SELECT {self._columns()} FROM {rows})" if self.mended else rows

    def placed(self, number: int | None = None) -> str:
        """Return the SQL of the rows of the first files with their places, which must not be hidden."""
        # By name: DuckDB numbers files anew (`file_index`) where a predicate on a partition leaves some out.
        options = f"{self._options()}, filename = {text(self.file)}"
        code = f"CAST(enum_code(CAST({identifier(self.file)} AS {_TYPE})) AS BIGINT)"
        rows = f"read_parquet({listed(patterns(self.paths[:number]))}, {options})"
        place = f"{code} * {1 << ROW_BITS} + {_ROW} AS {identifier(str(self.place))}"
        return f"(SELECT {self._columns()}, {place} FROM {rows})"

    def _columns(self) -> str:
        times = ", ".join(f"{time_of(name)} AS {identifier(name)}" for name in self.mended)
        return f"* REPLACE ({times})" if times else "*"

    def _options(self) -> str:
        folders = "true, hive_types_autocast = false" if self.partitioned else "false"
        return f"hive_partitioning = {folders}, utf8_validation = 'replace'"


def view_parquet(connection: duckdb.DuckDBPyConnection, snapshots: Sequence[Files], folder: Path) -> ParquetRows:
    """Make the views of some files with one schema. No value in them can make a question fail.

    A text that is not UTF-8 is read with ? for what is not; a time that does not fit is missing.

    Args:
        connection: to make them in.
        snapshots: the files of each.
        folder: for copies of them, if their times cannot be read otherwise; the caller removes it.

    Raises:
        EngineError: if the files do not have one schema.
    """
    root, paths = snapshots[0].root, [path for files in snapshots for path in files.paths]
    read = listed(patterns(paths))
    _check_schemas(connection, read)
    columns = _top_level(connection, read)
    names = [name for name, _ in columns]
    if len({name.lower() for name in names}) < len(names):
        msg = f"{root} has columns whose names differ in capitals only: rename them"
        raise EngineError(msg)
    keys = {part.partition("=")[0].lower() for files in snapshots for part in files.folders if "=" in part}
    both = [name for name in names if name.lower() in keys]
    if both:
        msg = f"{root} has {both[0]} as a column and as a partition folder: remove one of them"
        raise EngineError(msg)
    taken = {name.lower() for name in names} | keys
    place = None if _ROW in taken else unused(taken, "place")
    rows = ParquetRows(tuple(paths), bool(keys), unused(taken, "file"), place)
    doubtful = {name: doubt for name, doubt in columns if doubt}
    if doubtful and _fails(connection, f"SELECT {_hashes(list(doubtful))} FROM {rows.plain()}"):
        copies = [
            folder / "read" / path.relative_to(path.anchor) for path in paths
        ]  # whose folders are columns too
        for path, copy in zip(paths, copies, strict=True):
            copy_without_doubt(path, copy)
        rows = replace(
            rows, paths=tuple(copies), mended=tuple(name for name, doubt in doubtful.items() if doubt == "ms")
        )
    connection.execute(f"CREATE VIEW {RELATION} AS SELECT * FROM {rows.plain()}")
    if place is not None:
        connection.execute(f"CREATE TYPE {_TYPE} AS ENUM ({', '.join(text(str(path)) for path in rows.paths)})")
        connection.execute(f"CREATE VIEW {NUMBERED} AS SELECT * FROM {rows.placed()}")
    return rows


def patterns(paths: Sequence[Path]) -> list[str]:
    """Return files as patterns that match nothing else: a file's name may look like one."""
    return [escape(str(path)) for path in paths]


def one_shape(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> bool:
    """Return whether files have the same columns of the same types, to the last detail."""
    return len(_shapes(connection, listed(patterns(paths)))) == 1


def _shapes(connection: duckdb.DuckDBPyConnection, paths: str) -> list[tuple[str, str]]:
    """Return each schema that a file has, with the name of one that has it."""
    return connection.execute(
        "SELECT min(file_name), shape FROM (SELECT file_name,"
        " string_agg(concat_ws(' ', name, type, converted_type, duckdb_type), ', ' ORDER BY name) AS shape"
        f" FROM parquet_schema({paths}) WHERE type IS NOT NULL GROUP BY file_name) GROUP BY shape ORDER BY 1"
    ).fetchall()


def _check_schemas(connection: duckdb.DuckDBPyConnection, paths: str) -> None:
    shapes = _shapes(connection, paths)
    if len(shapes) > 1:
        msg = f"{shapes[0][0]} and {shapes[1][0]} do not have the same columns: one table has one schema"
        raise EngineError(msg)


def _top_level(connection: duckdb.DuckDBPyConnection, paths: str) -> list[tuple[str, str]]:
    """Return the columns as the first file spells them, each with why a value of it may make reading fail.

    That is "ms" where DuckDB multiplies times, "json" where it checks texts, and else nothing. A file's schema is
    a tree, written top down.
    """
    rows = connection.execute(
        "SELECT file_name, name, num_children, CASE WHEN converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE"
        " 'TimestampType%MILLIS=MilliSeconds%' THEN 'ms' WHEN converted_type = 'JSON' OR logical_type LIKE"
        f" 'Json%' THEN 'json' ELSE '' END FROM parquet_schema({paths})"
    ).fetchall()
    nodes = iter([row[1:] for row in rows if row[0] == rows[0][0]])
    _, count, _ = next(nodes)
    columns = []
    for _ in range(count or 0):
        name, children, annotation = next(nodes)
        columns.append((str(name), "" if children else str(annotation)))
        left = children or 0
        while left:
            left += (next(nodes)[1] or 0) - 1
    return columns


def _hashes(names: Sequence[str]) -> str:
    return ", ".join(f"bit_xor(hash({identifier(name)}))" for name in names)


def _fails(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    try:
        connection.execute(sql).fetchall()
    except (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException):
        return True
    return False
