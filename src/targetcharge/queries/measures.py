"""Measures: an integer for a set of rows, which one unit changes by a bounded amount; and families of them.

Measures are a family if they differ only in which values some columns have, so that one GROUP BY tells them all.

>>> Count(None).sensitivity
1
>>> from targetcharge.queries.tree import Column, Kind
>>> county = Column("county", Kind.TEXT)
>>> asked = [Count(Compare(county, Operator.EQ, name)) for name in ("Kent", "Devon", "Kent")]
>>> [family] = families(dict(enumerate(asked)))
>>> family.measure, family.keys.values, family.members
(Count(where=None), (('Kent',), ('Devon',)), {0: 0, 1: 1, 2: 0})
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeGuard, final

from targetcharge.queries.keys import Keys
from targetcharge.queries.tree import Compare, Operator, all_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from targetcharge.queries.tree import Column, Predicate, Value

MOST_STEPS: Final = 2**53
"""A row's value is clamped to so many steps of the grid before a unit's rows are added up."""

RANKS: Final = 2**31 - 1
"""A prime: the ranks of a histogram's keys are the integers below it, and a product of two fits into 64 bits."""

_WORD: Final = 8
"""Bytes of 64 bits."""

_MOST_COLUMNS: Final = 2
"""Of the keys of a family."""


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


@final
@dataclass(frozen=True, slots=True)
class Histogram:
    """How many units have a row that counts, for each of some declared keys; a unit counts for a few of them.

    Of a unit that has more than `per_unit` of the declared keys those with the smallest ranks count. A key's rank
    for a unit is (a·s + t) mod p, with p = 2^31 - 1; of two keys with the same rank the first is before the other.
    The unit's a is the first 60 bits of md5(key + unit as bytes), modulo p, where bytes are those of a `Sketch`.
    The s, from 1 to p - 1, and the t, below p, of the key at place i come from sha256(key + i): s - 1 is its first
    64 bits modulo p - 1, and t the next 64 modulo p.

    So who else has rows, and in what order, does not matter. With a fresh `key` the ranks of a unit's keys are
    independent and uniform, and those of two units with different a all but independent of each other.

    Attributes:
        where: which rows count; None for all.
        per_unit: the most keys of one unit that count.
        key: of the hash, drawn anew for every computation. The bound holds whatever it is.
    """

    where: Predicate | None
    per_unit: int
    key: str

    @property
    def sensitivity(self) -> int:
        """Return the most one unit changes all counts together; none of them by more than 1."""
        return self.per_unit

    def lines(self, keys: int) -> tuple[list[int], list[int]]:
        """Return the s and the t of each of so many keys."""
        digests = [hashlib.sha256(f"{self.key}{place}".encode()).digest() for place in range(keys)]
        first = [int.from_bytes(digest[:_WORD]) for digest in digests]
        second = [int.from_bytes(digest[_WORD : 2 * _WORD]) for digest in digests]
        return [1 + word % (RANKS - 1) for word in first], [word % RANKS for word in second]


@final
@dataclass(frozen=True, slots=True)
class UnitValue:
    """One number for each unit: the mean of its rows that count, on the grid.

    A row's value is put on the grid as for a total, and clamped to [lower, upper]; missing values are none. With
    s the sum of step - lower over the c rows of a unit, its value is lower + (2s + c) // (2c): rounded half up. A
    unit without such rows has none. It contributes 1 + value - lower, which is never 0.

    Attributes:
        column: a number.
        lower: the least value, in steps; like `upper` at most 2^62 either way.
        upper: the largest, in steps.
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
        """Return the most that a unit contributes."""
        return self.upper - self.lower + 1


Additive = Count | Total | Histogram | UnitValue
"""What is the sum of what units contribute."""

Measure = Additive | Sketch


def without_bound(measure: Additive) -> Count | Total | UnitValue:
    """Return a measure as it is, but of a histogram the count of each key, or of all rows if there are none."""
    return Count(measure.where) if isinstance(measure, Histogram) else measure


# Families


@final
@dataclass(frozen=True)
class Family:
    """Measures that are one measure on the rows of several keys.

    Attributes:
        measure: what they have in common.
        keys: the values in which they differ.
        members: the name of each, and the place of its key.
    """

    measure: Count | Total
    keys: Keys
    members: Mapping[int, int]


def families(measures: Mapping[int, Measure]) -> Iterator[Family]:
    """Yield the families among some measures, each of two keys or more; a measure is in one at most."""
    alike: dict[tuple[Count | Total, tuple[Column, ...]], dict[int, tuple[Value, ...]]] = {}
    for name, measure in measures.items():
        if not isinstance(measure, Count | Total):
            continue
        parts = parts_of(measure.where)
        fixed = sorted(filter(_fixes, parts), key=lambda part: part.column.name)
        columns = tuple(part.column for part in fixed)
        if len(set(columns)) == len(columns):
            rest = sorted((part for part in parts if not _fixes(part)), key=str)
            members = alike.setdefault((replace(measure, where=all_of(rest)), columns), {})
            members[name] = tuple(part.value for part in fixed)
    for (common, columns), members in alike.items():
        yield from _among(common, columns, members)


def _among(
    common: Count | Total, columns: tuple[Column, ...], members: Mapping[int, tuple[Value, ...]]
) -> Iterator[Family]:
    """Yield the families of measures that fix the same columns: the two with the most values tell their keys."""
    sides = range(len(columns))
    counts = [len({values[side] for values in members.values()}) for side in sides]
    most = sorted(sides, key=lambda side: -counts[side])[:_MOST_COLUMNS]
    keyed = sorted(side for side in most if counts[side] > 1)
    same = [side for side in sides if side not in keyed]
    groups: dict[tuple[Value, ...], dict[int, tuple[Value, ...]]] = {}
    for name, values in members.items():
        group = groups.setdefault(tuple(values[side] for side in same), {})
        group[name] = tuple(values[side] for side in keyed)
    for shared, group in groups.items():
        places = {key: place for place, key in enumerate(dict.fromkeys(group.values()))}
        if len(places) > 1:
            fixed = [Compare(columns[side], Operator.EQ, value) for side, value in zip(same, shared, strict=True)]
            measure = replace(common, where=all_of([*fixed, *parts_of(common.where)]))
            keys = Keys(tuple(columns[side] for side in keyed), tuple(places))
            yield Family(measure, keys, {name: places[key] for name, key in group.items()})


def _fixes(part: Predicate) -> TypeGuard[Compare]:
    """Return whether a predicate fixes a column's value."""
    return isinstance(part, Compare) and part.operator is Operator.EQ
