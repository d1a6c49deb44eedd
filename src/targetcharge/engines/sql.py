"""SQL of predicates and measures, made from typed trees and never from a caller's text: what engines share.

>>> from targetcharge.queries.tree import Column, Exact, Kind
>>> from targetcharge.queries.tree import Compare, Operator
>>> age = Column("age", Kind.NUMBER, Exact(0, -128, 127))
>>> condition(Compare(age, Operator.GT, 65), {"age": '"age"'})
'("age" > (65))'
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from targetcharge.queries.keys import MOST_KEYS, Period
from targetcharge.queries.measures import MOST_STEPS, RANKS, Count, UnitValue
from targetcharge.queries.tree import (
    All,
    Any,
    Compare,
    Like,
    Missing,
    Not,
    OneOf,
    Settled,
    decimal_text,
    text_literal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Histogram, Sketch, Total
    from targetcharge.queries.tree import Column, Predicate, Value

    Expressions = Mapping[str, str]
    """From a column's name to the SQL of its value, NULL where it is missing."""


@final
@dataclass(frozen=True)
class Relation:
    """Rows, and how they are asked about.

    Attributes:
        rows: what stands after FROM.
        by: from a column's name to the SQL of its value, NULL where it is missing.
        unit: the SQL that tells units apart; None if every row is one.
        place: the SQL of a row's place, where it was asked for.
    """

    rows: str
    by: Expressions
    unit: str | None
    place: str | None = None

    @property
    def unit_or_place(self) -> str | None:
        """Return what tells units apart, rows by their places; None if places were not asked for."""
        return self.unit or self.place


# Predicates


def condition(predicate: Predicate | None, by: Expressions) -> str:
    """Return a predicate as SQL, with SQL's own three-valued logic."""
    match predicate:
        case None:
            return "TRUE"
        case Compare(column, operator, value):
            return f"({by[column.name]} {operator} {literal(column, value)})"
        case OneOf(column, values):
            return f"({by[column.name]} IN ({', '.join(literal(column, value) for value in values)}))"
        case Missing(column):
            return f"({by[column.name]} IS NULL)"
        case Like(column, pattern):
            return f"({by[column.name]} LIKE {text_literal(pattern)})"
        case Settled(column, holds):
            return f"(CASE WHEN {by[column.name]} IS NOT NULL THEN {str(holds).upper()} END)"
        case All(parts):
            return "(" + " AND ".join(condition(part, by) for part in parts) + ")"
        case Any(parts):
            return "(" + " OR ".join(condition(part, by) for part in parts) + ")"
        case Not(part):
            return f"(NOT {condition(part, by)})"


def literal(column: Column, value: Value) -> str:
    """Return a literal as SQL, of a type that needs no conversion that could fail."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, int) and column.exact is not None:
        text = decimal_text(value, column.exact.scale)
        return f"CAST('{text}' AS DECIMAL(38,{column.exact.scale}))" if column.exact.scale else f"({text})"
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def mask(conditions: Mapping[int, str]) -> str:
    """Return an integer with a bit for each of at most 62 conditions, which is set where that is true."""
    bits = [
        f"(CASE WHEN {where} THEN CAST({1 << bit} AS BIGINT) ELSE CAST(0 AS BIGINT) END)"
        for bit, where in conditions.items()
    ]
    return " | ".join(bits) or "CAST(0 AS BIGINT)"


def coded(rows: str, place: int, constants: str, number: int) -> str:
    """Return the query of rows with the code c of their value v at a place, by a binary search among constants.

    The constants are the SQL of a list of so many values of the column's type, ascending. Beyond its end there is
    nothing, which is no less than a value.
    """
    value, below = f"v{place}", "0"
    for power in reversed(range(number.bit_length())):
        step = (
            f"CASE WHEN {value} >= list_extract({constants}, {below} + {1 << power}) THEN {1 << power} ELSE 0 END"
        )
        rows, below = f"SELECT *, {below} + {step} AS s{place}_{power} FROM ({rows})", f"s{place}_{power}"
    at = f"WHEN {value} = list_extract({constants}, {below}) THEN 2 * {below}" if number else ""
    return f"SELECT *, CASE WHEN {value} IS NULL THEN 0 {at} ELSE 2 * {below} + 1 END AS c{place} FROM ({rows})"


# Measures


def count(measure: Count, relation: Relation) -> str:
    """Return the query of a count."""
    counted = "*" if relation.unit is None else f"DISTINCT {relation.unit}"
    return f"SELECT count({counted}) FROM {relation.rows} WHERE {condition(measure.where, relation.by)}"


def total(measure: Total | UnitValue, relation: Relation) -> str:
    """Return the query of what all units contribute, added up."""
    return f"SELECT coalesce(sum(contribution), 0) FROM ({contributed(measure, relation)})"


def distribution(measure: UnitValue, relation: Relation) -> str:
    """Return the query of what is contributed at all, as steps, and of how many units contribute each."""
    steps = f"SELECT CAST(contribution AS BIGINT) AS steps FROM ({contributed(measure, relation)})"
    return f"SELECT steps, count(*) AS units FROM ({steps}) GROUP BY steps ORDER BY steps"


def sketch(measure: Sketch, relation: Relation, hashed: str) -> str:
    """Return the query of a sketch, given what a value v is hashed to in the engine's own functions."""
    value, unit = relation.by[measure.column.name], relation.unit
    known = f"{condition(measure.where, relation.by)} AND {value} IS NOT NULL"
    if unit is None:
        values = f"SELECT DISTINCT {value} AS v FROM {relation.rows} WHERE {known}"
        return f"SELECT count(DISTINCT {hashed} % {measure.buckets}) FROM ({values})"
    # Made distinct before they are hashed: there are fewer of them, and numbers are quicker than their bytes.
    values = f"SELECT DISTINCT {unit} AS u, {value} AS v FROM {relation.rows} WHERE {known} AND {unit} IS NOT NULL"
    hashes = f"SELECT u, v, {hashed} AS h FROM ({values})"
    if measure.per_unit == 1:  # the same, without sorting
        kept = f"SELECT min(h) AS h FROM ({hashes}) GROUP BY u"
    else:
        placed = f"SELECT h, row_number() OVER (PARTITION BY u ORDER BY h, v) AS place FROM ({hashes})"
        kept = f"SELECT h FROM ({placed}) WHERE place <= {measure.per_unit}"
    return f"SELECT count(DISTINCT h % {measure.buckets}) FROM ({kept})"


