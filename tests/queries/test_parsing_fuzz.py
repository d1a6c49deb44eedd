"""Any text whatsoever is a predicate on the table's columns or InvalidParameter, and nothing else happens.

What parses is rendered and run by the real engine, which must not raise, and must count what the tree means.
"""

import logging
import random

import pytest
from tests.queries.patients import ROWS, SCHEMA, write
from tests.queries.texts import Texts
from tests.queries.trees import check, meaning
from tests.sizes import size

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import InvalidParameter, InvalidQuestion
from targetcharge.queries.measures import Count
from targetcharge.queries.parser import parse

SEEDS = range(4)
TOGETHER = 20
NUMBER = size(20_000, 400_000) // len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_text_does_anything_but_parse_or_be_refused(seed, capfd, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    texts = Texts(random.Random(seed))
    parsed = []
    for number in range(NUMBER):
        text = texts.mutated(texts.predicate(texts.random.randrange(4)))
        found = outcome(parse, text, SCHEMA)
        if isinstance(found, InvalidParameter):
            check_refusal(found, text)
            continue
        parsed.append(found)
        check(found)
        if number % 10 == 0:
            assert repr(parse(str(found), SCHEMA)) == repr(found), text
    assert len(parsed) > NUMBER / 5
    check_counts(parsed, tmp_path / "patients.duckdb")
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def check_counts(trees, path):
    """Assert that the engine counts the rows for which each tree is true, and leaves its table as it is."""
    write(path)
    before = path.read_bytes()
    engine = open_duckdb(path, None)
    assert engine.schema == SCHEMA
    for start in range(0, len(trees), TOGETHER):
        some = trees[start : start + TOGETHER]
        expected = [sum(meaning(tree, row) is True for row in ROWS) for tree in some]
        assert engine.measure([Count(tree) for tree in some]) == expected, [str(tree) for tree in some]
    engine.close()
    assert path.read_bytes() == before


def outcome(function, *arguments):
    """Return what a function returns, or the refusal it raises."""
    try:
        return function(*arguments)
    except InvalidParameter as error:
        return error


def check_refusal(error, text):
    assert error.__cause__ is None, text
    assert error.__suppress_context__ or error.__context__ is None, text
    assert error.value is text
    assert isinstance(error, InvalidQuestion) == bool(text.strip()), text
    if isinstance(error, InvalidQuestion):
        assert 0 <= error.position <= len(text), text
        assert all(line.isprintable() for line in str(error).split("\n")), text
