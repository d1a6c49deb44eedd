"""Counters: what each unit was charged, and checkpoints that keep them. As secret as the data.

A checkpoint lies beside the ledger, so that only what was published since must be charged again. The ledger and
the table are the truth: one that is damaged, or not of this ledger, table and terms, is as good as none.

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

import hashlib
import hmac
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.ledger.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Allowance
    from targetcharge.engines.engine import Engine

    Units = NDArray[np.int64]
    Amounts = NDArray[np.int64] | int
    """One price for all, or one for each."""

_ENDING: Final = "-counters"
_VERSION: Final = 1


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


@final
@dataclass(frozen=True)
class SavedCounters:
    """Counters as they were saved.

    Attributes:
        number: of the last entry that they hold.
        head: its hash.
        base: what a unit that comes later has paid.
        spent: what each unit has paid.
    """

    number: int
    head: bytes
    base: int
    spent: NDArray[Any]

    def __repr__(self) -> str:
        """Return nothing about anybody."""
        return f"<counters up to entry {self.number}>"


@final
class Checkpoints:
    """A file beside a ledger: one line of JSON, then the counters."""

    def __init__(self, ledger: Path, key: bytes) -> None:
        """Save beside a ledger.

        Args:
            ledger: its path.
            key: of the hash that tells whether ids are given to the same units.
        """
        self._path = ledger.with_name(ledger.name + _ENDING)
        self._key = key

    def save(self, engine: Engine, counters: Counters, number: int, head: bytes) -> None:
        """Save counters; a disk that is full, or forbids it, only makes the next opening slower."""
        body = counters.spent.tobytes()
        facts: dict[str, object] = {
            **self._terms(counters.allowance),
            "number": number,
            "head": head.hex(),
            "base": counters.base,
            "snapshot": engine.snapshot,
            "units": engine.digest_of_units(self._key, engine.snapshot),
        }
        line = json.dumps({**facts, "seal": self._seal(facts, body)}).encode()
        with suppress(OSError):
            write_whole(self._path, line + b"\n" + body, durable=False)

    def _seal(self, facts: dict[str, object], body: bytes) -> str:
        """Return a keyed hash of everything that is saved."""
        line = json.dumps(facts, sort_keys=True).encode()
        return hmac.new(self._key, line + b"\n" + body, hashlib.sha256).hexdigest()

    def load(self, engine: Engine, allowance: Allowance) -> SavedCounters | None:
        """Return what was saved, if it is whole and of this table and these terms."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            line, _, body = self._path.read_bytes().partition(b"\n")
            facts = json.loads(line)
            fits = (
                hmac.compare_digest(facts.pop("seal"), self._seal(facts, body))
                and self._terms(allowance).items() <= facts.items()
                and facts["snapshot"] <= engine.snapshot
                and facts["units"] == engine.digest_of_units(self._key, facts["snapshot"])
            )
            if fits:
                spent = np.frombuffer(body, allowance.counter).copy()
                return SavedCounters(int(facts["number"]), bytes.fromhex(facts["head"]), int(facts["base"]), spent)
        return None

    def _terms(self, allowance: Allowance) -> dict[str, object]:
        """Return what counters depend on besides ledger and table."""
        kind = np.dtype(allowance.counter).str
        scale = {"capacity": allowance.capacity, "scale": str(allowance.scale)}
        return {"version": _VERSION, "counter": kind, **scale}
