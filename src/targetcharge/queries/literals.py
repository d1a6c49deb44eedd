"""Literals: what was written beside a column, as a value of that column's kind.

>>> from targetcharge.queries.columns import Column, Exact, Kind
>>> age = Column("age", Kind.NUMBER, Exact(scale=0, low=-128, high=127))
>>> str(compare(age, Operator.LT, typed(age, Part.NUMBER, "65.5")))
'age <= 65'
>>> typed(age, Part.TEXT, "65")
Traceback (most recent call last):
targetcharge.queries.literals.UnfitError: age is a number: write 65, not '65'
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from targetcharge.queries.columns import Kind
from targetcharge.queries.grammar import MOST_SHOWN, Part
from targetcharge.queries.predicates import Compare, OneOf, Operator, Settled, quoted, text_literal
from targetcharge.queries.values import ISO_DATE, ISO_TIME, iso_date, iso_time

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from targetcharge.queries.columns import Column, Exact, Value

LARGEST: Final = 2**63
"""An exact literal is nearer to 0 than this."""

MOST_DIGITS: Final = 38
"""Significant digits of an exact literal."""

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


class UnfitError(Exception):
    """A value is not one of its column's. Internal: it says what to write instead, to those who know where."""


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of a column.

    Attributes:
        text: a number with its sign; what a text's quotes hold; TRUE or FALSE.
        value: of the column's kind. For exact numbers that is a fraction, in steps of 10^-scale: the column need
            not have such a value.
    """

    text: str
    value: Value | Fraction


def typed(column: Column, part: Part, text: str) -> Literal:
    """Return what was written beside a column as a value of its kind.

    Args:
        column: the column.
        part: NUMBER, TEXT or TRUTH.
        text: a number with its sign; what a text's quotes hold; TRUE or FALSE.

    Raises:
        UnfitError: if it is not of that kind.
    """
    if part is not _PARTS[column.kind]:
        raise UnfitError(_mismatch(column, part, text))
    match column.kind:
        case Kind.NUMBER:
            return Literal(text, _steps(text, column.exact) if column.exact else _floating(text))
        case Kind.TEXT:
            return Literal(text, text)
        case Kind.DATE | Kind.TIME:
            return Literal(text, _instant(text, column))
        case Kind.BOOLEAN:
            return Literal(text, text == "TRUE")


_PARTS: Final = {
    Kind.NUMBER: Part.NUMBER,
    Kind.TEXT: Part.TEXT,
    Kind.DATE: Part.TEXT,
    Kind.TIME: Part.TEXT,
    Kind.BOOLEAN: Part.TRUTH,
}


def _mismatch(column: Column, part: Part, text: str) -> str:
    name, short = quoted(column.name), len(text) <= MOST_SHOWN
    if column.kind is Kind.NUMBER:
        if part is Part.TEXT and short and _NUMBER.fullmatch(text):
            return f"{name} is a number: write {text}, not {text_literal(text)}"
        return f"{name} is a number: write one without quotes, such as 65"
    if column.kind is Kind.TEXT:
        wanted = text_literal(text) if short and part is Part.NUMBER else "it in single quotes, such as 'flu'"
        return f"{name} is text: write {wanted}{f', not {text}' if short else ''}"
    if column.kind is Kind.BOOLEAN:
        return f"{name} is a boolean: write TRUE or FALSE, without quotes"
    return _not_iso(column)


def _not_iso(column: Column) -> str:
    name = quoted(column.name)
    if column.kind is Kind.DATE:
        return f"{name} is a date: write one as text in the form '2024-01-31'"
    return f"{name} is a time: write one as text in the form '2024-01-31 08:00:00' or '2024-01-31', without a zone"


def _instant(text: str, column: Column) -> dt.date | dt.datetime:
    try:
        return iso_date(text) if column.kind is Kind.DATE else iso_time(text)
    except ValueError:
        formed = (ISO_DATE if column.kind is Kind.DATE else ISO_TIME).fullmatch(text)
        raise UnfitError("the calendar has no such day" if formed else _not_iso(column)) from None


def _floating(text: str) -> float:
    """Return a decimal number in double precision, 0 without a sign."""
    number = float(text)
    if not math.isfinite(number):
        msg = "this number is beyond the range of numbers"
        raise UnfitError(msg)
    if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        msg = "this number is too small to tell from 0: write 0"
        raise UnfitError(msg)
    return number + 0.0


def _steps(text: str, exact: Exact) -> Fraction:
    """Return a decimal number as it is, in steps of 10^-scale."""
    if _floating(text) == 0:  # with an exponent that would take long to write out, perhaps
        return Fraction(0)
    number = Decimal(text)
    if len(number.as_tuple().digits) > MOST_DIGITS:
        msg = f"this number has more than {MOST_DIGITS} digits"
        raise UnfitError(msg)
    if abs(number) >= LARGEST:
        msg = f"this number is too large: write one between -{LARGEST} and {LARGEST}"
        raise UnfitError(msg)
    factor: int = 10**exact.scale
    return Fraction(number) * factor


def compare(column: Column, operator: Operator, literal: Literal) -> Compare | Settled:
    """Return the comparison of a column with a literal, as one with a value that the column can have."""
    value = literal.value
    if not isinstance(value, Fraction):
        return Compare(column, operator, value)
    text = f"{quoted(column.name)} {operator} {literal.text}"
    if operator in (Operator.EQ, Operator.NE):
        if _occurs(value, column.exact):
            return Compare(column, operator, int(value))
        return Settled(column, operator is Operator.NE, text)
    upwards = operator in (Operator.GT, Operator.GE)
    nearest = math.ceil(value) if upwards else math.floor(value)  # the nearest value that decides the same
    if nearest != value:
        operator = Operator.GE if upwards else Operator.LE
    exact = column.exact
    if exact is None or exact.low <= nearest <= exact.high:
        return Compare(column, operator, nearest)
    return Settled(column, upwards == (nearest < exact.low), text)


def one_of(column: Column, literals: Sequence[Literal]) -> OneOf | Settled:
    """Return the comparison of a column with a list of literals: each once, and only those that can occur."""
    values = [
        int(literal.value) if isinstance(literal.value, Fraction) else literal.value
        for literal in literals
        if not isinstance(literal.value, Fraction) or _occurs(literal.value, column.exact)
    ]
    if values:
        return OneOf(column, tuple(dict.fromkeys(values)))
    listed = ", ".join(literal.text for literal in literals)  # numbers: no other literal is settled
    return Settled(column, holds=False, text=f"{quoted(column.name)} IN ({listed})")


def _occurs(value: Fraction, exact: Exact | None) -> bool:
    """Return whether a column has such a value."""
    return value.denominator == 1 and exact is not None and exact.low <= value <= exact.high
