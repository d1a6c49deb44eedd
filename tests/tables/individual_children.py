"""What the processes of the tests of individual budgets do. Each gets its end of a pipe first."""

from __future__ import annotations

import os
import signal

from tests.tables.individuals import opened

from targetcharge.tables.individual import UnitMeters


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def dies_in_a_scan(pipe, frame, path, hits, meter):
    """Ask for a number, and die when it is counted."""
    t = opened(frame, hits, meter=meter, ledger=path)
    pipe.send("opened")
    pipe.recv()
    UnitMeters.one = die
    t.count()
