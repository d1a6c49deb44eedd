"""Checkpoints: counters saved beside the ledger, so that only what was published since must be charged again.

The ledger and the table are the truth: a checkpoint that is damaged, or not of this ledger, this table and these
terms, is as good as none. It is as secret as the data, and readable by its owner only.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.tables.private_files import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Allowance
    from targetcharge.engines.engine import Engine
    from targetcharge.tables.individual.counters import Counters

_ENDING: Final = "-counters"
_VERSION: Final = 1


@final
@dataclass(frozen=True)
class Saved:
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
        told: dict[str, object] = {
            **self._terms(counters.allowance),
            "number": number,
            "head": head.hex(),
            "base": counters.base,
            "snapshot": engine.snapshot,
            "units": engine.digest_of_units(self._key, engine.snapshot),
        }
        line = json.dumps({**told, "seal": self._seal(told, body)}).encode()
        with suppress(OSError):
            write_private(self._path, line + b"\n" + body, durable=False)

    def _seal(self, told: dict[str, object], body: bytes) -> str:
        """Return a keyed hash of everything that is saved."""
        line = json.dumps(told, sort_keys=True).encode()
        return hmac.new(self._key, line + b"\n" + body, hashlib.sha256).hexdigest()

    def load(self, engine: Engine, allowance: Allowance) -> Saved | None:
        """Return what was saved, if it is whole and of this table and these terms."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            line, _, body = self._path.read_bytes().partition(b"\n")
            told = json.loads(line)
            fits = (
                hmac.compare_digest(told.pop("seal"), self._seal(told, body))
                and self._terms(allowance).items() <= told.items()
                and told["snapshot"] <= engine.snapshot
                and told["units"] == engine.digest_of_units(self._key, told["snapshot"])
            )
            if fits:
                spent = np.frombuffer(body, allowance.counter).copy()
                return Saved(int(told["number"]), bytes.fromhex(told["head"]), int(told["base"]), spent)
        return None

    def _terms(self, allowance: Allowance) -> dict[str, object]:
        """Return what counters depend on besides ledger and table."""
        kind = np.dtype(allowance.counter).str
        scale = {"capacity": allowance.capacity, "scale": str(allowance.scale)}
        return {"version": _VERSION, "counter": kind, **scale}
