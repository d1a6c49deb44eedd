"""The offset of a session lives as long as its ledger: after restarts, in other sessions, for pending releases."""

import sqlite3

import pytest

import targetcharge as tc
from targetcharge.mechanisms import above_threshold, noisy_count
from targetcharge.sessions import opening

BUDGET = tc.Budget(1.0, 1e-6)
PEOPLE = range(5000)
FAR = 100 * 3000
"""An offset of 3,000, far beyond all noise."""


@pytest.fixture(scope="module")
def law():
    return tc.accounting.least_noise(BUDGET, 10).law


@pytest.fixture
def offsets(monkeypatch):
    """Offsets in the order in which they are drawn."""
    drawn = iter([FAR, -FAR, -FAR, -FAR, -FAR])
    monkeypatch.setattr(opening, "draw_offset", lambda *_: next(drawn))


def session(path, **given):
    return tc.Session(PEOPLE, BUDGET, meter="sparse", ledger=path, **given)


def count(opened, law):
    return opened.ask(noisy_count(len, law.query_epsilon, monotone=True), tc.Everything()).outcome


@pytest.mark.usefixtures("offsets")
def test_a_ledger_keeps_the_offset_that_it_was_made_with(tmp_path, law):
    path = tmp_path / "ledger.db"
    with session(path, hits=10) as first:
        assert abs(count(first, law) - 2000) < 500
        with session(path) as second:  # in the same process, at the same time
            assert abs(count(second, law) - 2000) < 500
    with session(path) as later:  # what it was made for is left out
        assert abs(count(later, law) - 2000) < 500
        assert (later.meter.hits, later.meter.hits_left) == (3, 7)
        assert later.meter.tariff.offset == law
    with session(path, hits=5, query_epsilon=law.query_epsilon) as again:
        assert again.meter.hits_left == 7


@pytest.mark.usefixtures("offsets")
def test_a_pending_release_is_revised_after_a_restart(tmp_path, law):
    path = tmp_path / "ledger.db"
    with session(path, hits=10) as first:
        assert not first.release(noisy_count(len, law.query_epsilon, monotone=True), when=4000).released
    with session(path) as later:
        (pending,) = later.pending
        assert not pending.revise(3500).released
        released = pending.revise(1000)
        assert released.released
        assert abs(released.outcome - 2000) < 500
        assert later.meter.hits == 1


def test_a_ledger_is_opened_with_the_terms_that_it_was_made_for(tmp_path, law):
    path = tmp_path / "ledger.db"
    with session(path, hits=10):
        pass
    with pytest.raises(
        tc.InvalidParameter, match="hits is 11; it must be at most 10, which the ledger was made for"
    ):
        session(path, hits=11)
    with pytest.raises(tc.NotAllowed, match=r"query_epsilon was .* and is 0\.2"):
        session(path, query_epsilon=0.2)
    with pytest.raises(tc.NotAllowed, match="meter was 'sparse' and is 'exact'"):
        tc.Session(PEOPLE, BUDGET, law.query_epsilon / 10, ledger=path)
    with pytest.raises(tc.NotAllowed, match=r"epsilon was 1\.0 and is 2\.0"):
        tc.Session(PEOPLE, tc.Budget(2.0, 1e-6), meter="sparse", ledger=path)
    natural = tmp_path / "natural.db"
    with tc.Session(PEOPLE, BUDGET, 0.01, ledger=natural):
        pass
    with pytest.raises(tc.NotAllowed, match="meter was 'exact' and is 'sparse'"):
        session(natural, hits=10)


def test_a_ledger_whose_offset_is_gone_is_spent(tmp_path, law):
    path = tmp_path / "ledger.db"
    with session(path, hits=10) as opened:
        opened.ask(above_threshold(len, 100, epsilon=law.query_epsilon, monotone=True))
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM secret")
    database.close()
    with session(path) as opened:
        with pytest.raises(tc.BudgetSpent):
            opened.ask(above_threshold(len, 100, epsilon=law.query_epsilon, monotone=True))
        assert len(list(opened.transcript)) == 1


def test_nothing_that_is_published_or_shown_holds_the_offset(tmp_path, law, monkeypatch):
    monkeypatch.setattr(opening, "draw_offset", lambda *_: 987654321987)
    path = tmp_path / "ledger.db"
    with session(path, hits=10) as opened:
        answer = opened.ask(noisy_count(len, law.query_epsilon, monotone=True), tc.Everything())
        texts = [repr(opened), repr(opened.meter), repr(opened.meter.tariff), repr(answer)]
        texts += [repr(entry) for entry in opened.transcript]
    assert not any("987654321987" in text for text in texts)
