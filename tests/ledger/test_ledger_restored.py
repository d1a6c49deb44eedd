"""Copies and restored backups: they open as spent, unless the owner names the last published entry."""

import shutil

import pytest
from tests.ledger.asking import crash, entries, no, opened, say, told, yes

import targetcharge as tc
from targetcharge.ledger.entries import Restored
from targetcharge.ledger.sqlite import inspect, restore, verify

WHAT_TO_DO = "`tct ledger restore LEDGER --number N --hash H` opens it as it is"


def witness(path):
    return path.with_name(path.name + "-witness")


def used(path, count=2):
    """Open a ledger, hit a few times, and close it; return its last number and hash."""
    with opened(path) as session:
        for _ in range(count):
            session.test(yes)
    state = inspect(path).state
    return state.last_entry, state.head.hex()


def assert_spent(path, why):
    with opened(path) as session:
        assert session.meter.hits_left == 0
        with pytest.raises(tc.BudgetSpent, match=f"looks like a restored copy: {why}.*{WHAT_TO_DO}"):
            session.test(no)
        with pytest.raises(tc.BudgetSpent):
            session.release(no, when=lambda _: True)
        assert len(list(session.transcript)) >= 1
    with pytest.raises(tc.LedgerError, match=why):
        verify(path)
    assert inspect(path).restored
    assert inspect(path).hits_left == 0


def test_a_copy_opened_elsewhere_is_spent(tmp_path):
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    used(path)
    shutil.copy(path, copy)
    assert_spent(copy, "it has no witness file beside it")
    with opened(path) as session:
        assert session.meter.hits_left == 4


def test_a_copy_with_its_witness_opened_elsewhere_is_spent(tmp_path):
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    used(path)
    shutil.copy(path, copy)
    shutil.copy(witness(path), witness(copy))
    assert_spent(copy, "it is not the file that was written to")


def test_a_backup_restored_in_place_is_spent(tmp_path):
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    used(path)
    shutil.copy(path, backup)
    used(path)
    shutil.copyfile(backup, path)
    assert_spent(path, "it ends at entry 2 and entry 4 was published")


def test_a_backup_of_a_new_ledger_restored_in_place_is_spent(tmp_path):
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    opened(path).close()
    shutil.copy(path, backup)
    used(path, 1)
    shutil.copyfile(backup, path)
    with opened(path) as session, pytest.raises(tc.BudgetSpent, match="ends at entry 0 and entry 1 was published"):
        session.test(no)


def test_a_backup_that_was_used_on_is_told_from_the_original(tmp_path, monkeypatch):
    """Restored, vouched for and used on another machine, then put back: as long, with another history."""
    path, other = tmp_path / "ledger.db", tmp_path / "other.db"
    last = used(path)
    shutil.copy(path, other)
    used(path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        with opened(other, restored=last) as session:
            session.test(yes)
            session.test(yes)
    shutil.copyfile(other, path)
    assert_spent(path, "its entry 4 is not the one that was published")


def test_a_backup_restored_as_another_file_is_spent_also_with_its_witness(tmp_path):
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    used(path)
    shutil.copy(path, backup)
    shutil.copy(witness(path), witness(backup))
    used(path)
    backup.replace(path)
    witness(backup).replace(witness(path))
    assert_spent(path, "it ends at entry 2 and entry 4 was published")


def test_a_backup_restored_as_another_file_is_spent_also_on_another_machine(tmp_path, monkeypatch):
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    used(path)
    shutil.copy(path, backup)
    shutil.copy(witness(path), witness(backup))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert_spent(backup, "it is not the file that was written to")


def test_a_folder_restored_in_place_with_its_witness_is_spent(tmp_path):
    folder, backup = tmp_path / "ledgers", tmp_path / "backup"
    folder.mkdir()
    path = folder / "ledger.db"
    last = used(path)
    shutil.copytree(folder, backup)
    used(path)
    for file in backup.iterdir():
        shutil.copyfile(file, folder / file.name)  # the same inodes, and a witness that knows no better
    assert_spent(path, "it ends at entry 2 and entry 4 was published")
    with pytest.raises(tc.NotAllowed, match="cannot be opened as complete: it ends at entry 2 and entry 4 was"):
        opened(path, restored=last)


def test_a_home_that_cannot_be_written_to_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "home").write_text("a file, no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    used(tmp_path / "ledger.db")
    with opened(tmp_path / "ledger.db") as session:
        assert session.meter.hits_left > 0


def test_a_ledger_without_its_witness_is_spent(tmp_path):
    path = tmp_path / "ledger.db"
    used(path)
    witness(path).unlink()
    assert_spent(path, "it has no witness file beside it")


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "3", '{"ledger": 1}', "\xff"])
def test_a_witness_that_cannot_be_understood_is_none(tmp_path, text):
    path = tmp_path / "ledger.db"
    used(path)
    witness(path).write_text(text, "latin-1")
    assert_spent(path, "it has no witness file beside it")


def test_the_witness_of_another_ledger_is_told(tmp_path):
    path, other = tmp_path / "ledger.db", tmp_path / "other.db"
    used(path)
    used(other)
    shutil.copyfile(witness(other), witness(path))
    assert_spent(path, "the witness file beside it belongs to another ledger")


def test_a_ledger_that_lags_by_nothing_is_not_a_copy(tmp_path):
    """The witness is written after the commit: a crash in between leaves it behind, and that is all right."""
    path = tmp_path / "ledger.db"
    used(path, 1)
    before = witness(path).read_bytes()
    used(path, 1)
    witness(path).write_bytes(before)
    with opened(path) as session:
        assert session.meter.hits_left == 4
        assert session.test(yes).hit


