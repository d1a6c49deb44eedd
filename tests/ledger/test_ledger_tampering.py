"""Whatever is changed in the file by hand is found by verification."""

import json
import sqlite3

import pytest
from tests.ledger.asking import approximate, broken, crash, no, opened, say, told, yes

import targetcharge as tc
from targetcharge.ledger.sqlite import inspect, verify
from targetcharge.ledger.state import link


@pytest.fixture
def path(tmp_path):
    """A ledger with all kinds of entries: misses, hits, a failure, δ, a release, an abandoned reservation."""
    path = tmp_path / "ledger.db"
    session = tc.Session({"says": 7}, tc.Budget(1.0, 2e-6), 0.03, ledger=path, computation_delta=1e-6)
    session.test(no)
    session.test(yes)
    with pytest.raises(tc.ComputationFailed):
        session.test(broken)
    say(session, False)
    session.test(approximate)
    say(session, 7)
    session.release(told, when=lambda _: False)
    session.ask(told, tc.NotPrior(None))
    crash(session)
    with tc.Session({}, tc.Budget(1.0, 2e-6), 0.03, ledger=path, computation_delta=1e-6) as session:
        session.test(yes)
    return path


def change(path, *statements, values=()):
    database = sqlite3.connect(path)
    for statement in statements:
        changed = database.execute(statement, values).rowcount
        assert changed, statement
    database.commit()
    database.close()


def test_a_ledger_that_nobody_changed_is_right(path):
    assert verify(path) == inspect(path).state.last_entry == 9


@pytest.mark.parametrize("number", range(1, 10))
def test_an_entry_that_was_changed_is_named(path, number):
    change(path, "UPDATE entries SET body = replace(body, ':', ': ') WHERE number = ?", values=[number])
    with pytest.raises(tc.LedgerError, match=f"entry {number} is not what was written"):
        verify(path)


@pytest.mark.parametrize("number", range(1, 10))
def test_an_entry_that_was_dropped_is_named(path, number):
    change(path, "DELETE FROM entries WHERE number = ?", values=[number])
    last = "its state names entry 9 as the last, and the entries end at 8"
    with pytest.raises(tc.LedgerError, match=last if number == 9 else f"entry {number} is missing"):
        verify(path)


def test_the_first_bad_entry_is_the_one_that_is_named(path):
    change(path, "UPDATE entries SET body = body || ' ' WHERE number IN (3, 7)")
    with pytest.raises(tc.LedgerError, match="entry 3 "):
        verify(path)


def test_entries_that_were_swapped_are_found(path):
    change(
        path,
        "UPDATE entries SET number = -1 WHERE number = 2",
        "UPDATE entries SET number = 2 WHERE number = 6",
        "UPDATE entries SET number = 6 WHERE number = -1",
    )
    with pytest.raises(tc.LedgerError, match="entry 2 is not what was written"):
        verify(path)


def test_an_entry_that_was_put_in_is_found(path):
    change(path, "INSERT INTO entries SELECT 10, seq, body, hash FROM entries WHERE number = 9")
    with pytest.raises(tc.LedgerError, match="entry 10 is not what was written"):
        verify(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET hash = zeroblob(32) WHERE number = 4",
        "UPDATE entries SET hash = 'text' WHERE number = 4",
        "UPDATE entries SET body = x'00' WHERE number = 4",
        "UPDATE entries SET body = 'ü' WHERE number = 4",
        "UPDATE entries SET seq = 12345 WHERE number = 4",
        "UPDATE entries SET seq = NULL WHERE number = 4",
    ],
)
def test_any_column_of_an_entry_is_checked(path, statement):
    database = sqlite3.connect(path)
    (seq,) = database.execute("SELECT seq FROM entries WHERE number = 4").fetchone()
    database.close()
    if "seq" in statement and seq is None:
        statement = statement.replace("number = 4", "number = 2")
    change(path, statement)
    with pytest.raises(tc.LedgerError, match=r"entry [24] "):
        verify(path)


@pytest.mark.parametrize("part", ["spent", "hits", "delta"])
def test_totals_that_were_changed_are_found(path, part):
    sums = json.loads(_state(path, "sums"))
    sums[part] = 0 if part == "delta" else [0]
    change(path, "UPDATE state SET sums = ?", values=[json.dumps(sums)])
    with pytest.raises(tc.LedgerError, match="its totals are not the sum of its entries"):
        verify(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE state SET header = replace(header, '\"exact\"', '\"renyi\"')",
        "UPDATE state SET header = header || ' '",
        "UPDATE state SET number = 8",
        "UPDATE state SET head = zeroblob(32)",
        "UPDATE state SET head = 'text'",
        'UPDATE state SET sums = \'{"spent":[5,5],"hits":[5,5],"delta":0}\'',
    ],
)
def test_a_header_or_head_that_was_changed_is_found(path, statement):
    change(path, statement)
    with pytest.raises(tc.LedgerError):
        verify(path)


