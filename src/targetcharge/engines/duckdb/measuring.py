"""Measuring in DuckDB: measures, cubes of rows for many counts, and who makes up a measure, and how much of it.

All of it in as few scans as can be. As secret as the data.

A cube is some of the table's columns, grouped, with the number of rows of each group. Every predicate over those
columns has the same answer on the cube. The last few cubes are kept: memory does not grow with the number of
questions.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar, final

import numpy as np

from targetcharge.engines import sql
from targetcharge.engines.duckdb.types import stored
from targetcharge.engines.engine import Contributions
from targetcharge.queries.keys import Period
from targetcharge.queries.measures import Count, Sketch, Total
from targetcharge.queries.tree import Kind, decimal_text, text_literal
from targetcharge.queries.tree import columns as columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.duckdb.unit_ids import UnitIds
    from targetcharge.engines.sql import Relation
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure
    from targetcharge.queries.tree import Column, Predicate, Value

    Integers = NDArray[np.int64]
    Part = tuple[Integers, Integers | None]
    """Units, and what each of them contributes; None where each contributes 1."""

_HALF: Final = 2**63
_WIDE: Final = 2**64
_HASHED_DIGITS: Final = 15
"""Hexadecimal digits of a hash that are used: 60 bits, which every engine has as an integer."""
_MOST_COUNTS: Final = 62
"""Counts of one scan: each takes a bit of an integer."""
_MOST_TOTALS: Final = 16
"""Totals of one scan: each takes an integer of every unit."""
_ID_BITS: Final = 43
"""Bits of an id, beside a key's index in one integer: there are at most a million keys."""

_WORTH_A_CUBE: Final = 8
"""Predicates that are worth a cube: it takes about as long as three of them, asked alone."""
_MOST_CUBE_COLUMNS: Final = 8
_SAMPLE: Final = 100_000
_MOST_GROUPS: Final = 10_000
"""Groups in the sample that still promise a cube much smaller than the table."""
_MOST_CUBES: Final = 4
_COUNTS_OF_A_CUBE: Final = 100
"""Predicates that are counted in one pass over a cube."""

Item = TypeVar("Item")


# Measures


def query_of(measure: Measure, relation: Relation) -> str:
    """Return the query of one measure."""
    match measure:
        case Count():
            return sql.count(measure, relation)
        case Total():
            return sql.total(measure, relation)
        case Sketch():
            return sql.sketch(measure, relation, _hashed(measure))


def _hashed(sketch: Sketch) -> str:
    """Return the number that a value v is hashed to. No value is written as text but a decimal's digits."""
    exact = sketch.column.exact
    match sketch.column.kind:
        case Kind.TEXT:
            data = "encode(v)"
        case Kind.TIME:
            data = _bytes("epoch_us(v)")
        case Kind.DATE:
            data = _bytes("(v - DATE '1970-01-01')")
        case Kind.BOOLEAN:
            data = _bytes("CAST(v AS BIGINT)")
        case Kind.NUMBER if exact is None:
            data = _bytes("(CAST(v AS DOUBLE) + CAST('0.0' AS DOUBLE))")  # -0.0 is 0.0
        case Kind.NUMBER if exact.scale:  # of the widest type, or 0.5 would be '.5' in a column of DECIMAL(2,2)
            data = f"encode(CAST(CAST(v AS DECIMAL(38,{exact.scale})) AS VARCHAR))"
        case Kind.NUMBER if exact.low >= -_HALF and exact.high < _HALF:
            data = _bytes("CAST(v AS BIGINT)")
        case Kind.NUMBER:
            unsigned = exact.low == 0 and exact.high > _HALF**2
            data = _bytes(f"CAST(v AS {'UHUGEINT' if unsigned else 'HUGEINT'})")
    digest = f"md5(encode({text_literal(sketch.key)}) || {data})"
    return f"CAST(concat('0x', substr({digest}, 1, {_HASHED_DIGITS})) AS BIGINT)"


def _bytes(value: str) -> str:
    """Return the bytes of a number, the highest first."""
    return f"CAST(CAST({value} AS BIT) AS BLOB)"


def with_declared(query: str, keys: Keys) -> tuple[str, list[object]]:
    """Return a query that uses the declared keys, a relation of k1, k2 and their index i; and its parameters."""
    lists: list[object] = []
    parts: list[str] = []
    for place, column in enumerate(keys.columns):
        lists.append([_parameter(column, key[place]) for key in keys.values])
        parts.append(f"unnest(CAST(${place + 1} AS {_key_type(column, keys.period)}[])) AS k{place + 1}")
    declared = f"SELECT {', '.join(parts)}, unnest(range({len(keys.values)})) AS i"
    return f"WITH declared AS MATERIALIZED ({declared}) {query}", lists


