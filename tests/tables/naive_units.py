"""Budgets of individuals, naively: rows in lists, a dict of what each unit has paid, predicates as functions.

Written from DESIGN section 5 and docs/theory/tables.md#individual-charging, and not from the code. Prices are not
its affair: it is given a function that tells them (tests/accounting/test_allowance.py checks that one).
"""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

import targetcharge as tc
from targetcharge.accounting.curves import Gaussian, Pure
from targetcharge.ledger import BatchEntry
from targetcharge.ledger.entries import Spent

COLUMNS = {
    "unit": pa.int64(),
    "week": pa.int64(),
    "place": pa.string(),
    "fee": pa.float64(),
    "at": pa.timestamp("us"),
}

PREDICATES = {
    None: lambda _: True,
    "week = 0": lambda row: row["week"] == 0,
    "week >= 1": lambda row: row["week"] is not None and row["week"] >= 1,
    "NOT week = 1": lambda row: row["week"] is not None and row["week"] != 1,
    "week IS NULL": lambda row: row["week"] is None,
    "place = 'a'": lambda row: row["place"] == "a",
    "place IN ('a', 'b') OR fee > 3": lambda row: row["place"] in ("a", "b") or (row["fee"] or 0) > 3,
    "fee > 2 AND week < 2": lambda row: (row["fee"] or 0) > 2 and row["week"] is not None and row["week"] < 2,
    "fee < 0": lambda row: row["fee"] is not None and row["fee"] < 0,
    "unit < 0 AND week = 77": lambda _: False,
}
"""The text of a predicate, and what it says of a row; what is missing is not true."""


def table_of(rows):
    """Return rows as an Arrow table."""
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})


def random_rows(rng, units, rows, first=0):
    """Return rows of about so many units: some units have many, some rows have none, some values are missing."""
    start = dt.datetime(2024, 1, 1)
    return [
        {
            "unit": None if rng.random() < 0.05 else first + min(rng.randrange(units), rng.randrange(units)),
            "week": rng.choice([0, 0, 1, 1, 2, 3, None]),
            "place": rng.choice(["a", "a", "b", "c", "", None]),
            "fee": rng.choice([None, 0.0, 0.25, 1.0, 2.5, 4.0, -1.5, 10.0, 1e9, rng.randrange(-40, 80) / 8]),
            "at": rng.choice([None, start + dt.timedelta(minutes=rng.randrange(4 * 24 * 60))]),
        }
        for _ in range(rows)
    ]


@dataclass(frozen=True)
class Asked:
    """One number that was asked about, and how.

    Attributes:
        where: the text of a predicate.
        total: column, lower, upper and grid of a sum; None for a count.
        by: columns of the key.
        grain: "day" or "hour", if the key is one.
        key: as it is published.
        target: "prior", "near", the two ends of a band, or what was paid for a number that is published whatever
            it is, as the transcript has it.
        epsilon: of the computation.
        snapshot: that it was asked on.
    """

    where: str | None = None
    total: tuple | None = None
    by: tuple = ()
    grain: str | None = None
    key: object = None
    target: object = "prior"
    epsilon: float = 0.1
    snapshot: int = 1

    @property
    def grid(self):
        return Fraction(1) if self.total is None else Fraction(str(self.total[3]))

    @property
    def bounds(self):
        _, lower, upper, _ = self.total
        return math.ceil(Fraction(lower) / self.grid), math.floor(Fraction(upper) / self.grid)

    @property
    def sensitivity(self):
        return 1 if self.total is None else max(map(abs, self.bounds))

    def counts(self, row):
        if not PREDICATES[self.where](row):
            return False
        if not self.by:
            return True
        keys = self.key if len(self.by) > 1 else (self.key,)
        return all(self._is(row[column], key) for column, key in zip(self.by, keys, strict=True))

    def _is(self, value, key):
        if value is None or key is tc.MISSING:
            return value is None and key is tc.MISSING
        if self.grain == "day":
            return value.date().isoformat() == key
        if self.grain == "hour":
            return value.replace(minute=0, second=0, microsecond=0).isoformat(sep=" ") == key
        return value == key


