"""Random questions about a table: predicates, totals, sketches and keys, near the values that it has.

They are drawn from few strategies, made once: a table is asked dozens of them.
"""

import datetime as dt
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from hypothesis import strategies as st
from tests.engines.naive import value_of
from tests.engines.rows import texts

from targetcharge.queries.keys import Keys, Period
from targetcharge.queries.measures import Count, Histogram, Sketch, Total, UnitValue
from targetcharge.queries.tree import All, Any, Column, Compare, Kind, Like, Missing, Not, OneOf, Operator, Settled

GRIDS = tuple(map(Fraction, (1, 1, "1/10", "1/100", 5, 1000, "1/3")))
_BOUNDS = (-(2**62), -(2**40), -1000, -7, -1, 0, 1, 3, 1000, 2**40, 2**62)
_WILD = ("%", "_", "%_", "\\%", "\\", "%%", "")
_OPERATORS = tuple(Operator)
_SALTS = ("", "key", "k'ey", "é")
_MOST_DEPTH = 4


@cache
def _below(number):
    return st.integers(0, number - 1)


@cache
def _any_literal(kind, exact):
    if exact:
        near = [each for each in (-1, 0, 1, 10) if exact.low <= each <= exact.high]
        return st.sampled_from(near) | st.integers(exact.low, exact.high)
    return {
        Kind.NUMBER: st.floats(allow_nan=False).map(lambda number: number + 0.0),
        Kind.TEXT: texts,
        Kind.DATE: st.dates(),
        Kind.TIME: st.datetimes(),
        Kind.BOOLEAN: st.booleans(),
    }[kind]


@dataclass(frozen=True)
class Asked:
    """Draws questions about the columns of a naive engine."""

    draw: object
    columns: tuple[Column, ...]
    had: dict[str, list[object]]

    def one_of(self, choices):
        return choices[self.draw(_below(len(choices)))]

    def some(self, least, most, one):
        return tuple(one() for _ in range(least + self.draw(_below(most - least + 1))))

    def literal(self, column):
        """Draw a value that the column has, mostly, or the next to it, or any other of its type."""
        had, way = self.had[column.name], self.draw(_below(6))
        if not had or way == 0:
            return self.draw(_any_literal(column.kind, column.exact))
        return _next_to(self.one_of(had), column) if way == 1 else self.one_of(had)

    def predicate(self, depth=0):
        form = self.draw(_below(9)) if depth < _MOST_DEPTH else 0
        if form == 6:
            return Not(self.predicate(depth + 1))
        if form > 6:
            return (All if form == 7 else Any)(self.some(2, 3, lambda: self.predicate(depth + 1)))
        column = self.one_of(self.columns)
        return self._leaf(column, self.draw(_below(6 if column.kind is Kind.TEXT else 5)))

    def _leaf(self, column, form):
        if form == 2:
            return OneOf(column, self.some(0, 3, lambda: self.literal(column)))
        if form == 3:
            return Missing(column)
        if form == 4:
            return Settled(column, bool(self.draw(_below(2))), "settled")
        if form == 5:
            return Like(column, self._pattern(self.literal(column)))
        return Compare(column, self.one_of(_OPERATORS), self.literal(column))

    def _pattern(self, text):
        """Draw a pattern near a value: a character is replaced, and something may be put before."""
        place = self.draw(_below(len(text) + 1))
        return self.one_of(_WILD) + text[:place] + self.one_of(_WILD) + text[place + 1 :]

    def bounded(self, measure, where):
        """Draw a total or a value of some number; None if the table has none."""
        numbers = [column for column in self.columns if column.kind is Kind.NUMBER]
        if not numbers:
            return None
        lower, upper = sorted((self.one_of(_BOUNDS), self.one_of(_BOUNDS)))
        return measure(self.one_of(numbers), lower, upper, self.one_of(GRIDS), where)

    def sketch(self, where):
        buckets = self.one_of((1, 2, 7, 64, 2**40))
        return Sketch(self.one_of(self.columns), where, 1 + self.draw(_below(3)), buckets, self.one_of(_SALTS))

    def histogram(self):
        """Draw a histogram, mostly of many rows of each unit, and its keys: mostly all values of a column."""
        where, keys = self.one_of((None, None, self.predicate())), self.keys()
        if self.draw(_below(4)):
            column = self.one_of(self.columns)
            keys = Keys((column,), tuple((value,) for value in dict.fromkeys((*self.had[column.name], None))))
        return Histogram(where, self.one_of((1, 1, 2, 3)), self.one_of(_SALTS)), keys

    def key(self, column):
        """Draw a value, or that there is none."""
        return self.literal(column) if self.draw(_below(4)) else None

    def keys(self):
        """Draw keys of one or two columns, or days or hours of a time."""
        times = [column for column in self.columns if column.kind is Kind.TIME]
        if times and self.draw(_below(2)):
            column, period = self.one_of(times), self.one_of(tuple(Period))
            wanted = dict.fromkeys(
                each and _cut(each, period) for each in self.some(0, 6, lambda: self.key(column))
            )
            return Keys((column,), tuple((each,) for each in wanted), period)
        first, second = self.one_of(self.columns), self.one_of(self.columns)
        columns = (first,) if first == second else (first, second)
        values = self.some(0, 6, lambda: tuple(self.key(column) for column in columns))
        return Keys(columns, tuple(dict.fromkeys(values)))


