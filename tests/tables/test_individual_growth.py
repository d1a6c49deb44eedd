"""Data that grows under budgets of individuals: who was there carries on, who comes starts fresh."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.tables.individuals import Drawn, counters, crowd, opened
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.tables.individual import UnitMeters

FIRST = crowd((range(20), 0))
MORE = crowd((range(10, 40), 1))
OTHER = crowd((range(50, 60), 1))


@pytest.fixture(autouse=True)
def no_noise(monkeypatch):
    silence(monkeypatch)


@pytest.mark.parametrize("ledger", ["memory", "file"])
def test_who_was_there_carries_on_and_who_comes_starts_fresh(monkeypatch, tmp_path, ledger):
    drawn = Drawn(monkeypatch)
    with opened(FIRST, 2, ledger=":memory:" if ledger == "memory" else tmp_path / "ledger.db") as t:
        t.count(), t.count()
        assert t.append(MORE) == 2
        t.count(), t.count(), t.count()
        assert counters(t) == [2] * 40
    assert drawn == [20, 20, 20, 20, 0]


def test_a_call_that_broke_is_charged_to_who_comes_later_too(monkeypatch):
    """Nobody knows what it told; that it is charged to all is what the transcript says."""
    with opened(FIRST, 3, ledger=":memory:") as t:
        with monkeypatch.context() as patch:
            patch.setattr(UnitMeters, "one", lambda *_: 1 // 0)
            with pytest.raises(tc.ComputationFailed):
                t.count()
        t.append(MORE)
        assert counters(t) == [1] * 40


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "dropped"])
@pytest.mark.parametrize("asked", [0, 1, 2])
def test_a_table_that_grew_is_opened_again_and_grows_again(monkeypatch, tmp_path, closed, asked):
    """As `Table.append` says: after reopening, what was appended must be appended again, in the same order."""
    path, drawn = tmp_path / "ledger.db", Drawn(monkeypatch)
    t = opened(FIRST, 3, ledger=path)
    t.count("week = 0")
    t.append(MORE)
    for _ in range(asked):
        t.count()
    before = counters(t)
    if closed:
        t.close()
    del t
    with opened(FIRST, 3, ledger=path) as t:
        assert t.snapshot == 1
        assert t.append(MORE) == 2
        assert counters(t) == before
        t.count("week = 1")
    assert drawn[1 + asked :] == [30 if asked < 2 else 20]  # who was there first has paid three times then


def test_a_table_that_grew_is_not_asked_before_it_grows_again(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(FIRST, 3, ledger=path) as t:
        t.append(MORE)
        t.count()
    with opened(FIRST, 3, ledger=path) as t:
        for ask in (t.count, lambda: t.watch(None, "week", [0], 5), lambda: t.release(None, lambda _: True)):
            with pytest.raises(tc.NotAllowed, match="snapshot 2"):
                ask()
        assert t.meter.hits == 1


@pytest.mark.parametrize("other", [OTHER, FIRST, MORE.iloc[1:], MORE.assign(week=2)], ids=range(4))
def test_other_rows_are_not_the_snapshot_that_the_ledger_knows(tmp_path, other):
    path = tmp_path / "ledger.db"
    with opened(FIRST, 3, ledger=path) as t:
        t.append(MORE)
    with opened(FIRST, 3, ledger=path) as t:
        with pytest.raises(tc.NotAllowed, match="other data as snapshot 2"):
            t.append(other)
        assert t.snapshot == 1
        assert t.append(MORE) == 2


def test_two_tables_on_one_ledger_cannot_grow_apart(tmp_path):
    """Both were opened before either grew: the second must not call other rows the same snapshot."""
    path = tmp_path / "ledger.db"
    with opened(FIRST, 3, ledger=path) as one, opened(FIRST, 3, ledger=path) as other:
        assert one.append(MORE) == 2
        assert one.count("week = 1").outcome == 30
        with pytest.raises(tc.NotAllowed, match="other data as snapshot 2"):
            other.append(OTHER)
        assert other.append(MORE) == 2
        assert counters(one) == counters(other) == [0] * 10 + [1] * 30


def test_rows_cannot_change(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(FIRST, 3, ledger=path) as t:
        t.count()
    for changed in (FIRST.iloc[1:], pd.concat([FIRST, MORE]), FIRST.assign(week=1)):
        for new_data in (False, True):
            with pytest.raises(tc.NotAllowed, match="may only grow"):
                opened(changed, 3, ledger=path, new_data=new_data)
    with opened(FIRST, 3, ledger=path) as t:
        assert counters(t) == [1] * 20


def test_a_watch_that_began_before_an_append_goes_on_where_it_was(monkeypatch):
    """Its tests are about the rows that there were; what it hits is charged to those who were in them."""
    drawn = Drawn(monkeypatch)
    frame = crowd(*((range(5 * week, 5 * week + 5), week) for week in range(4)))
    with opened(frame, 2) as t:
        watching = t.iter_watch(None, "week", range(4), 1)
        assert next(watching).outcome == 5
        t.append(crowd((range(100), 2)))
        assert [answer.outcome for answer in watching] == [5, 5, 5]
        assert {answer.snapshot for answer in t.transcript} == {1}
        assert counters(t) == [1] * 20 + [0] * 80
        assert t.above("week = 2", 1).snapshot == 2
        assert counters(t) == [2] * 20 + [1] * 80
    assert drawn == [5, 5, 5, 5, 100]
