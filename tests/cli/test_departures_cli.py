"""Who still takes part: said by every command, where each unit has a budget of its own."""

import re

import pytest
from tests.cli.commands import run
from tests.cli.conftest import COUNTY, TERMS

SAID = "of the units that still take part"


@pytest.fixture
def spent(folder):  # noqa: ARG001 - it is where the commands run
    """A ledger on which all of Devon has spent its two hits; the last answer about it."""
    run(
        "ask",
        "visits.parquet",
        "county = 'Devon'",
        "--threshold",
        9000,
        *TERMS,
        "--charging",
        "individual",
        "--hits",
        2,
    )
    return run("count", "visits.parquet", "county = 'Devon'")


def most(text):
    """Return at most how many have left, as a sentence says."""
    told = re.search(rf"{SAID}; at most ([0-9,]+) no longer do, in at least 95% of draws", text)
    return int(told[1].replace(",", ""))


def test_an_answer_says_whom_it_is_about_and_how_many_may_have_left(spent):
    assert spent.out.startswith(f"count(county = 'Devon'), {SAID}: ")
    assert "Each unit takes part in 2 hits at most, and numbers are" in spent.out
    assert COUNTY <= most(spent.out) < COUNTY + 200


@pytest.mark.usefixtures("spent")
def test_the_meter_knows_it_from_the_ledger_alone(folder):
    (folder / "visits.parquet").unlink()
    meter = run("meter", "visits.parquet")
    assert most(meter.out) == run("meter", "visits.parquet", "--json").json["may_have_left"]
    assert COUNTY <= most(meter.out) < COUNTY + 200
    shown = run("ledger", "show", "visits.parquet.ledger.db", "--json").json
    assert shown["may_have_left"] == most(meter.out)
    assert SAID in " ".join(run("ledger", "show", "visits.parquet.ledger.db").out.split())


@pytest.mark.usefixtures("spent")
def test_other_forms_of_output_say_it_too():
    keys = ("watch", "visits.parquet", "--by", "county", "--keys", "Kent,Devon", "--threshold", 9000)
    table = run(*keys)
    assert f"count(*) by county >= 9000, {SAID}" in table.out
    assert COUNTY <= most(table.out) < 2 * COUNTY
    plain = run(*keys, "--json").json
    assert all(SAID in answer["question"] for answer in plain["answers"])
    assert most(table.out) <= plain["meter"]["may_have_left"] < 2 * COUNTY + 200
    assert most(run(*keys, "--csv").err) >= COUNTY
    assert SAID in run("ask", "visits.parquet", "--threshold", 9000, "--preview").out


@pytest.mark.usefixtures("spent")
def test_a_selection_needs_several_hits_of_a_unit():
    both = run("top", "visits.parquet", "--by", "county", "--keys", "Kent,Essex", "-k", 2)
    assert most(both.out) > 2 * COUNTY  # who has paid for one hit cannot pay for two more


@pytest.mark.usefixtures("spent")
def test_where_numbers_tell_nothing_it_says_that():
    for _ in range(2):
        mean = run("mean", "visits.parquet", "age", "--lower", 0, "--upper", 100, "--again")
    assert f"mean(age from 0 to 100), {SAID}: " in mean.out
    assert "how many no longer do, nothing that was published bounds." in mean.out
    assert run("meter", "visits.parquet", "--json").json["may_have_left"] is None


@pytest.mark.usefixtures("opened")
def test_a_shared_budget_says_nothing_of_it():
    shown = run("count", "visits.parquet").out + run("meter", "visits.parquet").out
    assert SAID not in shown
    assert "may_have_left" not in run("meter", "visits.parquet", "--json").out


def test_a_monitor_says_it_at_its_end(folder):
    rule = "{name: visits, where: county = 'Kent', threshold: 9000, anew: true}"
    opening = "{table: visits.parquet, unit: patient, epsilon: 3, delta: 1e-6, charging: individual, hits: 2, %s}"
    (folder / "clinic.yaml").write_text(opening % f"day: seen, rules: [{rule}]")
    monitor = run("monitor", "clinic.yaml", "--until", "2013-01-01")
    assert f"1 day looked at, 1 alert; numbers are {SAID}; so far all do" in monitor.err
    assert SAID in monitor.json["whose"]
