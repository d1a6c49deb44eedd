"""A ledger appears complete or not at all: kill -9 at every call that makes, changes, syncs or removes a file."""

import json
import sqlite3
from contextlib import closing

import pytest
from tests.ledger import children, creation_children
from tests.ledger.asking import hits, opened, spent, yes
from tests.ledger.processes import child
from tests.sizes import size, spread

import targetcharge as tc
from targetcharge.ledger.sqlite import inspect, verify

PARTS = 4
"""In how many tests all calls are tried."""

FILES = {"ledger.db", "ledger.db-witness"}
LOGS = ("", "-wal", "-shm", "-journal")
KINDS = (*LOGS, *("-unfinished" + kind for kind in LOGS), "-tenants", "-witness", "-witness-unfinished")


def names(folder):
    return {file.name for file in folder.rglob("*")}


def assert_good_as_new(path):
    """Open a ledger on which nothing was published, use it, and look at what is there after closing."""
    with opened(path) as session:
        assert (session.meter.hits_left, list(session.transcript)) == (6, [])
        assert session.test(yes).hit
    assert names(path.parent) == FILES
    assert verify(path) == 1
    with opened(path) as session:
        assert session.meter.hits_left == 5


def killed_at(function, tmp_path, first, stride):
    """Yield a path for each number of calls after which a process was killed there; the last one survived."""
    number, survived = first, False
    while not survived:
        folder = tmp_path / str(number)
        folder.mkdir()
        with child(function, folder / "ledger.db", number) as process:
            survived = process.heard() == ["survived"]
            assert survived == (process.ends() != -9)
        yield folder / "ledger.db"
        number += stride


@pytest.mark.parametrize("first", spread(range(PARTS), 2))
def test_a_ledger_whose_maker_was_killed_at_any_call_is_new_or_itself(tmp_path, first):
    paths = list(killed_at(creation_children.is_killed_opening, tmp_path, first, PARTS))
    for path in paths:
        assert_good_as_new(path)
    assert len(paths) * PARTS > 80


def test_the_next_session_may_be_killed_as_well(tmp_path):
    """Again and again on one path, each time a little later."""
    path = tmp_path / "ledger.db"
    for number in range(0, 120, size(10, 2)):
        with child(creation_children.is_killed_opening, path, number) as process:
            process.ends()
        left = {name for name in names(tmp_path) if not name.endswith((".alive", ".run"))}
        assert left <= {"ledger.db" + kind for kind in KINDS}
    assert_good_as_new(path)


def test_a_session_that_was_killed_at_any_call_of_its_closing_charges_what_it_held_at_most(tmp_path):
    paths = list(killed_at(creation_children.is_killed_closing, tmp_path, 0, 1))
    for path in paths:
        with opened(path) as session:
            abandoned = sum(entry.count for entry in spent(session))
            assert len(hits(session)) == 1
            assert abandoned in (0, 1)
            assert session.meter.hits == 1 + abandoned
            assert session.test(yes).hit
        assert names(path.parent) == FILES
        verify(path)
    assert abandoned == 0
    assert len(paths) > 10


# What earlier versions left when they were killed, and other remains.


def empty(path, _):
    path.touch()


def without_tables(path, _):
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")


def without_tables_and_with_a_log(path, folder):
    """As after a kill in the transaction that would have made the tables, or of another file that is gone."""
    without_tables(path, folder)
    path.with_name("ledger.db-wal").write_bytes(b"not a log" * 1000)
    path.with_name("ledger.db-shm").write_bytes(bytes(32768))


def with_the_log_of_a_ledger_that_is_gone(path, folder):
    other = folder.parent / "other.db"
    session = opened(other)
    session.test(yes)
    (path.with_name("ledger.db-wal")).write_bytes(other.with_name("other.db-wal").read_bytes())
    session.close()
    for file in folder.parent.glob("other.db*"):
        file.unlink()


def with_an_empty_witness(path, _):
    path.with_name("ledger.db-witness").touch()


def with_two_empty_files(path, folder):
    empty(path, folder)
    with_an_empty_witness(path, folder)