def _parameter(column: Column, value: Value) -> object:
    """Return a key as DuckDB takes it: exact numbers as text, if they are decimals or need not fit in 64 bits."""
    if column.exact is not None and (column.exact.scale or column.exact.high >= _WIDE) and isinstance(value, int):
        return decimal_text(value, column.exact.scale)
    return value


def _key_type(column: Column, period: Period | None) -> str:
    """Return the SQL type in which keys are compared with a column: its own, so that files can be skipped."""
    if period is not None:
        return "DATE" if period is Period.DAY else "TIMESTAMP"
    return stored(column)


# Cubes


def sums(
    link: Connection, predicates: Sequence[Predicate | None], rows: str, by: Mapping[str, str], amount: str = "1"
) -> list[int]:
    """Return, for each of a few predicates, what the rows that satisfy it add up to: in one scan."""
    parts = [f"sum(CASE WHEN {sql.condition(where, by)} THEN {amount} ELSE 0 END)" for where in predicates]
    return [int(value or 0) for value in link.rows(f"SELECT {', '.join(parts)} FROM {rows}")[0]]


def chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in order, a few at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


@final
class Cubes:
    """The cubes of one table. As secret as the data."""

    def __init__(self, link: Connection, relation: Relation, name: str) -> None:
        """Start with none; their names will begin with a name."""
        self._link = link
        self._relation = relation
        self._names = (f"{name}_{number}" for number in count(1))
        self._made: dict[tuple[str, ...], str] = {}
        self._useless: set[tuple[str, ...]] = set()

    def count(self, predicates: Sequence[Predicate | None]) -> list[int] | None:
        """Return how many rows satisfy each predicate; None if no cube would help."""
        used = tuple(sorted({column.name for predicate in predicates for column in columns_of(predicate)}))
        cube = self._find(used) or (self._make(used) if len(predicates) >= _WORTH_A_CUBE else None)
        if cube is None:
            return None
        names, table = cube
        inside = {name: f"c{place}" for place, name in enumerate(names)}
        counts: list[int] = []
        for chunk in chunks(predicates, _COUNTS_OF_A_CUBE):
            counts += sums(self._link, chunk, table, inside, "n")
        return counts

    def forget(self) -> None:
        """Drop all cubes."""
        while self._made:
            self._link.rows(f"DROP TABLE IF EXISTS {self._made.popitem()[1]}")

    def _find(self, used: tuple[str, ...]) -> tuple[tuple[str, ...], str] | None:
        for names, table in self._made.items():
            if set(used) <= set(names):
                self._made[names] = self._made.pop(names)  # the last used is dropped last
                return names, table
        return None

    def _make(self, used: tuple[str, ...]) -> tuple[tuple[str, ...], str] | None:
        if len(used) > _MOST_CUBE_COLUMNS or used in self._useless:
            return None
        rows, by = self._relation.rows, self._relation.by
        parts = ", ".join(f"{by[name]} AS c{place}" for place, name in enumerate(used)) or "1 AS c0"
        sample = f"SELECT {parts} FROM (SELECT * FROM {rows} LIMIT {_SAMPLE})"
        if self._link.integer(f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({sample}))") > _MOST_GROUPS:
            self._useless = {used}
            return None
        while len(self._made) >= _MOST_CUBES:
            oldest = next(iter(self._made))
            self._link.rows(f"DROP TABLE {self._made.pop(oldest)}")
        table = next(self._names)
        grouped = f"SELECT {parts}, count(*) AS n FROM {rows} GROUP BY ALL"
        self._link.rows(f"CREATE OR REPLACE TEMP TABLE {table} AS {grouped}")
        self._made[used] = table
        return used, table


# Contributions