class Naive:
    """The meters of all units."""

    def __init__(self, rows, *, by_row=False, capacity, price):
        """Begin with the first snapshot.

        Args:
            rows: as dicts.
            by_row: whether every row is a unit.
            capacity: of each unit.
            price: of a hit, from what was asked and what a unit contributes.
        """
        self.by_row, self.capacity, self._price = by_row, capacity, price
        self.snapshots, self.spent, self.everybody = [], {}, 0
        self.grow(rows)

    def grow(self, rows):
        self.snapshots.append(rows)
        number = len(self.snapshots)
        new = {self._unit(number, place, row) for place, row in enumerate(rows)} - {None} - set(self.spent)
        for unit in sorted(new):
            self.spent[unit] = min(self.everybody, self.capacity)

    def _unit(self, snapshot, place, row):
        return (snapshot, place) if self.by_row else row["unit"]

    @property
    def counters(self):
        """Return what each has paid, in the order of their ids."""
        return list(self.spent.values())

    def contributions(self, asked):
        """Return what each unit contributes, in steps, where it is not 0."""
        matching = {}
        for number, rows in enumerate(self.snapshots[: asked.snapshot], 1):
            for place, row in enumerate(rows):
                unit = self._unit(number, place, row)
                if unit is not None and asked.counts(row):
                    matching.setdefault(unit, []).append(row)
        if asked.total is None:
            return dict.fromkeys(matching, 1)
        found = {}
        for unit, rows in matching.items():
            values = [row[asked.total[0]] for row in rows if row[asked.total[0]] is not None]
            if values:
                lower, upper = asked.bounds
                steps = sum(math.floor(Fraction(value) / asked.grid + Fraction(1, 2)) for value in values)
                found[unit] = min(max(steps, lower), upper)
        return {unit: steps for unit, steps in found.items() if steps}

    def _bill(self, asked):
        """Return what each unit contributes, and what a hit costs it."""
        return {unit: (steps, self._price(asked, steps)) for unit, steps in self.contributions(asked).items()}

    def active(self, asked):
        return {
            unit: (steps, price)
            for unit, (steps, price) in self._bill(asked).items()
            if self.spent[unit] + price <= self.capacity
        }

    def number(self, asked):
        """Return the number that noise is added to."""
        return sum(steps for steps, _ in self.active(asked).values())

    def hit(self, asked):
        """Charge a hit."""
        for unit, (_, price) in self.active(asked).items():
            self.spent[unit] += price
        assert max(self.counters, default=0) <= self.capacity

    # Selections.

    def best(self, asked, keys, k):
        """Return the number of each key, and who takes part in it at what price."""
        bills = {key: self._bill(replace(asked, key=key)) for key in keys}
        could = {}
        for bill in bills.values():
            for unit, (_, price) in bill.items():
                could.setdefault(unit, []).append(price)
        able = {
            unit for unit, prices in could.items() if self.spent[unit] + sum(sorted(prices)[-k:]) <= self.capacity
        }
        kept = {key: {unit: told for unit, told in bill.items() if unit in able} for key, bill in bills.items()}
        return {key: sum(steps for steps, _ in bill.values()) for key, bill in kept.items()}, kept

    def selected(self, asked, keys, k, published):
        """Charge the keys that were published."""
        _, bills = self.best(asked, keys, k)
        for key in published:
            for unit, (_, price) in bills[key].items():
                self.spent[unit] += price
        assert max(self.counters, default=0) <= self.capacity

    def broken(self, price):
        """Charge everybody, also who comes later, as far as it goes."""
        self.everybody += price
        for unit, paid in self.spent.items():
            self.spent[unit] = min(self.capacity, paid + price)


