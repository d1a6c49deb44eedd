"""Frames: pandas, polars and Arrow tables, copied into DuckDB. Types come from the schema, never from values.

Columns of pandas are read in the same way whatever type one row has made of them. A missing value turns whole
numbers into floating point, so both are the same kind here, `number`, compared in double precision. A text turns
numbers into objects, and so does a missing value booleans. Columns of objects are text, and whatever is not text
in them is missing, unless their type is declared: what is declared is first written as text, numbers as floating
point writes them, and then read as what it is declared to be. Of a column that nobody declared units are told
apart by one canonical text of each value (`targetcharge.identity`). Times are handed over as integers: DuckDB
refuses a whole table for one that it cannot hold.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, final

import duckdb
import numpy as np

from targetcharge.engines.duckdb.table import bytes_as_text, without_values
from targetcharge.engines.duckdb.types import (
    Unit,
    date_from,
    declared_as,
    declared_unit,
    identifier,
    is_spanned,
    number_text,
    time_from,
    typed,
    unused,
    within,
)
from targetcharge.errors import EngineError, InvalidParameter
from targetcharge.identity import EXACT, Identity, Way, canonical, of_integer, of_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd
    from numpy.typing import NDArray

    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.duckdb.table import Options

    Objects = NDArray[np.object_]
    Arrays = dict[str, NDArray[Any]]

_HARMLESS: Final = ("BLOB", '"NULL"')
"""Types that cannot be asked about, and of which every value can be copied."""
_NUMBERS: Final = "iufb"
"""Kinds of NumPy's types that hold numbers, and booleans."""
_TEXT: Final = ("string", "str")
_OTHER: Final = (
    *("complex", "interval", "period", "timedelta", "duration", "time32", "time64"),
    *("list", "large_list", "fixed_size", "struct", "map", "binary", "large_binary"),
)
"""Types of columns that cannot be asked about; whatever else is not a number or a time is text."""
_NO_NUMBER: Final = 2**62
"""Stands where a value is not one of the simple numbers, which are smaller."""
_WHOLE: Final = 2**63


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
    arrays, values, other = _columns_of(frame, options)
    units = [name for name in arrays if options.is_unit(name) and name not in options.declared]
    hidden, unit = _units_of(frame[units[0]], frame.columns) if units else ({}, None)
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
            unit = Unit(frame.unit, "VARCHAR", Identity(Way.BY_VALUE)).copied_into(parts, names)
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


# Columns of pandas


def _columns_of(frame: pd.DataFrame, options: Options) -> tuple[Arrays, dict[str, str], dict[str, str]]:
    """Return arrays that DuckDB can read, the SQL of a value of each, and columns that cannot be asked about.

    Raises:
        InvalidParameter: if there are only such columns.
    """
    arrays: Arrays = {}
    values: dict[str, str] = {}
    other: dict[str, str] = {}
    for name in frame.columns:
        series, raw, kind, dtype = frame[name], identifier(name), _kind(frame[name]), str(frame[name].dtype)
        declared = name in options.declared
        number = f"nullif({raw}, CAST('nan' AS DOUBLE))"
        if kind in _NUMBERS and not (kind == "b" and declared):
            arrays[name] = _doubles(series)
            truth = f"CASE {raw} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END"
            values[name] = number_text(number) if declared else truth if kind == "b" else number
        elif kind == "M":
            arrays[name], values[name] = _times(series, raw)
        elif dtype.startswith(_OTHER):
            other[name] = dtype
        elif dtype.startswith("decimal") and not declared:
            arrays[name], values[name] = _doubles(series), number
        else:
            undeclared = _category_text if dtype == "category" else _text
            arrays[name] = texts(series, written if declared else undeclared)
            values[name] = f"CAST({raw} AS VARCHAR)"  # without values DuckDB takes it for numbers
    if not arrays:
        raise InvalidParameter("source", type(frame), "a table with at least one column that can be asked about")
    return arrays, values, other


def _units_of(series: pd.Series, names: Iterable[str]) -> tuple[Arrays, str]:
    """Return what tells the units of a column apart: the SQL of a canonical text.

    With the columns that it is made of, which are none of the frame's: whole numbers, or texts, or both.
    """
    name = unused(names, "unit")
    text = f"CAST({identifier(name)} AS VARCHAR)"  # without values DuckDB takes it for numbers
    if _kind(series) == "M":  # as objects, those at the end of time are not in every zone
        integers, step = _since_1970(series)
        return {name: _texts_of_unique(integers, lambda number: of_integer(int(number), step))}, text
    if _kind(series) not in _NUMBERS:
        return {name: texts(series, canonical)}, text
    # Most numbers in DuckDB, which writes a million in the time that Python takes for a few thousand.
    numbers = unused([*names, name], "number")
    doubles = _doubles(series)
    simple = (np.abs(doubles) < EXACT) & (doubles == np.floor(doubles))
    others = np.full(len(doubles), None, dtype=object)
    others[~simple] = _texts_of_unique(doubles[~simple], of_number)
    whole = np.where(simple, doubles, _NO_NUMBER).astype(np.int64)
    digits = f"CASE WHEN {identifier(numbers)} < {_NO_NUMBER} THEN CAST({identifier(numbers)} AS VARCHAR) END"
    return {numbers: whole, name: others}, f"coalesce({text}, {digits})"