def test_the_owner_can_vouch_for_a_copy(tmp_path):
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    number, head = used(path)
    shutil.copy(path, copy)
    with opened(copy, restored=(number, head.upper())) as session:
        assert session.meter.hits_left == 4
        assert session.test(yes).hit
        assert Restored(number) in entries(session)
    with opened(copy) as session:
        assert session.meter.hits_left == 3
    assert verify(copy) == number + 2


def test_the_owner_can_vouch_for_a_copy_without_the_data(tmp_path):
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    number, head = used(path)
    shutil.copy(path, copy)
    restore(copy, number, head.upper())
    assert verify(copy) == number + 1
    with opened(copy) as session:
        assert session.meter.hits_left == 4
        assert session.test(yes).hit
        assert Restored(number) in entries(session)
    assert lock_files(tmp_path) == []


def lock_files(folder):
    return [path.name for path in folder.iterdir() if "lock" in path.name]


def test_vouching_for_a_trusted_ledger_without_the_data_changes_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    last = used(path)
    restore(path, *last)
    assert inspect(path).state.last_entry == last[0]


def test_nobody_vouches_for_a_ledger_that_is_not_there(tmp_path):
    with pytest.raises(tc.LedgerError, match=r"there is no ledger .*missing\.db"):
        restore(tmp_path / "missing.db", 1, "00" * 32)
    assert list(tmp_path.iterdir()) == []


def test_nobody_vouches_for_more_than_a_witness_remembers(tmp_path):
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    last = used(path)
    shutil.copy(path, backup)
    used(path)
    shutil.copyfile(backup, path)
    with pytest.raises(tc.NotAllowed, match="it ends at entry 2 and entry 4 was published"):
        restore(path, *last)


@pytest.mark.parametrize("wrong", ["number", "hash", "both"])
def test_the_owner_must_name_the_last_entry(tmp_path, wrong):
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    number, head = used(path)
    shutil.copy(path, copy)
    named = (number + (wrong != "hash"), "00" * 32 if wrong != "number" else head)
    with pytest.raises(tc.NotAllowed, match=f"the owner names entry {named[0]} .* ends at entry 2"):
        opened(copy, restored=named)
    with pytest.raises(tc.NotAllowed, match=f"the owner names entry {named[0]} .* ends at entry 2"):
        restore(copy, *named)
    assert_spent(copy, "it has no witness file beside it")


@pytest.mark.parametrize("restored", [5, "5", (5,), ("5", "aa"), (5, b"aa"), (1, "aa", 2)])
def test_a_name_that_is_none_is_refused(tmp_path, restored):
    with pytest.raises(tc.InvalidParameter, match="the number and the hash"):
        opened(tmp_path / "ledger.db", restored=restored)
    with pytest.raises(tc.InvalidParameter):
        opened(":memory:", restored=(0, ""))


def test_vouching_for_a_ledger_that_is_trusted_changes_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    last = used(path)
    with opened(path, restored=last) as session:
        assert not any(isinstance(entry, Restored) for entry in entries(session))
        assert session.meter.hits_left == 4


def test_reservations_that_a_copy_holds_are_spent(tmp_path):
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    session = opened(path)
    session.test(yes)
    crash(session)
    shutil.copy(path, copy)
    state = inspect(copy).state
    with opened(copy, restored=(state.last_entry, state.head.hex())) as again:
        assert again.meter.hits == 2


def test_pending_releases_of_a_copy_are_kept_but_not_published(tmp_path):
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    with opened(path, says=5) as session:
        session.release(told, when=lambda _: False)
    shutil.copy(path, copy)
    with opened(copy) as session:
        (release,) = session.pending
        with pytest.raises(tc.BudgetSpent):
            release.revise(lambda _: True)


def test_a_ledger_that_is_gone_is_not_made_anew_while_its_witness_remembers(tmp_path):
    path = tmp_path / "ledger.db"
    used(path)
    path.unlink()
    with pytest.raises(tc.LedgerError, match=r"remembers 2 entries.*remove ledger\.db-witness"):
        opened(path)
    assert not path.exists()
    witness(path).unlink()
    with opened(path) as session:
        assert session.meter.hits_left == 6


def test_a_ledger_that_published_nothing_may_start_anew(tmp_path):
    path = tmp_path / "ledger.db"
    opened(path).close()
    path.unlink()
    with opened(path) as session:
        assert session.test(yes).hit


def test_a_ledger_that_was_moved_with_its_witness_goes_on(tmp_path):
    path, folder = tmp_path / "ledger.db", tmp_path / "moved"
    used(path)
    folder.mkdir()
    for file in (path, witness(path)):
        file.rename(folder / file.name)
    with opened(folder / "ledger.db") as session:
        say(session, True)
        assert session.test(told).hit
        assert session.meter.hits == 3


def test_a_lost_folder_of_lock_files_frees_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    session = opened(path)
    session.test(no)
    shutil.rmtree(path.with_name("ledger.db-tenants"))
    with opened(path) as other:
        assert other.meter.hits == 1  # to the others it looks dead
        with pytest.raises(tc.LedgerError, match=r"lock files of this session .* were removed"):
            session.test(yes)
        assert other.meter.hits == 1
    session.close()
    assert verify(path) == 1  # abandoned
