"""Likeness: whether rows may be appended to a table, by what is known of both; if not, which column differs.

>>> from targetcharge.queries.columns import Exact
>>> words(Column("age", Kind.NUMBER, Exact(0, 0, 255))), words(Column("name", Kind.TEXT))
('a number from 0 to 255 in steps of 1', 'text')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.errors import InvalidParameter
from targetcharge.queries.columns import Column, Kind
from targetcharge.queries.predicates import decimal_text

if TYPE_CHECKING:
    from targetcharge.engines.duckdb.describing import Shape
    from targetcharge.engines.duckdb.units import Identity


def check_alike(table: Shape, other: Shape, source: object) -> None:
    """Refuse rows that are not like those of a table.

    Args:
        table: its shape.
        other: theirs.
        source: of the rows, as an error's text shows it.

    Raises:
        InvalidParameter: if a column is missing, too many or of another type, or units are written otherwise.
    """
    problem = _columns(table, other) or _units(table, other)
    if problem:
        raise InvalidParameter("source", source, f"a table with the columns of the one that is open: {problem}")


def _columns(table: Shape, other: Shape) -> str:
    for name, column in table.schema.items():
        if name in other.other:
            return f"{name} must be {words(column)}, and is {other.other[name]}"
        if name not in other.schema:
            return f"it lacks {name}"
        if other.schema[name] != column:
            return f"{name} must be {words(column)}, and is {words(other.schema[name])}"
    for name in (*other.schema, *other.other):
        if name not in table.schema and name not in table.other:
            return f"it has {name}, which that one lacks"
        if name in other.schema and name in table.other:
            return f"{name} must be {table.other[name]}, and is {words(other.schema[name])}"
    lacking = [name for name in table.other if name not in other.other]
    return f"it lacks {lacking[0]}" if lacking else ""


def _units(table: Shape, other: Shape) -> str:
    """Return how units are told apart in another way: one and the same might be taken for two, or two for one."""
    if table.unit is None or other.unit is None:
        return ""
    if (table.unit.kind, table.unit.rule) == (other.unit.kind, other.unit.rule):
        return ""
    wanted, given = _told_apart(table.unit), _told_apart(other.unit)
    return (
        f"units must be told apart by {wanted}, and are by {given}; a column that is declared with types is read"
        " in the same way everywhere"
    )


def _told_apart(identity: Identity) -> str:
    return f"{identity.kind} ({identity.rule or 'equal values'})"


def words(column: Column) -> str:
    """Return what a column is, so that different ones have different words."""
    if column.kind is not Kind.NUMBER:
        return {Kind.TEXT: "text", Kind.DATE: "a date", Kind.TIME: "a time", Kind.BOOLEAN: "a boolean"}[
            column.kind
        ]
    if column.exact is None:
        return "a floating-point number"
    low, high, step = (decimal_text(each, column.exact.scale) for each in (column.exact.low, column.exact.high, 1))
    return f"a number from {low} to {high} in steps of {step}"
