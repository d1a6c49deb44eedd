"""Contributors: who contributes to the numbers of a question, and what those who can pay add up to.

As secret as the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Prices
    from targetcharge.engines.engine import Contributions
    from targetcharge.tables.individual.counters import Counters
    from targetcharge.tables.prepared import Prepared

_HALF: Final = 32
"""Bits: sums that may not fit into 64 are added up in two halves."""


@final
@dataclass(frozen=True, eq=False)
class Drawn:
    """The contributions to all numbers of a question or a batch, priced.

    Attributes:
        contributions: of every number.
        prices: of every contribution; one for all if they are equal.
        named: which number an answer is about, by what was asked, as it is charged, and its key.
        snapshot: that they are from.
    """

    contributions: Contributions
    prices: NDArray[np.int64] | int
    named: dict[tuple[tuple[tuple[str, float], bool], object], int]
    snapshot: int
    _wide: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Find out whether sums fit into 64 bits."""
        steps = self.contributions.steps
        most = 0 if steps is None or not len(steps) else max(abs(int(steps.min())), abs(int(steps.max())))
        object.__setattr__(self, "_wide", most * len(self.contributions.units) >= 1 << 62)

    @classmethod
    def of(
        cls,
        contributions: Contributions,
        prices: Prices,
        prepared: Sequence[Prepared],
        keys: Sequence[object],
        at: int,
    ) -> Drawn:
        """Return the numbers of these questions (one for all, if there is one) and keys, at one list of prices."""
        names = [question.charged_as for question in prepared] * (len(keys) if len(prepared) == 1 else 1)
        named = {pair: index for index, pair in enumerate(zip(names, keys, strict=True))}
        steps = contributions.steps if prepared[0].paid_by_share else None
        return cls(contributions, prices.full if steps is None else prices.of(steps), named, at)

    def sums(self, first: int, last: int, counters: Counters) -> list[int]:
        """Return the numbers from one index up to another, of those who can pay for a hit of each."""
        part = self._part(first, last)
        able = counters.able(self.contributions.units[part], self._prices(part))
        return self._added(first, last, able)

    def best(self, k: int, counters: Counters) -> tuple[list[int], NDArray[np.bool_]]:
        """Return all numbers of those who can pay for k hits of theirs, and which contributions are in them."""
        units = self.contributions.units
        able = counters.able(units, self._most(k)) if len(units) else np.zeros(0, np.bool_)
        return self._added(0, len(self.contributions), able), able

    def _most(self, k: int) -> NDArray[np.int64]:
        """Return, for every contribution, what k hits could cost its unit at most: its k highest prices."""
        units = self.contributions.units
        prices = np.broadcast_to(np.asarray(self.prices, np.int64), units.shape)
        order = np.lexsort((-prices, units))
        sorted_units = units[order]
        begins = np.flatnonzero(np.concatenate(([True], sorted_units[1:] != sorted_units[:-1])))
        lengths = np.diff(np.concatenate((begins, [len(units)])))
        rank = np.arange(len(units)) - np.repeat(begins, lengths)
        counted = np.where(rank < k, prices[order], 0)
        totals = np.add.reduceat(counted, begins)
        most = np.empty_like(prices)
        most[order] = np.repeat(totals, lengths)
        return most

    def charge(self, index: int, counters: Counters, able: NDArray[np.bool_] | None = None) -> None:
        """Charge those who took part in a number: who can pay for a hit, or who was found to take part before."""
        part = self._part(index, index + 1)
        units, prices = self.contributions.units[part], self._prices(part)
        paying = counters.able(units, prices) if able is None else able[part]
        counters.charge(units[paying], prices if isinstance(prices, int) else prices[paying])

    def charge_once(self, counters: Counters) -> None:
        """Charge those who took part in any of the numbers, once."""
        units = np.unique(self.contributions.units)
        price = cast("int", self.prices)  # a histogram's contributions are alike
        counters.charge(units[counters.able(units, price)], price)

    def able_steps(self, counters: Counters) -> NDArray[np.int64]:
        """Return what those contribute to a single number who can pay for a hit."""
        units, steps = self.contributions.of(0)
        able = counters.able(units, self._prices(slice(None)))
        return np.ones(int(able.sum()), np.int64) if steps is None else steps[able]

    def _part(self, first: int, last: int) -> slice:
        starts = self.contributions.starts
        return slice(int(starts[first]), int(starts[last]))

    def _prices(self, part: slice) -> NDArray[np.int64] | int:
        return self.prices if isinstance(self.prices, int) else self.prices[part]

    def _added(self, first: int, last: int, able: NDArray[np.bool_]) -> list[int]:
        """Return what the contributions of some numbers add up to, of those that are in."""
        part, starts = self._part(first, last), self.contributions.starts[first : last + 1]
        steps = self.contributions.steps
        if steps is None:
            return _by_number(able.astype(np.int64), starts)
        counted = np.where(able, steps[part], 0)
        if not self._wide:
            return _by_number(counted, starts)
        high, low = _by_number(counted >> _HALF, starts), _by_number(counted & ((1 << _HALF) - 1), starts)
        return [(upper << _HALF) + lower for upper, lower in zip(high, low, strict=True)]

    def __repr__(self) -> str:
        """Return nothing about anybody."""
        return f"<drawn: {len(self.contributions)} numbers>"


def _by_number(values: NDArray[np.int64], starts: NDArray[np.int64]) -> list[int]:
    """Return the sum of the values between each start and the next."""
    totals = np.concatenate((np.zeros(1, np.int64), np.cumsum(values)))
    sums: list[int] = np.diff(totals[starts - starts[0]]).tolist()
    return sums
