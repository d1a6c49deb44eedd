"""Parquet files: read in place."""

from __future__ import annotations

from glob import escape
from typing import TYPE_CHECKING

import duckdb

from targetcharge.engines.duckdb.quoting import RELATION, identifier, listed
from targetcharge.errors import EngineError

if TYPE_CHECKING:
    from targetcharge.engines.duckdb.files import Files


def view_parquet(connection: duckdb.DuckDBPyConnection, files: Files, unit: str | None) -> None:
    """Make the view of some files with one schema.

    A text that is not UTF-8 is read with ? for what is not, so that no row can make a question fail. Where that
    would make two units one, and where DuckDB cannot read a time, the file is refused here, to its owner.

    Raises:
        EngineError: if the files do not have one schema, or some of their values cannot be read.
    """
    paths = listed(patterns(files))
    _check_schemas(connection, paths)
    names = _top_level(connection, paths)
    if len({name.lower() for name in names}) < len(names):
        msg = f"{files.root} has columns whose names differ in capitals only: rename them"
        raise EngineError(msg)
    keys = {part.partition("=")[0].lower() for part in files.folders if "=" in part}
    both = [name for name in names if name.lower() in keys]
    if both:
        msg = f"{files.root} has {both[0]} as a column and as a partition folder: remove one of them"
        raise EngineError(msg)
    options = "hive_partitioning = true, hive_types_autocast = false" if keys else "hive_partitioning = false"
    rows = f"read_parquet({paths}, {options}, utf8_validation ="
    _prove(connection, files, f"{rows} 'strict')", unit)
    connection.execute(f"CREATE VIEW {RELATION} AS SELECT * FROM {rows} 'replace')")


def patterns(files: Files) -> list[str]:
    """Return the files as patterns that match nothing else: a file's name may look like one."""
    return [escape(str(path)) for path in files.paths]


def _check_schemas(connection: duckdb.DuckDBPyConnection, paths: str) -> None:
    shapes = connection.execute(
        "SELECT min(file_name), shape FROM (SELECT file_name,"
        " string_agg(concat_ws(' ', name, type, converted_type, duckdb_type), ', ' ORDER BY name) AS shape"
        f" FROM parquet_schema({paths}) WHERE type IS NOT NULL GROUP BY file_name) GROUP BY shape ORDER BY 1"
    ).fetchall()
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


def _prove(connection: duckdb.DuckDBPyConnection, files: Files, rows: str, unit: str | None) -> None:
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
            msg = f"{files.root} has values in {columns} that are no UTF-8 text, or no time that fits: repair them"
            raise EngineError(msg)


def _fails(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    try:
        connection.execute(sql).fetchall()
    except (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException):
        return True
    return False
