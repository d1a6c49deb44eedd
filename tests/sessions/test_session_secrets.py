"""Nothing of the data leaves but what is published: not through errors, rules, conditions or looks."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from tests.sessions.leaks import DATA, SECRET, chain, lets_out
from tests.sessions.scripted import computes, gives, opened

import targetcharge as tc
from targetcharge.ledger import MemoryLedger, SqliteLedger
from targetcharge.mechanisms.batch import Drawn


def spill(kind):
    """Return an algorithm that raises an error full of the data."""

    def run(data):
        word = data[-1]
        try:
            int(word)
        except ValueError as error:
            found = kind(word, word) if kind is tc.InvalidParameter else kind(word)
            found.add_note(word)
            raise found from error

    return computes(run)


def budget_spent(word):
    return tc.BudgetSpent(word, asked=1.0, left=0.0)


def invalid(word):
    return tc.InvalidParameter("data", word, word)


class Own(BaseException):
    pass


ERRORS = [
    ValueError,
    TimeoutError,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    asyncio.CancelledError,
    StopIteration,
    Own,
    tc.NotAllowed,
    tc.LedgerError,
    budget_spent,
    invalid,
]

CALLS = {
    "ask": lambda session, algorithm: session.ask(algorithm, tc.NotPrior(0)),
    "test": lambda session, algorithm: session.test(algorithm),
    "ask_prior": lambda session, algorithm: session.ask_prior(algorithm, 0),
    "release": lambda session, algorithm: session.release(algorithm, {0}),
    "select": lambda session, algorithm: session.select([gives(1), algorithm]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_an_error_of_the_algorithm_lets_nothing_out(kind, call):
    session = opened(data=DATA)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any error at all is looked through for the secret
        call(session, spill(kind))
    error = caught.value
    assert lets_out(error) == []
    assert list(chain(error)) == [error]
    assert type(error) in {tc.ComputationFailed, KeyboardInterrupt, SystemExit, asyncio.CancelledError}
    assert session.meter.hits == 1
    assert SECRET not in repr(list(session._ledger.entries()))


def test_the_search_does_find_what_a_careless_session_would_let_out():
    def careless(data):
        word = data[-1]
        raise ValueError(word)

    def session(*, suppressed):
        try:
            careless(DATA)
        except ValueError:
            if suppressed:
                raise tc.ComputationFailed from None
            raise tc.ComputationFailed  # noqa: B904 - a careless algorithm, whose context must not get out

    for suppressed in (False, True):
        with pytest.raises(tc.ComputationFailed) as caught:
            session(suppressed=suppressed)
        assert lets_out(caught.value) == ["ValueError's text"]


def test_the_exit_code_of_an_algorithm_is_not_shown():
    with pytest.raises(SystemExit) as caught:
        opened(data=42).test(computes(lambda data: (_ for _ in ()).throw(SystemExit(data))))
    assert caught.value.code == 1


class Grudging(tuple):
    """A value whose equality, hash, length and looks all raise an error with the secret in it."""

    __slots__ = ()

    def __iter__(self):
        raise ValueError(SECRET)

    __eq__ = __hash__ = __len__ = __repr__ = __iter__


def test_an_outcome_that_breaks_when_it_is_looked_at_lets_nothing_out():
    for call in CALLS.values():
        session = opened(data=DATA)
        with pytest.raises(tc.ComputationFailed) as caught:
            call(session, gives(Grudging((1,))))
        assert lets_out(caught.value) == []


@pytest.mark.parametrize("ledger", [MemoryLedger, SqliteLedger])
@pytest.mark.parametrize(
    "error", [tc.LedgerError("disk"), KeyboardInterrupt(SECRET), MemoryError(SECRET)], ids=repr
)
@pytest.mark.parametrize("name", ["ask", "ask_prior", "release", "select", "revise"])
def test_a_ledger_that_fails_to_settle_lets_no_outcome_out(monkeypatch, tmp_path, ledger, error, name):
    session = opened(data=DATA, ledger=tmp_path / "l.db" if ledger is SqliteLedger else ":memory:")
    pending = session.release(computes(lambda data: data[-1]), set())

    def settle(_ledger, settlement):
        assert SECRET in repr(settlement)
        raise error

    monkeypatch.setattr(ledger, "settle", settle)
    algorithm = computes(lambda data: (1, data[-1]))
    calls = {**CALLS, "revise": lambda *_: pending.revise(lambda _: True)}
    if name == "release":
        calls["release"] = lambda session, algorithm: session.release(algorithm, lambda _: True)
    if name == "select":
        calls["select"] = lambda session, algorithm: session.select([algorithm])
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any error at all is looked through for the secret
        calls[name](session, algorithm)
    assert lets_out(caught.value) == []
    assert list(chain(caught.value)) == [caught.value]
    assert session.meter.hits == 1
    session.close()


def test_a_refused_revision_does_not_show_the_pending_value():
    session = opened(1, data=DATA)
    release = session.release(computes(lambda data: data[-1]), set())
    session.test(gives(True))
    with pytest.raises(tc.BudgetSpent) as caught:
        release.revise(lambda _: True)
    assert lets_out(caught.value) == []


def reachable(value):
    """Return all that can be reached from a value, except through types, modules and code."""
    waiting, seen = [value], {}
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, type) and type(each).__name__ not in {"module", "code"}:
            seen[id(each)] = each
            waiting += gc.get_referents(each)
    return list(seen.values())


def test_a_rule_can_reach_nothing_but_what_was_released():
    seen = []

    def stop(*arguments, **named):
        seen.append([each for each in reachable([arguments, named]) if isinstance(each, str | tc.Answer)])

    candidates = [gives((score, f"secret {score}")) for score in (5, 3, 9, 1)]
    opened().select(candidates, k=3, stop=stop)
    words = [
        sorted(word for word in found if isinstance(word, str) and word.startswith("secret")) for found in seen
    ]
    assert words == [["secret 9"], ["secret 5", "secret 9"]]
    assert [sum(isinstance(each, tc.Answer) for each in found) for found in seen] == [1, 2]


def test_a_condition_can_reach_nothing_but_its_value():
    seen = []
    session = opened(data=DATA)
    session.release(gives("first"), set())
    session.release(gives("second"), lambda *values, **named: seen.append(reachable([values, named])))
    assert [each for each in seen[0] if isinstance(each, str) and each in {"first", "second", SECRET}] == [
        "second"
    ]


def test_a_condition_cannot_change_what_is_published():
    def when(value):
        with pytest.raises((TypeError, AttributeError)):
            value[0] = "changed"
        return True

    assert opened().release(gives(["a", "b"]), when).outcome == ("a", "b")


def test_nothing_shows_the_data_or_a_pending_value():
    session = opened(data=DATA)
    release = session.release(computes(lambda data: data[-1]), set())
    kept = session._ledger.pending_outcome(release.seq)
    shown = [session, release, session.transcript, session.pending, kept, list(session.transcript), session.meter]
    assert kept.outcome == SECRET
    for each in (*shown, session._prices, session._ledger, session._turn):
        assert SECRET not in repr(each)
        assert SECRET not in str(each)
    assert "row one" not in repr(shown)


def test_what_a_batch_has_drawn_and_not_published_is_not_shown():
    drawn = Drawn((None, SECRET), np.array([0, 1]), np.array([False, True]))
    assert [repr(drawn), str(drawn)] == ["<outcomes of 2 questions>"] * 2


def test_a_damaged_pending_value_lets_nothing_out(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(data=DATA, ledger=path) as session:
        seq = session.release(computes(lambda data: data[-1]), set()).seq
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE pending SET body = replace(body, '}', ',')")
        with pytest.raises(tc.LedgerError, match="damaged or changed") as caught:
            session.revise(seq, {1})
        assert lets_out(caught.value) == []
        assert list(chain(caught.value)) == [caught.value]
