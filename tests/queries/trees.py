"""What every tree that was parsed is like, and what it means for a row, said once more in plain Python."""

import datetime as dt
import math
import operator
import re

from tests.queries.patients import SCHEMA

from targetcharge.queries.tree import All, Any, Compare, Kind, Like, Missing, Not, OneOf, Operator, Settled

CLASSES = {Kind.TEXT: str, Kind.DATE: dt.date, Kind.TIME: dt.datetime, Kind.BOOLEAN: bool}
OPERATORS = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def check(tree):
    """Assert that a tree has only columns of the table, with values that they can have."""
    match tree:
        case All(parts) | Any(parts):
            assert len(parts) > 1
            for part in parts:
                check(part)
        case Not(part):
            check(part)
        case Compare(column, comparison, value):
            check_value(column, value)
            assert column.kind is not Kind.BOOLEAN or comparison in (Operator.EQ, Operator.NE)
        case OneOf(column, values):
            assert len(set(values)) == len(values) > 0
            for value in values:
                check_value(column, value)
        case Like(column, pattern):
            assert column is SCHEMA[column.name]
            assert column.kind is Kind.TEXT
            check_value(column, pattern)
        case Missing(column):
            assert column is SCHEMA[column.name]
        case Settled(column, holds, text):
            assert column is SCHEMA[column.name]
            assert column.exact is not None
            assert type(holds) is bool
            assert type(text) is str
        case _:
            raise AssertionError(tree)


def check_value(column, value):
    """Assert that a column can have a value."""
    assert column is SCHEMA[column.name]
    if column.kind is not Kind.NUMBER:
        assert type(value) is CLASSES[column.kind]
    elif column.exact is None:
        assert type(value) is float
        assert math.isfinite(value)
    else:
        assert type(value) is int
        assert column.exact.low <= value <= column.exact.high
    if isinstance(value, str):
        assert "\0" not in value
        value.encode()
    if isinstance(value, dt.datetime):
        assert value.tzinfo is None


def meaning(tree, row):
    """Return True, False, or None for unknown."""
    match tree:
        case All(parts):
            found = [meaning(part, row) for part in parts]
            return False if False in found else None if None in found else True
        case Any(parts):
            found = [meaning(part, row) for part in parts]
            return True if True in found else None if None in found else False
        case Not(part):
            found = meaning(part, row)
            return None if found is None else not found
        case Missing(column):
            return row[column.name] is None
    value = row[tree.column.name]
    return None if value is None else _of_value(tree, value)


def _of_value(tree, value):
    """Return whether a comparison is true of a value that is not missing."""
    if tree.column.exact and tree.column.exact.scale:
        value = int(value.scaleb(tree.column.exact.scale))
    match tree:
        case Compare(_, comparison, literal):
            return OPERATORS[comparison](value, literal)
        case OneOf(_, literals):
            return value in literals
        case Settled(_, holds, _):
            return holds
        case Like(_, pattern):
            parts = [{"%": ".*", "_": "."}.get(each, re.escape(each)) for each in pattern]
            return re.fullmatch("".join(parts), value, re.DOTALL) is not None
    raise AssertionError(tree)
