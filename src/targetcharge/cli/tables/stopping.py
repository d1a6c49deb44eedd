"""Ctrl-C: the first ends the asking after what is under way, which wastes nothing; the second ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterator

_STDERR: Final = 2
_TOLD: Final = (
    b"\nStopping after what is under way. Ctrl-C again stops at once, and spends what that holds back.\n"
)


@final
class Stop:
    """Whether the user wants to stop.

    Attributes:
        wanted: after what is under way.
        hurried: at once.
    """

    def __init__(self) -> None:
        """Go on."""
        self.wanted = False
        self.hurried = False

    def signalled(self, *_: object) -> None:
        """Remember it, and the second time stop at once. A third must not keep answers from being printed."""
        if self.wanted and not self.hurried:
            self.hurried = True
            raise KeyboardInterrupt
        if not self.wanted:
            self.wanted = True
            os.write(_STDERR, _TOLD)  # unbuffered: a signal may come while the error stream is being written to


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Take Ctrl-C for a wish, while questions are asked. A process that ignores it goes on ignoring it."""
    stop = Stop()
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, stop.signalled)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
