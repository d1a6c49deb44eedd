"""Numbers: what a table's algorithms get in place of its rows. As secret as the data."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from targetcharge.queries.measures import Sketch, families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from targetcharge.engines.engine import Engine
    from targetcharge.ledger import Ledger
    from targetcharge.tables.prepared import Prepared
    from targetcharge.tables.snapshots import Snapshots


@final
@dataclass(frozen=True, repr=False, eq=False)
class SharedNumbers:
    """The numbers of all units of a table, who share a budget: what its session asks."""

    engine: Engine
    snapshots: Snapshots
    individual: bool = False

    @property
    def data(self) -> SharedNumbers:
        """Return what algorithms get."""
        return self

    @property
    def snapshot(self) -> int:
        """Return the number of the snapshot that is asked."""
        return self.snapshots.number(self.engine)

    def read_ledger(self, ledger: Ledger) -> None:
        """Do nothing: what was published does not change who takes part."""

    def one(self, prepared: Prepared) -> int:
        """Return one number; a sketch gets a fresh key each time."""
        measure = prepared.measure
        if isinstance(measure, Sketch):
            measure = replace(measure, key=secrets.token_hex(8))
        return self.engine.measure([measure])[0]

    def of_keys(self, prepared: Prepared) -> Iterable[int]:
        """Return the numbers of all keys, in one scan."""
        assert prepared.keys is not None  # noqa: S101 - a watch or a selection
        return self.engine.measure_by(prepared.additive, prepared.keys)

    def several(self, prepared: Sequence[Prepared]) -> Iterable[int]:
        """Return several numbers, in as few scans as can be."""
        return self.engine.measure([question.measure for question in prepared])


@final
@dataclass(repr=False, eq=False)
class SharedScans:
    """The single numbers of one `ask_many`: those that differ in a column's value only are read in one scan.

    They are read when the first of them is due, and forgotten with the call.
    """

    numbers: SharedNumbers
    prepared: list[Prepared] = field(default_factory=list)
    _known: dict[int, int] = field(default_factory=dict)
    _relatives: dict[int, Sequence[int]] | None = None
    _snapshot: int = 0

    def reader_of(self, prepared: Prepared) -> Callable[[SharedNumbers], int]:
        """Return how a number is read: with its relatives, when the first of them is due."""
        if isinstance(prepared.measure, Sketch):
            return prepared.read
        self.prepared.append(prepared)
        return _SharedRead(self, len(self.prepared) - 1)

    def read(self, place: int) -> int:
        """Return the number of the question at a place."""
        snapshot = self.numbers.engine.snapshot
        if self._snapshot != snapshot:  # rows were appended since
            self._snapshot, self._known = snapshot, {}
        if place not in self._known:
            family = self._family(place)
            numbers = self.numbers.several([self.prepared[member] for member in family])
            self._known |= zip(family, numbers, strict=True)
        return self._known.pop(place)

    def _family(self, place: int) -> Sequence[int]:
        if self._relatives is None:
            measures = {index: prepared.measure for index, prepared in enumerate(self.prepared)}
            members = [tuple(family.members) for family in families(measures)]
            self._relatives = {member: family for family in members for member in family}
        return self._relatives.get(place, (place,))

    def forget(self) -> None:
        """Forget all numbers; who reads one after that reads it alone."""
        self._known, self._relatives = {}, {}


@final
@dataclass(frozen=True, repr=False, eq=False)
class _SharedRead:
    scans: SharedScans
    place: int

    def __call__(self, _numbers: SharedNumbers) -> int:
        return self.scans.read(self.place)
