"""Checkpoints save work and decide nothing: whatever happens to the file, the counters are those of the ledger."""

from __future__ import annotations

import os
import shutil
import stat

import pytest
from tests.tables.individuals import counters, crowd, opened
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.ledger import files
from targetcharge.tables.individual import UnitMeters, unit_meters

FRAME = crowd((range(12), 0), (range(6, 18), 1), (range(9), 2))
LATER = crowd((range(20, 25), 0))


@pytest.fixture(autouse=True)
def no_noise(monkeypatch):
    silence(monkeypatch)


@pytest.fixture(params=["exact", "renyi"])
def meter(request):
    return request.param


def asked(path, monkeypatch, meter, frame=FRAME):
    """Ask a few questions of a fresh table, one of which breaks; return the counters."""
    with opened(frame, 5, meter=meter, ledger=path) as t:
        t.count("week = 0"), t.above("week = 1", 3), t.above("week = 1", 300)
        with monkeypatch.context() as patch:
            patch.setattr(UnitMeters, "one", lambda *_: 1 // 0)
            with pytest.raises(tc.ComputationFailed):
                t.count()
        t.top(None, "week", range(3), 2)
        return counters(t)


def saved(path):
    return path.with_name(path.name + "-counters")


def reopened(path, meter, frame=FRAME):
    """Return the counters that a table has when it is opened again, and those of units that come then."""
    with opened(frame, 5, meter=meter, ledger=path) as t:
        found = counters(t)
        t.append(LATER)
        return found, counters(t)[len(found) :]


def test_a_checkpoint_is_made_and_used(monkeypatch, tmp_path, meter):
    path = tmp_path / "ledger.db"
    expected = asked(path, monkeypatch, meter)
    assert stat.S_IMODE(saved(path).stat().st_mode) == 0o600
    charged = []
    monkeypatch.setattr(unit_meters, "_pay", lambda *due: charged.append(due))
    assert reopened(path, meter)[0] == expected
    assert charged == []


@pytest.mark.parametrize("missing", ["gone", "empty", "half", "folder"])
def test_without_a_checkpoint_counters_are_made_again(monkeypatch, tmp_path, meter, missing):
    path = tmp_path / "ledger.db"
    expected = asked(path, monkeypatch, meter)
    body = saved(path).read_bytes()
    saved(path).unlink()
    if missing == "folder":
        saved(path).mkdir()
    elif missing != "gone":
        saved(path).write_bytes(b"" if missing == "empty" else body[: len(body) // 2])
    assert reopened(path, meter)[0] == expected


def test_a_checkpoint_with_one_wrong_byte_changes_nothing(monkeypatch, tmp_path, meter):
    """Every byte, changed in a few ways: it is ignored, or says the same."""
    path = tmp_path / "ledger.db"
    asked(path, monkeypatch, meter)
    body = saved(path).read_bytes()
    with opened(FRAME, 5, meter=meter, ledger=path) as t:
        mine, engine, allowance = t._numbers._checkpoints, t._engine, t._numbers.allowance
        good = mine.load(engine, allowance)
        wrong = []
        for place, byte in enumerate(body):
            for other in {byte ^ 1, byte ^ 2, byte ^ 16, byte ^ 128, 0x20, 0x30, 0x39} - {byte}:
                saved(path).write_bytes(body[:place] + bytes([other]) + body[place + 1 :])
                found = mine.load(engine, allowance)
                same = found is None or (
                    (found.number, found.head, found.base) == (good.number, good.head, good.base)
                    and found.spent.tolist() == good.spent.tolist()
                )
                # A number or hash that the ledger does not have is ignored there.
                ledger = t._session._ledger
                if not same and ledger.hash_at(found.number) == found.head:
                    wrong.append((body[max(0, place - 20) : place + 5], bytes([other])))
        saved(path).write_bytes(body)
    assert wrong == []


def test_an_old_checkpoint_is_brought_up_to_date(monkeypatch, tmp_path, meter):
    path = tmp_path / "ledger.db"
    asked(path, monkeypatch, meter)
    old = saved(path).read_bytes()
    with opened(FRAME, 5, meter=meter, ledger=path) as t:
        t.count("week = 2")
        expected = counters(t)
    assert saved(path).read_bytes() != old
    saved(path).write_bytes(old)
    assert reopened(path, meter)[0] == expected


def test_a_checkpoint_of_another_ledger_is_ignored(monkeypatch, tmp_path, meter):
    """On the same data, as long, by the same key: as if somebody had copied the files beside one to the other."""
    one, other = tmp_path / "one" / "ledger.db", tmp_path / "other" / "ledger.db"
    for path in (one, other):
        path.parent.mkdir()
    asked(one, monkeypatch, meter)
    shutil.copy(f"{one}-private", f"{other}-private")
    with opened(FRAME, 5, meter=meter, ledger=other) as t:
        for _ in range(9):
            t.count("week = 2 AND unit < 3")
        expected = counters(t)
    shutil.copy(saved(one), saved(other))
    assert reopened(other, meter)[0] == expected


def test_a_checkpoint_knows_what_new_units_have_paid(monkeypatch, tmp_path, meter):
    path = tmp_path / "ledger.db"
    asked(path, monkeypatch, meter)
    with_it = reopened(path, meter)
    saved(path).unlink()
    shutil.rmtree(tmp_path / "none", ignore_errors=True)
    assert reopened(path, meter) == with_it
    assert set(with_it[1]) != {0}  # a call broke: everybody pays, also who comes later


# Saving.


def test_a_table_that_was_not_asked_saves_nothing(tmp_path, meter):
    path = tmp_path / "ledger.db"
    with opened(FRAME, 5, meter=meter, ledger=path):
        pass
    assert not saved(path).exists()


def test_a_disk_that_is_full_costs_nothing_but_time_and_leaves_no_drafts(monkeypatch, tmp_path, meter):
    """A draft holds counters, and every attempt would leave one more on a disk that is full already."""
    path = tmp_path / "ledger.db"

    def full(handle, mode):
        file = original(handle, mode)

        class Full:
            def __enter__(self):
                file.__enter__()
                return self

            def __exit__(self, *error):
                return file.__exit__(*error)

            def write(self, body):
                file.write(body[: len(body) // 2])
                raise OSError(28, "No space left on device")

        return Full()

    original = os.fdopen
    with opened(FRAME, 5, meter=meter, ledger=path) as t:
        t.count("week = 0")
        expected = counters(t)
        monkeypatch.setattr(files.os, "fdopen", full)
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir() if "-counters" in file.name] == []
    assert reopened(path, meter)[0] == expected


def test_what_is_published_after_the_last_look_of_a_session_is_charged_by_the_next(tmp_path, meter):
    """Two sessions take turns; whoever closes last has the other's charges too."""
    path = tmp_path / "ledger.db"
    one, other = (opened(FRAME, 5, meter=meter, ledger=path) for _ in range(2))
    one.count("week = 0"), other.count("week = 1"), one.count("week = 2"), other.count("week = 1")
    one.close()
    other.count("week = 0")
    other.close()
    expected = reopened(path, meter)
    saved(path).unlink()
    assert reopened(path, meter) == expected
