"""Disks that are full, files that may not be written, vanish or are something else: no answer, nothing free."""

import fcntl
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from tests.ledger import children
from tests.ledger.asking import hits, no, opened, say, spent, told, yes
from tests.ledger.processes import child

import targetcharge as tc
from targetcharge.ledger.sqlite import verify

BUDGET = tc.Budget(1.0, 2e-6)


def full(path):
    return tc.Session({"says": True}, BUDGET, 0.04, ledger=path, computation_delta=1e-6)


def test_a_hit_that_cannot_be_written_is_not_published_and_stays_spent(tmp_path):
    path = tmp_path / "ledger.db"
    with child(children.finds_the_disk_full, path, "hit") as process:
        kind, sentence = process.hear()
        assert (kind, process.hear()) == ("LedgerError", 1)
        assert "no answer is given" in sentence
        assert process.hear()[0] == "LedgerError"  # also once there is room again: the file knows what is spent
        process.ends()
    with full(path) as session:
        assert (len(hits(session)), [entry.why for entry in spent(session)]) == (1, ["abandoned"])
        assert session.test(yes).hit
    verify(path)


@pytest.mark.parametrize("when", ["delta", "after a failure"])
def test_a_reservation_that_cannot_be_written_stops_the_call_before_the_data_is_touched(tmp_path, when):
    """After a failure nothing is held back, and the next reservation changes nothing but what is held."""
    path = tmp_path / "ledger.db"
    with child(children.finds_the_disk_full, path, when) as process:
        assert process.hear()[0] == "LedgerError"
        assert process.hear() == 0
        assert process.hear() == ("answered", True)
        process.ends()
    with full(path) as session:
        assert (len(hits(session)), session.meter.totals.delta) == (2, 0)


@pytest.mark.parametrize("when", ["failing", "in draw"])
def test_a_failure_that_cannot_be_written_stays_spent(tmp_path, when):
    path = tmp_path / "ledger.db"
    with child(children.finds_the_disk_full, path, when) as process:
        assert process.hear()[0] == "LedgerError"
        assert process.hear() == 0
        assert process.hear()[0] == "LedgerError"
        process.ends()
    with full(path) as session:
        assert (len(hits(session)), [entry.why for entry in spent(session)]) == (1, ["abandoned"])


def test_a_ledger_that_cannot_be_closed_spends_what_it_holds(tmp_path):
    path = tmp_path / "ledger.db"
    with child(children.closes_on_a_full_disk, path) as process:
        assert process.hear()[0] == "LedgerError"
        process.ends()
    with opened(path) as session:
        assert (len(hits(session)), [entry.why for entry in spent(session)]) == (1, ["abandoned"])
        assert session.test(yes).hit


