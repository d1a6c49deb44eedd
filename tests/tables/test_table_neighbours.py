"""Every error and everything that is shown is the same, byte for byte, with and without one more unit."""

from __future__ import annotations

import functools
import itertools
import shutil
from pathlib import Path

import duckdb
import pytest
from tests.sessions.leaks import lets_out
from tests.tables import mistakes, visits
from tests.tables.anew import anew
from tests.tables.looking import look
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.sessions import gap
from targetcharge.tables import questions as q

BUDGET = tc.Budget(3.0, 1e-6)
KINDS = ["arrow", "polars", "pandas", "parquet", "csv", "duckdb"]
FILES = ["parquet", "csv", "duckdb"]
FAR = 10**9
ONES = "kind = 'a'"
"""What the one more unit has no rows of."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    """Drawn no noise, at one and the same time, in one and the same folder."""
    silence(monkeypatch)
    monkeypatch.setattr("targetcharge.sessions.session.time.time", lambda: 1.0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def opening(kind, made, **options):
    """Open a table with what it needs, and options."""
    plain = {"unit": "patient", "budget": BUDGET, "query_epsilon": 0.1, "meter": "exact", "ledger": ":memory:"}
    plain |= {"types": visits.TYPES} if kind == "csv" else {"types": {"day": "date"}} if kind == "pandas" else {}
    return tc.open(made, **(plain | options))


def twice(monkeypatch, tmp_path, kind, see):
    """Return what is seen of a table, and of its neighbour, in a folder of the same name; by name."""
    found = []
    for more in (False, True):
        folder = tmp_path / "here"
        (folder / "empty").mkdir(parents=True)
        (folder / "notes.txt").write_text("no table")
        monkeypatch.chdir(folder)
        found.append(dict(see(kind, visits.source(kind, more=more))))
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / "state", ignore_errors=True)
    return found


def compare(first, second):
    assert list(first) == list(second)
    different = [name for name, (text, _) in first.items() if text != second[name][0]]
    for name in different:
        assert first[name][0] == second[name][0], name


def check_ours(found, *kinds):
    """Check that each was refused with one of our own errors, of these kinds."""
    others = {name: text for name, (text, error) in found.items() if not isinstance(error, kinds)}
    assert others == {}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_does_not_open(monkeypatch, tmp_path, kind):
    def see(kind, made):
        for name, options in mistakes.OPENING.items():
            yield name, look(lambda options=options: opening(kind, made, **options))
        for name, wrong in mistakes.SOURCES.items():
            yield f"source: {name}", look(lambda wrong=wrong: opening(kind, wrong))

    first, second = twice(monkeypatch, tmp_path, kind, see)
    compare(first, second)
    check_ours(first, tc.InvalidParameter, tc.EngineError, tc.LedgerError)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_not_asked(monkeypatch, tmp_path, kind):
    def see(kind, made):
        with opening(kind, made) as t:
            for name, call in mistakes.asked():
                yield name, look(lambda call=call: call(t))
            yield "charged", look(lambda: (t.meter.totals, len(t.transcript)))

    first, second = twice(monkeypatch, tmp_path, kind, see)
    compare(first, second)
    first.pop("charged")
    check_ours(first, tc.InvalidParameter, tc.Refused)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mistake_is_never_charged(monkeypatch, tmp_path, kind):
    monkeypatch.chdir(tmp_path)
    with opening(kind, visits.source(kind, more=True)) as t:
        for _, call in mistakes.asked():
            look(lambda call=call: call(t))
        assert (t.meter.hits, len(t.transcript), t.pending) == (0, 0, ())


def shows(t):
    """Yield what a table shows of itself, and answers that cost nothing."""
    yield "table", lambda: t
    yield "describe", t.describe
    yield "meter", lambda: (t.meter, t.meter.totals, t.meter.guarantee, t.meter.odometer())
    yield "transcript", lambda: (t.transcript, list(t.transcript), t.pending)
    for name, question in asked_of_all().items():
        yield f"preview: {name}", lambda question=question: t.preview(question)
        yield f"answer: {name}", lambda question=question: t.ask(question)
    yield "many", lambda: t.ask_many([question for question in asked_of_all().values() if not has_keys(question)])
    yield "lazy", lambda: list(t.iter_watch(None, "kind", ["a", "", "NULL", visits.STRANGE], FAR))
    yield "release", lambda: t.release(None, {FAR})
    yield "revise", lambda: [release.revise({-FAR}) for release in t.pending]
    yield "at the end", lambda: (t.transcript, list(t.transcript), t.pending, t.meter, t)


def has_keys(question):
    return isinstance(question, q.Watch | q.Top)


@functools.cache
def asked_of_all():
    """Return questions that hit nothing, on either table."""
    texts = ["a", "b", "", "NULL", "it's", visits.STRANGE]
    sums = [
        q.sum("weight", -(10**9), 10**9),
        q.sum("age", 0, 10, grid=5),
        q.sum("weight", 1, 2, grid="0.01"),
    ]
    found = [
        q.above(None, FAR),
        q.above("weight > 1e300 OR age < 0 OR late IS NULL", FAR),
        *(q.above(each, 10**12) for each in sums),
        q.above(q.distinct("kind"), 10**5),
        q.above(q.distinct("weight", per_unit=3), 10**5),
        q.count("age > 9000000000000000000", prior=0, tolerance=100),
        q.above(None, 5, prior=40, tolerance=1000),
        q.watch(None, "kind", texts, FAR),
        q.watch(sums[0], ["kind", "late"], [(each, late) for each in texts for late in (True, False)], 10**12),
        q.watch(None, "at", tc.days("0001-01-01", "0001-02-01"), FAR),
        q.watch(None, "day", ["0001-01-01", "9999-12-31"], FAR),
        q.watch(None, "weight", [0, -1, 1.7e308], FAR),
        q.top(None, "kind", texts, 3, threshold=FAR),
    ]
    return {f"{place}": question for place, question in enumerate(found)}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_shown_and_whatever_costs_nothing(monkeypatch, tmp_path, kind):
    def see(kind, made):
        with opening(kind, made) as t:
            for name, call in shows(t):
                yield name, look(call)

    first, second = twice(monkeypatch, tmp_path, kind, see)
    compare(first, second)
    assert {name: text for name, (text, error) in first.items() if error} == {}


def spending(t):
    """Yield questions until the budget is spent in the middle of a watch, and what comes after it."""
    yield "watch", lambda: t.watch(None, "kind", ["a", "nobody", "b", "none"], 5)
    yield "top", lambda: t.top(ONES, "kind", ["a", "b"], 1, stop=gap(3))
    yield "stopping rule", lambda: t.top(ONES, "kind", ["a", "b"], 2, stop=lambda _: "high")
    yield "pending", lambda: t.release(ONES, set())
    while t.meter.hits_left > 1:
        t.count(ONES)
    yield "to the end", lambda: t.watch(ONES, "kind", ["none", "a", "b", "nobody"], -5)
    yield "meter", lambda: (t.meter, t.meter.totals)
    for name, call in CALLS.items():
        yield f"after it: {name}", lambda call=call: call(t)
    yield "revise", lambda: t.pending[0].revise({5})
    yield "transcript", lambda: list(t.transcript)


CALLS = {
    "above": lambda t: t.above(ONES, 5),
    "count": lambda t: t.count(ONES),
    "changed": lambda t: t.count(ONES, prior=5, tolerance=0),
    "sum": lambda t: t.sum_above("age", 0, 9, threshold=5),
    "distinct": lambda t: t.distinct_above("age", 5),
    "watch": lambda t: t.watch(None, "kind", ["a"], 5),
    "lazy": lambda t: t.iter_watch(None, "kind", ["a"], 5).all(),
    "top": lambda t: t.top(None, "kind", ["a", "b"]),
    "many": lambda t: t.ask_many([q.above(None, 5), q.count(None)]),
    "release": lambda t: t.release(None, {5}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_a_budget(monkeypatch, tmp_path, kind):
    def see(kind, made):
        with opening(kind, made) as t:
            for name, call in spending(anew(t)):
                yield name, look(call)

    first, second = twice(monkeypatch, tmp_path, kind, see)
    compare(first, second)
    after = {name.removeprefix("after it: "): seen for name, seen in first.items() if name.startswith("after it")}
    assert len(after) == len(CALLS)
    several = {name: after.pop(name) for name in ("watch", "lazy", "top", "many")}
    check_ours(after, tc.BudgetSpent)
    for name, (text, error) in several.items():
        assert error is None, name
        assert "does not cover it" in text, name


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_that_fails_with_the_data_in_its_words(monkeypatch, tmp_path, kind):
    def fails(engine, *_):
        rows = engine._table.link.raw.execute("SELECT * FROM data").fetchall()
        msg = f"Conversion Error: {rows}"
        raise duckdb.Error(msg)

    def tells_too_much(engine, *_):
        return [row[0] for row in engine._table.link.raw.execute("SELECT patient FROM data").fetchall()]

    def see(kind, made):
        for way in (fails, tells_too_much):
            with opening(kind, made, budget=tc.Budget(30.0, 1e-6)) as t, monkeypatch.context() as patched:
                patched.setattr(DuckDBEngine, "measure", way)
                patched.setattr(DuckDBEngine, "measure_by", way)
                for name, call in CALLS.items():
                    yield f"{way.__name__} {name}", look(lambda t=t, call=call: call(t))
                    yield f"{way.__name__} {name}, charged", look(lambda t=t: (t.meter, list(t.transcript)))

    first, second = twice(monkeypatch, tmp_path, kind, see)
    compare(first, second)
    broken = {name: seen for name, seen in first.items() if name.startswith("fails") and "charged" not in name}
    check_ours(broken, tc.ComputationFailed)
    assert not any("p1" in text for text, _ in broken.values())
    assert not any(lets_out(error, "p17") for _, error in broken.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_closed(monkeypatch, tmp_path, kind):
    def see(kind, made):
        t = opening(kind, made)
        lazy = t.iter_watch(None, "kind", ["a", "b"], 5)
        t.close()
        for name, call in CALLS.items():
            yield name, look(lambda call=call: call(t))
        yield "lazy, begun before", look(lambda: next(lazy))
        yield "again", look(t.close)
        yield "shown", look(lambda: (t, t.describe()))

    first, second = twice(monkeypatch, tmp_path, kind, see)
    compare(first, second)
    check_ours({name: first[name] for name in (*CALLS, "lazy, begun before")}, tc.NotAllowed)


def change(path):
    """Write a file anew, with what it held."""
    whole = Path(path).read_bytes()
    Path(path).unlink()
    Path(path).write_bytes(whole)


@pytest.mark.parametrize("kind", FILES)
def test_files_and_ledgers_that_are_not_what_they_were(monkeypatch, tmp_path, kind):
    def see(kind, made):
        ledger, own = Path(made + ".ledger.db"), {"ledger": None}
        with opening(kind, made, **own) as t:
            yield "first", look(lambda: t.above(None, FAR))
        others = {
            "unit": {"unit": "kind"},
            "rows": {"unit": tc.ROW},
            "budget": {"budget": tc.Budget(2.0, 1e-6)},
            "epsilon": {"query_epsilon": 0.05},
            "meter": {"meter": "renyi"},
        }
        for name, options in others.items():
            yield f"other {name}", look(lambda options=options: opening(kind, made, **(own | options)))
        note = Path(f"{ledger}-private")
        kept = note.read_bytes()
        for name, text in {"no note": "{", "an empty note": "{}", "half a note": kept.decode()[:60]}.items():
            note.write_text(text)
            yield name, look(lambda: opening(kind, made, **own))
        note.write_bytes(kept)
        t = opening(kind, made, **own)
        change(made)
        for name, call in CALLS.items():
            yield f"changed while open: {name}", look(lambda call=call: call(t))
        t.close()
        Path(made).write_bytes(Path(made).read_bytes()[:700] if kind != "csv" else b"\xff\xfe\x00")
        yield "damaged", look(lambda: opening(kind, made, **own))
        Path(made).write_bytes(b"")
        yield "empty", look(lambda: opening(kind, made, **own))
        Path(made).unlink()
        yield "gone", look(lambda: opening(kind, made, **own))
        ledger.write_bytes(b"no ledger")
        yield "no ledger", look(lambda: opening(kind, visits.source("parquet", more=True), ledger=ledger))

    first, second = twice(monkeypatch, tmp_path, kind, see)
    compare(first, second)
    assert first.pop("first")[1] is None
    check_ours(first, tc.TargetChargeError)
    for name, (text, error) in first.items():
        assert "note" not in name or isinstance(error, tc.LedgerError), text
        assert not name.startswith(("other", "changed")) or isinstance(error, tc.NotAllowed), text


def test_the_comparison_would_find_a_single_number(monkeypatch, tmp_path):
    """If a description told how many rows there are, or an error had one in its context."""

    def see(kind, made):
        with opening(kind, made) as t:
            rows = t._engine._table.link.rows("SELECT count(*) FROM data")[0][0]

            def failing():
                try:
                    int(f"{rows} rows")
                except ValueError:
                    raise tc.ComputationFailed from None

            yield "shown", look(lambda: (t.describe(), rows))
            yield "context", look(failing)
            yield "same", look(t.describe)

    first, second = twice(monkeypatch, tmp_path, "arrow", see)
    assert [name for name in first if first[name][0] != second[name][0]] == ["shown", "context"]


def test_names_of_the_mistakes_are_different():
    names = [name for name, _ in itertools.chain(mistakes.asked(), mistakes.OPENING.items())]
    assert len(set(names)) == len(names) > 250
