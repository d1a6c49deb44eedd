"""Units: the SQL that tells them apart. A person counts once, however their id is written.

Of a column with a type of its own, equal values are one unit; times by instant. Of a column that is declared to be
something, what it is declared to be, and what is none of that as it is written. Of a pandas column, one canonical
text of each value (`targetcharge.identity`): its type may hang on a single row.

>>> own("id", "BIGINT", '"id"')
Identity(sql='"id"', kind='BIGINT', rule='')
>>> own("seen", "TIMESTAMP", '"seen"').sql
'epoch_us("seen")'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from targetcharge.engines.duckdb.quoting import identifier
from targetcharge.engines.duckdb.types import (
    DECLARED,
    FINE,
    FLOATING,
    declared_as,
    is_enum,
    is_spanned,
    number_text,
)
from targetcharge.queries.columns import Kind

EQUAL: Final = ""
"""The rule that equal values of a type are one unit."""
BY_VALUE: Final = "however typed: 1, 1.0 and '1' are one unit, and long numbers that floating point takes for one"
_FINE: Final = "to the nanosecond"
_DAY: Final = 86_400_000_000
"""Microseconds."""


@final
@dataclass(frozen=True)
class Identity:
    """What tells units apart.

    Attributes:
        sql: different for different units; NULL for none.
        kind: its type.
        rule: how units are told apart if not as equal values, in words: only with the same is a unit of one table
            the unit of another.
    """

    sql: str
    kind: str
    rule: str = EQUAL


@final
@dataclass(frozen=True)
class OwnColumn:
    """A column of our own that tells units apart, made when the rows were copied.

    Attributes:
        name: of the column.
        rule: how units are told apart.
    """

    name: str
    rule: str

    @property
    def identity(self) -> Identity:
        """Return what tells units apart: canonical text."""
        return Identity(identifier(self.name), "VARCHAR", self.rule)


def own(name: str, kind: str, value: str) -> Identity:
    """Return what tells units apart by a column of a type.

    Args:
        name: of the column.
        kind: its type.
        value: the SQL of what may be asked about.
    """
    raw = identifier(name)
    if kind in FINE:
        return Identity(f"(CASE WHEN {value} IS NOT NULL THEN epoch_ns({raw}) END)", "BIGINT", _FINE)
    if kind.startswith("TIMESTAMP"):
        return Identity(f"epoch_us({value})", "BIGINT")
    if kind == "DATE":
        return Identity(f"({value} - DATE '1970-01-01')", "BIGINT")
    if is_enum(kind) or kind == "JSON":  # the same texts may be numbered otherwise in another file
        return Identity(f"CAST({raw} AS VARCHAR)", "VARCHAR")
    if kind in FLOATING or is_spanned(kind):
        return Identity(value, kind)
    return Identity(raw, kind)


def read_as(value: str, kind: Kind, declared: str) -> str:
    """Return the canonical text of a value as what its column is declared to be, and of others as they are.

    Numbers are as exact as floating point: so they are the same however they were stored.

    Args:
        value: the SQL of the value.
        kind: that it has.
        declared: what its column is declared to be.
    """
    if declared == "text":
        return _text(value, kind)
    if declared in ("integer", "number"):
        double = f"nullif(TRY_CAST({value} AS DOUBLE), CAST('nan' AS DOUBLE))"
        read = _number(f"round({double})" if declared == "integer" else double)
    else:
        read = _text(declared_as(value, kind, declared), DECLARED[declared][1])
    return f"coalesce({read}, {_text(value, kind)})"


def rule_of(declared: str, kind: Kind) -> str:
    """Return how units are told apart by a column of a kind that is declared to be something."""
    if declared == "text":
        return EQUAL if kind is Kind.TEXT else f"as the text of a {kind}"
    return f"read as {declared}; what is none, as it is written"


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
            return _number(f"CAST({value} AS DOUBLE)")
        case Kind.BOOLEAN:
            return f"CAST({value} AS VARCHAR)"


def _number(double: str) -> str:
    """Return a number as canonical text: a whole one's digits, another in single precision."""
    fraction = f"{double} <> floor({double}) AND abs({double}) < CAST('{2.0**53!r}' AS DOUBLE)"
    single = number_text(f"CAST(CAST({double} AS FLOAT) AS DOUBLE)")
    return f"(CASE WHEN {fraction} THEN {single} ELSE {number_text(double)} END)"
