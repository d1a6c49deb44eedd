"""The exclusive lock of a ledger: one call at a time among all sessions on it, whatever happens to the others."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from tests.ledger import exclusive_lock_children as children
from tests.ledger.processes import child
from tests.sizes import size

import targetcharge as tc
from targetcharge.ledger.sqlite import locks
from targetcharge.ledger.sqlite.locks import exclusive_lock

SECONDS = 30.0
ROUNDS = size(200, 1000)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def free(path):
    """Return whether another thread can have the lock now."""
    done = threading.Event()

    def enter():
        with exclusive_lock(path):
            done.set()

    threading.Thread(target=enter, daemon=True).start()
    return done.wait(5.0)


def freed():
    """Let go of what a failed test left locked in this process."""
    locks._close_exclusive_in_child()


def test_nobody_else_is_in_it_and_then_somebody_is(path):
    with exclusive_lock(path):
        assert not _enters(path, 0.2)
    assert free(path)


def _enters(path, seconds):
    entered = threading.Event()

    def enter():
        with exclusive_lock(path):
            entered.set()

    threading.Thread(target=enter, daemon=True).start()
    return entered.wait(seconds)


def test_two_ledgers_do_not_wait_for_each_other(tmp_path):
    with exclusive_lock(tmp_path / "a.db"), exclusive_lock(tmp_path / "b.db"):
        assert not _enters(tmp_path / "a.db", 0.1)


def test_a_thread_that_would_wait_for_itself_is_told_so(path):
    with exclusive_lock(path):
        for _ in range(2):
            with pytest.raises(tc.NotAllowed, match="from inside a condition"), exclusive_lock(path):
                pass
        assert not _enters(path, 0.1)
    assert free(path)
    with exclusive_lock(path):
        pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_error_inside_lets_the_others_in(path, error):
    with pytest.raises(error), exclusive_lock(path):
        raise error
    assert free(path)


def test_threads_are_in_it_one_at_a_time(path):
    inside, most, done = 0, 0, 0
    guard = threading.Lock()

    def enter():
        nonlocal inside, most, done
        for _ in range(ROUNDS // 10):
            with exclusive_lock(path):
                with guard:
                    inside += 1
                    most = max(most, inside)
                with guard:
                    inside -= 1
                    done += 1

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(SECONDS)
    assert (most, done) == (1, 8 * (ROUNDS // 10))


def test_processes_are_in_it_one_at_a_time(path, tmp_path):
    """Each reads a number, adds one and writes it, without any other care."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    with (
        child(children.counts_up, path, counter, ROUNDS) as one,
        child(children.counts_up, path, counter, ROUNDS) as other,
    ):
        for each in (one, other):
            each.tell()
        assert [each.hear(SECONDS) for each in (one, other)] == ["done", "done"]
    assert counter.read_text() == str(2 * ROUNDS)


