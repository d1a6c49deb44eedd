"""Counts that tests ask for by the name of a column, or by codes."""

from unittest.mock import patch

from targetcharge.engines.duckdb import coded
from targetcharge.queries.measures import Count
from targetcharge.queries.tree import Compare, Missing, Not, Operator


def known(engine, *names):
    """Return how many values are not missing, of each column."""
    return engine.measure([Count(Not(Missing(engine.schema[name]))) for name in names])


def having(engine, name, *values):
    """Return how many rows or units have each value."""
    return engine.measure([Count(Compare(engine.schema[name], Operator.EQ, value)) for value in values])


def by_codes(engine, wheres):
    """Return the counts that scans of codes tell, however few there are, by their places among the predicates."""
    with patch.multiple(coded, _FEWEST_OF_ROWS=1, _FEWEST_OF_UNITS=1):
        return coded.count_coded(engine._table.link, engine._table.all_rows, dict(enumerate(wheres)))
