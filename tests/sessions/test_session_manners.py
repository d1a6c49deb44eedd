"""How a session behaves as an object: turns, threads, closing, copies, looks."""

from __future__ import annotations

import copy
import dataclasses
import gc
import os
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.sessions.scripted import EPSILON, budget_of, computes, gives, opened

import targetcharge as tc
from targetcharge.accounting.meter import tariff
from targetcharge.sessions.heart import Failure, Turn

SECONDS = 10


def test_an_algorithm_that_uses_its_own_session_fails_and_does_not_hang():
    session = opened()
    with pytest.raises(tc.ComputationFailed):
        session.test(computes(lambda _: session.test(gives(True)).hit))
    assert session.meter.hits == 1
    with pytest.raises(tc.ComputationFailed):
        session.test(computes(lambda _: session.close()))
    assert session.test(gives(True)).hit


def test_a_condition_may_read_meter_and_transcript():
    session = opened()
    session.test(gives(True))
    release = session.release(gives(7), lambda _: session.meter.hits == len(session.transcript) == 1)
    assert release.released


def test_a_waiting_thread_is_not_taken_for_a_call_from_inside():
    """Another thread has the lock and has not said so yet: this one waits for its turn."""
    turn, got, done = Turn(), threading.Event(), threading.Event()
    with turn.wait():
        turn.begin()

    def other():
        with turn.wait():
            got.set()
            done.wait(SECONDS)

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    assert got.wait(SECONDS)
    lock = turn.wait()
    done.set()
    with lock:
        turn.begin()
    thread.join(SECONDS)


def test_threads_take_turns_and_charge_every_hit_once():
    session, busy, seen = opened(40), [], []

    def slow(_data):
        busy.append(1)
        seen.append(len(busy))
        busy.pop()
        return True

    algorithm = computes(slow)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: session.test(algorithm), range(40)))
    assert set(seen) == {1}
    assert session.meter.hits == 40
    assert sorted(answer.seq for answer in answers) == list(range(1, 41))
    assert [answer.seq for answer in session.transcript] == list(range(1, 41))


def test_threads_racing_for_the_last_hits_get_no_more_than_there_are(tmp_path):
    with opened(5, ledger=tmp_path / "ledger.db") as session:

        def ask(_):
            try:
                return session.test(gives(True)).hit
            except tc.BudgetSpent:
                return False

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(ask, range(20))) == 5
        assert session.meter.hits == 5


@pytest.mark.parametrize("ledger", [":memory:", "file"])
def test_a_closed_session_refuses_calls_and_can_be_closed_again(tmp_path, ledger):
    session = opened(ledger=":memory:" if ledger == ":memory:" else tmp_path / "ledger.db")
    release = session.release(gives(7), set())
    session.close()
    session.close()
    for call in (lambda: session.test(gives(True)), lambda: release.revise({7}), lambda: session.pending):
        with pytest.raises(tc.NotAllowed, match="closed: open another one on the same ledger"):
            call()
    assert session.meter.hits == 0
    assert "session" in repr(session)


def test_a_block_closes_its_session_also_after_an_error():
    with pytest.raises(LookupError), opened() as session:
        raise LookupError
    with pytest.raises(tc.NotAllowed, match="closed"):
        session.test(gives(True))


def test_a_session_that_nobody_closed_gives_back_what_it_held_when_it_is_collected(tmp_path):
    path = tmp_path / "ledger.db"
    session = opened(1, ledger=path)
    session.test(gives(False))
    watch = weakref.ref(session)
    del session
    gc.collect()
    assert watch() is None
    with opened(1, ledger=path) as session:
        assert session.meter.hits == 0
        assert len(session.transcript) == 1
        assert session.test(gives(True)).hit


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps], ids=lambda way: way.__name__)
def test_a_session_and_its_transcript_refuse_to_be_copied_or_pickled(way):
    session = opened()
    release = session.release(gives("secret"), set())
    for each in (session, session.transcript):
        with pytest.raises(tc.NotAllowed, match="cannot be pickled or copied"):
            way(each)
    if way is not copy.copy:
        with pytest.raises(tc.NotAllowed, match="cannot be pickled or copied"):
            way(release)


