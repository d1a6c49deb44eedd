"""The tree of a predicate: which rows count, by which columns. Nothing that could raise or reach beyond the table.

Columns are what of a table's schema a question may use: from metadata or declaration, never from rows. The logic
is SQL's: a comparison with a missing value is neither true nor false, and so is what is made of it. A row counts
if the whole is true. NaN is a missing value.

>>> Column("age", Kind.NUMBER, Exact(scale=0, low=-128, high=127))
age (number)
>>> name = Column("name", Kind.TEXT)
>>> str(Not(All((Compare(name, Operator.EQ, "it's"), Missing(name)))))
"NOT (name = 'it''s' AND name IS NULL)"
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, final

from targetcharge.errors import InvalidParameter, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Columns


class Kind(StrEnum):
    """What an analyst knows of a column's type."""

    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    BOOLEAN = "boolean"


Value = float | int | str | bool | dt.date | dt.datetime
"""A literal, as the column's kind wants it: exact numbers are integers in steps of 10^-scale."""


@final
@dataclass(frozen=True, slots=True)
class Exact:
    """Numbers that are whole multiples of 10^-scale.

    Attributes:
        scale: digits after the point.
        low: the smallest value of the type, in steps of 10^-scale.
        high: the largest.
    """

    scale: int
    low: int
    high: int


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column that may be asked about.

    Attributes:
        name: as the table spells it.
        kind: of its values.
        exact: for numbers, which ones there are; None for floating point.
    """

    name: str
    kind: Kind
    exact: Exact | None = None

    def __repr__(self) -> str:
        """Return the name and the kind; public."""
        return f"{self.name} ({self.kind})"


Schema = dict[str, Column]
"""The columns that may be asked about, by name."""


def find(name: str, schema: Mapping[str, Column]) -> Column | None:
    """Return a column by its name, as it is spelled or in other capitals if that names only one."""
    if name in schema:
        return schema[name]
    alike = [column for spelled, column in schema.items() if spelled.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def column_of(name: str, schema: Mapping[str, Column], parameter: str = "column") -> Column:
    """Return a column by its name, as `find` does.

    Raises:
        InvalidParameter: if there is none.
    """
    if isinstance(name, str):
        column = find(name, schema)
        if column is not None:
            return column
    raise InvalidParameter(parameter, name, f"one of the columns {listed(schema)}{did_you_mean(name, schema)}")


def listed(schema: Mapping[str, Column]) -> str:
    """Return all columns with their kinds, for an error's text."""
    return ", ".join(map(repr, schema.values())) or "(the table has none that may be asked about)"


# Predicates


class Operator(StrEnum):
    """How a column is compared with a literal."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@final
@dataclass(frozen=True, slots=True)
class Compare:
    """A column against a literal."""

    column: Column
    operator: Operator
    value: Value

    def __str__(self) -> str:
        """Return the comparison as the text that would be parsed to it."""
        return f"{quoted(self.column.name)} {self.operator} {literal(self.column, self.value)}"


@final
@dataclass(frozen=True, slots=True)
class OneOf:
    """A column's value is in a list; of an empty list none is."""

    column: Column
    values: tuple[Value, ...]

    def __str__(self) -> str:
        """Return the condition as the text that would be parsed to it."""
        return f"{quoted(self.column.name)} {_listed(self)}"


@final
@dataclass(frozen=True, slots=True)
class Missing:
    """A column's value is missing (NULL, or NaN)."""

    column: Column

    def __str__(self) -> str:
        """Return the condition as the text that would be parsed to it."""
        return f"{quoted(self.column.name)} IS NULL"


@final
@dataclass(frozen=True, slots=True)
class Like:
    """A text matches a pattern of %, any characters, and _, one character."""

    column: Column
    pattern: str

    def __str__(self) -> str:
        """Return the condition as the text that would be parsed to it."""
        return f"{quoted(self.column.name)} {_alike(self)}"


