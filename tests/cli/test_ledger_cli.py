import json
import shutil
import sqlite3

import pandas as pd
import pytest
from typer.testing import CliRunner

import targetcharge as tc
from targetcharge.cli.app import app

BUDGET = tc.Budget(3.0, 1e-6)


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "visits.db"
    yes, no = (
        tc.private(0.1, name=name)(lambda _, value=value: value) for name, value in (("yes", True), ("no", False))
    )
    secret = tc.private(0.1, delta=1e-9, name="secret")(lambda _: 424242)
    with tc.Session([], BUDGET, 0.1, ledger=path, computation_delta=1e-7) as session:
        session.test(yes)
        session.test(no)
        session.release(secret, when=lambda _: False)
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["ledger", *map(str, arguments)], env={"COLUMNS": "140"})


def test_show_prints_budget_hits_and_the_last_entries(ledger):
    shown = run("show", ledger).output
    for words in (
        "(3, 1e-06)",
        "exact, query ε 0.1",
        "hits used",
        "yes, pays for any outcome but False",
        "True",
        "free",
        "secret, release",
    ):
        assert words in shown
    state = json.loads(run("show", ledger, "--json", "--last", "2").output)
    assert (state["hits"], state["hits_left"], state["pending"]) == (1, 6, 1)
    assert (state["hits_of_meters"], state["unit"]) == ([1], {"kind": "words", "name": ""})
    assert len(state["entries"]) == 2
    assert state["head"] in shown.replace("\n", "").replace(" ", "")
    assert state["computation_delta"]["spent"] == pytest.approx(1e-9)


def test_a_pending_value_is_never_shown(ledger):
    assert "424242" not in run("show", ledger).output + run("show", ledger, "--json").output


def test_show_while_a_session_is_open_tells_what_it_holds_back(ledger):
    with tc.Session([], BUDGET, 0.1, ledger=ledger, computation_delta=1e-7) as session:
        session.test(tc.private(0.1)(lambda _: False))
        assert json.loads(run("show", ledger, "--json").output)["held"] == 1
    assert json.loads(run("show", ledger, "--json").output)["held"] == 0


COMMANDS = (["ledger", "show"], ["ledger", "verify"], ["meter"], ["report", "--output", "-"])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_look_at_a_ledger_changes_nothing_in_its_folder(ledger, command):
    before, when = contents(ledger.parent), ledger.stat().st_mtime_ns
    assert CliRunner().invoke(app, [*command, str(ledger)]).exit_code == 0
    assert (contents(ledger.parent), ledger.stat().st_mtime_ns) == (before, when)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_look_at_a_ledger_that_a_killed_session_left_keeps_its_log(ledger, command, tmp_path_factory):
    """Copied while a session is open: what was committed last is only in the log."""
    copy = tmp_path_factory.mktemp("killed") / ledger.name
    with tc.Session([], BUDGET, 0.1, ledger=ledger, computation_delta=1e-7) as session:
        session.test(tc.private(0.1)(lambda _: True))
        for ending in ("", "-wal"):
            shutil.copy(f"{ledger}{ending}", f"{copy}{ending}")
    before = contents(copy.parent)
    assert len(before[f"{copy.name}-wal"]) > 0
    CliRunner().invoke(app, [*command, str(copy)])
    after = contents(copy.parent)
    after.pop(f"{copy.name}-shm", None)
    assert after == before
    assert json.loads(run("show", copy, "--json").output)["hits"] == 2


def test_a_look_at_a_ledger_takes_no_log_from_an_open_session(ledger):
    with tc.Session([], BUDGET, 0.1, ledger=ledger, computation_delta=1e-7) as session:
        for hits in range(2, 5):
            assert json.loads(run("show", ledger, "--json").output)["hits"] == hits - 1
            session.test(tc.private(0.1)(lambda _: True))
            assert run("verify", ledger).exit_code == 0
    assert json.loads(run("show", ledger, "--json").output)["hits"] == 4
    assert {path.name for path in ledger.parent.iterdir()} == {ledger.name, f"{ledger.name}-witness"}


def test_verify_accepts_what_was_written(ledger):
    result = run("verify", ledger)
    assert result.exit_code == 0
    assert "every hash and every total is right" in result.output


def test_verify_finds_a_tampered_entry(ledger):
    with sqlite3.connect(ledger) as database:
        database.execute("UPDATE entries SET body = replace(body, 'true', 'false') WHERE number = 1")
    database.close()
    result = run("verify", ledger)
    assert isinstance(result.exception, tc.LedgerError)
    assert "entry 1 is not what was written" in str(result.exception)