def with_the_witness_of_a_ledger_without_entries(path, folder):
    opened(path).close()
    path.unlink()
    empty(path, folder)


def with_unfinished_files(path, _):
    for name in ("ledger.db-unfinished", "ledger.db-unfinished-wal", "ledger.db-witness-unfinished"):
        path.with_name(name).write_bytes(b"half")


REMAINS = [
    empty,
    without_tables,
    without_tables_and_with_a_log,
    with_the_log_of_a_ledger_that_is_gone,
    with_an_empty_witness,
    with_two_empty_files,
    with_the_witness_of_a_ledger_without_entries,
    with_unfinished_files,
]


@pytest.mark.parametrize("leave", REMAINS, ids=lambda leave: leave.__name__)
def test_what_holds_no_entry_is_no_obstacle(tmp_path, leave):
    folder = tmp_path / "ledgers"
    folder.mkdir()
    leave(folder / "ledger.db", folder)
    assert_good_as_new(folder / "ledger.db")


@pytest.mark.parametrize("text", ["{}", " ", "\0" * 256, '{"ledger": "a", "inode": 1, "number": "1", "head": ""}'])
@pytest.mark.parametrize("there", [True, False])
def test_a_witness_that_cannot_be_understood_is_one_where_the_ledger_is_gone(tmp_path, text, there):
    path = tmp_path / "ledger.db"
    path.with_name("ledger.db-witness").write_text(text)
    if there:
        path.touch()
    with pytest.raises(tc.LedgerError, match="remembers its entries: restore it"):
        opened(path)
    assert names(tmp_path) == {"ledger.db-witness", *(["ledger.db"] if there else [])}


@pytest.mark.parametrize("left", ["nothing", "empty", "another's"])
def test_a_copy_without_entries_is_not_trusted_for_having_none(tmp_path, left):
    """What it was copied from may have published since."""
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    opened(path).close()
    copy.write_bytes(path.read_bytes())
    with opened(path) as session:
        session.test(yes)
    witness = copy.with_name("copy.db-witness")
    if left == "empty":
        witness.touch()
    if left == "another's":
        opened(tmp_path / "other.db").close()
        witness.write_bytes((tmp_path / "other.db-witness").read_bytes())
    with opened(copy) as session, pytest.raises(tc.BudgetSpent, match="restored copy"):
        session.test(yes)


def test_the_witness_in_the_state_folder_distrusts_a_copy_without_entries_too(tmp_path):
    path = tmp_path / "ledger.db"
    opened(path).close()
    before = {file: file.read_bytes() for file in (path, path.with_name("ledger.db-witness"))}
    with opened(path) as session:
        session.test(yes)
    for file, content in before.items():
        file.write_bytes(content)  # the same inodes
    with opened(path) as session, pytest.raises(tc.BudgetSpent, match="ends at entry 0 and entry 1 was published"):
        session.test(yes)


def test_a_ledger_that_cannot_be_made_leaves_nothing_that_is_in_the_way(tmp_path):
    path = tmp_path / "ledger.db"
    with child(children.opens_on_a_full_disk, path, 2000) as process:
        assert process.hear()[0] == "LedgerError"
        process.ends()
    assert names(tmp_path) <= {"ledger.db-witness"}
    assert_good_as_new(path)


def test_another_database_keeps_its_journal(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE state (id INTEGER)")
        database.commit()
    before = path.read_bytes()
    with pytest.raises(tc.LedgerError, match="not a ledger"):
        opened(path)
    assert (path.read_bytes(), names(tmp_path)) == (before, {"other.db"})


def test_what_the_witness_of_a_new_ledger_remembers(tmp_path):
    path = tmp_path / "ledger.db"
    opened(path).close()
    known = json.loads(path.with_name("ledger.db-witness").read_text())
    state = inspect(path).state
    assert known == {
        "ledger": state.ledger,
        "inode": path.stat().st_ino,
        "number": 0,
        "head": state.head.hex(),
        "totals": state.digest(),
    }
    assert path.with_name("ledger.db-witness").stat().st_size == 512
