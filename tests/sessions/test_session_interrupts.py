"""Ctrl-C at every single instruction of the library: nothing is free, nothing hangs, nothing leaks."""

from __future__ import annotations

import sys
import threading

import pytest

from sessions.leaks import DATA, SECRET, lets_out
from sessions.scripted import computes, gives, opened

SECONDS = 10.0


class Interrupter:
    """Raises KeyboardInterrupt before the n-th instruction that the library executes."""

    def __init__(self, number: int, events: str) -> None:
        self.left = number
        self.events = events

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    @property
    def rang(self):
        return self.left < 0

    def trace(self, frame, event, _argument):
        if "/src/targetcharge/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = self.events == "opcode"
        if event == self.events:
            self.left -= 1
            if self.left < 0:
                sys.settrace(self.before)
                raise KeyboardInterrupt
        return self.trace


def hangs(session):
    """Return whether the session can no longer be asked, from this thread or another one."""
    session.test(gives(False))
    other = threading.Thread(target=lambda: session.test(gives(False)), daemon=True)
    other.start()
    other.join(SECONDS)
    return other.is_alive()


CALLS = {
    "ask": (lambda session, _: session.ask_prior(computes(lambda data: data[-1]), 0), 1),
    "miss": (lambda session, _: session.test(gives(False)), 0),
    "release": (lambda session, _: session.release(computes(lambda data: data[-1]), {SECRET}), 1),
    "pend": (lambda session, _: session.release(computes(lambda data: data[-1]), set()), 0),
    "revise": (lambda _, release: release.revise({SECRET}), 1),
    "select": (lambda session, _: session.select([computes(lambda data: (1, data[-1])), gives(2)], k=2), 2),
}


def interrupt_everywhere(start, call, cost, events, step=1):
    """Interrupt a call at its first, second, third … instruction, each time in a fresh session."""
    number = 0
    while True:
        session = start(number)
        release = session.release(computes(lambda data: data[-1]), set())
        error = None
        with Interrupter(number, events) as interrupter:
            try:
                call(session, release)
            except KeyboardInterrupt as interrupt:
                error = interrupt
        session.meters  # noqa: B018 - it can be read at once
        assert not hangs(session), f"at instruction {number}"
        published = [answer for answer in session.transcript if answer.hit]
        assert session.meter.hits >= sum(answer.hit for answer in published), f"at instruction {number}"
        if not interrupter.rang:
            assert session.meter.hits == cost
            session.close()
            return number
        if error is not None and not published:
            assert [found for found in lets_out(error) if found != "variable when"] == [], f"at instruction {number}"
        session.close()
        number += step


@pytest.mark.usefixtures("quick_opening")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_instruction_in_memory(name):
    call, cost = CALLS[name]
    points = interrupt_everywhere(lambda _: opened(data=DATA), call, cost, "opcode", step=3)
    assert points > 300


@pytest.mark.usefixtures("quick_opening")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_line_with_a_file(tmp_path, name):
    call, cost = CALLS[name]
    points = interrupt_everywhere(
        lambda number: opened(data=DATA, ledger=tmp_path / f"{number}.db"), call, cost, "line", step=5
    )
    assert points > 50


def test_ctrl_c_anywhere_around_a_failing_algorithm_lets_nothing_out():
    def broken(data):
        raise ValueError(data[-1])

    number = 0
    while True:
        session = opened(data=DATA)
        with Interrupter(number, "opcode") as interrupter, pytest.raises(BaseException) as caught:  # noqa: PT011
            session.test(computes(broken))
        if not interrupter.rang:
            break
        assert lets_out(caught.value) == [], f"at instruction {number}"
        number += 1
    assert number > 100
