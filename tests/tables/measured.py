"""Questions about the tables of `worlds`, and what the truth is, in plain Python."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from tests.tables.worlds import missing

from targetcharge.tables.questions import Count, Sum

if TYPE_CHECKING:
    from collections.abc import Callable


def _known(name, test):
    return lambda row: not missing(row[name]) and test(row[name])


WHERE = {
    None: lambda _: True,
    "x > 1": _known("x", lambda x: x > 1),
    "x <= 0 OR x IS NULL": lambda row: missing(row["x"]) or row["x"] <= 0,
    "t = 'a'": _known("t", lambda t: t == "a"),
    "t LIKE 'a%'": _known("t", lambda t: t.startswith("a")),
    "t <> 'it''s'": _known("t", lambda t: t != "it's"),
    "n IN (1, 7)": _known("n", lambda n: n in (1, 7)),
    "b = TRUE": _known("b", lambda b: b),
    "NOT (b = TRUE)": _known("b", lambda b: not b),
    "d >= '2024-01-02'": _known("d", lambda d: d >= dt.date(2024, 1, 2)),
    "s < '2024-01-01 12:00'": _known("s", lambda s: s < dt.datetime(2024, 1, 1, 12)),
    "x BETWEEN -1 AND 5 AND NOT n = 7": lambda row: (
        _known("x", lambda x: -1 <= x <= 5)(row) and _known("n", lambda n: n != 7)(row)
    ),
}
"""Predicates, and the rows for which they are true."""

BOUNDS = [(0, 100), (-50, 100), (5, 10), (-10, -5), (0, 0.5), (-3, 1), (-1000, 1000)]
GRIDS = [None, 1, "0.01", "0.25", 7]


@dataclass(frozen=True)
class Measured:
    """A number that can be asked about.

    Attributes:
        what: as a caller says it.
        truth: in steps, from the rows of each unit.
    """

    what: object
    truth: Callable[[list[list[dict[str, object]]]], int]


def counted(where):
    return Measured(Count(where), lambda units: sum(any(map(WHERE[where], rows)) for rows in units))


def _steps(value, grid, *, whole):
    if whole and grid == 1:
        found = value
    else:
        quotient = float(value) / float(grid) + 0.5
        found = quotient if math.isinf(quotient) else math.floor(quotient)
    return max(-(2**53), min(2**53, found))


def contribution(rows, column, where, grid, low, high, *, whole):
    """Return what a unit contributes: its rows that count added up, within the bounds; 0 if there are none."""
    values = [row[column] for row in rows if WHERE[where](row) and not missing(row[column])]
    if not values:
        return 0
    return max(low, min(high, sum(_steps(value, grid, whole=whole) for value in values)))


def totalled(column, bounds, grid, where, *, whole):
    """Return a sum; None if the grid does not fit the bounds, or is too fine for the noise at ε 0.1."""
    lower, upper = bounds
    largest = Fraction(max(abs(lower), abs(upper)))
    step = Fraction(str(grid)) if grid is not None else _fitting(largest, whole=whole)
    low, high = math.ceil(Fraction(lower) / step), math.floor(Fraction(upper) / step)
    if high < low or not max(abs(low), abs(high)):
        return None
    return Measured(
        Sum(column, lower, upper, where, grid),
        lambda units: sum(contribution(rows, column, where, step, low, high, whole=whole) for rows in units),
    )


def _fitting(largest, *, whole):
    return Fraction(1) if whole else Fraction(10) ** (math.floor(math.log10(largest)) - 6)


def any_of(rng, *, whole):
    """Drawn a count or a sum; `whole` if the column of integers has exact ones (not so in pandas)."""
    where = rng.choice(list(WHERE))
    if rng.random() < 0.3:
        return counted(where)
    column = rng.choice(["x", "n", "m"])
    found = totalled(column, rng.choice(BOUNDS), rng.choice(GRIDS), where, whole=whole and column == "n")
    return found or counted(where)


BY = {
    "t": ["a", "ab", "", "<b>", "it's", "é", "nobody"],
    "n": [0, 1, 7, 100, 12345],
    "b": [True, False],
    "d": ["2024-01-01", "2024-01-02", "2024-01-03"],
    "x": [0, 1, 2.5, -1, 100],
}
"""Declared keys, some of them without rows."""


def key_of(row, by):
    """Return the value that a row is grouped by, as keys are published."""
    value = row[by]
    return None if missing(value) else value.isoformat() if by == "d" else value


def grouped(units, by, key):
    """Return the rows of one key, unit by unit."""
    return [[row for row in rows if _same(key_of(row, by), key)] for rows in units]


def _same(found, key):
    return found is not None and type(found) in (type(key), float, int, Decimal) and found == key
