"""Nothing about who or how many have spent their budgets is seen: in texts, refusals, errors or files."""

from __future__ import annotations

import dataclasses
import random
import threading

import numpy as np
import pandas as pd
import pytest
from tests.sessions.leaks import SECRET, chain, frames, lets_out
from tests.tables.individuals import counters, opened
from tests.tables.naive_units import random_rows, replayed, table_of
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.engines.engine import Contributions
from targetcharge.ledger.entries import Pending, answers_in, entry_of, text_of
from targetcharge.tables.individual import unit_meters
from targetcharge.tables.individual.contributors import Drawn
from targetcharge.tables.individual.counters import Counters

PRIVATE = (Counters, Drawn, Contributions, np.ndarray)
"""What no frame of an error's traceback may hold."""

FRAME = pd.DataFrame({"unit": [f"{SECRET} {number}" for number in range(20)], "week": [0, 1] * 10, "fee": 1.5})


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


# Refusals.

REFUSED = {
    "dear": lambda t: t.count(epsilon=9.0),
    "dear watch": lambda t: t.watch(None, "week", [0], 1, epsilon=0.9),
    "dear top": lambda t: t.top(None, "week", [0, 1], 2, epsilon=0.9),
    "distinct": lambda t: t.distinct_above("week", 3),
    "column": lambda t: t.count("nothing = 1"),
    "keys": lambda t: t.watch(None, "week", [0, 0], 1),
    "k": lambda t: t.top(None, "week", [0, 1], 3),
    "band": lambda t: t.between(None, 5, 6),
    "columns": lambda t: t.append(pd.DataFrame({"unit": ["x"], "week": ["y"]})),
    "no release": lambda t: t._session.revise(99, lambda _: True),
}


def refused(t, ask):
    with pytest.raises(tc.errors.TargetChargeError) as refusal:
        ask(t)
    error = refusal.value
    assert lets_out(error) == []
    return type(error), str(error), error.args, {name: repr(value) for name, value in vars(error).items()}


@pytest.mark.parametrize("ask", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_a_refusal_is_the_same_whether_nobody_or_everybody_is_spent(monkeypatch, meter, ask):
    silence(monkeypatch)
    found = []
    for where in ("week = 77", None):  # the same is published about nobody, and about everybody
        with opened(FRAME, 2, meter=meter) as t:
            for _ in range(3):
                t.count(where)
            assert set(counters(t)) == ({0} if where else {max(counters(t))})
            described = dataclasses.replace(t.describe(), may_have_left=0)  # that is told from what was published
            shown = repr(t), str(t), repr(t.meter), repr(described), repr(t.meter.odometer()), t.meter.hits_left
            found.append((refused(t, ask), shown, t.meter.hits, len(t.transcript)))
    assert found[0] == found[1]


# What is seen.


def test_nothing_that_is_printed_tells_of_units(monkeypatch, place):
    silence(monkeypatch)
    with opened(FRAME, 2, ledger=place) as t:
        t.count(), t.top(None, "week", [0, 1], 1), t.release(None, lambda _: False)
        made = t._numbers._last, t._numbers, t._numbers._counters, t._numbers._charges, t
        for each in (t, t.meter, t.transcript, t.describe(), t.pending, *t.transcript, *made):
            for text in (repr(each), str(each), f"{each}"):
                assert SECRET not in text
                assert "array(" not in text
                assert "spent=" not in text
        assert SECRET not in repr(vars(t))
        assert "array(" not in repr(vars(t))
        assert all(SECRET not in repr(dataclasses.asdict(answer)) for answer in t.transcript)
    if place != ":memory:":
        for file in place.parent.rglob("*"):
            assert not file.is_file() or SECRET.encode() not in file.read_bytes()


# Errors.


def broken(kind):
    def fails(*_):
        raise kind(SECRET)

    return fails


def holders(error):
    return [
        (name, type(value).__name__)
        for each in chain(error)
        for variables in frames(each)
        for name, value in variables.items()
        if isinstance(value, PRIVATE)
    ]


ASKED = {
    "count": lambda t: t.count(),
    "watch": lambda t: t.watch(None, "week", [0, 1], 1),
    "many": lambda t: t.ask_many([tc.questions.above(None, 1)] * 2),
    "top": lambda t: t.top(None, "week", [0, 1], 1),
    "release": lambda t: t.release(None, lambda _: True),
    "opening": lambda t: opened(FRAME, 3, ledger=t),
}


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, MemoryError, SystemExit])
@pytest.mark.parametrize("where", ["contributions", "pay", "sums"])
@pytest.mark.parametrize("asked", ASKED)
def test_an_error_lets_nothing_out(monkeypatch, tmp_path, asked, where, kind):
    silence(monkeypatch)
    path = tmp_path / "ledger.db"
    with opened(FRAME, 3, ledger=path) as t:
        t.count("week = 0")
        with monkeypatch.context() as patch:
            if where == "contributions":
                patch.setattr(DuckDBEngine, "contributions", broken(kind))
                patch.setattr(DuckDBEngine, "contributions_by", broken(kind))
            elif where == "pay":
                patch.setattr(unit_meters, "_pay", broken(kind))
            else:
                patch.setattr(Drawn, "_added", broken(kind))
            if (asked, where) == ("opening", "sums"):
                return  # nothing is added up there
            with pytest.raises(BaseException) as failure:  # noqa: PT011 - any: what it lets out is looked at
                ASKED[asked](path if asked == "opening" else t)
        error = failure.value
        assert set(lets_out(error)) <= {"variable source"}  # what the owner opens, in the owner's own call
        assert holders(error) == []
        expected = kind if not issubclass(kind, Exception) else tc.errors.TargetChargeError
        assert isinstance(error, expected)
        t.count()  # goes on


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_closing_lets_nothing_out_and_what_is_not_saved_is_made_again(monkeypatch, tmp_path, kind):
    path = tmp_path / "ledger.db"
    t = opened(FRAME, 3, ledger=path)
    t.count("week = 0")
    with monkeypatch.context() as patch:
        patch.setattr(unit_meters, "_pay", broken(kind))
        if kind is ValueError:
            t.close()
        else:
            with pytest.raises(KeyboardInterrupt) as failure:
                t.close()
            assert lets_out(failure.value) == holders(failure.value) == []
    with opened(FRAME, 3, ledger=path) as t:
        assert sorted(counters(t)) == [0] * 10 + [1] * 10


