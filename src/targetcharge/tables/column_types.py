"""Types of the columns of answers: from what was asked and the declared keys, whatever came of it.

>>> from targetcharge.queries.tree import Column
>>> from targetcharge.tables.preparing import prepare
>>> from targetcharge.tables.questions import watch
>>> schema = {"at": Column("at", Kind.TIME), "age": Column("age", Kind.NUMBER)}
>>> types_of_keys(prepare(watch(None, ["at", "age"], [("2024-01-31 08:00", 65)], 10), schema, 0.1)).keys
(<Type.TIME: 'time'>, <Type.INTEGER: 'integer'>)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from targetcharge.frames import Type, type_of_numbers
from targetcharge.outcomes import MISSING
from targetcharge.queries.keys import Period
from targetcharge.queries.measures import Total, UnitValue
from targetcharge.queries.tree import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from targetcharge.queries.keys import Keys
    from targetcharge.tables.prepared import Prepared

_TYPES: Final = {Kind.TEXT: Type.TEXT, Kind.DATE: Type.DATE, Kind.TIME: Type.TIME, Kind.BOOLEAN: Type.BOOLEAN}


@final
@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """What the columns of answers hold.

    Attributes:
        by: names of the columns of keys.
        keys: the type of each.
        number: of outcomes and the ends of their intervals.
        marks: whether an outcome may be no number, such as "unchanged": then there is a column for it.
        whose: whom the numbers are about, in words; empty for all units.
    """

    by: tuple[str, ...] = ("key",)
    keys: tuple[Type, ...] = (Type.TEXT,)
    number: Type = Type.NUMBER
    marks: bool = True
    whose: str = ""


def types_of_keys(prepared: Prepared) -> ColumnTypes:
    """Return the types of a question about keys, or about several quantiles: their shares are the keys."""
    number = _number([prepared])
    by, keys = (("q",), (Type.NUMBER,)) if prepared.keys is None else (prepared.by, _key_types(prepared.keys))
    return ColumnTypes(by, keys, number, marks=False, whose=prepared.whose)


def types_of_questions(prepared: Sequence[Prepared]) -> ColumnTypes:
    """Return the types of questions with one answer each: their words are the keys."""
    return ColumnTypes(("question",), (Type.TEXT,), _number(prepared), whose=prepared[0].whose)


def _number(prepared: Iterable[Prepared]) -> Type:
    """Return the type of outcomes: units and distinct values are counted, sums need not be whole."""
    sums = any(isinstance(question.measure, Total | UnitValue) for question in prepared)
    return Type.NUMBER if sums else Type.INTEGER


def _key_types(keys: Keys) -> tuple[Type, ...]:
    if keys.period is not None:
        return (Type.DATE if keys.period is Period.DAY else Type.TIME,)
    published = keys.published() if len(keys.columns) > 1 else [(key,) for key in keys.published()]
    return tuple(
        type_of_numbers([value for value in values if value is not MISSING])
        if column.kind is Kind.NUMBER
        else _TYPES[column.kind]
        for column, *values in zip(keys.columns, *published, strict=True)
    )
