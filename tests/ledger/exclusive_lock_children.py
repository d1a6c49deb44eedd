"""What the processes of the tests of the exclusive lock do. Each gets its end of a pipe first."""

from __future__ import annotations

import os
from contextlib import nullcontext

from targetcharge.ledger.sqlite.locks import exclusive_lock


def counts_up(pipe, path, counter, rounds):
    """Add one to a number in a file, again and again; with the lock of a ledger, if there is one."""
    pipe.recv()
    for _ in range(rounds):
        with nullcontext() if path is None else exclusive_lock(path):
            number = int(counter.read_text() or 0)
            counter.write_text(str(number + 1))
    pipe.send("done")


def stays_in_it(pipe, path):
    with exclusive_lock(path):
        pipe.send("in it")
        pipe.recv()


def exits_in_it(pipe, path):
    with exclusive_lock(path):
        pipe.send("in it")
        pipe.recv()
        os._exit(3)
