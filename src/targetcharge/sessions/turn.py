"""Turns: calls of a session come one after another, in the process that opened it."""

from __future__ import annotations

from os import getpid
from threading import RLock
from typing import TYPE_CHECKING, final

from targetcharge.errors import NotAllowed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


@final
class Turn:
    """A lock that says what went wrong instead of hanging.

    A call runs as `with turn.wait(): turn.begin(); …`. The context is the bare lock, which no interrupt can leave
    locked.
    """

    def __init__(self) -> None:
        """Belong to this process."""
        self._lock = RLock()  # for what it knows of its owner: nobody takes it twice
        self._process = getpid()
        self.closed = False

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
        if self.closed:
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
