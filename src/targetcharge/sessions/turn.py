"""Turns: calls of a session come one after another, in the process that opened it."""

from __future__ import annotations

from os import getpid
from threading import Lock, get_ident
from typing import final

from targetcharge.errors import NotAllowed


@final
class Turn:
    """A lock that says what went wrong instead of hanging: use it as a context."""

    def __init__(self) -> None:
        """Belong to this process."""
        self._lock = Lock()
        self._holder: int | None = None
        self._process = getpid()
        self.closed = False

    def __enter__(self) -> None:
        """Wait for the calls before this one."""
        if getpid() != self._process:
            self.check()
        if self._holder == get_ident():
            msg = "a session cannot be used from inside one of its own computations, conditions or rules"
            raise NotAllowed(msg)
        self._lock.acquire()
        if self.closed:
            self._lock.release()
            msg = "this session is closed: open another one on the same ledger"
            raise NotAllowed(msg)
        self._holder = get_ident()

    def __exit__(self, *_: object) -> None:
        """Let the next call go ahead."""
        self._holder = None
        self._lock.release()

    def check(self) -> None:
        """Refuse a process that only inherited the session."""
        if self.foreign:
            msg = "this session was opened in another process: open one here, on the same ledger"
            raise NotAllowed(msg)

    @property
    def foreign(self) -> bool:
        """Return whether this is another process than the one that opened the session."""
        return getpid() != self._process
