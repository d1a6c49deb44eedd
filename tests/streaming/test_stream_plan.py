"""Plans: false moves are as rare as they say, changes grow with the square of the copies, shares are bounds."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from tests.goodness import BufferedEntropy

import targetcharge as tc
from targetcharge.streaming import plan, share_of_wrong_copies
from targetcharge.streaming.consensus import Consensus, Grid

BUDGET = tc.Budget(3.0, 1e-6)


def test_changes_grow_with_the_square_of_the_copies():
    changes = [plan(BUDGET, copies).changes for copies in (500, 1_000, 2_000, 4_000)]
    ratios = [more / fewer for fewer, more in pairwise(changes)]
    assert all(3.5 < ratio < 6 for ratio in ratios)
    assert ratios[-1] < 4.5


def test_the_query_epsilon_falls_as_one_over_the_copies():
    few, many = (plan(BUDGET, copies).query_epsilon for copies in (400, 4_000))
    assert few / many == pytest.approx(10)


def test_changes_are_what_the_exact_accounting_covers():
    found = plan(BUDGET, 700)
    assert tc.accounting.exact_epsilon(found.query_epsilon, found.changes, BUDGET.delta) <= BUDGET.epsilon
    assert tc.accounting.exact_epsilon(found.query_epsilon, found.changes + 1, BUDGET.delta) > BUDGET.epsilon


@pytest.mark.parametrize("place", [0, 5, 40])
@pytest.mark.parametrize("inertia", [0.0, 0.5])
def test_false_moves_are_as_rare_as_planned(place, inertia):
    """Planned for 50 estimates with a tenth of a false move: 100,000 have 200 at most, and not far fewer."""
    grid = Grid(1.0, 1e6, 0.1)
    settings = {"tolerance": 0.1, "largest": 1e6, "inertia": inertia}
    found = plan(tc.Budget(100.0, 1e-6), 40, estimates=50, **settings)
    consensus = Consensus(grid, 40, found.query_epsilon, inertia)
    estimates = np.full((100_000, 40), grid.values[place])
    moves = np.count_nonzero(consensus.draw(estimates, place, BufferedEntropy(place)) != place)
    candidates = len(grid.moves(place).places) - 1
    expected = 200 * candidates / grid.most_moves
    assert abs(moves - expected) < 7 * math.sqrt(expected)


def test_power_with_half_of_the_query_epsilon_there_are_many():
    grid = Grid(1.0, 1e6, 0.1)
    found = plan(tc.Budget(100.0, 1e-6), 40, estimates=50, largest=1e6)
    consensus = Consensus(grid, 40, found.query_epsilon / 2)
    moves = np.count_nonzero(consensus.draw(np.full((100_000, 40), 1.0), 1, BufferedEntropy(1)) != 1)
    assert moves > 1_000


def test_more_estimates_and_finer_grids_need_more():
    assert plan(BUDGET, 500, estimates=10**9).query_epsilon > plan(BUDGET, 500).query_epsilon
    assert plan(BUDGET, 500, tolerance=0.01).query_epsilon > plan(BUDGET, 500).query_epsilon
    assert plan(BUDGET, 500, inertia=0.9).query_epsilon < plan(BUDGET, 500).query_epsilon


def test_a_query_epsilon_may_be_given():
    assert plan(BUDGET, 500, 0.01).query_epsilon == 0.01
    assert plan(BUDGET, 500, 0.01).changes > plan(BUDGET, 500, 0.02).changes


def test_so_few_copies_that_no_query_epsilon_will_do():
    with pytest.raises(tc.InvalidParameter, match=r"^copies is 2; it must be about 3 or more"):
        plan(BUDGET, 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("copies", 1),
        ("copies", 10_001),
        ("copies", "x"),
        ("query_epsilon", "x"),
        ("query_epsilon", math.nan),
        ("query_epsilon", 0.0),
        ("estimates", 0),
        ("tolerance", 0.0),
        ("inertia", 1.0),
        ("smallest", math.nan),
        ("largest", 0.5),
        ("budget", (3.0, 1e-6)),
    ],
)
def test_wrong_settings_are_refused_by_name(name, value):
    with pytest.raises(tc.InvalidParameter) as caught:
        plan(**{"budget": BUDGET, "copies": 500, name: value})
    assert caught.value.name == name


@pytest.mark.parametrize("failure", [-0.1, 1.1, math.nan, "x", None, True])
def test_a_failure_that_is_no_probability_is_refused(failure):
    with pytest.raises(tc.InvalidParameter, match=r"^failure is "):
        share_of_wrong_copies(BUDGET, failure)


def test_shares_are_bounds_between_0_and_1():
    assert share_of_wrong_copies(BUDGET, 0) >= BUDGET.delta
    assert share_of_wrong_copies(BUDGET, 1) == 1.0
    assert share_of_wrong_copies(tc.Budget(10_000.0, 1e-6), 1e-300) == 1.0
    assert share_of_wrong_copies(BUDGET, 0.001) >= math.exp(3.0) * 0.001 + 1e-6


COINS = (0, 1, 2)
"""The randomness of one copy: a number below three."""


def choice_law(secrets, epsilon):
    """Return the law of an ε-DP choice among three by the copies' secrets: the exponential mechanism."""
    weights = [math.exp(epsilon / 2 * sum(secret == coin for secret in secrets)) for coin in COINS]
    return [weight / sum(weights) for weight in weights]


def expected_share(copies, epsilon, rounds, wrong):
    """Return the expected share of copies that are wrong on what the adversary chooses by what was published.

    `wrong(secret, published)` tells whether a copy fails on the stream that is chosen after `published`.
    """
    total = 0.0
    for secrets in product(COINS, repeat=copies):
        law = choice_law(secrets, epsilon)
        for published in product(COINS, repeat=rounds):
            mass = math.prod(law[coin] for coin in published) / 3**copies
            total += mass * sum(wrong(secret, published) for secret in secrets) / copies
    return total


def most_published(secret, published):
    """Attack the secret that was published most often; of equal ones the first."""
    return secret == max(COINS, key=published.count)


@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize(("epsilon", "rounds"), [(0.2, 1), (0.5, 2), (1.0, 1), (0.1, 4)])
def test_an_adversary_makes_no_more_copies_wrong_than_the_bound(copies, epsilon, rounds):
    """A copy is wrong on the one stream of three that fits its secret: with a third's chance if nobody looks."""
    share = expected_share(copies, epsilon, rounds, most_published)
    assert 1 / 3 < share <= share_of_wrong_copies(tc.Budget(epsilon * rounds, 1e-12), 1 / 3)


def test_power_without_privacy_the_bound_fails():
    share = expected_share(1, 6.0, 1, most_published)
    assert share > share_of_wrong_copies(tc.Budget(0.5, 1e-12), 1 / 3)
