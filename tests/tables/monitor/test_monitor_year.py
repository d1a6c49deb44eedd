import re
import runpy
from pathlib import Path

from tests.sizes import size

EXAMPLE = Path(__file__).parents[3] / "examples" / "monitor_year.py"
FIRST, LAST = size(150, 0), size(250, 365)
"""In a quick run a hundred days around the summer, which has the most late ones."""


def test_a_year_of_flights_day_by_day(capsys, monkeypatch):
    """Few of the days near the threshold are missed or added: at most a third of all that reach it, by far."""
    monkeypatch.setenv("COLUMNS", "140")
    example = runpy.run_path(str(EXAMPLE), run_name="example")
    year = example["days"]()[FIRST:LAST]
    monkeypatch.setitem(example["main"].__globals__, "days", lambda: year)
    example["main"]()
    shown = capsys.readouterr().out
    cells = re.search(r"the year +" + r"│ +(\d+) +" * 6, shown).groups()
    late, found, false, moves, right, wrong = map(int, cells)
    assert late == size(26, 45)
    assert found > late * 2 / 3
    assert false < late / 3
    assert f"{year[0][0]}: flying is " in shown
    assert "seen so far rose to " in shown
    assert moves >= right >= 1
    hits = int(re.search(rf"(\d+) hits of {3 * len(year):,} answers", shown)[1])
    assert hits == found + false + right + wrong + shown.count("seen so far")
    assert "(7.5, 1e-06)-differentially private for every aircraft" in " ".join(shown.split())
