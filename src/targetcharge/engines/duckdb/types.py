"""Types: from DuckDB's names to what an analyst may ask, and the SQL that gives a column's value.

No value that a column can hold makes that SQL fail. DuckDB cannot write as text all the times that files hold:
only one that can be represented is, where its owner declares it text. What cannot be represented is missing: times
and dates outside the years 1 to 9999 (infinite ones among them), decimals with more digits than they declare, NaN,
and what is not of the type that a column is declared to be.

>>> typed("Age", "TINYINT")
(Age (number), '"Age"')
>>> typed("photo", "BLOB") is None
True
>>> stored(Column("price", Kind.NUMBER, Exact(2, -9999, 9999)))
'DECIMAL(4,2)'
"""

from __future__ import annotations

import re
from typing import Final

from targetcharge.engines.duckdb.quoting import identifier
from targetcharge.identity import FIRST_MICROSECOND, LAST_MICROSECOND
from targetcharge.queries.columns import Column, Exact, Kind
from targetcharge.queries.predicates import decimal_text

_WHOLE: Final = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "UHUGEINT": (0, 2**128 - 1),
}
FLOATING: Final = ("FLOAT", "DOUBLE")
_TEXT: Final = ("VARCHAR", "UUID", "JSON")
_COARSE: Final = ("TIMESTAMP_S", "TIMESTAMP_MS")
_ZONED: Final = "TIMESTAMP WITH TIME ZONE"
FINE: Final = ("TIMESTAMP_NS", "TIMESTAMP_NS WITH TIME ZONE", "TIMESTAMPTZ_NS")
"""Types of times that tell nanoseconds."""
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_DAYS: Final = FIRST_MICROSECOND // 86_400_000_000, LAST_MICROSECOND // 86_400_000_000
_SPANS: Final = {
    "DATE": "DATE '0001-01-01' AND DATE '9999-12-31'",
    "TIMESTAMP": "TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'",
}
_WHOLE_MOST: Final = 2.0**63
_MOST_NANOSECONDS: Final = 2**63 - 2
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1000, "us": 1}

BIGINT: Final = Exact(0, *_WHOLE["BIGINT"])

DECLARED: Final = {
    "integer": ("BIGINT", Kind.NUMBER, BIGINT),
    "number": ("DOUBLE", Kind.NUMBER, None),
    "text": ("VARCHAR", Kind.TEXT, None),
    "date": ("DATE", Kind.DATE, None),
    "time": ("TIMESTAMP", Kind.TIME, None),
    "boolean": ("BOOLEAN", Kind.BOOLEAN, None),
}
"""What a caller may declare a column to be: its type here, its kind, and which numbers it holds."""


def typed(name: str, kind: str, *, spanned: bool = True) -> tuple[Column, str] | None:
    """Return a column and the SQL of its value (NULL where it is missing); None if it may not be asked about.

    Args:
        name: of the column.
        kind: its type.
        spanned: whether values of its type may be such that they cannot be represented.
    """
    raw = identifier(name)
    if kind in _WHOLE:
        return Column(name, Kind.NUMBER, Exact(0, *_WHOLE[kind])), raw
    if found := _DECIMAL.fullmatch(kind):
        width, scale = map(int, found.groups())
        column = Column(name, Kind.NUMBER, Exact(scale, 1 - 10**width, 10**width - 1))
        return column, within(raw, kind) if spanned else raw
    if kind in FLOATING:
        return Column(name, Kind.NUMBER), number(raw)
    if kind in _TEXT or is_enum(kind):
        return Column(name, Kind.TEXT), raw if kind == "VARCHAR" else f"CAST({raw} AS VARCHAR)"
    if kind in _SPANS:
        column = Column(name, Kind.DATE if kind == "DATE" else Kind.TIME)
        return column, within(raw, kind) if spanned else raw
    if time := _time(raw, kind):
        return Column(name, Kind.TIME), time
    return (Column(name, Kind.BOOLEAN), raw) if kind == "BOOLEAN" else None


def _time(raw: str, kind: str) -> str | None:
    """Return a time of another type as a TIMESTAMP in UTC that can be represented; None if it is no time."""
    if kind in _COARSE:
        return within(f"TRY_CAST({raw} AS TIMESTAMP)", "TIMESTAMP")
    if kind == _ZONED:  # a cast would ask for the session's time zone, and fail for the ends of time
        return time_from(f"epoch_us({raw})", "us")
    return time_from(f"epoch_ns({raw})", "ns") if kind in FINE else None


