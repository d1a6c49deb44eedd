"""Batches in a file: found again, every change noticed, and shown by the commands."""

import re
import sqlite3
import time

import pytest
from tests.ledger.asking import crash, no, opened, spent, yes
from tests.ledger.batch_children import requests
from typer.testing import CliRunner

import targetcharge as tc
from targetcharge.cli.app import app
from targetcharge.cli.report.history import read_history
from targetcharge.ledger.entries import entry_of
from targetcharge.ledger.sqlite import inspect, verify


@pytest.fixture
def path(tmp_path):
    """A ledger with a batch between other entries, and one that was abandoned."""
    path = tmp_path / "ledger.db"
    session = opened(path, 45)
    session.test(no)
    session.test(yes)
    assert len(list(session.ask_batch(requests(".x:.")))) == 1
    session.test(yes)
    crash(session)
    return path


def stored(path):
    database = sqlite3.connect(path)
    rows = database.execute("SELECT number, seq, body FROM entries WHERE body LIKE '%\"batch\"%'").fetchall()
    database.close()
    assert rows
    return rows[0]


def test_the_file_has_the_last_seq_of_a_batch_and_it_is_right(path):
    number, seq, body = stored(path)
    assert (number, seq, entry_of(body).seq) == (3, 6, 6)
    assert verify(path) == 4


def test_every_byte_of_a_stored_batch_that_is_changed_is_noticed(path):
    number, _, body = stored(path)
    database = sqlite3.connect(path, isolation_level=None)
    for place, letter in enumerate(body):
        changed = body[:place] + ("x" if letter != "x" else "y") + body[place + 1 :]
        database.execute("UPDATE entries SET body = ? WHERE number = ?", (changed, number))
        with pytest.raises(tc.LedgerError, match=f"entry {number} is not what was written"):
            verify(path)
    database.execute("UPDATE entries SET body = ? WHERE number = ?", (body, number))
    assert verify(path) == 4
    for seq in (None, 3, 5, 7):
        database.execute("UPDATE entries SET seq = ? WHERE number = ?", (seq, number))
        with pytest.raises(tc.LedgerError, match=f"entry {number} does not have the seq"):
            verify(path)
    database.close()


def test_a_session_that_is_opened_again_has_all_that_was_published(path):
    with opened(path, 45) as session:
        (batch,) = session.transcript.batches()
        assert [answer.outcome for answer in batch.answers] == ["cat", tc.BOUNDARY, "dog", "cat"]
        assert [answer.seq for answer in session.transcript] == [1, 2, 3, 4, 5, 6, 7]
        assert session.meter.hits == 3 + sum(entry.count for entry in spent(session))
        assert session.test(yes).seq > 7


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A ledger with 100,000 answers in batches, of which 44 are hits."""
    path = tmp_path_factory.mktemp("long") / "ledger.db"
    pattern = "".join("x" if place % 2300 == 100 else ".:"[place % 2] for place in range(100_000))
    with opened(path, 45) as session:
        session.test(no)
        found = list(session.ask_batch(requests(pattern)))
        assert sum(map(len, found)) == 100_000
        assert session.meter.hits == 44
    return path


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    return result.output


def test_the_ledger_commands_tell_of_a_hundred_thousand_answers_at_once(long):
    begun = time.process_time()
    shown = run("ledger", "show", long, "--last", 1000)
    assert "answers of labels" in shown
    assert "× 1" in shown
    assert "every total is right" in run("ledger", "verify", long)
    assert inspect(long, last=5).state.sums.hits == (44,)
    assert time.process_time() - begun < 10


def test_the_report_counts_every_answer_and_every_hit_of_batches(long, tmp_path):
    begun = time.process_time()
    text = run("report", long, "--output", tmp_path / "report.html") + (tmp_path / "report.html").read_text()
    assert time.process_time() - begun < 20
    assert "100,001" in text
    contents = read_history(long).contents
    assert (contents.answers, contents.hits, sum(contents.counts)) == (100_001, 44, 100_001)
    assert sum(charge.hits for charge in contents.charges) == 44
    spent_in_all = sum(charge.grains[0] for charge in contents.charges)
    assert spent_in_all == inspect(long).state.sums.spent[0]


def test_the_report_shows_all_hits_of_a_batch_in_its_time(tmp_path, monkeypatch):
    """A batch with three hits, and ten minutes later one with a single hit: the bars are three to one."""
    path, page = tmp_path / "ledger.db", tmp_path / "report.html"
    with opened(path, 45) as session:
        for received, pattern in ((1e9, ".xxx"), (1e9 + 600, "x...")):
            monkeypatch.setattr("targetcharge.sessions.session.time.time", lambda now=received: now)
            assert len(list(session.ask_batch(requests(pattern)))) == 1
        monkeypatch.undo()
    run("report", path, "--output", page)
    shown = re.sub("<[^>]*>", "", page.read_text())
    assert "Answers up to 4 a bar" in shown
    assert "Hits up to 3 a bar" in shown


def test_the_last_answers_of_a_long_ledger_are_read_without_all_of_it(long):
    with opened(long, 45) as session:
        begun = time.process_time()
        last = session.transcript.last(3)
        assert time.process_time() - begun < 2
        assert [answer.key for answer in last] == [99_997, 99_998, 99_999]
        assert len(session.transcript) == 100_001
