"""Types: from DuckDB's names to what an analyst may ask, and the SQL that gives a column's value.

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
from targetcharge.queries.columns import Column, Exact, Kind

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
_TIMES: Final = ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
_ZONED: Final = "TIMESTAMP WITH TIME ZONE"
_ZONED_FINE: Final = ("TIMESTAMP_NS WITH TIME ZONE", "TIMESTAMPTZ_NS")
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")

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


def typed(name: str, kind: str) -> tuple[Column, str] | None:
    """Return a column and the SQL of its value (NULL where it is missing); None if it may not be asked about."""
    raw = identifier(name)
    if kind in _WHOLE:
        return Column(name, Kind.NUMBER, Exact(0, *_WHOLE[kind])), raw
    if found := _DECIMAL.fullmatch(kind):
        width, scale = map(int, found.groups())
        return Column(name, Kind.NUMBER, Exact(scale, 1 - 10**width, 10**width - 1)), raw
    if kind in FLOATING:
        # TRY() keeps DuckDB from deciding by a Parquet file's least and largest values, which leave NaN out.
        return Column(name, Kind.NUMBER), f"(CASE WHEN isnan(TRY({raw})) THEN NULL ELSE {raw} END)"
    if kind in _TEXT or is_enum(kind):
        return Column(name, Kind.TEXT), raw if kind == "VARCHAR" else f"CAST({raw} AS VARCHAR)"
    if kind == "DATE":
        return Column(name, Kind.DATE), raw
    if kind == "TIMESTAMP":
        return Column(name, Kind.TIME), raw
    if kind in _TIMES:
        return Column(name, Kind.TIME), f"TRY_CAST({raw} AS TIMESTAMP)"
    if kind == _ZONED:
        # In UTC. A cast would ask for the session's time zone, and fail for the ends of time.
        return Column(name, Kind.TIME), f"TRY(make_timestamp(epoch_us({raw})))"
    if kind in _ZONED_FINE:
        return Column(name, Kind.TIME), f"TRY(make_timestamp(epoch_ns({raw}) // 1000))"
    return (Column(name, Kind.BOOLEAN), raw) if kind == "BOOLEAN" else None


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
