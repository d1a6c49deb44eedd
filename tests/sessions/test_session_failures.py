"""From the first access of the data until publication, whatever happens keeps the reservation spent."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
from tests.sessions.scripted import EPSILON, budget_of, computes, gives, opened

import targetcharge as tc
from targetcharge.ledger import MemoryLedger
from targetcharge.ledger.entries import Spent
from targetcharge.sessions.heart import attempt


class Own(BaseException):
    pass


ERRORS = [
    (ValueError(), tc.ComputationFailed),
    (ZeroDivisionError(), tc.ComputationFailed),
    (TimeoutError(), tc.ComputationFailed),
    (MemoryError(), tc.ComputationFailed),
    (RecursionError(), tc.ComputationFailed),
    (StopIteration(), tc.ComputationFailed),
    (GeneratorExit(), tc.ComputationFailed),
    (Own(), tc.ComputationFailed),
    (CancelledError(), tc.ComputationFailed),
    (tc.NotAllowed("x"), tc.ComputationFailed),
    (tc.LedgerError("x"), tc.ComputationFailed),
    (tc.BudgetSpent("x", asked=1, left=0), tc.ComputationFailed),
    (KeyboardInterrupt(), KeyboardInterrupt),
    (SystemExit(3), SystemExit),
    (asyncio.CancelledError(), asyncio.CancelledError),
]

UNPUBLISHABLE = [math.nan, object(), {}, {1}, frozenset(), 1j, [1, math.nan], (1, (2, {})), np.float64("nan")]


def spent(session):
    return [entry for entry in session._ledger.entries() if isinstance(entry, Spent)]


@pytest.mark.parametrize(("error", "shown"), ERRORS, ids=lambda each: repr(each)[:25])
def test_an_error_of_the_algorithm_keeps_price_and_delta_spent(error, shown):
    session = opened(2, computation_delta=3e-7)
    with pytest.raises(shown):
        session.test(gives(error, delta=1e-7))
    assert session.meter.hits == 1
    assert session.meter.hits_left == 1
    assert session.meter.delta_left == pytest.approx(2e-7)
    assert spent(session) == [Spent("failed", (1,), 1, "scripted")]
    assert len(session.transcript) == 0
    assert session.test(gives(True)).hit


@pytest.mark.parametrize("outcome", UNPUBLISHABLE, ids=lambda each: repr(each)[:20])
def test_an_outcome_that_cannot_be_published_keeps_the_price_spent(outcome):
    session = opened(9)
    calls = [
        lambda: session.ask(gives(outcome), tc.Everything()),
        lambda: session.test(gives(outcome)),
        lambda: session.ask_prior(gives(outcome), 0),
        lambda: session.release(gives(outcome), lambda _: True),
        lambda: session.select([gives(outcome)]),
        lambda: session.select([gives((1, outcome))]),
    ]
    for call in calls:
        with pytest.raises(tc.ComputationFailed):
            call()
    assert session.meter.hits == len(calls)
    assert session.pending == ()


def test_a_failed_selection_spends_the_most_it_could_have_cost():
    session = opened(9, computation_delta=4e-7)
    with pytest.raises(tc.ComputationFailed):
        session.select([gives(1, delta=1e-7), gives(ValueError(), delta=1e-7), gives(3)], k=3)
    assert session.meter.hits == 3
    assert session.meter.delta_left == pytest.approx(2e-7)


def test_a_failed_release_spends_its_price_and_keeps_nothing_pending():
    session = opened()
    with pytest.raises(KeyboardInterrupt):
        session.release(gives(7), lambda _: (_ for _ in ()).throw(KeyboardInterrupt()))
    assert session.meter.hits == 1
    assert session.pending == ()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()], ids=repr)
def test_a_rule_that_is_interrupted_spends_the_whole_selection(error):
    session = opened()
    with pytest.raises(type(error)):
        session.select([gives(1), gives(2)], k=2, stop=lambda _: (_ for _ in ()).throw(error))
    assert session.meter.hits == 2
    assert len(session.transcript) == 0


class Alarm:
    """Send this process a signal from inside the library's caller's code, or after a while."""

    def __init__(self, error):
        self.error = error

    def __enter__(self):
        def handler(_number, _frame):
            raise self.error

        self.before = signal.signal(signal.SIGALRM, handler)
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def ring(self, _value=None):
        os.kill(os.getpid(), signal.SIGALRM)
        time.sleep(0.01)
        return True

    def ring_soon(self, _value=None):
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        while True:
            time.sleep(0.001)


@pytest.mark.parametrize(
    ("error", "shown"), [(TimeoutError(), tc.ComputationFailed), (KeyboardInterrupt(),) * 2], ids=repr
)
@pytest.mark.parametrize("when", ["ring", "ring_soon"])
def test_a_signal_inside_an_algorithm_keeps_the_price_spent(error, shown, when):
    shown = shown if isinstance(shown, type) else type(shown)
    session = opened()
    with Alarm(error) as alarm, pytest.raises(shown):
        session.test(computes(getattr(alarm, when)))
    assert session.meter.hits == 1
    assert session.test(gives(False)).outcome is False


def test_a_timeout_inside_a_condition_counts_as_false_and_ctrl_c_keeps_the_price_spent():
    session = opened()
    with Alarm(TimeoutError()) as alarm:
        assert not session.release(gives(7), alarm.ring_soon).released
    assert session.meter.hits == 0
    with Alarm(KeyboardInterrupt()) as alarm, pytest.raises(KeyboardInterrupt):
        session.pending[0].revise(alarm.ring_soon)
    assert session.meter.hits == 1


def test_ctrl_c_inside_a_rule_keeps_the_price_spent():
    session = opened()
    with Alarm(KeyboardInterrupt()) as alarm, pytest.raises(KeyboardInterrupt):
        session.select([gives(1), gives(2)], k=2, stop=alarm.ring_soon)
    assert session.meter.hits == 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_ctrl_c_while_settling_keeps_the_price_spent(monkeypatch, moment):
    session, settle = opened(), MemoryLedger.settle

    def interrupted(ledger, settlement):
        if moment == "after":
            settle(ledger, settlement)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(MemoryLedger, "settle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.test(gives(True))
    assert session.meter.hits == 1
    assert session.test(gives(False)).outcome is False


def test_a_failure_is_remembered_across_a_restart(tmp_path):
    def start():
        return tc.Session(
            None, budget_of(2, kept=3e-7), EPSILON, ledger=tmp_path / "ledger.db", computation_delta=3e-7
        )

    with start() as session, pytest.raises(tc.ComputationFailed):
        session.test(gives(ValueError(), delta=1e-7))
    with start() as session:
        assert (session.meter.hits, session.meter.hits_left) == (1, 1)
        assert session.meter.delta_left == pytest.approx(2e-7)
        with pytest.raises(KeyboardInterrupt):
            session.test(gives(KeyboardInterrupt()))
    with start() as session, pytest.raises(tc.BudgetSpent):
        session.test(gives(False))


@pytest.mark.parametrize("value", [-(2**4000), 10**5000], ids=["long", "very long"])
def test_a_very_long_integer_does_not_block_the_ledger(tmp_path, value):
    """Python refuses to write long integers in decimal; a miss is written only with the next hit."""
    rare = tc.QTarget(0.4, frozenset({1}))

    def start():
        return tc.Session(None, tc.Budget(9.0, 1e-6), EPSILON, ledger=tmp_path / "ledger.db", targets=rare)

    published = []
    with start() as session:
        try:
            published = [session.ask(gives(value, targets=(rare,)), rare).outcome]
        except tc.ComputationFailed:
            assert session.meter.hits == 1
        assert session.ask(gives(1, targets=(rare,)), rare).hit
    with start() as session:
        assert [answer.outcome for answer in session.transcript] == [*published, 1]


@pytest.mark.parametrize(
    "error",
    [
        tc.InvalidParameter("source", 1, "a file"),
        tc.InvalidQuestion("where", "age >", 5, "a value is missing"),
        tc.BudgetSpent("it is spent", asked=2.0, left=1.0),
        tc.NotAllowed("not here"),
        tc.LedgerError("it cannot be read"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_public_error_keeps_its_class_its_sentence_and_its_values_and_nothing_else(error):
    def fail():
        error.add_note("424242")
        raise error from RuntimeError("424242")

    failure = attempt(fail, public=(tc.TargetChargeError,))
    fresh = failure.error()
    assert (type(fresh), str(fresh), fresh.args) == (type(error), str(error), error.args)
    values = {name: value for name, value in vars(error).items() if name != "__notes__"}
    assert vars(fresh) == values
    assert (fresh.__cause__, fresh.__context__, fresh.__traceback__) == (None, None, None)
