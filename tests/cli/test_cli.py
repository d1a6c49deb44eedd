import json
import re
import subprocess
import sys

import pytest
import typer
from tests.cli.commands import run
from tests.refusals import every
from typer.testing import CliRunner

import targetcharge as tc
from targetcharge import errors
from targetcharge.cli import main
from targetcharge.cli.app import app
from targetcharge.cli.errors import AUDIT_FAILED, EXIT_CODES, INTERRUPTED, exit_code

ERROR = errors.TargetChargeError
PLAN = ["plan", "--epsilon", "1", "--delta", "1e-6"]


def tct(*arguments):
    """Run the installed command as a user does."""
    code = f"import sys; from targetcharge.cli import main; sys.argv = ['tct', *{list(arguments)!r}]; main()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own code


def test_plan_prints_a_table():
    result = tct(*PLAN, "--query-epsilon", "0.05")
    assert result.returncode == 0
    lines = {line.split("│")[1].strip(): line for line in result.stdout.splitlines() if line.startswith("│")}
    assert "26 questions" in lines["optimal composition"]
    assert "2 hits" in lines["exact"]
    assert "A budget of (1, 1e-06) at query ε 0.05" in result.stdout
    assert "classic sparse vector technique is cheaper" in " ".join(result.stdout.split())


def test_plan_for_hits():
    result = CliRunner().invoke(app, [*PLAN, "--hits", "100"])
    assert "at 100 hits" in result.stdout
    assert "0.01443" in result.stdout


def test_plan_as_json():
    result = CliRunner().invoke(app, [*PLAN, "--query-epsilon", "0.05", "--json"])
    assert json.loads(result.stdout) == tc.plan(tc.Budget(1, 1e-6), query_epsilon=0.05).as_dict()


@pytest.mark.parametrize(
    ("options", "target"),
    [
        (["--target", "between", "--width", "30"], tc.Between(1, 30)),
        (["--target", "boundary"], tc.Boundary()),
        (["--target", "boundary", "--caution", "2"], tc.Boundary(2)),
        (["--target", "disagreement"], tc.Disagreement()),
        (["--target", "everything"], tc.Everything()),
        (["--target", "q", "--q", "0.4"], tc.QTarget(0.4, frozenset())),
    ],
)
def test_plan_for_every_target(options, target):
    result = CliRunner().invoke(app, [*PLAN, "--query-epsilon", "0.01", "--json", *options])
    assert json.loads(result.stdout) == tc.plan(tc.Budget(1, 1e-6), query_epsilon=0.01, target=target).as_dict()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plan_draws_a_picture(tmp_path, ending):
    file = tmp_path / f"plan.{ending}"
    result = CliRunner().invoke(app, [*PLAN, "--query-epsilon", "0.01", "--plot", str(file)])
    assert f"picture: {file}" in result.stdout.replace("\n", "")
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    assert len(content) > 10_000


def test_a_picture_with_parts_that_cannot_be_computed(tmp_path):
    file = tmp_path / "plan.png"
    options = [
        "plan",
        "--epsilon",
        "400",
        "--delta",
        "1e-6",
        "--query-epsilon",
        "1.9",
        "--target",
        "between",
        "--width",
        "9",
    ]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*options, "--plot", str(file)])
    assert result.exit_code == 0
    assert "only for a query ε up to 1.67" in result.stdout
    assert file.exists()


MISTAKES = [
    (["--query-epsilon", "nan"], "tct: --query-epsilon is nan; it must be a number from 1e-09 to 10"),
    (["--query-epsilon", "0.1"], "it must be at most 0.0622, or the budget larger"),
    ([], "given and hits left out, or the other way round"),
    (["--hits", "0"], "tct: --hits is 0; it must be an integer from 1 to"),
    (
        ["--query-epsilon", "0.01", "--target", "between"],
        "--width is None; it must be given with --target between",
    ),
    (
        ["--query-epsilon", "0.01", "--target", "between", "--width", "0"],
        "--width is 0; it must be at least 1",
    ),
    (["--query-epsilon", "0.01", "--q", "0.1"], "--q is 0.1; it must be given with --target q"),
    (["--query-epsilon", "0.01", "--plot", "/no/such/folder/plan.png"], "in a folder that exists"),
    (["--query-epsilon", "0.01", "--plot", "plan.nothing"], "a file that can be written"),
    (["--query-epsilon", "0.01", "--plot", "plan"], "--plot is 'plan'; it must be a file name with an ending"),
]


def test_mistakes_are_one_sentence_and_exit_code_2():
    def is_told(options, sentence):
        result = run(*PLAN, *options)
        assert result.code == 2
        assert sentence in result.err
        assert len(result.err.strip().splitlines()) == 1
        assert result.out == ""

    every(MISTAKES, is_told)


def test_a_mistake_as_a_user_makes_it():
    result = tct(*PLAN, "--query-epsilon", "nan")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("tct: --query-epsilon is nan; it must be a number from 1e-09 to 10")
    assert result.stderr.count("\n") == 1


def test_an_ascii_terminal_is_served(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = tct(*PLAN, "--query-epsilon", "0.05")
    assert result.returncode == 0
    assert "exact" in result.stdout


def test_version_and_help():
    assert tct("--version").stdout.strip() == f"targetcharge {tc.__version__}"
    assert "plan" in tct("--help").stdout


def test_every_paragraph_of_help_flows():
    """Else lines are broken where the source breaks them, and at the end of the terminal too."""
    waiting, texts = [typer.main.get_command(app)], []
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        texts.append(command.help)
    assert len(texts) > 20
    assert [text for text in texts if not text or "\n" in text.replace("\n\n", "")] == []


def commands(group, *names):
    """Yield the names of every command."""
    yield names
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *names, name)


@pytest.mark.parametrize("names", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_help_fits_80_columns(names):
    lines = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*names, "--help"]).output.split("\n")
    assert max(map(len, lines)) <= 80
    panels = [line for line in lines if line.startswith("╭─")]
    assert panels
    assert [line for line in panels if " ─" not in line] == []  # a title that is cut ends at the frame
    assert [line for line in lines if re.search(r"<[^>]*\|", line)] == []  # choices are in the text


def test_every_error_has_an_exit_code_of_its_own():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ERROR)]
    for kind in kinds:
        assert kind is ERROR or issubclass(kind, tuple(EXIT_CODES))
    assert not {0, 1, AUDIT_FAILED, INTERRUPTED} & set(EXIT_CODES.values())
    assert exit_code(tc.EngineError("broken")) == 7


def test_exit_codes_cover_the_error_tree():
    assert exit_code(tc.TooLarge("hits", 1, "less")) == 2
    assert exit_code(tc.BudgetSpent("spent", asked=1, left=0)) == 3
    assert exit_code(tc.NotAllowed("no")) == 3
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)


@pytest.mark.parametrize("name", ["jinja2", "rich", "typer", "yaml"])
def test_missing_dependencies_are_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit, match=rf"tct needs {name}, .*pip install 'targetcharge\[cli\]'"):
        main()


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = CliRunner().invoke(app, [*PLAN, "--query-epsilon", "0.01", "--plot", "plan.png"])
    assert isinstance(result.exception, tc.InvalidParameter)
    assert "targetcharge[plot]" in str(result.exception)
