"""The DuckDB engine: exact integers by as few scans as can be."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

import duckdb

from targetcharge.engines.duckdb import contributing
from targetcharge.engines.duckdb.appending import appended, tidy
from targetcharge.engines.duckdb.batches import Cubes, chunks
from targetcharge.engines.duckdb.describing import declared_types
from targetcharge.engines.duckdb.filling import Options
from targetcharge.engines.duckdb.fingerprinting import fingerprint_of
from targetcharge.engines.duckdb.loading import Loaded, load
from targetcharge.engines.duckdb.measuring import by_key, one
from targetcharge.engines.duckdb.numbering import Numbers, numbers_of
from targetcharge.engines.engine import Engine
from targetcharge.engines.sql import condition
from targetcharge.errors import NotAllowed
from targetcharge.queries.families import families
from targetcharge.queries.measures import Count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from targetcharge.engines.contributions import Contributions
    from targetcharge.queries.columns import Schema
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure, Total
    from targetcharge.queries.predicates import Predicate

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
    return DuckDBEngine(load(source, Options(unit, table, declared_types(types), memory), snapshots))


@final
class DuckDBEngine(Engine):
    """A table in DuckDB."""

    def __init__(self, loaded: Loaded) -> None:
        """Measure a loaded table."""
        self._take(loaded)

    def _take(self, loaded: Loaded) -> None:
        """Be another table from here on: a single assignment, so that nothing is in between."""
        self._now = _Now(loaded)

    @property
    def _loaded(self) -> Loaded:
        return self._now.loaded

    @property
    def _cubes(self) -> Cubes:
        return self._now.cubes

    @property
    def schema(self) -> Schema:
        """Return the columns that may be asked about."""
        return self._loaded.shape.schema

    @property
    def other_columns(self) -> Mapping[str, str]:
        """Return the columns that may not be asked about, with their types: public."""
        return self._loaded.shape.other

    def measure(self, measures: Sequence[Measure]) -> list[int]:
        """Return each measure: families in a scan each, counts of rows together, the others one by one."""
        relation = self._now.relation
        found: dict[int, int] = {}
        rows = [index for index, each in enumerate(measures) if isinstance(each, Count) and not relation.unit]
        if rows and (counted := self._cubes.count([measures[each].where for each in rows], relation.by)):
            found |= zip(rows, counted, strict=True)
        for family in families({index: each for index, each in enumerate(measures) if index not in found}):
            numbers = self._by_key(family.measure, family.keys, sifted=True)
            found |= {index: numbers[key] for index, key in family.members.items()}
        for some in chunks([index for index in rows if index not in found], _TOGETHER):
            found |= zip(some, self._count_rows([measures[index].where for index in some]), strict=True)
        return [found[index] if index in found else self._one(each) for index, each in enumerate(measures)]

    def _count_rows(self, predicates: Sequence[Predicate | None]) -> list[int]:
        """Return how many rows satisfy each of a few predicates: in one scan."""
        relation = self._now.relation
        if len(predicates) == 1:
            return [self._one(Count(predicates[0]))]
        sums = ", ".join(f"sum(CASE WHEN {condition(each, relation.by)} THEN 1 ELSE 0 END)" for each in predicates)
        return [int(value or 0) for value in self._loaded.link.rows(f"SELECT {sums} FROM {relation.rows}")[0]]

    def _one(self, measure: Measure) -> int:
        return self._loaded.link.number(one(measure, self._now.relation))

    def measure_by(self, measure: Count | Total, keys: Keys) -> list[int]:
        """Return the measure of each key: one GROUP BY of all rows, joined with the keys."""
        return self._by_key(measure, keys, sifted=False)

    def _by_key(self, measure: Count | Total, keys: Keys, *, sifted: bool) -> list[int]:
        found = [0] * len(keys.values)
        for index, value in self._loaded.link.rows(*by_key(measure, keys, self._now.relation, sifted=sifted)):
            found[index] = int(value)
        return found

    def units(self) -> int:
        """Return how many units there are; the first time they are numbered, in one scan."""
        return self._now.numbers.count(self.snapshot)

    def digest_of_units(self, key: bytes, snapshot: int | None = None) -> str:
        """Return a keyed hash of who has which id among the units of the first snapshots; None for all."""
        return self._now.numbers.digest(key, self._loaded.number(snapshot))

    def contributions(self, measures: Sequence[Count | Total], snapshot: int | None = None) -> Contributions:
        """Return who contributes to each measure and how much, on the first snapshots: up to 62 in one scan."""
        return contributing.contributions(self._loaded.link, self._now.numbers, measures, snapshot)

    def contributions_by(self, measure: Count | Total, keys: Keys, snapshot: int | None = None) -> Contributions:
        """Return who contributes to a measure on the rows of each key, on the first snapshots; in one scan."""
        return contributing.contributions_by(self._loaded.link, self._now.numbers, measure, keys, snapshot)

    @property
    def identity(self) -> str:
        """Return how units are told apart, in words; empty if equal values are one unit."""
        unit = self._loaded.shape.unit
        return "" if unit is None else unit.rule

    @property
    def snapshot(self) -> int:
        """Return how many snapshots there are."""
        return len(self._loaded.parts.snapshots)

    @property
    def files(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of each snapshot's files in the folder that was opened; none if it was no folder."""
        root = self._loaded.root
        if root is None or not root.is_dir():
            return ((),) * self.snapshot
        kept = [snapshot.files for snapshot in self._loaded.parts.snapshots]
        return tuple(() if files is None else files.names_from(root) for files in kept)

    def in_files(self, snapshot: int) -> bool:
        """Return whether the rows of a snapshot are those of files."""
        return self._loaded.parts.snapshots[snapshot - 1].files is not None

    def append(self, source: object) -> None:
        """Add the rows of another source, of any form that can be opened, as the next snapshot.

        CSV files and frames are read with the types that were declared at opening. Interrupted, it has happened as
        a whole or not at all: `snapshot` tells.

        Raises:
            InvalidParameter: if it does not have the same columns; it names one that differs.
            EngineError: if it cannot be read.
            NotAllowed: if a file of the table was changed.
        """
        before = self._now
        before.loaded.check_unchanged()
        self._take(appended(before.loaded, source))
        before.leave(self._loaded)

    def retract(self) -> None:
        """Take back the last append.

        Raises:
            NotAllowed: if there is none.
        """
        before = self._now
        if self.snapshot == before.loaded.opened:
            msg = "nothing was appended since the table was opened"
            raise NotAllowed(msg)
        self._take(replace(before.loaded, parts=before.loaded.parts.until(self.snapshot - 1)))
        before.leave(self._loaded)

    def check_unchanged(self) -> None:
        """Refuse if a file of any snapshot was changed. A frame was copied, and cannot."""
        self._loaded.check_unchanged()

    def fingerprint(self, key: bytes, snapshot: int | None = None) -> str:
        """Return a keyed hash of one snapshot's files, or of its rows in any order; None for all snapshots."""
        return fingerprint_of(self._loaded, key, None if snapshot is None else self._loaded.number(snapshot))

    def close(self) -> None:
        """Close the table; files that were spilled are removed."""
        self._loaded.link.close()

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<DuckDB table, {len(self.schema)} columns>"


@final
class _Now:
    """A table as it is, with what was made to ask it: nothing of that outlives an append."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.relation = loaded.relation()
        self.cubes = Cubes(loaded.link.rows, self.relation.rows, f"cube_{len(loaded.parts.snapshots)}")
        self._numbers: Numbers | None = None

    @property
    def numbers(self) -> Numbers:
        """Return the ids of units, given when they are first needed."""
        if self._numbers is None:
            self._numbers = numbers_of(self.loaded)
        return self._numbers

    def leave(self, after: Loaded) -> None:
        """Let go of all that is not used any more."""
        if self.loaded.link is after.link:
            with suppress(duckdb.Error):  # it is done by now: what is left over is read by nobody
                self.cubes.forget()
                if self._numbers is not None:
                    self._numbers.forget()
        tidy(self.loaded, after)
