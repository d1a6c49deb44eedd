"""Chronology: what happened when, as positions from 0 to 1 on a line.

The line is time; or the numbers of the answers, where all were asked more or less at once.

>>> from targetcharge.ledger import Answer
>>> found = Chronology()
>>> found.add((Answer(None, False, 0.0, 1, received=0.0),))
>>> found.add((Answer(7, True, 1.0, 2, received=600.0, units=(1,)),))
>>> found.timed, found.positions().tolist(), found.charges[0].units
(True, [0.0, 1.0], (1,))
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.ledger import Answer
    from targetcharge.ledger.entries import Spent

_AT_ONCE: Final = 60.0
"""Seconds within which everything happened at once."""


@final
@dataclass(frozen=True, slots=True)
class Charge:
    """The hits of an entry, or a reservation that was lost.

    Attributes:
        index: of the entry that it came with, among those with answers.
        units: charged on each meter.
        answered: whether there is an answer to it.
        hits: how many it is for.
    """

    index: int
    units: tuple[int, ...]
    answered: bool = True
    hits: int = 1


@final
@dataclass
class Chronology:
    """What happened when.

    Attributes:
        times: when each entry with answers was asked for, in seconds since 1970.
        seqs: of the last answer of each.
        counts: how many answers each has.
        charges: in the order of the ledger.
        snapshots: the index of the first entry about each snapshot of the data, and the snapshot.
    """

    times: array[float] = field(default_factory=lambda: array("d"))
    seqs: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))
    charges: list[Charge] = field(default_factory=list)
    snapshots: dict[int, int] = field(default_factory=dict)

    def add(self, answers: tuple[Answer, ...]) -> None:
        """Add answers that left together, in one entry."""
        last = answers[-1]
        if last.snapshot and last.snapshot not in self.snapshots:
            self.snapshots[last.snapshot] = len(self.times)
        charged = [answer.grains for answer in answers if answer.hit]
        if charged:
            units = tuple(map(sum, zip(*charged, strict=True)))
            self.charges.append(Charge(len(self.times), units, hits=len(charged)))
        self.times.append(last.received)
        self.seqs.append(last.seq)
        self.counts.append(len(answers))

    def lose(self, spent: Spent) -> None:
        """Add a reservation that was spent without an answer: it is as old as what was answered before it."""
        self.charges.append(Charge(max(0, len(self.times) - 1), spent.grains, answered=False))

    @property
    def timed(self) -> bool:
        """Return whether the line is time."""
        return bool(self.times) and max(self.times) - min(self.times) >= _AT_ONCE

    @property
    def ends(self) -> tuple[float, float]:
        """Return where the line begins and ends: moments, or numbers of answers."""
        if not self.times:
            return 0.0, 0.0
        if self.timed:
            return min(self.times), max(self.times)
        first = min(seq - count + 1 for seq, count in zip(self.seqs, self.counts, strict=True))
        return float(first), float(max(self.seqs))

    def positions(self) -> NDArray[np.float64]:
        """Return where each entry is on the line."""
        start, end = self.ends
        values = np.array(self.times if self.timed else self.seqs, dtype=np.float64)
        return (values - start) / (end - start) if end > start else np.full(len(values), 0.5)
