"""SQL: predicates and measures as text for an engine, made from typed trees and never from a caller's text.

>>> from targetcharge.queries.columns import Column, Exact, Kind
>>> from targetcharge.queries.predicates import Compare, Operator
>>> age = Column("age", Kind.NUMBER, Exact(0, -128, 127))
>>> condition(Compare(age, Operator.GT, 65), {"age": '"age"'})
'("age" > (65))'
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from targetcharge.queries.columns import Kind
from targetcharge.queries.measures import MOST_STEPS
from targetcharge.queries.predicates import (
    All,
    Any,
    Compare,
    Like,
    Missing,
    Not,
    OneOf,
    Settled,
    decimal_text,
    text_literal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.queries.columns import Column, Exact, Value
    from targetcharge.queries.measures import Sketch, Total
    from targetcharge.queries.predicates import Predicate

    Expressions = Mapping[str, str]
    """From a column's name to the SQL that gives its value, NULL where it is missing."""

_HALF: Final = 2**63
_HASHED_DIGITS: Final = 15
"""Hexadecimal digits of a hash that are used: 60 bits, which every engine has as an integer."""


def condition(predicate: Predicate | None, by: Expressions) -> str:
    """Return a predicate as SQL, with SQL's own three-valued logic."""
    match predicate:
        case None:
            return "TRUE"
        case Compare(column, operator, value):
            return f"({by[column.name]} {operator} {literal(column, value)})"
        case OneOf(column, values):
            return f"({by[column.name]} IN ({', '.join(literal(column, each) for each in values)}))"
        case Missing(column):
            return f"({by[column.name]} IS NULL)"
        case Like(column, pattern):
            return f"({by[column.name]} LIKE {text_literal(pattern)})"
        case Settled(column, holds):
            return f"(CASE WHEN {by[column.name]} IS NOT NULL THEN {str(holds).upper()} END)"
        case All(parts):
            return "(" + " AND ".join(condition(part, by) for part in parts) + ")"
        case Any(parts):
            return "(" + " OR ".join(condition(part, by) for part in parts) + ")"
        case Not(part):
            return f"(NOT {condition(part, by)})"


def literal(column: Column, value: Value) -> str:
    """Return a literal as SQL, of a type that needs no conversion that could fail."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, int) and column.exact is not None:
        text = decimal_text(value, column.exact.scale)
        return f"CAST('{text}' AS DECIMAL(38,{column.exact.scale}))" if column.exact.scale else f"({text})"
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def steps(total: Total, by: Expressions) -> str:
    """Return a row's value in steps of the grid; NULL where it is missing."""
    value = by[total.column.name]
    exact = total.column.exact
    if exact is not None and exact.scale == 0 and total.grid == 1:
        number, most = value, f"{MOST_STEPS}"
    else:
        number = (
            f"floor(CAST({value} AS DOUBLE) / CAST('{float(total.grid)!r}' AS DOUBLE) + CAST('0.5' AS DOUBLE))"
        )
        most = f"CAST('{float(MOST_STEPS)!r}' AS DOUBLE)"
    # Not least() and greatest(): they pass over NULL, and a missing value would be as much as can be.
    beyond = f"WHEN {number} > {most} THEN {MOST_STEPS} WHEN {number} < -{most} THEN {-MOST_STEPS}"
    return f"(CASE {beyond} ELSE CAST({number} AS BIGINT) END)"


def clamped(contribution: str, total: Total) -> str:
    """Return a unit's contribution, which is not NULL, between its bounds."""
    return f"least(greatest({contribution}, {total.lower}), {total.upper})"


def hashed(sketch: Sketch, by: Expressions) -> str:
    """Return the number that a value is hashed to. No value is written as text but a decimal's digits."""
    value, column = by[sketch.column.name], sketch.column
    match column.kind:
        case Kind.TEXT:
            data = f"encode({value})"
        case Kind.TIME:
            data = _bytes(f"epoch_us({value})")
        case Kind.DATE:
            data = _bytes(f"({value} - DATE '1970-01-01')")
        case Kind.BOOLEAN:
            data = _bytes(f"CAST({value} AS BIGINT)")
        case Kind.NUMBER:
            data = _number_bytes(value, column.exact)
    digest = f"md5(encode({text_literal(sketch.key)}) || {data})"
    return f"CAST(concat('0x', substr({digest}, 1, {_HASHED_DIGITS})) AS BIGINT)"


def _number_bytes(value: str, exact: Exact | None) -> str:
    if exact is None:
        return _bytes(f"(CAST({value} AS DOUBLE) + CAST('0.0' AS DOUBLE))")  # -0.0 is 0.0
    if exact.scale:  # of the widest type, or 0.5 would be '.5' in a column of DECIMAL(2,2)
        return f"encode(CAST(CAST({value} AS DECIMAL(38,{exact.scale})) AS VARCHAR))"
    small = exact.low >= -_HALF and exact.high < _HALF
    return _bytes(f"CAST({value} AS BIGINT)" if small else f"CAST({value} AS {_widest(exact)})")


def _widest(exact: Exact) -> str:
    return "UHUGEINT" if exact.low == 0 and exact.high > _HALF**2 else "HUGEINT"


def _bytes(value: str) -> str:
    """Return the bytes of a number, the highest first."""
    return f"CAST(CAST({value} AS BIT) AS BLOB)"
