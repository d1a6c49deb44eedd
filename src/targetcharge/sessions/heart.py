"""The heart: reserve, touch the data, settle, publish. Everything that a session publishes goes through here.

Calls of a session take turns. An exception's text, cause, context and traceback may hold data, so whatever a
computation raises is dropped inside `attempt`, and a fresh error is raised that says the same for every failure.

>>> attempt(lambda: 1 / 0)
Failure(error=<class 'targetcharge.errors.ComputationFailed'>)
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from os import getpid
from threading import RLock
from typing import TYPE_CHECKING, Protocol, TypeVar, final

from targetcharge.errors import ComputationFailed, LedgerError, NotAllowed, TargetChargeError
from targetcharge.mechanisms.noise import Carried

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from targetcharge.ledger import Ledger, Most, Settlement

Result = TypeVar("Result")


class Dataset(Protocol):
    """What a session asks. As secret as the data, but for what it refuses."""

    @property
    def data(self) -> object:
        """Return what algorithms get."""
        ...

    @property
    def snapshot(self) -> int:
        """Return which snapshot of the data that is; 0 where there are none."""
        ...

    @property
    def individual(self) -> bool:
        """Return whether every unit has a meter of its own."""
        ...

    def read_ledger(self) -> None:
        """Where every unit has a meter: take note of what its ledger holds, before a call draws.

        Alone with the ledger, and telling nothing.

        Raises:
            NotAllowed: if that is about data that is not here.
        """
        ...


@final
@dataclass(frozen=True, repr=False, eq=False)
class PlainData:
    """Any Python object: it has no snapshots, and all units share a meter."""

    data: object
    snapshot: int = 0
    individual: bool = False

    def read_ledger(self) -> None:
        """Do nothing: what was published changes nothing."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class OffsetDataset:
    """A dataset whose numbers carry the offset that a ledger keeps. As secret as the data."""

    dataset: Dataset
    ledger: Ledger

    @property
    def data(self) -> Carried:
        """Return what algorithms get, with the offset."""
        offset = self.ledger.offset
        assert offset is not None  # noqa: S101 - a ledger whose offset is gone opens as spent
        return Carried(self.dataset.data, offset)

    @property
    def snapshot(self) -> int:
        """Return which snapshot of the data that is."""
        return self.dataset.snapshot

    @property
    def individual(self) -> bool:
        """Return False: where every unit has a meter of its own there is no offset."""
        return False

    def read_ledger(self) -> None:
        """Do nothing: all units share a meter."""


@final
class Heart:
    """Publishes what is computed of a dataset through a ledger. One call at a time: a session takes turns."""

    def __init__(self, ledger: Ledger, dataset: Dataset) -> None:
        """Publish what is computed of a dataset through a ledger."""
        self._ledger = ledger
        self._dataset = dataset

    def publish(self, most: Most, name: str, compute: Callable[[], tuple[Settlement, Result]]) -> Result:
        """Publish what a call computes; with the exclusive lock if every unit has a meter of its own.

        Args:
            most: the most it could charge.
            name: what the ledger calls it, should it break.
            compute: touches the data; returns what to settle, and what to publish then.
        """
        if not self._dataset.individual:
            return self._published(most, name, compute)
        with self._ledger.exclusive():
            self._dataset.read_ledger()
            return self._published(most, name, compute)

    def _published(self, most: Most, name: str, compute: Callable[[], tuple[Settlement, Result]]) -> Result:
        """Reserve, touch the data, settle. What is reserved stays spent unless it settles."""
        try:
            self._ledger.reserve(most)
            published = attempt(partial(self._settled, compute))
            if isinstance(published, Failure):
                self._ledger.forfeit(name)
                raise published.error()
            return published
        finally:
            self._ledger.end_call()

    def _settled(self, compute: Callable[[], tuple[Settlement, Result]]) -> Result | Failure:
        """Compute and settle: inside `attempt`, so that no traceback of an interrupt holds these variables."""
        computed = attempt(compute)
        if isinstance(computed, Failure):
            return computed
        settlement, published = computed
        problem = attempt(partial(self._ledger.settle, settlement), public=(LedgerError, NotAllowed))
        return published if problem is None else problem


@final
@dataclass(frozen=True)
class Failure:
    """What to raise once nothing of the failed computation is on the stack."""

    error: Callable[[], BaseException]


def attempt(call: Callable[[], Result], public: tuple[type[TargetChargeError], ...] = ()) -> Result | Failure:
    """Return what a call returns, or what to raise instead of what it raised.

    Args:
        call: runs with the data.
        public: errors whose text the call's own code makes from public facts; they keep it.
    """
    try:
        return call()
    except public as error:
        fresh = _fresh(error)
    except KeyboardInterrupt:
        return Failure(KeyboardInterrupt)
    except SystemExit:
        return Failure(partial(SystemExit, 1))
    except asyncio.CancelledError:
        return Failure(asyncio.CancelledError)
    except BaseException:  # noqa: BLE001 - whatever it is, it may carry data
        return Failure(ComputationFailed)
    return Failure(lambda: fresh)


def _fresh(error: TargetChargeError) -> TargetChargeError:
    """Return an error of the same class with its sentence and values; without traceback, cause, context, notes."""
    fresh = type(error).__new__(type(error), *error.args)
    fresh.__dict__.update((name, value) for name, value in vars(error).items() if name != "__notes__")
    return fresh


@final
class Turn:
    """A lock by which calls take turns, in the process that opened it; it says what is wrong instead of hanging.

    A call runs as `with turn.wait(): turn.begin(); …`. The context is the bare lock, which no interrupt can leave
    locked.
    """

    def __init__(self) -> None:
        """Belong to this process."""
        self._lock = RLock()  # for what it knows of its owner: nobody takes it twice
        self._process = getpid()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Return whether no more calls get a turn."""
        return self._closed

    def close(self) -> None:
        """Give no more turns, holding the lock."""
        self._closed = True

    def wait(self) -> AbstractContextManager[bool]:
        """Return the lock to wait for; refuse who would wait for ever."""
        if getpid() != self._process:
            self.check()
        if self._lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - as threading.Condition asks it
            msg = "a session cannot be used from inside one of its own computations, conditions or rules"
            raise NotAllowed(msg)
        return self._lock

    def begin(self) -> None:
        """Take the turn, holding the lock."""
        if self._closed:
            msg = "this session is closed: open another one on the same ledger"
            raise NotAllowed(msg)

    def check(self) -> None:
        """Refuse a process that only inherited the session."""
        if self.foreign:
            msg = "this session was opened before a fork: it can be used only in the process that opened it"
            raise NotAllowed(msg)

    @property
    def foreign(self) -> bool:
        """Return whether this is another process than the one that opened the session."""
        return getpid() != self._process
