"""Loading: from a source to one relation of a connection that can reach nothing else.

Parquet and DuckDB files stay where they are; CSV files and frames are copied, typed and closed in. The order of
steps matters: first what needs the file system, then the lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import duckdb

from targetcharge.engines.duckdb.csv_files import copy_csv, csv_names
from targetcharge.engines.duckdb.files import Files, find
from targetcharge.engines.duckdb.frames import Frame, frame_of, refuse_without_arrow
from targetcharge.engines.duckdb.parquet_files import patterns, view_parquet
from targetcharge.engines.duckdb.quoting import RELATION, identifier, listed, text, unused
from targetcharge.engines.duckdb.types import DECLARED, FLOATING, typed
from targetcharge.errors import EngineError, InvalidParameter
from targetcharge.queries.columns import Column, Schema, column_of

_AMOUNT: Final = re.compile(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", re.IGNORECASE)
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


_open: Final[weakref.WeakSet[Loaded]] = weakref.WeakSet()


def _keep_for_ever() -> None:
    """In the child of a fork: DuckDB's threads are gone, and taking its connection apart there would crash."""
    for loaded in list(_open):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded.connection))


os.register_at_fork(after_in_child=_keep_for_ever)


@final
@dataclass(frozen=True, eq=False)
class Loaded:
    """An open table.

    Attributes:
        connection: locked down; its relation `data` is the table.
        schema: the columns that may be asked about.
        expressions: the SQL of each column's value.
        other: columns that may not be asked about, with their types.
        files: what the table is made of, if it is files.
        unit: the SQL that tells units apart: different for different values; None if every row is a unit.
        spill: the folder that DuckDB may write to when memory is short; private, removed with the table.
    """

    connection: duckdb.DuckDBPyConnection
    schema: Schema
    expressions: dict[str, str]
    other: dict[str, str]
    files: Files | None
    unit: str | None
    spill: Path
    process: int

    def __post_init__(self) -> None:
        """Remember that it is open."""
        _open.add(self)

    def close(self) -> None:
        """Disconnect and remove what was spilled; a child of a fork has neither."""
        if os.getpid() == self.process:
            _open.discard(self)
            self.connection.close()
            shutil.rmtree(self.spill, ignore_errors=True)


def load(
    source: object, unit: str | None, table: str | None, types: Mapping[str, str] | None, memory: str | None
) -> Loaded:
    """Return a table, locked in.

    Raises:
        InvalidParameter: if the source is none, or the declared types do not fit it.
        EngineError: if it cannot be read.
    """
    declared = _declared(types)
    found = find(source) if isinstance(source, str | Path) or hasattr(source, "__fspath__") else None
    frame = frame_of(source, unit, declared) if found is None else None
    if table is not None and (found is None or found.kind != "duckdb"):
        raise InvalidParameter("table", table, "left out: only a DuckDB file has tables with names")
    connection = duckdb.connect(":memory:", config=_CONFIG)
    spill = Path(tempfile.mkdtemp(prefix="targetcharge-"))
    try:
        _limit(connection, spill, memory)
        units = _fill(connection, _Source(found, frame, table, declared, unit, spill))
        _lock(connection, found)
        schema, expressions, other = _columns(connection, declared, units)
        told = None if unit is None else _unit(connection, column_of(unit, schema, "unit").name, units)
    except BaseException as error:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)
        if not isinstance(error, duckdb.Error):
            raise
        problem = type(error).__name__
    else:
        other |= frame.other if frame else {}
        return Loaded(connection, schema, expressions, other, found, told, spill, os.getpid())
    # Raised here, so that what DuckDB said, which may quote the table, is not its context.
    what = frame.kind + " table" if frame else str(found and found.root)
    msg = f"{what} cannot be read as a table: DuckDB says {problem}"
    raise EngineError(msg)


def _declared(types: object) -> dict[str, str]:
    if types is not None and not isinstance(types, Mapping):
        raise InvalidParameter("types", types, "a dictionary from columns to what they are")
    found = dict(types or {})
    for name, kind in found.items():
        if not isinstance(kind, str) or kind not in DECLARED:
            expected = f"one of {', '.join(DECLARED)}, for column {name!r}"
            raise InvalidParameter("types", kind, expected)
    return found


def _limit(connection: duckdb.DuckDBPyConnection, spill: Path, memory: str | None) -> None:
    connection.execute(f"SET temp_directory = {text(str(spill))}")
    with contextlib.suppress(duckdb.Error):  # a DuckDB that knows no zones has this one
        connection.execute("SET TimeZone = 'UTC'")
    if memory is None:
        return
    if not _AMOUNT.fullmatch(str(memory)):
        raise InvalidParameter("memory", memory, "an amount of memory, such as '4GB'")
    try:
        connection.execute(f"SET memory_limit = {text(str(memory))}")
    except duckdb.Error:
        raise InvalidParameter("memory", memory, "an amount of memory, such as '4GB'") from None


@final
@dataclass(frozen=True)
class _Source:
    files: Files | None
    frame: Frame | None
    table: str | None
    declared: dict[str, str]
    unit: str | None
    spill: Path


def _fill(connection: duckdb.DuckDBPyConnection, source: _Source) -> str | None:
    """Make the relation; return the name of the column that tells units apart, if that is one of our own."""
    if source.frame is not None:
        return _copy_frame(connection, source.frame, source.declared, source.unit)
    files = source.files
    assert files is not None  # noqa: S101 - one of the two is given
    if files.kind == "parquet":
        view_parquet(connection, files, source.unit)
    elif files.kind == "duckdb":
        _attach(connection, files, source.table)
    else:
        names = csv_names(files)
        named = [name for name in names if name.lower() == str(source.unit).lower()]
        units = (named[0], unused(names)) if source.unit is not None and named else None
        copy_csv(connection, files, source.declared, units, source.spill)
        return units and units[1]
    return None


