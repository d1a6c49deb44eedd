"""Ledgers that earlier versions wrote: they are read as they were, and go on."""

import json
import sqlite3
import warnings
from contextlib import closing, contextmanager

import pytest
from tests.ledger.fixture_ledgers import (
    FIXTURES,
    at_least,
    copy_of,
    held,
    kinds_in,
    opened,
    read,
    rules,
    yes,
)

import targetcharge as tc
from targetcharge.accounting.targets.plain import in_words
from targetcharge.ledger import version_1
from targetcharge.ledger.entries import VERSION
from targetcharge.ledger.sqlite import verify
from targetcharge.ledger.terms import OFFSET_VERSION

VERSIONS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
ALL = [(version, path.name) for version in VERSIONS for path in sorted((FIXTURES / version).iterdir())]
QUIET = [(version, name) for version, name in ALL if name != "killed"]


@pytest.fixture
def fixture(request, tmp_path, monkeypatch):
    monkeypatch.setenv(
        "XDG_STATE_HOME", str(tmp_path / "state")
    )  # each copy is the only one: no witness knows others
    version, name = request.param
    holds = json.loads((FIXTURES / version / name / "holds.json").read_text())
    return name, copy_of(name, tmp_path / version, version), read(holds, version)


def hits(one):
    """Return the hits on all meters together."""
    return sum(meter.hits for meter in getattr(one, "_session", one)._ledger.meters)


