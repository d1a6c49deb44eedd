"""What processes do that are killed while they make, open or close a ledger. Each gets its end of a pipe first."""

import fcntl
import os
import resource
import sqlite3

from tests.ledger.asking import no, opened, yes
from tests.ledger.children import die
from tests.ledger.offsets import ledger_at, offset_at

import targetcharge as tc

CALLS = [
    *((os, name) for name in ("open", "rename", "replace", "link", "unlink", "mkdir", "rmdir", "fsync", "close")),
    *((os, name) for name in ("write", "pwrite", "stat")),
    (fcntl, "flock"),
]


class Fuse:
    """Kills this process at the n-th call of anything that makes, changes, syncs or removes a file."""

    def __init__(self, number):
        self.left = number

    def burn(self):
        self.left -= 1
        if self.left < 0:
            die()

    def before(self, function):
        def last(*arguments, **more):
            self.burn()
            return function(*arguments, **more)

        return last

    def light(self):
        for module, name in CALLS:
            setattr(module, name, self.before(getattr(module, name)))
        fuse = self

        class Connection(sqlite3.Connection):
            def execute(self, *arguments):
                fuse.burn()
                return super().execute(*arguments)

            def executemany(self, *arguments):
                fuse.burn()
                return super().executemany(*arguments)

            def close(self):
                fuse.burn()
                super().close()

        connect = self.before(sqlite3.connect)
        sqlite3.connect = lambda *arguments, **more: connect(*arguments, factory=Connection, **more)

    def put_out(self):
        self.left = 10**9


def is_killed_opening(pipe, path, number):
    """Open a new ledger, and be killed on the way."""
    fuse = Fuse(number)
    fuse.light()
    session = opened(path)
    fuse.put_out()
    session.close()
    pipe.send("survived")


def is_killed_closing(pipe, path, number):
    """Hold a hit back, close, and be killed on the way."""
    fuse = Fuse(10**9)
    fuse.light()
    session = opened(path)
    session.test(yes)
    session.test(no)
    fuse.left = number
    session.close()
    fuse.put_out()
    pipe.send("survived")


def is_killed_making_an_offset(pipe, path, number):
    """Open a new ledger with the offset 7, and be killed on the way."""
    fuse = Fuse(number)
    fuse.light()
    ledger = ledger_at(path, 7)
    fuse.put_out()
    ledger.close()
    pipe.send("survived")


def makes_an_offset_on_a_full_disk(pipe, path, most):
    """Open a new ledger with the offset 7 while no file may grow beyond so many bytes; tell the offset."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        pipe.send(ledger_at(path, 7).offset)
    except tc.LedgerError:
        pipe.send(None)


def races_to_make_an_offset(pipe, fresh):
    """Open the ledgers that the pipe names, with an offset of this process, and send theirs."""
    while True:
        try:
            path = pipe.recv()
        except EOFError:
            return
        pipe.send(offset_at(path, fresh))
