"""Contributing: who makes up a number, and how much of it, in as few scans as can be. As secret as the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.engines.contributions import Contributions
from targetcharge.engines.duckdb.measuring import added_up, grouped, joined, named, with_declared
from targetcharge.engines.sql import clamped, condition, steps
from targetcharge.queries.measures import Count, Total

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from targetcharge.engines.duckdb.connecting import Connection
    from targetcharge.engines.duckdb.numbering import Numbers
    from targetcharge.engines.duckdb.parts import Relation
    from targetcharge.queries.keys import Keys

    Integers = NDArray[np.int64]
    Part = tuple[Integers, Integers | None]
    """Units, and what each of them contributes; None where each contributes 1."""

_MOST_COUNTS: Final = 62
"""Counts of one scan: each takes a bit of an integer."""
_MOST_TOTALS: Final = 16
"""Totals of one scan: each takes an integer of every unit."""
_ID_BITS: Final = 43
"""Bits of an id, beside a key's index in one integer: there are at most a million keys."""


def contributions(
    link: Connection, numbers: Numbers, measures: Sequence[Count | Total], snapshot: int | None
) -> Contributions:
    """Return who contributes to each measure, on the rows of the first snapshots."""
    relation = numbers.relation(snapshot)
    parts: list[Part] = []
    for some in _batches(measures):
        if len(some) == 1 and isinstance(some[0], Count):
            parts.append(_alone(link, numbers, relation, some[0]))
        else:
            parts += _together(link, numbers, relation, some)
    return _gathered(parts, stepped=any(isinstance(each, Total) for each in measures))


def _batches(measures: Sequence[Count | Total]) -> Iterator[list[Count | Total]]:
    """Yield the measures in order, as many as one scan takes."""
    some: list[Count | Total] = []
    counts = totals = 0
    for each in measures:
        if counts == _MOST_COUNTS or totals == _MOST_TOTALS:
            yield some
            some, counts, totals = [], 0, 0
        some.append(each)
        counts, totals = counts + isinstance(each, Count), totals + isinstance(each, Total)
    if some:
        yield some


def _alone(link: Connection, numbers: Numbers, relation: Relation, count: Count) -> Part:
    where = condition(count.where, relation.by)
    if numbers.table is None:
        sql = f"SELECT {relation.place} AS n FROM {relation.rows} WHERE {where}"
    else:
        units = f"SELECT DISTINCT {relation.unit} AS u FROM {relation.rows} WHERE {where}"
        sql = f"SELECT id AS n FROM ({units}) JOIN {numbers.table} USING (u)"
    return np.sort(numbers.ids(link.arrays(sql)["n"])), None


def _together(
    link: Connection, numbers: Numbers, relation: Relation, measures: Sequence[Count | Total]
) -> list[Part]:
    """Return several measures from one scan: each count as a bit of m, each total as an integer of its own."""
    found = link.arrays(_all_of(numbers, relation, measures))
    ids = numbers.ids(found["n"])
    order = np.argsort(ids)
    ids, mask = ids[order], found["m"][order]
    parts: list[Part] = []
    bit = 0
    for place, each in enumerate(measures):
        if isinstance(each, Count):
            parts.append((ids[(mask >> bit) & 1 == 1], None))
            bit += 1
        else:
            total = found[f"t{place}"][order]
            parts.append((ids[total != 0], total[total != 0]))
    return parts


