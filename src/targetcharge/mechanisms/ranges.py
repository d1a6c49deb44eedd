"""Ranges: what is published of a noisy count, by the range of integers that it is in; and how likely that is.

>>> ranges = Ranges((100,), (None, ITSELF))
>>> ranges.publish(99), ranges.publish(120), ranges.span(None)
(None, 120, (None, 99))
>>> oracle = NoisyOracle(len, NoiseLaw(0.5), ranges)
>>> round(oracle.probability(range(100), None), 3), round(oracle.rest(range(90)), 4)
(0.378, 0.0042)
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.mechanisms.accuracy import exactly
from targetcharge.mechanisms.noise import Carried, CountNoise, NoiseLaw
from targetcharge.outcomes import UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.mechanisms.accuracy import Range
    from targetcharge.mechanisms.noise import TotalLaw

    Count = Callable[[Any], int]
    """A function of the data whose value is an integer."""

ITSELF: Final = object()
"""Stands for a noisy count that is published as it is."""


@final
@dataclass(frozen=True)
class Ranges:
    """What is published of a noisy count, by the range of integers that it is in.

    Attributes:
        starts: the first integer of each range but the lowest, which has none.
        labels: what is published in each range; ITSELF where that is the noisy count.
    """

    starts: tuple[int, ...]
    labels: tuple[object, ...]

    def label(self, value: int) -> object:
        """Return the label of the range that a noisy count is in."""
        return self.labels[bisect_right(self.starts, value)]

    def publish(self, value: int) -> object:
        """Return what is published of a noisy count: its label, or itself."""
        label = self.label(value)
        return value if label is ITSELF else label

    @cached_property
    def ends(self) -> dict[object, list[tuple[int | None, int | None]]]:
        """Return the first and the last integer of each range, by its label; None where it has no end."""
        ends: dict[object, list[tuple[int | None, int | None]]] = {label: [] for label in self.labels}
        lasts = [*(start - 1 for start in self.starts), None]
        for label, first, last in zip(self.labels, (None, *self.starts), lasts, strict=True):
            ends[label].append((first, last))
        return ends

    def examples(self) -> tuple[object, ...]:
        """Return what is published of a few noisy counts: one below 0, as noise may be, and some at the ends."""
        ends = (start + step for start in self.starts for step in (-1, 0))
        return tuple(dict.fromkeys(map(self.publish, (-2, 0, 1_000, *ends))))

    def span(self, outcome: object) -> Range | None:
        """Return the noisy counts that an outcome stands for, from the lowest to the highest."""
        for label, ends in self.ends.items():
            if label is outcome:
                return ends[0][0], ends[-1][1]
        return exactly(outcome)


def changed_ranges(unchanged: range, least: int | None) -> Ranges:
    """Return the ranges of integers that are UNCHANGED, else None below `least`, else published."""

    def label(value: int) -> object:
        if value in unchanged:
            return UNCHANGED
        return ITSELF if least is None or value >= least else None

    starts = sorted({unchanged.start, unchanged.stop, unchanged.start if least is None else least})
    return Ranges(tuple(starts), (label(starts[0] - 1), *map(label, starts)))


def on_lattice(count: Count, noise: CountNoise, data: object) -> int:
    """Return the true count less its share of the offset, if the data carries one, in steps of the lattice."""
    if type(data) is Carried:
        return noise.lattice * operator.index(count(data.data)) - noise.weight * data.offset
    return noise.lattice * operator.index(count(data))


@final
@dataclass(frozen=True)
class NoisyOracle:
    """The law of what is published of a noisy count."""

    count: Count
    noise: NoiseLaw | TotalLaw
    ranges: Ranges

    def probability(self, data: object, outcome: object) -> float:
        """Return the mass of the ranges with that label, or of one count that is published."""
        count = operator.index(self.count(data))
        if type(outcome) is int:
            return self.noise.mass(outcome - count) if self.ranges.label(outcome) is ITSELF else 0.0
        return sum(mass for label, mass in self._masses(count).items() if label is outcome)

    def peak(self, data: object) -> float:
        """Return the largest mass of a label, or that of the true count, if it is published.

        No other count is the peak: what stands for the true count has at least the noise's largest mass.
        """
        count = operator.index(self.count(data))
        masses = self._masses(count) | {ITSELF: self._itself(count)}
        return max(masses.values())

    def rest(self, data: object) -> float:
        """Return the mass of everything else."""
        count = operator.index(self.count(data))
        if len(self.ranges.labels) == 2 and ITSELF not in self.ranges.labels:
            start = self.ranges.starts[0]  # of two sides the smaller one: at every question of a boundary
            return self.noise.at_least(max(start - count, count - start + 1))
        masses = self._masses(count)
        published = masses.pop(ITSELF, 0.0)
        *others, largest = sorted(masses.values()) or [0.0]
        if published and self._itself(count) > largest:
            return 2 * self.noise.at_least(1)
        return sum(others) + published

    def _itself(self, count: int) -> float:
        """Return the mass of the true count; 0 if it is not published."""
        return self.noise.mass(0) if self.ranges.label(count) is ITSELF else 0.0

    def _masses(self, count: int) -> dict[object, float]:
        """Return the mass of each label, and of all counts that are published."""
        within = self.noise.within
        return {label: sum([within(count, *pair) for pair in ends]) for label, ends in self.ranges.ends.items()}


@final
@dataclass(frozen=True)
class RedrawnOracle:
    """The law of what is published of a count with a session's noise.

    Given data that carries the offset it is the law of the fresh noise: what a wrapper sees when it runs. Given
    the bare count, as previews do, the offset is a part of the noise.
    """

    with_offset: NoisyOracle
    without: NoisyOracle

    @classmethod
    def of(cls, count: Count, noise: CountNoise, ranges: Ranges) -> RedrawnOracle:
        """Return the oracle of a count with this noise; the ranges are in steps of its lattice."""
        moved = partial(on_lattice, count, noise)
        fresh = NoisyOracle(moved, noise.fresh_law, ranges)
        return cls(fresh, NoisyOracle(moved, noise.law, ranges))

    def probability(self, data: object, outcome: object) -> float:
        """Return the mass of what is published; of a count that is published, that of one step of the lattice."""
        return self._for(data).probability(data, outcome)

    def peak(self, data: object) -> float:
        """Return the largest mass."""
        return self._for(data).peak(data)

    def rest(self, data: object) -> float:
        """Return the mass of everything else."""
        return self._for(data).rest(data)

    def _for(self, data: object) -> NoisyOracle:
        return self.with_offset if type(data) is Carried else self.without
