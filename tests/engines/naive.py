"""The reference for all engines: a list of rows, looked at one by one. No cleverness.

A row is a dictionary: None, an int or Decimal for an exact number, a float (NaN is missing), a text, a date, a
time without a zone, or a bool.
"""

import datetime as dt
import hashlib
import math
import struct
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np

from targetcharge.engines.engine import Contributions, Distribution, Engine
from targetcharge.identity import Identity
from targetcharge.queries.keys import Period
from targetcharge.queries.measures import Count, Histogram, Sketch, Total, UnitValue
from targetcharge.queries.tree import All, Any, Compare, Like, Missing, Not, OneOf, Operator, Settled


class NaiveEngine(Engine):
    """Rows in lists, one for each snapshot.

    The unit is a key of the rows, which need not be in the schema; None if every row is one. What is appended is
    another such engine. Units are in the order of what `rank` makes of a row, and hashed as the bytes that `data`
    makes of it.
    """

    def __init__(self, rows, schema, unit=None, rank=None, data=None):
        self._snapshots = [list(rows)]
        self._schema = dict(schema)
        self._unit = unit
        self._rank = rank or (lambda row: row[unit])
        self._data = data or (lambda row: plain_bytes(row[unit]))

    @property
    def rows(self):
        return self._upto(None)

    @property
    def schema(self):
        return self._schema

    @property
    def identity(self):
        return Identity()

    @property
    def snapshot(self):
        return len(self._snapshots)

    @property
    def files(self):
        return ((),) * self.snapshot

    def in_files(self, snapshot):  # noqa: ARG002 - the interface has it
        return False

    def append(self, source):
        assert source.schema == self.schema
        self._snapshots.append(source.rows)

    def retract(self):
        del self._snapshots[-1]

    def measure(self, measures):
        return [self._one(measure, self.rows) for measure in measures]

    def measure_by(self, measure, keys):
        return [self._one(measure, rows) for rows in self._of_keys(measure, keys, self.rows)]

    def distribution(self, measure):
        counts = Counter(self._who(measure, self.rows).values())
        return Distribution(
            *(np.array(part, np.int64) for part in (sorted(counts), [counts[each] for each in sorted(counts)]))
        )

    def units(self):
        return len(self._ids())

    def digest_of_units(self, key, snapshot=None):
        upto = {self._whose(row) for row in self._upto(snapshot)}
        return repr((key, sorted((number, repr(unit)) for unit, number in self._ids().items() if unit in upto)))

    def contributions(self, measures, snapshot=None):
        return _gathered(measures, [self._who(measure, self._upto(snapshot)) for measure in measures])

    def contributions_by(self, measure, keys, snapshot=None):
        of_keys = self._of_keys(measure, keys, self._upto(snapshot))
        return _gathered([measure], [self._who(measure, rows) for rows in of_keys])

    def check_unchanged(self):
        """Never does it change."""

    def fingerprint(self, key, snapshot=None):
        chosen = self._snapshots if snapshot is None else [self._snapshots[snapshot - 1]]
        return repr((key, [sorted(map(repr, rows)) for rows in chosen]))

    def close(self):
        """Nothing to let go of."""

    def _upto(self, snapshot):
        return [row for rows in self._snapshots[:snapshot] for row in rows]

    def _of_keys(self, measure, keys, rows):
        """Return the rows of each key; of a histogram only those of units that count for it."""
        of_keys = [[row for row in rows if _has_key(row, keys, key)] for key in keys.values]
        if not isinstance(measure, Histogram):
            return of_keys
        places, data = defaultdict(set), {}
        for place, of_key in enumerate(of_keys):
            for row in of_key:
                if truth(measure.where, row) is True and self._whose(row) is not None:
                    places[self._whose(row)].add(place)
                    data[self._whose(row)] = b"" if self._unit is None else self._data(row)
        kept = {unit: _chosen(measure, data[unit], own) for unit, own in places.items()}
        return [
            [row for row in of_key if place in kept.get(self._whose(row), ())]
            for place, of_key in enumerate(of_keys)
        ]

    def _whose(self, row):
        """Return the unit of a row: itself, if every row is one; None if it has none."""
        if self._unit is None:
            return id(row)
        return None if is_missing(row[self._unit]) else row[self._unit]

    def _ids(self):
        """Return the id of each unit."""
        numbers = {}
        for rows in self._snapshots:
            new = {}
            for place, row in enumerate(rows):
                unit = self._whose(row)
                if unit is not None and unit not in numbers:
                    new.setdefault(unit, place if self._unit is None else self._rank(row))
            for unit in sorted(new, key=new.get):
                numbers[unit] = len(numbers)
        return numbers

    def _who(self, measure, rows):
        """Return what each unit contributes, by its id; nobody who contributes nothing."""
        ids, of_units = self._ids(), defaultdict(list)
        for row in rows:
            if truth(measure.where, row) is True and self._whose(row) is not None:
                of_units[ids[self._whose(row)]].append(row)
        found = {
            number: 1 if isinstance(measure, Count | Histogram) else _contribution(measure, of_one)
            for number, of_one in of_units.items()
        }
        return {number: found[number] for number in sorted(found) if found[number]}

    def _one(self, measure, rows):
        units = self._by_unit([row for row in rows if truth(measure.where, row) is True])
        match measure:
            case Count() | Histogram():
                return len(units)
            case Total() | UnitValue():
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


