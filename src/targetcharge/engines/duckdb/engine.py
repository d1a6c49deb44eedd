"""The DuckDB engine: exact integers by as few scans as can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

from targetcharge.engines import sql
from targetcharge.engines.duckdb.coded import count_coded, fewest
from targetcharge.engines.duckdb.contributions import contributions, contributions_by
from targetcharge.engines.duckdb.cubes import chunks, sums
from targetcharge.engines.duckdb.loading import appended, load
from targetcharge.engines.duckdb.measuring import query_by_key, query_of
from targetcharge.engines.duckdb.table import LoadedTable, Options
from targetcharge.engines.duckdb.types import DECLARED
from targetcharge.engines.engine import Distribution, Engine
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.identity import EQUAL
from targetcharge.markup import counted
from targetcharge.queries.measures import Count, families

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.engines.engine import Contributions
    from targetcharge.identity import Identity
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Additive, Measure, UnitValue
    from targetcharge.queries.tree import Predicate, Schema

_TOGETHER: Final = 25
"""Predicates that are counted in one pass over the rows: measured in benchmarks/tables.py."""


def open_duckdb(
    source: object,
    unit: str | None,
    *,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    memory: str | None = None,
    snapshots: Sequence[Sequence[str]] | None = None,
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
        snapshots: which files of a folder belong to which snapshot, by their names in it; those that are not named
            are one more, the last. Left out, all files are one snapshot.

    Raises:
        InvalidParameter: if the source is none, or an option does not fit it.
        NotAllowed: if a file of a snapshot is gone.
        EngineError: if the source cannot be read.
    """
    return DuckDBEngine(load(source, Options(unit, table, _declared(types), memory), snapshots))


def _declared(types: object) -> dict[str, str]:
    """Return what columns are declared to be."""
    if types is not None and not isinstance(types, Mapping):
        raise InvalidParameter("types", types, "a dictionary from columns to what they are")
    declared = dict(types or {})
    for name, kind in declared.items():
        if not isinstance(kind, str) or kind not in DECLARED:
            raise InvalidParameter("types", kind, f"one of {', '.join(DECLARED)}, for column {name!r}")
    return declared


def _wheres(measures: Mapping[int, Measure]) -> dict[int, Predicate | None]:
    """Return the predicates of counts."""
    return {index: measure.where for index, measure in measures.items() if isinstance(measure, Count)}