def counted(measure: Count, relation: Relation, groups: Sequence[str] = (), among: str = "TRUE") -> str:
    """Return the query of the rows that count, with their units u, in each group k1, k2 among those wanted."""
    return _rows(measure, relation, _named(groups), among)


def contributed(
    measure: Total | UnitValue, relation: Relation, groups: Sequence[str] = (), among: str = "TRUE"
) -> str:
    """Return the query of what each unit u contributes, in each group k1, k2 among those wanted."""
    names = [*names_of(groups), *(["u"] if relation.unit_or_place else [])]
    rows = _rows(measure, relation, [*_named(groups), f"{steps(measure, relation.by)} AS step"], among)
    known = "step IS NOT NULL"
    if relation.unit is not None:
        known += f" AND u IS NOT NULL GROUP BY {', '.join(names)}"
    amount = contribution(measure, "step", relation)
    return f"SELECT {', '.join([*names, f'{amount} AS contribution'])} FROM ({rows}) WHERE {known}"


def _rows(measure: Count | Total | UnitValue, relation: Relation, columns: Sequence[str], among: str) -> str:
    """Return the query of the rows that count, with some columns, and the unit or place as u if it is known."""
    unit = relation.unit_or_place
    parts = ", ".join([*columns, *([] if unit is None else [f"{unit} AS u"])])
    return f"SELECT {parts} FROM {relation.rows} WHERE {condition(measure.where, relation.by)} AND {among}"


def steps(measure: Total | UnitValue, by: Expressions) -> str:
    """Return a row's value in steps of the grid, of one number for each unit above the least; NULL if missing."""
    value = by[measure.column.name]
    exact = measure.column.exact
    if exact is not None and exact.scale == 0 and measure.grid == 1:
        on_grid, most = value, f"{MOST_STEPS}"
    else:
        grid = f"CAST('{float(measure.grid)!r}' AS DOUBLE)"
        on_grid = f"floor(CAST({value} AS DOUBLE) / {grid} + CAST('0.5' AS DOUBLE))"
        most = f"CAST('{float(MOST_STEPS)!r}' AS DOUBLE)"
    # Not least() and greatest(): they pass over NULL, and a missing value would be as much as can be.
    beyond = f"WHEN {on_grid} > {most} THEN {MOST_STEPS} WHEN {on_grid} < -{most} THEN {-MOST_STEPS}"
    step = f"(CASE {beyond} ELSE CAST({on_grid} AS BIGINT) END)"
    if isinstance(measure, UnitValue):
        return f"(CASE WHEN {value} IS NOT NULL THEN {clamped(step, measure)} - {measure.lower} END)"
    return step


def contribution(measure: Total | UnitValue, step: str, relation: Relation) -> str:
    """Return what a unit contributes, given its rows' steps, some of which are known."""
    if isinstance(measure, UnitValue):  # in integers as wide as a sum, however many rows a unit has
        mean = f"(2 * sum({step}) + count({step})) // (2 * count({step}))"
        return f"1 + {step if relation.unit is None else mean}"
    return clamped(step if relation.unit is None else f"sum({step})", measure)