def _all_of(numbers: Numbers, relation: Relation, measures: Sequence[Count | Total]) -> str:
    """Return the query of all units that contribute to some of these measures."""
    wheres = [condition(each.where, relation.by) for each in measures]
    bits: list[str] = []
    row: list[str] = []
    whole: list[str] = []
    for place, (each, where) in enumerate(zip(measures, wheres, strict=True)):
        if isinstance(each, Count):
            bits.append(f"(CASE WHEN {where} THEN CAST({1 << len(bits)} AS BIGINT) ELSE CAST(0 AS BIGINT) END)")
            continue
        row.append(f"(CASE WHEN {where} THEN {steps(each, relation.by)} END) AS s{place}")
        step = f"s{place}" if numbers.table is None else f"sum(s{place})"
        # A unit without a value contributes nothing; clamped() would make of that the lower bound.
        whole.append(f"CAST(CASE WHEN {step} IS NULL THEN 0 ELSE {clamped(step, each)} END AS BIGINT) AS t{place}")
    unit = relation.place if numbers.table is None else relation.unit
    mask = " | ".join(bits) or "CAST(0 AS BIGINT)"
    columns = joined(f"{unit} AS u", f"({mask}) AS m", *row)
    rows = f"SELECT {columns} FROM {relation.rows} WHERE {' OR '.join(wheres)}"
    if numbers.table is None:
        return f"SELECT {joined('u AS n', 'm', *whole)} FROM ({rows})"
    by_unit = f"SELECT {joined('u', 'bit_or(m) AS m', *whole)} FROM ({rows}) WHERE u IS NOT NULL GROUP BY u"
    return f"SELECT id AS n, * EXCLUDE (u, id) FROM ({by_unit}) JOIN {numbers.table} USING (u)"


def _gathered(parts: Sequence[Part], *, stepped: bool) -> Contributions:
    none = np.empty(0, np.int64)
    units = np.concatenate([none, *(each for each, _ in parts)])
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(each) for each, _ in parts], dtype=np.int64)))
    if not stepped:
        return Contributions(units, None, starts)
    filled = [np.ones(len(each), np.int64) if its_steps is None else its_steps for each, its_steps in parts]
    return Contributions(units, np.concatenate([none, *filled]), starts)


def contributions_by(
    link: Connection, numbers: Numbers, measure: Count | Total, keys: Keys, snapshot: int | None
) -> Contributions:
    """Return who contributes to a measure on the rows of each key, of the first snapshots."""
    sql = _by_group(numbers, numbers.relation(snapshot), measure, keys)
    joint = f"SELECT * EXCLUDE ({_names(keys)}) FROM ({sql}) JOIN declared USING ({_names(keys)})"
    found = link.arrays(*with_declared(joint, keys))
    packed = (found["i"] << _ID_BITS) | numbers.ids(found["n"])
    order = np.argsort(packed) if "t" in found else None
    packed = np.sort(packed) if order is None else packed[order]
    starts = np.searchsorted(packed, np.arange(len(keys.values) + 1, dtype=np.int64) << _ID_BITS)
    units = packed & ((1 << _ID_BITS) - 1)
    return Contributions(units, None if order is None else found["t"][order], starts.astype(np.int64))


def _by_group(numbers: Numbers, relation: Relation, measure: Count | Total, keys: Keys) -> str:
    """Return the query of who contributes (n, and t for how much) in each group k1, k2."""
    groups, names = grouped(keys, relation), _names(keys)
    unit = relation.place if numbers.table is None else relation.unit
    if isinstance(measure, Total):
        inside = f"SELECT * FROM ({added_up(measure, relation, groups, unit)}) WHERE contribution <> 0"
        amount = "CAST(contribution AS BIGINT) AS t"
        if numbers.table is None:
            return f"SELECT {names}, u AS n, {amount} FROM ({inside})"
        return f"SELECT {names}, id AS n, {amount} FROM ({inside}) JOIN {numbers.table} USING (u)"
    each = joined(*(f"{group} AS {name}" for group, name in zip(groups, named(groups), strict=True)))
    rows = f"SELECT {each}, {unit} AS u FROM {relation.rows} WHERE {condition(measure.where, relation.by)}"
    if numbers.table is None:
        return f"SELECT {names}, u AS n FROM ({rows})"
    # An id is narrow: pairs of keys and ids are made different in half the time of pairs of keys and values.
    return f"SELECT DISTINCT {names}, id AS n FROM ({rows}) JOIN {numbers.table} USING (u)"


def _names(keys: Keys) -> str:
    return joined(*named([column.name for column in keys.columns]))
