"""Tables with a budget for every individual, and a look at what nobody may see: counters, and numbers drawn."""

from __future__ import annotations

import pandas as pd
from tests.sessions.scripted import budget_of
from tests.tables.anew import anew

import targetcharge as tc
from targetcharge.tables.individual import UnitMeters

EPSILON = 0.1


def opened(source, hits=3, *, unit="unit", meter="exact", **options):
    """Open a table in which every unit has this many hits of tests."""
    budget = options.pop("budget", None) or budget_of(hits, EPSILON, meter=meter)
    tests = [tc.NotPrior(None)]  # declared, so that an exact meter takes more than at-least questions
    found = {"query_epsilon": EPSILON, "meter": meter, "charging": "individual", "targets": tests, **options}
    return anew(tc.open(source, unit=unit, budget=budget, **found))


def crowd(*groups):
    """Return rows of units: each group is the ids of its units and its number, with a row for each."""
    rows = [(unit, group) for units, group in groups for unit in units]
    return pd.DataFrame(rows, columns=["unit", "week"])


def counters(t):
    """Return what every unit has paid at the ledger's head, by id."""
    t._session.up_to_date(t._numbers.settle)
    return t._numbers._counters.spent.tolist()


def capacity(t):
    """Return what every unit may pay, on the scale of the counters."""
    return t._numbers.allowance.capacity


class Drawn(list):
    """The exact numbers that were drawn for, in order: of a batch those that were due; of a selection all."""

    def __init__(self, monkeypatch):
        super().__init__()
        for name in ("one", "of_keys"):
            self._spy(monkeypatch, name, self._told)
        for name in ("of_keys_when_due", "several_when_due"):
            self._spy(monkeypatch, name, self._due)

    def _spy(self, monkeypatch, name, tell):
        original = getattr(UnitMeters, name)
        monkeypatch.setattr(UnitMeters, name, lambda roll, *asked: tell(original(roll, *asked)))

    def _told(self, found):
        self += found if isinstance(found, list) else [found]
        return found

    def _due(self, numbers):
        def due(first, last):
            for number in numbers(first, last):
                self.append(number)
                yield number

        return due
