"""Piles: the published things of many runs on one input, counted.

>>> pile = Pile.of(["yes", "no", "yes"])
>>> pile.runs, len(pile.counts)
(3, 2)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from targetcharge.audit.sampling.published import Published, published_of

if TYPE_CHECKING:
    from collections.abc import Iterable


@final
@dataclass
class Pile:
    """What was published on one input, and how often."""

    counts: Counter[Published] = field(default_factory=Counter)

    @classmethod
    def of(cls, things: Iterable[object]) -> Pile:
        """Return the pile of some things."""
        return cls(Counter(map(published_of, things)))

    @property
    def runs(self) -> int:
        """Return how many runs there were."""
        return self.counts.total()


@final
@dataclass
class Pair:
    """Piles of the runs on the first and on the second input."""

    first: Pile = field(default_factory=Pile)
    second: Pile = field(default_factory=Pile)

    def __getitem__(self, index: int) -> Pile:
        """Return the first or the second pile."""
        return (self.first, self.second)[index]


@final
@dataclass
class Samples:
    """All runs, in three parts that share none: an event is learnt, then chosen, then counted.

    What is counted was not seen before, so that the intervals around its counts are true.

    Attributes:
        learn: where likelihood ratios are learnt.
        choose: where events are cut out and the best are chosen.
        count: where these are counted.
    """

    learn: Pair = field(default_factory=Pair)
    choose: Pair = field(default_factory=Pair)
    count: Pair = field(default_factory=Pair)

    def __getitem__(self, part: int) -> Pair:
        """Return a part by its number, 0 to 2."""
        return (self.learn, self.choose, self.count)[part]
