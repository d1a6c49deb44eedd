"""Batches of requests in sessions: published in entries, exactly the hits are charged, nothing leaves unpaid."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest
from tests.sessions.known_requests import EPSILON, OUTCOMES, asked, codes_of, pattern_of, requests_of, spent
from tests.sessions.leaks import DATA, chain
from tests.sessions.scripted import budget_of, computes, gives, opened

import targetcharge as tc
from targetcharge.mechanisms import batch_by_key
from targetcharge.mechanisms.batch import MOST_HITS
from targetcharge.sessions.batch import MOST_ANSWERS


@pytest.fixture(params=["memory", "file"])
def where(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


# What is published and charged.


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_answers_come_in_order_and_exactly_the_hits_are_charged(where, meter):
    pattern = "..x:.xx:" * 3
    with opened(20, meter=meter, ledger=where) as session:
        price = session.meter.quote(tc.NotPrior(None), EPSILON)
        entries, ended = asked(session, requests_of(codes_of(pattern), told=("NotPrior",)))
        answers = [answer for entry in entries for answer in entry.answers]
        assert not ended
        assert pattern_of(entries) == pattern
        assert [answer.hit for answer in answers] == [each == "x" for each in pattern]
        assert [answer.outcome for answer in answers] == [OUTCOMES[".:x".index(each)] for each in pattern]
        assert [answer.key for answer in answers] == list(range(len(pattern)))
        assert [answer.seq for answer in answers] == list(range(1, len(pattern) + 1))
        assert [answer.price for answer in answers] == [price.value * (each == "x") for each in pattern]
        assert [answer.grains for answer in answers] == [(price.grains * (each == "x"),) for each in pattern]
        assert {(answer.algorithm, answer.targets, answer.epsilon) for answer in answers} == {
            ("requests", (("NotPrior",),), EPSILON)
        }
        assert list(session.transcript) == answers
        assert len(session.transcript) == len(pattern)
        assert list(session.transcript.batches()) == entries
        assert session.meter.hits == pattern.count("x") == sum(len(entry.hit_places) for entry in entries)
        assert session.meter.totals.spent == pattern.count("x") * price.grains


@pytest.mark.parametrize("count", [1, MOST_ANSWERS - 1, MOST_ANSWERS, MOST_ANSWERS + 1, 3 * MOST_ANSWERS + 5])
def test_each_request_is_drawn_once_and_leaves_in_bounded_pieces(where, count):
    ranges, codes = [], np.random.default_rng(7).integers(0, 2, count)
    places = [0, count // 3, count // 2, count - 1]
    codes[places] = 2
    with opened(8, ledger=where) as session:  # so few that an entry ends at every hit
        requests = requests_of(codes, before=lambda _, first, last: ranges.append((first, last)))
        entries, ended = asked(session, requests)
        assert not ended
        assert np.concatenate([entry.indices for entry in entries]).tolist() == codes.tolist()
        assert session.meter.hits == len(set(places))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == count
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert max(last - first for first, last in ranges) <= MOST_ANSWERS
    assert max(map(len, entries)) <= MOST_ANSWERS
    assert {len(entry.hit_places) for entry in entries} <= {0, 1}


def test_nothing_is_drawn_or_charged_before_an_entry_is_asked_for(where):
    calls = []
    requests = requests_of(codes_of("x" * 10), before=lambda *_: calls.append(1))
    with opened(100, ledger=where) as session:
        found = session.ask_batch(requests)
        assert (calls, session.meter.hits, len(session.transcript)) == ([], 0, 0)
        entry = next(found)
        assert (calls, session.meter.hits) == ([1], len(entry.hit_places))
        assert len(session.transcript) == len(entry)
        assert len(entry) == len(entry.hit_places) == min(10, (session.meter.hits + session.meter.hits_left) // 8)


def test_an_entry_holds_back_a_small_part_of_what_is_left_and_never_more_than_a_few_hits(where):
    with opened(300, epsilon=EPSILON, ledger=where) as session:
        left = session.meter.hits_left
        for entry in session.ask_batch(requests_of(codes_of("x" * left))):
            assert len(entry.hit_places) == len(entry) == max(1, min(MOST_HITS, left // 8))
            left -= len(entry.hit_places)
            assert session.meter.hits_left == left
        assert left == 0


@pytest.mark.parametrize("start", [0, 1, 7, 10])
def test_a_batch_begins_where_it_is_told_to(where, start):
    pattern = ".x::.x.x:x"
    with opened(20, ledger=where) as session:
        entries, _ = asked(session, requests_of(codes_of(pattern)), start)
        assert pattern_of(entries) == pattern[start:]
        assert [answer.key for answer in session.transcript] == list(range(start, 10))
        assert session.meter.hits == pattern[start:].count("x")


@pytest.mark.parametrize("start", [-1, 11, 10**20, True, False, 0.0, 1.5, float("nan"), "3", None, np.array([0])])
def test_a_start_that_is_no_request_is_refused_before_anything_is_drawn(where, start):
    calls = []
    with opened(5, ledger=where) as session:
        found = session.ask_batch(requests_of(np.zeros(10), before=lambda *_: calls.append(1)), start)
        with pytest.raises(tc.InvalidParameter, match=r"start is .* it must be an integer from 0 to 10"):
            next(found)
        assert (calls, session.meter.hits, list(session._ledger.entries())) == ([], 0, [])


def test_a_batch_without_requests_ends_at_once(where):
    with opened(5, ledger=where) as session:
        assert list(session.ask_batch(requests_of([]))) == []
        assert list(session._ledger.entries()) == []


# The end of the budget.


@pytest.mark.parametrize("hits", range(1, 41))
def test_a_budget_for_so_many_hits_ends_the_batch_right_after_the_last_one(hits):
    pattern = ".x:" * 50
    with opened(hits) as session:
        left = session.meter.hits_left
        assert left >= hits
        entries, ended = asked(session, requests_of(codes_of(pattern)))
        assert ended
        assert pattern_of(entries) == pattern[: 3 * left - 1]
        assert session.meter.hits == left
        assert (session.meter.hits_left, spent(session)) == (0, 0)


def test_what_was_drawn_after_the_last_covered_hit_is_never_seen(where):
    with opened(2, ledger=where) as session:
        found = session.ask_batch(requests_of(codes_of(".x.x::::")))
        entries = [next(found), next(found)]
        with pytest.raises(tc.BudgetSpent) as caught:
            next(found)
        assert pattern_of(entries) == ".x.x"
        assert list(chain(caught.value)) == [caught.value]
        assert list(found) == []
        assert len(session.transcript) == 4


def test_a_hit_at_the_very_end_spends_the_budget_and_all_is_told(where):
    calls = []
    requests = requests_of(codes_of(".:x"), before=lambda *_: calls.append(1))
    with opened(1, ledger=where) as session:
        entries, ended = asked(session, requests)
        assert (pattern_of(entries), ended, len(calls)) == (".:x", False, 1)
        assert asked(session, requests) == ([], True)
        assert len(calls) == 1, "the data was touched although nothing was covered"


@pytest.mark.parametrize("left", [0, 1, 2])
def test_an_entry_that_waits_for_a_call_takes_what_that_leaves(tmp_path, left):
    """What was to be held back for an entry is gone when its turn comes: it goes on hit by hit, or ends."""
    path, computes_now, go_on, found = tmp_path / "ledger.db", threading.Event(), threading.Event(), []

    def waits(_):
        computes_now.set()
        go_on.wait(30)
        return 1

    with opened(40, ledger=path) as other, opened(40, ledger=path) as session:
        most = session.meter.hits_left - left
        assert session.meter.hits_left // 8 > 2
        greedy = threading.Thread(
            target=lambda: other.select([computes(waits), *[gives(each) for each in range(most - 1)]], k=most)
        )
        patient = threading.Thread(target=lambda: found.append(asked(session, requests_of(codes_of(".x" * 4)))))
        greedy.start()
        assert computes_now.wait(30)
        patient.start()
        patient.join(0.3)
        assert patient.is_alive(), "it did not wait for what the other call may cost"
        go_on.set()
        greedy.join(30)
        patient.join(30)
        ((entries, ended),) = found
        assert (pattern_of(entries), ended) == (".x" * left, True)
        assert {len(entry.hit_places) for entry in entries} <= {1}
        assert session.meter.hits == most + left
        assert (session.meter.hits_left, spent(session)) == (0, 0)


# Entries beside everything else.


def test_seqs_are_unique_and_in_order_among_all_kinds_of_answers(where):
    with opened(60, data=DATA, ledger=where) as session:
        tests = batch_by_key(lambda _: [10**6, -(10**6), 10**6], [1, 2, 3], 0, EPSILON)
        for _ in range(3):
            session.test(gives(False))
            asked(session, requests_of(codes_of(".x" * 5)))
            session.test(gives(True))
            list(session.ask_each(tests))
            asked(session, requests_of(codes_of("..")))
            session.release(gives(3), when=lambda _: False)
            session.release(gives(3), when=lambda _: True)
            session.select([gives(5), gives(6)], k=1)
        seqs = [answer.seq for answer in session.transcript]
        assert sorted(set(seqs)) == sorted(seqs)
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(session.transcript) == len(seqs)
        everything = list(session.transcript)
        assert session.transcript.last(7) == everything[-7:]
        assert session.transcript.last(10**6) == everything
        assert session.transcript[-3] == everything[-3]
        assert session.meter.hits == sum(answer.hit for answer in everything)


def test_the_last_answers_are_found_inside_an_entry(where):
    with opened(20, ledger=where) as session:
        session.test(gives(False))
        asked(session, requests_of(codes_of(".x:")))
        asked(session, requests_of(codes_of("....")))
        everything = list(session.transcript)
        for count in range(10):
            assert session.transcript.last(count) == everything[max(0, len(everything) - count) :]


def test_two_sessions_on_one_file_number_their_entries_apart(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(60, ledger=path) as one, opened(60, ledger=path) as two:
        ones, twos = (session.ask_batch(requests_of(codes_of(".x:" * 9))) for session in (one, two))
        mine, yours = [], []
        for entry in ones:
            mine.append(entry)
            one.test(gives(False))
            two.test(gives(True))
            yours += [each for each in [next(twos, None)] if each]
        yours += twos
        two.test(gives(False))
        one.test(gives(True))
        everything = list(one.transcript)
        hits = 9 + 9 + sum(answer.algorithm != "requests" and answer.hit for answer in everything)
        assert one.meter.hits == two.meter.hits == hits
        assert pattern_of(mine) == pattern_of(yours) == ".x:" * 9
        assert list(one.transcript.batches()) == list(two.transcript.batches())
        for entries in (mine, yours):
            assert all(entry in list(one.transcript.batches()) for entry in entries)
    seqs = [answer.seq for answer in everything]
    assert len(set(seqs)) == len(seqs)


def test_two_sessions_that_take_turns_with_long_entries_never_share_a_seq(tmp_path):
    """Entries of thousands of requests need more seqs than a session takes at a time."""
    path, seqs = tmp_path / "ledger.db", []
    with opened(60, ledger=path) as one, opened(60, ledger=path) as two:
        for count in (999, 1001, 3000, 1, MOST_ANSWERS):
            for session in (one, two):
                (entry,) = session.ask_batch(requests_of(np.zeros(count)))
                seqs += range(entry.first.seq, entry.seq + 1)
                seqs.append(session.test(gives(True)).seq)
                seqs.append(session.test(gives(False)).seq)
    assert len(set(seqs)) == len(seqs)
    with opened(60, ledger=path) as session:
        assert sorted(answer.seq for answer in session.transcript) == sorted(seqs)


def test_an_entry_of_misses_is_durable_before_it_is_returned(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(5, ledger=path) as session, opened(5, ledger=path) as reader:
        for entry in session.ask_batch(requests_of(np.zeros(2 * MOST_ANSWERS))):
            assert entry in list(reader.transcript.batches())


# Threads.


def test_threads_that_ask_batches_of_one_session_are_charged_exactly(where):
    session, seen, errors = opened(100, ledger=where), {}, []

    def ask(name):
        try:
            seen[name], _ = asked(session, requests_of(codes_of(".x:" * 10), name=f"requests {name}"))
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    left = session.meter.hits_left
    threads = [threading.Thread(target=ask, args=(name,)) for name in range(left // 10 + 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    hits = sum(len(entry.hit_places) for entries in seen.values() for entry in entries)
    assert session.meter.hits == hits == left
    for name, entries in seen.items():
        stored = [entry for entry in session.transcript.batches() if entry.first.algorithm == f"requests {name}"]
        assert stored == entries
        assert (".x:" * 10).startswith(pattern_of(entries))
    seqs = [answer.seq for answer in session.transcript]
    assert len(set(seqs)) == len(seqs)
    session.close()


def test_a_budget_is_what_the_target_costs():
    """The price of a hit is that of the batch' target: fewer hits of `Everything` than of `Boundary`."""
    counts = {}
    for target in (tc.Boundary(), tc.Disagreement(), tc.Everything()):
        budget = budget_of(20, meter="renyi", target=tc.Boundary())
        session = tc.Session(None, budget, EPSILON, meter="renyi", targets=[tc.Boundary()])
        price = session.meter.quote(target, EPSILON)
        entries, ended = asked(session, requests_of(codes_of("x" * 200), target=target))
        assert ended
        counts[type(target)] = session.meter.hits
        assert {entry.first.grains for entry in entries} == {(price.grains,)}
        assert session.meter.hits == session.meter.tariff.capacity // price.grains
    assert counts[tc.Boundary] >= 20
    assert len(set(counts.values())) > 1