@final
class DuckDBEngine(Engine):
    """A table in DuckDB."""

    def __init__(self, table: LoadedTable) -> None:
        """Measure a loaded table."""
        # To become another table is a single assignment, so that nothing is in between.
        self._table = table

    @property
    def schema(self) -> Schema:
        """Return the columns that may be asked about."""
        return self._table.shape.schema

    def measure(self, measures: Sequence[Measure]) -> list[int]:
        """Return each measure: by cubes, codes or families as many at once as can be, the others one by one."""
        values: dict[int, int] = {}
        for some in (self._from_cubes, self._by_codes, self._of_families, self._in_passes):
            values |= some({index: measure for index, measure in enumerate(measures) if index not in values})
        relation, link = self._table.all_rows, self._table.link
        for index, measure in enumerate(measures):
            if index not in values:
                values[index] = link.integer(query_of(measure, relation))
        return [values[index] for index in range(len(measures))]

    def _from_cubes(self, measures: Mapping[int, Measure]) -> dict[int, int]:
        """Return all counts of rows, if a cube helps."""
        wheres = _wheres(measures)
        if not wheres or self._table.shape.unit is not None:
            return {}
        counted = self._table.cubes.count(list(wheres.values()))
        return {} if counted is None else dict(zip(wheres, counted, strict=True))

    def _by_codes(self, measures: Mapping[int, Measure]) -> dict[int, int]:
        """Return counts by scans of codes, if they would take many others."""
        wheres, relation = _wheres(measures), self._table.all_rows
        members = [family.members for family in families({index: measures[index] for index in wheres})]
        scans = len(wheres) - sum(len(family) - 1 for family in members)
        return count_coded(self._table.link, relation, wheres) if scans >= fewest(relation) else {}

    def _of_families(self, measures: Mapping[int, Measure]) -> dict[int, int]:
        """Return the members of families, a scan for each family."""
        values: dict[int, int] = {}
        for family in families(measures):
            of_keys = self._by_key(family.measure, family.keys, sifted=True)
            values |= {index: of_keys[key] for index, key in family.members.items()}
        return values

    def _in_passes(self, measures: Mapping[int, Measure]) -> dict[int, int]:
        """Return counts of rows, several in a pass over them."""
        wheres, relation = _wheres(measures), self._table.all_rows
        values: dict[int, int] = {}
        for chunk in chunks(list(wheres), _TOGETHER) if relation.unit is None else []:
            if len(chunk) > 1:
                counted = sums(self._table.link, [wheres[index] for index in chunk], relation.rows, relation.by)
                values |= zip(chunk, counted, strict=True)
        return values

    def measure_by(self, measure: Additive, keys: Keys) -> list[int]:
        """Return the measure of each key: one GROUP BY of all rows, joined with the keys."""
        return self._by_key(measure, keys, sifted=False)

    def _by_key(self, measure: Additive, keys: Keys, *, sifted: bool) -> list[int]:
        values = [0] * len(keys.values)
        table = self._table
        query, parameters = query_by_key(measure, keys, table.all_rows, table.shape.unit, sifted=sifted)
        for index, value in table.link.rows(query, parameters):
            values[index] = int(value)
        return values

    def distribution(self, measure: UnitValue) -> Distribution:
        """Return which contributions occur and how many units contribute each: one GROUP BY."""
        columns = self._table.link.arrays(sql.distribution(measure, self._table.all_rows))
        return Distribution(columns["steps"], columns["units"])

    def units(self) -> int:
        """Return how many units there are; the first time they are numbered, in one scan."""
        return self._table.unit_ids.count(self.snapshot)

    def digest_of_units(self, key: bytes, snapshot: int | None = None) -> str:
        """Return a keyed hash of who has which id among the units of the first snapshots; None for all."""
        return self._table.unit_ids.digest(key, self._table.checked_snapshot(snapshot))

    def contributions(self, measures: Sequence[Additive], snapshot: int | None = None) -> Contributions:
        """Return who contributes to each measure and how much, on the first snapshots: up to 62 in one scan."""
        return contributions(self._table.unit_ids, measures, snapshot)

    def contributions_by(self, measure: Additive, keys: Keys, snapshot: int | None = None) -> Contributions:
        """Return who contributes to a measure on the rows of each key, on the first snapshots; in one scan."""
        return contributions_by(self._table.unit_ids, measure, keys, self._table.shape.unit, snapshot)

    @property
    def identity(self) -> Identity:
        """Return how units are told apart."""
        unit = self._table.shape.unit
        return EQUAL if unit is None else unit.identity

    @property
    def snapshot(self) -> int:
        """Return how many snapshots there are."""
        return len(self._table.snapshots)

    @property
    def files(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of each snapshot's files in the folder that was opened; none if it was no folder."""
        root = self._table.root
        if root is None or not root.is_dir():
            return ((),) * self.snapshot
        kept = [snapshot.files for snapshot in self._table.snapshots]
        return tuple(() if files is None else files.names_from(root) for files in kept)

    def in_files(self, snapshot: int) -> bool:
        """Return whether the rows of a snapshot are those of files."""
        return self._table.snapshots[snapshot - 1].files is not None

    def append(self, source: object) -> None:
        """Add the rows of another source, of any form that can be opened, as the next snapshot.

        CSV files and frames are read with the types that were declared at opening. Interrupted, it has happened as
        a whole or not at all: `snapshot` tells.

        Raises:
            InvalidParameter: if it does not have the same columns; it names one that differs.
            EngineError: if it cannot be read.
            NotAllowed: if a file of the table was changed.
        """
        before = self._table
        before.check_unchanged()
        self._table = appended(before, source)
        before.leave(self._table)

    def retract(self) -> None:
        """Take back the last append.

        Raises:
            NotAllowed: if there is none.
        """
        before = self._table
        if self.snapshot == before.opened:
            msg = "nothing was appended since the table was opened"
            raise NotAllowed(msg)
        self._table = before.until(self.snapshot - 1)
        before.leave(self._table)

    def check_unchanged(self) -> None:
        """Refuse if a file of any snapshot was changed. A frame was copied, and cannot."""
        self._table.check_unchanged()

    def fingerprint(self, key: bytes, snapshot: int, rows: int | None = None) -> str:
        """Return a keyed hash of one snapshot's files, or of its rows in any order: all, or the first few."""
        return self._table.fingerprint(key, self._table.checked_snapshot(snapshot), rows)

    def close(self) -> None:
        """Close the table; files that were spilled are removed."""
        self._table.link.close()

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<DuckDB table, {counted(len(self.schema), 'column')}>"
