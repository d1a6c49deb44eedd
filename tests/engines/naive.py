"""The reference for all engines: a list of rows, looked at one by one. No cleverness.

A row is a dictionary: None, an int or Decimal for an exact number, a float (NaN is missing), a text, a date, a
time without a zone, or a bool.
"""

import hashlib
import math
from collections import defaultdict
from fractions import Fraction

from targetcharge.engines.engine import Engine
from targetcharge.queries.columns import Kind
from targetcharge.queries.keys import Grain
from targetcharge.queries.measures import MOST_STEPS, Count, Sketch, Total
from targetcharge.queries.predicates import All, Any, Compare, Like, Missing, Not, OneOf, Operator, Settled


class NaiveEngine(Engine):
    """Rows in a list. The unit is a key of the rows, which need not be in the schema; None if every row is one."""

    def __init__(self, rows, schema, unit=None):
        self.rows = list(rows)
        self._schema = dict(schema)
        self._unit = unit

    @property
    def schema(self):
        return self._schema

    def measure(self, measures):
        return [self._one(measure, self.rows) for measure in measures]

    def measure_by(self, measure, keys):
        return [self._one(measure, [row for row in self.rows if _has_key(row, keys, key)]) for key in keys.values]

    def check_unchanged(self):
        """Never does it change."""

    def fingerprint(self, key):
        return repr((key, sorted(map(repr, self.rows))))

    def close(self):
        """Nothing to let go of."""

    def _one(self, measure, rows):
        units = self._by_unit([row for row in rows if truth(measure.where, row) is True])
        match measure:
            case Count():
                return len(units)
            case Total():
                return sum(_contribution(measure, of_one) for of_one in units)
            case Sketch():
                kept = [number for of_one in units for number in _kept(measure, of_one)]
                return len({number % measure.buckets for number in kept})

    def _by_unit(self, rows):
        """Return the rows that count of each unit that has one; rows without a unit are dropped."""
        if self._unit is None:
            return [[row] for row in rows]
        units = defaultdict(list)
        for row in rows:
            if not is_missing(row[self._unit]):
                units[row[self._unit]].append(row)
        return list(units.values())


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def value_of(row, column):
    """Return a value as literals are given: exact numbers in units of 10^-scale; None if it is missing."""
    value = row[column.name]
    if is_missing(value):
        return None
    return int(Fraction(value) * 10**column.exact.scale) if column.exact else value


def truth(predicate, row):
    """Return True, False or None, as in SQL."""
    match predicate:
        case None:
            return True
        case All(parts):
            each = [truth(part, row) for part in parts]
            return False if False in each else None if None in each else True
        case Any(parts):
            each = [truth(part, row) for part in parts]
            return True if True in each else None if None in each else False
        case Not(part):
            inside = truth(part, row)
            return None if inside is None else not inside
    value = value_of(row, predicate.column)
    if isinstance(predicate, Missing):
        return value is None
    return None if value is None else _known(predicate, value)


def _known(predicate, value):
    match predicate:
        case Compare(_, operator, literal):
            return _compare(operator, value, literal)
        case OneOf(_, literals):
            return any(value == literal for literal in literals)
        case Like(_, pattern):
            return is_like(value, pattern)
        case Settled(_, holds):
            return holds


def _compare(operator, value, literal):
    match operator:
        case Operator.EQ:
            return value == literal
        case Operator.NE:
            return value != literal
        case Operator.LT:
            return value < literal
        case Operator.LE:
            return value <= literal
        case Operator.GT:
            return value > literal
        case Operator.GE:
            return value >= literal


def is_like(text, pattern):
    """Match from the left: % takes any code points, _ takes one, any other itself. Nothing escapes them."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return is_like(text, pattern[1:]) or (bool(text) and is_like(text[1:], pattern))
    return bool(text) and pattern[0] in ("_", text[0]) and is_like(text[1:], pattern[1:])


def _contribution(total, rows):
    """Return what a unit with these rows contributes; 0 if all its values are missing."""
    values = [value for row in rows if (value := value_of(row, total.column)) is not None]
    if not values:
        return 0
    return max(total.lower, min(total.upper, sum(_steps(value, total) for value in values)))


def _steps(value, total):
    exact = total.column.exact
    if exact and exact.scale == 0 and total.grid == 1:
        step = value
    else:
        double = float(value) / 10.0**exact.scale if exact else value
        quotient = double / float(total.grid) + 0.5
        step = math.floor(quotient) if math.isfinite(quotient) else math.copysign(MOST_STEPS, quotient)
    return int(max(-MOST_STEPS, min(MOST_STEPS, step)))


def _kept(sketch, rows):
    """Return the numbers of the distinct values of one unit that are kept: the smallest, by the text if equal."""
    texts = {text_of(row, sketch.column) for row in rows if value_of(row, sketch.column) is not None}
    hashed = sorted((_number(sketch.key + text), text) for text in texts)
    return [number for number, _ in hashed[: sketch.per_unit]]


def _number(text):
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:15], 16)


def text_of(row, column):
    """Return a value as the text that is hashed."""
    value = value_of(row, column)
    if column.kind is Kind.NUMBER and column.exact is None:
        return f"{value + 0.0:.17g}"
    if column.kind is Kind.NUMBER:
        digits, scale = f"{abs(value):0{column.exact.scale + 1}d}", column.exact.scale
        text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
        return f"-{text}" if value < 0 else text
    if column.kind is Kind.BOOLEAN:
        return "true" if value else "false"
    if column.kind is Kind.TIME:
        whole = value.isoformat(sep=" ", timespec="seconds")
        return f"{whole}.{value.microsecond:06d}".rstrip("0") if value.microsecond else whole
    return value.isoformat() if column.kind is Kind.DATE else value


def _has_key(row, keys, key):
    values = [value_of(row, column) for column in keys.columns]
    if None in values:
        return False
    if keys.grain is Grain.DAY:
        values = [values[0].date()]
    if keys.grain is Grain.HOUR:
        values = [values[0].replace(minute=0, second=0, microsecond=0)]
    return all(value == wanted for value, wanted in zip(values, key, strict=True))
