"""Frames: pandas, polars and Arrow tables on their way into DuckDB. Types come from the schema, never from values.

A pandas column of whole numbers turns into floating point as soon as one value is missing. So both are the same
kind here, `number`, compared in double precision. Columns of objects are text, and whatever is not text in them is
missing, unless their type is declared: so a column of booleans that turned into objects, as they do when one is
missing, is still one. Times are handed over as integers: DuckDB refuses a whole table for one that it cannot hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.engines.duckdb.pandas_columns import (
    NUMBERS,
    Units,
    doubles_of,
    kind_of,
    number_written,
    since_1970,
    texts_of,
    units_of,
    written,
)
from targetcharge.engines.duckdb.quoting import identifier
from targetcharge.engines.duckdb.types import date_from, time_from
from targetcharge.errors import EngineError, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd
    from numpy.typing import NDArray

_OTHER: Final = (
    *("complex", "interval", "period", "timedelta", "duration", "time32", "time64"),
    *("list", "large_list", "fixed_size", "struct", "map", "binary", "large_binary"),
)
"""Types of pandas columns that cannot be asked about; whatever else is not a number or a time is text."""
_TRUTH: Final = "CASE {} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END"


@final
@dataclass(frozen=True)
class Frame:
    """A frame as DuckDB can read it.

    Attributes:
        kind: "pandas", "polars" or "arrow".
        readable: what DuckDB registers: an Arrow table, or arrays by column name.
        values: the SQL of a column's value, where it is not the column itself.
        units: what tells units apart, where that is not the column they were named by.
        other: columns that cannot be asked about and are not loaded, with their types.
    """

    kind: str
    readable: object = field(repr=False)
    values: dict[str, str] = field(default_factory=dict)
    units: Units | None = None
    other: dict[str, str] = field(default_factory=dict)

    def columns(self) -> Iterator[tuple[str, object]]:
        """Yield each column of an Arrow table as a table of its own."""
        table: Any = self.readable
        for name in table.schema.names:
            yield name, self.only([name])

    def only(self, names: list[str]) -> object:
        """Return an Arrow table with some of its columns."""
        table: Any = self.readable
        return table.select(names)


def frame_of(source: object, unit: str | None, declared: Mapping[str, str]) -> Frame:
    """Return the frame that a caller gave, with its unit column, if that is what units are.

    Raises:
        InvalidParameter: if it is none, or one that can be read only once.
    """
    module, name = type(source).__module__.partition(".")[0], type(source).__name__
    readers: dict[tuple[str, str], Callable[[Any], Frame]] = {
        ("pandas", "DataFrame"): lambda frame: _pandas(frame, unit, declared),
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
    if any(not isinstance(each, str) or not each or "\0" in each for each in names):
        raise InvalidParameter("source", type(source), "a table whose columns all have a text as their name")
    if len({each.lower() for each in names}) < len(names):
        expected = "a table whose columns have different names, in any capitals"
        raise InvalidParameter("source", type(source), expected)


# Arrow and polars


def _as_table(batch: object) -> object:
    import pyarrow as pa  # noqa: PLC0415 - optional, and here for sure: the batch is one of its own

    return pa.Table.from_batches([batch])


def _polars(frame: Any) -> Frame:  # noqa: ANN401 - a polars frame
    objects = [name for name, kind in frame.schema.items() if str(kind) == "Object"]  # Arrow has only their places
    return replace(_arrow("polars", frame.drop(objects).to_arrow()), other=dict.fromkeys(objects, "Object"))


def _arrow(kind: str, table: Any) -> Frame:  # noqa: ANN401 - an Arrow table
    import pyarrow as pa  # noqa: PLC0415 - optional, and here for sure: the table is one of its own
    import pyarrow.compute  # noqa: PLC0415 - of the same

    values: dict[str, str] = {}
    for place, (name, array) in enumerate(zip(table.schema.names, table.columns, strict=True)):
        array = _plain(pa, array)  # noqa: PLW2901 - the same values
        if pa.types.is_timestamp(array.type) and array.type.unit != "ns":  # of those DuckDB holds all
            values[name], plain = time_from(identifier(name), array.type.unit), array.cast(pa.int64())
        elif pa.types.is_date(array.type):
            values[name], plain = _arrow_date(pa, name, array)
        else:
            plain = array
            if _is_text(pa, array.type):  # bytes that are no text are missing
                values[name] = f"TRY(decode(encode({identifier(name)})))"
        table = table.set_column(place, name, plain)
    return Frame(kind, table, values)


def _plain(pa: Any, array: Any) -> Any:  # noqa: ANN401 - Arrow, and a column of it
    """Return a column's values themselves, if it has them in a dictionary, in runs, or says that they are JSON."""
    if pa.types.is_run_end_encoded(array.type):
        return pa.chunked_array(
            [pa.compute.run_end_decode(chunk) for chunk in array.chunks], array.type.value_type
        )
    if pa.types.is_dictionary(array.type):
        return array.cast(array.type.value_type)
    is_json = getattr(array.type, "extension_name", "") == "arrow.json"
    return array.cast(array.type.storage_type) if is_json else array


def _is_text(pa: Any, kind: Any) -> bool:  # noqa: ANN401 - Arrow, and one of its types
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in kinds)


def _arrow_date(pa: Any, name: str, array: Any) -> tuple[str, Any]:  # noqa: ANN401 - Arrow, and a column of it
    raw = identifier(name)
    if pa.types.is_date32(array.type):
        return date_from(raw), array.cast(pa.int32())
    return f"CAST({time_from(raw, 'ms')} AS DATE)", array.cast(pa.int64())


# pandas


def _pandas(frame: pd.DataFrame, unit: str | None, declared: Mapping[str, str]) -> Frame:
    arrays: dict[str, NDArray[Any]] = {}
    values: dict[str, str] = {}
    other: dict[str, str] = {}
    for name in frame.columns:
        series, raw, kind = frame[name], identifier(name), kind_of(frame[name])
        if kind in NUMBERS and (kind != "b" or name not in declared):
            arrays[name] = doubles_of(series)
            values[name] = number_written(raw) if name in declared else _number(raw, kind)
        elif kind == "M":
            arrays[name], values[name] = _times(series, raw)
        elif str(series.dtype).startswith(_OTHER):
            other[name] = str(series.dtype)
        elif str(series.dtype).startswith("decimal") and name not in declared:
            arrays[name], values[name] = doubles_of(series), _number(raw, "f")
        else:
            arrays[name] = written(series) if name in declared else texts_of(series)
            values[name] = f"CAST({raw} AS VARCHAR)"  # without values DuckDB takes it for numbers
    if not arrays:
        raise InvalidParameter("source", type(frame), "a table with at least one column that can be asked about")
    named = [name for name in arrays if name.lower() == str(unit).lower()]
    units = None if not named or named[0] in declared else units_of(frame[named[0]], frame.columns)
    if units is not None:
        arrays |= units.arrays
    straight = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # a reversed frame is not
    return Frame("pandas", straight, values, units, other)


def _number(raw: str, kind: str) -> str:
    """Return the SQL of a number, or of a boolean, that is not declared."""
    return _TRUTH.format(raw) if kind == "b" else f"nullif({raw}, CAST('nan' AS DOUBLE))"


def _times(series: pd.Series, raw: str) -> tuple[NDArray[np.int64], str]:
    """Return times or dates as integers, and the SQL that makes times or dates of them again."""
    integers, unit = since_1970(series)
    if unit == "D":
        return integers, date_from(raw)
    time = time_from(raw, unit)
    return integers, f"CAST({time} AS DATE)" if str(series.dtype).startswith("date64") else time
