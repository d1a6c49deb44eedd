import pytest
from tests.cli.commands import run
from tests.cli.conftest import TERMS

import targetcharge as tc


@pytest.mark.parametrize("name", ["visits.parquet", "visits.parquet.ledger.db"])
@pytest.mark.parametrize(
    ("options", "meter", "targets", "deviation", "left"),
    [
        ([], "sparse, query ε 0.348957", "at-least questions", "3.94", 9),
        (
            ["--meter", "exact", "--query-epsilon", 0.1],
            "exact, query ε 0.1",
            "any outcome but an expected one",
            "7.893",
            6,
        ),
    ],
    ids=["sparse", "exact"],
)
def test_the_meter_is_read_from_the_ledger_alone(folder, name, options, meter, targets, deviation, left):
    run("ask", "visits.parquet", "--threshold", 9000, *TERMS, *options)
    (folder / "visits.parquet").unlink()
    result = run("meter", name)
    told = dict(line.split("  ", 1) for line in result.out.splitlines()[:-1])
    assert {key: value.strip() for key, value in told.items()} == {
        "ledger": "visits.parquet.ledger.db",
        "budget": "(3, 1e-06)",
        "unit": "units of patient",
        "meter": told["meter"].strip(),
        "targets": targets,
        "charging": "shared",
        "noise": f"standard deviation {deviation} for a count, a part of it common to all answers",
        "hits used": "1",
        "hits left": str(left),
        "held back by open sessions": "0 hits",
        "a further hit costs": f"1 of {left + 1}",
    }
    assert told["meter"].strip().startswith(meter)
    assert (result.code, result.err) == (0, "")


@pytest.mark.usefixtures("opened")
def test_the_meter_as_json():
    result = run("meter", "visits.parquet", "--json").json
    assert result == {
        "unit": {"kind": "column", "name": "patient"},
        "meter": "sparse",
        "charging": "shared",
        "query_epsilon": pytest.approx(0.348957, abs=1e-6),
        "standard_deviation": pytest.approx(3.9402, abs=1e-4),
        "guarantee": {"epsilon": 3.0, "delta": 1e-6},
        "hits": 0,
        "hits_left": 10,
        "price": 1.0,
        "capacity": 10.0,
        "restored": None,
        "ledger": "visits.parquet.ledger.db",
    }


@pytest.mark.usefixtures("folder")
def test_the_meter_of_renyi():
    run("ask", "visits.parquet", "--threshold", 9000, *TERMS, "--meter", "renyi")
    result = run("meter", "visits.parquet", "--json").json
    assert result["hits"] == 1
    assert 0 < result["price"] * result["hits_left"] < result["capacity"] - result["price"]
    assert "if it is of the declared kind" in run("meter", "visits.parquet").out


def test_the_meter_of_alternatives_is_the_one_with_the_most_left(tmp_path):
    path = tmp_path / "s.db"
    targets = [tc.NotPrior(prior=True), tc.NotPrior(prior=False)]
    with tc.Session([], tc.Budget(3.0, 1e-6), 0.1, ledger=path, alternatives=targets) as session:
        session.ask(tc.private(0.1)(lambda _: True))
        expected = session.meter.hits, session.meter.hits_left
    result = run("meter", path, "--json").json
    assert (result["hits"], result["hits_left"]) == expected
    shown = run("ledger", "show", path, "--json").json
    assert (shown["hits"], shown["hits_left"], shown["unit"]) == (*expected, result["unit"])
    assert shown["hits"] in shown["hits_of_meters"]
    assert "unit                        not said" in run("meter", path).out


@pytest.mark.usefixtures("folder")
def test_where_there_is_no_ledger():
    result = run("meter", "visits.parquet")
    assert (result.code, result.out) == (2, "")
    assert "there is no ledger visits.parquet.ledger.db. If it is elsewhere, name it instead" in result.err
    assert "there is no such file, and no ledger no.csv.ledger.db" in run("meter", "no.csv").err


def test_a_ledger_that_cannot_be_read(folder):
    (folder / "visits.parquet.ledger.db").write_text("nothing of the kind")
    assert run("meter", "visits.parquet").code == 4


def test_a_restored_ledger_says_so(opened):
    copy = (opened / "visits.parquet.ledger.db").read_bytes()
    run("ask", "visits.parquet", "--threshold", 9000)
    (opened / "visits.parquet.ledger.db").write_bytes(copy)
    result = run("meter", "visits.parquet", "--json")
    assert result.json["hits_left"] == 0
    assert result.json["restored"] in result.err


@pytest.mark.usefixtures("folder")
def test_the_columns_of_a_table():
    result = run("describe", "visits.parquet")
    cells = [[cell.strip() for cell in line.split("│")[1:3]] for line in result.out.splitlines() if line[0] == "│"]
    kinds = {
        "patient": "number",
        "age": "number",
        "fare": "number",
        "county": "text",
        "ill": "boolean",
        "seen": "time",
    }
    assert dict(cells) == kinds
    assert run("describe", "visits.parquet", "--json").json == {"columns": kinds}
    result = run("describe", "visits.csv", "--json", "--type", "age=integer", "--type", "seen=date")
    columns = result.json["columns"]
    assert (columns["age"], columns["seen"], columns["ill"]) == ("number", "date", "text")


def test_describing_makes_no_ledger(folder):
    assert run("describe", "visits.parquet").code == 0
    assert not list(folder.glob("*ledger*"))
    assert run("describe", "no.parquet").code == 2