@contextmanager
def opened_first(name, folder):
    """Open a fixture for the first time: where format 1 hashed units and frames otherwise, that is said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one = opened(name, folder)
    said = [str(each.message) for each in caught if "same data in this process" not in str(each.message)]
    anew = folder.parent.name == "1" and (name.startswith("individual") or name == "frame")
    assert ["written by an earlier version" in each for each in said] == [True] * anew
    assert ["make sure that it is the same" in each for each in said] == [name.endswith("frame")] * anew
    with one:
        yield one


def test_there_is_a_fixture_of_every_kind_in_every_format():
    assert [str(version) for version in range(1, OFFSET_VERSION + 1)] == VERSIONS
    assert set(ALL) == {(version, name) for version in VERSIONS for name in kinds_in(version)}


@pytest.mark.parametrize("fixture", QUIET, indirect=True, ids="-".join)
def test_a_ledger_of_an_earlier_version_holds_what_it_held(fixture):
    name, folder, holds = fixture
    with opened_first(name, folder) as one:
        assert held(name, one) == holds
    with opened(name, folder) as one:
        assert held(name, one) == holds
    assert verify(folder / "ledger.db") >= 1


@pytest.mark.parametrize("fixture", QUIET, indirect=True, ids="-".join)
def test_a_ledger_of_an_earlier_version_goes_on(fixture):
    name, folder, holds = fixture
    with opened_first(name, folder) as one:
        if name == "spent":
            with pytest.raises(tc.BudgetSpent):
                one.test(yes)
            return
        before = hits(one)
        if name == "sparse":
            answer = one.ask(at_least(one, -(10**6)))
        elif name == "labels":
            answer = one.ask(yes, tc.Everything())
        elif isinstance(one, tc.Session):
            answer = one.ask(yes) if name == "alternatives" else one.test(yes)
        else:
            answer = one.above("age > 30", 100, again=True)
        assert answer.hit
        assert answer.seq > max(each["seq"] for each in holds["answers"])
        assert hits(one) == before + 1
    with opened(name, folder) as one:
        assert hits(one) == before + 1
        assert [answer.seq for answer in one.transcript] == [
            *(each["seq"] for each in holds["answers"]),
            answer.seq,
        ]
    assert verify(folder / "ledger.db") > 1


TABLES = [each for each in ALL if each[1] in ("table", "frame", "appended") or each[1].startswith("individual")]


@pytest.mark.parametrize("fixture", TABLES, indirect=True, ids="-".join)
def test_what_an_earlier_version_published_is_a_repeat(fixture):
    name, folder, holds = fixture
    with opened_first(name, folder) as one:
        hit = next(each for each in reversed(holds["answers"]) if each["hit"] and not each["key"])
        where, threshold = hit["algorithm"].removeprefix("count(").split(") >= ")
        before = one.meter.hits
        repeat = one.above(where, int(threshold))
        assert (repeat.repeat, repeat.seq, repeat.outcome) == (True, hit["seq"], hit["outcome"])
        if name in ("table", "frame"):
            published = [each for each in holds["answers"] if each["hit"] and ">= 2" in each["algorithm"]]
            answers = one.watch("age > 30", by="age", keys=range(31, 34), threshold=2)
            assert [(answer.key, answer.seq, answer.outcome) for answer in answers if answer.repeat] == [
                (each["key"], each["seq"], each["outcome"]) for each in published
            ]
            assert published
            before += sum(not answer.repeat for answer in answers.hits)
        assert one.meter.hits == before


@pytest.mark.parametrize("fixture", [each for each in ALL if each[1] == "killed"], indirect=True, ids="-".join)
def test_what_a_killed_session_of_an_earlier_version_held_back_is_spent(fixture):
    name, folder, holds = fixture
    with opened(name, folder) as one:
        assert one.meter.hits == holds["hits"]
        assert sum(entry.count for entry in one._ledger.entries() if hasattr(entry, "why")) == holds["broken"]
    assert verify(folder / "ledger.db") >= 1


@pytest.mark.parametrize("fixture", [each for each in ALL if each[1] == "pending"], indirect=True, ids="-".join)
def test_a_release_that_waited_in_an_earlier_version_can_be_revised(fixture):
    _, folder, holds = fixture
    with opened("pending", folder) as one:
        for seq in holds["pending"]:
            assert one.revise(seq, {7}).outcome == 7
        assert one._ledger.pending() == []
        assert one.meter.hits == holds["totals"][0]["hits"] + len(holds["pending"])


@pytest.mark.parametrize("fixture", [each for each in ALL if each[1] == "appended"], indirect=True, ids="-".join)
def test_a_table_that_grew_in_an_earlier_version_knows_its_snapshots(fixture):
    _, folder, _ = fixture
    with opened("appended", folder) as one:
        assert one.above("age > 30", 100).snapshot == 2


@pytest.mark.parametrize("fixture", [each for each in ALL if each[1] == "monitor"], indirect=True, ids="-".join)
def test_a_monitor_goes_on_from_the_ledger_of_an_earlier_version(fixture):
    _, folder, _ = fixture
    kind, list_of_rules = rules()
    with opened("monitor", folder) as one:
        monitor = kind(one, list_of_rules, day="day")
        with pytest.raises(tc.InvalidParameter, match="day"):
            monitor.look("2024-01-02")
        assert monitor.look("2024-01-04").day.isoformat() == "2024-01-04"


@pytest.mark.parametrize(("version", "name"), QUIET, ids="-".join)
def test_the_fixtures_are_of_the_format_that_they_say(version, name):
    path = FIXTURES / version / name / "ledger.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as file:
        header = json.loads(file.execute("SELECT header FROM state").fetchone()[0])
        bodies = [json.loads(body) for (body,) in file.execute("SELECT body FROM entries")]
    assert (header["format"], header["version"]) == ("targetcharge ledger", int(version))
    assert {body["version"] for body in bodies} == {min(int(version), VERSION)}


@pytest.mark.parametrize("fixture", [("1", "exact")], indirect=True, ids="-".join)
def test_power_a_target_that_only_reads_the_same_is_noticed(fixture, monkeypatch):
    """In words this mutant's targets are those of the fixture: what was False is the text 'False'."""
    name, folder, holds = fixture
    right = version_1.target

    def wrong(words):
        name, *prior = right(words)
        return (name, repr(*prior), "shortened") if prior else (name,)

    monkeypatch.setattr(version_1, "target", wrong)
    with opened(name, folder) as one:
        assert {in_words(*answer.targets) for answer in one.transcript} >= {"NotPrior(False)", "NotPrior(7)"}
        assert held(name, one) != holds


def tables(path):
    """Return the columns of every table."""
    with closing(sqlite3.connect(path)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")] for name in names}


@pytest.mark.parametrize("fixture", [("1", "exact")], indirect=True)
def test_open_sessions_hold_back_grains_and_files_of_the_first_format_keep_their_words(fixture, tmp_path):
    path = tmp_path / "new.db"
    tc.Session([1], tc.Budget(3.0, 1e-6), 0.1, ledger=path).close()
    assert tables(path)["sessions"] == ["name", "grains", "count"]
    assert "tenants" not in tables(path)
    name, folder, _ = fixture
    with opened_first(name, folder) as one:
        one.test(yes)
    assert tables(folder / "ledger.db")["tenants"] == ["name", "units", "count"]
