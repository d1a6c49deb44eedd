"""What the code is compared with takes only types from it: no function or constant that could be wrong in both.

The types are how questions, targets and entries reach a reference; what it makes of them is its own.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REFERENCES = [
    "accounting/adversary.py",
    "accounting/interactions.py",
    "accounting/naive_exact.py",
    "accounting/neighbours.py",
    "discrete_laplace.py",
    "engines/naive.py",
    "learning/small_votes.py",
    "queries/texts.py",
    "streaming/random_sketches.py",
    "streaming/scripted_estimates.py",
    "tables/chosen_noise.py",
    "tables/naive_units.py",
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
    assert [name for name, thing in taken(tree) if not inspect.isclass(thing)] == []


def test_power_a_function_is_noticed():
    tree = ast.parse("from targetcharge.accounting import best_q\nimport targetcharge as tc\ntc.plan(tc.Budget)")
    assert [name for name, thing in taken(tree) if not inspect.isclass(thing)] == [
        "targetcharge.accounting.best_q",
        "tc.plan",
    ]
