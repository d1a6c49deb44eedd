"""Filling: from a source to one relation of a connection. Parquet and DuckDB files stay where they are.

CSV files and frames are copied, typed, into a table whose columns are named by numbers, so that no name of theirs
hides the number of a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, final

import duckdb

from targetcharge.engines.duckdb.csv_files import copy_csv
from targetcharge.engines.duckdb.describing import bytes_as_text, without_values
from targetcharge.engines.duckdb.files import find
from targetcharge.engines.duckdb.frames import frame_of
from targetcharge.engines.duckdb.parquet_files import ROW_BITS, view_parquet
from targetcharge.engines.duckdb.parts import SPAN, First
from targetcharge.engines.duckdb.quoting import NUMBERED, RELATION, identifier, text, unused
from targetcharge.engines.duckdb.types import declared_as, is_spanned, typed, within
from targetcharge.engines.duckdb.units import BY_VALUE, OwnColumn, read_as, rule_of
from targetcharge.errors import EngineError, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.engines.duckdb.files import Files
    from targetcharge.engines.duckdb.frames import Frame
    from targetcharge.engines.duckdb.parquet_files import ParquetRows

_KEPT = "kept"
_ROW = "rowid"
_HARMLESS = ("BLOB", '"NULL"')
"""Types that cannot be asked about, and of which every value can be copied."""


@final
@dataclass(frozen=True)
class Options:
    """What a table is opened with.

    Attributes:
        unit: the column whose values tell units apart; None if every row is one.
        table: of a DuckDB file.
        declared: what columns are declared to be.
        memory: the most that DuckDB may use.
    """

    unit: str | None
    table: str | None = None
    declared: dict[str, str] = field(default_factory=dict)
    memory: str | None = None


def sought(source: object, options: Options) -> Files | Frame:
    """Return the files or the frame that a caller gave.

    Raises:
        InvalidParameter: if it is neither.
        EngineError: if they cannot be read.
    """
    if isinstance(source, str | Path) or hasattr(source, "__fspath__"):
        return find(source)
    return frame_of(source, options.unit, options.declared)


def fill_from_files(
    connection: duckdb.DuckDBPyConnection, snapshots: Sequence[Files], options: Options, folder: Path
) -> tuple[First, OwnColumn | None]:
    """Make the relation of some files.

    Args:
        connection: to make it in.
        snapshots: the files of each, all of one kind.
        options: of the table.
        folder: for copies of them; the caller removes it.

    Returns:
        Where the rows are, and the column of our own that tells units apart, if there is one.
    """
    kind = snapshots[0].kind
    if kind == "parquet":
        return in_files(view_parquet(connection, snapshots, folder), snapshots), None
    if kind == "duckdb":
        return _attach(connection, snapshots[0], options.table), None
    names, own_column, ends = copy_csv(connection, _KEPT, snapshots, options.declared, options.unit, folder)
    return _shown(connection, names, ends), own_column


def in_files(rows: ParquetRows, snapshots: Sequence[Files]) -> First:
    """Return where the rows of Parquet files are: file after file."""
    numbers = accumulate(len(files.paths) for files in snapshots)
    return First(tuple(number << ROW_BITS for number in numbers), SPAN, rows.place, parquet=rows)


def fill_from_frame(
    connection: duckdb.DuckDBPyConnection, frame: Frame, options: Options
) -> tuple[First, OwnColumn | None]:
    """Make the relation of a frame; return what `fill_from_files` does."""
    names, own_column = copy_frame(connection, _KEPT, frame, options)
    rows = int(connection.execute(f"SELECT count(*) FROM {_KEPT}").fetchall()[0][0])
    return _shown(connection, names, (rows,)), own_column


def view_of(
    connection: duckdb.DuckDBPyConnection, view: str, table: str, names: Sequence[str], place: str | None = None
) -> None:
    """Make a view of a table whose columns are named by numbers: with their names, and the place of every row."""
    columns = [f"c{number} AS {identifier(name)}" for number, name in enumerate(names)]
    columns += [] if place is None else [f"{_ROW} AS {identifier(place)}"]
    connection.execute(f"CREATE VIEW {view} AS SELECT {', '.join(columns)} FROM {table}")


def _shown(connection: duckdb.DuckDBPyConnection, names: Sequence[str], ends: Sequence[int]) -> First:
    place = unused(names, "place")
    view_of(connection, RELATION, _KEPT, names)
    view_of(connection, NUMBERED, _KEPT, names, place)
    return First(tuple(ends), ends[-1], place)


def copy_frame(
    connection: duckdb.DuckDBPyConnection, table: str, frame: Frame, options: Options
) -> tuple[list[str], OwnColumn | None]:
    """Copy a frame into a table; return the names of its columns, and the one of ours that tells units apart."""
    try:
        _register(connection, frame)
        names = [name for name, *_ in connection.execute("DESCRIBE frame").fetchall()]
        values = ", ".join(f"{frame.values.get(name, identifier(name))} AS {identifier(name)}" for name in names)
        rows = f"(SELECT {values} FROM frame)"
        hidden = {} if frame.units is None else frame.units.arrays
        parts: dict[str, str] = {}
        own_column = None
        for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall():
            if name in hidden:
                continue
            declared, found = options.declared.get(name), typed(name, str(kind))
            if declared is None:
                if found is None and kind not in _HARMLESS:  # not copied: a value could make that fail
                    frame.other[name] = without_values(str(kind))
                else:
                    parts[name] = (
                        within(identifier(name), str(kind)) if is_spanned(str(kind)) else identifier(name)
                    )
                continue
            column, value = found or bytes_as_text(name, str(kind))
            parts[name] = declared_as(value, column.kind, declared)
            if name.lower() == str(options.unit).lower():
                own_column = OwnColumn(unused(names), rule_of(declared, column.kind))
                parts[own_column.name] = read_as(value, column.kind, declared)
        if frame.units is not None:
            own_column = OwnColumn(unused(names), BY_VALUE)
            parts[own_column.name] = frame.units.sql
        if not parts:
            raise _unreadable(frame)
        columns = ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts.values()))
        connection.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM {rows}")
    finally:
        connection.unregister("frame")
    return list(parts), own_column


def _register(connection: duckdb.DuckDBPyConnection, frame: Frame) -> None:
    """Let DuckDB see a frame, without the columns whose types it cannot read."""
    if _registers(connection, frame.readable):
        return
    columns = dict(frame.columns())
    kept = [name for name, alone in columns.items() if _registers(connection, alone)]
    frame.other.update({name: "a type that cannot be read" for name in columns if name not in kept})
    if not kept or not _registers(connection, frame.only(kept)):
        raise _unreadable(frame)


def _unreadable(frame: Frame) -> EngineError:
    return EngineError(f"this {frame.kind} table has no column of a type that can be read")


def _registers(connection: duckdb.DuckDBPyConnection, readable: object) -> bool:
    try:
        connection.register("frame", readable)
        connection.execute("DESCRIBE frame").fetchall()
    except (duckdb.Error, TypeError, ValueError, NotImplementedError):
        return False
    return True


def _attach(connection: duckdb.DuckDBPyConnection, files: Files, table: str | None) -> First:
    connection.execute(f"ATTACH {text(str(files.paths[0]))} AS source (READ_ONLY)")
    rows = connection.execute(
        "SELECT schema_name, table_name, contains(upper(sql), 'GENERATED ALWAYS') FROM duckdb_tables()"
        " WHERE database_name = 'source' ORDER BY ALL"
    ).fetchall()
    names = {f"{schema}.{name}" if schema != "main" else name: (schema, name, made) for schema, name, made in rows}
    if table is None and len(names) == 1:
        table = next(iter(names))
    if table not in names:
        expected = f"one of the tables of {files.paths[0]}: {', '.join(names) or 'it has none'}"
        raise InvalidParameter("table", table, expected)
    schema, name, made = names[table]
    full = f"source.{identifier(schema)}.{identifier(name)}"
    types = {column: kind for column, kind, *_ in connection.execute(f"DESCRIBE {full}").fetchall()}
    # A collation would make = and GROUP BY disagree on what is the same text, and so on what is the same unit.
    texts = {identifier(column): kind == "VARCHAR" for column, kind in types.items()}
    replaced = {name: f"{name} COLLATE C" for name, is_text in texts.items() if is_text}
    if made:  # a column that is computed when it is read may fail for a row
        replaced = {name: f"TRY({replaced.get(name, name)})" for name in texts}
    listing = ", ".join(f"{value} AS {name}" for name, value in replaced.items())
    plain = f"* REPLACE ({listing})" if listing else "*"
    connection.execute(f"CREATE VIEW {RELATION} AS SELECT {plain} FROM {full}")
    if any(column.lower() == _ROW for column in types):
        return First((SPAN,), SPAN, None, gaps=True)
    place = unused(types, "place")
    connection.execute(f"CREATE VIEW {NUMBERED} AS SELECT {plain}, {_ROW} AS {identifier(place)} FROM {full}")
    return First((SPAN,), SPAN, place, gaps=True)
