"""The questions of a batch on their way out: drawn when they are due, published with a few hits at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import BudgetSpent
from targetcharge.ledger import BatchEntry, Settlement
from targetcharge.markup import counted
from targetcharge.mechanisms.batch import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.accounting.meter import Meter
    from targetcharge.ledger import Ledger, Most
    from targetcharge.mechanisms import Batch
    from targetcharge.randomness import Entropy
    from targetcharge.sessions.heart import Dataset, Heart
    from targetcharge.sessions.priced import Priced

MOST_ANSWERS: Final = 8_192
"""Answers that are drawn together, and leave together at most: a ledger needs one disk sync to number them."""

_SHARE: Final = 8
"""Hits that leave together are at most one in so many of those that are left: what a crash would cost."""


@final
class BatchCall:
    """The questions of a batch that are not published yet, and what was drawn of them. As secret as the data."""

    def __init__(
        self, batch: Batch, priced: Sequence[Priced], dataset: Dataset, start: int, received: float
    ) -> None:
        """Draw nothing yet; begin with the question `start`."""
        self._batch = batch
        self._priced = priced
        self._dataset = dataset
        self._received = received
        self._next = checks.integer(start, "start", 0, len(batch), "the number of requests")
        self._draw: Callable[[int, int], Drawn] | None = None
        self._drawn: Drawn | None = None
        self._snapshot = 0

    @property
    def left(self) -> int:
        """Return how many questions are not published."""
        return len(self._batch) - self._next

    def publish(self, heart: Heart, ledger: Ledger, entropy: Entropy) -> list[BatchEntry]:
        """Return the next answers, once they are paid for.

        Raises:
            BudgetSpent: if not even one hit is covered.
        """
        hits = self._hits_to_reserve(ledger.meters[0])
        entries: list[BatchEntry] | None = None

        def compute() -> tuple[Settlement, list[BatchEntry]]:  # no partial: its repr shows the data
            drawn = self._entries(hits, entropy, ledger)
            kept = [answer for entry in drawn for answer in entry.answers] if self._batch.named else drawn
            return Settlement(kept, durable=self._batch.durable), drawn

        name = self._priced[0].algorithm.name
        try:
            entries = heart.publish(self._most(hits), name, compute)
        except BudgetSpent:
            if hits == 1:
                raise
        if entries is None:  # other sessions hold the rest
            hits = 1
            entries = heart.publish(self._most(hits), name, compute)
        self._published(sum(map(len, entries)))
        return entries

    def _hits_to_reserve(self, meter: Meter) -> int:
        """Return how many hits to hold back for the next answers."""
        if self._batch.most_hits == 1:
            return 1
        (price,) = self._priced[0].most.prices
        room = max(0, meter.tariff.capacity - meter.totals.spent) // price.grains
        return max(1, min(self._batch.most_hits, room // _SHARE, self.left))

    def _most(self, hits: int) -> Most:
        return replace(self._priced[0].most, count=hits, answers=min(MOST_ANSWERS, self.left))

    def _entries(self, hits: int, entropy: Entropy, ledger: Ledger) -> list[BatchEntry]:
        """Return the next answers: all that is drawn, or up to the last hit that is covered."""
        if self._draw is None:
            self._draw = self._batch.drawing.start(self._dataset.data, entropy)
            self._snapshot = self._dataset.snapshot
        if self._drawn is None:
            self._drawn = self._draw(self._next, min(self._next + MOST_ANSWERS, len(self._batch)))
        drawn = self._drawn
        places = np.flatnonzero(drawn.hits)[:hits]
        count = int(places[-1]) + 1 if len(places) == hits else len(drawn.indices)
        seq = ledger.next_seq(count)
        if not self._batch.named:
            return [self._entry(self._priced[0], drawn, 0, count, seq)]
        return [self._entry(self._priced[self._next + at], drawn, at, at + 1, seq + at) for at in range(count)]

    def _entry(self, priced: Priced, drawn: Drawn, first: int, last: int, seq: int) -> BatchEntry:
        """Return drawn outcomes from one place up to another, all priced alike."""
        keys, accuracy = self._batch.keys[self._next + first : self._next + last], priced.algorithm.accuracy
        common = priced.answer(None, (True,), seq, self._received, self._snapshot, key=keys[0])
        return BatchEntry.of(
            replace(common, interval=None),
            drawn.outcomes,
            drawn.indices[first:last],
            np.flatnonzero(drawn.hits[first:last]).tolist(),
            None if isinstance(keys, range) else tuple(keys),
            () if accuracy is None else tuple(map(accuracy.interval, drawn.outcomes)),
        )

    def _published(self, count: int) -> None:
        self._next += count
        if self._drawn is not None:
            outcomes, indices, hits = self._drawn
            self._drawn = Drawn(outcomes, indices[count:], hits[count:]) if count < len(indices) else None
        if not self.left:
            self._draw = None

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<{counted(self.left, 'question')} to publish>"