@pytest.fixture
def public():
    """A folder that everybody can reach, as pytest's own cannot be."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", [0o444, 0o666], ids=["file and folder", "folder"])
def test_a_ledger_that_may_not_be_written_is_not_opened(public, mode):
    path = public / "ledger.db"
    with opened(path) as session:
        session.test(yes)
    before = path.read_bytes()
    path.chmod(mode)
    path.with_name("ledger.db-witness").chmod(0o644)
    public.chmod(0o555)
    with child(children.opens_as_nobody, path) as process:
        kind, sentence = process.hear()
    assert (kind, "cannot be read or written" in sentence) == ("LedgerError", True)
    assert path.read_bytes() == before


def test_a_ledger_in_a_folder_that_may_not_be_written_is_not_made(public):
    public.chmod(0o555)
    with child(children.opens_as_nobody, public / "ledger.db") as process:
        assert process.hear()[0] == "LedgerError"
    assert list(public.iterdir()) == []


def lose(path, how):
    if how == "unlinked":
        path.unlink()
    elif how == "renamed":
        path.rename(path.with_name("elsewhere.db"))
    elif how == "replaced":
        copy = path.with_name("copy.db")
        with sqlite3.connect(path) as database, sqlite3.connect(copy) as other:
            database.backup(other)
        database.close()
        other.close()
        copy.rename(path)
    else:
        path.with_name(path.name + "-wal").unlink()


LOSSES = ["unlinked", "renamed", "replaced", "without its log"]


@pytest.mark.parametrize("how", LOSSES)
@pytest.mark.parametrize("says", [True, False])
def test_a_ledger_that_vanished_between_calls_gives_no_answer(tmp_path, how, says):
    path, runs = tmp_path / "ledger.db", []

    @tc.private(epsilon=0.01)
    def counted(_):
        runs.append(1)
        return says

    session = opened(path)
    session.test(yes)
    session.test(no)
    lose(path, how)
    for _ in range(2):
        with pytest.raises(tc.LedgerError):
            session.test(counted)
    assert runs == []
    with pytest.raises(tc.LedgerError):
        session.close()


@pytest.mark.parametrize("how", LOSSES)
def test_a_ledger_that_vanished_during_a_call_gives_no_answer(tmp_path, how):
    path = tmp_path / "ledger.db"

    @tc.private(epsilon=0.01)
    def loses(_):
        lose(path, how)
        return True

    session = opened(path)
    session.test(yes)
    with pytest.raises(tc.LedgerError):
        session.test(loses)
    with pytest.raises(tc.LedgerError):
        session.test(yes)
    session.close()


def test_a_ledger_that_is_gone_does_not_start_anew(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path) as session:
        session.test(yes)
    path.unlink()
    with pytest.raises(tc.LedgerError, match="remembers 1 entry: restore it"):
        opened(path)
    path.touch()
    with pytest.raises(tc.LedgerError, match="remembers 1 entry: restore it"):
        opened(path)


@pytest.mark.parametrize("how", ["replaced", "without its log"])
def test_a_ledger_that_lost_what_was_written_counts_as_spent(tmp_path, how):
    path = tmp_path / "ledger.db"
    with child(children.races_on_an_open_session, path, 6) as process:
        assert process.hear() == "opened"
        process.tell("go")
        assert process.hear() == 1
        lose(path, how)
        process.kill()
    with opened(path) as again:
        assert again.meter.hits_left == 0
        with pytest.raises(tc.BudgetSpent, match="looks like a restored copy"):
            again.test(no)


def test_a_ledger_that_was_renamed_back_goes_on(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path) as session:
        session.test(yes)
        lose(path, "renamed")
        with pytest.raises(tc.LedgerError):
            session.test(yes)
        path.with_name("elsewhere.db").rename(path)
        assert session.test(yes).hit
        assert session.meter.hits == 2


def test_a_path_that_leads_elsewhere_later_still_means_the_same_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with opened("ledger.db") as session:
        session.test(yes)
        monkeypatch.chdir(elsewhere)
        assert session.test(yes).hit
    assert list(elsewhere.iterdir()) == []
    assert verify(tmp_path / "ledger.db") == 2


def test_a_symbolic_link_is_the_ledger_it_leads_to(tmp_path):
    path, link = tmp_path / "ledger.db", tmp_path / "link.db"
    link.symlink_to(path)
    with opened(link) as session, opened(path) as other:
        session.test(yes)
        other.test(yes)
        assert session.meter.hits == other.meter.hits == 2
    assert verify(link) == 2


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(tc.LedgerError, match="No such file or directory"):
        opened(tmp_path / "missing" / "ledger.db")


def test_a_folder_is_not_a_ledger(tmp_path):
    with pytest.raises(tc.InvalidParameter, match="this is a folder"):
        opened(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(tc.LedgerError, match="not a database"):
        opened(path)
    assert path.read_text() == "not a database " * 100
    with pytest.raises(tc.LedgerError):
        verify(path)


def test_another_database_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE state (id INTEGER)")
    database.commit()
    with pytest.raises(tc.LedgerError, match="not a ledger"):
        opened(path)
    assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("state",)]
    database.close()


def edit(path, statement, *values):
    database = sqlite3.connect(path)
    database.execute(statement, values)
    database.commit()
    database.close()


HEADER = "UPDATE state SET header = replace(header, ?, ?)"


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE state SET header = substr(header, 1, 40)", ()),
        ("UPDATE state SET header = '[]'", ()),
        ("UPDATE state SET header = x'00ff'", ()),
        (HEADER, ('"epsilon"', '"epsilom"')),
        (HEADER, ('"capacities":["6"]', '"capacities":["six"]')),
        (HEADER, ("targetcharge ledger", "another ledger")),
        ("UPDATE state SET sums = '{}'", ()),
        ("UPDATE state SET sums = 'x'", ()),
        ("DELETE FROM state", ()),
        ("DROP TABLE state", ()),
        ("DROP TABLE sessions", ()),
    ],
)
def test_a_damaged_header_is_said_to_be_one(tmp_path, statement, values):
    path = tmp_path / "ledger.db"
    with opened(path) as session:
        session.test(yes)
    edit(path, statement, *values)
    with pytest.raises(tc.LedgerError):
        opened(path)
    if "sessions" not in statement:
        with pytest.raises(tc.LedgerError):
            verify(path)


def test_a_newer_format_is_not_read(tmp_path):
    path = tmp_path / "ledger.db"
    opened(path).close()
    edit(path, HEADER, '"version":2', '"version":4')
    with pytest.raises(tc.LedgerError, match="has format version 4, and this program reads versions 1 to 3"):
        opened(path)


def test_an_empty_file_becomes_a_ledger(tmp_path):
    path = tmp_path / "ledger.db"
    path.touch()
    with pytest.raises(tc.LedgerError, match="is empty"):
        verify(path)
    with opened(path) as session:
        assert session.test(yes).hit


def test_other_terms_are_refused_by_name_and_change_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path, 6) as session:
        session.test(yes)
    with pytest.raises(tc.NotAllowed, match=r"query_epsilon was 0\.04 and is 0\.03"):
        opened(path, 15)
    with pytest.raises(tc.NotAllowed, match="meter was 'exact' and is 'renyi'"):
        tc.Session({}, tc.Budget(1.0, 1e-6), 0.04, ledger=path, meter="renyi")
    with pytest.raises(tc.NotAllowed, match=r"epsilon was 1\.0 and is 2\.0"):
        tc.Session({}, tc.Budget(2.0, 1e-6), 0.04, ledger=path)
    with opened(path, 6) as session:
        assert (session.meter.hits, spent(session)) == (1, [])


def test_files_of_a_ledger_are_for_its_owner_only(tmp_path):
    with opened(tmp_path / "ledger.db") as session:
        session.test(yes)
        for file in tmp_path.rglob("*"):
            assert file.stat().st_mode & 0o077 == 0, file


def test_a_closed_session_says_so(tmp_path):
    session = opened(tmp_path / "ledger.db")
    session.test(yes)
    session.close()
    session.close()
    with pytest.raises(tc.NotAllowed, match="is closed"):
        session.test(yes)
    with pytest.raises(tc.TargetChargeError):
        list(session.transcript)


def test_a_failed_call_leaves_no_lock_behind(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(path, 1, says=object()) as first, opened(path, 1) as second:
        with pytest.raises(tc.ComputationFailed):
            first.ask(told, tc.NotPrior(None))
        with pytest.raises(tc.BudgetSpent):
            second.test(no)
        say(first, False)
        with pytest.raises(tc.BudgetSpent):
            first.test(told)


def test_a_folder_that_another_program_keeps_locked_is_named_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr("targetcharge.ledger.sqlite.locks._WAIT_SECONDS", 0.05)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(tc.LedgerError, match="another program keeps its folder locked"):
            opened(tmp_path / "ledger.db")
    finally:
        os.close(handle)
    with opened(tmp_path / "ledger.db") as session:
        assert session.test(yes).hit
