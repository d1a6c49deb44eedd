"""Tiny tables that open in a millisecond: with a budget for every individual, with one unit and without it.

The engine is the real one, opened once for each frame; what it finds is remembered.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache

import pandas as pd
from tests.tables.anew import anew

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, renyi_epsilon
from targetcharge.engines import duckdb
from targetcharge.tables import measured

TESTS = [tc.NotPrior(None)]
"""Declared, so that every such target may be asked with an exact meter; else it takes at-least questions only."""

Z = "z"
"""The unit that is in one table and not in the other."""


class Kept:
    """An engine that stays open and remembers what it found: the rows never change."""

    def __init__(self, engine):
        self._engine = engine
        self._found = {}

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def measure(self, measures):
        return self._known(("sums", tuple(measures)), self._engine.measure, measures)

    def contributions(self, measures, snapshot=None):
        return self._known(("all", tuple(measures), snapshot), self._engine.contributions, measures, snapshot)

    def contributions_by(self, measure, keys, snapshot=None):
        name = "by", measure, repr(keys), snapshot
        return self._known(name, self._engine.contributions_by, measure, keys, snapshot)

    def units(self):
        return self._known("units", self._engine.units)

    def _known(self, name, find, *asked):
        if name not in self._found:
            self._found[name] = find(*asked)
        return self._found[name]

    def close(self):
        """Stay open."""


@contextmanager
def quick(monkeypatch):
    """Open every frame once, and read every predicate once."""
    right, engines = duckdb.open_duckdb, {}

    def opened(source, unit, **options):
        if not isinstance(source, pd.DataFrame):
            return right(source, unit, **options)
        if id(source) not in engines:
            engines[id(source)] = source, Kept(right(source, unit, **options))
        return engines[id(source)][1]

    monkeypatch.setattr(duckdb, "open_duckdb", opened)
    parse, known = measured.parse, {}

    def parsed(text, schema):
        if text not in known:
            known[text] = parse(text, schema)
        return known[text]

    monkeypatch.setattr(measured, "parse", parsed)
    yield
    for _, engine in engines.values():
        engine._engine.close()


def frames(**units):
    """Return two frames, without z and with it: `z={1: 1, 2: -2}` has a row in group 1 and one worth -2 in 2."""
    rows = [(name, group, worth) for name, groups in units.items() for group, worth in groups.items()]
    whole = pd.DataFrame(rows, columns=["u", "g", "w"]).astype({"u": "str", "g": "int64", "w": "int64"})
    return whole[whole["u"] != Z].reset_index(drop=True), whole


def own(*groups):
    """Return the rows of a unit that counts once in each group."""
    return dict.fromkeys(groups, 1)


def total(most, where=None):
    """Return the sum of what units are worth, each at most so much."""
    return tc.questions.sum("w", -most, most, where, grid=1)


@cache
def budget(epsilon, hits, meter="exact", delta=0.02):
    """Return a budget that gives every unit so many full hits, and hardly more."""
    if meter == "exact":
        whole = exact_epsilon(epsilon, hits, delta)
    else:
        whole = renyi_epsilon(tc.NotPrior(0), epsilon, hits, delta)
    return tc.Budget(whole * (1 + 1e-9), delta)


def opener(tables, epsilon, hits, meter="exact", delta=0.02, more=1.0, *, repeats=False):
    """Return what opens one of two frames, with a budget for every individual.

    Args:
        tables: the frames.
        epsilon: of a question.
        hits: of a unit that contributes as much as it may.
        meter: "exact" or "renyi".
        delta: of the budget. With a larger one the Rényi order is lower, and fewer questions tell much.
        more: times the budget that the hits cost.
        repeats: whether a question whose hit is published is a repeat, and not asked.
    """
    whole = budget(epsilon, hits, meter, delta)
    whole = tc.Budget(whole.epsilon * more, whole.delta)

    def opened(side):
        table = tc.open(
            tables[side], "u", whole, query_epsilon=epsilon, charging="individual", meter=meter, targets=TESTS
        )
        return table if repeats else anew(table)

    return opened
