"""Tables for what is always paid for, where all units share a budget; and what is asked of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.goodness import BufferedEntropy
from tests.tables.anew import anew
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.tables import questions as q

HITS = 20
METERS = {
    "sparse": {"budget": tc.Budget(3.0, 1e-6)},
    "pure": {"budget": tc.Budget(3.0, 0.0)},
    "exact": {"budget": tc.Budget(3.0, 1e-6), "meter": "exact"},
    "renyi": {"budget": tc.Budget(3.0, 1e-6), "meter": "renyi"},
}
"""Tables with so many hits; a sparse meter has another noise where the guarantee is pure."""


EACH = pytest.mark.parametrize("meter", METERS)

FRAME = pd.DataFrame(
    {"unit": [number % 600 for number in range(1800)], "week": [number % 7 for number in range(1800)]}
).assign(fee=lambda frame: frame.unit % 10 + 0.5)
"""600 units with three rows each, in three different weeks, and one fee each: 0.5 to 9.5."""


def opened(source, meter="sparse", *, unit="unit", **options):
    return anew(tc.open(source, unit=unit, **({"hits": HITS} | METERS[meter] | options)))


class Picks(list):
    """Picks without chance: the first of the best. Each is kept: how far candidates are below it, and the rate."""

    def pick(self, _entropy, gaps, rate):
        self.append((gaps.tolist(), rate))
        return int(np.argmin(gaps))


def without_noise(monkeypatch):
    """Draw no noise and no offset from now on, and pick the best; return what was picked from."""
    silence(monkeypatch)
    return sure_picks(monkeypatch)


def sure_picks(monkeypatch):
    """Pick the best from now on; return what was picked from."""
    picks = Picks()
    monkeypatch.setattr("targetcharge.mechanisms.picks.exponential_choice", picks.pick)
    return picks


def seeded(monkeypatch, seed):
    """Draw all noise and offsets of tables that are opened from now on from bits that are always the same."""
    entropy = BufferedEntropy(seed)
    monkeypatch.setattr("targetcharge.sessions.session.SystemEntropy", lambda: entropy)
    monkeypatch.setattr("targetcharge.sessions.opening.SystemEntropy", lambda: entropy)
    return entropy


def spent(t):
    """Return the hits that a table has charged; on a Rényi meter those of tests that would cost as much."""
    return t.meter.totals.spent / t.meter.tariff.typical.grains


CALLS = {
    "count": (lambda t: t.count("week < 3"), 1),
    "sum": (lambda t: t.sum("fee", 0, 10), 1),
    "sum that may fall": (lambda t: t.sum("fee", -10, 10, "week = 2", grid=1), 1),
    "mean": (lambda t: t.mean("fee", 0, 10, "week > 1"), 1),
    "histogram": (lambda t: t.histogram(None, "week", range(7)), 1),
    "histogram of many keys": (lambda t: t.histogram("week < 5", "week", range(1000), 3), 1),
    "histogram of pairs": (lambda t: t.histogram(None, ["week", "unit"], [(1, 2), (3, 4)], 2), 1),
    "quantile": (lambda t: t.quantile("fee", 0.5, 0, 10), 1),
    "quantiles": (lambda t: t.quantiles("fee", [0.1, 0.5, 0.9], 0, 10), 3),
}
QUESTIONS_OF = {
    "count": q.count("week < 3"),
    "sum": q.count(q.sum("fee", 0, 10)),
    "sum that may fall": q.count(q.sum("fee", -10, 10, "week = 2", grid=1)),
    "mean": q.mean("fee", 0, 10, "week > 1"),
    "histogram": q.histogram(None, "week", range(7)),
    "histogram of many keys": q.histogram("week < 5", "week", range(1000), 3),
    "histogram of pairs": q.histogram(None, ["week", "unit"], [(1, 2), (3, 4)], 2),
    "quantile": q.quantile("fee", 0.5, 0, 10),
    "quantiles": q.quantiles("fee", [0.1, 0.5, 0.9], 0, 10),
}
NAMES = {
    "count": "count(week < 3)",
    "sum": "sum(fee from 0 to 10)",
    "mean": "mean(fee from 0 to 10 where week > 1)",
    "histogram": "histogram of count(*) by week",
    "histogram of pairs": "histogram of count(*) by week, unit",
    "quantile": "quantile(fee from 0 to 10) at 0.5",
    "quantiles": "quantile(fee from 0 to 10) at 0.1, 0.5, 0.9",
}
"""What the transcript calls some of them."""


def answers_of(result):
    return [result] if isinstance(result, tc.Answer) else list(result)
