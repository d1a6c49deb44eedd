"""Rényi meters, computations with a δ of their own, and alternatives: enumerated through `tc.Session`."""

from __future__ import annotations

import functools
import math
import os

import numpy as np
import pytest

import targetcharge as tc
from sessions.explorer import explore, hockey_stick, moment
from sessions.games import ALL, Wanderer, response
from targetcharge.accounting import exact_delta, exact_epsilon, renyi_epsilon
from targetcharge.numerics.rounding import from_grains

GAMES = int(os.environ.get("TARGETCHARGE_GAMES", "150"))
TOLERANCE = 1e-12


@pytest.fixture(autouse=True)
def _quick_opening(quick_opening):
    """Open thousands of sessions in seconds."""


def renyi_opener(epsilon, hits, target=None, delta=0.02):
    target = target or tc.NotPrior(prior=False)
    budget = tc.Budget(renyi_epsilon(target, epsilon, hits, delta) * (1 + 1e-9), delta)
    return functools.partial(tc.Session, None, budget, epsilon, meter="renyi", targets=target)


@pytest.mark.parametrize("target", [tc.NotPrior(prior=False), tc.Disagreement(), tc.Boundary()], ids=repr)
@pytest.mark.parametrize("hits", [1, 2])
def test_no_game_of_all_tools_and_several_epsilons_tells_more_than_the_budget(target, hits):
    opened = renyi_opener(0.3, hits, target)
    meter = opened().meter
    most = from_grains(meter.tariff.capacity)
    for game in range(GAMES // 20):
        views = explore(opened, Wanderer.drawn(7000 * hits + game, (0.3, 0.15), ALL))
        assert moment(views, meter.tariff.order) <= most + TOLERANCE
        assert hockey_stick(views, [meter.guarantee.epsilon])[0] <= meter.guarantee.delta


def test_a_test_repeated_until_it_hits_attains_the_price():
    def game(player):
        pair = response(0.3, False, True)
        for _ in range(80):
            algorithm = player.algorithm(pair, 0.3)
            player.ask(lambda: player.session.test(algorithm))  # noqa: B023

    opened = renyi_opener(0.3, 1)
    meter = opened().meter
    told, most = moment(explore(opened, game), meter.tariff.order), from_grains(meter.tariff.capacity)
    assert meter.tariff.typical.value == pytest.approx(most, rel=1e-6)
    assert 0.999 * most < told <= most


def leaky(epsilon, delta):
    """Return a pair that gives the dataset away with probability δ, and is randomised response otherwise."""
    parts = {y: ((1 - delta) * p, (1 - delta) * q) for y, (p, q) in response(epsilon, False, True).items()}
    return {**parts, "first": (delta, 0.0), "second": (0.0, delta)}


@pytest.mark.parametrize("tool", ["ask_prior", "release", "select", "twice"])
def test_computations_with_a_delta_tell_no_more_than_the_budget_and_stop_when_it_is_spent(tool):
    each, kept = 0.01, 0.025
    whole = exact_epsilon(1.0, 2, 0.02, disagreement=True)
    budget = tc.Budget(whole * (1 + 1e-6), 0.02 + kept * (1 + 1e-9))
    opened = functools.partial(tc.Session, None, budget, 1.0, computation_delta=kept, targets=(tc.Disagreement(),))
    runs = {"ask_prior": 2, "release": 2, "select": 1, "twice": 1}[tool]
    outcomes = []

    def game(player):
        algorithm = player.algorithm(leaky(1.0, each), 1.0, delta=each)
        for _ in range(runs + 1):
            match tool:
                case "ask_prior":
                    player.ask(lambda: player.session.ask_prior(algorithm, False))
                case "release":
                    release = player.ask(lambda: player.session.release(algorithm, {"first", "second"}))
                    if release and not release.released:
                        player.ask(lambda: release.revise({True}))  # noqa: B023
                case "select":
                    plain = player.algorithm(response(1.0, 1.0, 0.0), 1.0)
                    numeric = player.algorithm(
                        {
                            (2 if y == "first" else 3 if y == "second" else int(y)): p
                            for y, p in leaky(1.0, each).items()
                        },
                        1.0,
                        delta=each,
                    )
                    player.ask(lambda: player.session.select([numeric, plain, numeric], threshold=1))  # noqa: B023
                case "twice":
                    player.ask(lambda: player.session.ask(tc.twice(algorithm)))
        outcomes.append(player.view[-2])

    views = explore(opened, game)
    told = hockey_stick(views, [budget.epsilon])[0]
    assert runs * each * 0.9 < told <= budget.delta
    assert told > exact_delta(1.0, 2, budget.epsilon, disagreement=True) / 2
    assert {facts[0] for facts in outcomes} == {"BudgetSpent"}


@pytest.mark.parametrize("aim", [0.0, 0.5, 1.0])
def test_alternatives_tell_no_more_than_twice_the_claim_of_one_of_their_meters(aim):
    epsilon, delta = 0.5, 0.02
    whole = exact_epsilon(epsilon, 1, delta / 2) * (1 + 1e-9)
    rivals = [tc.NotPrior(0), tc.NotPrior(1)]
    opened = functools.partial(tc.Session, None, tc.Budget(whole, delta), epsilon, alternatives=rivals)
    assert [meter.hits_left for meter in opened().meters] == [1, 1]

    def game(player):
        for _ in range(9):
            pair = response(epsilon, *((0, 1) if player.loss < aim - 1e-9 else (1, 0)))
            algorithm = player.algorithm(pair, epsilon)
            player.ask(lambda: player.session.ask(algorithm), lambda seen: {0: pair[seen.outcome]})  # noqa: B023

    views = explore(opened, game)
    grid = epsilon * np.arange(5)
    told = hockey_stick(views, [*grid, whole])
    claimed = [2 * exact_delta(epsilon, 1, each) for each in grid]
    assert (told[:-1] <= np.array(claimed) + TOLERANCE).all()
    assert told[-1] <= delta
    assert max(told[:-1] / claimed) > 0.3


def test_renyi_alternatives_have_a_moment_within_their_shared_capacity():
    budget = tc.Budget(renyi_epsilon(tc.NotPrior(0), 0.3, 1, 0.01) * (1 + 1e-9), 0.02)
    rivals = [tc.NotPrior(0), tc.NotPrior(1)]
    opened = functools.partial(tc.Session, None, budget, 0.3, meter="renyi", alternatives=rivals)
    meters = opened().meters

    def game(player):
        for _ in range(8):
            algorithm = player.algorithm(response(0.3, 0, 1), 0.3)
            player.ask(lambda: player.session.ask(algorithm))  # noqa: B023

    views = explore(opened, game)
    most = from_grains(meters[0].tariff.capacity) + math.log(2)
    assert 0 < moment(views, meters[0].tariff.order) <= most
    assert hockey_stick(views, [budget.epsilon])[0] <= budget.delta
