"""Ctrl-C: what is printed is what was published and paid for; and the bar that is shown meanwhile."""

import contextlib
import json
import os
import pty
import signal
import threading
import time

import pytest
from tests.cli.commands import run, start
from tests.cli.conftest import TERMS, hits

import targetcharge as tc
from targetcharge.cli import asking
from targetcharge.cli.asking import stoppable
from targetcharge.cli.errors import INTERRUPTED
from targetcharge.engines.duckdb import DuckDBEngine
from targetcharge.sessions import batch
from targetcharge.tables.answers import LazyAnswers

MANY = 50_000
CHEAP = ("--unit", "patient", "--epsilon", 100, "--delta", 1e-6, "--query-epsilon", 0.01, "--meter", "renyi")
"""A budget of hundreds of thousands of hits."""


def keys(folder, count):
    (folder / "keys.csv").write_text("\n".join(["age", *map(str, range(count))]))
    return ("--by", "age", "--keys-file", "keys.csv")


def used(ledger):
    result = run("meter", ledger, "--json")
    return result.json["hits"] if result.code == 0 else 0  # it is not there yet


def transcript():
    with tc.open("visits.parquet", "patient", tc.Budget(100, 1e-6), query_epsilon=0.01, meter="renyi") as table:
        return list(table.transcript)


@pytest.mark.parametrize("form", ["--json", "--csv", None])
def test_ctrl_c_in_a_long_watch(folder, form):
    """All keys are hits, each written to disk: it would last for minutes."""
    forms = [form] if form else []
    process = start("watch", "visits.parquet", *keys(folder, MANY), "--threshold", -10_000_000, *CHEAP, *forms)
    ledger = folder / "visits.parquet.ledger.db"
    deadline = time.monotonic() + 100
    while used(ledger) <= 5:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert process.returncode == INTERRUPTED
    published = [(answer.key, answer.outcome, answer.hit) for answer in transcript()]
    assert 5 < len(published) < MANY
    assert "every hash and every total is right" in run("ledger", "verify", ledger).out
    assert hits() == len(published)
    assert f"tct: stopped by Ctrl-C: {len(published):,} hits of {len(published):,} answers published" in err
    if form == "--json":
        result = json.loads(out)
        assert [(each["key"], each["outcome"], each["hit"]) for each in result["answers"]] == published
        assert result["unanswered"] == list(range(len(published), MANY))
        assert result["stopped"] == "stopped by Ctrl-C"
    elif form == "--csv":
        rows = [line.split(",") for line in out.splitlines()[1:]]
        assert [(int(row[0]), int(row[1]), True) for row in rows if row[-1]] == published
        assert len(rows) == MANY
    else:
        cells = [[cell.strip() for cell in line.split("│")] for line in out.splitlines() if line.startswith("│")]
        assert [(int(key), int(value.replace(",", "")), True) for _, key, value, *_ in cells] == published


def press(times):
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_handler")
@pytest.mark.parametrize(("after", "answered"), [(1, 500), (2, 1000), (3, 1001), (4, 1501)])
def test_answers_that_left_together_are_printed_together(folder, monkeypatch, after, answered):
    """Misses leave 500 at a time or with the hit at their end; Ctrl-C comes when some were published."""
    (folder / "keys.csv").write_text("\n".join(["age", *map(str, [*range(1000, 2000), 20, *range(2000, 4000)])]))
    for module in (batch, asking):
        monkeypatch.setattr(module, "MOST_ANSWERS", 500)
    published, calls = batch.BatchCall._published, []

    def pressed(tests, count):
        published(tests, count)
        calls.append(count)
        if len(calls) == after:
            press(1)

    monkeypatch.setattr(batch.BatchCall, "_published", pressed)
    options = ("--by", "age", "--keys-file", "keys.csv", "--threshold", 5000)
    result = run("watch", "visits.parquet", *options, *TERMS, "--json")
    assert result.code == INTERRUPTED
    told = result.json["answers"]
    assert len(told) == answered
    assert sum(answer["hit"] for answer in told) == hits() == (after > 2)
    with tc.open("visits.parquet", "patient", tc.Budget(3, 1e-6)) as table:
        assert [answer.key for answer in table.transcript] == [answer["key"] for answer in told]


