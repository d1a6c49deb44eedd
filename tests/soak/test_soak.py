"""A short soak finds nothing; ledgers, racers and engines with a mistake are found out."""

import sys

import pytest
from tests.ledger import asking, children
from tests.soak import __main__ as command
from tests.soak import ledgers, numbers
from tests.soak.tally import Tally, soak, table_of, tally_of

from targetcharge.engines import sql
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.ledger.sqlite.ledger import SqliteLedger


def test_a_short_soak_tries_everything_and_finds_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["soak", "0.02"])
    assert command.main() == 0
    head, *lines, end = capsys.readouterr().out.splitlines()
    assert head.split() == ["trials", "tried", "lost", "free", "wrong"]
    assert [line.split()[-3:] for line in lines] == [["0", "0", "0"]] * len(command.KINDS)
    assert all(int(line.split()[-4]) > 0 for line in lines)
    assert " s, from seed " in end


def in_memory(_path, hits=6, says=False):
    return asking.opened(":memory:", hits, says)


def forgets(pipe, path, seed):
    """Ask as others do, with a ledger that forgets every charge."""
    children.opened = in_memory
    children.asks_until_killed(pipe, path, seed)


def races_alone(pipe, capacity):
    """Race with a ledger of its own."""
    children.opened = in_memory
    children.races(pipe, capacity)


def test_a_ledger_that_forgets_its_charges_is_found_out(tmp_path):
    found = ledgers.kills(1, tmp_path, writes=forgets)
    assert found.lost > 0
    assert not found.clean


def test_racers_that_do_not_see_each_other_are_found_out(tmp_path):
    assert ledgers.races(1, tmp_path, racing=races_alone).free > 0


def breaks_off(_pipe, path, _seed):
    """Raise what no writer should."""
    raise LookupError(path.name)


def test_a_writer_that_ends_by_an_exception_is_found_out_with_its_text(tmp_path):
    found = ledgers.kills(1, tmp_path, writes=breaks_off)
    assert found.wrong > 0
    assert all("LookupError: ledger.db" in note for note in found.notes)


def ends_early(pipe, _capacity):
    """Leave the first race."""
    raise LookupError(pipe.recv().name)


def test_a_racer_that_ends_by_an_exception_is_found_out_with_its_text(tmp_path):
    found = ledgers.races(1, tmp_path, racing=ends_early)
    assert found.wrong > 1
    assert "LookupError: 0.db" in found.notes[-1]


def found_by(trial, folder):
    """Return what a dozen trials find in all."""
    found = Tally()
    for seed in range(12):
        place = folder / str(seed)
        place.mkdir()
        found.add(tally_of(trial, seed, place), seed)
    return found


def test_restored_ledgers_that_are_trusted_are_found_out(monkeypatch, tmp_path):
    monkeypatch.setattr(SqliteLedger, "_trust", lambda *_: "")
    assert found_by(ledgers.restores, tmp_path).free > 0


def test_an_engine_that_miscounts_is_found_out(monkeypatch, tmp_path):
    measure = DuckDBEngine.measure
    monkeypatch.setattr(DuckDBEngine, "measure", lambda *asked: [count + 1 for count in measure(*asked)])
    assert numbers.predicates(0, tmp_path).wrong == 1


def test_sums_that_are_not_within_their_bounds_are_found_out(monkeypatch, tmp_path):
    monkeypatch.setattr(sql, "clamped", lambda contribution, _total: contribution)
    assert found_by(numbers.neighbours, tmp_path).wrong > 0


def loses_two(_seed, _folder):
    found = Tally(tried=1)
    found.note("lost", 2, "two of three")
    return found


def breaks(_seed, _folder):
    raise ValueError


@pytest.mark.parametrize(("trial", "column"), [(loses_two, "lost"), (breaks, "wrong")])
def test_what_is_found_is_shown_with_its_seed_and_is_the_exit_code(monkeypatch, capsys, trial, column):
    monkeypatch.setattr(command, "KINDS", {"trial": trial})
    monkeypatch.setattr(sys, "argv", ["soak", "0", "--seed", "7"])
    assert command.main() == 1
    shown = capsys.readouterr().out
    assert f"trial, seed 7: {column}: " in shown
    assert shown.splitlines()[1].split() == [
        "trial",
        "1",
        *(["2", "0", "0"] if column == "lost" else ["0", "0", "1"]),
    ]


def test_long_lists_of_findings_are_cut():
    tallies = soak({"trial": loses_two}, 0, 1)
    tallies["trial"].notes *= 100
    assert table_of(tallies).endswith("trial: 80 more")