def number(value: str) -> str:
    """Return a floating-point number; NaN is missing."""
    # TRY() keeps DuckDB from deciding by a Parquet file's least and largest values, which leave NaN out.
    return f"(CASE WHEN isnan(TRY({value})) THEN NULL ELSE {value} END)"


def number_text(double: str) -> str:
    """Return a double that is not NaN as text: digits if it is whole, so that 1 and 1.0 are the same."""
    whole = f"abs({double}) < CAST('{_WHOLE_MOST!r}' AS DOUBLE) AND {double} = floor({double})"
    digits = f"CAST(CAST({double} AS BIGINT) AS VARCHAR)"
    return f"(CASE WHEN {whole} THEN {digits} ELSE CAST({double} AS VARCHAR) END)"


def within(value: str, kind: str) -> str:
    """Return a value of a spanned type that can be represented; any other is missing."""
    return f"(CASE WHEN {inside(value, kind)} THEN {value} END)"


def is_spanned(kind: str) -> bool:
    """Return whether a type holds more than can be represented: it is read as it is where no such value occurs."""
    return kind in _SPANS or _DECIMAL.fullmatch(kind) is not None


def inside(value: str, kind: str) -> str:
    """Return whether a value of a spanned type can be represented."""
    if found := _DECIMAL.fullmatch(kind):  # files can hold more digits than they declare, and DuckDB fails on some
        width, scale = map(int, found.groups())
        most = decimal_text(10**width - 1, scale)
        return f"{value} BETWEEN CAST('-{most}' AS {kind}) AND CAST('{most}' AS {kind})"
    return f"{value} BETWEEN {_SPANS[kind]}"


def time_from(raw: str, unit: str) -> str:
    """Return the time of an integer: seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if unit == "ns":
        least, most = -_MOST_NANOSECONDS, _MOST_NANOSECONDS  # beyond them DuckDB has infinity, and pandas nothing
        microseconds = f"{raw} // 1000 - CASE WHEN {raw} % 1000 < 0 THEN 1 ELSE 0 END"
        return f"(CASE WHEN {raw} BETWEEN {least} AND {most} THEN make_timestamp({microseconds}) END)"
    step = _MICROSECONDS[unit]
    least, most = -(-FIRST_MICROSECOND // step), LAST_MICROSECOND // step
    return f"(CASE WHEN {raw} BETWEEN {least} AND {most} THEN make_timestamp({raw} * {step}) END)"


def date_from(raw: str) -> str:
    """Return the date of an integer: days since 1970."""
    least, most = _DAYS
    return f"(CASE WHEN {raw} BETWEEN {least} AND {most} THEN DATE '1970-01-01' + CAST({raw} AS INTEGER) END)"


def declared_as(value: str, kind: Kind, declared: str) -> str:
    """Return a value of a kind as what the owner declares its column to be; one that is none is missing."""
    duck = DECLARED[declared][0]
    if declared == "time" and kind is Kind.TEXT:  # by instant, if a zone is written; else in UTC
        return time_from(f"epoch_us(TRY_CAST({value} AS TIMESTAMPTZ))", "us")
    cast = f"TRY_CAST({value} AS {duck})"
    if duck == "DOUBLE":
        return f"nullif({cast}, CAST('nan' AS DOUBLE))"
    return within(cast, duck) if duck in _SPANS else cast


def stored(column: Column) -> str:
    """Return the type in which a column's values are copied, all of them and as they are."""
    if column.kind is not Kind.NUMBER:
        return {kind: duck for duck, kind, _ in DECLARED.values()}[column.kind]
    if column.exact is None:
        return "DOUBLE"
    ends = column.exact.low, column.exact.high
    whole = [name for name, each in _WHOLE.items() if each == ends and not column.exact.scale]
    return whole[0] if whole else f"DECIMAL({len(str(column.exact.high))},{column.exact.scale})"


def is_enum(kind: str) -> bool:
    """Return whether a type is one of a few texts, and not a list of them."""
    return kind.startswith("ENUM(") and kind.endswith(")")
