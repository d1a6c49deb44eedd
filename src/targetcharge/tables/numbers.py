"""Numbers: what a table's algorithms get in place of its rows, one by one or many in one call.

As secret as the data.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, cast, final

from targetcharge.mechanisms import batch_by_name
from targetcharge.queries.measures import Count, Histogram, Sketch, families
from targetcharge.queries.tree import Missing, Not, all_of, parts_of
from targetcharge.tables.questions import Above
from targetcharge.tables.questions import Count as CountOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from targetcharge.engines.engine import Engine
    from targetcharge.mechanisms import Algorithm, Batch
    from targetcharge.mechanisms.picks import Distribution
    from targetcharge.tables.individual import UnitMeters
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

    def read_ledger(self) -> None:
        """Do nothing: what was published does not change who takes part."""

    def one(self, prepared: Prepared) -> int:
        """Return one number; a sketch gets a fresh key each time."""
        measure = prepared.measure
        if isinstance(measure, Sketch):
            measure = replace(measure, key=secrets.token_hex(8))
        return self.engine.measure([measure])[0]

    def of_keys(self, prepared: Prepared) -> Iterable[int]:
        """Return the numbers of all keys, in one scan; a histogram gets a fresh key each time."""
        assert prepared.keys is not None  # noqa: S101 - a watch, a selection or a histogram
        measure = prepared.additive
        if isinstance(measure, Histogram):
            measure = replace(measure, key=secrets.token_hex(8))
        return self.engine.measure_by(measure, prepared.keys)

    def totals(self, prepared: Prepared) -> tuple[int, int]:
        """Return what values are above the least, added up, and how many units have one."""
        measure = prepared.value
        known = all_of([*parts_of(measure.where), Not(Missing(measure.column))])
        total, units = self.engine.measure([measure, Count(known)])
        return total - units, units

    def distribution(self, prepared: Prepared) -> Distribution:
        """Return how far values are above the least, and how many units have each."""
        values = self.engine.distribution(prepared.value)
        return values.steps - 1, values.units

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


@final
@dataclass(frozen=True)
class Counts:
    """Several counts, each with a threshold of its own, that are computed together."""

    prepared: tuple[Prepared, ...]

    def read(self, numbers: SharedNumbers) -> Iterable[int]:
        """Return all counts."""
        return numbers.several(self.prepared)

    def read_when_due(self, numbers: UnitMeters) -> Callable[[int, int], Iterable[int]]:
        """Return what gives the counts from one place up to another, each when it is due."""
        return numbers.several_when_due(self.prepared)

    def batch(self) -> Batch:
        """Return the tests of the counts."""
        thresholds = [cast("Above", question.question).threshold for question in self.prepared]
        names = [question.name for question in self.prepared]
        return batch_by_name(
            self.read,
            names,
            thresholds,
            self.prepared[0].epsilon,
            monotone=True,
            questions=[question.record for question in self.prepared],
            counts_when_due=self.read_when_due if self.prepared[0].individual else None,
        )


def grouped(asked: Iterable[Prepared]) -> Iterator[list[Prepared]]:
    """Yield questions by themselves, but neighbours that ask whether a count is above a threshold together."""
    for (above_count, _), neighbours in groupby(asked, lambda one: (_is_above_count(one), one.epsilon)):
        group = list(neighbours)
        yield from [group] if above_count else [[prepared] for prepared in group]


def calls_of(asked: Sequence[Prepared], scans: SharedScans | None, *, batches: bool) -> list[Batch | Algorithm]:
    """Return what answers questions with one answer each, in their order, in as few calls as can be.

    Args:
        asked: the questions.
        scans: what reads their numbers together; None where every unit has a meter of its own.
        batches: whether counts above thresholds may become batches: not in a session with alternatives.
    """
    return [
        Counts(tuple(group)).batch()
        if batches and _is_above_count(group[0])
        else group[0].algorithm(None if scans is None else scans.reader_of(group[0]))
        for group in (grouped(asked) if batches else ([prepared] for prepared in asked))
    ]


def _is_above_count(prepared: Prepared) -> bool:
    question = prepared.question
    return isinstance(question, Above) and isinstance(question.what, CountOf) and question.prior is None
