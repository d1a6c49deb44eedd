"""What the processes of the tests of crashes and of many askers do. Each gets its end of a pipe first."""

from __future__ import annotations

import os
import random
import signal

from tests.tables.individuals import opened
from tests.tables.naive_units import table_of

import targetcharge as tc
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.ledger import files
from targetcharge.ledger.sqlite.ledger import SqliteLedger
from targetcharge.tables.individual import UnitMeters, counters, unit_meters
from targetcharge.tables.snapshots import Snapshots


def _pending(t):
    t.release("week >= 1", lambda _: False)
    return []


QUESTIONS = [
    lambda t: [t.count("week = 0")],
    lambda t: list(t.watch(None, "week", [0, 1, 2], 3)),
    lambda t: [t.above(None, 2)],
    lambda t: t.top(None, "place", ["a", "b", "c"], 2),
    _pending,
    lambda t: [t.count(tc.questions.sum("fee", -2, 5, grid="0.25"))],
    lambda t: list(t.ask_many([tc.questions.above("week = 0", 0), tc.questions.above("place = 'a'", 0)])),
]


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


class Fuse:
    """Kills the process when it is lit for the nth time."""

    def __init__(self, nth):
        self._left = nth

    def light(self):
        self._left -= 1
        if not self._left:
            die()


def _around(kind, name, fuse, *, after=False):
    original = getattr(kind, name)

    def replaced(*asked, **options):
        if not after:
            fuse.light()
        found = original(*asked, **options)
        if after:
            fuse.light()
        return found

    setattr(kind, name, replaced)


class _HalfWritten:
    """A file that is half written when the process dies."""

    def __init__(self, file, fuse):
        self._file, self._fuse = file, fuse

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, body):
        self._file.write(body[: len(body) // 2])
        self._file.flush()
        self._fuse.light()
        self._file.write(body[len(body) // 2 :])


def _half(fuse):
    """Die when a checkpoint is half written; notes are written by the same function, and are left alone."""
    original = counters.write_whole

    class Os:
        def __getattr__(self, name):
            return getattr(os, name)

        def fdopen(self, *asked):
            return _HalfWritten(os.fdopen(*asked), fuse)

    def halfway(*asked, **options):
        files.os = Os()
        original(*asked, **options)
        files.os = os

    counters.write_whole = halfway


POINTS = {
    "before reserve": lambda fuse: _around(SqliteLedger, "reserve", fuse),
    "after reserve": lambda fuse: _around(SqliteLedger, "reserve", fuse, after=True),
    "before the scan": lambda fuse: _around(DuckDBEngine, "contributions", fuse),
    "after the scan": lambda fuse: _around(DuckDBEngine, "contributions", fuse, after=True),
    "before settle": lambda fuse: _around(SqliteLedger, "settle", fuse),
    "after settle": lambda fuse: _around(SqliteLedger, "settle", fuse, after=True),
    "in the counters": lambda fuse: _around(unit_meters, "_pay", fuse),
    "after the counters": lambda fuse: _around(UnitMeters, "settle", fuse, after=True),
    "in a checkpoint": _half,
    "after a checkpoint": lambda fuse: _around(counters.Checkpoints, "save", fuse, after=True),
    "before an append is noted": lambda fuse: _around(Snapshots, "grow", fuse),
    "after an append is noted": lambda fuse: _around(Snapshots, "grow", fuse, after=True),
    "at the end": lambda fuse: _around(SqliteLedger, "close", fuse),
}


def dies(pipe, path, snapshots, options, point, nth):
    """Ask all questions, growing on the way, and say what was answered; die on the way."""
    unit_meters._CHARGES_A_SCAN = 3
    POINTS[point](Fuse(nth))
    t = opened(table_of(snapshots[0]), ledger=path, **options)
    for number, ask in enumerate(QUESTIONS * 2):
        if number == 4:
            t.append(table_of(snapshots[1]))
        pipe.send([answer.seq for answer in ask(t) if answer.hit])
    t.close()
    pipe.send("closed")


# Many askers.


def asks(pipe, path, snapshots, options, seed, rounds):
    """Ask at random, several watches at a time; tell every number that was drawn, and the ledger's head then."""
    rng = random.Random(seed)
    t = opened(table_of(snapshots[0]), ledger=path, **options)
    told = []
    _tell(told, lambda: t._session._ledger._database.state().last_entry)
    pipe.send("ready")
    pipe.recv()
    watches = [
        t.iter_watch(rng.choice([None, "place = 'a'"]), "week", rng.sample(range(4), 4), rng.randint(-3, 9))
        for _ in range(rounds)
    ]
    for _ in range(rounds):
        kind = rng.randrange(5)
        if kind < 2:
            next(rng.choice(watches), None)
        elif kind == 2:
            t.above(rng.choice(["week = 0", None, "place = 'a'"]), rng.randint(-5, 20))
        elif kind == 3:
            t.top(None, "place", ["a", "b", "c"], rng.randint(1, 3), threshold=rng.choice([None, 5]))
        else:
            t.release("week >= 1", lambda number: number > 10)
    pipe.send(told)
    if seed % 2:
        die()
    t.close()
    pipe.send("closed")


def _tell(told, head):
    one, best = UnitMeters.one, UnitMeters.of_keys
    due_keys, due_several = UnitMeters.of_keys_when_due, UnitMeters.several_when_due

    def number(self, prepared):
        found = one(self, prepared)
        told.append((head(), *prepared.identity, None, found))
        return found

    def selection(self, prepared):
        found = best(self, prepared)
        told.append((head(), *prepared.identity, prepared.keys.published(), tuple(found)))
        return found

    def _later(numbers, named):
        def due(first, last):
            for place, found in enumerate(numbers(first, last), first):
                prepared, key = named(place)
                told.append((head(), *prepared.identity, key, found))
                yield found

        return due

    UnitMeters.one, UnitMeters.of_keys = number, selection
    UnitMeters.of_keys_when_due = lambda self, prepared: _later(
        due_keys(self, prepared), lambda place: (prepared, prepared.keys.published()[place])
    )
    UnitMeters.several_when_due = lambda self, several: _later(
        due_several(self, several), lambda place: (several[place], None)
    )
