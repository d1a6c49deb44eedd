"""The ends of the scale: prices, sums of prices and counters that are nearly too large for their integers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from tests.sessions.scripted import budget_of
from tests.sizes import spread
from tests.tables.individuals import EPSILON, Drawn, capacity, counters, crowd, opened
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.accounting.meter import Allowance, Meter
from targetcharge.engines.engine import Contributions
from targetcharge.tables.individual import contributors
from targetcharge.tables.individual.counters import Counters

WEEKS = 60
MANY = 50
REGULARS = crowd(*((range(MANY), week) for week in range(WEEKS)))
"""Units with a row in every week."""

ONCE = crowd(*(([MANY + week], week) for week in range(WEEKS)))
"""One more unit for each week, with a row in that week only."""


@pytest.mark.parametrize(
    ("meter", "hits", "k"),
    spread(itertools.product(["exact", "renyi"], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 11, 17, 30, 45, 60]), 26),
)
def test_who_cannot_pay_for_all_that_a_selection_may_publish_is_absent(monkeypatch, meter, hits, k):
    """However many times over: what a unit would have to pay may be many times what fits into 64 bits."""
    silence(monkeypatch)
    drawn = Drawn(monkeypatch)
    with opened(pd.concat([REGULARS, ONCE]), hits, meter=meter) as t:
        assert t.meter.hits_left == hits
        found = t.top(None, "week", range(WEEKS), k)
        present = k <= hits
        assert drawn == [1 + present * MANY] * WEEKS
        assert [answer.outcome for answer in found] == drawn[:k]
        price = t._numbers.allowance.scaled(found[0].grains[0])
        regular, once = counters(t)[:MANY], counters(t)[MANY:]
        assert regular == [present * k * price] * MANY
        assert once == [price * (week < k) for week in range(WEEKS)]
        assert all(0 <= spent <= capacity(t) for spent in regular + once)


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_no_counter_leaves_its_bounds_however_much_is_published(monkeypatch, meter):
    silence(monkeypatch)
    with opened(pd.concat([REGULARS, ONCE]), 4, meter=meter) as t:
        for k in (60, 3, 40, 1, 60, 2, 1, 1):
            t.top(None, "week", range(WEEKS), k)
            t.watch(None, "week", range(WEEKS), 20)
            spent = counters(t)
            assert 0 <= min(spent) <= max(spent) <= capacity(t)


def dearest(order, most):
    """Return an ε whose price at an order is about so many times another number, finite."""
    low, high = 1e-3, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if tc.NotPrior(None).kappa(order, middle) < most else (low, middle)
    return low


@pytest.mark.parametrize("times", [1.01, 1.5, 2.1, 3.0, 4.1, 6.0, 8.0])
def test_a_question_that_nobody_could_ever_pay_is_refused_by_name(times):
    with opened(REGULARS, 1, meter="renyi") as t:
        tariff = t.meter.tariff
        epsilon = dearest(tariff.order, times * tariff.capacity / 2**128)
        price = tc.NotPrior(None).kappa(tariff.order, epsilon)
        assert tariff.capacity / 2**128 < price < math.inf
        for ask in (
            lambda: t.above(None, 10, epsilon=epsilon),
            lambda: t.count(epsilon=epsilon),
            lambda: t.release(None, lambda _: False, epsilon=epsilon),
            lambda: t.sum_above("week", 0, 5, threshold=1, epsilon=epsilon),
        ):
            with pytest.raises(tc.BudgetSpent, match="could never take part"):
                ask()
        watch = t.watch(None, "week", range(3), 10, epsilon=epsilon)
        top = t.top(None, "week", range(3), 2, epsilon=epsilon)
        for answers in (watch, top):
            assert "could never take part" in answers.stopped
            assert answers.unanswered == (0, 1, 2)
        assert list(t.transcript) == []
        assert set(counters(t)) == {0}


@pytest.mark.parametrize("most", [1, 2**32 - 1, 2**32, 2**49 + 12345, 2**50])
def test_sums_beyond_64_bits_are_exact(most):
    """No table of a test is large enough, so the contributions are made up: of either sign, some cannot pay."""
    rng = np.random.default_rng(most)
    lengths = [20_000, 0, 1, 4_000]
    units = np.concatenate([np.sort(rng.choice(30_000, length, replace=False)) for length in lengths])
    starts = np.concatenate(([0], np.cumsum(lengths)))
    budget = budget_of(2, EPSILON)
    found = Counters(Allowance.of(Meter.exact(budget, EPSILON, individual=True).tariff))
    found.grow(30_000)
    found.charge(np.arange(0, 30_000, 7), 2)
    for low, high in ((most, most), (-most, -most), (-most, most)):
        steps = rng.integers(low, high, len(units), endpoint=True)
        draw = contributors.Drawn(Contributions(units, steps, starts), 1, {}, 1)
        naive = [
            sum(int(step) for unit, step in zip(units[a:b], steps[a:b], strict=True) if unit % 7)
            for a, b in itertools.pairwise(starts.tolist())
        ]
        assert draw.sums(0, 4, found) == naive
        assert [draw.sums(place, place + 1, found)[0] for place in range(4)] == naive
        assert draw.sums(2, 4, found) == naive[2:]
        assert draw.best(1, found)[0] == naive
