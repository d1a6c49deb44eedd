"""`tct append`: rows that arrive later, on the same budget; later commands read them with the table."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.cli.commands import run

import targetcharge as tc

TERMS = ("--unit", "patient", "--epsilon", 30, "--delta", 1e-6, "--hits", 5)
NO_MATCH = ("--threshold", 10**6)


@pytest.fixture(params=["shared", "individual"])
def table(request, tmp_path, monkeypatch):
    """January with a ledger beside it, and the months after it; in the current folder."""
    monkeypatch.chdir(tmp_path)
    for month, patients in {"january": range(3000), "february": range(2000, 6000), "march": range(9000)}.items():
        pd.DataFrame({"patient": patients}).to_parquet(f"{month}.parquet")
    pd.DataFrame({"person": range(9)}).to_parquet("other.parquet")
    assert run("ask", "january.parquet", *NO_MATCH, *TERMS, "--charging", request.param).code == 0
    return "january.parquet"


def answer(table):
    (only,) = run("ask", table, "--threshold", 10, "--json").json["answers"]
    return only["outcome"]


def close(outcome, truth):
    return abs(outcome - truth) < 50


def test_what_was_appended_is_asked_from_then_on(table):
    assert close(answer(table), 3000)
    done = run("append", table, "february.parquet")
    assert (done.code, done.out) == (0, f"february.parquet is snapshot 2 of {table}, on the same budget\n")
    assert close(answer(table), 6000)
    assert run("append", table, "march.parquet").code == 0
    assert close(answer(table), 9000)
    assert run("meter", table, "--json").json["hits"] == 3
    with tc.open(table) as opened:
        assert [kept.snapshot for kept in opened.transcript if kept.hit] == [1, 2, 3]


def test_several_files_are_a_snapshot_each(table):
    done = run("append", table, "february.parquet", "march.parquet")
    assert [line.split(" of ")[0] for line in done.out.splitlines()] == [
        "february.parquet is snapshot 2",
        "march.parquet is snapshot 3",
    ]
    assert close(answer(table), 9000)


def test_what_python_appended_is_asked_too(table):
    with tc.open(table) as opened:
        assert opened.append("february.parquet") == 2
    assert close(answer(table), 6000)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["february.parquet"], "february.parquet: it was appended to january.parquet before"),
        (["./february.parquet"], "./february.parquet: it was appended to january.parquet before"),
        (["march.parquet", "march.parquet"], "march.parquet: it was appended to january.parquet before"),
        (["january.parquet"], "january.parquet: it is in the table january.parquet already"),
        (["other.parquet"], "it must be a table with the columns of the one that is open: it lacks patient"),
        (["april.parquet"], "MORE is 'april.parquet'; it must be a Parquet"),
    ],
)
def test_what_cannot_be_appended_is_named_and_changes_nothing(table, more, problem):
    assert run("append", table, "february.parquet").code == 0
    done = run("append", table, *more)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err
    assert close(answer(table), 6000)


def test_a_table_without_a_ledger_is_asked_first(table):
    done = run("append", "february.parquet", table)
    assert done.code == 2
    assert "there is no ledger february.parquet.ledger.db yet: ask the table first, or put all files" in done.err


@pytest.mark.parametrize("change", ["changed", "gone"])
def test_what_was_appended_and_is_not_there_is_named(table, change, tmp_path):
    assert run("append", table, "february.parquet").code == 0
    february = tmp_path / "february.parquet"
    kept = february.read_bytes()
    february.unlink()
    if change == "changed":
        (tmp_path / "march.parquet").rename(february)
    done = run("ask", table, *NO_MATCH)
    assert (done.code, done.out) == (7, "")
    assert f"{february} was appended to the table, and is gone or not what it was: restore it" in done.err
    february.write_bytes(kept)
    assert close(answer(table), 6000)


def test_a_file_in_the_folder_that_is_the_table_is_not_appended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits").mkdir()
    pd.DataFrame({"patient": range(3000)}).to_parquet("visits/january.parquet")
    assert run("ask", "visits", *NO_MATCH, *TERMS).code == 0
    pd.DataFrame({"patient": range(3000, 6000)}).to_parquet("visits/february.parquet")
    done = run("append", "visits", "visits/february.parquet")
    assert done.code == 2
    assert "it is in the table visits already: with --new-data the next question takes up" in done.err
    assert run("ask", "visits/*.parquet", *NO_MATCH, *TERMS, "--ledger", "all.db").code == 0
    done = run("append", "visits/*.parquet", "visits/february.parquet", "--ledger", "all.db")
    assert done.code == 2
    assert "it is in the table visits/*.parquet already" in done.err
