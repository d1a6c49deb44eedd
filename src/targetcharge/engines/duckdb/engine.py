"""The DuckDB engine: exact integers by as few scans as can be."""

from __future__ import annotations

import hashlib
import hmac
import weakref
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.engines.duckdb.batches import Cubes, chunks
from targetcharge.engines.duckdb.loading import Loaded, load
from targetcharge.engines.duckdb.quoting import RELATION, identifier
from targetcharge.engines.engine import Engine
from targetcharge.engines.sql import clamped, condition, hashed, steps
from targetcharge.queries.columns import Kind
from targetcharge.queries.keys import Grain
from targetcharge.queries.measures import Count, Sketch, Total
from targetcharge.queries.predicates import decimal_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from targetcharge.queries.columns import Column, Schema, Value
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure

_WIDE: Final = 2**64
_WIDEST: Final = 2**127
_INTERRUPTED: Final = "Query interrupted"
_TOGETHER: Final = 25
"""Predicates that are counted in one pass over the rows: measured in benchmarks/tables.py."""


def open_duckdb(
    source: object,
    unit: str | None,
    *,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    memory: str | None = None,
) -> DuckDBEngine:
    """Open a table.

    Args:
        source: the path of a Parquet, CSV or DuckDB file, a folder or pattern of Parquet or CSV files; or a
            pandas, polars or Arrow table, of which a copy is made.
        unit: the column whose values tell units apart; None if every row is one.
        table: of a DuckDB file with several.
        types: what columns are declared to be: "integer", "number", "text", "date", "time" or "boolean". Columns
            of CSV files that are not declared are text.
        memory: the most that DuckDB may use, such as "4GB", before it spills to disk.
    """
    return DuckDBEngine(load(source, unit, table, types, memory))


@final
class DuckDBEngine(Engine):
    """A table in DuckDB."""

    def __init__(self, loaded: Loaded) -> None:
        """Measure a loaded table."""
        self._loaded = loaded
        self._by = loaded.expressions
        self._unit = loaded.unit
        self._cubes = Cubes(self._rows, RELATION)
        self._finalizer = weakref.finalize(self, loaded.close)

    @property
    def schema(self) -> Schema:
        """Return the columns that may be asked about."""
        return self._loaded.schema

    @property
    def other_columns(self) -> Mapping[str, str]:
        """Return the columns that may not be asked about, with their types: public."""
        return self._loaded.other

    def measure(self, measures: Sequence[Measure]) -> list[int]:
        """Return each measure: counts of rows together, the others one by one."""
        together = [index for index, each in enumerate(measures) if isinstance(each, Count) and not self._unit]
        found = dict(zip(together, self._count_rows([measures[index] for index in together]), strict=True))
        return [found[index] if index in found else self._one(each) for index, each in enumerate(measures)]

    def _count_rows(self, measures: Sequence[Measure]) -> list[int]:
        predicates = [each.where for each in measures]
        if (counted := self._cubes.count(predicates, self._by)) is not None:
            return counted
        if len(predicates) == 1:
            return [self._number(f"SELECT count(*) FROM {RELATION} WHERE {condition(predicates[0], self._by)}")]
        found: list[int] = []
        for some in chunks(predicates, _TOGETHER):
            sums = ", ".join(f"sum(CASE WHEN {condition(each, self._by)} THEN 1 ELSE 0 END)" for each in some)
            found += [int(value or 0) for value in self._rows(f"SELECT {sums} FROM {RELATION}")[0]]
        return found

    def _one(self, measure: Measure) -> int:
        where = condition(measure.where, self._by)
        match measure:
            case Count():
                return self._number(f"SELECT count(DISTINCT {self._unit}) FROM {RELATION} WHERE {where}")
            case Total():
                inside = self._contributions(measure, where, ())
                return self._number(f"SELECT coalesce(sum(contribution), 0) FROM ({inside})")
            case Sketch():
                return self._number(self._sketch(measure, where))

    def _contributions(self, total: Total, where: str, groups: Sequence[str]) -> str:
        """Return the query of what each unit contributes, in each group."""
        keys = _named(groups)
        row = f"SELECT {_listed(*keys, f'{steps(total, self._by)} AS step')}"
        names = [f"k{place}" for place, _ in enumerate(groups, 1)]
        if self._unit is None:
            rows = f"{row} FROM {RELATION} WHERE {where}"
            contribution = _listed(*names, f"{clamped('step', total)} AS contribution")
            return f"SELECT {contribution} FROM ({rows}) WHERE step IS NOT NULL"
        rows = f"{row}, {self._unit} AS u FROM {RELATION} WHERE {where}"
        contribution = _listed(*names, f"{clamped('sum(step)', total)} AS contribution")
        known = "step IS NOT NULL AND u IS NOT NULL"
        return f"SELECT {contribution} FROM ({rows}) WHERE {known} GROUP BY {_listed(*names, 'u')}"

    def _sketch(self, sketch: Sketch, where: str) -> str:
        text, number = hashed(sketch, self._by)
        known = f"{self._by[sketch.column.name]} IS NOT NULL"
        if self._unit is None:
            return f"SELECT count(DISTINCT {number} % {sketch.buckets}) FROM {RELATION} WHERE {where} AND {known}"
        rows = (
            f"SELECT DISTINCT {self._unit} AS u, {text} AS v, {number} AS h FROM {RELATION}"
            f" WHERE {where} AND {known} AND {self._unit} IS NOT NULL"
        )
        placed = f"SELECT h, row_number() OVER (PARTITION BY u ORDER BY h, v) AS place FROM ({rows})"
        return f"SELECT count(DISTINCT h % {sketch.buckets}) FROM ({placed}) WHERE place <= {sketch.per_unit}"

    def measure_by(self, measure: Count | Total, keys: Keys) -> list[int]:
        """Return the measure of each key: one GROUP BY, joined with the keys."""
        where, groups = condition(measure.where, self._by), self._groups(keys)
        names = _listed(*(f"k{place}" for place, _ in enumerate(groups, 1)))
        each = _listed(*_named(groups))
        match measure:
            case Count() if self._unit is None:
                grouped = f"SELECT {each}, count(*) AS n FROM {RELATION} WHERE {where} GROUP BY ALL"
            case Count():
                known = f"{self._unit} IS NOT NULL"
                pairs = f"SELECT DISTINCT {each}, {self._unit} AS u FROM {RELATION} WHERE {where} AND {known}"
                grouped = f"SELECT {names}, count(*) AS n FROM ({pairs}) GROUP BY {names}"
            case Total():
                inside = self._contributions(measure, where, groups)
                grouped = f"SELECT {names}, sum(contribution) AS n FROM ({inside}) GROUP BY {names}"
        declared, values = _declared(keys)
        found = [0] * len(keys.values)
        joined = f"SELECT i, n FROM ({grouped}) JOIN ({declared}) USING ({names})"
        for index, value in self._rows(joined, values):
            found[index] = int(value)
        return found

    def _groups(self, keys: Keys) -> list[str]:
        parts = [self._by[column.name] for column in keys.columns]
        if keys.grain is Grain.DAY:
            return [f"CAST({parts[0]} AS DATE)"]
        return [f"date_trunc('hour', {parts[0]})"] if keys.grain is Grain.HOUR else parts

    def _number(self, sql: str) -> int:
        return int(self._rows(sql)[0][0])

    def _rows(self, sql: str, parameters: list[object] | None = None) -> list[tuple[Any, ...]]:
        try:
            return self._loaded.connection.execute(sql, parameters).fetchall()
        except RuntimeError as error:
            if str(error) == _INTERRUPTED:
                raise KeyboardInterrupt from None  # what DuckDB makes of a Ctrl-C during a query
            raise

    def check_unchanged(self) -> None:
        """Refuse if a file was changed. A frame was copied, and cannot."""
        if self._loaded.files is not None:
            self._loaded.files.check_unchanged()

    def fingerprint(self, key: bytes) -> str:
        """Return a keyed hash of the files, or of all rows in any order."""
        if self._loaded.files is not None:
            return self._loaded.files.fingerprint(key)
        names = _listed(*(identifier(name) for name, *_ in self._rows(f"DESCRIBE {RELATION}")))
        rows = self._rows(f"SELECT count(*), bit_xor(h), sum(h) FROM (SELECT hash({names}) AS h FROM {RELATION})")
        return hmac.new(key, repr((rows, list(self.schema.values()))).encode(), hashlib.sha256).hexdigest()

    def close(self) -> None:
        """Close the table; files that were spilled are removed."""
        self._finalizer()

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<DuckDB table, {len(self.schema)} columns>"


