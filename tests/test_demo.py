import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")


def test_every_tool_is_asked_and_the_costs_are_compared(capsys):
    runpy.run_path(str(EXAMPLES / "every_tool.py"), run_name="__main__")
    shown = capsys.readouterr().out
    tools = ("test", "release, revise", "ask_prior", "twice", "agreement", "select", "δ = 1e-8", "above 3,500")
    costs = ("exact", "Rényi", "paper", "plain composition of all 2,382 runs")
    for words in (*tools, "between", "boundary", "alternatives", *costs, "(5, 1e-06)-private"):
        assert words in shown


def test_the_demo_finds_the_late_days_with_a_budget_for_every_aircraft(capsys, tmp_path):
    """45 days reach the threshold. Few of those near it are missed or added: at most 15 of 45, by far."""
    runpy.run_path(str(EXAMPLES / "flights.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "336,776 flights" in shown
    assert "(3.29, 1e-06)-differentially private for every aircraft" in " ".join(shown.split())
    found = re.search(r"0\.1 +│ 3\.29 +│ 365 +│ (\d+) +│ (\d+) of 45 days +│ (\d+)", shown)
    hits, right, wrong = map(int, found.groups())
    assert hits == right + wrong
    assert right > 30
    assert wrong < 15
    for name in ("a budget for every aircraft", "one budget for all", "plain composition", "the paper's bound"):
        assert name in shown
    assert (tmp_path / "out" / "flights.png").read_bytes().startswith(b"\x89PNG")
    assert f"{hits}" in (tmp_path / "out" / "flights.html").read_text()
    assert (tmp_path / "out" / "flights.db").exists()
