"""`tct budgets`, and what every command says of budgets on the error stream."""

import pytest
from tests.cli.commands import run
from tests.cli.conftest import TERMS


@pytest.fixture
def opened(folder):
    """A folder with a table and its ledger."""
    assert run("ask", "visits.parquet", "age > 50", "--threshold", 9000, *TERMS).code == 0
    return folder


def test_a_second_ledger_is_told_of_the_first_by_its_option(opened):
    asked = run("ask", "visits.parquet", "age > 200", "--threshold", 9000, "--ledger", "other.db", *TERMS)
    assert asked.code == 0
    first = opened / "visits.parquet.ledger.db"
    assert f"tct: {opened / 'visits.parquet'} has another budget: (3, 1e-06) for " in asked.err
    assert f", in {first}. What" in asked.err
    assert f"To go on with it instead: --ledger {first}\n" in asked.err
    assert (
        "budget.py" not in asked.err + run("ask", "visits.parquet", "--ledger", "other.db", "--threshold", 1).err
    )
    assert "has another budget" not in run("describe", "visits.parquet").err  # it asks nothing


@pytest.mark.usefixtures("folder")
def test_a_budget_that_protects_nobody_is_told_of():
    large = ("--unit", "patient", "--epsilon", 50, "--delta", 0.01)
    preview = run("ask", "visits.parquet", "--threshold", 5, *large, "--preview")
    asked = run("ask", "visits.parquet", "--threshold", 5, *large)
    assert (preview.code, preview.err, asked.code) == (0, "", 0)  # a preview makes no ledger
    assert asked.err.startswith(
        "tct: a budget with δ = 0.01 hardly protects anybody: to publish one person in 100"
    )
    assert "tct: a budget with ε = 50 hardly protects anybody" in asked.err


def test_budgets_lists_tables_and_what_is_left(opened):
    table, ledger = str(opened / "visits.parquet"), str(opened / "visits.parquet.ledger.db")
    shown = run("budgets").out.splitlines()
    assert shown[:2] == [table, "  (3, 1e-06) for units of patient, sparse meter: 1 hit, 9 left"]
    assert shown[2].startswith(f"    {ledger}, since 20")
    (known,) = run("budgets", "--json").json
    assert {**known, "since": 0, "used": 0} == {
        "table": table,
        "ledger": ledger,
        "budget": {"epsilon": 3.0, "delta": 1e-6},
        "since": 0,
        "used": 0,
        "problem": "",
        "unit": "units of patient",
        "meter": "sparse",
        "charging": "shared",
        "hits": 1,
        "hits_left": 9,
    }


def test_without_a_registry_there_is_nothing_to_list(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert run("budgets").out == "no table was opened with a ledger yet\n"
    assert run("budgets", "--json").json == []
    (tmp_path / "state").write_text("")
    broken = run("budgets")
    assert (broken.code, "the registry of ledgers" in broken.err) == (4, True)


@pytest.mark.parametrize("path", ["visits.parquet", "visits.parquet.ledger.db", ".", "the whole path"])
def test_only_what_is_gone_is_forgotten_and_then_no_more_told_of(path, opened):
    path = str(opened / "visits.parquet") if path == "the whole path" else path
    refused = run("budgets", "--forget", path)
    ledger = opened / "visits.parquet.ledger.db"
    said = f"tct: the ledger {ledger} is there and keeps its budget: only ledgers that are gone are forgotten\n"
    assert (refused.code, refused.err) == (3, said)
    for file in opened.glob("*.ledger.db*"):
        file.unlink()
    assert run("budgets").out.splitlines()[1] == "  (3, 1e-06): the file is gone"
    assert run("budgets", "--forget", path).out.splitlines()[:2] == [
        "forgotten: 1",
        str(opened / "visits.parquet"),
    ]
    assert run("budgets", "--json").json == []
    again = run("ask", "visits.parquet", "age > 200", "--threshold", 9000, *TERMS)
    assert again.err == "tct: made the ledger visits.parquet.ledger.db\n"


@pytest.mark.usefixtures("opened")
def test_what_nobody_knows_is_not_forgotten():
    asked = run("budgets", "--forget", "june.parquet")
    said = "tct: --forget is 'june.parquet'; it must be a table, a ledger or a folder that the registry knows\n"
    assert (asked.code, asked.err) == (2, said)
    assert len(run("budgets", "--json").json) == 1
