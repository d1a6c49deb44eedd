"""Several processes, sessions and threads on one ledger."""

import fcntl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pandas as pd
import pytest
from tests.ledger import children
from tests.ledger.asking import (
    BUDGET,
    QUERY,
    ask_until_refused,
    crash,
    entries,
    hits,
    no,
    opened,
    opened_renyi,
    spent,
    told,
    yes,
)
from tests.ledger.processes import child
from tests.sizes import size

import targetcharge as tc
from targetcharge.ledger.sqlite import inspect, verify
from targetcharge.sessions.heart import Heart

ROUNDS = size(15, 100)


@pytest.mark.parametrize(("processes", "capacity"), [(2, 1), (3, 2)])
def test_processes_that_race_for_the_last_hits_never_share_one(tmp_path, processes, capacity):
    with ExitStack() as stack:
        racers = [stack.enter_context(child(children.races, capacity)) for _ in range(processes)]
        for number in range(ROUNDS):
            path = tmp_path / f"{number}.db"
            for racer in racers:
                racer.tell(path)
            won = sorted(str(racer.hear()) for racer in racers)
            assert won == ["True"] * capacity + ["refused"] * (processes - capacity)
            with opened(path, capacity) as session:
                assert (session.meter.hits, spent(session)) == (capacity, [])


def test_open_sessions_that_race_spend_the_budget_once(tmp_path):
    path = tmp_path / "ledger.db"
    with ExitStack() as stack:
        racers = [stack.enter_context(child(children.races_on_an_open_session, path, 45)) for _ in range(3)]
        assert [racer.hear() for racer in racers] == ["opened"] * 3
        results = []
        for _ in range(20):
            for racer in racers:
                racer.tell("go")
            results += [racer.hear() for racer in racers]
        for racer in racers:
            racer.tell(None)
            assert racer.hear() == "closed"
    seqs = [result for result in results if result != "refused"]
    assert (len(seqs), len(set(seqs)), results.count("refused")) == (45, 45, 15)
    with opened(path, 45) as session:
        assert sorted(answer.seq for answer in session.transcript) == sorted(seqs)
        assert session.meter.hits == 45
    assert verify(path) == 45


def test_what_an_idle_process_holds_back_is_taken_without_waiting(tmp_path):
    path = tmp_path / "ledger.db"
    with child(children.holds, path, 1) as idle:
        assert idle.hear() == "holds"
        with opened(path, 1) as session:
            begun = time.monotonic()
            assert session.test(yes).hit
            assert time.monotonic() - begun < 2
            idle.tell(True)
            assert idle.hear() == "refused"
            assert session.meter.hits == 1


def test_what_was_taken_is_found_out_before_the_next_call(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path, 2) as first, opened(path, 2) as second:
        first.test(no)
        second.test(no)
        assert first.test(yes).hit
        assert second.test(yes).hit
        for session in (first, second):
            with pytest.raises(tc.BudgetSpent):
                session.test(no)
        assert (first.meter.hits, first.meter.totals) == (2, second.meter.totals)


def test_two_sessions_pass_the_last_hit_back_and_forth(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path, 1) as first, opened(path, 1) as second:
        for _ in range(20):
            assert not first.test(no).hit
            assert not second.test(no).hit
        assert first.meter.hits == 0
        assert second.test(yes).hit
        with pytest.raises(tc.BudgetSpent):
            first.test(no)


@pytest.mark.parametrize(("outcome", "then"), [(False, "hit"), (True, "refused")])
def test_a_call_that_needs_what_a_running_call_holds_waits_for_it(tmp_path, outcome, then):
    path = tmp_path / "ledger.db"

    def ask():
        try:
            return "hit" if session.test(yes).hit else "missed"
        except tc.BudgetSpent:
            return "refused"

    with child(children.computes, path, 1) as running, opened(path, 1) as session, ThreadPoolExecutor() as pool:
        assert running.hear() == "computes"
        waiting = pool.submit(ask)
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        running.tell(outcome)
        assert running.hear() is outcome
        assert waiting.result(20) == then
        running.tell()
        running.ends()
        assert session.meter.hits == 1


@pytest.mark.parametrize("run", range(size(4, 40)))
def test_a_call_that_waits_for_a_process_that_is_killed_is_refused(tmp_path, run):
    """Many times: a process that is killed loses its locks one by one, in any order."""
    path = tmp_path / f"{run}.db"

    def ask():
        with pytest.raises(tc.BudgetSpent):
            session.test(yes)
        return "refused"

    with child(children.computes, path, 1) as running, opened(path, 1) as session, ThreadPoolExecutor() as pool:
        assert running.hear() == "computes"
        waiting = pool.submit(ask)
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        running.kill()
        assert waiting.result(20) == "refused"
        assert [entry.why for entry in spent(session)] == ["abandoned"]