# Conditions and rules, threads.


def timely(act, seconds=60):
    """Do something that must not hang."""
    found = []

    def run():
        try:
            found.append(act())
        except BaseException as error:  # noqa: BLE001 - told to the test
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def test_a_condition_that_asks_another_table_on_the_ledger_does_not_hang(tmp_path):
    path, inside = tmp_path / "ledger.db", []
    with opened(FRAME, 3, ledger=path) as t, opened(FRAME, 3, ledger=path) as other:

        def when(_):
            try:
                other.count()
            except tc.NotAllowed as error:
                inside.append(str(error))
                raise
            return True

        with pytest.raises(tc.InvalidParameter, match="inside a condition or rule"):
            timely(lambda: t.release(None, when))
        with pytest.raises(tc.InvalidParameter, match="inside a condition or rule"):
            timely(lambda: t.top(None, "week", [0, 1], 2, stop=when))
        assert len(inside) > 2
        assert all("inside a condition or rule" in each for each in inside)
        timely(other.count)
        assert counters(other) == counters(t)


@pytest.mark.parametrize("tables", [1, 3])
def test_threads_take_turns_and_the_counters_are_those_of_the_ledger(tmp_path, tables):
    rows = [random_rows(random.Random(4), 20, 60)]
    path = tmp_path / "ledger.db"
    opened_ones = [opened(table_of(rows[0]), 7, meter="renyi", ledger=path) for _ in range(tables)]

    def work(seed):
        rng = random.Random(seed)
        t = opened_ones[seed % tables]
        watch = t.iter_watch(None, "week", [0, 1, 2, 3], 3)
        for _ in range(5):
            next(watch, None)
            t.above(rng.choice([None, "week = 0"]), 2, epsilon=0.03)

    def all_of_them():
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return True

    timely(all_of_them, 120)
    for t in opened_ones:
        assert counters(t) == replayed(t, rows)
    for t in opened_ones:
        t.close()


# What is kept.


def test_what_is_asked_and_the_snapshot_come_back_from_text(monkeypatch):
    silence(monkeypatch)
    with opened(FRAME, 9) as t:
        t.watch(None, "week", [0, 1], 5), t.top(None, "week", [1, 0], 2), t.release("week = 0", lambda _: False)
        for entry in t._session._ledger.entries():
            assert entry_of(text_of(entry)) == entry
            assert {answer.snapshot for answer in answers_in(entry)} == {1}
        (waiting,) = t._session._ledger.pending()
        kept = t._session._ledger.pending_outcome(waiting)
        assert kept.snapshot == 1
        assert Pending.of(kept.text()) == kept
        assert "10" not in repr(kept).partition("outcome")[2]
