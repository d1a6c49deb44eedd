"""Parquet files: read in place, and if need be with the place of every row."""

from __future__ import annotations

from dataclasses import dataclass
from glob import escape
from typing import TYPE_CHECKING, Final, final

import duckdb

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
        patterns: that match one file each, in the order of snapshots.
        partitioned: whether folders are columns.
        file: the name of the column that has a row's file: none of theirs.
        place: likewise, of the column that has its place; None if a column of theirs hides the number of a row.
    """

    patterns: tuple[str, ...]
    partitioned: bool
    file: str
    place: str | None

    def plain(self, number: int | None = None, validation: str = "replace") -> str:
        """Return the SQL of the rows of the first files; of all if no number is given."""
        return f"read_parquet({listed(self.patterns[:number])}, {self._options(validation)})"

    def placed(self, number: int | None = None) -> str:
        """Return the SQL of the rows of the first files with their places, which must not be hidden."""
        # By name: DuckDB numbers files anew (`file_index`) where a predicate on a partition leaves some out.
        options = f"{self._options('replace')}, filename = {text(self.file)}"
        code = f"CAST(enum_code(CAST({identifier(self.file)} AS {_TYPE})) AS BIGINT)"
        rows = f"read_parquet({listed(self.patterns[:number])}, {options})"
        return f"(SELECT *, {code} * {1 << ROW_BITS} + {_ROW} AS {identifier(str(self.place))} FROM {rows})"

    def _options(self, validation: str) -> str:
        folders = "true, hive_types_autocast = false" if self.partitioned else "false"
        return f"hive_partitioning = {folders}, utf8_validation = '{validation}'"


def view_parquet(
    connection: duckdb.DuckDBPyConnection, snapshots: Sequence[Files], unit: str | None, *, proven: bool = False
) -> ParquetRows:
    """Make the views of some files with one schema.

    A text that is not UTF-8 is read with ? for what is not, so that no row can make a question fail. Where that
    would make two units one, and where DuckDB cannot read a time, the file is refused here, to its owner.

    Args:
        connection: to make them in.
        snapshots: the files of each.
        unit: the column that tells units apart.
        proven: whether all values are known to be readable.

    Raises:
        EngineError: if the files do not have one schema, or some of their values cannot be read.
    """
    root, paths = snapshots[0].root, [path for files in snapshots for path in files.paths]
    read = listed(patterns(paths))
    _check_schemas(connection, read)
    names = _top_level(connection, read)
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
    rows = ParquetRows(tuple(patterns(paths)), bool(keys), unused(taken, "file"), place)
    if not proven:
        _prove(connection, root, rows.plain(validation="strict"), unit)
    connection.execute(f"CREATE VIEW {RELATION} AS SELECT * FROM {rows.plain()}")
    if place is not None:
        connection.execute(f"CREATE TYPE {_TYPE} AS ENUM ({', '.join(text(str(path)) for path in paths)})")
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


def _top_level(connection: duckdb.DuckDBPyConnection, paths: str) -> list[str]:
    """Return the names of the columns as the first file spells them: its schema is a tree, written top down."""
    rows = connection.execute(f"SELECT file_name, name, num_children FROM parquet_schema({paths})").fetchall()
    nodes = iter([row[1:] for row in rows if row[0] == rows[0][0]])
    _, count = next(nodes)
    names = []
    for _ in range(count or 0):
        name, children = next(nodes)
        names.append(str(name))
        left = children or 0
        while left:
            left += (next(nodes)[1] or 0) - 1
    return names


def _prove(connection: duckdb.DuckDBPyConnection, root: Path, rows: str, unit: str | None) -> None:
    """Refuse files in which a unit's text or a time cannot be read."""
    doubtful = []
    for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall():
        a_unit = unit is not None and name.lower() == str(unit).lower() and kind == "VARCHAR"
        if a_unit or str(kind).startswith("TIMESTAMP"):
            doubtful.append(name)
    if doubtful:
        hashes = ", ".join(f"bit_xor(hash({identifier(name)}))" for name in doubtful)
        if _fails(connection, f"SELECT {hashes} FROM {rows}"):
            columns = ", ".join(doubtful)
            msg = f"{root} has values in {columns} that are no UTF-8 text, or no time that fits: repair them"
            raise EngineError(msg)


def _fails(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    try:
        connection.execute(sql).fetchall()
    except (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException):
        return True
    return False
