"""What columns are declared to be, on the command line: said once, kept by the ledger."""

import pytest
from tests.cli.commands import run
from tests.cli.conftest import TERMS

ASKED = ("ask", "visits.csv", "age > 65", "--threshold", 9000)


@pytest.fixture
def typed(folder):
    assert run(*ASKED, *TERMS, "--type", "age=number").code == 0
    return folder


@pytest.mark.usefixtures("typed")
def test_types_are_said_once():
    assert "a hit" in run(*ASKED, "--again").out
    assert run("describe", "visits.csv", "--json").json["columns"]["age"] == "number"
    assert run("describe", "visits.csv", "--type", "age=number", "--json").json["columns"]["age"] == "number"


@pytest.mark.usefixtures("typed")
def test_other_types_are_refused_with_both_values():
    for command in (ASKED, ("describe", "visits.csv")):
        result = run(*command, "--type", "age=text", "--type", "seen=time")
        assert result.code == 3
        assert (
            "was opened with other types: age was number and is text; seen was not declared and is" in result.err
        )
        assert "open it with --new-data to read the data otherwise" in result.err
    shown = run(*ASKED, "--type", "seen=time", "--new-data")
    assert "a hit" in shown.out
    assert run("describe", "visits.csv", "--json").json["columns"]["seen"] == "time"


@pytest.mark.usefixtures("folder")
def test_a_mistaken_type_makes_no_ledger():
    assert run(*ASKED, *TERMS, "--type", "age=date").code == 2
    assert "a hit" in run(*ASKED, *TERMS, "--type", "age=number").out


@pytest.mark.usefixtures("folder")
def test_integers_are_said_to_be_rounded_when_a_ledger_is_made():
    said = "in age fractions are rounded to integers; as =number they are kept"
    assert said in run(*ASKED, *TERMS, "--type", "age=integer").err
    assert "rounded" not in run(*ASKED).err
