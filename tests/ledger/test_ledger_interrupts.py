"""Ctrl-C at every moment of a transaction: every number once, no charge lost, none doubled, and one can go on."""

import gc
import inspect
import os
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.ledger.asking import broken, crash, entries, hits, no, opened, spent, told, yes
from tests.sizes import size

import targetcharge as tc
from targetcharge.ledger.entries import answers_in
from targetcharge.ledger.sqlite import SqliteLedger, verify
from targetcharge.ledger.sqlite.database import Database
from targetcharge.ledger.state import Sums

FOLDER = str(Path(inspect.getfile(Database)).parent)
WHERE = (FOLDER, inspect.getfile(closing))
"""The ledger's own code, and the standard library's that enters and leaves its contexts."""


class Interrupter:
    """Raises KeyboardInterrupt at the n-th moment at which Python would let a signal through.

    These are the beginnings of functions and the ends of those in C that they call. A generator's beginnings are
    left out: an error of a profiler would skip its handlers, a signal does not.
    """

    def __init__(self, number, again=None):
        self.left, self.again, self.rang = number, again, 0

    def __enter__(self):
        Interrupter.last, self.active = self, True
        gc.disable()  # what is collected meanwhile is not part of the call
        self.before = sys.getprofile()
        sys.setprofile(self.profile)
        return self

    def __exit__(self, *_):
        sys.setprofile(self.before)
        self.active = False
        gc.enable()

    def goes_on(self):
        """Python forgets a profiler that raises."""
        if self.active and self.rang == 1 and self.again is not None:
            self.left, self.again = self.again, None
            sys.setprofile(self.profile)

    def profile(self, frame, event, _argument):
        code = frame.f_code
        begins = event == "call" and not code.co_flags & inspect.CO_GENERATOR
        if not (begins or event == "c_return") or not code.co_filename.startswith(WHERE):
            return
        self.left -= 1
        if self.left < 0:
            self.rang += 1
            raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    """Nobody pulls the plug here: thousands of ledgers are quick without waiting for the disk."""
    pragma = Database._pragma
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(Database, "_pragma", lambda store, text: pragma(store, text.replace("= FULL", "= OFF")))


def select(session):
    return session.select([told, told], k=2)


CALLS = {
    "hit": lambda session: session.test(yes),
    "miss": lambda session: session.test(no),
    "failure": lambda session: session.test(broken),
    "release": lambda session: session.release(yes, when=lambda _: True),
    "pending": lambda session: session.release(told, when=lambda _: False),
    "revision": lambda session: session.pending[0].revise(lambda _: True),
    "selection": select,
    "closing": lambda session: session.close(),
}
COSTS = {
    "hit": 1,
    "miss": 0,
    "failure": 1,
    "release": 1,
    "pending": 0,
    "revision": 1,
    "selection": 2,
    "closing": 0,
}


def prepared(path, cold):
    """A session with a pending release, a hit, and misses that wait to be written."""
    session = opened(path, 15, says=5)
    session.release(told, when=lambda _: False)
    session.test(yes)
    if cold:
        with pytest.raises(tc.ComputationFailed):
            session.test(broken)  # nothing is held back after it
    else:
        session.test(no)
        session.test(no)
    return session


def check(session, before, cost, moment):
    """Compare the ledger with what was known before the call."""
    transcript = list(session.transcript)
    numbers = Counter(answer.seq for answer in transcript)
    assert max(numbers.values()) == 1, f"a number twice, {moment}"
    assert transcript[: len(before.answers)] == before.answers, f"an answer is lost, {moment}"
    assert len(session.transcript) == len(transcript), moment
    published = len(hits(session)) - before.published
    charged = session.meter.hits - before.charged
    broke = sum(entry.count for entry in spent(session)) - before.broke
    assert charged == published + broke, moment
    assert charged <= max(cost, 1), f"charged twice, {moment}"
    assert not (published and broke), f"a hit that is written was charged as a failure too, {moment}"
    assert len({release.seq for release in session.pending}) == len(session.pending), moment


class Before:
    def __init__(self, session):
        self.answers = list(session.transcript)
        self.published = len(hits(session))
        self.broke = sum(entry.count for entry in spent(session))
        self.charged = session.meter.hits


