"""Two real tables, with one unit and without it, asked the same questions step by step together.

Nothing here knows who takes part or who is charged: that is the real code's affair, on two tables that know
nothing of each other. Each table has a thread. Where both have found their number and want noise, what comes out
is chosen for both (`tables.chosen_noise`), so that both publish the same.
"""

from __future__ import annotations

import dataclasses
import math
import queue
import threading
import traceback
from contextlib import contextmanager

from tests.tables.chosen_noise import ALL, HERE, NONE, pair_of

import targetcharge as tc
from targetcharge.errors import TargetChargeError
from targetcharge.sessions import Release

_FAR = 10**6
"""No noise comes so far: its probability is 0 in double precision."""


class Parted(Exception):  # noqa: N818 - what it says is not an error of the test
    """The tables answered differently after the same noise: whoever sees it knows which one it is."""


class _Player:
    """Runs calls on one table, until it wants noise or is done."""

    def __init__(self):
        self._asked, self._told = queue.SimpleQueue(), queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        HERE.player = self
        while (call := self._asked.get()) is not None:
            try:
                done = ("done", call())
            except (TargetChargeError, KeyboardInterrupt) as error:
                done = ("failed", error)
            except BaseException as error:  # noqa: BLE001 - told to the test
                done = ("broken", error)
            self._told.put(done)

    def wait(self, what):
        """Ask for what is chosen, from inside a call."""
        self._told.put(what)
        chosen = self._asked.get()
        if isinstance(chosen, Exception):
            raise chosen
        return chosen

    def send(self, what):
        self._asked.put(what)

    def next(self):
        return self._told.get()

    def do(self, call, *arguments):
        """Make a call that wants no noise."""
        self.send(lambda: call(*arguments))
        kind, found = self.next()
        if kind != "done":
            raise found
        return found

    def stop(self):
        self._asked.put(None)
        self._thread.join()


@contextmanager
def playing():
    """Give two players."""
    players = _Player(), _Player()
    try:
        yield players
    finally:
        for player in players:
            player.stop()


def facts(found):
    """Return all that a result shows, but for the time."""
    match found:
        case tc.Answer():
            return repr(dataclasses.replace(found, received=0.0))
        case Release():
            return repr((found.released, found.outcome, found.price, found.seq, found.scale, found.interval))
        case list() | tuple() | tc.Answers():
            return tuple(facts(each) for each in found)
        case BaseException():
            return type(found).__name__, str(found)
        case _:
            return repr(found)


class Twins:
    """What a game asks: both tables at once. It sees the answers, which are the same.

    Every question returns what the first table returned, or None if that refused or broke. Sums have a grid of 1.
    """

    def __init__(self, players, tables, chance):
        self._players, self._tables, self._chance = players, tables, chance
        self.events = []

    @property
    def draws(self):
        """Return how often there was noise: public, since it follows from what was asked and answered."""
        return len(self._chance.places)

    def call(self, act, cuts=(), told=ALL, broken=math.inf):
        """Call both tables.

        Args:
            act: a function of a table.
            cuts: at which numbers what is published begins to be another.
            told: from which number up to which the number itself is published, or kept.
            broken: from which number on the computation breaks.
        """
        for player, table in zip(self._players, self._tables, strict=True):
            player.send(lambda table=table: act(table))
        found = self._both()
        while {kind for kind, *_ in found} & {"noise", "coin"}:
            chosen = self._chance.draw(pair_of(found, cuts, told))
            for player in self._players:
                player.send(MemoryError() if chosen >= broken else chosen)
            found = self._both()
        (kind, first), (_, second) = found
        self.events.append(facts(first))
        if self.events[-1] != facts(second):
            raise Parted(facts(second))
        return first if kind == "done" else None

    def _both(self):
        """Return where the tables are: both want noise, or both are done."""
        found = [player.next() for player in self._players]
        for kind, what, *_ in found:
            if kind == "broken":
                raise RuntimeError(kind) from what
        if len({kind if kind in ("noise", "coin") else "done" for kind, *_ in found}) > 1:
            msg = "only one of the tables wanted noise"
            raise RuntimeError(msg)
        return found

    def above(self, where, threshold, cuts=(), broken=math.inf, **options):
        def act(table):
            return table.above(where, threshold, **options)

        return self.call(act, {threshold, *cuts}, (threshold, math.inf), broken)

    def below(self, where, threshold):
        """Ask whether the number is still at least the threshold: a hit where it is not."""

        def act(table):
            return table.count(where, prior=threshold + _FAR, tolerance=_FAR)

        return self.call(act, {threshold}, (-math.inf, threshold - 1))

    def count(self, where):
        return self.call(lambda table: table.count(where))

    def between(self, where, low, high):
        return self.call(lambda table: table.between(where, low, high), {low, high + 1}, NONE)

    def side(self, where, threshold):
        return self.call(lambda table: table.side(where, threshold), {threshold}, NONE)

    def watch(self, where, by, keys, threshold):
        return self.call(lambda table: table.watch(where, by, keys, threshold), {threshold}, (threshold, math.inf))

    def many(self, asked):
        cuts = {each.threshold for each in asked}
        return self.call(lambda table: table.ask_many(asked), cuts, (min(cuts), math.inf))

    def top(self, by, keys, k, cuts, *, where=None, **options):
        return self.call(lambda table: table.top(where, by, keys, k, **options), cuts)

    def release(self, where, cuts, least=None):
        """Drawn a number that is published from `least` on, if at all; `cuts` are those of later revisions."""
        cuts, least = {*cuts, *([] if least is None else [least])}, math.inf if least is None else least
        return self.call(lambda table: table.release(where, lambda number: number >= least), cuts)

    def revise(self, seq, first, last=math.inf):
        """Publish a number that waits, if it lies in a range that its release was cut at."""
        return self.call(lambda table: _waiting(table, seq).revise(lambda number: first <= number <= last))

    def breaking(self, where, least):
        """Drawn a number, and break the call from `least` on."""
        return self.call(lambda table: table.release(where, _breaks(least)), {least})

    def breaking_revision(self, seq, least):
        """Break a revision, if what waits is at least this."""
        return self.call(lambda table: _waiting(table, seq).revise(_breaks(least)))


def _waiting(table, seq):
    return next(release for release in table.pending if release.seq == seq)


def _breaks(least):
    def when(number):
        rehearsed = any(frame.name == "rehearse" for frame in traceback.extract_stack())  # on made-up numbers
        if not rehearsed and number >= least:
            raise KeyboardInterrupt
        return False

    return when
