"""A parsed tree means what DuckDB means by the same text, on rows with every kind of value and missing ones."""

import random

import duckdb
import pytest
from tests.queries.patients import ROWS, SCHEMA, fill
from tests.queries.texts import Texts
from tests.queries.trees import check, meaning

from targetcharge.queries.parser import parse

AT_ONCE = 50


@pytest.fixture(scope="module")
def patients():
    with duckdb.connect() as connection:
        fill(connection)
        yield connection


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_means_what_its_text_does(patients, seed):
    texts = Texts(random.Random(seed))
    asked = [texts.predicate() for _ in range(AT_ONCE)]
    trees = [parse(text, SCHEMA) for text in asked]
    for tree in trees:
        check(tree)
    selected = ", ".join(f"({text})" for text in asked)
    answers = patients.execute(f"SELECT {selected} FROM patients").fetchall()
    for text, tree, expected in zip(asked, trees, zip(*answers, strict=True), strict=True):
        assert [meaning(tree, row) for row in ROWS] == list(expected), text
        assert repr(parse(str(tree), SCHEMA)) == repr(tree), text
