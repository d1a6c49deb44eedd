"""Describing: which columns a relation has, what may be asked about them, and what tells its units apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from targetcharge.engines.duckdb.quoting import identifier
from targetcharge.engines.duckdb.types import DECLARED, FLOATING, is_enum, stored, typed
from targetcharge.errors import InvalidParameter
from targetcharge.queries.columns import Column, column_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from targetcharge.queries.columns import Schema

ITSELF = "itself"
"""Units are told apart by the values of their column, and not by another writing of them."""


@final
@dataclass(frozen=True)
class Units:
    """A column of our own that tells units apart.

    Attributes:
        column: its name.
        written: how it writes a unit; the same for two columns only if equal units are written alike.
    """

    column: str
    written: str = ITSELF


@final
@dataclass(frozen=True)
class Told:
    """What tells units apart.

    Attributes:
        sql: different for different values; NULL for none.
        kind: its type.
        written: how a unit is written.
    """

    sql: str
    kind: str
    written: str


@final
@dataclass(frozen=True)
class Shape:
    """What is known of a relation: nothing of it from its rows.

    Attributes:
        schema: the columns that may be asked about.
        expressions: the SQL of each column's value.
        other: columns that may not be asked about, with their types.
        unit: what tells units apart; None if every row is one.
    """

    schema: Schema
    expressions: dict[str, str]
    other: dict[str, str]
    unit: Told | None

    def copied(self, order: Iterable[str]) -> str:
        """Return the SQL of all that is asked of a row, as c0, c1, …, and its unit, in types that say all."""
        parts = []
        for place, name in enumerate(order):
            parts.append(f"CAST({self.expressions[name]} AS {stored(self.schema[name])}) AS c{place}")
        if self.unit is not None:
            parts.append(f"CAST({self.unit.sql} AS {self.unit.kind}) AS unit")
        return ", ".join(parts)


def declared_types(types: object) -> dict[str, str]:
    """Return what columns are declared to be.

    Raises:
        InvalidParameter: if that is nothing a column can be.
    """
    if types is not None and not isinstance(types, Mapping):
        raise InvalidParameter("types", types, "a dictionary from columns to what they are")
    found = dict(types or {})
    for name, kind in found.items():
        if not isinstance(kind, str) or kind not in DECLARED:
            expected = f"one of {', '.join(DECLARED)}, for column {name!r}"
            raise InvalidParameter("types", kind, expected)
    return found


def describe(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    declared: Mapping[str, str],
    unit: str | None,
    units: Units | None,
) -> Shape:
    """Return the shape of a relation.

    Args:
        connection: that has it.
        relation: its name.
        declared: what columns are declared to be.
        unit: the column that was named as the unit, if one was.
        units: the column of our own that tells units apart, if there is one.

    Raises:
        InvalidParameter: if a column that was named is not there.
    """
    kinds = {name: str(kind) for name, kind, *_ in connection.execute(f"DESCRIBE {relation}").fetchall()}
    schema: Schema = {}
    expressions: dict[str, str] = {}
    other: dict[str, str] = {}
    for name, kind in kinds.items():
        found = typed(name, kind)
        if name in declared and (found is None or found[0].kind is not DECLARED[declared[name]][1]):
            found = _declared_as(name, declared[name])
        if found is None:
            other[name] = _without_values(kind)
        elif units is None or name != units.column:
            schema[name], expressions[name] = found
    unknown = [name for name in declared if name not in schema]
    if unknown:
        raise InvalidParameter("types", unknown[0], f"about columns of the table: {', '.join(schema)}")
    told = None
    if unit is not None:
        named = column_of(unit, schema, "unit").name
        own = units or Units(named)
        told = _told(own.column, kinds[own.column], own.written)
    return Shape(schema, expressions, other, told)


def _told(name: str, kind: str, written: str) -> Told:
    """Return what tells units apart: the column as it is read, never as it is shown; NaN is none."""
    raw = identifier(name)
    if kind in FLOATING:
        return Told(f"(CASE WHEN isnan(TRY({raw})) THEN NULL ELSE {raw} END)", kind, written)
    if is_enum(kind):  # the same texts may be numbered otherwise in another file
        return Told(f"CAST({raw} AS VARCHAR)", "VARCHAR", written)
    return Told(raw, "VARCHAR" if kind == "JSON" else kind, written)


def _without_values(kind: str) -> str:
    """Return the name of a type without what it is made of: the names of an enum may be values of the table."""
    return "LIST" if kind.endswith("]") else kind.partition("(")[0]


def _declared_as(name: str, kind: str) -> tuple[Column, str]:
    """Return a column of a file as what the owner declares it to be; a value that is none is missing."""
    duck, public, exact = DECLARED[kind]
    value = f"TRY_CAST({identifier(name)} AS {duck})"
    value = f"nullif({value}, CAST('nan' AS DOUBLE))" if duck == "DOUBLE" else value
    return Column(name, public, exact), value
