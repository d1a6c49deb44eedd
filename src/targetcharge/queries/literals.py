"""Literals: what was written beside a column, as a value of that column's kind.

>>> from targetcharge.queries.columns import Column, Exact, Kind
>>> age = Column("age", Kind.NUMBER, Exact(scale=0, low=-128, high=127))
>>> str(compare(age, Operator.LT, Written(Part.NUMBER, "65.5")))
'age <= 65'
>>> typed(age, Written(Part.TEXT, "65"))
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
from targetcharge.queries.grammar import Part
from targetcharge.queries.instants import ISO_DATE, ISO_TIME, iso_date, iso_time
from targetcharge.queries.predicates import Compare, OneOf, Operator, Settled, quoted, text_literal

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from targetcharge.queries.columns import Column, Exact, Value

LARGEST: Final = 2**63
"""An exact literal is nearer to 0 than this."""

MOST_DIGITS: Final = 38
"""Significant digits of an exact literal."""

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_MOST_SHOWN: Final = 40


class UnfitError(Exception):
    """A value is not one of its column's. Internal: it says what to write instead, to those who know where."""


@final
@dataclass(frozen=True, slots=True)
class Written:
    """A literal as it was written.

    Attributes:
        part: NUMBER, TEXT or TRUTH.
        text: a number with its sign; what a text's quotes hold; TRUE or FALSE.
    """

    part: Part
    text: str

    def __str__(self) -> str:
        """Return it as SQL."""
        return text_literal(self.text) if self.part is Part.TEXT else self.text


def typed(column: Column, written: Written) -> Value | Fraction:
    """Return a literal as a value of the column's kind.

    For exact numbers that is a fraction, in units of 10^-scale: the column need not have such a value.

    Raises:
        UnfitError: if it is not of that kind.
    """
    if written.part is not _PARTS[column.kind]:
        raise UnfitError(_mismatch(column, written))
    match column.kind:
        case Kind.NUMBER:
            return units(written.text, column.exact) if column.exact else floating(written.text)
        case Kind.TEXT:
            return written.text
        case Kind.DATE | Kind.TIME:
            return _instant(written.text, column)
        case Kind.BOOLEAN:
            return written.text == "TRUE"


_PARTS: Final = {
    Kind.NUMBER: Part.NUMBER,
    Kind.TEXT: Part.TEXT,
    Kind.DATE: Part.TEXT,
    Kind.TIME: Part.TEXT,
    Kind.BOOLEAN: Part.TRUTH,
}


def _mismatch(column: Column, written: Written) -> str:
    name, text = quoted(column.name), written.text
    short = len(text) <= _MOST_SHOWN
    if column.kind is Kind.NUMBER:
        if written.part is Part.TEXT and short and _NUMBER.fullmatch(text):
            return f"{name} is a number: write {text}, not {written}"
        return f"{name} is a number: write one without quotes, such as 65"
    if column.kind is Kind.TEXT:
        wanted = (
            text_literal(text) if short and written.part is Part.NUMBER else "it in single quotes, such as 'flu'"
        )
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


def floating(text: str) -> float:
    """Return a decimal number in double precision, 0 without a sign."""
    number = float(text)
    if not math.isfinite(number):
        msg = "this number is beyond the range of numbers"
        raise UnfitError(msg)
    if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        msg = "this number is too small to tell from 0: write 0"
        raise UnfitError(msg)
    return number + 0.0


def units(text: str, exact: Exact) -> Fraction:
    """Return a decimal number as it is, in units of 10^-scale."""
    if floating(text) == 0:  # with an exponent that would take long to write out, perhaps
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


def compare(column: Column, operator: Operator, written: Written) -> Compare | Settled:
    """Return the comparison of a column with a literal, which is a value that the column can have.

    Raises:
        UnfitError: if the literal is not of the column's kind, or booleans are compared by order.
    """
    if column.kind is Kind.BOOLEAN and operator not in (Operator.EQ, Operator.NE):
        msg = f"{quoted(column.name)} is a boolean: compare it with = or <>"
        raise UnfitError(msg)
    value = typed(column, written)
    if not isinstance(value, Fraction):
        return Compare(column, operator, value)
    text = f"{quoted(column.name)} {operator} {written}"
    if operator in (Operator.EQ, Operator.NE):
        if _occurs(value, column.exact):
            return Compare(column, operator, int(value))
        return Settled(column, operator is Operator.NE, text)
    return _ordered(column, operator, value, text)


def _ordered(column: Column, operator: Operator, value: Fraction, text: str) -> Compare | Settled:
    """Return a comparison by order, with the nearest value of the column that decides the same."""
    upwards = operator in (Operator.GT, Operator.GE)
    nearest = math.ceil(value) if upwards else math.floor(value)
    if nearest != value:
        operator = Operator.GE if upwards else Operator.LE
    exact = column.exact
    if exact is None or exact.low <= nearest <= exact.high:
        return Compare(column, operator, nearest)
    return Settled(column, upwards == (nearest < exact.low), text)


def one_of(column: Column, writtens: Sequence[tuple[Written, Value | Fraction]]) -> OneOf | Settled:
    """Return the comparison of a column with typed literals: each once, and only those that can occur."""
    values = [
        int(value) if isinstance(value, Fraction) else value
        for _, value in writtens
        if not isinstance(value, Fraction) or _occurs(value, column.exact)
    ]
    if values:
        return OneOf(column, tuple(dict.fromkeys(values)))
    listed = ", ".join(str(written) for written, _ in writtens)
    return Settled(column, holds=False, text=f"{quoted(column.name)} IN ({listed})")


def _occurs(value: Fraction, exact: Exact | None) -> bool:
    """Return whether a column has such a value."""
    return value.denominator == 1 and exact is not None and exact.low <= value <= exact.high