def _gathered(measures, found):
    units = [number for each in found for number in each]
    steps = [step for each in found for step in each.values()]
    starts = np.cumsum([0, *map(len, found)], dtype=np.int64)
    counts = all(isinstance(measure, Count | Histogram) for measure in measures)
    return Contributions(np.array(units, np.int64), None if counts else np.array(steps, np.int64), starts)


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def value_of(row, column):
    """Return a value as literals are given; None if it is missing."""
    return literal_of(row[column.name], column)


def literal_of(value, column):
    """Return a value as literals are given: exact numbers in units of 10^-scale; None if it is missing."""
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


def _contribution(measure, rows):
    """Return what a unit with these rows contributes; 0 if all its values are missing."""
    values = [value for row in rows if (value := value_of(row, measure.column)) is not None]
    steps = [_steps(value, measure) for value in values]
    if not steps:
        return 0
    if isinstance(measure, UnitValue):
        mean = Fraction(sum(_between(measure, step) for step in steps), len(steps))
        return 1 + math.floor(mean + Fraction(1, 2)) - measure.lower
    return _between(measure, sum(steps))


def _between(measure, step):
    return max(measure.lower, min(measure.upper, step))


MOST_STEPS = 2**53
"""Of one row: up to here every integer is a double."""


def _steps(value, measure):
    exact = measure.column.exact
    if exact and exact.scale == 0 and measure.grid == 1:
        step = value
    else:
        double = float(value) / 10.0**exact.scale if exact else value
        quotient = double / float(measure.grid) + 0.5
        step = math.floor(quotient) if math.isfinite(quotient) else math.copysign(MOST_STEPS, quotient)
    return int(max(-MOST_STEPS, min(MOST_STEPS, step)))


def _kept(sketch, rows):
    """Return the numbers of the distinct values of one unit that are kept: the smallest."""
    known = [value for row in rows if (value := value_of(row, sketch.column)) is not None]
    values = {bytes_of(value, sketch.column) for value in known}
    return sorted(_number(sketch.key.encode() + value) for value in values)[: sketch.per_unit]


def _number(data):
    return int(hashlib.md5(data, usedforsecurity=False).hexdigest()[:15], 16)


def _chosen(histogram, unit, places):
    """Return the places of the keys for which a unit counts: those with the smallest ranks."""
    prime = 2**31 - 1
    a = _number(histogram.key.encode() + unit) % prime

    def rank(place):
        digits = hashlib.sha256(histogram.key.encode() + str(place).encode()).hexdigest()
        s, t = 1 + int(digits[:16], 16) % (prime - 1), int(digits[16:32], 16) % prime
        return (a * s + t) % prime, place

    return sorted(places, key=rank)[: histogram.per_unit]


def plain_bytes(value):
    """Return the bytes of a value that tells units apart: a number of 64 bits, a text, a date or a time."""
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case float():
            return struct.pack(">d", value + 0.0)
        case dt.datetime():
            value = (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
        case dt.date():
            value = value.toordinal() - dt.date(1970, 1, 1).toordinal()
    return int(value).to_bytes(8, "big", signed=True)


def bytes_of(value, column):
    """Return a value of a column as the bytes that are hashed."""
    if column.exact and column.exact.scale:
        digits, scale = f"{abs(value):0{column.exact.scale + 1}d}", column.exact.scale
        return f"{'-' if value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}".encode()
    if column.exact and not -(2**63) <= column.exact.low <= column.exact.high < 2**63:
        return value.to_bytes(16, "big", signed=value < 0)
    return plain_bytes(value)


def _has_key(row, keys, key):
    values = [value_of(row, column) for column in keys.columns]
    if values == [None]:
        return key == (None,)
    if keys.period is Period.DAY:
        values = [values[0].date()]
    if keys.period is Period.HOUR:
        values = [values[0].replace(minute=0, second=0, microsecond=0)]
    return all(value == wanted for value, wanted in zip(values, key, strict=True))
