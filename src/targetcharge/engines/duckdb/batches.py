"""Many predicates at once: a cube over columns with few values answers thousands from a few rows.

A cube is some of the table's columns, grouped, with the number of rows of each group. Every predicate over those
columns has the same answer on the cube. The last few cubes are kept: memory does not grow with the number of
questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from targetcharge.engines.sql import condition
from targetcharge.queries.predicates import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from targetcharge.queries.predicates import Predicate

_WORTH: Final = 8
"""Predicates that are worth a cube: it takes about as long as three of them, asked alone."""
_MOST_COLUMNS: Final = 8
_SAMPLE: Final = 100_000
_MOST_GROUPS: Final = 10_000
"""Groups in the sample that still promise a cube much smaller than the table."""
_KEPT: Final = 4
_TOGETHER: Final = 100

Item = TypeVar("Item")


def chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in order, a few at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


@final
class Cubes:
    """The cubes of one table. As secret as the data."""

    def __init__(self, rows: Callable[[str], list[tuple[Any, ...]]], relation: str, name: str = "cube") -> None:
        """Start with none.

        Args:
            rows: runs a query.
            relation: the table.
            name: that the names of cubes begin with.
        """
        self._name = name
        self._rows = rows
        self._relation = relation
        self._made: dict[tuple[str, ...], str] = {}
        self._useless: set[tuple[str, ...]] = set()
        self._number = 0

    def count(self, predicates: Sequence[Predicate | None], by: Mapping[str, str]) -> list[int] | None:
        """Return how many rows satisfy each predicate; None if no cube would help."""
        used = tuple(sorted({column.name for predicate in predicates for column in columns(predicate)}))
        cube = self._find(used) or (self._make(used, by) if len(predicates) >= _WORTH else None)
        if cube is None:
            return None
        names, table = cube
        inside = {name: f"c{place}" for place, name in enumerate(names)}
        found: list[int] = []
        for some in chunks(predicates, _TOGETHER):
            sums = ", ".join(f"sum(CASE WHEN {condition(each, inside)} THEN n ELSE 0 END)" for each in some)
            found += [int(value or 0) for value in self._rows(f"SELECT {sums} FROM {table}")[0]]
        return found

    def forget(self) -> None:
        """Drop all cubes."""
        while self._made:
            self._rows(f"DROP TABLE IF EXISTS {self._made.popitem()[1]}")

    def _find(self, used: tuple[str, ...]) -> tuple[tuple[str, ...], str] | None:
        for names, table in self._made.items():
            if set(used) <= set(names):
                self._made[names] = self._made.pop(names)  # the last used is dropped last
                return names, table
        return None

    def _make(self, used: tuple[str, ...], by: Mapping[str, str]) -> tuple[tuple[str, ...], str] | None:
        if len(used) > _MOST_COLUMNS or used in self._useless:
            return None
        parts = ", ".join(f"{by[name]} AS c{place}" for place, name in enumerate(used)) or "1 AS c0"
        sample = f"SELECT {parts} FROM (SELECT * FROM {self._relation} LIMIT {_SAMPLE})"
        if self._rows(f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({sample}))")[0][0] > _MOST_GROUPS:
            self._useless = {used}
            return None
        while len(self._made) >= _KEPT:
            oldest = next(iter(self._made))
            self._rows(f"DROP TABLE {self._made.pop(oldest)}")
        self._number += 1
        table = f"{self._name}_{self._number}"
        grouped = f"SELECT {parts}, count(*) AS n FROM {self._relation} GROUP BY ALL"
        self._rows(f"CREATE OR REPLACE TEMP TABLE {table} AS {grouped}")
        self._made[used] = table
        return used, table
