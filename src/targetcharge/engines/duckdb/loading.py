"""Loading: from a source to one relation of a connection that can reach nothing else.

Parquet and DuckDB files stay where they are; CSV files and frames are copied, typed and closed in. The order of
steps matters: first what needs the file system, then the lock.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import re
import shutil
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import duckdb

from targetcharge.engines.duckdb.files import Files, find
from targetcharge.engines.duckdb.frames import Frame, frame_of, refuse_without_arrow
from targetcharge.engines.duckdb.types import DECLARED, identifier, typed
from targetcharge.errors import EngineError, InvalidParameter
from targetcharge.queries.columns import Column, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

RELATION: Final = "data"
_AMOUNT: Final = re.compile(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", re.IGNORECASE)
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


@final
@dataclass(frozen=True)
class Loaded:
    """An open table.

    Attributes:
        connection: locked down; its relation `data` is the table.
        schema: the columns that may be asked about.
        expressions: the SQL of each column's value.
        other: columns that may not be asked about, with their types.
        files: what the table is made of, if it is files.
        spill: the folder that DuckDB may write to when memory is short; private, removed with the table.
    """

    connection: duckdb.DuckDBPyConnection
    schema: Schema
    expressions: dict[str, str]
    other: dict[str, str]
    files: Files | None
    units: str | None
    spill: Path

    def close(self) -> None:
        """Disconnect and remove what was spilled."""
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
        units = _fill(connection, found, frame, table, declared)
        _lock(connection, found)
        schema, expressions, other = _columns(connection, declared, units)
    except BaseException as error:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)
        if not isinstance(error, duckdb.Error):
            raise
        problem = type(error).__name__
    else:
        other |= frame.other if frame else {}
        return Loaded(connection, schema, expressions, other, found, units, spill)
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
    connection.execute(f"SET temp_directory = {_text(str(spill))}")
    with contextlib.suppress(duckdb.Error):  # a DuckDB that knows no zones has this one
        connection.execute("SET TimeZone = 'UTC'")
    if memory is None:
        return
    if not _AMOUNT.fullmatch(str(memory)):
        raise InvalidParameter("memory", memory, "an amount of memory, such as '4GB'")
    try:
        connection.execute(f"SET memory_limit = {_text(str(memory))}")
    except duckdb.Error:
        raise InvalidParameter("memory", memory, "an amount of memory, such as '4GB'") from None


def _fill(
    connection: duckdb.DuckDBPyConnection,
    files: Files | None,
    frame: Frame | None,
    table: str | None,
    declared: dict[str, str],
) -> str | None:
    """Make the relation; return the name of its unit column if that is one of our own."""
    if frame is not None:
        _copy_frame(connection, frame, declared)
        return frame.units
    assert files is not None  # noqa: S101 - one of the two is given
    if files.kind == "parquet":
        _view_parquet(connection, files)
    elif files.kind == "csv":
        _copy_csv(connection, files, declared)
    else:
        _attach(connection, files, table)
    return None


def _copy_frame(connection: duckdb.DuckDBPyConnection, frame: Frame, declared: dict[str, str]) -> None:
    readable = False
    try:
        connection.register("frame", frame.readable)
        readable = True
    except ImportError as error:
        raise refuse_without_arrow(error) from None
    except (duckdb.Error, TypeError, ValueError, NotImplementedError):
        pass
    if not readable:  # raised here, where what was said of the table is not its context
        msg = f"this {frame.kind} table has a type of column that cannot be read"
        raise EngineError(msg)
    parts = []
    for name, *_ in connection.execute("DESCRIBE frame").fetchall():
        raw, kind = identifier(name), DECLARED[declared[name]][0] if name in declared else frame.casts.get(name)
        if kind == "DOUBLE":
            raw = f"nullif(TRY_CAST({raw} AS DOUBLE), CAST('nan' AS DOUBLE)) AS {raw}"
        elif kind == "BOOLEAN" and frame.casts.get(name) in ("BOOLEAN", "DOUBLE"):
            raw = f"CASE {raw} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END AS {raw}"
        elif kind is not None:
            raw = f"TRY_CAST({raw} AS {kind}) AS {raw}"
        parts.append(raw)
    connection.execute(f"CREATE TABLE {RELATION} AS SELECT {', '.join(parts)} FROM frame")
    connection.unregister("frame")


def _view_parquet(connection: duckdb.DuckDBPyConnection, files: Files) -> None:
    paths = _list(_patterns(files))
    shapes = connection.execute(
        "SELECT min(file_name), shape FROM (SELECT file_name,"
        " string_agg(concat_ws(' ', name, type, converted_type, duckdb_type), ', ' ORDER BY name) AS shape"
        f" FROM parquet_schema({paths}) WHERE type IS NOT NULL GROUP BY file_name) GROUP BY shape ORDER BY 1"
    ).fetchall()
    if len(shapes) > 1:
        msg = f"{shapes[0][0]} and {shapes[1][0]} do not have the same columns: one table has one schema"
        raise EngineError(msg)
    inside = [path.relative_to(files.root).parts[:-1] for path in files.paths] if files.root.is_dir() else []
    hive = any("=" in part for parts in inside for part in parts)
    options = "hive_partitioning = true, hive_types_autocast = false" if hive else "hive_partitioning = false"
    connection.execute(f"CREATE VIEW {RELATION} AS SELECT * FROM read_parquet({paths}, {options})")


def _copy_csv(connection: duckdb.DuckDBPyConnection, files: Files, declared: dict[str, str]) -> None:
    names, separator = _header(files.paths[0])
    for path in files.paths[1:]:
        if _header(path)[0] != names:
            msg = f"{files.paths[0]} and {path} do not have the same columns: one table has one schema"
            raise EngineError(msg)
    unknown = [name for name in declared if name not in names]
    if unknown:
        raise InvalidParameter("types", unknown[0], f"about columns of the table: {', '.join(names)}")
    columns = "{" + ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names) + "}"
    # nullif() keeps the cast out of the reader, which would drop a row for a value that is none of its type.
    types = {name: DECLARED[declared.get(name, "text")][0] for name in names}
    casts = [f"TRY_CAST(nullif({identifier(name)}, '') AS {types[name]}) AS {identifier(name)}" for name in names]
    options = (
        f"auto_detect = false, header = true, delim = {_text(separator)}, quote = '\"', escape = '\"',"
        f" columns = {columns}, ignore_errors = true, null_padding = true, strict_mode = false, parallel = false"
    )
    source = f"read_csv({_list(_patterns(files))}, {options})"
    connection.execute(f"CREATE TABLE {RELATION} AS SELECT {', '.join(casts)} FROM {source}")


def _header(path: Path) -> tuple[list[str], str]:
    """Return the names in a CSV file's first line, and what separates them."""
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    line = None
    with contextlib.suppress(OSError, EOFError, zlib.error, UnicodeDecodeError), opener(path, "rb") as file:
        line = file.readline().partition(b"\r")[0].decode("utf-8-sig")  # not more: rows may hold anything
    if line is None:  # raised here, where the text that could not be read is not its context
        msg = f"{path} cannot be read as text in UTF-8"
        raise EngineError(msg)
    separator = max(",;\t|", key=line.count)
    names: list[str] = []
    with contextlib.suppress(csv.Error):  # a name longer than a hundred thousand characters
        names = next(csv.reader([line], delimiter=separator), [])
    broken = line.count('"') % 2 == 1  # a name with a line break
    if broken or not names or "" in names or len({name.lower() for name in names}) < len(names):
        raise InvalidParameter("source", str(path), "a CSV file whose first line names every column, each once")
    return names, separator


def _attach(connection: duckdb.DuckDBPyConnection, files: Files, table: str | None) -> None:
    connection.execute(f"ATTACH {_text(str(files.paths[0]))} AS source (READ_ONLY)")
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
        connection.execute(f"SET allowed_paths = {_list([*map(str, files.paths), *_patterns(files)])}")
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


def _patterns(files: Files) -> list[str]:
    """Return the files as patterns that match nothing else: a file's name may look like one."""
    return [escape(str(path)) for path in files.paths]


def _list(paths: Iterable[str]) -> str:
    return "[" + ", ".join(map(_text, paths)) + "]"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