@pytest.mark.parametrize("command", [["show"], ["verify"], ["restore", "--number", "1", "--hash", "00"]])
def test_what_is_no_ledger_is_named(command, tmp_path):
    missing, text, emptied = tmp_path / "missing.db", tmp_path / "text.db", tmp_path / "emptied.db"
    text.write_text("not a database at all, but long enough to be mistaken for one")
    for path in (missing, text, tmp_path):
        result = run(*command, path)
        assert isinstance(result.exception, tc.InvalidParameter)
        assert f"no ledger {path}.ledger.db" in str(result.exception)
    emptied.touch()
    emptied.with_name("emptied.db-witness").touch()  # it was a ledger
    for path in (missing, emptied):
        error = run(*command, path).exception
        assert str(path) in str(error)
        assert isinstance(error, tc.LedgerError) is (path == emptied)


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_table_stands_for_the_ledger_beside_it(command, tmp_path):
    table = tmp_path / "people.parquet"
    pd.DataFrame({"id": range(60)}).to_parquet(table)
    with tc.open(table, "id", BUDGET) as opened:
        opened.above(None, 10)
    by_table, by_ledger = run(command, table), run(command, f"{table}.ledger.db")
    assert by_table.exit_code == 0
    assert by_table.output == by_ledger.output


def test_show_tells_the_keys_of_hits(tmp_path):
    frame = pd.DataFrame({"id": range(6000), "kind": ["left", "right"] * 3000})
    path = tmp_path / "people.db"
    with tc.open(frame, "id", BUDGET, ledger=path) as table:
        table.watch(None, "kind", ["left", "nowhere", "right"], 1000)
        table.top(None, "kind", ["left", "nowhere"], 1)
    shown = run("show", path).output
    assert (shown.count("left: "), shown.count("right: "), shown.count("nowhere")) == (2, 1, 0)


def test_the_owner_vouches_for_a_restored_ledger(ledger, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(ledger, copy)
    state = json.loads(run("show", copy, "--json").output)
    assert "`tct ledger restore LEDGER --number N --hash H`" in state["restored"]
    wrong = run("restore", copy, "--number", state["number"], "--hash", "00")
    assert isinstance(wrong.exception, tc.NotAllowed)
    done = run("restore", copy, "--number", state["number"], "--hash", state["head"])
    assert done.exit_code == 0
    assert "opens as it is" in done.output
    with tc.Session([], BUDGET, 0.1, ledger=copy, computation_delta=1e-7) as session:
        assert session.meter.hits_left == 6


def test_an_outcome_that_python_refuses_to_write_is_shown(tmp_path):
    path = tmp_path / "huge.db"
    with tc.Session([], BUDGET, 0.1, ledger=path) as session:
        session.ask(tc.private(0.1)(lambda _: 10**5000), tc.NotPrior(0))
    assert '"0x' in run("show", path).output


@pytest.mark.parametrize("threshold", [1000, 100_000])
def test_one_question_is_one_answer_however_it_was_asked(tmp_path, threshold):
    frame = pd.DataFrame({"id": range(6000)})
    path = tmp_path / "people.db"
    with tc.open(frame, "id", BUDGET, query_epsilon=0.1, ledger=path, meter="exact") as table:
        table.ask_many([tc.questions.above(None, threshold)])
        table.above(None, threshold, again=True)
        table.ask_many([tc.questions.above(None, threshold)] * 2, again=True)
    entries = json.loads(run("show", path, "--json").output)["entries"]
    assert [(entry["kind"], entry["hit"]) for entry in entries] == [("answer", threshold == 1000)] * 4
    shown = run("show", path).output
    assert "None" not in shown
    assert ("below the threshold" in shown) == (threshold > 1000)
    assert "1 answer" not in shown


def test_a_batch_without_a_hit_is_free(tmp_path):
    path = tmp_path / "people.db"
    frame = pd.DataFrame({"id": range(60), "kind": ["a", "b"] * 30})
    with tc.open(frame, "id", BUDGET, query_epsilon=0.1, ledger=path, meter="exact") as table:
        table.watch(None, "kind", ["a", "b"], 100_000)
    (line,) = (line for line in run("show", path).output.splitlines() if "2 answers of" in line)
    assert "0 hits" in line
    assert "free" in line
    assert "×" not in line
