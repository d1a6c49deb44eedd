import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import targetcharge as tc
from targetcharge.cli.app import app
from targetcharge.cli.errors import AUDIT_FAILED, EXIT_CODES

SOURCE = """
import sys

import targetcharge as tc
from targetcharge.randomness import Rate, discrete_laplace

people = ["row"] * 10
number = 3


def fewer():
    return people[:-1]


def noisy(rows, entropy):
    return len(rows) + discrete_laplace(entropy, Rate.at_most(1.0))


count = tc.private(epsilon=1.0, name="count")(noisy)
boast = tc.private(epsilon=0.5, name="boast")(noisy)


def session(rows):
    asked = tc.Session(rows, tc.Budget(1.0, 0.1), 0.3)
    asked.test(tc.mechanisms.above_threshold(len, 10, 0.3))
    return asked


def constant(rows):
    return 3


def fails(rows):
    raise ValueError("so it goes")


def broken():
    raise ValueError("no rows")


def quits():
    sys.exit(3)


def leaves(rows):
    sys.exit(0)


def refused(rows):
    asked = tc.Session(rows, tc.Budget(1.0, 0.1), 0.3)
    while True:
        asked.test(tc.mechanisms.above_threshold(len, 10, 0.3))


def prints(rows, entropy):
    print("a word on the way")
    return noisy(rows, entropy)


def objects(rows):
    return object()
"""


@pytest.fixture
def file(tmp_path):
    result = tmp_path / "mine.py"
    result.write_text(SOURCE)
    return result


def audit(file, function, *options, data=("people", "fewer")):
    given = [] if data is None else ["--data0", data[0], "--data1", data[1]]
    basic = ["--runs", "2000", "--workers", "1"]
    return CliRunner().invoke(app, ["audit", f"{file}:{function}", *given, *basic, *options])


def test_an_honest_algorithm_passes(file):
    result = audit(file, "count")
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    assert text.startswith(
        "passed: count claims ε = 1 at δ = 0; 2,000 runs on each input show that it is at least 0."
    )
    assert "A pass is no proof" in text


def test_a_false_claim_has_an_exit_code_of_its_own(file):
    result = audit(file, "boast")
    assert result.exit_code == AUDIT_FAILED
    assert AUDIT_FAILED not in {0, 1, *EXIT_CODES.values()}
    assert result.output.startswith("FAILED: boast claims ε = 0.5")
    assert "Most telling: " in result.output


def test_options_are_the_claim_of_a_plain_function(file):
    assert audit(file, "noisy", "--epsilon", "1").exit_code == 0
    assert audit(file, "noisy", "--epsilon", "0.4", "--delta", "0.01").exit_code == AUDIT_FAILED
    assert "claim is None" in str(audit(file, "noisy").exception)
    assert "--delta is 0.1" in str(audit(file, "noisy", "--delta", "0.1").exception)


def test_a_session_knows_its_claim(file):
    result = json.loads(audit(file, "session", "--json").output)
    assert (result["claimed"], result["at"], result["passed"]) == (1.0, 0.1, True)


def test_json_is_the_verdict_and_follows_from_the_seed(file):
    one, again, other = (audit(file, "count", "--json", "--seed", seed).output for seed in "112")
    assert one == again != other
    result = json.loads(one)
    assert result["function"] == "count"
    assert result["mode"] == "sampling"
    assert result["confidence"] == 0.999
    assert len(result["curve"]) > 10


def test_inputs_as_literals_and_files(file, tmp_path):
    (tmp_path / "rows.json").write_text('["a", "b"]')
    rows = str(tmp_path / "rows.json")
    expected = audit(file, "count", "--json", data=("['a', 'b']", "['a']")).output
    assert audit(file, "count", "--json", data=(rows, "['a']")).output == expected


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.parametrize("function", ["count", "boast"])
def test_a_picture(file, tmp_path, ending, function):
    picture = tmp_path / f"audit.{ending}"
    result = audit(file, function, "--plot", str(picture))
    assert f"picture: {picture}" in result.output.replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG" if ending == "png" else b"<?xml")


