import runpy
from pathlib import Path


def test_the_demo_asks_with_every_tool_and_compares_the_cost(tmp_path, monkeypatch, capsys):
    script = Path(__file__).parent.parent / "examples" / "every_tool.py"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    runpy.run_path(str(script), run_name="__main__")
    shown = capsys.readouterr().out
    tools = ("test", "release, revise", "ask_prior", "twice", "agreement", "select", "δ = 1e-8", "above 3,500")
    costs = ("exact", "Rényi", "paper", "plain composition of all 2,382 runs")
    for words in (*tools, "between", "boundary", "alternatives", *costs, "(5, 1e-06)-private"):
        assert words in shown