def test_a_history_that_was_cut_short_with_care_is_found_by_its_witness(path):
    """Every hash and every total is right; only the last hit is gone."""
    database = sqlite3.connect(path)
    rows = database.execute("SELECT body, hash FROM entries ORDER BY number").fetchall()
    sums = json.loads(_state(path, "sums"))
    assert json.loads(rows[-1][0])["hit"]
    sums["spent"][0] -= 1
    sums["hits"][0] -= 1
    database.execute("DELETE FROM entries WHERE number = 9")
    database.execute("UPDATE state SET number = 8, head = ?, sums = ?", (rows[-2][1], json.dumps(sums)))
    database.commit()
    database.close()
    with pytest.raises(tc.LedgerError, match="ends at entry 8 and entry 9 was published"):
        verify(path)


def test_a_history_that_was_rewritten_with_care_is_found_by_its_witness(path):
    """A hit made a miss, and all hashes computed again."""
    database = sqlite3.connect(path)
    head = link(b"", _state(path, "header"))
    for number, body in database.execute("SELECT number, body FROM entries ORDER BY number").fetchall():
        text = body.replace('"hit":true', '"hit":false') if number == 9 else body
        head = link(head, text)
        database.execute("UPDATE entries SET body = ?, hash = ? WHERE number = ?", (text, head, number))
    sums = json.loads(_state(path, "sums"))
    sums["spent"][0] -= 1
    sums["hits"][0] -= 1
    database.execute("UPDATE state SET head = ?, sums = ?", (head, json.dumps(sums)))
    database.commit()
    database.close()
    with pytest.raises(tc.LedgerError, match="its entry 9 is not the one that was published"):
        verify(path)


def test_what_is_private_is_not_in_what_an_inspection_shows(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path, says="a secret that waits") as session:
        session.release(told, when=lambda _: False)
    found = inspect(path, last=10)
    assert found.pending == 1
    assert "a secret" not in repr(found)


def test_there_is_nothing_to_verify_where_there_is_no_ledger(tmp_path):
    with pytest.raises(tc.LedgerError, match="there is no ledger"):
        verify(tmp_path / "ledger.db")
    with pytest.raises(tc.LedgerError, match="there is no ledger"):
        inspect(tmp_path)
    assert list(tmp_path.iterdir()) == []


def _state(path, column):
    database = sqlite3.connect(path)
    (found,) = database.execute(f"SELECT {column} FROM state").fetchone()
    database.close()
    return found


@pytest.mark.parametrize(
    "row",
    ["'[-3]', 1", "'[0]', -1", "'[1]', 'x'", "'garbage', 1", "'[\"a\"]', 1", "'{}', 1", "'[1.5]', 1", "NULL, 1"],
)
def test_a_session_that_holds_back_less_than_nothing_is_refused(tmp_path, row):
    path = tmp_path / "ledger.db"
    with opened(path, 1) as session:
        session.test(yes)
    database = sqlite3.connect(path)
    database.execute("PRAGMA ignore_check_constraints = 1")
    try:
        database.execute(f"INSERT INTO sessions VALUES ('x', {row})")
    except sqlite3.IntegrityError:
        return  # the file itself does not take it
    finally:
        database.commit()
        database.close()
    with pytest.raises(tc.LedgerError, match="what an open session holds back cannot be read"):
        opened(path, 1)
    database = sqlite3.connect(path)
    database.execute("DELETE FROM sessions")
    database.commit()
    database.close()
    with opened(path, 1) as session, pytest.raises(tc.BudgetSpent):
        session.test(yes)


def test_an_entry_that_gives_a_charge_back_is_found(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path, 6) as session:
        session.test(yes)
    with sqlite3.connect(path) as database:
        number, head, sums = database.execute("SELECT number, head, sums FROM state").fetchone()
        body = json.dumps(
            {"version": 1, "kind": "spent", "why": "abandoned", "units": [-1], "count": 1, "algorithm": ""},
            separators=(",", ":"),
        )
        after = link(head, body)
        totals = json.loads(sums)
        totals["spent"], totals["hits"] = [0], [totals["hits"][0] + 1]
        database.execute("INSERT INTO entries VALUES (?, NULL, ?, ?)", (number + 1, body, after))
        database.execute(
            "UPDATE state SET number = ?, head = ?, sums = ?", (number + 1, after, json.dumps(totals))
        )
    database.close()
    for look in (lambda: verify(path), lambda: opened(path, 6)):
        with pytest.raises(tc.LedgerError, match="gives a charge back"):
            look()
