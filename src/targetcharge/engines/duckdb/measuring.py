"""Measuring: the SQL of measures, on some rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge.engines.duckdb.types import stored
from targetcharge.engines.sql import clamped, condition, hashed, steps
from targetcharge.queries.keys import Period
from targetcharge.queries.measures import Count, Sketch, Total
from targetcharge.queries.predicates import decimal_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.engines.duckdb.parts import Relation
    from targetcharge.queries.columns import Column, Value
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure

_WIDE: Final = 2**64


def one(measure: Measure, relation: Relation) -> str:
    """Return the query of one measure."""
    where, rows = condition(measure.where, relation.by), relation.rows
    match measure:
        case Count() if relation.unit is None:
            return f"SELECT count(*) FROM {rows} WHERE {where}"
        case Count():
            return f"SELECT count(DISTINCT {relation.unit}) FROM {rows} WHERE {where}"
        case Total():
            inside = added_up(measure, relation, (), None)
            return f"SELECT coalesce(sum(contribution), 0) FROM ({inside})"
        case Sketch():
            return _sketch(measure, relation, where)


def added_up(
    total: Total, relation: Relation, groups: Sequence[str], unit: str | None, among: str = "TRUE"
) -> str:
    """Return the query of what each unit contributes to a total, in each group.

    Args:
        total: the total.
        relation: the rows.
        groups: the SQL of what tells groups apart; they are named k1, k2, …
        unit: what tells units apart, to be given beside what each contributes as u; None if it is not to be.
        among: the SQL of which groups are wanted.
    """
    names, given = named(groups), [] if unit is None else ["u"]
    row = [*(f"{group} AS {name}" for group, name in zip(groups, names, strict=True))]
    row += [f"{steps(total, relation.by)} AS step"]
    where = f"{condition(total.where, relation.by)} AND {among}"
    if relation.unit is None:
        row += [] if unit is None else [f"{unit} AS u"]
        rows = f"SELECT {joined(*row)} FROM {relation.rows} WHERE {where}"
        contribution = joined(*names, *given, f"{clamped('step', total)} AS contribution")
        return f"SELECT {contribution} FROM ({rows}) WHERE step IS NOT NULL"
    rows = f"SELECT {joined(*row)}, {relation.unit} AS u FROM {relation.rows} WHERE {where}"
    contribution = joined(*names, *given, f"{clamped('sum(step)', total)} AS contribution")
    known = "step IS NOT NULL AND u IS NOT NULL"
    return f"SELECT {contribution} FROM ({rows}) WHERE {known} GROUP BY {joined(*names, 'u')}"


def _sketch(sketch: Sketch, relation: Relation, where: str) -> str:
    value, unit = relation.by[sketch.column.name], relation.unit
    number = hashed(sketch, {sketch.column.name: "v"})
    known = f"{where} AND {value} IS NOT NULL"
    if unit is None:
        values = f"SELECT DISTINCT {value} AS v FROM {relation.rows} WHERE {known}"
        return f"SELECT count(DISTINCT {number} % {sketch.buckets}) FROM ({values})"
    # Made distinct before they are hashed: there are fewer of them, and numbers are quicker than their bytes.
    values = f"SELECT DISTINCT {unit} AS u, {value} AS v FROM {relation.rows} WHERE {known} AND {unit} IS NOT NULL"
    hashes = f"SELECT u, v, {number} AS h FROM ({values})"
    if sketch.per_unit == 1:  # the same, without sorting
        kept = f"SELECT min(h) AS h FROM ({hashes}) GROUP BY u"
    else:
        placed = f"SELECT h, row_number() OVER (PARTITION BY u ORDER BY h, v) AS place FROM ({hashes})"
        kept = f"SELECT h FROM ({placed}) WHERE place <= {sketch.per_unit}"
    return f"SELECT count(DISTINCT h % {sketch.buckets}) FROM ({kept})"


def by_key(measure: Count | Total, keys: Keys, relation: Relation, *, sifted: bool) -> tuple[str, list[object]]:
    """Return the query of a measure of each key that has rows, as i and n, and its parameters: one GROUP BY.

    Args:
        measure: what is measured.
        keys: the keys.
        relation: the rows.
        sifted: whether rows of other keys are left out before the rest is grouped: up to twenty times as fast
            where they are many, and half as fast where there are none.
    """
    groups = grouped(keys, relation)
    among = _among_declared(groups) if sifted else "TRUE"
    names = joined(*named(groups))
    each = joined(*(f"{group} AS {name}" for group, name in zip(groups, named(groups), strict=True)))
    where, rows = f"{condition(measure.where, relation.by)} AND {among}", relation.rows
    match measure:
        case Count() if relation.unit is None:
            numbers = f"SELECT {each}, count(*) AS n FROM {rows} WHERE {where} GROUP BY ALL"
        case Count():
            known = f"{relation.unit} IS NOT NULL"
            units = f"SELECT DISTINCT {each}, {relation.unit} AS u FROM {rows} WHERE {where} AND {known}"
            numbers = f"SELECT {names}, count(*) AS n FROM ({units}) GROUP BY {names}"
        case Total():
            inside = added_up(measure, relation, groups, None, among)
            numbers = f"SELECT {names}, sum(contribution) AS n FROM ({inside}) GROUP BY {names}"
    return with_declared(f"SELECT i, n FROM ({numbers}) JOIN declared USING ({names})", keys)


def grouped(keys: Keys, relation: Relation) -> list[str]:
    """Return the SQL of what is compared with the keys."""
    parts = [relation.by[column.name] for column in keys.columns]
    if keys.period is Period.DAY:
        return [f"CAST({parts[0]} AS DATE)"]
    return [f"date_trunc('hour', {parts[0]})"] if keys.period is Period.HOUR else parts


def _among_declared(groups: Sequence[str]) -> str:
    """Return the SQL of whether a row is of a declared key; of two columns, whether each is of one."""
    pairs = zip(groups, named(groups), strict=True)
    return " AND ".join(f"{group} IN (SELECT {name} FROM declared)" for group, name in pairs)


def with_declared(query: str, keys: Keys) -> tuple[str, list[object]]:
    """Return a query that uses the declared keys, a relation of k1, k2 and their index i; and its parameters."""
    lists: list[object] = []
    parts: list[str] = []
    for place, column in enumerate(keys.columns):
        lists.append([_parameter(column, value[place]) for value in keys.values])
        parts.append(f"unnest(CAST(${place + 1} AS {_key_type(column, keys.period)}[])) AS k{place + 1}")
    declared = f"SELECT {joined(*parts)}, unnest(range({len(keys.values)})) AS i"
    return f"WITH declared AS MATERIALIZED ({declared}) {query}", lists


def named(groups: Sequence[str]) -> list[str]:
    """Return the names of what tells groups apart."""
    return [f"k{place}" for place, _ in enumerate(groups, 1)]


def joined(*parts: str) -> str:
    """Return some SQL as a list."""
    return ", ".join(parts)


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
