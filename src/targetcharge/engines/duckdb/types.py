"""Types: from DuckDB's names to what an analyst may ask, and the SQL of a column's value and of its units.

No value that a column can hold makes that SQL fail. DuckDB cannot write as text all the times that files hold:
only one that can be represented is, where its owner declares it text. What cannot be represented is missing: times
and dates outside the years 1 to 9999 (infinite ones among them), decimals with more digits than they declare, NaN,
and what is not of the type that a column is declared to be.

A person counts once, however their id is written. Of a column with a type of its own, equal values are one unit;
times by instant. Of a column that is declared to be something, what it is declared to be, and what is none of that
as it is written. Of a pandas column, one canonical text of each value (`targetcharge.identity`): its type may hang
on a single row.

>>> typed("Age", "TINYINT")
(Age (number), '"Age"')
>>> typed("photo", "BLOB") is None
True
>>> identifier('a"b'), listed(["a", "it's"]), unused(["Unit", "x"])
('"a""b"', "['a', 'it''s']", 'unit_')
>>> stored(Column("price", Kind.NUMBER, Exact(2, -9999, 9999)))
'DECIMAL(4,2)'
>>> unit_of("seen", "TIMESTAMP", '"seen"')
Unit(sql='epoch_us("seen")', kind='BIGINT', identity=Identity(way=<Way.EQUAL: 'equal'>, kind=''))
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from targetcharge.identity import EQUAL, FIRST_MICROSECOND, LAST_MICROSECOND, Identity, Way
from targetcharge.queries.tree import Column, Exact, Kind, decimal_text, text_literal

if TYPE_CHECKING:
    from collections.abc import Iterable

RELATION: Final = "data"
"""The table that a connection was opened with."""

NUMBERED: Final = "numbered"
"""The same rows, each with its place: a column more."""

_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_WHOLE: Final = {
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _BITS.items()},
    **{f"U{name}": (0, 2**bits - 1) for name, bits in _BITS.items()},
}
"""The least and the largest number of each type of whole numbers."""
FLOATING: Final = ("FLOAT", "DOUBLE")
_TEXT: Final = ("VARCHAR", "UUID", "JSON")
_COARSE: Final = ("TIMESTAMP_S", "TIMESTAMP_MS")
_ZONED: Final = "TIMESTAMP WITH TIME ZONE"
FINE: Final = ("TIMESTAMP_NS", "TIMESTAMP_NS WITH TIME ZONE", "TIMESTAMPTZ_NS")
"""Types of times that tell nanoseconds."""
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_DAYS: Final = FIRST_MICROSECOND // 86_400_000_000, LAST_MICROSECOND // 86_400_000_000
_CALENDAR: Final = {
    "DATE": "DATE '0001-01-01' AND DATE '9999-12-31'",
    "TIMESTAMP": "TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'",
}
_WHOLE_MOST: Final = 2.0**63
_MOST_NANOSECONDS: Final = 2**63 - 2
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1000, "us": 1}

DECLARED: Final = {
    "integer": ("BIGINT", Kind.NUMBER, Exact(0, *_WHOLE["BIGINT"])),
    "number": ("DOUBLE", Kind.NUMBER, None),
    "text": ("VARCHAR", Kind.TEXT, None),
    "date": ("DATE", Kind.DATE, None),
    "time": ("TIMESTAMP", Kind.TIME, None),
    "boolean": ("BOOLEAN", Kind.BOOLEAN, None),
}
"""What a caller may declare a column to be: its type here, its kind, and which numbers it holds."""


def identifier(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def listed(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return "[" + ", ".join(map(text_literal, texts)) + "]"


def unused(names: Iterable[str], name: str = "unit") -> str:
    """Return a name for a column that is none of these, in any capitals."""
    taken = {used.lower() for used in names}
    while name in taken:
        name += "_"
    return name


# Values


def typed(name: str, kind: str, *, spanned: bool = True) -> tuple[Column, str] | None:
    """Return a column and the SQL of its value (NULL where it is missing); None if it may not be asked about.

    Values that cannot be represented are looked for if its type may be spanned by such.
    """
    raw = identifier(name)
    value = within(raw, kind) if spanned and is_spanned(kind) else raw
    if kind in _WHOLE:
        return Column(name, Kind.NUMBER, Exact(0, *_WHOLE[kind])), raw
    if decimal := _DECIMAL.fullmatch(kind):
        width, scale = map(int, decimal.groups())
        return Column(name, Kind.NUMBER, Exact(scale, 1 - 10**width, 10**width - 1)), value
    if kind in FLOATING:
        # TRY() keeps DuckDB from deciding by a Parquet file's least and largest values, which leave NaN out.
        return Column(name, Kind.NUMBER), f"(CASE WHEN isnan(TRY({raw})) THEN NULL ELSE {raw} END)"
    if kind in _TEXT or is_enum(kind):
        return Column(name, Kind.TEXT), raw if kind == "VARCHAR" else f"CAST({raw} AS VARCHAR)"
    if kind in ("DATE", "BOOLEAN"):
        return Column(name, Kind(kind.lower())), value
    time = value if kind == "TIMESTAMP" else _time(raw, kind)
    return None if time is None else (Column(name, Kind.TIME), time)


def _time(raw: str, kind: str) -> str | None:
    """Return a time of another type as a TIMESTAMP in UTC that can be represented; None if it is no time."""
    if kind in _COARSE:
        return within(f"TRY_CAST({raw} AS TIMESTAMP)", "TIMESTAMP")
    if kind == _ZONED:  # a cast would ask for the session's time zone, and fail for the ends of time
        return time_from(f"epoch_us({raw})", "us")
    return time_from(f"epoch_ns({raw})", "ns") if kind in FINE else None


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
    return kind in _CALENDAR or _DECIMAL.fullmatch(kind) is not None


def inside(value: str, kind: str) -> str:
    """Return whether a value of a spanned type can be represented."""
    if decimal := _DECIMAL.fullmatch(kind):  # files can hold more digits than declared, and DuckDB fails on some
        width, scale = map(int, decimal.groups())
        most = decimal_text(10**width - 1, scale)
        return f"{value} BETWEEN CAST('-{most}' AS {kind}) AND CAST('{most}' AS {kind})"
    return f"{value} BETWEEN {_CALENDAR[kind]}"


def time_from(raw: str, step: str) -> str:
    """Return the time of an integer: seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if step == "ns":
        least, most = -_MOST_NANOSECONDS, _MOST_NANOSECONDS  # beyond them DuckDB has infinity, and pandas nothing
        microseconds = f"{raw} // 1000 - CASE WHEN {raw} % 1000 < 0 THEN 1 ELSE 0 END"
        return f"(CASE WHEN {raw} BETWEEN {least} AND {most} THEN make_timestamp({microseconds}) END)"
    factor = _MICROSECONDS[step]
    least, most = -(-FIRST_MICROSECOND // factor), LAST_MICROSECOND // factor
    return f"(CASE WHEN {raw} BETWEEN {least} AND {most} THEN make_timestamp({raw} * {factor}) END)"


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
    return within(cast, duck) if duck in _CALENDAR else cast


def stored(column: Column) -> str:
    """Return the type in which a column's values are copied, all of them and as they are."""
    if column.kind is not Kind.NUMBER:
        return {kind: duck for duck, kind, _ in DECLARED.values()}[column.kind]
    if column.exact is None:
        return "DOUBLE"
    ends = column.exact.low, column.exact.high
    whole = [name for name, span in _WHOLE.items() if span == ends and not column.exact.scale]
    return whole[0] if whole else f"DECIMAL({len(str(column.exact.high))},{column.exact.scale})"


def is_enum(kind: str) -> bool:
    """Return whether a type is one of a few texts, and not a list of them."""
    return kind.startswith("ENUM(") and kind.endswith(")")


# Units

_DAY: Final = 86_400_000_000
"""Microseconds."""


@final
@dataclass(frozen=True)
class Unit:
    """What tells units apart.

    Attributes:
        sql: different for different units; NULL for none.
        kind: its type.
        identity: how they are told apart.
    """

    sql: str
    kind: str
    identity: Identity = EQUAL

    def copied_into(self, columns: dict[str, str], names: Iterable[str]) -> Unit:
        """Add its SQL to columns that are copied, under a name that is none of these; return it as read there."""
        own = unused(names)
        columns[own] = self.sql
        return replace(self, sql=identifier(own))


def unit_of(name: str, kind: str, value: str) -> Unit:
    """Return what tells units apart by a column of a type, of which a value may be asked about."""
    raw = identifier(name)
    if kind in FINE:
        return Unit(
            f"(CASE WHEN {value} IS NOT NULL THEN epoch_ns({raw}) END)", "BIGINT", Identity(Way.NANOSECONDS)
        )
    if kind.startswith("TIMESTAMP"):
        return Unit(f"epoch_us({value})", "BIGINT")
    if kind == "DATE":
        return Unit(f"({value} - DATE '1970-01-01')", "BIGINT")
    if is_enum(kind) or kind == "JSON":  # the same texts may be numbered otherwise in another file
        return Unit(f"CAST({raw} AS VARCHAR)", "VARCHAR")
    if kind in FLOATING or is_spanned(kind):
        return Unit(value, kind)
    return Unit(raw, kind)


def declared_unit(value: str, kind: Kind, declared: str) -> Unit:
    """Return what tells units apart by a column that is declared to be something: canonical text.

    That of a value as what the column is declared to be, and of others as they are. Numbers are as exact as
    floating point: so they are the same however they were stored.
    """
    if declared == "text":
        return Unit(_text(value, kind), "VARCHAR", EQUAL if kind is Kind.TEXT else Identity(Way.TEXT_OF, kind))
    if declared in ("integer", "number"):
        double = f"nullif(TRY_CAST({value} AS DOUBLE), CAST('nan' AS DOUBLE))"
        read = _canonical(f"round({double})" if declared == "integer" else double)
    else:
        read = _text(declared_as(value, kind, declared), DECLARED[declared][1])
    return Unit(f"coalesce({read}, {_text(value, kind)})", "VARCHAR", Identity(Way.READ_AS, declared))


def _text(value: str, kind: Kind) -> str:
    """Return a value as text. Times are written as numbers, of which DuckDB can write all."""
    match kind:
        case Kind.TEXT:
            return value
        case Kind.TIME:
            return f"('@' || epoch_us({value}))"
        case Kind.DATE:
            return f"('@' || ({value} - DATE '1970-01-01') * {_DAY})"
        case Kind.NUMBER:
            return _canonical(f"CAST({value} AS DOUBLE)")
        case Kind.BOOLEAN:
            return f"CAST({value} AS VARCHAR)"


def _canonical(double: str) -> str:
    """Return a number as canonical text: a whole one's digits, another in single precision."""
    fraction = f"{double} <> floor({double}) AND abs({double}) < CAST('{2.0**53!r}' AS DOUBLE)"
    single = number_text(f"CAST(CAST({double} AS FLOAT) AS DOUBLE)")
    return f"(CASE WHEN {fraction} THEN {single} ELSE {number_text(double)} END)"
