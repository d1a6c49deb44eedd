"""Measures: an integer for a set of rows, which one unit changes by a bounded amount.

>>> Count(None).sensitivity
1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from fractions import Fraction

    from targetcharge.queries.columns import Column
    from targetcharge.queries.predicates import Predicate

MOST_STEPS: Final = 2**53
"""A row's value is clamped to so many steps of the grid before a unit's rows are added up."""


@final
@dataclass(frozen=True, slots=True)
class Count:
    """How many units have a row that counts: each once, however many of its rows do.

    Attributes:
        where: which rows count; None for all.
    """

    where: Predicate | None

    @property
    def sensitivity(self) -> int:
        """Return the most one unit changes it."""
        return 1


@final
@dataclass(frozen=True, slots=True)
class Total:
    """The sum over units of what each contributes, in steps of the grid.

    A row's value is put on the grid: floor(value/grid + 1/2) in double precision (a whole number on a grid of 1 as
    it is), at most 2^53 steps either way; missing values are none. The rows of a unit that count are added up and
    the sum is clamped to [lower, upper]. A unit without such rows contributes 0.

    Attributes:
        column: a number.
        lower: the least a unit contributes, in steps.
        upper: the most, in steps.
        grid: the size of a step.
        where: which rows count; None for all.
    """

    column: Column
    lower: int
    upper: int
    grid: Fraction
    where: Predicate | None

    @property
    def sensitivity(self) -> int:
        """Return the most one unit changes it, in steps: what it contributes when it is there."""
        return max(abs(self.lower), abs(self.upper))


@final
@dataclass(frozen=True, slots=True)
class Sketch:
    """A sketch of a column's distinct values: how many of its buckets are taken.

    A value's bucket is the first 60 bits of md5(key + value as bytes), modulo the number of buckets. Bytes are
    those of a text in UTF-8, of a number (a date in days, a time in microseconds, a boolean as 0 or 1) with the
    highest first, and of a decimal number's digits. Of a unit with more values the `per_unit` smallest by that
    number are kept (by value where two are equal): one unit changes the count by at most `per_unit`.

    Attributes:
        column: whose values are counted.
        where: which rows count; None for all.
        per_unit: the most values of one unit that are kept.
        buckets: their number.
        key: of the hash, drawn anew for every computation. The bound holds whatever it is.
    """

    column: Column
    where: Predicate | None
    per_unit: int
    buckets: int
    key: str

    @property
    def sensitivity(self) -> int:
        """Return the most one unit changes it."""
        return self.per_unit


Measure = Count | Total | Sketch
