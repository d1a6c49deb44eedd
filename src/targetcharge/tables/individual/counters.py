"""Counters: what each unit was charged. As secret as the data.

>>> from targetcharge.accounting.meter import Meter, Allowance
>>> from targetcharge.accounting.budget import Budget
>>> counters = Counters(Allowance.of(Meter.exact(Budget(2.2, 1e-6), 0.1).tariff))
>>> counters.grow(3)
>>> counters.allowance.capacity
2
>>> for units in ([0, 1], [0, 2], [0, 1]):
...     payers = np.array(units)
...     payers = payers[counters.able(payers, 1)]
...     counters.charge(payers, 1)
>>> counters.spent.tolist()
[2, 2, 1]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Allowance

    Units = NDArray[np.int64]
    Amounts = NDArray[np.int64] | int
    """One price for all, or one for each."""


@final
class Counters:
    """One integer for each unit, by its id; none ever exceeds the capacity."""

    def __init__(self, allowance: Allowance) -> None:
        """Count for no units yet."""
        self.allowance = allowance
        self.spent: NDArray[Any] = np.zeros(0, allowance.counter)
        self.base = 0

    def grow(self, units: int) -> None:
        """Count for so many units; new ones have paid what everybody has."""
        more = units - len(self.spent)
        if more > 0:
            self.spent = np.concatenate([self.spent, np.full(more, self.base, self.allowance.counter)])

    def able(self, units: Units, prices: Amounts) -> NDArray[np.bool_]:
        """Return which units can pay these prices."""
        able: NDArray[np.bool_] = self.spent[units] <= self.allowance.capacity - prices
        return able

    def charge(self, units: Units, prices: Amounts) -> None:
        """Charge units that can pay, each once."""
        paid = self.spent[units].astype(np.int64) + prices
        if len(paid) and not 0 <= paid.min() <= paid.max() <= self.allowance.capacity:
            msg = "a unit was charged more than it has"
            raise AssertionError(msg)
        self.spent[units] = paid.astype(self.allowance.counter)

    def charge_all(self, price: int) -> None:
        """Charge everybody, also who comes later, as far as it goes."""
        room = self.allowance.capacity - price
        np.minimum(self.spent, room, out=self.spent)
        self.spent += np.array(price, self.allowance.counter)
        self.base = min(self.base, room) + price

    def __repr__(self) -> str:
        """Return nothing about anybody."""
        return "<counters>"
