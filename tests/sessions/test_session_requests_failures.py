"""Batches of requests that are refused, break or are interrupted: nothing leaves unpaid, nothing is seen."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sessions.known_requests import (
    EPSILON,
    OUTCOMES,
    asked,
    codes_of,
    drawing,
    entries_of,
    requests_batch,
    requests_of,
    spent,
)
from tests.sessions.leaks import DATA, SECRET, chain, lets_out
from tests.sessions.scripted import gives, opened
from tests.sessions.test_session_interrupts import STRIDE, Interrupter, hangs

import targetcharge as tc
from targetcharge.ledger import MemoryLedger, SqliteLedger
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.sessions.batch import MOST_ANSWERS


@pytest.fixture(params=["memory", "file"])
def where(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


# What is refused.


def test_a_batch_is_refused_where_there_are_alternatives():
    calls = []
    session = tc.Session(
        None, tc.Budget(3.0, 1e-6), EPSILON, alternatives=[tc.NotPrior(prior=True), tc.NotPrior(prior=False)]
    )
    with pytest.raises(tc.NotAllowed, match="alternatives"):
        next(session.ask_batch(requests_of([0], before=lambda *_: calls.append(1))))
    assert calls == []


@pytest.mark.parametrize(
    "given",
    [None, "requests", 5, gives(True), [0, 1]],
    ids=lambda each: type(each).__name__,
)
def test_anything_but_a_batch_is_refused_by_name(given):
    with pytest.raises(tc.InvalidParameter, match="batch is"):
        next(opened(3).ask_batch(given))


def test_a_batch_whose_algorithm_names_no_target_is_refused():
    requests = requests_batch(Algorithm("none", EPSILON, 0.0, lambda *_: None), OUTCOMES, 1, lambda *_: None)
    with pytest.raises(tc.InvalidParameter, match="name their targets"):
        next(opened(3).ask_batch(requests))


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        (requests_of([0], epsilon=0.2), "0.2"),
        (requests_of([0], target=tc.Boundary()), "boundary"),
    ],
    ids=["larger ε", "another target"],
)
def test_what_the_meter_has_no_price_for_is_refused_before_the_data_is_touched(where, requests, words):
    with opened(3, ledger=where) as session:
        with pytest.raises(tc.NotAllowed, match=words):
            next(session.ask_batch(requests))
        assert list(session._ledger.entries()) == []


def test_a_closed_session_answers_no_further_entry(where):
    session = opened(20, ledger=where)
    found = session.ask_batch(requests_of(codes_of("x" * 30)))
    first = next(found)
    session.close()
    with pytest.raises(tc.NotAllowed, match="closed"):
        next(found)
    with pytest.raises(tc.NotAllowed, match="closed"):
        next(session.ask_batch(requests_of([0])))
    assert len(first.hit_places) == len(first) < 30


def test_a_batch_cannot_use_its_own_session(where):
    with opened(20, ledger=where) as session:

        def again(*_):
            next(session.ask_batch(requests_of([0])))

        with pytest.raises(tc.ComputationFailed):
            next(session.ask_batch(requests_of([0], before=again)))
        assert (session.meter.hits, spent(session)) == (1, 1)  # of one request, one hit is held back


# Failures: what was held back is spent, and nothing of the data is seen.


def _raises(error):
    def draw(data, _):
        digits = str(data)
        raise error(digits)

    return draw


BROKEN = {
    "raises": _raises(ValueError),
    "raises an error of ours": _raises(tc.LedgerError),
    "says the budget is spent": lambda data, _: (_ for _ in ()).throw(
        tc.BudgetSpent(str(data), asked=1.0, left=0.0)
    ),
    "stops an iteration": _raises(StopIteration),
    "exits a generator": _raises(GeneratorExit),
    "too few": lambda _, count: (np.zeros(count - 1, np.intp), np.zeros(count - 1, bool)),
    "too many": lambda _, count: (np.zeros(count + 1, np.intp), np.zeros(count + 1, bool)),
    "fewer hits": lambda _, count: (np.zeros(count, np.intp), np.zeros(count - 1, bool)),
    "a table": lambda _, count: (np.zeros((count, 1), np.intp), np.zeros((count, 1), bool)),
    "an outcome too far": lambda _, count: (np.full(count, 3), np.zeros(count, bool)),
    "an outcome below": lambda _, count: (np.full(count, -1), np.zeros(count, bool)),
    "one outcome too far": lambda _, count: (np.arange(count) // (count - 1) * 3, np.zeros(count, bool)),
    "the data": lambda data, _: data,
    "nothing": lambda *_: None,
    "lists": lambda _, count: ([0] * count, [False] * count),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_draw_that_breaks_spends_what_it_held_and_says_nothing_of_why(where, name):
    with opened(20, data=DATA, ledger=where) as session:
        left = session.meter.hits_left
        found = session.ask_batch(drawing(BROKEN[name]))
        with pytest.raises(tc.ComputationFailed) as caught:
            next(found)
        held = left // 8
        assert held == 2
        assert lets_out(caught.value) == []
        assert list(chain(caught.value)) == [caught.value]
        assert (session.meter.hits, spent(session), session.meter.hits_left) == (held, held, left - held)
        assert (list(session.transcript), entries_of(session)) == ([], [])
        assert list(found) == []
        assert asked(session, requests_of(codes_of(".x")))[0], "the session cannot go on"


def test_a_failure_after_some_entries_keeps_them(where):
    def breaks(data, first, _):
        if first:
            raise ValueError(data)

    codes = np.zeros(MOST_ANSWERS + 5, dtype=int)
    codes[3] = 2
    with opened(20, data=DATA, ledger=where) as session:
        left = session.meter.hits_left
        found = session.ask_batch(requests_of(codes, before=breaks))
        assert len(next(found)) == MOST_ANSWERS
        with pytest.raises(tc.ComputationFailed) as caught:
            next(found)
        assert lets_out(caught.value) == []
        held = (left - 1) // 8
        assert (session.meter.hits, spent(session), len(session.transcript)) == (1 + held, held, MOST_ANSWERS)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_the_draw_spends_what_was_held(where, error):
    with opened(20, data=DATA, ledger=where) as session:
        left = session.meter.hits_left
        with pytest.raises(error) as caught:
            next(session.ask_batch(drawing(_raises(error))))
        assert lets_out(caught.value) == []
        assert list(chain(caught.value)) == [caught.value]
        assert session.meter.hits == spent(session) == left // 8
        assert not hangs(session)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, tc.LedgerError])
def test_an_entry_that_cannot_be_settled_is_not_seen_and_stays_spent(where, error, monkeypatch):
    ledger = MemoryLedger if where == ":memory:" else SqliteLedger

    def settle(*_):
        raise error

    session = opened(20, data=DATA, ledger=where)
    left = session.meter.hits_left
    monkeypatch.setattr(ledger, "settle", settle)
    found = session.ask_batch(requests_of(codes_of(".x:")))
    with pytest.raises(tc.ComputationFailed if error is OSError else error) as caught:
        next(found)
    assert lets_out(caught.value, "codes=") == []
    assert list(chain(caught.value)) == [caught.value]
    monkeypatch.undo()
    assert session.meter.hits == spent(session) == left // 8
    assert entries_of(session) == []
    session.close()


@pytest.mark.parametrize("place", ["memory", "file"])
def test_ctrl_c_at_any_moment_neither_frees_a_hit_nor_shows_the_data(tmp_path, place):
    number, rang = 0, True
    while rang:
        path = ":memory:" if place == "memory" else tmp_path / f"{number}.db"
        session = opened(30, data=DATA, ledger=path)
        error, entries = None, []
        requests = requests_of(codes_of(".x:" * 4), before=lambda data, *_: str(data))
        with Interrupter(number) as interrupter:
            try:
                entries.extend(session.ask_batch(requests))
            except KeyboardInterrupt as interrupt:
                error = interrupt
        rang = interrupter.rang
        assert not hangs(session), f"at moment {number}"
        stored = list(session.transcript.batches())
        assert stored[: len(entries)] == entries, f"at moment {number}"
        assert len(stored) <= len(entries) + 1, f"at moment {number}"
        hits = sum(len(entry.hit_places) for entry in stored)
        assert hits <= session.meter.hits <= hits + spent(session), f"at moment {number}"
        assert spent(session) <= 3, f"at moment {number}"
        if error is not None:
            assert lets_out(error) == [], f"at moment {number}"
        if error is not None and not stored:
            assert lets_out(error, "codes=b") == [], f"at moment {number}, an entry that was not paid for"
        seqs = [answer.seq for answer in session.transcript]
        assert seqs == sorted(set(seqs))
        session.close()
        number += 1 if place == "memory" else 5 * STRIDE
    assert (number > 60, hits, len(session.meters)) == (True, 4, 1)


def test_nothing_of_the_data_is_in_what_a_budget_that_is_spent_says(where):
    with opened(1, data=DATA, ledger=where) as session:
        with pytest.raises(tc.BudgetSpent) as caught:
            list(session.ask_batch(requests_of(codes_of("x" * 3), before=lambda data, *_: str(data))))
        assert lets_out(caught.value) == []
        assert SECRET not in repr(caught.value)
