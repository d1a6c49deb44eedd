"""Sessions: the one place where data, price, ledger and randomness meet."""

from targetcharge.sessions.reading import Transcript
from targetcharge.sessions.release import Release
from targetcharge.sessions.select import gap
from targetcharge.sessions.session import Session

__all__ = ["Release", "Session", "Transcript", "gap"]
