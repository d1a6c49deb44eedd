"""What the code is compared with takes only types from it: no function or constant that could be wrong in both.

The types are how questions, targets and entries reach a reference; what it makes of them is its own. What it takes
from tests is a reference itself.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REFERENCES = [
    "accounting/adversary.py",
    "accounting/interactions.py",
    "accounting/naive_exact.py",
    "accounting/neighbours.py",
    "accounting/offset_games.py",
    "accounting/paid_games.py",
    "audit/sampling/float_laplace.py",
    "audit/sampling/shared_generator.py",
    "audit/sampling/sparse_vector.py",
    "discrete_gaussian.py",
    "discrete_laplace.py",
    "engines/identities.py",
    "engines/naive.py",
    "goodness.py",
    "learning/small_votes.py",
    "mechanisms/maxima_samples.py",
    "mechanisms/paths.py",
    "offset_noise.py",
    "queries/patients.py",
    "queries/texts.py",
    "queries/trees.py",
    "randomness/sources.py",
    "sizes.py",
    "streaming/random_sketches.py",
    "streaming/scripted_estimates.py",
    "tables/chosen_noise.py",
    "tables/exploring.py",
    "tables/lockstep.py",
    "tables/measured.py",
    "tables/naive_units.py",
    "tables/worlds.py",
]


def taken(tree):
    """Yield what a module takes from the package, by name."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "targetcharge":
                for alias in node.names:
                    yield f"{module}.{alias.name}", getattr(importlib.import_module(module), alias.name)
            case ast.Import():
                for alias in node.names:
                    if alias.name.split(".")[0] == "targetcharge" and alias.asname != "tc":
                        yield alias.name, None
            case ast.Attribute(value=ast.Name(id="tc")):
                yield f"tc.{node.attr}", getattr(importlib.import_module("targetcharge"), node.attr)


@pytest.mark.parametrize("path", REFERENCES)
def test_a_reference_takes_only_types_from_the_code(path):
    tree = ast.parse((HERE / path).read_text())
    others = {name for name, thing in taken(tree) if not inspect.isclass(thing)}
    assert others <= {"tc.MISSING"}  # the mark of a key, which is as much a name as a type is


@pytest.mark.parametrize("path", REFERENCES)
def test_a_reference_takes_only_references_from_the_tests(path):
    assert [name for name in helpers(ast.parse((HERE / path).read_text())) if name not in REFERENCES] == []


def helpers(tree):
    """Yield the files of the tests that a module takes something from."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "tests":
                inside = module.replace(".", "/").removeprefix("tests").removeprefix("/")
                if (HERE / f"{inside}.py").is_file():
                    yield f"{inside}.py"
                else:
                    yield from (f"{inside}/{alias.name}.py".removeprefix("/") for alias in node.names)
            case ast.Import():
                yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "tests")


def test_the_map_names_every_reference():
    _, section = (HERE / "README.md").read_text().split("## References\n")
    named = re.findall(r"`([\w/]+)\.py`", section.partition("\n## ")[0])
    assert sorted(f"{name}.py" for name in named) == REFERENCES


def test_power_a_function_is_noticed():
    tree = ast.parse("from targetcharge.accounting import best_q\nimport targetcharge as tc\ntc.plan(tc.Budget)")
    assert [name for name, thing in taken(tree) if not inspect.isclass(thing)] == [
        "targetcharge.accounting.best_q",
        "tc.plan",
    ]


def test_power_a_helper_is_noticed():
    tree = ast.parse("from tests.tables.tiny import budget\nfrom tests.ledger import children\nimport tests.sizes")
    assert list(helpers(tree)) == ["tables/tiny.py", "ledger/children.py", "tests.sizes"]
