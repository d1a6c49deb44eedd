"""The requests of a series on their way out: drawn in blocks, published in sheets with a few hits each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import BudgetSpent
from targetcharge.ledger import Most, Settlement, Sheet

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Meter
    from targetcharge.ledger import Ledger
    from targetcharge.mechanisms import Series
    from targetcharge.mechanisms.series import Drawn
    from targetcharge.randomness import Entropy
    from targetcharge.sessions.heart import Heart
    from targetcharge.sessions.questions import Question

MOST_TOGETHER: Final = 8_192
"""Requests that are drawn together, and leave together at most."""

MOST_HITS: Final = 32
"""Hits that leave together at most."""

_SHARE: Final = 8
"""A sheet holds back at most one in so many of the hits that are left: what a crash in it would cost."""


@final
class Requests:
    """What was drawn and not published yet. As secret as the data."""

    def __init__(self, series: Series, asked: Question, start: int, received: float) -> None:
        """Draw nothing yet; begin with the request `start`."""
        self._series = series
        self._asked = asked
        self._received = received
        self._next = checks.place("start", start, len(series), "the number of requests")
        self._drawn: Drawn | None = None

    @property
    def left(self) -> int:
        """Return how many requests are not published."""
        return len(self._series) - self._next

    def publish(self, heart: Heart, ledger: Ledger, data: object, entropy: Entropy) -> Sheet:
        """Return the next sheet, once it is paid for.

        Raises:
            BudgetSpent: if not even one hit is covered.
        """
        hits, name = self._several(ledger.meters[0]), self._asked.algorithm.name
        sheet: Sheet | None = None

        def compute() -> tuple[Settlement, Sheet]:  # a partial would show the data to who prints it
            return self._sheet(hits, data, entropy, ledger.number)

        try:
            sheet = heart.publish(self._most(hits), name, compute)
        except BudgetSpent:
            if hits == 1:
                raise
        if sheet is None:  # other sessions hold the rest
            hits = 1
            sheet = heart.publish(self._most(hits), name, compute)
        self._published(len(sheet))
        return sheet

    def _several(self, meter: Meter) -> int:
        """Return how many hits to hold back for the next sheet."""
        (price,) = self._asked.most.prices
        room = max(0, meter.tariff.capacity - meter.totals.spent) // price.units
        return max(1, min(MOST_HITS, room // _SHARE, self.left))

    def _most(self, hits: int) -> Most:
        return replace(self._asked.most, count=hits, answers=min(MOST_TOGETHER, self.left))

    def _sheet(
        self, hits: int, data: object, entropy: Entropy, number: Callable[[int], int]
    ) -> tuple[Settlement, Sheet]:
        """Return the next answers: all that is drawn, or up to the last hit that is covered."""
        if self._drawn is None:
            end = min(self._next + MOST_TOGETHER, len(self._series))
            self._drawn = self._checked(self._series.draw(data, entropy, self._next, end), end - self._next)
        codes, hit = self._drawn
        places = np.flatnonzero(hit)[:hits]
        count = int(places[-1]) + 1 if len(places) == hits else len(codes)
        first = self._asked.answer(None, (True,), number(count), self._received)
        sheet = Sheet.of(replace(first, key=self._next), self._series.outcomes, codes[:count], places)
        return Settlement((), sheet=sheet), sheet

    def _checked(self, drawn: Drawn, count: int) -> Drawn:
        codes, hit = drawn
        if codes.shape != (count,) or hit.shape != (count,) or not _within(codes, len(self._series.outcomes)):
            msg = "a series draws one outcome for each request"
            raise ValueError(msg)
        return codes, hit

    def _published(self, count: int) -> None:
        self._next += count
        if self._drawn is not None:
            codes, hit = self._drawn
            self._drawn = (codes[count:], hit[count:]) if count < len(codes) else None

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<{self.left} requests to publish>"


def _within(codes: NDArray[np.intp], count: int) -> bool:
    return bool(((codes >= 0) & (codes < count)).all())