@pytest.mark.parametrize(
    ("function", "options", "data", "message"),
    [
        ("count", [], ("[1, 2]", "[1, 3]"), "it lacks 1 and has 1 more"),
        ("count", [], ("[1, 2]", "[1, 2]"), "both are the same"),
        ("count", [], ("number", "[1]"), "a list, tuple, set or dict of units"),
        ("count", ["--relation", "replace-one"], ("[1, 2]", "[1]"), "one element replaced"),
        ("count", [], ("[1", "[1]"), "--data0 is '[1'; it must be a Python literal"),
        ("count", [], ("nothing.json", "[1]"), "--data0 is 'nothing.json'"),
        ("count", [], ("nothing", "[1]"), "or a name in FILE.py"),
        ("count", ["--runs", "10"], ("people", "fewer"), "runs is 10; it must be at least 58"),
        ("count", ["--confidence", "2"], ("people", "fewer"), "confidence is 2.0"),
        ("count", ["--plot", "picture"], ("people", "fewer"), "a file name with an ending"),
        ("constant", ["--epsilon", "1"], ("people", "fewer"), "random, or depend on its input"),
        (
            "fails",
            ["--epsilon", "1"],
            ("people", "fewer"),
            "ValueError raised (so it goes); does it work on this data",
        ),
        ("objects", ["--epsilon", "1"], ("people", "fewer"), "publishes plain data"),
        ("leaves", ["--epsilon", "1"], ("people", "fewer"), "SystemExit raised (0); does it work on this data"),
        ("leaves", [], ("people", "fewer"), "a run of this one ended: SystemExit raised (0)"),
        ("refused", [], ("people", "fewer"), "BudgetSpent. A session's answers before an error are lost"),
        ("count", [], ("broken", "fewer"), "--data0 is 'broken'; it must be a variable, or a function"),
        ("count", [], ("people", "quits"), "it raised SystemExit(3)"),
        ("missing", [], ("people", "fewer"), "count, boast"),
        ("number", [], ("people", "fewer"), "count, boast"),
        ("not a name", [], ("people", "fewer"), "FILE.py:FUNCTION"),
    ],
)
def test_bad_input(file, function, options, data, message):
    result = audit(file, function, *options, data=data)
    assert isinstance(result.exception, tc.InvalidParameter)
    assert message in str(result.exception)


@pytest.mark.parametrize("what", ["mine.py", "no.py:count", "mine.txt:count"])
def test_files_that_are_not_there(what):
    result = CliRunner().invoke(app, ["audit", what, "--data0", "[]", "--data1", "[1]"])
    assert isinstance(result.exception, tc.InvalidParameter)
    assert "FILE.py:FUNCTION" in str(result.exception)


def test_a_file_that_cannot_be_run(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    result = audit(tmp_path / "broken.py", "count")
    assert "in a file that can be run: ZeroDivisionError" in str(result.exception)


def test_as_a_user_runs_it(file):
    """The command itself, on two workers: one sentence for a slip, exit code 6 for a claim that fails."""
    code = "import sys; from targetcharge.cli import main; main()"
    command = [sys.executable, "-c", code, "audit", f"{file}:boast", "--data0", "people", "--workers", "2"]
    failed, slip = (
        subprocess.run([*command, "--data1", data], capture_output=True, text=True, check=False)  # noqa: S603 - our own code
        for data in ("fewer", "people")
    )
    assert failed.returncode == AUDIT_FAILED
    assert failed.stdout.startswith("FAILED: boast")
    assert slip.returncode == EXIT_CODES[tc.InvalidParameter]
    assert slip.stderr.startswith("tct: --data1 is")


def test_a_file_that_leaves_is_refused(tmp_path):
    (tmp_path / "leaves.py").write_text("import sys; sys.exit(0)")
    result = audit(tmp_path / "leaves.py", "count")
    assert isinstance(result.exception, tc.InvalidParameter)
    assert "in a file that can be run: SystemExit(0)" in str(result.exception)


CLASSES = """
import random
from dataclasses import dataclass
from enum import Enum


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Seen:
    colour: "Colour"


def enumerated(rows):
    return random.choice(list(Colour))


def wrapped(rows):
    return Seen(random.choice(list(Colour)))
"""


@pytest.mark.parametrize("function", ["enumerated", "wrapped"])
def test_classes_of_the_audited_file_come_back_from_workers(tmp_path, function):
    (tmp_path / "random_colours.py").write_text(CLASSES)
    options = ["--epsilon", "1", "--workers", "2", "--runs", "200"]
    result = audit(tmp_path / "random_colours.py", function, *options, data=("[1]", "[]"))
    assert (result.exit_code, result.exception) == (0, None)


def test_json_alone_is_on_the_standard_output(file):
    result = audit(file, "prints", "--epsilon", "1", "--json", "--runs", "100")
    assert json.loads(result.stdout)["passed"]
    assert "a word on the way" in result.stderr


@pytest.mark.parametrize(("name", "message"), [("no/audit.png", "a folder that exists"), ("audit.xyz", "one of")])
def test_a_picture_that_cannot_be_drawn_is_refused_before_the_runs(file, tmp_path, monkeypatch, name, message):
    monkeypatch.setattr("targetcharge.cli.audit.black_box", None)
    result = audit(file, "boast", "--plot", str(tmp_path / name))
    assert isinstance(result.exception, tc.InvalidParameter)
    assert message in str(result.exception)


def test_a_picture_that_cannot_be_written_does_not_hide_a_failure(file, tmp_path):
    folder = tmp_path / "audit.png"
    folder.mkdir()
    result = audit(file, "boast", "--plot", str(folder))
    assert result.exit_code == AUDIT_FAILED
    assert result.stdout.startswith("FAILED: boast")
    assert "a file that can be written" in result.stderr
    assert isinstance(audit(file, "count", "--plot", str(folder)).exception, tc.InvalidParameter)
