"""Rényi meters, computations with a δ of their own, and alternatives: enumerated through `tc.Session`."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from tests.sessions.games import ALL, Wanderer
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting import exact_delta, exact_epsilon, renyi_epsilon
from targetcharge.audit.exact import explore, hockey_stick, moment, response
from targetcharge.audit.exact import leaky as leaking
from targetcharge.numerics.rounding import from_grains

GAMES = size(3, 30)
TOLERANCE = 1e-12


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
    for game in range(GAMES):
        views = explore(opened, Wanderer.drawn(7000 * hits + game, (0.3, 0.15), ALL))
        assert moment(views, meter.tariff.order) <= most + TOLERANCE
        assert hockey_stick(views, [meter.guarantee.epsilon])[0] <= meter.guarantee.delta


def test_a_test_repeated_until_it_hits_attains_the_price():
    def game(player):
        pair = response(0.3, False, True)
        for _ in range(80):
            player.test(player.algorithm(pair, 0.3))

    opened = renyi_opener(0.3, 1)
    meter = opened().meter
    told, most = moment(explore(opened, game), meter.tariff.order), from_grains(meter.tariff.capacity)
    assert meter.tariff.typical.value == pytest.approx(most, rel=1e-6)
    assert 0.999 * most < told <= most


def leaky(epsilon, delta):
    """Return a pair that gives the dataset away with probability δ, and is randomised response otherwise."""
    return leaking(response(epsilon, False, True), delta, "first", "second")


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
                    player.ask_prior(algorithm, False)
                case "release":
                    release = player.release(algorithm, frozenset({"first", "second"}))
                    if release and not release.released:
                        player.revise(len(player.pending) - 1, frozenset({True}))
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
                    player.select([numeric, plain, numeric], threshold=1)
                case "twice":
                    player.ask(player.twice(leaky(1.0, each), 1.0, each))
        outcomes.append(player.view[-1])

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
            player.ask(player.algorithm(pair, epsilon))

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
            player.ask(player.algorithm(response(0.3, 0, 1), 0.3))

    views = explore(opened, game)
    most = from_grains(meters[0].tariff.capacity) + math.log(2)
    assert 0 < moment(views, meters[0].tariff.order) <= most
    assert hockey_stick(views, [budget.epsilon])[0] <= budget.delta
