"""The registry of tables and their ledgers: what it keeps, from whom, and that nothing is lost."""

import json
import os
import stat
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path

import pytest

from targetcharge.ledger.registry import Registration, Registry

WRITERS, EACH = 4, 25


@pytest.fixture
def registry(tmp_path):
    return Registry(tmp_path / "state" / "ledgers")


def of(ledger, *places, path="", file=""):
    return Registration(ledger, path or f"/l/{ledger}.db", " ".join(places), places, file, 1.0, 1e-6, 0.0)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("/d/visits.csv", "/d/visits.csv", True),
        ("/d", "/d/2024/visits.csv", True),
        ("/d/2024/visits.csv", "/d", True),
        ("/d/visits.csv", "/d/visits.csv.gz", False),
        ("/d/visits", "/d/visits2/a.csv", False),
        ("/d/2023", "/d/2024", False),
    ],
)
def test_tables_share_files_if_one_is_in_the_other(first, second, same, registry):
    assert registry.add(of("one", first)) == []
    assert registry.add(of("two", "/elsewhere", second)) == ([of("one", first)] if same else [])


def test_one_file_with_two_names_is_one_and_frames_are_none(registry):
    registry.add(of("one", "/d/a.csv", file="1:2:3"))
    registry.add(of("frame"))
    assert [other.ledger for other in registry.add(of("two", "/e/b.csv", file="1:2:3"))] == ["one"]
    assert registry.add(of("three", "/e/c.csv", file="1:2:4")) == registry.add(of("other frame")) == []


def test_a_ledger_that_was_moved_is_the_same_and_keeps_what_it_was_about(registry):
    registry.add(of("one", "/d/a.csv"))
    moved = replace(of("one", "/e/a.csv", path="/moved.db"), since=9.0)
    assert registry.add(moved) == []
    assert registry.known() == [replace(moved, places=("/d/a.csv", "/e/a.csv"), since=0.0)]
    assert [other.path for other in registry.add(of("two", "/d/a.csv"))] == ["/moved.db"]


def test_of_a_ledger_that_comes_to_be_about_more_the_others_of_that_are_told_once(registry):
    registry.add(of("one", "/d/a.csv"))
    registry.add(of("two", "/d/b.csv"))
    grown = of("one", "/d/a.csv", "/d/b.csv")
    assert [other.ledger for other in registry.add(grown)] == ["two"]
    assert registry.add(grown) == []
    assert [other.ledger for other in registry.add(of("three", "/d/b.csv"))] == ["one", "two"]


def test_a_copy_does_not_take_the_place_of_a_ledger_that_is_there(registry, tmp_path):
    there = tmp_path / "one.db"
    there.touch()
    registry.add(of("one", "/d/a.csv", path=str(there)))
    registry.add(of("one", "/d/a.csv", path="/copy.db"))
    assert [known.path for known in registry.known()] == [str(there)]


def test_to_open_a_ledger_again_writes_nothing(registry):
    registry.add(of("one", "/d/a.csv"))
    before = registry.path.read_bytes()
    registry.add(replace(of("one", "/d/a.csv"), since=7.0))
    assert registry.path.read_bytes() == before


def test_what_is_forgotten_is_forgotten_until_it_is_opened_again(registry):
    for ledger in ("one", "two"):
        registry.add(of(ledger, "/d/a.csv"))
    registry.forget(["one", "never"])
    assert [known.ledger for known in registry.known()] == ["two"]
    assert [other.ledger for other in registry.add(of("one", "/d/a.csv"))] == ["two"]


def test_processes_that_register_at_the_same_moment_lose_nothing(registry):
    children = []
    for writer in range(WRITERS):
        child = os.fork()
        if not child:
            try:
                seen = [len(registry.add(of(f"{writer}-{number}", "/d/a.csv"))) for number in range(EACH)]
                (registry.path.parent / f"{writer}").write_text(json.dumps(seen))
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert {known.ledger for known in registry.known()} == {
        f"{writer}-{number}" for writer in range(WRITERS) for number in range(EACH)
    }
    seen = [json.loads((registry.path.parent / f"{writer}").read_text()) for writer in range(WRITERS)]
    assert sorted(chain.from_iterable(seen)) == list(
        range(WRITERS * EACH)
    )  # each was told of all that came before


def test_lines_that_cannot_be_understood_are_passed_over_and_spoil_no_other(registry):
    registry.add(of("one", "/d/a.csv"))
    with registry.path.open("ab") as file:
        file.write(b'\n[]\n7\n{"ledger": "half"}\n\xff\x00\n{"forgotten": []}')
        for wrong in (
            {"epsilon": -1.0},
            {"delta": "0"},
            {"since": 1e300},
            {"places": [7]},
            {"places": 7},
            {"path": 1},
        ):
            file.write(b"\n" + json.dumps({**asdict(of("wrong", "/d/a.csv")), **wrong}).encode())
        file.write(b'\n{"led')
    registry.add(of("two", "/d/b.csv"))
    assert [known.ledger for known in registry.known()] == ["one", "two"]


def test_only_its_owner_can_read_it(registry):
    before = os.umask(0)
    try:
        registry.add(of("one", "/d/a.csv"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(registry.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(registry.path.parent.stat().st_mode) == 0o700


def test_it_lies_in_the_state_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Registry().path == tmp_path / "targetcharge" / "ledgers"
    assert Registry().known() == []
    assert not Registry().path.parent.exists()
    monkeypatch.delenv("XDG_STATE_HOME")
    assert Path("~/.local/state/targetcharge/ledgers").expanduser() == Registry().path
