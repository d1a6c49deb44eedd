"""Whole interactions with tiny tables, exactly: what they tell of one unit against what its budget claims.

Every game runs on the real code, on a table with unit z and on one without it (`tables.lockstep`). δ(ε) of all
that is published, both directions, may nowhere be above the claim, and comes close to it for the best games.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from tests.sizes import size
from tests.tables.exploring import explore
from tests.tables.judged import chosen, claim_of, verdict, within_budget
from tests.tables.tiny import budget, frames, opener, own, total
from tests.tables.unit_games import climber, until, wandering

import targetcharge as tc
from targetcharge.accounting import exact_delta, exact_epsilon
from targetcharge.accounting.meter import Allowance, Meter
from targetcharge.audit.exact import ODOMETER, hockey_stick, judge, moment
from targetcharge.tables.individual.unit_meters import UnitMeters

GAMES = size(3, 40)
"""Random games on each meter."""

ROUNDING = 1e-12

UP = 1 / (1 + math.exp(-1.0))
DOWN = 1 - UP


@pytest.fixture(scope="module", autouse=True)
def noise():
    with chosen():
        yield


def orders(epsilon):
    """Return orders at which a test has a price."""
    return 1 + (math.log1p(math.exp(epsilon)) / epsilon - 1) * np.array([0.05, 0.3, 0.6, 0.9, 0.99])


# The means: laws that are known.


def test_a_test_is_randomised_response():
    opened = opener(frames(z=own(1)), 1.0, 1)
    seen = explore(opened, lambda twins: twins.above("g = 1", 1))
    assert sorted(seen.views.seen.values()) == [pytest.approx((DOWN, UP)), pytest.approx((UP, DOWN))]
    assert sorted(seen.charges.values()) == [0, 1]


def test_a_unit_without_room_is_absent():
    """One hit of tests with ε pays for a count with s = ε + ln((2e^ε + 1)/(e^ε + 2)), and nobody pays for two."""
    seen = explore(opener(frames(z=own(1)), 1.0, 1), until(lambda twins: twins.count("g = 1"), 2, 2))
    ratios = sorted(second / first for first, second in seen.views.seen.values())
    paid_for = math.e * (2 * math.e + 1) / (math.e + 2)
    assert ratios == pytest.approx([1 / paid_for, paid_for], rel=1e-5)


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_nothing_is_lost_where_many_values_are_one_range(meter):
    """With the seven values around the counts told apart, the same is told."""
    opened = opener(frames(z={1: 2}, a={1: -1}), 1.0, 2, meter, 0.3)

    def game(cuts):
        def ask(twins):
            first = twins.call(lambda table: table.above(total(2), 1), {1, *cuts}, (1, math.inf))
            second = twins.call(lambda table: table.count(None), cuts)
            if first.hit and second.outcome > 1:
                twins.release(None, {1, 2, *cuts}, 2)

        return ask

    coarse, fine = (explore(opened, game(cuts)).views for cuts in ((2,), range(-2, 5)))
    points = np.linspace(0, 4, 50)
    assert fine.paths > 3 * coarse.paths
    assert hockey_stick(coarse, points) == pytest.approx(hockey_stick(fine, points), abs=1e-12)
    assert moment(coarse, 1.2) == pytest.approx(moment(fine, 1.2), abs=1e-12)


# Never above the claim, and all but attained.


@pytest.mark.parametrize(("epsilon", "hits", "aim", "questions"), [
    (0.5, 1, 0, 14), (0.5, 1, 2, 14), (1.0, 1, 1, 12), (1.0, 2, 1, 10), (2.0, 2, 2, 8), (1.0, 3, 0, 8),
])  # fmt: skip
def test_the_best_game_attains_exact_accounting(epsilon, hits, aim, questions):
    opened = opener(frames(z=own(1)), epsilon, hits)
    seen = explore(opened, climber(hits, aim, questions))
    views, found = seen.views, judge(seen.views, claim_of(opened))
    assert within_budget(opened, seen)
    assert seen.delta(aim * epsilon) == pytest.approx(hockey_stick(views, [aim * epsilon])[0], abs=1e-14)
    told, claimed = float(hockey_stick(views, [aim * epsilon])[0]), exact_delta(epsilon, hits, aim * epsilon)
    assert found.passed
    assert claimed * (0.95 if hits == 3 else 0.99) < told <= claimed * (1 + 1e-9)


def test_the_best_game_goes_on_with_fresh_companions():
    """Companions that have spent their budgets leave; where others take their places it tells as much as alone."""
    tables = frames(z=own(1, 2), early=own(1, 8), late=own(2))
    opened = opener(tables, 1.0, 2)

    def game(group):
        def ask(twins):
            twins.count("g = 8")  # whoever is in group 8 has one hit left
            climber(2, 1, 10, group, threshold=2)(twins)

        return ask

    switching, staying = (
        explore(opened, game(group)).views for group in (lambda hits: f"g = {hits + 1}", lambda _: "g = 1")
    )
    claimed = exact_delta(1.0, 2, 1.0)
    assert judge(switching, claim_of(opened)).passed
    assert hockey_stick(switching, [1.0])[0] > 0.99 * claimed
    assert hockey_stick(staying, [1.0])[0] < 0.9 * claimed


@pytest.mark.parametrize(("epsilon", "hits", "questions", "least"), [(0.5, 1, 20, 0.95), (0.5, 2, 16, 0.9)])
def test_the_best_game_attains_the_renyi_moment(epsilon, hits, questions, least):
    opened = opener(frames(z=own(1)), epsilon, hits, "renyi", 0.3)
    found = verdict(opened, until(lambda twins: twins.above("g = 1", 1), hits, questions))
    assert found.passed
    assert found.quantity == "moment"
    assert least < found.ratio <= 1


# What one question charges a unit covers what it tells of it.

KINDS = {
    "above": lambda least: lambda twins: twins.above("g = 1", least),
    "below": lambda least: lambda twins: twins.below("g = 1", least),
    "sum": lambda least: lambda twins: twins.above(total(3), least),
    "sum below": lambda least: lambda twins: twins.below(total(3), least),
    "release": lambda least: lambda twins: twins.release(total(3), (), least),
    "top": lambda least: lambda twins: twins.top("g", [1, 2], 1, {least, least + 1}),
    "top sums": lambda least: lambda twins: twins.top("g", [1, 2], 2, {least}, where=total(3), threshold=least),
    "watch": lambda least: lambda twins: twins.watch(None, "g", [1, 2], least),
    "watch sums": lambda least: lambda twins: twins.watch(total(3), "g", [1, 2], least),
    "break": lambda least: lambda twins: twins.above(total(3), least, broken=least),
}
KINDS["changed"] = lambda least: (
    lambda twins: twins.call(
        lambda table: table.above(total(3), least, prior=least + 2, tolerance=1), {least, least + 1, least + 4}
    )
)
RENYI_KINDS = {
    "between": lambda least: lambda twins: twins.between("g = 1", least, least + 1),
    "sum between": lambda least: lambda twins: twins.between(total(3), least, least + 3),
    "side": lambda least: lambda twins: twins.side("g = 1", least),
    "sum side": lambda least: lambda twins: twins.side(total(3), least),
}


@cache
def worth_in_steps(worth):
    """Return tables where z adds so many of at most three steps to one group, and takes some off another."""
    return frames(z={1: worth, 2: worth - 4}, a={1: 1}, b={2: 3})


@pytest.mark.parametrize("kind", KINDS)
def test_a_hit_covers_what_one_question_tells(kind):
    """On the exact meter, at every order: E[e^{(a-1)·loss - κ_a·hits}] ≤ 1, either way."""
    opened = opener(worth_in_steps(2), 1.0, 2)
    games = [explore(opened, KINDS[kind](least)) for least in (-1, 1, 2, 4)]
    excesses = [seen.excess(order, tc.NotPrior(0).price(order, 1.0)) for seen in games for order in orders(1.0)]
    assert max(excesses) <= ROUNDING
    if kind in ("above", "below"):
        assert max(excesses) > -1e-6  # randomised response: the price itself


@pytest.mark.parametrize("kind", KINDS | RENYI_KINDS)
def test_the_own_price_covers_what_one_question_tells(kind):
    """On the Rényi meter, where who contributes less pays less."""
    excesses = []
    for delta, worth in itertools.product((0.02, 0.3), (1, 2, 3)):
        opened = opener(worth_in_steps(worth), 0.5, 4, "renyi", delta)
        order = claim_of(opened).order
        excesses += [explore(opened, (KINDS | RENYI_KINDS)[kind](least)).excess(order) for least in (-1, 1, 2, 4)]
    assert max(excesses) <= ROUNDING
    if kind in ("above", "below", "sum", "sum below"):
        assert max(excesses) > -1e-6


def test_bands_on_the_exact_meter_tell_no_more_than_it_claims():
    """Of sums, where z contributes two of at most three steps: its q is above the declared one."""
    tables, targets = frames(z={1: 2}, a={1: 1}), (tc.NotPrior(0), tc.Between(1, 2, sensitivity=3))

    def opened(side):
        return tc.open(
            tables[side], "u", tc.Budget(20, 0.02), query_epsilon=1.0, charging="individual", targets=targets
        )

    found = verdict(opened, until(lambda twins: twins.between(total(3), 0, 1), 2, 5))
    assert found.passed
    assert found.ratio > 0.5


# Adaptive games of all kinds.


@pytest.mark.parametrize("seed", range(GAMES))
def test_no_random_game_tells_more_than_the_exact_meter_claims(seed):
    game, opened = wandering(seed, "exact")
    seen = explore(opened, game)
    assert judge(seen.views, claim_of(opened)).passed
    assert within_budget(opened, seen)
    assert judge(seen.views, ODOMETER).passed
    for order in orders(game.epsilon):
        assert seen.excess(order, tc.NotPrior(0).price(order, game.epsilon)) <= ROUNDING


@pytest.mark.parametrize("seed", range(GAMES))
def test_no_random_game_tells_more_than_the_renyi_meter_claims(seed):
    game, opened = wandering(seed, "renyi")
    seen, claim = explore(opened, game), claim_of(opened)
    assert judge(seen.views, claim).passed
    assert within_budget(opened, seen)
    assert judge(seen.views, ODOMETER).passed
    assert seen.excess(claim.order) <= ROUNDING


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_a_table_that_makes_its_counters_anew_each_time_tells_the_same(monkeypatch, meter):
    """From the transcript alone, as after a crash: the same views, the same probabilities, the same charges."""
    read = UnitMeters.read_ledger

    def forgetful(units):
        units._counters = units._last = None
        read(units)

    games = [wandering(seed, meter) for seed in range(GAMES, GAMES + 2)]
    right = [explore(opened, game) for game, opened in games]
    monkeypatch.setattr(UnitMeters, "read_ledger", forgetful)
    assert [explore(opened, game) for game, opened in games] == right


def test_prices_in_proportion_to_a_contribution_or_its_square_are_above_its_own():
    """So they would be no mistake: κ(ε) is 0 at 0, and both κ(ε)/ε and κ(ε)/ε² grow."""
    allowance = Allowance.of(Meter.renyi(budget(1.0, 2, "renyi"), 1.0, tc.NotPrior(0)).tariff)
    steps = np.arange(1, 101)
    prices = allowance.prices(tc.NotPrior(0), 1.0, 100)
    assert (prices.of(steps) < prices.full * (steps / 100) ** 2 + 1).all()
    assert (prices.of(steps) <= prices.full * (steps / 100) + 1).all()


def test_the_budgets_have_the_hits_they_are_made_for():
    for epsilon, hits in ((0.5, 1), (1.0, 2), (2.0, 3)):
        whole = budget(epsilon, hits)
        assert Meter.exact(whole, epsilon, tc.NotPrior(0)).hits_left == hits
        assert whole.epsilon == pytest.approx(exact_epsilon(epsilon, hits, 0.02))
