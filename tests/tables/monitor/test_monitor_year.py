import re
import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "monitor_year.py"


def test_a_year_of_flights_day_by_day(capsys, monkeypatch):
    """45 days reach the threshold. Few of those near it are missed or added: at most 15 of 45, by far."""
    monkeypatch.setenv("COLUMNS", "140")
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    cells = re.search(r"the year +" + r"│ +(\d+) +" * 6, shown).groups()
    late, found, false, moves, right, wrong = map(int, cells)
    assert late == 45
    assert found > 30
    assert false < 15
    assert "2013-01-01: flying is " in shown
    assert "seen so far rose to " in shown
    assert moves >= right >= 1
    hits = int(re.search(r"(\d+) hits of 1,095 answers", shown)[1])
    assert hits == found + false + right + wrong + shown.count("seen so far")
    assert "(7.5, 1e-06)-differentially private for every aircraft" in " ".join(shown.split())