def test_an_answer_can_be_copied_and_pickled():
    answer = opened().test(gives(True))
    assert pickle.loads(pickle.dumps(answer)) == copy.deepcopy(answer) == answer  # noqa: S301 - what was pickled a moment ago


def test_an_answer_is_frozen_hashable_and_neither_true_nor_false():
    session = opened()
    answer, other = session.test(gives(True)), session.test(gives(True))
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.outcome = False
    with pytest.raises(TypeError, match=r"say \.hit"):
        bool(answer)
    assert answer == session.transcript[0]
    assert answer != other
    assert len({answer, other, session.transcript[0]}) == 2


def test_a_release_is_frozen_and_compared_by_what_it_says():
    session = opened()
    release = session.release(gives(7), set())
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.released = True
    assert release == session.pending[0]
    assert len({release, session.pending[0]}) == 1


def test_what_things_look_like():
    session = opened()
    release = session.release(gives("secret", name="age"), set())
    assert repr(session) == f"<session, budget ({session.meter.guarantee.epsilon:g}, 1e-06), exact meter>"
    assert repr(release) == "Release(released=False, outcome=None, price=0.0, seq=1)"
    assert repr(session.transcript) == "<transcript, 1 answer>"
    kept = "Pending(release=1, algorithm='age', epsilon=0.1, delta=0.0, scale=0.0, snapshot=0)"
    assert repr(session._ledger.pending_outcome(1)) == kept
    assert "secret" not in repr(session.transcript[0])
    assert repr(Failure(KeyboardInterrupt)) == "Failure(error=<class 'KeyboardInterrupt'>)"


def test_terms_are_fixed_by_the_ledger(tmp_path):
    path = tmp_path / "ledger.db"
    opened(3, ledger=path).close()
    with pytest.raises(tc.NotAllowed, match=r"query_epsilon was 0\.1 and is 0\.05"):
        tc.Session(None, budget_of(3), EPSILON / 2, ledger=path)
    with pytest.raises(tc.NotAllowed, match="meter was 'exact' and is 'renyi'"):
        tc.Session(None, tc.Budget(9.0, 1e-6), EPSILON, ledger=path, meter="renyi")


def test_other_terms_are_named_also_where_the_old_order_has_no_price_for_them(tmp_path):
    path = tmp_path / "ledger.db"
    tc.Session(None, tc.Budget(9.0, 1e-6), EPSILON, ledger=path, meter="renyi").close()
    for budget, epsilon, words in (
        (2.3, EPSILON, "epsilon was 9.0 and is 2.3"),
        (20.0, 0.5, "query_epsilon was 0.1"),
    ):
        with pytest.raises(tc.NotAllowed, match=words):
            tc.Session(None, tc.Budget(budget, 1e-6), epsilon, ledger=path, meter="renyi")


def test_a_ledger_keeps_the_order_that_was_chosen_when_it_was_made(tmp_path, monkeypatch):
    def start():
        return opened(3, meter="renyi", ledger=tmp_path / "ledger.db")

    with start() as session:
        order, capacity = session.meter.tariff.order, session.meter.tariff.capacity
    monkeypatch.setattr(tariff, "best_order_for_budget", lambda *_: order * 0.99)
    with start() as session:
        assert (session.meter.tariff.order, session.meter.tariff.capacity) == (order, capacity)


def test_a_forked_child_cannot_use_the_session_and_its_parent_can(tmp_path):
    session = opened(1, ledger=tmp_path / "ledger.db")
    session.test(gives(False))
    child = os.fork()
    if not child:
        refused = 0
        for call in (lambda: session.test(gives(True)), lambda: session.meter.hits, lambda: session.transcript):
            try:
                call()
            except tc.NotAllowed:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert session.test(gives(True)).hit
    session.close()


def test_thousands_of_different_prices_are_not_all_remembered():
    session = opened()
    for number in range(1100):
        assert session.ask(gives(number), tc.NotPrior(number)).hit is False
    assert len(session._prices._memory) <= 1024


def test_the_odometer_can_be_read():
    session = opened(meter="renyi")
    before = session.meter.odometer()
    session.test(gives(True))
    after = session.meter.odometer()
    assert (before.hits, after.hits) == (0, 1)
    assert before.epsilon < after.epsilon <= session.meter.guarantee.epsilon