@final
@dataclass(frozen=True, slots=True)
class Settled:
    """A comparison that the column's type decides: the same for every value, and unknown for a missing one.

    Attributes:
        column: which must not be missing.
        holds: whether it is true.
        text: the comparison as it was asked.
    """

    column: Column
    holds: bool
    text: str

    def __str__(self) -> str:
        """Return the comparison as it was asked."""
        return self.text


@final
@dataclass(frozen=True, slots=True)
class All:
    """Every part is true; two parts or more."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        """Return the parts as text, joined by AND."""
        return " AND ".join(_inside(part) for part in self.parts)


@final
@dataclass(frozen=True, slots=True)
class Any:
    """Some part is true; two parts or more."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        """Return the parts as text, joined by OR."""
        return " OR ".join(_inside(part) for part in self.parts)


@final
@dataclass(frozen=True, slots=True)
class Not:
    """The part is false."""

    part: Predicate

    def __str__(self) -> str:
        """Return the negation as text, in the words of SQL: IS NOT NULL, NOT IN, NOT LIKE."""
        match self.part:
            case Missing(column):
                return f"{quoted(column.name)} IS NOT NULL"
            case OneOf(column) as part:
                return f"{quoted(column.name)} NOT {_listed(part)}"
            case Like(column) as part:
                return f"{quoted(column.name)} NOT {_alike(part)}"
            case part:
                return f"NOT {_inside(part)}"


Predicate = Compare | OneOf | Missing | Like | Settled | All | Any | Not


def _listed(part: OneOf) -> str:
    """Return what follows the column's name: IN and the values."""
    return f"IN ({', '.join(literal(part.column, value) for value in part.values)})"


def _alike(part: Like) -> str:
    """Return what follows the column's name: LIKE and the pattern."""
    return f"LIKE {text_literal(part.pattern)}"


def _inside(part: Predicate) -> str:
    """Return a part of a larger predicate, in parentheses if it needs them."""
    return f"({part})" if isinstance(part, All | Any) else str(part)


def all_of(parts: Sequence[Predicate]) -> Predicate | None:
    """Return that all of them are true; None if there are none."""
    if len(parts) > 1:
        return All(tuple(parts))
    return parts[0] if parts else None


def parts_of(predicate: Predicate | None) -> list[Predicate]:
    """Return what must all be true for a predicate to be; nothing if there is none."""
    if isinstance(predicate, All):
        return [inner for part in predicate.parts for inner in parts_of(part)]
    return [] if predicate is None else [predicate]


def columns(predicate: Predicate | None) -> Iterator[Column]:
    """Yield the columns that a predicate looks at, some of them more than once."""
    match predicate:
        case None:
            return
        case All(parts) | Any(parts):
            for part in parts:
                yield from columns(part)
        case Not(part):
            yield from columns(part)
        case _:
            yield predicate.column


def quoted(name: str) -> str:
    """Return a column's name as SQL: as it is if that is plain, else in double quotes."""
    if name.isascii() and name.isidentifier() and name.lower() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


_RESERVED = frozenset(("all", "and", "between", "case", "false", "in", "is", "like", "not", "null", "or", "true"))


_WRITTEN_OUT = 10.0**15
"""Whole floating-point numbers below this are written without a point or an exponent."""


def text_literal(text: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def literal(column: Column, value: Value) -> str:
    """Return a literal of the column's kind, as it would be written in a predicate."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) and column.exact is not None:
        return decimal_text(value, column.exact.scale)
    if isinstance(value, dt.datetime):
        return text_literal(value.isoformat(sep=" "))
    if isinstance(value, dt.date):
        return text_literal(value.isoformat())
    if isinstance(value, float) and value.is_integer() and abs(value) < _WRITTEN_OUT:
        return str(int(value))
    return text_literal(value) if isinstance(value, str) else repr(value)


def decimal_text(steps: int, scale: int) -> str:
    """Return steps of 10^-scale as a decimal number.

    >>> decimal_text(-5, 2), decimal_text(1200, 0)
    ('-0.05', '1200')
    """
    whole, rest = divmod(abs(steps), 10**scale)
    sign = "-" if steps < 0 else ""
    return f"{sign}{whole}.{rest:0{scale}d}" if scale else f"{sign}{whole}"
