"""Cubes: some of a table's columns, grouped, with the number of rows of each group. As secret as the data.

Every predicate over those columns has the same answer on the cube. The last few cubes are kept: memory does not
grow with the number of questions.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar, final

from targetcharge.engines import sql
from targetcharge.queries.tree import columns as columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.sql import Relation
    from targetcharge.queries.tree import Predicate

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