def _next_to(value, column):
    """Return the nearest other literal, or much the same text."""
    if column.kind is Kind.TEXT:
        return value.swapcase()
    if column.exact:
        return min(value + 1, column.exact.high)
    if column.kind is Kind.NUMBER:
        return math.nextafter(value, math.inf)
    step = {Kind.DATE: dt.timedelta(1), Kind.TIME: dt.timedelta(microseconds=1)}.get(column.kind)
    return value - step if step and value.year > 1 else value


def _cut(time, period):
    return time.date() if period is Period.DAY else dt.datetime.combine(time.date(), dt.time(time.hour))


class Questions(list):
    """Measures, some with keys; in few words, as a failing test has them all in its report."""

    def __repr__(self):
        return f"<{len(self)} questions>"


def _asking(draw, naive):
    columns = tuple(naive.schema.values())
    had = {each.name: [value_of(row, each) for row in naive.rows] for each in columns}
    known = {name: [value for value in all_of if value is not None] for name, all_of in had.items()}
    return Asked(draw, columns, known)


@st.composite
def measures(draw, naive, number=8):
    """Draw counts, totals, values and sketches of random predicates, and of all rows."""
    ask = _asking(draw, naive)
    wheres = (None, *(ask.predicate() for _ in range(number)))
    found = [
        (Count(where), ask.bounded(Total, where), ask.bounded(UnitValue, where), ask.sketch(where))
        for where in wheres
    ]
    return Questions(measure for some in found for measure in some if measure)


@st.composite
def measures_by_key(draw, naive, number=4):
    """Draw counts, totals, values and histograms with their keys."""
    ask = _asking(draw, naive)
    found = Questions()
    for _ in range(number):
        where, keys = ask.predicate(), ask.keys()
        asked = Count(where), ask.bounded(Total, where), ask.bounded(UnitValue, where)
        found += [(measure, keys) for measure in asked if measure]
        found.append(ask.histogram())
    return found


@st.composite
def predicates(draw, naive, number):
    """Draw predicates only."""
    ask = _asking(draw, naive)
    return Questions(ask.predicate() for _ in range(number))


def told(measure, keys=None):
    """Return a measure in words."""
    of = f" of {measure.column.name}" if isinstance(measure, Total | UnitValue | Sketch) else ""
    by = (
        f" by {', '.join(column.name for column in keys.columns)} {keys.period or ''} {keys.values}"
        if keys
        else ""
    )
    rest = {
        name: getattr(measure, name)
        for name in ("lower", "upper", "grid", "per_unit", "key")
        if hasattr(measure, name)
    }
    return f"{type(measure).__name__}{of} {rest} where {measure.where}{by}"