def _unit(connection: duckdb.DuckDBPyConnection, name: str, units: str | None) -> str:
    """Return the SQL that tells units apart: the column as it is read, never as it is shown; NaN is none."""
    if units is not None:
        name = units
    kinds = {each: str(kind) for each, kind, *_ in connection.execute(f"DESCRIBE {RELATION}").fetchall()}
    raw = identifier(name)
    return f"(CASE WHEN isnan(TRY({raw})) THEN NULL ELSE {raw} END)" if kinds[name] in FLOATING else raw


def _copy_frame(
    connection: duckdb.DuckDBPyConnection, frame: Frame, declared: dict[str, str], unit: str | None
) -> str | None:
    """Make the table; return the name of the column that tells units apart, if that is one of our own."""
    _register(connection, frame)
    names = [name for name, *_ in connection.execute("DESCRIBE frame").fetchall()]
    parts, units = [], frame.units
    for name in names:
        kind = DECLARED[declared[name]][0] if name in declared else frame.casts.get(name)
        part = _cast(identifier(name), kind, frame.casts.get(name))
        parts.append(f"{part} AS {identifier(name)}")
        if units is None and part != identifier(name) and name.lower() == str(unit).lower():
            units = unused(names)
            parts.append(f"{identifier(name)} AS {identifier(units)}")
    connection.execute(f"CREATE TABLE {RELATION} AS SELECT {', '.join(parts)} FROM frame")
    connection.unregister("frame")
    return units


def _register(connection: duckdb.DuckDBPyConnection, frame: Frame) -> None:
    """Let DuckDB see a frame, without the columns whose types it cannot read."""
    if _registers(connection, frame.readable):
        return
    columns = dict(frame.columns())
    kept = [name for name, alone in columns.items() if _registers(connection, alone)]
    frame.other.update({name: "a type that cannot be read" for name in columns if name not in kept})
    if not kept or not _registers(connection, frame.only(kept)):
        msg = f"this {frame.kind} table has no column of a type that can be read"
        raise EngineError(msg)


def _registers(connection: duckdb.DuckDBPyConnection, readable: object) -> bool:
    try:
        connection.register("frame", readable)
        connection.execute("DESCRIBE frame").fetchall()
    except ImportError as error:
        raise refuse_without_arrow(error) from None
    except (duckdb.Error, TypeError, ValueError, NotImplementedError):
        return False
    return True


def _cast(raw: str, kind: str | None, given: str | None) -> str:
    """Return a frame's column as the type it is loaded as; a value that is none is missing."""
    if kind == "DOUBLE":
        return f"nullif(TRY_CAST({raw} AS DOUBLE), CAST('nan' AS DOUBLE))"
    if kind == "BOOLEAN" and given in ("BOOLEAN", "DOUBLE"):
        return f"CASE {raw} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END"
    return raw if kind is None else f"TRY_CAST({raw} AS {kind})"


def _attach(connection: duckdb.DuckDBPyConnection, files: Files, table: str | None) -> None:
    connection.execute(f"ATTACH {text(str(files.paths[0]))} AS source (READ_ONLY)")
    rows = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' ORDER BY ALL"
    ).fetchall()
    names = {f"{schema}.{name}" if schema != "main" else name: (schema, name) for schema, name in rows}
    if table is None and len(names) == 1:
        table = next(iter(names))
    if table not in names:
        expected = f"one of the tables of {files.paths[0]}: {', '.join(names) or 'it has none'}"
        raise InvalidParameter("table", table, expected)
    schema, name = names[table]
    full = f"source.{identifier(schema)}.{identifier(name)}"
    connection.execute(f"CREATE VIEW {RELATION} AS SELECT * FROM {full}")


def _lock(connection: duckdb.DuckDBPyConnection, files: Files | None) -> None:
    """From here on the connection reaches its table and its spill folder, and cannot be told otherwise."""
    if files is not None and files.kind == "parquet":
        connection.execute(f"SET allowed_paths = {listed([*map(str, files.paths), *patterns(files)])}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _columns(
    connection: duckdb.DuckDBPyConnection, declared: dict[str, str], units: str | None
) -> tuple[Schema, dict[str, str], dict[str, str]]:
    schema: Schema = {}
    expressions: dict[str, str] = {}
    other: dict[str, str] = {}
    for name, kind, *_ in connection.execute(f"DESCRIBE {RELATION}").fetchall():
        found = typed(name, str(kind))
        if name in declared and (found is None or found[0].kind is not DECLARED[declared[name]][1]):
            found = _declared_as(name, declared[name])
        if found is None:
            other[name] = _without_values(str(kind))
        elif name != units:
            schema[name], expressions[name] = found
    unknown = [name for name in declared if name not in schema]
    if unknown:
        raise InvalidParameter("types", unknown[0], f"about columns of the table: {', '.join(schema)}")
    return schema, expressions, other


def _without_values(kind: str) -> str:
    """Return the name of a type without what it is made of: the names of an enum may be values of the table."""
    return "LIST" if kind.endswith("]") else kind.partition("(")[0]


def _declared_as(name: str, kind: str) -> tuple[Column, str]:
    """Return a column of a file as what the owner declares it to be; a value that is none is missing."""
    duck, public, exact = DECLARED[kind]
    value = f"TRY_CAST({identifier(name)} AS {duck})"
    value = f"nullif({value}, CAST('nan' AS DOUBLE))" if duck == "DOUBLE" else value
    return Column(name, public, exact), value