def prices_of(t):
    """Return a table's own prices, as a function of what was asked and what a unit contributes."""
    allowance, known = t._numbers.allowance, {}

    def price(asked, steps):
        name = (asked.target, asked.epsilon, asked.sensitivity, asked.grid)
        if name not in known:
            known[name] = allowance.prices(_target(asked), asked.epsilon, asked.sensitivity)
        return int(known[name].of(np.array([steps]))[0])

    return price


CURVES = {
    "pure": Pure,
    "gaussian": lambda shift_squared, variance: Gaussian(shift_squared, Fraction(variance)),
}


def _target(asked):
    if asked.target == "prior":
        return tc.NotPrior(None)
    if asked.target == "near":
        return tc.Boundary()
    if asked.target[0] == "Everything":
        return tc.Everything(CURVES[asked.target[1]](*asked.target[2:]))
    low, high = (Fraction(str(end)) / asked.grid for end in asked.target)  # 12.3 is meant as it is written
    return tc.Between(math.ceil(low), math.floor(high), asked.sensitivity)


def naive_of(t, snapshots, *, by_row=False):
    """Return the naive meters of a table on which nothing was published."""
    allowance = t._numbers.allowance
    made = Naive(snapshots[0], by_row=by_row, capacity=allowance.capacity, price=prices_of(t))
    for rows in snapshots[1:]:
        made.grow(rows)
    return made


# The transcript, read again: as a stranger would who knows its format and the predicates.


def asked_in(answer, text=None):
    """Return what an answer is about, from its record; with the keys and k of a selection."""
    body = json.loads(text or answer.question)
    what = body["what"]
    total = None
    if "sum" in what:
        total = (what["sum"], *map(Fraction, what["bounds"]), what["grid"])
    target = "near" if "side" in body else tuple(body["between"]) if "between" in body else "prior"
    if answer.targets[0][0] == "Everything":
        target = answer.targets[0]
    asked = Asked(
        what["count"] if "count" in what else what["where"],
        total,
        tuple(body.get("by", ())),
        body.get("period"),
        answer.key,
        target,
        answer.epsilon,
        answer.snapshot,
    )
    return asked, [_key(key) for key in body.get("keys", ())], body.get("top")


def _key(plain):
    if isinstance(plain, list):
        return tuple(map(_key, plain))
    if plain == {"mark": "NULL"}:
        return tc.MISSING
    return float.fromhex(plain["float"]) if isinstance(plain, dict) else plain


class Replay:
    """Charges what a ledger holds, entry by entry, to units that paid nothing yet."""

    def __init__(self, naive, scaled):
        """Begin at the beginning.

        Args:
            naive: fresh meters, with all snapshots.
            scaled: puts what a broken call charged on the scale of the counters.
        """
        self._naive, self._scaled = naive, scaled
        self._selection = None

    def feed(self, entry):
        answers = (
            [entry] if isinstance(entry, tc.Answer) else entry.answers if isinstance(entry, BatchEntry) else []
        )
        last = answers[-1] if answers else None
        if last is None or last.candidate is None or last.question:
            self._finish()
        if isinstance(entry, Spent):
            self._naive.broken(self._scaled(sum(entry.grains)))
        elif last is None:
            return
        elif last.candidate is not None:
            if last.question:
                self._selection = *asked_in(last), []
            self._selection[3].append(last.key)
        elif (last.release is None and last.hit) or last.release == last.seq:
            self._naive.hit(asked_in(last)[0])

    def _finish(self):
        if self._selection:
            self._naive.selected(*self._selection)
        self._selection = None

    @property
    def naive(self):
        """Return the meters as they are now: all that a selection published is there."""
        self._finish()
        return self._naive


def replay_of(t, snapshots, *, by_row=False):
    return Replay(naive_of(t, snapshots, by_row=by_row), t._numbers.allowance.scaled)


def replayed(t, snapshots, *, by_row=False):
    """Return what each unit has paid, by the ledger that a table is on."""
    replay = replay_of(t, snapshots, by_row=by_row)
    for entry in t._session._ledger.entries():
        replay.feed(entry)
    return replay.naive.counters