def _listed(*parts: str) -> str:
    return ", ".join(parts)


def _named(groups: Sequence[str]) -> list[str]:
    return [f"{group} AS k{place}" for place, group in enumerate(groups, 1)]


def _declared(keys: Keys) -> tuple[str, list[object]]:
    """Return the declared keys as a relation of k1, k2 and their index i; and its parameters."""
    lists: list[object] = []
    parts: list[str] = []
    for place, column in enumerate(keys.columns):
        lists.append([_parameter(column, value[place]) for value in keys.values])
        parts.append(f"unnest(CAST(${place + 1} AS {_key_type(column, keys.grain)}[])) AS k{place + 1}")
    return f"SELECT {_listed(*parts)}, unnest(range({len(keys.values)})) AS i", lists


def _parameter(column: Column, value: Value) -> object:
    """Return a key as DuckDB takes it: exact numbers as text, if they are decimals or need not fit in 64 bits."""
    if column.exact is not None and (column.exact.scale or column.exact.high >= _WIDE) and isinstance(value, int):
        return decimal_text(value, column.exact.scale)
    return value


def _key_type(column: Column, grain: Grain | None) -> str:
    """Return the SQL type in which keys are compared with a column."""
    if grain is not None:
        return "DATE" if grain is Grain.DAY else "TIMESTAMP"
    if column.kind is not Kind.NUMBER:
        names = {Kind.TEXT: "VARCHAR", Kind.DATE: "DATE", Kind.TIME: "TIMESTAMP", Kind.BOOLEAN: "BOOLEAN"}
        return names[column.kind]
    if column.exact is None:
        return "DOUBLE"
    if column.exact.scale:
        return f"DECIMAL(38,{column.exact.scale})"
    return "HUGEINT" if column.exact.high < _WIDEST else "UHUGEINT"
