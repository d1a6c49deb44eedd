"""Sessions: the one place where data, price, ledger and randomness meet."""

from targetcharge.sessions.release import Release
from targetcharge.sessions.select import gap
from targetcharge.sessions.session import Session
from targetcharge.sessions.transcript import Transcript

__all__ = ["Release", "Session", "Transcript", "gap"]