def test_a_call_that_does_not_need_it_does_not_wait(tmp_path):
    path = tmp_path / "ledger.db"
    with child(children.computes, path, 2) as running, opened(path, 2) as session:
        assert running.hear() == "computes"
        assert session.test(yes).hit
        running.tell(True)
        assert running.hear() is True
        assert session.meter.hits == 2


def test_a_process_that_never_pauses_does_not_starve_the_others(tmp_path):
    path = tmp_path / "ledger.db"
    with child(children.misses_forever, path, 1) as busy, opened(path, 1) as session:
        assert busy.hear() == "misses"
        begun = time.monotonic()
        assert session.test(yes).hit
        assert time.monotonic() - begun < 20
        assert busy.hear() == "refused"


def test_a_process_that_died_is_found_when_its_hits_are_needed(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path, 2) as session, child(children.holds, path, 2) as other:
        assert other.hear() == "holds"
        other.kill()
        assert session.test(yes).hit
        assert session.meter.hits == 1
        with pytest.raises(tc.BudgetSpent):
            session.test(no)
        assert session.meter.hits == 2
        assert [entry.why for entry in spent(session)] == ["abandoned"]


def test_what_sessions_held_that_died_is_spent_once(tmp_path):
    path = tmp_path / "ledger.db"
    for _ in range(3):
        session = opened(path)
        session.test(no)
        crash(session)
    with opened(path) as first, opened(path) as second:
        assert first.meter.hits == second.meter.hits == 3
    assert not path.with_name("ledger.db-tenants").exists()


def test_an_inspection_shows_what_is_held_back(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path) as first, opened(path) as second:
        first.test(no)
        second.test(no)
        assert inspect(path).held.count == 2
        assert verify(path) == 0
    assert inspect(path).held.count == 0


def test_a_ledger_can_be_verified_while_others_write(tmp_path):
    path = tmp_path / "ledger.db"
    opened(path, 229).close()
    with child(children.writes_hits, path, 229) as writer:
        assert writer.hear() == "writes"
        seen = []
        while writer.is_silent(0):
            seen.append(verify(path))
            assert not inspect(path).restored
        assert writer.hear() == "spent"
    assert seen == sorted(seen)
    assert verify(path) >= 229


def test_eight_threads_on_one_session_are_charged_exactly(tmp_path):
    path = tmp_path / "ledger.db"
    results, answered = [], threading.Lock()

    def ask(number):
        for step in range(60):
            try:
                answer = session.test(yes if step % 4 == number % 4 else no)
            except tc.BudgetSpent:
                answer = None
            with answered:
                results.append(answer)

    with opened(path, 45) as session, ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
        found = [answer for answer in results if answer is not None]
        assert sum(answer.hit for answer in found) == session.meter.hits == 45
        assert len({answer.seq for answer in found}) == len(found)
        assert sorted(answer.seq for answer in session.transcript) == sorted(answer.seq for answer in found)
        assert session.meter.hits_left == 0


def test_threads_on_two_sessions_of_one_file_are_charged_exactly(tmp_path):
    path = tmp_path / "ledger.db"

    def ask(session):
        count = 0
        for _ in range(40):
            try:
                count += session.test(yes).hit
                session.test(no)
            except tc.BudgetSpent:
                pass
        return count

    with opened(path, 45) as first, opened(path, 45) as second, ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(ask, [first, second, first, second]))
        assert sum(counts) == first.meter.hits == second.meter.hits == 45
        assert [len(hits(session)) for session in (first, second)] == [45, 45]


def test_a_reader_never_sees_a_hit_that_is_not_durable(tmp_path):
    """The transcript is read by another thread between a hit's insertion and its commit."""
    path = tmp_path / "ledger.db"
    with opened(path) as session, ThreadPoolExecutor() as pool:
        session.test(no)
        save, reading = session._ledger._database.save, []

        def saves(state):
            save(state)
            session._ledger._database.save = save
            reading.append(pool.submit(lambda: hits(session)))
            with pytest.raises(TimeoutError):
                reading[0].result(0.2)

        session._ledger._database.save = saves
        session.test(yes)
        assert len(reading[0].result(5)) == 1


def test_a_revision_that_comes_too_late_charges_nothing_and_blocks_nobody(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path, 2, says=7) as first, opened(path, 2) as second:
        release = first.release(told, when=lambda _: False)
        (other,) = second.pending

        def publish_first(outcome):
            assert release.revise(lambda _: True).outcome == outcome == 7
            return True

        with pytest.raises(tc.NotAllowed, match="was published"):
            other.revise(publish_first)
        assert first.meter.hits == 1
        assert first.test(yes).hit
        assert (second.meter.hits, second.pending) == (2, ())