def _texts_of_unique(values: NDArray[Any], text_of: Callable[[Any], str | None]) -> Objects:
    """Return the text of each value, made once for all that are equal."""
    different, places = np.unique(values, return_inverse=True)
    texts_of_different: Objects = np.array([text_of(value) for value in different.tolist()], dtype=object)
    return texts_of_different[places]


def _kind(series: pd.Series) -> str:
    """Return the kind of a column's type, as NumPy calls it; O for objects and whatever else there is."""
    return str(getattr(series.dtype, "kind", "O"))


def _doubles(series: pd.Series) -> NDArray[np.float64]:
    """Return the numbers of a column in double precision; NaN where they are missing."""
    with np.errstate(all="ignore"):  # that one is too large is nobody's business
        plain = series.astype("Float64") if _kind(series) == "b" else series
        doubles: NDArray[np.float64] = plain.to_numpy(dtype=np.float64, na_value=np.nan)
    return doubles


def _times(series: pd.Series, raw: str) -> tuple[NDArray[np.int64], str]:
    """Return times or dates as integers, and the SQL that makes times or dates of them again."""
    integers, step = _since_1970(series)
    if step == "D":
        return integers, date_from(raw)
    time = time_from(raw, step)
    return integers, f"CAST({time} AS DATE)" if str(series.dtype).startswith("date64") else time


def _since_1970(series: pd.Series) -> tuple[NDArray[np.int64], str]:
    """Return the times or dates of a column as integers, and their step: "D", "s", "ms", "us" or "ns".

    In UTC. A missing one is the least integer, which is no time that can be represented.
    """
    arrow = getattr(series.dtype, "pyarrow_dtype", None)
    if arrow is None:
        return series.astype("int64").to_numpy(), series.dt.unit
    days = str(arrow).startswith("date32")
    integers = series.astype("int32[pyarrow]") if days else series
    plain = integers.astype("int64[pyarrow]").to_numpy(dtype=np.int64, na_value=-(2**63))
    return plain, "D" if days else getattr(arrow, "unit", "ms")


def texts(series: pd.Series, text_of: Callable[[object], str | None]) -> Objects:
    """Return the text of each value of a column; None for what has none, or not in UTF-8."""
    dtype = str(series.dtype)
    if dtype == "category":
        codes, values = series.cat.codes.to_numpy(), series.cat.categories
    elif dtype.startswith(_TEXT):
        codes, values = series.factorize()
    else:
        return np.array([_safely(text_of, value) for value in series], dtype=object)
    texts_of_codes = np.array([*(_safely(text_of, value) for value in values), None], dtype=object)
    texts_of_rows: Objects = texts_of_codes[codes]  # the code of a missing value is -1
    return texts_of_rows


def _safely(text_of: Callable[[object], str | None], value: object) -> str | None:
    try:
        text = text_of(value)
        return None if text is None else text.encode().decode()
    except Exception:  # noqa: BLE001 - half of a surrogate pair, a class of the caller's own
        return None


def _category_text(category: object) -> str:
    """Return a category as text: those of an enum are."""
    return str.__str__(category) if isinstance(category, str) else str(category)


def _text(value: object) -> str | None:
    """Return a value of a column that nobody declared, if it is text."""
    if isinstance(value, str):
        return str.__str__(value)
    return value.isoformat() if type(value) is dt.date else None


def written(value: object) -> str | None:
    """Return a value of a declared column as it would be written; None for what cannot be."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | Decimal | np.number):
        double = float(value)
        if double != double:
            return None
        return str(int(double)) if abs(double) < _WHOLE and double.is_integer() else repr(double)
    if isinstance(value, dt.datetime):
        plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        whole, part = plain.isoformat(sep=" ", timespec="seconds"), f".{plain.microsecond:06d}".rstrip("0")
        return (whole + part).rstrip(".") if plain == plain else None  # as DuckDB writes it; NaT is missing
    return value.decode() if isinstance(value, bytes) else _text(value)
