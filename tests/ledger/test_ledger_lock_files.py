"""The lock files of sessions: none is left behind, and who loses them publishes nothing on top."""

import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from tests.ledger import children
from tests.ledger.asking import QUERY, entries, hits, no, opened, spent, yes
from tests.ledger.processes import child

import targetcharge as tc
from targetcharge.ledger import Answer, Most, Settlement, SqliteLedger
from targetcharge.ledger.sqlite import verify
from targetcharge.ledger.sqlite.locks import exclusive_lock, holds_exclusive_lock
from targetcharge.ledger.state import Sums
from targetcharge.sessions.opening import Declaration

REMOVED = "lock files of this session"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def lock_folder(path):
    return path.with_name(path.name + "-tenants")


def lock_files(path):
    return sorted(file.suffix for file in lock_folder(path).glob("*")) if lock_folder(path).exists() else []


# None is left behind.


@pytest.mark.parametrize("times", [1, 5])
def test_openings_on_a_full_disk_leave_no_lock_files(path, times):
    opened(path).close()
    for _ in range(times):
        with child(children.opens_on_a_full_disk, path, 20_000) as process:
            assert process.hear()[0] == "LedgerError"
            process.ends()
        assert not lock_folder(path).exists()
    with opened(path) as session:
        assert (session.meter.hits, session.test(yes).hit) == (0, True)
    assert not lock_folder(path).exists()


def test_lock_files_without_a_row_are_removed_by_the_next_session(path):
    with opened(path) as session:
        session.test(yes)
        for name in ("dead", "gone"):
            for kind in ("alive", "run"):
                (lock_folder(path) / f"{name}.{kind}").write_bytes(b"\1")
        (lock_folder(path) / "half.run").touch()
        (lock_folder(path) / "notes.txt").touch()
        with opened(path):
            assert lock_files(path) == [".alive", ".alive", ".run", ".run", ".txt"]
        assert session.test(yes).hit
    assert lock_files(path) == [".txt"]


def test_lock_files_that_are_locked_are_left_alone(path):
    """An earlier version makes them before it has a row."""
    with opened(path) as session:
        locks = session._ledger._transactions.locks
        copies = [lock_folder(path) / f"other.{kind}" for kind in ("alive", "run")]
        for file, copy in zip(sorted(lock_folder(path).iterdir()), copies, strict=True):
            copy.hardlink_to(file)  # the same file, and so locked
        opened(path).close()
        assert all(copy.exists() for copy in copies)
        assert locks.name != "other"


def test_sessions_that_open_and_close_at_once_never_remove_each_others_files(path):
    def open_and_hit(_):
        with opened(path, 229) as session:
            return session.test(yes).hit

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(open_and_hit, range(60)))
    with opened(path, 229) as session:
        assert (session.meter.hits, spent(session)) == (60, [])
    assert not lock_folder(path).exists()


# Who loses them publishes nothing on top.


def remove_all(path):
    shutil.rmtree(lock_folder(path), ignore_errors=True)


def remove_some(kind):
    def remove(path):
        for file in lock_folder(path).glob(f"*.{kind}"):
            file.unlink(missing_ok=True)

    return remove


REMOVALS = {"folder": remove_all, "alive": remove_some("alive"), "run": remove_some("run")}


@pytest.mark.parametrize("how", REMOVALS)
@pytest.mark.parametrize("seed", range(4))
def test_hits_never_exceed_the_capacity_whenever_lock_files_are_removed(path, how, seed):
    """Several sessions; files vanish between and during calls; everything is spent."""
    choose, published = random.Random(seed), 0

    @tc.private(epsilon=0.01)
    def disturbed(_):
        if choose.random() < 0.3:
            REMOVALS[how](path)
        return choose.random() < 0.5

    sessions = [opened(path, 15) for _ in range(3)]
    for _ in range(300):
        place = choose.randrange(3)
        try:
            published += sessions[place].test(disturbed).hit
        except tc.LedgerError:
            with suppress(tc.LedgerError):
                sessions[place].close()
            sessions[place] = opened(path, 15)
        except tc.BudgetSpent:
            break
        if choose.random() < 0.2:
            REMOVALS[how](path)
    for session in sessions:
        with suppress(tc.LedgerError):
            session.close()
    check_totals(path, 15, published)


def check_totals(path, capacity, published):
    with opened(path, capacity) as session:
        total = Sums.zero(1)
        for entry in entries(session):
            total = total.plus(entry)
        assert total.spent[0] <= capacity
        assert len(hits(session)) == published
        assert session.meter.hits == published + sum(entry.count for entry in spent(session))
        assert total == session._ledger._database.state().sums
    verify(path)


