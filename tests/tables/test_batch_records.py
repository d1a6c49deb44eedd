"""What ledgers keep of batches: every answer as it was, also long ones, and of several processes."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from tests.ledger.processes import child
from tests.sessions.scripted import EPSILON, budget_of, gives, opened
from tests.tables import children
from tests.tables.noise import patterned

import targetcharge as tc
from targetcharge.ledger.entries import Spent, answers_in
from targetcharge.ledger.sqlite import verify


def spent(session):
    return [entry for entry in session._ledger.entries() if isinstance(entry, Spent)]


@pytest.mark.parametrize("size", [1, 999, 1000, 1001, 4999, 5000, 5001, 12_345])
def test_long_batches_keep_their_numbers_and_their_transcript(tmp_path, size):
    path, hits = tmp_path / "ledger.db", {0, 1, 998, 999, 1000, 4999, 5000, 12_344}
    pattern = [index in hits for index in range(size)]
    budget = budget_of(9)
    with tc.Session(None, budget, EPSILON, ledger=path) as session:
        session.test(gives(False))
        answers = list(session.ask_each(patterned(pattern, keys=range(size))))
        assert [answer.seq for answer in answers] == list(range(2, size + 2))
        assert list(session.transcript)[1:] == answers
        assert session.transcript.last(3) == list(session.transcript)[-3:]
        after = session.test(gives(False))
        assert after.seq == size + 2
    with tc.Session(None, budget, EPSILON, ledger=path) as session:
        assert list(session.transcript)[1:-1] == answers
        assert [(type(a.key), a.key, a.hit) for a in answers] == [(int, i, hit) for i, hit in enumerate(pattern)]
        assert session.meter.hits == sum(pattern)
        assert session.test(gives(False)).seq > after.seq
        assert spent(session) == []
    verify(path)


KEYS = [
    None,
    True,
    False,
    0.5,
    -7,
    2**70,
    "",
    "text",
    "é\n\"'",
    b"raw",
    (),
    (1, "a"),
    (True, 2.0, None),
    ((1,), "b"),
]


@pytest.mark.parametrize("pattern", [[0] * 14, [1] * 14, [0, 1] * 7], ids=["misses", "hits", "both"])
def test_keys_of_all_kinds_are_the_same_after_reopening(tmp_path, pattern):
    budget, path = budget_of(20), tmp_path / "ledger.db"
    with tc.Session(None, budget, EPSILON, ledger=path) as session:
        answers = list(session.ask_each(patterned(pattern, keys=KEYS)))
        assert [repr(answer.key) for answer in answers] == [repr(key) for key in KEYS]
    with tc.Session(None, budget, EPSILON, ledger=path) as session:
        assert list(session.transcript) == answers
        assert repr(list(session.transcript)) == repr(answers)


def test_a_run_in_memory_and_in_a_file_holds_the_same_answers(tmp_path):
    kept = []
    for where in (":memory:", tmp_path / "ledger.db"):
        with opened(9, ledger=where) as session:
            list(session.ask_each(patterned([0, 0, 1, 0, 0, 0])))
            session.test(gives(True))
            kept.append([[a.key for a in answers_in(entry)] for entry in session._ledger.entries()])
    assert kept == [[["k0", "k1", "k2"], ["k3", "k4", "k5"], [None]]] * 2


def test_processes_that_race_through_batches_spend_the_budget_once(tmp_path):
    path, budget = tmp_path / "ledger.db", budget_of(30)
    with ExitStack() as stack:
        racers = [stack.enter_context(child(children.asks_a_batch, path, budget, 40)) for _ in range(2)]
        for racer in racers:
            assert racer.hear() == "opened"
        for racer in racers:
            racer.tell("go")
        told = [racer.hear(60) for racer in racers]
    seqs = [seq for found in told for seq, _ in found]
    assert sum(hit for found in told for _, hit in found) == 30
    assert len(set(seqs)) == len(seqs)
    assert all(found == sorted(found) for found in told)
    with tc.Session(None, budget, EPSILON, ledger=path) as session:
        assert session.meter.hits == 30
        assert sorted(answer.seq for answer in session.transcript) == sorted(seqs)
    verify(path)
