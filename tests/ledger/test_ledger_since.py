"""What a roll needs of ledgers: what is new since an entry, its hash, the exclusive lock; and later fields."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from tests.ledger.asking import QUERY, crash

import targetcharge as tc
from targetcharge.ledger import Answer, BatchEntry, MemoryLedger, Most, Pending, Settlement, SqliteLedger
from targetcharge.ledger.entries import Spent, answers_in, entry_of, text_of
from targetcharge.ledger.state import link
from targetcharge.sessions.heart import Turn
from targetcharge.sessions.opening import Declaration


def started(kind, path, *, individual=False, keep=None):
    declared = Declaration.of(tc.Budget(1.0, 1e-6), QUERY[6], "exact", None, None, 0.0, individual=individual)
    meters = declared.meters()
    if kind == "memory":
        return MemoryLedger(meters, keep)
    return SqliteLedger(path, declared.terms(meters), meters)


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request, tmp_path):
    made = started(request.param, tmp_path / "ledger.db", individual=True)
    yield made
    made.close()


def most_of(ledger, count=1):
    return Most((ledger.meters[0].quote(tc.NotPrior(None), QUERY[6]),), count)


def answer(ledger, *, hit, **more):
    return Answer(7 if hit else None, hit, float(hit), ledger.next_seq(), grains=(int(hit),), **more)


def publish(ledger, *hits, **more):
    ledger.reserve(most_of(ledger, max(1, sum(hits))))
    told = tuple(answer(ledger, hit=hit, **more) for hit in hits)
    ledger.settle(Settlement(told))
    return told


def test_what_is_new_since_any_entry(ledger):
    assert ledger.since(0) == (0, [])
    for number in range(5):
        publish(ledger, True)
        assert ledger.since(number)[0] == number + 1
    last, entries = ledger.since(0)
    assert (last, entries) == (5, list(ledger.entries()))
    for number in range(6):
        assert ledger.since(number) == (5, entries[number:])


def test_a_miss_is_there_by_the_time_that_a_later_hit_is(ledger):
    publish(ledger, False)
    number, _ = ledger.since(0)
    assert number in (0, 1)  # a file keeps it for later
    publish(ledger, False), publish(ledger, True)
    found = [each for entry in ledger.since(0)[1] for each in answers_in(entry)]
    assert [each.hit for each in found] == [False, False, True]
    assert [each.seq for each in found] == sorted(each.seq for each in found)


def test_what_a_broken_call_spent_is_new_as_well(ledger):
    ledger.reserve(most_of(ledger, 2))
    ledger.forfeit("counting")
    assert ledger.since(0) == (1, [Spent("failed", (2,), 2, "counting")])


def test_being_alone_charges_what_an_interrupted_call_left(ledger):
    ledger.reserve(most_of(ledger))
    with ledger.exclusive():
        number, (entry,) = ledger.since(0)
        assert (number, type(entry), entry.count) == (1, Spent, 1)
    with ledger.exclusive():
        assert ledger.since(1) == (1, [])


def test_the_hash_of_an_entry_is_that_of_all_before_it(tmp_path):
    ledger = started("sqlite", tmp_path / "ledger.db")
    assert ledger.hash_at(1) is None
    for _ in range(4):
        publish(ledger, True)
    hashes = [ledger.hash_at(number) for number in range(1, 5)]
    assert len(set(hashes)) == 4
    entries = ledger.since(0)[1]
    for (before, after), entry in zip(itertools.pairwise(hashes), entries[1:], strict=True):
        assert after == link(before, text_of(entry))
    for number in (5, -1, 10**12):
        assert ledger.hash_at(number) is None
    ledger.close()
    assert started("memory", None).hash_at(1) is None


def test_a_ledger_in_memory_that_forgets_says_so(tmp_path):
    ledger = started("memory", tmp_path, keep=2)
    for _ in range(5):
        publish(ledger, True)
    assert ledger.since(4) == (5, list(ledger.entries())[1:])
    assert ledger.since(3) == (5, list(ledger.entries()))
    with pytest.raises(tc.LedgerError, match="forgotten"):
        ledger.since(2)


def test_what_others_wrote_is_new_and_the_dead_are_buried_when_one_is_alone(tmp_path):
    path = tmp_path / "ledger.db"
    one, other = started("sqlite", path, individual=True), started("sqlite", path, individual=True)
    publish(other, True)
    assert one.since(0)[0] == 1
    other.reserve(most_of(other))
    session = type("Dead", (), {})()
    session._ledger, session._turn = other, Turn()
    session._finalizer = type("Finalizer", (), {"detach": lambda _: None})()
    crash(session)
    with one.exclusive():
        number, (spent,) = one.since(1)
        assert (number, spent.why, spent.count) == (2, "abandoned", 1)
    one.close()


# Fields that came later.

QUESTION = '{"what":{"count":"age > 65"},"above":100}'


@pytest.mark.parametrize("snapshot", [0, 1, 2**40])
@pytest.mark.parametrize("question", ["", QUESTION, "é\u2028\ud800"])
def test_an_answers_question_and_snapshot_come_back(question, snapshot):
    one = Answer(None, False, 0.0, 3, question=question, snapshot=snapshot, key=("a", 1.5))
    last = Answer(5, True, 1.0, 5, grains=(1,), question=question, snapshot=snapshot, key="b")
    together = BatchEntry(replace(last, outcome=None, seq=3), (None, 5), bytes([0, 0, 1]), (2,), ("a", None, "b"))
    for entry in (one, last, together):
        assert entry_of(text_of(entry)) == entry


def test_entries_from_before_there_were_questions_are_read():
    plain = Answer(5, True, 1.0, 5, grains=(1,))
    assert '"question"' not in text_of(plain)
    assert '"snapshot"' not in text_of(plain)
    read = entry_of(text_of(plain))
    assert (read.question, read.snapshot) == ("", 0)


@pytest.mark.parametrize("snapshot", [0, 3])
def test_a_pending_outcomes_snapshot_comes_back(ledger, snapshot):
    kept = Pending(1, 41.5, "count", 0.1, 0.0, 10.0, (1.0, None), snapshot)
    assert Pending.of(kept.text()) == kept
    assert Pending.of(kept.text().replace(f',"snapshot":{snapshot}', "")).snapshot == 0
    ledger.reserve(most_of(ledger))
    silence = answer(ledger, hit=False, release=1, question=QUESTION, snapshot=snapshot)
    ledger.settle(Settlement((silence,), pending=kept))
    assert ledger.pending_outcome(1) == kept
    assert ledger.since(0)[1] == [silence]