def contributions(unit_ids: UnitIds, measures: Sequence[Count | Total], snapshot: int | None) -> Contributions:
    """Return who contributes to each measure, on the rows of the first snapshots."""
    relation = unit_ids.relation(snapshot)
    parts: list[Part] = []
    for scan in _scans(measures):
        if len(scan) == 1 and isinstance(scan[0], Count):
            rows = sql.counted(scan[0], relation)
            rows = f"SELECT DISTINCT u FROM ({rows})" if relation.unit else rows
            parts.append((np.sort(unit_ids.arrays(unit_ids.numbered(rows))["n"]), None))
        else:
            parts += _several(unit_ids, relation, scan)
    none = np.empty(0, np.int64)
    units = np.concatenate([none, *(units for units, _ in parts)])
    starts = np.cumsum([0, *(len(units) for units, _ in parts)], dtype=np.int64)
    if not any(isinstance(measure, Total) for measure in measures):
        return Contributions(units, None, starts)
    steps = [np.ones(len(units), np.int64) if amounts is None else amounts for units, amounts in parts]
    return Contributions(units, np.concatenate([none, *steps]), starts)


def _scans(measures: Sequence[Count | Total]) -> Iterator[list[Count | Total]]:
    """Yield the measures in order, as many as one scan takes."""
    scan: list[Count | Total] = []
    counts = totals = 0
    for measure in measures:
        if counts == _MOST_COUNTS or totals == _MOST_TOTALS:
            yield scan
            scan, counts, totals = [], 0, 0
        scan.append(measure)
        counts, totals = counts + isinstance(measure, Count), totals + isinstance(measure, Total)
    if scan:
        yield scan


def _several(unit_ids: UnitIds, relation: Relation, measures: Sequence[Count | Total]) -> list[Part]:
    """Return several measures from one scan: each count as a bit of m, each total as an integer of its own."""
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


def _query_of_several(relation: Relation, measures: Sequence[Count | Total]) -> str:
    """Return the query of all units u that contribute to some of these measures."""
    wheres = [sql.condition(measure.where, relation.by) for measure in measures]
    bits: list[str] = []
    row: list[str] = []
    whole: list[str] = []
    for place, (measure, where) in enumerate(zip(measures, wheres, strict=True)):
        if isinstance(measure, Count):
            bits.append(f"(CASE WHEN {where} THEN CAST({1 << len(bits)} AS BIGINT) ELSE CAST(0 AS BIGINT) END)")
            continue
        row.append(f"(CASE WHEN {where} THEN {sql.steps(measure, relation.by)} END) AS s{place}")
        step = f"sum(s{place})" if relation.unit else f"s{place}"
        # A unit without a value contributes nothing; clamped() would make of that the lower bound.
        amount = f"CASE WHEN {step} IS NULL THEN 0 ELSE {sql.clamped(step, measure)} END"
        whole.append(f"CAST({amount} AS BIGINT) AS t{place}")
    mask = " | ".join(bits) or "CAST(0 AS BIGINT)"
    columns = ", ".join([f"{relation.unit_or_place} AS u", f"({mask}) AS m", *row])
    rows = f"SELECT {columns} FROM {relation.rows} WHERE {' OR '.join(wheres)}"
    if relation.unit is None:
        return f"SELECT {', '.join(['u', 'm', *whole])} FROM ({rows})"
    return f"SELECT {', '.join(['u', 'bit_or(m) AS m', *whole])} FROM ({rows}) WHERE u IS NOT NULL GROUP BY u"


def contributions_by(unit_ids: UnitIds, measure: Count | Total, keys: Keys, snapshot: int | None) -> Contributions:
    """Return who contributes to a measure on the rows of each key, of the first snapshots."""
    relation, names = unit_ids.relation(snapshot), ", ".join(sql.names_of(keys.columns))
    groups = sql.groups_of(keys, relation)
    if isinstance(measure, Total):
        amounts = f"SELECT {names}, u, CAST(contribution AS BIGINT) AS t"
        rows = f"{amounts} FROM ({sql.contributed(measure, relation, groups)}) WHERE contribution <> 0"
        numbered = unit_ids.numbered(rows)
    else:
        numbered = unit_ids.numbered(sql.counted(measure, relation, groups))
        if relation.unit:
            # An id is narrow: pairs of keys and ids are made different in half the time of keys and values.
            numbered = f"SELECT DISTINCT * FROM ({numbered})"
    joint = f"SELECT * EXCLUDE ({names}) FROM ({numbered}) JOIN declared USING ({names})"
    columns = unit_ids.arrays(*with_declared(joint, keys))
    packed = (columns["i"] << _ID_BITS) | columns["n"]
    order = np.argsort(packed) if "t" in columns else None
    packed = np.sort(packed) if order is None else packed[order]
    starts = np.searchsorted(packed, np.arange(len(keys.values) + 1, dtype=np.int64) << _ID_BITS)
    units = packed & ((1 << _ID_BITS) - 1)
    return Contributions(units, None if order is None else columns["t"][order], starts.astype(np.int64))
