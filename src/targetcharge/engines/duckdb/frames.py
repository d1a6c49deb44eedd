"""Frames: pandas, polars and Arrow tables on their way into DuckDB. Types come from the schema, never from values.

A pandas column of whole numbers turns into floating point as soon as one value is missing. So both are the same
kind here, `number`, compared in double precision (but units keep every digit). Columns of objects are text, and
whatever is not text in them is missing, unless their type is declared: so a column of booleans that turned into
objects, as they do when one is missing, is still one.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.engines.duckdb.quoting import unused
from targetcharge.errors import EngineError, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd
    from numpy.typing import NDArray

_NUMBERS: Final = "iuf"
_OTHER: Final = (
    *("complex", "interval", "period", "timedelta", "duration", "time32", "time64"),
    *("list", "large_list", "fixed_size", "struct", "map", "binary", "large_binary"),
)
"""Types of pandas columns that cannot be asked about; whatever else is not a number or a time is text."""


_ITSELF: Final = ("float64", "float32", "string", "str")
"""Types of pandas columns that tell units apart as they are loaded."""


@final
@dataclass(frozen=True)
class Frame:
    """A frame as DuckDB can read it.

    Attributes:
        kind: "pandas", "polars" or "arrow".
        readable: what DuckDB registers: a frame with types of its own, or arrays by column name.
        casts: the type that a column is loaded as, where it is not its own.
        units: the column that tells units apart, where that is not the one they were named by.
        written: how it writes them; the same for two frames only if equal units are written alike.
        known: the column that is true where that column is not missing, if it cannot say so itself.
        other: columns that cannot be asked about and are not loaded, with their types.
    """

    kind: str
    readable: object = field(repr=False)
    casts: dict[str, str]
    units: str | None = None
    written: str = ""
    known: str | None = None
    other: dict[str, str] = field(default_factory=dict)

    def columns(self) -> Iterator[tuple[str, object]]:
        """Yield each column of a polars or Arrow table as a table of its own."""
        for name in _names(self.readable):
            yield name, self.only([name])

    def only(self, names: list[str]) -> object:
        """Return a polars or Arrow table with some of its columns."""
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
        ("polars", "DataFrame"): lambda frame: Frame("polars", frame, {}),
        ("pyarrow", "Table"): lambda frame: Frame("arrow", frame, {}),
        ("pyarrow", "RecordBatch"): lambda frame: Frame("arrow", _as_table(frame), {}),
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
    names = list(getattr(source, "columns", ())) if module == "pandas" else _names(source)
    if any(not isinstance(each, str) or not each or "\0" in each for each in names):
        raise InvalidParameter("source", type(source), "a table whose columns all have a text as their name")
    if len({each.lower() for each in names}) < len(names):
        raise InvalidParameter(
            "source", type(source), "a table whose columns have different names, in any capitals"
        )
    try:
        return reader(source)
    except InvalidParameter:
        raise
    except Exception:  # noqa: BLE001 - whatever a library says of a value may quote it
        problem = f"this {module} table has a value that cannot be read: declare its column with types, or mend it"
    raise EngineError(problem)


def _names(frame: Any) -> list[str]:  # noqa: ANN401 - a polars frame or an Arrow table
    return list(frame.columns) if type(frame).__module__.startswith("polars") else list(frame.schema.names)


def _as_table(batch: object) -> object:
    import pyarrow as pa  # noqa: PLC0415 - optional, and here for sure: the batch is one of its own

    return pa.Table.from_batches([batch])


def _pandas(frame: pd.DataFrame, unit: str | None, declared: Mapping[str, str]) -> Frame:
    arrays: dict[str, NDArray[Any]] = {}
    casts: dict[str, str] = {}
    other: dict[str, str] = {}
    for name in frame.columns:
        series = frame[name]
        kind = getattr(series.dtype, "kind", "O")
        if kind in _NUMBERS or str(series.dtype).startswith("decimal"):
            arrays[name], casts[name] = series.to_numpy(dtype=np.float64, na_value=np.nan), "DOUBLE"
        elif kind == "b" and declared.get(name, "boolean") == "boolean":
            arrays[name] = series.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
            casts[name] = "BOOLEAN"
        elif kind == "M":
            arrays[name], casts[name] = _times(series)
        elif str(series.dtype).startswith(_OTHER):
            other[name] = str(series.dtype)
        else:
            arrays[name], casts[name] = _texts(series, _written if name in declared else _text), "VARCHAR"
    if not arrays:
        raise InvalidParameter("source", type(frame), "a table with at least one column that can be asked about")
    named = [name for name in arrays if name.lower() == str(unit).lower()]
    if not named or str(frame[named[0]].dtype) in _ITSELF:
        return Frame("pandas", _straight(arrays), casts, other=other)
    series, units = frame[named[0]], unused(frame.columns)
    written = f"{series.dtype} of pandas"
    if series.dtype.kind in "iu":
        whole, written = _whole(series), "whole numbers"
    elif str(series.dtype).startswith("datetime64"):
        whole = series.astype("int64").to_numpy()  # as objects, those at the end of time are not in every zone
    else:
        told, casts[units] = {units: _told_apart(series)}, "VARCHAR"
        return Frame("pandas", _straight({**arrays, **told}), casts, units, written, other=other)
    known = unused([*frame.columns, units], "known")
    told = {units: whole, known: series.notna().to_numpy(dtype=np.bool_)}
    return Frame("pandas", _straight({**arrays, **told}), casts, units, written, known, other)


def _straight(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return arrays whose values lie one after another: those of a reversed frame do not."""
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _times(series: pd.Series) -> tuple[NDArray[Any], str]:
    """Return times in UTC, or dates, and their type."""
    arrow = getattr(series.dtype, "pyarrow_dtype", None)
    if str(arrow).startswith("date"):
        return series.astype("datetime64[us]").to_numpy(), "DATE"
    zone = getattr(arrow or series.dtype, "tz", None)
    plain = series.dt.tz_convert("UTC").dt.tz_localize(None) if zone is not None else series
    return plain.to_numpy().astype("datetime64[us]"), "TIMESTAMP"


