"""Measuring in DuckDB: the query of a measure, keys as a relation, and values and units as bytes that are hashed.

As secret as the data.

>>> from targetcharge.engines.duckdb.types import Unit
>>> from targetcharge.queries.keys import Keys
>>> from targetcharge.queries.tree import Column
>>> counties = Keys((Column("county", Kind.TEXT),), (("Kent",), ("Devon",)))
>>> print(with_number(Histogram(None, 1, "it's"), counties, Unit('"id"', "VARCHAR"))[1])
CAST(concat('0x', substr(md5(encode('it''s') || encode("u")), 1, 15)) AS BIGINT)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge.engines import sql
from targetcharge.engines.duckdb.types import stored, typed
from targetcharge.queries.keys import Period
from targetcharge.queries.measures import Count, Histogram, Sketch, without_bound
from targetcharge.queries.tree import Kind, decimal_text, text_literal

if TYPE_CHECKING:
    from targetcharge.engines.duckdb.types import Unit
    from targetcharge.engines.sql import Relation
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Additive, Measure
    from targetcharge.queries.tree import Column, Value

    Query = tuple[str, list[object]]
    """The text of a query, and its parameters."""

_HALF: Final = 2**63
_WIDE: Final = 2**64
_HASHED_DIGITS: Final = 15
"""Hexadecimal digits of a hash that are used: 60 bits, which every engine has as an integer."""


# Measures


def query_of(measure: Measure, relation: Relation) -> str:
    """Return the query of one measure."""
    if isinstance(measure, Sketch):
        return sql.sketch(measure, relation, _hashed(measure.key, measure.column, "v"))
    additive = without_bound(measure)
    return sql.count(additive, relation) if isinstance(additive, Count) else sql.total(additive, relation)


def query_by_key(measure: Additive, keys: Keys, relation: Relation, unit: Unit | None, *, sifted: bool) -> Query:
    """Return the query of a measure of each key that has rows, as i and n."""
    bounded = with_number(measure, keys, unit)
    if bounded is None:
        return with_declared(sql.by_key(without_bound(measure), keys, relation, sifted=sifted), keys)
    histogram, number = bounded
    return with_declared(sql.histogram(histogram, keys, relation, number), keys, histogram)


def with_number(measure: Additive, keys: Keys, unit: Unit | None) -> tuple[Histogram, str] | None:
    """Return a histogram whose bound may bind a unit u, and what u is hashed to; None for any other measure."""
    if not isinstance(measure, Histogram) or unit is None or measure.per_unit >= len(keys.values):
        return None
    known = typed("u", unit.kind, spanned=False)
    assert known is not None  # noqa: S101 - a column of another type tells no units apart
    return measure, _hashed(measure.key, *known)


# Keys


def with_declared(query: str, keys: Keys, histogram: Histogram | None = None) -> Query:
    """Return a query that uses the declared keys, a relation of k1, k2 and their index i; and its parameters.

    For a histogram they have the numbers s and t.
    """
    lists: list[object] = []
    kinds: dict[str, str] = {}
    for place, (name, column) in enumerate(zip(sql.names_of(keys.columns), keys.columns, strict=True)):
        lists.append([parameter_of(column, key[place]) for key in keys.values])
        kinds[name] = _key_type(column, keys.period)
    if histogram is not None:
        lists += histogram.lines(len(keys.values))
        kinds |= {"s": "BIGINT", "t": "BIGINT"}
    parts = [
        f"unnest(CAST(${place} AS {kind}[])) AS {name}" for place, (name, kind) in enumerate(kinds.items(), 1)
    ]
    declared = f"SELECT {', '.join(parts)}, unnest(range({len(keys.values)})) AS i"
    return f"WITH declared AS MATERIALIZED ({declared}) {query}", lists


def parameter_of(column: Column, value: Value | None) -> object:
    """Return a value, or none, as DuckDB takes it: exact numbers as text, if decimals or not surely of 64 bits."""
    if column.exact is not None and (column.exact.scale or column.exact.high >= _WIDE) and isinstance(value, int):
        return decimal_text(value, column.exact.scale)
    return value


def _key_type(column: Column, period: Period | None) -> str:
    """Return the SQL type in which keys are compared with a column: its own, so that files can be skipped."""
    if period is not None:
        return "DATE" if period is Period.DAY else "TIMESTAMP"
    return stored(column)


# Hashes


def _hashed(key: str, column: Column, value: str) -> str:
    """Return the number that a column's value is hashed to."""
    digest = f"md5(encode({text_literal(key)}) || {_data(column, value)})"
    return f"CAST(concat('0x', substr({digest}, 1, {_HASHED_DIGITS})) AS BIGINT)"


def _data(column: Column, value: str) -> str:
    """Return the bytes of a column's value. No value is written as text but a decimal's digits."""
    exact = column.exact
    match column.kind:
        case Kind.TEXT:
            return f"encode({value})"
        case Kind.TIME:
            return _bytes(f"epoch_us({value})")
        case Kind.DATE:
            return _bytes(f"({value} - DATE '1970-01-01')")
        case Kind.BOOLEAN:
            return _bytes(f"CAST({value} AS BIGINT)")
        case Kind.NUMBER if exact is None:
            return _bytes(f"(CAST({value} AS DOUBLE) + CAST('0.0' AS DOUBLE))")  # -0.0 is 0.0
        case Kind.NUMBER if exact.scale:  # of the widest type, or 0.5 would be '.5' in a column of DECIMAL(2,2)
            return f"encode(CAST(CAST({value} AS DECIMAL(38,{exact.scale})) AS VARCHAR))"
        case Kind.NUMBER if exact.low >= -_HALF and exact.high < _HALF:
            return _bytes(f"CAST({value} AS BIGINT)")
        case Kind.NUMBER:
            unsigned = exact.low == 0 and exact.high > _HALF**2
            return _bytes(f"CAST({value} AS {'UHUGEINT' if unsigned else 'HUGEINT'})")


def _bytes(value: str) -> str:
    """Return the bytes of a number, the highest first."""
    return f"CAST(CAST({value} AS BIT) AS BLOB)"
