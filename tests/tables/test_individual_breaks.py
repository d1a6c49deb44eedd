"""Calls that break charge everybody, before anybody else draws."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest
from tests.ledger.processes import child
from tests.sessions.test_session_interrupts import Interrupter
from tests.sizes import size
from tests.tables import individual_children as children
from tests.tables.individuals import Drawn, capacity, counters, crowd, opened
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.ledger.entries import Spent
from targetcharge.tables.individual import UnitMeters

MANY = 40
FRAME = crowd((range(MANY), 0))

STRIDE = size(17, 2)
"""One moment of so many of a call is tried."""


def spent(t):
    return [entry for entry in t._session._ledger.entries() if isinstance(entry, Spent)]


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_a_call_that_breaks_charges_everybody_as_far_as_it_goes(monkeypatch, place, meter):
    silence(monkeypatch)
    frame = crowd((range(MANY), 0), (range(MANY, 2 * MANY), 1))
    with opened(frame, 2, meter=meter, ledger=place) as t:
        assert t.count("week = 0").outcome == MANY
        original = UnitMeters.one
        monkeypatch.setattr(UnitMeters, "one", lambda *_: 1 // 0)
        with pytest.raises(tc.ComputationFailed):
            t.count("week = 1")
        monkeypatch.setattr(UnitMeters, "one", original)
        price = t._numbers.allowance.scaled(spent(t)[0].grains[0])
        assert counters(t) == [2 * price] * MANY + [price] * MANY
        assert t.count().outcome == MANY
        monkeypatch.setattr(UnitMeters, "one", lambda *_: 1 // 0)
        with pytest.raises(tc.ComputationFailed):
            t.count("week = 1")
        monkeypatch.setattr(UnitMeters, "one", original)
        assert set(counters(t)) == {capacity(t)}  # all of it, also what is too little for a hit
        assert t.count().outcome == 0


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_a_selection_that_breaks_charges_everybody_all_that_it_could_publish(monkeypatch, place, meter):
    with opened(FRAME, 5, meter=meter, ledger=place) as t:
        monkeypatch.setattr(UnitMeters, "of_keys", lambda *_: 1 // 0)
        with pytest.raises(tc.ComputationFailed):
            t.top(None, "week", range(9), 3)
        (broken,) = spent(t)
        assert broken.count == 3
        assert counters(t) == [t._numbers.allowance.scaled(broken.grains[0])] * MANY


# Others must know at once.


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_who_asks_after_another_process_was_killed_in_a_call_draws_without_what_it_spent(
    monkeypatch, tmp_path, meter
):
    """Else units take part in more hits than they have: those of the call that was killed, and all of theirs."""
    path = tmp_path / "ledger.db"
    drawn = Drawn(monkeypatch)
    with opened(FRAME, 2, meter=meter, ledger=path) as t:
        with child(children.dies_in_a_scan, FRAME, path, 2, meter) as other:
            assert other.hear() == "opened"
            other.tell()
            assert other.ends() < 0
        t.count(), t.count()
        assert drawn == [MANY, 0]  # two hits each: one is the call's that was killed
        assert len(spent(t)) == 1


def test_who_asks_after_another_session_lost_its_ledger_in_a_call_draws_without_what_it_spent(
    monkeypatch, tmp_path
):
    """A session that cannot write its ledger any more has drawn, and is dead to the others."""
    path = tmp_path / "ledger.db"
    drawn = Drawn(monkeypatch)
    with opened(FRAME, 2, ledger=path) as t:
        broken = opened(FRAME, 2, ledger=path)
        with monkeypatch.context() as patch:
            patch.setattr(broken._session._ledger, "_settle_now", _fails(broken))
            with pytest.raises(tc.LedgerError):
                broken.count()
        t.count(), t.count()
        assert drawn == [MANY, MANY, 0]
        broken.close()


def _fails(t):
    ledger = t._session._ledger

    def fails(_settlement):
        with ledger._transactions.fatal():
            raise OSError

    return fails


# Ctrl-C.


def replayed(t):
    """Return the numbers that were to be drawn: every count is of all units, and each of them can pay twice."""
    paid, found = 0, []
    for entry in t._session._ledger.entries():
        if isinstance(entry, Spent):
            paid = min(2, paid + entry.count)
        else:
            found.append(MANY if paid < 2 else 0)
            paid = min(2, paid + 1)
    return found


# Between the call that opens the file of the lock and the block that closes it, the garbage collector does that.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_ctrl_c_at_any_moment_of_a_call_charges_before_the_next_one_draws(monkeypatch, tmp_path, kind):
    """Two hits each: a call, one that is interrupted, and two more. Without noise they publish what was drawn."""
    silence(monkeypatch)
    number, rang, forfeited = 0, True, 0
    while rang:
        folder = tmp_path / str(number)
        folder.mkdir()
        t = opened(FRAME, 2, ledger=":memory:" if kind == "memory" else folder / "ledger.db")
        t.count()
        with Interrupter(number) as interrupter, suppress(KeyboardInterrupt):
            t.count()
        rang = interrupter.rang
        t.count(), t.count()
        published = [answer.outcome for answer in t.transcript]
        assert published == replayed(t), f"at moment {number}"
        forfeited += bool(spent(t))
        t.close()
        shutil.rmtree(folder)
        number += STRIDE
    assert number > 40
    assert forfeited


def test_meters_charge_what_the_ledger_holds_as_soon_as_they_are_made(monkeypatch, place):
    silence(monkeypatch)
    with opened(FRAME, 2, ledger=place) as t:
        t.above(None, 5)
        made = UnitMeters(t._numbers.engine, t._numbers.snapshots, t._session._ledger)
        assert made.settle().spent.tolist() == counters(t) == [capacity(t) // 2] * MANY
