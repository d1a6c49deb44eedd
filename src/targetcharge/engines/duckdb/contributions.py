"""Contributions in DuckDB: who makes up a measure, and how much of it, in as few scans as can be.

As secret as the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.engines import sql
from targetcharge.engines.duckdb.measuring import with_declared, with_number
from targetcharge.engines.engine import Contributions
from targetcharge.queries.measures import Count, Total, UnitValue, without_bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from targetcharge.engines.duckdb.types import Unit
    from targetcharge.engines.duckdb.unit_ids import UnitIds
    from targetcharge.engines.sql import Relation
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Additive

    Integers = NDArray[np.int64]
    Part = tuple[Integers, Integers | None]
    """Units, and what each of them contributes; None where each contributes 1."""
    Plain = Count | Total | UnitValue

_MOST_COUNTS: Final = 62
"""Counts of one scan: each takes a bit of an integer."""
_MOST_TOTALS: Final = 16
"""Other measures of one scan: each takes an integer of every unit."""
_ID_BITS: Final = 43
"""Bits of an id, beside a key's index in one integer: there are at most a million keys."""


def contributions(unit_ids: UnitIds, measures: Sequence[Additive], snapshot: int | None) -> Contributions:
    """Return who contributes to each measure, on the rows of the first snapshots."""
    relation = unit_ids.relation(snapshot)
    parts: list[Part] = []
    for scan in _scans([without_bound(measure) for measure in measures]):
        if len(scan) == 1 and isinstance(scan[0], Count):
            rows = sql.counted(scan[0], relation)
            rows = f"SELECT DISTINCT u FROM ({rows})" if relation.unit else rows
            parts.append((np.sort(unit_ids.arrays(unit_ids.numbered(rows))["n"]), None))
        else:
            parts += _several(unit_ids, relation, scan)
    none = np.empty(0, np.int64)
    units = np.concatenate([none, *(units for units, _ in parts)])
    starts = np.cumsum([0, *(len(units) for units, _ in parts)], dtype=np.int64)
    if not any(isinstance(measure, Total | UnitValue) for measure in measures):
        return Contributions(units, None, starts)
    steps = [np.ones(len(units), np.int64) if amounts is None else amounts for units, amounts in parts]
    return Contributions(units, np.concatenate([none, *steps]), starts)


def _scans(measures: Sequence[Plain]) -> Iterator[list[Plain]]:
    """Yield the measures in order, as many as one scan takes."""
    scan: list[Plain] = []
    counts = totals = 0
    for measure in measures:
        if counts == _MOST_COUNTS or totals == _MOST_TOTALS:
            yield scan
            scan, counts, totals = [], 0, 0
        scan.append(measure)
        counts, totals = counts + isinstance(measure, Count), totals + (not isinstance(measure, Count))
    if scan:
        yield scan


def _several(unit_ids: UnitIds, relation: Relation, measures: Sequence[Plain]) -> list[Part]:
    """Return several measures from one scan: each count as a bit of m, any other as an integer of its own."""
    columns = unit_ids.arrays(unit_ids.numbered(_query_of_several(relation, measures)))
    order = np.argsort(columns["n"])
    ids, mask = columns["n"][order], columns["m"][order]
    parts: list[Part] = []
    bit = 0
    for place, measure in enumerate(measures):
        if isinstance(measure, Count):
            parts.append((ids[(mask >> bit) & 1 == 1], None))
            bit += 1
        else:
            amounts = columns[f"t{place}"][order]
            parts.append((ids[amounts != 0], amounts[amounts != 0]))
    return parts


def _query_of_several(relation: Relation, measures: Sequence[Plain]) -> str:
    """Return the query of all units u that contribute to some of these measures."""
    wheres = [sql.condition(measure.where, relation.by) for measure in measures]
    bits: dict[int, str] = {}
    row: list[str] = []
    whole: list[str] = []
    for place, (measure, where) in enumerate(zip(measures, wheres, strict=True)):
        if isinstance(measure, Count):
            bits[len(bits)] = where
            continue
        row.append(f"(CASE WHEN {where} THEN {sql.steps(measure, relation.by)} END) AS s{place}")
        # A unit without a value contributes nothing; clamped, that would be the lower bound.
        known = f"count(s{place}) > 0" if relation.unit else f"s{place} IS NOT NULL"
        amount = f"CASE WHEN {known} THEN {sql.contribution(measure, f's{place}', relation)} ELSE 0 END"
        whole.append(f"CAST({amount} AS BIGINT) AS t{place}")
    columns = ", ".join([f"{relation.unit_or_place} AS u", f"({sql.mask(bits)}) AS m", *row])
    rows = f"SELECT {columns} FROM {relation.rows} WHERE {' OR '.join(wheres)}"
    if relation.unit is None:
        return f"SELECT {', '.join(['u', 'm', *whole])} FROM ({rows})"
    return f"SELECT {', '.join(['u', 'bit_or(m) AS m', *whole])} FROM ({rows}) WHERE u IS NOT NULL GROUP BY u"


def contributions_by(
    unit_ids: UnitIds, measure: Additive, keys: Keys, unit: Unit | None, snapshot: int | None
) -> Contributions:
    """Return who contributes to a measure on the rows of each key, of the first snapshots."""
    relation = unit_ids.relation(snapshot)
    bounded = with_number(measure, keys, unit)
    if bounded is None:
        query, parameters = with_declared(_joint(unit_ids, without_bound(measure), keys, relation), keys)
    else:
        chosen = unit_ids.numbered(sql.chosen(bounded[0], keys, relation, bounded[1]))
        query, parameters = with_declared(chosen, keys, bounded[0])
    columns = unit_ids.arrays(query, parameters)
    packed = (columns["i"] << _ID_BITS) | columns["n"]
    order = np.argsort(packed) if "t" in columns else None
    packed = np.sort(packed) if order is None else packed[order]
    starts = np.searchsorted(packed, np.arange(len(keys.values) + 1, dtype=np.int64) << _ID_BITS)
    units = packed & ((1 << _ID_BITS) - 1)
    return Contributions(units, None if order is None else columns["t"][order], starts.astype(np.int64))


def _joint(unit_ids: UnitIds, measure: Plain, keys: Keys, relation: Relation) -> str:
    """Return the query of who contributes to the key of each index i, and how much, if it is not 1."""
    groups, names = sql.groups_of(keys, relation), ", ".join(sql.names_of(keys.columns))
    if isinstance(measure, Count):
        numbered = unit_ids.numbered(sql.counted(measure, relation, groups))
        if relation.unit:
            # An id is narrow: pairs of keys and ids are made different in half the time of keys and values.
            numbered = f"SELECT DISTINCT * FROM ({numbered})"
    else:
        amounts = f"SELECT {names}, u, CAST(contribution AS BIGINT) AS t"
        rows = f"{amounts} FROM ({sql.contributed(measure, relation, groups)}) WHERE contribution <> 0"
        numbered = unit_ids.numbered(rows)
    return f"SELECT * EXCLUDE ({names}) FROM {sql.joined(numbered, keys)}"
