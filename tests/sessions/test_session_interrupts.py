"""Ctrl-C at any moment of a call: nothing is free, nothing hangs, nothing leaks."""

from __future__ import annotations

import gc
import inspect
import sys
import threading

import pytest
from tests.sessions.leaks import DATA, SECRET, lets_out
from tests.sessions.scripted import computes, gives, opened
from tests.sizes import size

SECONDS = 5.0

STRIDE = size(13, 2)
"""With a file only one moment of so many is tried."""


class Interrupter:
    """Raises KeyboardInterrupt at the n-th moment at which Python would let a signal through.

    These are the beginnings and ends of the library's functions, and the ends of those in C that they call. A
    generator is left out: an error of a profiler would skip its handlers, a signal does not.
    """

    def __init__(self, number: int) -> None:
        self.left = number

    def __enter__(self):
        gc.disable()  # what is collected meanwhile is not part of the call
        self.before = sys.getprofile()
        sys.setprofile(self.profile)
        return self

    def __exit__(self, *_):
        sys.setprofile(self.before)
        gc.enable()

    @property
    def rang(self):
        return self.left < 0

    def profile(self, frame, event, _argument):
        code = frame.f_code
        ours = "/src/targetcharge/" in code.co_filename
        skipped = event == "c_call" or (event in {"call", "return"} and code.co_flags & inspect.CO_GENERATOR)
        if not ours or skipped:
            return
        self.left -= 1
        if self.left < 0:
            sys.setprofile(self.before)
            raise KeyboardInterrupt


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


def interrupt_everywhere(start, call, cost, stride=1):
    """Interrupt a call at its first, second, third … moment, each time in a fresh session."""
    number = 0
    while True:
        session = start(number)
        release = session.release(computes(lambda data: data[-1]), set())
        error = None
        with Interrupter(number) as interrupter:
            try:
                call(session, release)
            except KeyboardInterrupt as interrupt:
                error = interrupt
        session.meters  # noqa: B018 - it can be read at once
        assert not hangs(session), f"at moment {number}"
        published = [answer for answer in session.transcript if answer.hit]
        seqs = [answer.seq for answer in session.transcript]
        assert seqs == sorted(set(seqs)), f"at moment {number}"
        assert session.meter.hits >= sum(answer.hit for answer in published), f"at moment {number}"
        if not interrupter.rang:
            assert session.meter.hits == cost
            session.close()
            return number
        if error is not None and not published:
            assert [found for found in lets_out(error) if found != "variable when"] == [], f"at moment {number}"
        session.close()
        number += stride


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_moment_in_memory(name):
    assert interrupt_everywhere(lambda _: opened(data=DATA), *CALLS[name]) > 40


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_moment_with_a_file(tmp_path, name):
    call, cost = CALLS[name]
    moments = interrupt_everywhere(
        lambda number: opened(data=DATA, ledger=tmp_path / f"{number}.db"), call, cost, STRIDE
    )
    assert moments > 40


def interrupted_failure(number):
    """Return what came out of an algorithm that breaks, interrupted, and whether the interrupt came in time."""

    def broken(data):
        raise ValueError(data[-1])

    with opened(data=DATA) as session, Interrupter(number) as interrupter:
        try:
            session.test(computes(broken))
        except BaseException as error:  # noqa: BLE001 - any error at all is looked through for the secret
            sys.setprofile(None)
            return lets_out(error), interrupter.rang
    raise AssertionError


def test_ctrl_c_anywhere_around_a_failing_algorithm_lets_nothing_out():
    number, rang = -1, True
    while rang:
        number += 1
        found, rang = interrupted_failure(number)
        assert found == [], f"at moment {number}"
    assert number > 40