def clamped(number: str, measure: Total | UnitValue) -> str:
    """Return a number, which is not NULL, between the bounds of a measure."""
    return f"least(greatest({number}, {measure.lower}), {measure.upper})"


# Keys


def groups_of(keys: Keys, relation: Relation) -> list[str]:
    """Return the SQL of what is compared with the keys, NULL where that is missing."""
    parts = [relation.by[column.name] for column in keys.columns]
    if keys.period is Period.DAY:
        return [f"CAST({parts[0]} AS DATE)"]
    return [f"date_trunc('hour', {parts[0]})"] if keys.period is Period.HOUR else parts


def names_of(groups: Sequence[object]) -> list[str]:
    """Return the names of what tells groups apart: k1, k2."""
    return [f"k{place}" for place, _ in enumerate(groups, 1)]


def _named(groups: Sequence[str]) -> list[str]:
    return [f"{group} AS {name}" for group, name in zip(groups, names_of(groups), strict=True)]


def joined(rows: str, keys: Keys) -> str:
    """Return the SQL of rows with k1, k2 joined with the declared keys, where NULL may be one."""
    names = names_of(keys.columns)
    if not any(keys.nullable):
        return f"({rows}) JOIN declared USING ({', '.join(names)})"
    same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM declared.{name}" for name in names)
    return f"({rows}) r JOIN declared ON {same}"


def by_key(measure: Count | Total | UnitValue, keys: Keys, relation: Relation, *, sifted: bool) -> str:
    """Return the query of a measure of each key that has rows, as i and n: one GROUP BY.

    It uses the declared keys, a relation `declared` of k1, k2 and their index i. If sifted, rows of other keys are
    left out before the rest is grouped: up to twenty times as fast where they are many, and half as fast where
    there are none.
    """
    groups = groups_of(keys, relation)
    names, among = ", ".join(names_of(groups)), "TRUE"
    if sifted:  # of two columns, whether each is of a declared key
        among = " AND ".join(
            f"({group} IN (SELECT {name} FROM declared){f' OR {group} IS NULL' * nullable})"
            for group, name, nullable in zip(groups, names_of(groups), keys.nullable, strict=True)
        )
    if not isinstance(measure, Count):
        rows, amount = contributed(measure, relation, groups, among), "sum(contribution)"
    else:
        rows, amount = counted(measure, relation, groups, among), "count(*)"
        rows = rows if relation.unit is None else f"SELECT DISTINCT * FROM ({rows}) WHERE u IS NOT NULL"
    values = f"SELECT {names}, {amount} AS n FROM ({rows}) GROUP BY {names}"
    return f"SELECT i, n FROM {joined(values, keys)}"


def histogram(measure: Histogram, keys: Keys, relation: Relation, number: str) -> str:
    """Return the query of how many units count for each key that has one, as i and n."""
    return f"SELECT i, count(*) AS n FROM ({chosen(measure, keys, relation, number)}) GROUP BY i"


def chosen(measure: Histogram, keys: Keys, relation: Relation, number: str) -> str:
    """Return the query of the units u of a column, and of the indices i of the keys for which each counts.

    It uses the declared keys with their s and t, and what a unit u is hashed to in the engine's own functions: of
    units with several keys, once of each.
    """
    rows = counted(Count(measure.where), relation, groups_of(keys, relation))
    declared = f"FROM {joined(rows, keys)} WHERE u IS NOT NULL"
    ends = f"SELECT u, min(i) AS i, max(i) AS last {declared} GROUP BY u"
    units = f"SELECT u, {number} % {RANKS} AS a FROM ends WHERE i < last"
    # A rank and an index in one integer, below 2^51.
    rank = f"((a * s + t) % {RANKS}) * {MOST_KEYS} + i"
    ranked = f"SELECT u, {rank} AS r FROM (SELECT u, i, s, t {declared}) JOIN ({units}) USING (u)"
    if measure.per_unit == 1:  # the same, without sorting
        several = f"SELECT u, min(r) % {MOST_KEYS} AS i FROM ({ranked}) GROUP BY u"
    else:
        different = f"SELECT DISTINCT u, r FROM ({ranked})"
        placed = f"SELECT u, r, row_number() OVER (PARTITION BY u ORDER BY r) AS place FROM ({different})"
        several = f"SELECT u, r % {MOST_KEYS} AS i FROM ({placed}) WHERE place <= {measure.per_unit}"
    return f"WITH ends AS MATERIALIZED ({ends}) SELECT u, i FROM ends WHERE i = last UNION ALL ({several})"