def _whole(series: pd.Series) -> NDArray[Any]:
    """Return whole numbers to the last digit, 0 where they are missing: their type must not depend on that."""
    kind: type[np.integer[Any]] = np.uint64 if series.dtype.kind == "u" else np.int64
    found: NDArray[Any] = (
        series.to_numpy(dtype=kind, na_value=kind(0)) if series.hasnans else series.to_numpy(kind)
    )
    return found


def _told_apart(series: pd.Series) -> NDArray[Any]:
    """Return what tells units apart: different for different values, None for missing ones."""
    gone = series.isna()
    told = [None if missing else _told(each) for each, missing in zip(series, gone, strict=True)]
    return np.array(told, dtype=object)


def _told(value: object) -> str | None:
    """Return a value as text with its type: 1, "1" and True are different units."""
    if isinstance(value, str | bytes):
        raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        return f"{type(value).__name__} {raw.hex()}"
    if isinstance(value, float | np.floating):  # as in other columns: NaN is missing, and -0.0 is 0.0
        return f"{type(value).__name__} {value + 0.0!s}" if value == value else None
    return f"{type(value).__name__} {value!s}"


def _texts(series: pd.Series, text: Callable[[object], str | None]) -> NDArray[np.object_]:
    """Return texts, and None for whatever is none. The categories of an enum are text."""
    if str(series.dtype) == "category":
        texts = np.array([None, *(_text(str(each)) for each in series.cat.categories)], dtype=object)
        taken: NDArray[np.object_] = np.take(texts, series.cat.codes.to_numpy() + 1)
        return taken
    return np.array([text(each) for each in series], dtype=object)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value if _is_unicode(value) else None
    return value.isoformat() if type(value) is dt.date else None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _written(value: object) -> str | None:
    """Return a value of a declared column as it would be written, to be read as what it is declared to be."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    try:
        if isinstance(value, dt.datetime):
            plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return plain.isoformat()
        if isinstance(value, int | float | Decimal | np.number):
            return str(value) if value == value else None  # NaN is missing
    except (ValueError, ArithmeticError):  # 5,000 digits, the ends of time, a loud NaN
        return None
    return _text(value)


def refuse_without_arrow(error: ImportError) -> EngineError:
    """Return what to raise where DuckDB needs Arrow to read a frame."""
    return EngineError(f"reading this frame needs a package that is not installed: {error.name or 'pyarrow'}")
