"""Families: measures that differ only in which values some columns have, so that one GROUP BY tells them all.

>>> from targetcharge.queries.columns import Column, Kind
>>> county = Column("county", Kind.TEXT)
>>> asked = [Count(Compare(county, Operator.EQ, name)) for name in ("Kent", "Devon", "Kent")]
>>> [family] = families(asked)
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
        members: the place of each among all measures, and that of its key.
    """

    measure: Count | Total
    keys: Keys
    members: Mapping[int, int]


@final
@dataclass(frozen=True)
class _Member:
    place: int
    values: tuple[Value, ...]


def families(measures: Sequence[Measure | None]) -> Iterator[Family]:
    """Yield the families among some measures, each of two keys or more; a measure is in one at most.

    Args:
        measures: some of them; None is in no family.
    """
    alike: dict[tuple[Count | Total, tuple[Column, ...]], list[_Member]] = {}
    for place, measure in enumerate(measures):
        if not isinstance(measure, Count | Total):
            continue
        fixed, rest = _split(measure.where)
        if len(fixed) == len({each.column for each in fixed}):
            fixed = sorted(fixed, key=lambda each: each.column.name)
            columns = tuple(each.column for each in fixed)
            member = _Member(place, tuple(each.value for each in fixed))
            alike.setdefault((replace(measure, where=_joined(rest)), columns), []).append(member)
    for (measure, columns), members in alike.items():
        yield from _family(measure, columns, members)


def _family(measure: Count | Total, columns: tuple[Column, ...], members: list[_Member]) -> Iterator[Family]:
    """Yield the family of members with the same columns, if they differ in one or two of those."""
    first = members[0].values
    differ = [side for side in range(len(columns)) if any(each.values[side] != first[side] for each in members)]
    if not 1 <= len(differ) <= _MOST_COLUMNS:
        return
    same = [side for side in range(len(columns)) if side not in differ]
    fixed = [Compare(columns[side], Operator.EQ, first[side]) for side in same]
    found: dict[tuple[Value, ...], int] = {}
    places: dict[int, int] = {}
    for each in members:
        key = tuple(each.values[side] for side in differ)
        places[each.place] = found.setdefault(key, len(found))
    common = replace(measure, where=_joined([*fixed, *_parts(measure.where)]))
    yield Family(common, Keys(tuple(columns[side] for side in differ), tuple(found)), places)


def _split(where: Predicate | None) -> tuple[list[Compare], list[Predicate]]:
    """Return the parts of a predicate that fix a column's value, and the others."""
    fixed: list[Compare] = []
    rest: list[Predicate] = []
    for part in _parts(where):
        if isinstance(part, Compare) and part.operator is Operator.EQ:
            fixed.append(part)
        else:
            rest.append(part)
    return fixed, rest


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