@pytest.mark.parametrize("how", REMOVALS)
def test_threads_whose_lock_files_vanish_spend_no_more_than_there_is(path, how):
    stop = threading.Event()

    def ask(_):
        published = 0
        while True:
            with suppress(tc.LedgerError), opened(path, 45) as session:  # files may vanish while it is opened, too
                try:
                    while True:
                        published += session.test(yes).hit
                        session.test(no)
                except tc.BudgetSpent:
                    return published

    def remove():
        while not stop.wait(0.01):
            REMOVALS[how](path)

    remover = threading.Thread(target=remove)
    with ThreadPoolExecutor(3) as pool:
        remover.start()
        published = sum(pool.map(ask, range(3)))
        stop.set()
        remover.join()
    check_totals(path, 45, published)


def test_a_session_that_was_taken_for_dead_stops_and_says_so(path):
    first, second = opened(path, 2), opened(path, 2)
    first.test(no)
    remove_all(path)
    assert second.test(yes).hit  # there is room for both
    with pytest.raises(tc.BudgetSpent):
        second.test(yes)  # what the first holds is spent
    with pytest.raises(tc.LedgerError, match=f"{REMOVED}.*Open a new session"):
        first.test(yes)
    with pytest.raises(tc.LedgerError, match="closed after an error"):
        first.test(yes)
    first.close()
    second.close()
    with opened(path, 2) as session:
        assert (session.meter.hits, len(hits(session))) == (2, 1)


def test_a_session_whose_files_vanished_unnoticed_goes_on(path):
    with opened(path) as session:
        session.test(no)
        remove_all(path)
        assert session.test(yes).hit
        assert session.meter.hits == 1
    assert verify(path) == 2


def test_a_miss_that_cannot_be_written_at_closing_is_told(path):
    session = opened(path)
    session.test(no)
    remove_all(path)
    opened(path).close()
    with pytest.raises(tc.LedgerError, match=REMOVED):
        session.close()


# The exclusive lock.


def ledger_of(path):
    declared = Declaration.of(tc.Budget(1.0, 1e-6), QUERY[6], "exact", None, None, 0.0, individual=True)
    meters = declared.meters()
    ledger = SqliteLedger(path, declared.terms(meters), meters)
    return ledger, Most((meters[0].quote(tc.NotPrior(None), QUERY[6]),))


def publish(ledger, most, *, hit=True):
    ledger.reserve(most)
    answer = Answer(7 if hit else None, hit, float(hit), ledger.next_seq(), grains=(int(hit),))
    ledger.settle(Settlement((answer,)))


def test_a_lock_that_was_replaced_while_waiting_is_waited_for_again(path):
    """The first leaves by a file that is gone; who waited for it waits for the second, which has the new one."""
    inside, waited = [], threading.Event()

    def wait():
        with exclusive_lock(path):
            inside.append("third")
            waited.set()

    first = exclusive_lock(path)
    third = threading.Thread(target=wait)
    third.start()
    assert not waited.wait(0.2)
    (lock_folder(path) / "alone").unlink()
    second = []
    other = threading.Thread(target=lambda: second.append(exclusive_lock(path)))
    other.start()
    other.join()
    assert holds_exclusive_lock(path, second[0])
    assert not holds_exclusive_lock(path, first)
    first.close()
    assert not waited.wait(0.3)
    second[0].close()
    assert waited.wait(10)
    third.join()


@pytest.mark.parametrize("what", ["alone", "folder"])
@pytest.mark.parametrize("hit", [True, False])
@pytest.mark.parametrize("entered", [True, False], ids=["and another enters", ""])
def test_of_two_that_locked_different_files_one_publishes(path, what, hit, entered):
    (first, most), (second, _) = ledger_of(path), ledger_of(path)
    with ExitStack() as stack:
        stack.callback(second.close)
        with first.exclusive():
            if what == "alone":
                (lock_folder(path) / "alone").unlink()
            else:
                remove_all(path)
            if entered:
                ThreadPoolExecutor().submit(_publish_exclusively, second, most).result(20)
            with pytest.raises(tc.LedgerError, match=REMOVED):
                publish(first, most, hit=hit)
        first.close()
        assert [entry.hit for entry in second.entries() if isinstance(entry, Answer)] == [True] * entered
    verify(path)


def _publish_exclusively(ledger, most):
    with ledger.exclusive():
        publish(ledger, most)


def test_a_lock_that_was_removed_between_calls_is_made_again(path):
    ledger, most = ledger_of(path)
    for _ in range(3):
        with ledger.exclusive():
            publish(ledger, most)
        (lock_folder(path) / "alone").unlink()
    ledger.close()
    assert verify(path) == 3


def test_what_was_spared_for_dying_idle_is_not_for_losing_its_files(path):
    """It still thinks that it holds a hit, and may be told one before it finds out."""
    (first, most), (second, _) = ledger_of(path), ledger_of(path)
    with first.exclusive():
        publish(first, most, hit=False)
    remove_some("alive")(path)
    with second.exclusive():
        assert [entry.why for entry in second.entries() if not isinstance(entry, Answer)] == ["abandoned"]
    with pytest.raises(tc.LedgerError, match=REMOVED), first.exclusive():
        publish(first, most)
    first.close()
    second.close()