def recounted(session):
    total = Sums.zero(1)
    for entry in entries(session):
        total = total.plus(entry)
    written = Counter(answer.seq for entry in entries(session) for answer in answers_in(entry))
    assert max(written.values()) == 1
    return total


def interrupted(path, name, cold, number, again, moment):
    """Interrupt a call, look, go on, close, open again, look; return how often it was interrupted."""
    session = prepared(path, cold)
    before = Before(session)
    with suppress(KeyboardInterrupt, tc.ComputationFailed), Interrupter(number, again) as interrupter:
        CALLS[name](session)
    if name == "closing":
        session.close()
    else:
        check(session, before, COSTS[name], moment)
        if not interrupter.rang:
            assert session.meter.hits - before.charged == COSTS[name]
        assert not session.test(no).hit, moment
        assert session.test(yes).hit, moment
        check_after = Before(session)
        session.close()
        before = check_after
    with opened(path, 15) as reopened:
        if name == "closing":
            written = [answer for answer in reopened.transcript if answer.hit]
            assert [answer for answer in before.answers if answer.hit] == written, moment
            assert reopened.meter.hits - before.charged in (0, 1), moment
        else:
            assert list(reopened.transcript) == before.answers, moment
            assert reopened.meter.hits == before.charged, moment
        assert recounted(reopened) == reopened._ledger._database.state().sums
        assert reopened.test(yes).hit
    verify(path)
    return interrupter.rang


STRIDE, FINE_STRIDE = size(13, 2), size(5, 1)
"""One moment of so many is tried, and more of some calls."""


@pytest.mark.parametrize("cold", [False, True], ids=["", "nothing held back"])
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_moment_of_a_call(tmp_path, name, cold):
    stride = STRIDE if cold or name not in ("hit", "failure", "closing") else FINE_STRIDE
    number, rang = -stride, True
    while rang:
        number += stride
        rang = interrupted(tmp_path / f"{number}.db", name, cold, number, None, f"at moment {number}")
    assert number > 20


AGAIN = size(30, 300)


@pytest.mark.parametrize("name", ["hit", "selection", "pending"])
def test_ctrl_c_twice(tmp_path, monkeypatch, name):
    """Once in the transaction, and again while that is being dealt with."""
    forfeit, tried = SqliteLedger.forfeit, 0

    def interrupted_again(*arguments):
        Interrupter.last.goes_on()
        forfeit(*arguments)

    monkeypatch.setattr(SqliteLedger, "forfeit", interrupted_again)
    for game in range(AGAIN):
        number, again = 7 * game % 211, 13 * game % 97
        moment = f"at moments {number} and {again}"
        tried += interrupted(tmp_path / f"{game}.db", name, False, number, again, moment) == 2
    assert tried > AGAIN // 10


def test_a_ledger_is_looked_at_from_a_handler_in_the_middle_of_a_transaction(tmp_path, monkeypatch):
    """A signal's handler that shows the meter must not end the transaction that it interrupts."""
    save, seen = Database.save, []

    def saves(store, state):
        seen.append(session.meter.hits)
        save(store, state)

    with opened(tmp_path / "ledger.db") as session:
        session.test(no)
        monkeypatch.setattr(Database, "save", saves)
        assert session.test(yes).hit
        monkeypatch.undo()
        assert (session.meter.hits, len(session.transcript)) == (1, 2)
    assert verify(tmp_path / "ledger.db") == 2
    assert seen


def test_a_transaction_that_was_left_open_is_undone_before_anything_is_read(tmp_path):
    """As an interrupt does right at the beginning of leaving it."""
    path = tmp_path / "ledger.db"
    with opened(path) as session, opened(path) as other:
        session.test(yes)
        store = session._ledger._database
        store.transaction().__enter__()
        store.save(store.append(store.state(), [entries(other)[0]]))
        assert len(hits(session)) == 1
        assert other.test(yes).hit
        assert session.meter.hits == 2
    assert verify(path) == 2


def test_a_kill_while_in_doubt_leaves_what_the_file_says(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    session = opened(path)
    session.test(no)
    ledger = session._ledger
    monkeypatch.setattr(ledger._transactions, "resolve", _raises)
    with pytest.raises(KeyboardInterrupt):
        session.test(yes)
    crash(session)
    monkeypatch.undo()
    with opened(path) as again:
        assert again.meter.hits == 1
    verify(path)


def _raises():
    raise KeyboardInterrupt
