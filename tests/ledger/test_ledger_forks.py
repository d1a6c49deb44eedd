"""Forks: a child cannot use its parent's session, hurt it, or keep it alive."""

import ast
import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.ledger import children
from tests.ledger.asking import crash, hits, no, opened, spent, yes
from tests.ledger.processes import child

import targetcharge as tc
from targetcharge.ledger.sqlite import inspect, verify
from targetcharge.ledger.sqlite.database import Database


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.mark.parametrize("ending", ["exit", "collect", "now"])
def test_a_forked_child_is_refused_and_the_parent_goes_on(path, ending):
    with child(children.forks_and_goes_on, path, ending) as parent:
        *used, closed, reopened = ast.literal_eval(parent.hear())
        assert [kind for kind, _ in used] == ["NotAllowed"] * 4
        assert closed[0] in ("NotAllowed", "answered")
        assert reopened[0] == "NotAllowed"
        assert "'spawn' or 'forkserver'" in reopened[1]
        assert parent.hear() == ("answered", True)
        assert parent.hear(), "the child took the log with it"
        assert parent.hear() == ("answered", True)
    with opened(path) as session:
        assert len(hits(session)) == 3
    verify(path)


def test_an_answer_that_was_forked_is_published_once(path):
    with child(children.forks_in_a_computation, path) as parent:
        assert parent.hear()[:2] == ("child", "NotAllowed")
        assert parent.hear() == ("parent", "answered", True)
        assert parent.hear() == ("answered", True)
        parent.ends()
    with opened(path) as session:
        assert (len(hits(session)), session.meter.hits) == (2, 2)
    verify(path)


def test_a_child_that_outlives_a_killed_parent_does_not_keep_its_reservation(path):
    with child(children.forks_and_is_killed, path) as parent:
        orphan = parent.hear()
        try:
            parent.kill()
            with opened(path, 1) as session:
                assert [entry.why for entry in spent(session)] == ["abandoned"]
                with pytest.raises(tc.BudgetSpent):
                    session.test(yes)
        finally:
            os.kill(orphan, signal.SIGKILL)


@pytest.mark.parametrize("kind", ["neighbour", "witness"])
def test_a_child_forked_while_a_lock_is_held_does_not_keep_it(path, kind):
    with opened(path, 2) as session, ThreadPoolExecutor() as pool:
        session.test(no)
        with child(children.forks_while_it_takes, path, kind) as process:
            orphan = process.hear()
            try:
                assert pool.submit(session.test, yes).result(10).hit
            finally:
                os.kill(orphan, signal.SIGKILL)


@pytest.mark.parametrize(
    ("where", "says", "charged"),
    [
        ("of the first reservation", True, 0),
        ("of a hit", True, 1),
        ("of a failure", True, 1),
    ],
)
@pytest.mark.parametrize("capacity", [6, 15])
def test_an_interrupt_right_after_a_commit_loses_no_charge_and_doubles_none(path, where, says, charged, capacity):
    with child(children.interrupts, path, where, capacity, says) as process:
        assert process.hear() == "interrupted"
        held, written = process.hear()
        assert held <= written, "the session thinks it holds more than the file says"
        assert process.hear() == charged
        process.ends()
    with opened(path, capacity) as session:
        assert session.meter.hits == charged


def test_an_interrupt_right_after_the_last_hit_charges_no_more_than_the_budget(path):
    with child(children.interrupts, path, "of a hit", 1, True) as process:
        assert process.hear() == "interrupted"
        process.ends()
    with opened(path, 1) as session:
        assert (session.meter.hits, session.meter.hits_left) == (1, 0)


def test_a_second_interrupt_does_not_lose_the_charge_of_the_first(path, monkeypatch):
    """Ctrl-C in the computation, and again while it is being written down."""

    @tc.private(epsilon=0.01)
    def interrupted(_):
        raise KeyboardInterrupt

    with opened(path) as session:
        session.test(no)
        commit = session._ledger._transactions.commit
        monkeypatch.setattr(session._ledger._transactions, "commit", _raises)
        with pytest.raises(KeyboardInterrupt):
            session.test(interrupted)
        monkeypatch.setattr(session._ledger._transactions, "commit", commit)
        assert not session.test(no).hit
        assert (session.meter.hits, [entry.why for entry in spent(session)]) == (1, ["failed"])


def test_what_an_interrupted_call_has_yet_to_pay_with_is_not_taken(path, monkeypatch):
    """Interrupted twice, and then killed: the reservation is spent, also where another session wants it."""

    @tc.private(epsilon=0.01)
    def interrupted(_):
        monkeypatch.setattr(session._ledger._transactions, "commit", _raises)
        raise KeyboardInterrupt

    session = opened(path, 1)
    with pytest.raises(KeyboardInterrupt):
        session.test(interrupted)
    with opened(path, 1) as other, ThreadPoolExecutor() as pool:
        waiting = pool.submit(other.test, yes)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        crash(session)
        with pytest.raises(tc.BudgetSpent):
            waiting.result(10)
        assert [entry.why for entry in spent(other)] == ["abandoned"]


@pytest.fixture
def loses_a_reply(monkeypatch):
    """Return what makes the next COMMIT succeed without anybody hearing of it."""
    transaction = Database.transaction

    @contextmanager
    def lost(self):
        with transaction(self):
            yield
        monkeypatch.setattr(Database, "transaction", transaction)
        msg = "disk I/O error"
        raise sqlite3.OperationalError(msg)

    return lambda: monkeypatch.setattr(Database, "transaction", lost)


def test_a_hit_whose_commit_got_no_reply_is_looked_up_published_and_charged_once(path, loses_a_reply):
    with opened(path) as session:
        session.test(no)
        loses_a_reply()
        assert session.test(yes).hit
        assert (session.meter.hits, len(hits(session))) == (1, 1)
        assert session.test(yes).hit
    assert verify(path) == 3


def test_a_reservation_whose_commit_got_no_reply_is_not_taken_for_a_larger_one(path, loses_a_reply):
    score = tc.private(epsilon=0.01)(lambda _: 1)
    with opened(path, 15) as session:
        assert len(session.select([score] * 3, k=3)) == 3
        ledger = session._ledger
        while ledger._transactions.session.block.left:  # as after a thousand questions
            ledger.next_seq()
        loses_a_reply()
        with pytest.raises(tc.LedgerError):
            session.test(no)
        assert ledger._transactions.session.held.count <= inspect(path).held.count == 1
        assert len(session.select([score] * 3, k=3)) == 3
        assert session.meter.hits == 6


def _raises(*_, **__):
    raise KeyboardInterrupt
