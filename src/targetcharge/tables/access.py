"""Access: everything a table is made of, opened and closed together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from targetcharge.errors import ComputationFailed, EngineError, TargetChargeError
from targetcharge.sessions.attempt import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.engines.engine import Engine
    from targetcharge.ledger import Ledger
    from targetcharge.sessions import Session
    from targetcharge.tables.individual import UnitRoll
    from targetcharge.tables.readers import Reader
    from targetcharge.tables.snapshots import Snapshots


def curated(call: Callable[[], object]) -> None:
    """Do something with the data for its owner; what an engine says when it fails may quote it, and is dropped.

    Raises:
        EngineError: if the engine fails; errors of our own are raised as they are.
    """
    done = attempt(call, public=(TargetChargeError,))
    if isinstance(done, Failure):
        error = done.error()
        if isinstance(error, ComputationFailed):
            msg = "the table cannot be read: the engine failed"
            raise EngineError(msg)
        raise error


@final
@dataclass(frozen=True, repr=False, eq=False)
class TableData:
    """What a table's session asks: rows that may grow, and perhaps a meter for every unit."""

    engine: Engine
    snapshots: Snapshots
    roll: UnitRoll | None

    @property
    def data(self) -> Engine:
        """Return the engine, which algorithms ask."""
        return self.engine

    @property
    def snapshot(self) -> int:
        """Return the number of the snapshot that is asked."""
        return self.snapshots.number(self.engine)

    @property
    def individual(self) -> bool:
        """Return whether every unit has a meter of its own."""
        return self.roll is not None

    def read(self, ledger: Ledger) -> None:
        """Take note of what the ledger holds."""
        if self.roll is not None:
            self.roll.read(ledger)


@final
@dataclass(frozen=True)
class Access:
    """What a table asks with.

    Attributes:
        engine: where the rows are.
        session: that prices, charges and publishes.
        reader: how numbers are read.
        snapshots: of the data.
        unit: whose privacy is protected, in words.
        epsilon: of one computation.
        roll: a meter for every unit, if each has its own.
    """

    engine: Engine
    session: Session
    reader: Reader
    snapshots: Snapshots
    unit: str
    epsilon: float
    roll: UnitRoll | None = None

    def append(self, source: object) -> int:
        """Add rows as the next snapshot; return its number.

        Raises:
            InvalidParameter: if they do not have the columns of the table.
            EngineError: if they cannot be read.
            NotAllowed: if the ledger knows other rows as the next snapshot.
        """
        with self.session.exclusive():
            self.engine.check_unchanged()
            self.engine.append(source)
            try:
                curated(partial(self.snapshots.grow, self.engine))
            except BaseException:
                self.engine.retract()
                raise
            self.snapshots.warn()
            return self.snapshots.number(self.engine)

    def close(self) -> None:
        """Save counters; let go of what is reserved and not used; close the ledger and the table."""
        saved: Failure | None = None
        if self.roll is not None:
            saved = attempt(partial(self.session.up_to_date, self.roll.leave))  # what is not saved is made again
        self.session.close()
        self.engine.close()
        if isinstance(saved, Failure) and not isinstance(error := saved.error(), Exception):
            raise error  # somebody pressed Ctrl-C