def let_another_publish_first(monkeypatch, session, other, when=lambda _: True):
    """Have another session publish a release right after this one has seen that it is pending."""
    publish = Heart.publish

    def late(heart, *call):
        if heart is session._heart:
            monkeypatch.setattr(Heart, "publish", publish)
            (pending,) = other.pending
            assert pending.revise(when).released
        return publish(heart, *call)

    monkeypatch.setattr(Heart, "publish", late)


@pytest.mark.parametrize("when", [True, False])
def test_a_revision_of_what_is_published_before_it_reserves_charges_nothing(monkeypatch, tmp_path, when):
    path = tmp_path / "ledger.db"
    with opened(path, 2, says=7) as first, opened(path, 2) as second:
        release = first.release(told, when=lambda _: False)
        let_another_publish_first(monkeypatch, first, second)
        with pytest.raises(tc.NotAllowed, match=f"release {release.seq} was published"):
            release.revise(lambda _: when)
        assert (first.meter.hits, spent(first), len(hits(first))) == (1, [], 1)
        assert second.test(yes).hit
        assert (first.meter.hits, first.pending) == (2, ())


LEAST = -(10**9)
"""Every number reaches it."""


@pytest.mark.parametrize(
    ("targets", "never", "always"),
    [([tc.NotPrior(None)], set(), lambda _: True), (None, -LEAST, LEAST)],
    ids=["any condition", "from a number on"],
)
def test_a_revision_of_what_is_published_before_it_reserves_charges_no_unit(
    monkeypatch, tmp_path, targets, never, always
):
    people = pd.DataFrame({"patient": range(100)})
    options = {"charging": "individual", "targets": targets, "ledger": tmp_path / "ledger.db"}
    several = [tc.open(people, "patient", BUDGET, query_epsilon=QUERY[2], **options) for _ in range(2)]
    with several[0] as first, several[1] as second:
        release = first.release("patient < 10", never)
        let_another_publish_first(monkeypatch, first._session, second, always)
        with pytest.raises(tc.NotAllowed, match=f"release {release.seq} was published"):
            release.revise(always)
        assert (spent(first._session), len(hits(first._session))) == ([], 1)
        first._session.up_to_date(first._numbers.settle)
        assert first._numbers._counters.spent.tolist() == [1] * 10 + [0] * 90


def test_renyi_sessions_hold_back_different_prices(tmp_path):
    path = tmp_path / "ledger.db"
    dear = tc.private(epsilon=0.03)(lambda _: True)
    with opened_renyi(path) as first, opened_renyi(path) as second:
        count = ask_until_refused([first, second], dear)
        first.test(no)
        spent_units = second.meter.totals.spent
        assert spent_units == count * second.meter.quote(tc.NotPrior(False), 0.03).grains
        assert spent_units <= second.meter.tariff.capacity
        assert len(entries(first)) == count


def test_what_is_not_covered_anyway_is_refused_without_waiting(tmp_path):
    path = tmp_path / "ledger.db"
    score = tc.private(epsilon=0.01)(lambda _: 1)
    approximate = tc.private(epsilon=0.01, delta=1e-9)(lambda _: True)
    with child(children.computes, path, 2) as running, opened(path, 2) as session:
        assert running.hear() == "computes"
        with pytest.raises(tc.BudgetSpent):
            session.select([score] * 3, k=3)
        with pytest.raises(tc.BudgetSpent, match="computation_delta"):
            session.test(approximate)
        running.tell(True)
        assert running.hear() is True


def test_a_process_that_lost_one_lock_of_two_is_not_idle(tmp_path):
    """As the kernel may show a process that was killed in a call: its run lock free, its alive lock not yet."""
    path, computing, done = tmp_path / "ledger.db", threading.Event(), threading.Event()

    @tc.private(epsilon=0.01)
    def slow(_):
        computing.set()
        return not done.wait(20)

    def ask():
        with pytest.raises(tc.BudgetSpent):
            second.test(yes)
        return second.meter.hits

    with opened(path, 1) as first, opened(path, 1) as second, ThreadPoolExecutor() as pool:
        dying = pool.submit(first.test, slow)
        assert computing.wait(20)
        locks = first._ledger._transactions.locks
        fcntl.flock(locks._run, fcntl.LOCK_UN)
        waiting = pool.submit(ask)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        locks.close()
        assert waiting.result(20) == 1
        done.set()
        assert not dying.result(20).hit
        with pytest.raises(tc.LedgerError, match="Open a new session"):
            first.close()  # its miss cannot be written: to the others it is dead
