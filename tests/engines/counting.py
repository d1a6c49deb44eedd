"""Counts that tests ask for by the name of a column."""

from targetcharge.queries.measures import Count
from targetcharge.queries.tree import Compare, Missing, Not, Operator


def known(engine, *names):
    """Return how many values are not missing, of each column."""
    return engine.measure([Count(Not(Missing(engine.schema[name]))) for name in names])


def having(engine, name, *values):
    """Return how many rows or units have each value."""
    return engine.measure([Count(Compare(engine.schema[name], Operator.EQ, value)) for value in values])
