"""Describing: which columns a relation has, what may be asked about them, and what tells its units apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from targetcharge.engines.duckdb.quoting import identifier
from targetcharge.engines.duckdb.types import DECLARED, declared_as, inside, is_spanned, stored, typed
from targetcharge.engines.duckdb.units import Identity, own, read_as, rule_of
from targetcharge.errors import InvalidParameter
from targetcharge.queries.columns import Column, Kind, column_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from targetcharge.engines.duckdb.units import OwnColumn
    from targetcharge.queries.columns import Schema


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
    unit: Identity | None

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
    own_column: OwnColumn | None,
    *,
    copied: bool,
) -> Shape:
    """Return the shape of a relation.

    Args:
        connection: that has it.
        relation: its name.
        declared: what columns are declared to be.
        unit: the column that was named as the unit, if one was.
        own_column: the column of our own that tells units apart, if there is one.
        copied: whether its rows were copied, and all its values can be represented.

    Raises:
        InvalidParameter: if a column that was named is not there.
    """
    kinds = {name: str(kind) for name, kind, *_ in connection.execute(f"DESCRIBE {relation}").fetchall()}
    spanned = set() if copied else _spanned(connection, relation, kinds)
    schema: Schema = {}
    expressions: dict[str, str] = {}
    other: dict[str, str] = {}
    identity = None if own_column is None else own_column.identity
    for name, kind in kinds.items():
        if own_column is not None and name == own_column.name:
            continue
        found = typed(name, kind, spanned=name in spanned)
        if found is None and name not in declared:
            other[name] = without_values(kind)
            continue
        column, value = found or bytes_as_text(name, kind)
        if identity is None and name.lower() == str(unit).lower():
            identity = _identity(column, kind, value, declared.get(name))
        if name in declared and column.kind is not DECLARED[declared[name]][1]:
            _, public, exact = DECLARED[declared[name]]
            value, column = declared_as(value, column.kind, declared[name]), Column(name, public, exact)
        schema[name], expressions[name] = column, value
    unknown = [name for name in declared if name not in schema]
    if unknown:
        raise InvalidParameter("types", unknown[0], f"about columns of the table: {', '.join(schema)}")
    if unit is not None:
        column_of(unit, schema, "unit")
    return Shape(schema, expressions, other, identity if unit is not None else None)


def _spanned(connection: duckdb.DuckDBPyConnection, relation: str, kinds: Mapping[str, str]) -> set[str]:
    """Return the columns with values that cannot be represented: the others can be read as they are.

    That a value is there changes how long a question takes, and nothing that it tells.
    """
    names = [name for name, kind in kinds.items() if is_spanned(kind)]
    if not names:
        return set()
    inside_all = ", ".join(f"bool_and({inside(identifier(name), kinds[name])})" for name in names)
    found = connection.execute(f"SELECT {inside_all} FROM {relation}").fetchall()[0]
    return {name for name, all_inside in zip(names, found, strict=True) if all_inside is False}


def _identity(column: Column, kind: str, value: str, declared: str | None) -> Identity:
    if declared is None:
        return own(column.name, kind, value)
    return Identity(read_as(value, column.kind, declared), "VARCHAR", rule_of(declared, column.kind))


def bytes_as_text(name: str, kind: str) -> tuple[Column, str]:
    """Return a column of bytes as text, to be read as what it is declared to be.

    Raises:
        InvalidParameter: if it is of another type, of which not every value can be written.
    """
    if kind != "BLOB":
        expected = f"left out for column {name!r}: its type, {without_values(kind)}, cannot be asked about"
        raise InvalidParameter("types", name, expected)
    return Column(name, Kind.TEXT), f"TRY(decode({identifier(name)}))"


def without_values(kind: str) -> str:
    """Return the name of a type without what it is made of: the names of an enum may be values of the table."""
    return "LIST" if kind.endswith("]") else kind.partition("(")[0]
