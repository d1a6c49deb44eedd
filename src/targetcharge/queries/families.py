"""Families: measures that differ only in which values some columns have, so that one GROUP BY tells them all.

>>> from targetcharge.queries.columns import Column, Kind
>>> county = Column("county", Kind.TEXT)
>>> asked = [Count(Compare(county, Operator.EQ, name)) for name in ("Kent", "Devon", "Kent")]
>>> [family] = families(dict(enumerate(asked)))
>>> family.measure, family.keys.values, family.members
(Count(where=None), (('Kent',), ('Devon',)), {0: 0, 1: 1, 2: 0})
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from targetcharge.queries.keys import Keys
from targetcharge.queries.measures import Count, Total
from targetcharge.queries.predicates import All, Compare, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from targetcharge.queries.columns import Column, Value
    from targetcharge.queries.measures import Measure
    from targetcharge.queries.predicates import Predicate

_MOST_COLUMNS: Final = 2


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
    alike: dict[tuple[Count | Total, tuple[Column, ...]], list[_Member]] = {}
    for name, measure in measures.items():
        if not isinstance(measure, Count | Total):
            continue
        fixed, rest = _split(measure.where)
        columns = tuple(each.column for each in fixed)
        if len(set(columns)) == len(columns):
            common = replace(measure, where=_joined(rest))
            alike.setdefault((common, columns), []).append(_Member(name, tuple(each.value for each in fixed)))
    for (common, columns), members in alike.items():
        yield from _among(common, columns, members)


@final
@dataclass(frozen=True)
class _Member:
    name: int
    values: tuple[Value, ...]

    def some(self, sides: Sequence[int]) -> tuple[Value, ...]:
        return tuple(self.values[side] for side in sides)


def _among(common: Count | Total, columns: tuple[Column, ...], members: list[_Member]) -> Iterator[Family]:
    """Yield the families of measures that fix the same columns: the two with the most values tell their keys."""
    counts = [len({each.values[side] for each in members}) for side in range(len(columns))]
    order = sorted(range(len(columns)), key=lambda side: (-counts[side], side))
    keyed = sorted(side for side in order[:_MOST_COLUMNS] if counts[side] > 1)
    same = [side for side in range(len(columns)) if side not in keyed]
    groups: dict[tuple[Value, ...], list[_Member]] = {}
    for each in members:
        groups.setdefault(each.some(same), []).append(each)
    for values, group in groups.items():
        places: dict[tuple[Value, ...], int] = {}
        found = {each.name: places.setdefault(each.some(keyed), len(places)) for each in group}
        if len(places) > 1:
            fixed = [Compare(columns[side], Operator.EQ, value) for side, value in zip(same, values, strict=True)]
            measure = replace(common, where=_joined([*fixed, *_parts(common.where)]))
            yield Family(measure, Keys(tuple(columns[side] for side in keyed), tuple(places)), found)


def _split(where: Predicate | None) -> tuple[list[Compare], list[Predicate]]:
    """Return the parts of a predicate that fix a column's value, and the others; in an order of their own."""
    fixed: list[Compare] = []
    rest: list[Predicate] = []
    for part in _parts(where):
        if isinstance(part, Compare) and part.operator is Operator.EQ:
            fixed.append(part)
        else:
            rest.append(part)
    return sorted(fixed, key=lambda each: each.column.name), sorted(rest, key=str)


def _parts(where: Predicate | None) -> list[Predicate]:
    """Return what must all be true."""
    if isinstance(where, All):
        return [inner for part in where.parts for inner in _parts(part)]
    return [] if where is None else [where]


def _joined(parts: Sequence[Predicate]) -> Predicate | None:
    """Return that all of them are true."""
    if len(parts) > 1:
        return All(tuple(parts))
    return parts[0] if parts else None
