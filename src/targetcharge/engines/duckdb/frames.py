"""Frames: pandas, polars and Arrow tables, copied into DuckDB. Types come from the schema, never from values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import duckdb
import numpy as np

from targetcharge.engines.duckdb.pandas_frames import columns_of, units_of
from targetcharge.engines.duckdb.table import bytes_as_text, without_values
from targetcharge.engines.duckdb.types import (
    BY_VALUE,
    Unit,
    date_from,
    declared_as,
    declared_unit,
    identifier,
    is_spanned,
    time_from,
    typed,
    within,
)
from targetcharge.errors import EngineError, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.duckdb.table import Options

_HARMLESS = ("BLOB", '"NULL"')
"""Types that cannot be asked about, and of which every value can be copied."""


@final
@dataclass(frozen=True)
class Frame:
    """A frame as DuckDB can read it.

    Attributes:
        kind: "pandas", "polars" or "arrow".
        readable: what DuckDB registers: an Arrow table, or arrays by column name.
        values: the SQL of a column's value, where it is not the column itself.
        other: columns that cannot be asked about and are not loaded, with their types.
        unit: the SQL of the canonical text that tells units apart, where the named column itself does not.
        hidden: columns that are read for it, and are none of the table's.
    """

    kind: str
    readable: object = field(repr=False)
    values: dict[str, str]
    other: dict[str, str] = field(default_factory=dict)
    unit: str | None = None
    hidden: frozenset[str] = frozenset()


def frame_of(source: object, options: Options) -> Frame:
    """Return the frame that a caller gave, with its unit column, if that is what units are.

    Raises:
        InvalidParameter: if it is none, or one that can be read only once.
    """
    module, name = type(source).__module__.partition(".")[0], type(source).__name__
    readers: dict[tuple[str, str], Callable[[Any], Frame]] = {
        ("pandas", "DataFrame"): lambda frame: _pandas(frame, options),
        ("polars", "DataFrame"): _polars,
        ("pyarrow", "Table"): lambda frame: _arrow("arrow", frame),
        ("pyarrow", "RecordBatch"): lambda frame: _arrow("arrow", _as_table(frame)),
    }
    reader = readers.get((module, name))
    if reader is None:
        hints = {
            ("polars", "LazyFrame"): ": call .collect() first",
            ("pyarrow", "RecordBatchReader"): ": call .read_all() first, a reader can be read only once",
        }
        hint = hints.get((module, name), "")
        expected = "a file, a folder or pattern of files, or a pandas, polars or Arrow table" + hint
        plain = source is None or isinstance(source, int | float | bytes)
        raise InvalidParameter("source", source if plain else type(source), expected)
    _check_names(source, module)
    try:
        return reader(source)
    except InvalidParameter:
        raise
    except ImportError as error:
        problem = f"reading this frame needs a package that is not installed: {error.name or 'pyarrow'}"
    except Exception:  # noqa: BLE001 - whatever a library says of a value may quote it
        problem = f"this {module} table cannot be read: declare its columns with types, or write it to a file"
    raise EngineError(problem)


def _check_names(source: Any, module: str) -> None:  # noqa: ANN401 - a frame of any library
    names = list(source.schema.names if module == "pyarrow" else source.columns)
    if any(not isinstance(name, str) or not name or "\0" in name for name in names):
        raise InvalidParameter("source", type(source), "a table whose columns all have a text as their name")
    if len({name.lower() for name in names}) < len(names):
        expected = "a table whose columns have different names, in any capitals"
        raise InvalidParameter("source", type(source), expected)


def _pandas(frame: pd.DataFrame, options: Options) -> Frame:
    arrays, values, other = columns_of(frame, options)
    units = [name for name in arrays if options.is_unit(name) and name not in options.declared]
    hidden, unit = units_of(frame[units[0]], frame.columns) if units else ({}, None)
    # Those of a frame that was reversed are not contiguous.
    straight = {name: np.ascontiguousarray(array) for name, array in (arrays | hidden).items()}
    return Frame("pandas", straight, values, other, unit, frozenset(hidden))


def _as_table(batch: object) -> object:
    import pyarrow as pa  # noqa: PLC0415 - optional, and here for sure: the batch is one of its own

    return pa.Table.from_batches([batch])


def _polars(frame: Any) -> Frame:  # noqa: ANN401 - a polars frame
    objects = [name for name, kind in frame.schema.items() if str(kind) == "Object"]  # Arrow has only their places
    return _arrow("polars", frame.drop(objects).to_arrow(), dict.fromkeys(objects, "Object"))


def _arrow(kind: str, table: Any, other: dict[str, str] | None = None) -> Frame:  # noqa: ANN401 - an Arrow table
    import pyarrow as pa  # noqa: PLC0415 - optional, and here for sure: the table is one of its own
    import pyarrow.compute  # noqa: PLC0415 - of the same

    values: dict[str, str] = {}
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    for place, (name, encoded) in enumerate(zip(table.schema.names, table.columns, strict=True)):
        array, raw = _decoded(pa, encoded), identifier(name)
        if pa.types.is_timestamp(array.type) and array.type.unit != "ns":  # of those DuckDB holds all
            values[name], array = time_from(raw, array.type.unit), array.cast(pa.int64())
        elif pa.types.is_date32(array.type):
            values[name], array = date_from(raw), array.cast(pa.int32())
        elif pa.types.is_date64(array.type):
            values[name], array = f"CAST({time_from(raw, 'ms')} AS DATE)", array.cast(pa.int64())
        elif any(is_text(array.type) for is_text in texts):  # bytes that are no text are missing
            values[name] = f"TRY(decode(encode({raw})))"
        table = table.set_column(place, name, array)
    return Frame(kind, table, values, other or {})


def _decoded(pa: Any, array: Any) -> Any:  # noqa: ANN401 - Arrow, and a column of it
    """Return a column's values themselves, if it has them in a dictionary, in runs, or says that they are JSON."""
    if pa.types.is_run_end_encoded(array.type):
        chunks = [pa.compute.run_end_decode(chunk) for chunk in array.chunks]
        return pa.chunked_array(chunks, array.type.value_type)
    if pa.types.is_dictionary(array.type):
        return array.cast(array.type.value_type)
    is_json = getattr(array.type, "extension_name", "") == "arrow.json"
    return array.cast(array.type.storage_type) if is_json else array