@pytest.mark.usefixtures("default_handler", "opened")
@pytest.mark.parametrize("command", ["watch", "top"])
def test_ctrl_c_once_while_scanning_lets_it_finish(monkeypatch, command):
    measure = DuckDBEngine.measure_by

    def slow(*given):
        press(1)
        return measure(*given)

    monkeypatch.setattr(DuckDBEngine, "measure_by", slow)
    keys = ("--by", "county", "--keys", "Kent,Devon")
    result = run(command, "visits.parquet", *keys, "--threshold", 5000, "--json")
    assert (result.code, len(result.json["answers"])) == (INTERRUPTED, 1)
    assert result.json["unanswered"] == (["Devon"] if command == "watch" else [])
    assert hits() == 1


@pytest.mark.usefixtures("default_handler", "opened")
@pytest.mark.parametrize("pressed", [KeyboardInterrupt, RuntimeError], ids=lambda kind: kind.__name__)
def test_ctrl_c_twice_while_scanning_spends_what_is_held_back(monkeypatch, pressed):
    """As DuckDB does, which says RuntimeError; a third one does not keep the end from being told."""

    def slow(*_):
        with contextlib.suppress(KeyboardInterrupt):
            press(2)
        press(1)
        raise pressed

    monkeypatch.setattr(DuckDBEngine, "measure_by", slow)
    result = run("watch", "visits.parquet", "--by", "county", "--keys", "Kent,Devon", "--threshold", 5000)
    assert result.code == INTERRUPTED
    assert result.out.startswith("not answered: Kent, Devon\n0 answered, 0 hits, 9 hits left.")
    assert "0 hits of 0 answers published and paid for; what was paid for and is not shown is in" in result.err
    assert "every hash and every total is right" in run("ledger", "verify", "visits.parquet.ledger.db").out


@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_between_questions_of_a_file(opened, monkeypatch):
    rows = ["age > 65,9000" if number in (3, 30) else "age > 99,9000" for number in range(60)]
    (opened / "q.csv").write_text("\n".join(["where,threshold", *rows]))
    ask_many = tc.Table.ask_many

    def slow(*given, **more):
        press(1)
        return ask_many(*given, **more)

    monkeypatch.setattr(tc.Table, "ask_many", slow)
    result = run("ask", "visits.parquet", "--questions", "q.csv", "--csv")
    assert (result.code, hits()) == (INTERRUPTED, 1)
    assert [bool(row[-1]) for row in result.rows[1:]] == [True] * 25 + [False] * 35


@pytest.mark.usefixtures("opened")
def test_a_failure_that_is_none_of_ctrl_c(monkeypatch):
    def broken(*_):
        msg = "Kent is a secret"
        raise RuntimeError(msg)

    monkeypatch.setattr(DuckDBEngine, "measure_by", broken)
    result = run("watch", "visits.parquet", "--by", "county", "--keys", "Kent", "--threshold", 5000, "--json")
    assert (result.code, result.json["answers"]) == (5, [])
    assert "secret" not in result.out + result.err
    assert result.json["meter"]["hits_left"] == 9


def test_ctrl_c_is_left_alone_where_it_is_ignored_or_another_threads():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stoppable() as stop:
            press(3)
        assert not stop.wanted
    finally:
        signal.signal(signal.SIGINT, before)
    seen = []

    def elsewhere():
        with stoppable() as stop:
            seen.append((stop.wanted, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


def test_lazy_answers_are_grouped_as_they_leave():
    most = batch.MOST_ANSWERS
    answers = [
        tc.Answer(None, hit, 0.0, seq) for seq, hit in enumerate([False] * 3 + [True, True] + [False] * (most + 1))
    ]
    lazy = LazyAnswers(iter([([None] * len(answers), iter(answers))]), ("key",), answers)
    assert [len(left) for left in asking.leaving(lazy)] == [4, 1, most, 1]


@pytest.mark.usefixtures("opened")
def test_a_terminal_shows_a_bar_with_hits_and_hits_left():
    ours, theirs = pty.openpty()
    options = ("--by", "county", "--keys", "Kent,Devon,Rutland", "--threshold", 5000, "--json")
    with start("watch", "visits.parquet", *options, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # what Linux says at the end
            while part := os.read(ours, 4096):
                shown += part
        out = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert len(json.loads(out)["answers"]) == 3
    assert b"3/3" in shown
    assert b"2 hits, 8 hits left" in shown
