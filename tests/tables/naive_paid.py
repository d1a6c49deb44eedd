"""Numbers that are always paid for, naively: one value for each unit, and the keys that a unit has.

Beside `naive_units`: rows as dicts, predicates as functions. Who can still pay is its affair.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from tests.tables.naive_units import PREDICATES, Asked, Naive

import targetcharge as tc


def rows_of_units(rows, *, by_row=False):
    """Return the rows of each unit; rows without one are of none."""
    units = {}
    for place, row in enumerate(rows):
        unit = place if by_row else row["unit"]
        if unit is not None:
            units.setdefault(unit, []).append(row)
    return units


def value_of(rows, where, lower, upper, grid):
    """Return the mean of a unit's fees in steps of the grid, rounded half up; None if no row counts."""
    low, high = math.ceil(Fraction(lower) / grid), math.floor(Fraction(upper) / grid)
    fees = [row["fee"] for row in rows if PREDICATES[where](row) and row["fee"] is not None]
    if not fees:
        return None
    steps = [min(max(math.floor(Fraction(fee) / grid + Fraction(1, 2)), low), high) for fee in fees]
    return math.floor(Fraction(sum(steps), len(steps)) + Fraction(1, 2))


def keys_of(rows, where, by, keys):
    """Return which of some keys a unit has rows of that count."""
    columns = by if isinstance(by, tuple) else (by,)
    held = {
        tuple(tc.MISSING if row[column] is None else row[column] for column in columns)
        for row in rows
        if PREDICATES[where](row)
    }
    return [key for key in keys if (key if isinstance(key, tuple) else (key,)) in held]


def totals(values, low):
    """Return how far values are above the least, added up, and how many there are."""
    return sum(value - low for value in values), len(values)


def distribution(values, low):
    """Return how far values are above the least, and how many units have each, ascending."""
    counted = Counter(value - low for value in values)
    return sorted(counted), [counted[step] for step in sorted(counted)]


def ranks_away(cell, values, share):
    """Return how many ranks a cell is away from a share of all values: 0 where their number first reaches it."""
    below, up_to = sum(value < cell for value in values), sum(value <= cell for value in values)
    wanted = Fraction(share) * len(values)
    return max(Fraction(0), below - wanted, wanted - up_to)


class Truth:
    """What is so of rows, where all units share a budget."""

    def __init__(self, rows, *, by_row=False):
        self._units = rows_of_units(rows, by_row=by_row)
        self._naive = Naive(rows, by_row=by_row, capacity=math.inf, price=lambda *_: 0)

    def number(self, asked):
        """Return a count or a sum."""
        return self._naive.number(asked) * asked.grid

    def values(self, where, lower, upper, grid):
        """Return the value of each unit that has one, in steps."""
        found = (value_of(rows, where, lower, upper, Fraction(grid)) for rows in self._units.values())
        return [value for value in found if value is not None]

    def mean(self, where, lower, upper, grid):
        """Return the mean of all units; the middle of the bounds where there is none."""
        step, values = Fraction(grid), self.values(where, lower, upper, grid)
        ends = [math.ceil(Fraction(lower) / step), math.floor(Fraction(upper) / step)]
        return float(Fraction(sum(values or ends), len(values or ends)) * step)

    def held(self, where, by, keys, grain=None):
        """Return which of some keys each unit has rows of that count, by unit; nobody who has none."""
        found = {}
        for key in keys:
            for unit in self._naive.contributions(Asked(where, by=by, grain=grain, key=key)):
                found.setdefault(unit, []).append(key)
        return found