# Into DuckDB


def copy_frame(link: Connection, table: str, frame: Frame, options: Options) -> tuple[list[str], Unit | None]:
    """Copy a frame into a table of columns c0, c1, …; return their names, and what of ours tells units apart."""
    try:
        _register(link, frame)
        names = [name for name, *_ in link.rows("DESCRIBE frame")]
        values = ", ".join(f"{frame.values.get(name, identifier(name))} AS {identifier(name)}" for name in names)
        rows = f"(SELECT {values} FROM frame)"
        parts: dict[str, str] = {}
        unit = None
        for name, kind, *_ in link.rows(f"DESCRIBE SELECT * FROM {rows}"):
            declared, known, raw = options.declared.get(name), typed(name, str(kind)), identifier(name)
            if name in frame.hidden:
                continue
            if declared is not None:
                column, value = known or bytes_as_text(name, str(kind))
                parts[name] = declared_as(value, column.kind, declared)
                if options.is_unit(name):
                    unit = declared_unit(value, column.kind, declared).copied_into(parts, names)
            elif known is not None or kind in _HARMLESS:
                parts[name] = within(raw, str(kind)) if is_spanned(str(kind)) else raw
            else:  # not copied: a value could make that fail
                frame.other[name] = without_values(str(kind))
        if frame.unit is not None:
            unit = Unit(frame.unit, "VARCHAR", BY_VALUE).copied_into(parts, names)
        if not parts:
            raise _unreadable(frame)
        columns = ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts.values()))
        link.rows(f"CREATE TABLE {table} AS SELECT {columns} FROM {rows}")
    finally:
        link.raw.unregister("frame")
    return list(parts), unit


def _register(link: Connection, frame: Frame) -> None:
    """Let DuckDB see a frame, without the columns whose types it cannot read: only Arrow has such."""
    if _registers(link, frame.readable):
        return
    table: Any = frame.readable
    names = list(table.schema.names)
    kept = [name for name in names if _registers(link, table.select([name]))]
    frame.other.update({name: "a type that cannot be read" for name in names if name not in kept})
    if not kept or not _registers(link, table.select(kept)):
        raise _unreadable(frame)


def _unreadable(frame: Frame) -> EngineError:
    return EngineError(f"this {frame.kind} table has no column of a type that can be read")


def _registers(link: Connection, readable: object) -> bool:
    try:
        link.raw.register("frame", readable)
        link.raw.execute("DESCRIBE frame").fetchall()
    except (duckdb.Error, TypeError, ValueError, NotImplementedError):
        return False
    return True
