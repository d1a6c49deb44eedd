"""Every aggregator is ε-DP, and every mode worth its price: all votes of a few teachers and all neighbours."""

import itertools
import math

import pytest
from tests.learning.small_votes import LAWS, noisy_max, pairs, published, tables, with_test
from tests.sizes import spread

import targetcharge as tc

EPSILONS = (0.05, 0.3, 1.0)
ENSEMBLES = [(2, 2), (8, 2), (5, 3), (4, 4)]
TARGETS = {
    "boundary": tc.Boundary(2),
    "prior": tc.NotPrior(0),
    "twice": tc.Disagreement(),
    "plain": tc.Everything(),
}
ROUNDING = 1 + 1e-9


def ensembles(mechanism):
    return [each for each in ENSEMBLES if each[1] == 2] if LAWS[mechanism] is noisy_max else ENSEMBLES


def laws(mechanism, epsilon, teachers, classes, test=None):
    """Return the law of every row; with a test of agreement (threshold, share of ε) if there is one."""
    threshold, share = test or (None, 0.0)
    found = {row: LAWS[mechanism](row, epsilon * (1 - share)) for row in tables(teachers, classes)}
    if test:
        found = {row: with_test(law, row, threshold, epsilon * share) for row, law in found.items()}
    return found


def worst_loss(found, all_pairs):
    """Return the largest ln of a ratio of probabilities between neighbours."""
    return max(
        math.log(mass / other)
        for row, neighbour in all_pairs
        for mass, other in zip(found[row], found[neighbour], strict=True)
    )


@pytest.mark.parametrize("mechanism", LAWS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_choice_is_private(mechanism, epsilon):
    worst = 0.0
    for teachers, classes in ensembles(mechanism):
        found = laws(mechanism, epsilon, teachers, classes)
        worst = max(worst, worst_loss(found, pairs(teachers, classes)))
    assert worst <= epsilon * ROUNDING
    assert worst >= epsilon * (0.999 if mechanism == "permute_and_flip" else 0.5)


@pytest.mark.parametrize("mechanism", LAWS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_large_ensemble_attains_its_epsilon(mechanism, epsilon):
    """All but one teacher agree; then one changes sides: the loser's probability grows by e^ε, all but a hair."""
    teachers = round(60 / epsilon)
    rows = [(teachers, 0), (teachers - 1, 1)]
    found = {row: LAWS[mechanism](row, epsilon) for row in rows}
    assert epsilon * 0.96 <= worst_loss(found, [rows[::-1]]) <= epsilon * ROUNDING


@pytest.mark.parametrize("mechanism", ["exponential", "permute_and_flip"])
def test_power_a_choice_at_rate_epsilon_is_not(mechanism):
    """As for monotone scores: it would be right if a vote only came or went."""
    found = laws(mechanism, 2 * 0.3, 5, 3)
    assert worst_loss(found, pairs(5, 3)) > 1.3 * 0.3


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "share", "threshold"),
    spread(itertools.product(LAWS, EPSILONS, [0.2, 0.5], [1, 3, 4, 30]), 24),
)
def test_a_choice_after_a_test_of_agreement_is_private(mechanism, epsilon, share, threshold):
    for teachers, classes in ensembles(mechanism):
        found = laws(mechanism, epsilon, teachers, classes, (threshold, share))
        assert worst_loss(found, pairs(teachers, classes)) <= epsilon * ROUNDING


def moment(first, second, order, price):
    """Return Σ_miss P^a Q^{1-a} + e^{-κ} Σ_hit P^a Q^{1-a}: at most 1 at the price of a hit."""
    return math.fsum(
        p**order * q ** (1 - order) * (math.exp(-price) if hit else 1)
        for (p, hit), (q, _) in zip(first, second, strict=True)
        if p > 0
    )


def worst_moment(found, all_pairs, mode, order, price):
    classes = len(next(iter(found)))
    priors = range(classes) if mode == "prior" else (0,)
    return max(
        moment(published(found[row], mode, prior), published(found[other], mode, prior), order, price)
        for row, other in all_pairs
        for prior in priors
    )


@pytest.mark.parametrize("mode", TARGETS)
@pytest.mark.parametrize("mechanism", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("test", [None, (3, 0.5), (4, 0.3)], ids=["plain", "half", "less"])
@pytest.mark.parametrize(("epsilon", "order"), [(0.05, 2.0), (0.05, 9.0), (0.3, 2.0), (1.0, 1.05)])
def test_a_hit_is_worth_its_price(mode, mechanism, test, epsilon, order):
    """The supermartingale's inequality for every pair of neighbours, at the price that is charged."""
    price = TARGETS[mode].price(order, epsilon)
    for teachers, classes in ENSEMBLES[1:]:
        found = laws(mechanism, epsilon, teachers, classes, test)
        assert worst_moment(found, pairs(teachers, classes), mode, order, price) <= ROUNDING


@pytest.mark.parametrize(
    ("mode", "nearly"), [("boundary", 0.998), ("prior", 0.96), ("twice", 0.95), ("plain", 0.95)]
)
def test_power_a_lower_price_is_too_low(mode, nearly):
    """Permute-and-flip with two classes is, in mode "boundary", the worst pair there is (but for the margin)."""
    epsilon, order = 0.05, 9.0
    found = laws("permute_and_flip", epsilon, 8, 2)
    price = TARGETS[mode].price(order, epsilon)
    assert (
        worst_moment(found, pairs(8, 2), mode, order, nearly * price)
        > 1
        >= worst_moment(found, pairs(8, 2), mode, order, price)
    )


@pytest.mark.parametrize("mode", TARGETS)
def test_power_a_mechanism_that_says_too_much_is_seen(mode):
    """With the rate of monotone scores the inequality fails at the price of its ε."""
    epsilon, order = 0.05, 9.0
    found = laws("permute_and_flip", 2 * epsilon, 7, 2)
    price = TARGETS[mode].price(order, epsilon)
    assert worst_moment(found, pairs(7, 2), mode, order, price) > 1.001