def test_counting_without_it_would_lose_some(tmp_path):
    """The test above could fail: the same without the lock."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    lost = 0
    for _ in range(20):
        with (
            child(children.counts_up, None, counter, ROUNDS) as one,
            child(children.counts_up, None, counter, ROUNDS) as other,
        ):
            for each in (one, other):
                each.tell()
            assert [each.hear(SECONDS) for each in (one, other)] == ["done", "done"]
        lost += 2 * ROUNDS - int(counter.read_text())
        counter.write_text("0")
        if lost:
            return
    raise AssertionError


def test_a_process_that_is_killed_inside_lets_the_others_in(path):
    with child(children.stays_in_it, path) as other:
        assert other.hear() == "in it"
        assert not _enters(path, 0.2)
        other.kill()
        assert free(path)


def test_a_process_that_ends_inside_lets_the_others_in(path):
    with child(children.exits_in_it, path) as other:
        assert other.hear() == "in it"
        other.tell()
        assert other.ends() == 3
        assert free(path)


# Forks.


def _forked(act):
    """Run something in a forked child; return its exit code."""
    pid = os.fork()
    if not pid:
        code = 9
        with suppress(BaseException):
            code = act()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_does_not_have_the_lock_of_its_parent(path):
    """Nor does it let others in, when it leaves or ends."""

    def act():
        manager.__exit__(None, None, None)  # as the child would, coming out of the same block
        return 0

    manager = exclusive_lock(path)
    with manager:
        assert _forked(act) == 0
        assert not _enters(path, 0.2)
    assert free(path)


def test_a_forked_child_does_not_keep_the_others_out(path):
    """The parent leaves while its child lives on."""
    reader, writer = os.pipe()
    with exclusive_lock(path):
        pid = os.fork()
        if not pid:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    try:
        assert free(path)
    finally:
        os.close(writer)
        os.waitpid(pid, 0)
        os.close(reader)


def test_a_forked_child_can_have_the_lock_later(path):
    def act():
        with exclusive_lock(path):
            return 0

    with exclusive_lock(path):
        pass
    assert _forked(act) == 0


# Interrupts.


def _interrupted(path, number):
    """Have the lock for a moment, and press Ctrl-C at some line of it; return whether it came so far."""
    left = number
    rang = False

    def line(_frame, event, _argument):
        nonlocal left, rang
        if event == "line":
            left -= 1
            if left < 0:
                sys.settrace(None)
                rang = True
                raise KeyboardInterrupt
        return line

    def trace(frame, _event, _argument):
        return line if Path(frame.f_code.co_filename).name in {"locks.py", "files.py", "contextlib.py"} else None

    before, error = sys.gettrace(), None
    sys.settrace(trace)
    try:
        with exclusive_lock(path):
            pass
    except KeyboardInterrupt as interrupt:
        error = interrupt  # a caller may keep it, and all that its traceback holds
    finally:
        sys.settrace(before)
    return rang, error


def test_ctrl_c_at_any_line_lets_the_others_in_and_oneself_again(tmp_path):
    number, rang, stuck = 0, True, []
    while rang:
        path = tmp_path / f"{number}.db"
        rang, error = _interrupted(path, number)
        if not free(path):
            stuck.append(f"others at line {number}")
            freed()
        else:
            try:
                with exclusive_lock(path):
                    pass
            except tc.NotAllowed:
                stuck.append(f"oneself at line {number}")
                freed()
        del error
        number += 1
    assert number > 10
    assert stuck == []


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_who_is_interrupted_before_the_block_begins_lets_go_of_it(path):
    """What `exclusive` returned is dropped, and the session keeps nothing of it open."""
    with tc.Session([], tc.Budget(3.0, 1e-6), 0.1, ledger=path) as session:
        session._ledger.exclusive()
        assert free(path)
        with session._ledger.exclusive():
            assert not _enters(path, 0.1)


def test_who_stops_waiting_does_not_speak_for_the_one_it_waited_for(monkeypatch, path):
    """The owner's thread must still be told that it would wait for itself, not hang."""
    entered, told, goes_on = threading.Event(), threading.Event(), threading.Event()

    def owner():
        with exclusive_lock(path):
            entered.set()
            goes_on.wait(SECONDS)
            with suppress(tc.NotAllowed), exclusive_lock(path):
                return
            told.set()

    thread = threading.Thread(target=owner, daemon=True)
    thread.start()
    assert entered.wait(SECONDS)

    def interrupted(file, what):
        if what == fcntl.LOCK_EX:
            raise KeyboardInterrupt
        original(file, what)

    original = fcntl.flock
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", interrupted)
        with pytest.raises(KeyboardInterrupt), exclusive_lock(path):
            pass
    goes_on.set()
    found = told.wait(5.0)
    if not found:
        freed()
    assert found


def test_a_signal_while_waiting_is_heard(path):
    """Who waits can be interrupted."""
    inside, leave = threading.Event(), threading.Event()

    def owner():
        with exclusive_lock(path):
            inside.set()
            leave.wait(SECONDS)

    thread = threading.Thread(target=owner, daemon=True)
    thread.start()
    assert inside.wait(SECONDS)

    def handler(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt), exclusive_lock(path):
            pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        leave.set()
        thread.join(SECONDS)
    assert free(path)
