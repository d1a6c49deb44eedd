import math

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution

import targetcharge as tc
from targetcharge.accounting import (
    advanced_epsilon,
    basic_epsilon,
    between_thresholds_epsilon,
    between_thresholds_gap,
    optimal_delta,
    optimal_epsilon,
    renyi_epsilon,
    selection_epsilon,
    sparse_vector_epsilon,
)
from targetcharge.accounting.baselines import bounded_range_delta, bounded_range_rate, optimal_hits

GOLDEN = [
    (0.1, 100, 1e-6, 4.77457),
    (0.1, 1000, 1e-6, 19.34467),
    (0.05, 2000, 1e-8, 14.51903),
    (0.5, 50, 1e-6, 20.30100),
]


@pytest.mark.parametrize(("epsilon", "count", "delta", "expected"), GOLDEN)
def test_optimal_golden(epsilon, count, delta, expected):
    assert optimal_epsilon(epsilon, count, delta) == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize(("epsilon", "count", "delta", "_"), GOLDEN[:1] + GOLDEN[3:])
def test_optimal_against_dp_accounting(epsilon, count, delta, _):
    pair = privacy_loss_distribution.from_randomized_response(
        2 / (1 + math.exp(epsilon)), 2, value_discretization_interval=1e-4
    )
    oracle = pair.self_compose(count).get_epsilon_for_delta(delta)
    assert optimal_epsilon(epsilon, count, delta) == pytest.approx(oracle, abs=2e-4 * count)


@pytest.mark.parametrize(
    ("epsilon", "count", "whole"), [(0.1, 40, 1.0), (1.0, 10, 4.5), (0.01, 500, 0.3), (3.0, 5, 14.0)]
)
def test_optimal_delta_against_mpmath(epsilon, count, whole):
    with mpmath.workdps(40):
        x = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        exact = mpmath.fsum(
            mpmath.binomial(count, i)
            * x**i
            * (1 - x) ** (count - i)
            * max(0, 1 - mpmath.exp(mpmath.mpf(whole) - (2 * i - count) * mpmath.mpf(epsilon)))
            for i in range(count + 1)
        )
    found = optimal_delta(epsilon, count, whole)
    assert exact <= found <= exact * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "count", "delta", "_"), GOLDEN)
def test_order_of_strength(epsilon, count, delta, _):
    best = optimal_epsilon(epsilon, count, delta)
    assert best < renyi_epsilon(tc.Everything(), epsilon, count, delta) < advanced_epsilon(epsilon, count, delta)
    assert best < basic_epsilon(epsilon, count)


def test_pure_composition():
    assert optimal_epsilon(0.1, 10, 0.0) == pytest.approx(1.0)
    assert optimal_delta(0.1, 10, 1.0) == 0
    assert basic_epsilon(0.1, 10) == pytest.approx(1.0)


def test_optimal_hits_is_the_most_that_fits():
    budget = tc.Budget(1.0, 1e-6)
    count = optimal_hits(0.05, budget)
    assert optimal_epsilon(0.05, count, 1e-6) <= 1.0 < optimal_epsilon(0.05, count + 1, 1e-6)


def test_too_many_computations():
    with pytest.raises(tc.TooLarge, match="more than the 1,000,000 computations"):
        optimal_hits(1e-6, tc.Budget(1.0, 1e-6))
    with pytest.raises(tc.TooLarge, match="computations is 100000000; it must be at most 1,000,000"):
        optimal_delta(0.1, 10**8, 1.0)


def test_sparse_vector():
    assert sparse_vector_epsilon(0.1, 5) == pytest.approx(0.6)
    assert sparse_vector_epsilon(0.1, 5, monotone=False) == pytest.approx(1.1)


def test_bun_steinke_ullman():
    gap = between_thresholds_gap(0.1, 1e-6)
    assert gap == pytest.approx(20 * (math.log(10 / 0.6) + math.log(1e6) + 1))
    assert between_thresholds_epsilon(0.01, 20, 1e-6) == pytest.approx(optimal_epsilon(0.06, 20, 5e-7))
    with pytest.raises(tc.InvalidParameter, match="6 \\* query_epsilon is 12"):
        between_thresholds_epsilon(2.0, 20, 1e-6)


def test_liu_talwar_selection():
    assert selection_epsilon(0.1) == pytest.approx(0.3)
    assert selection_epsilon(0.1, known_threshold=True) == pytest.approx(0.2)


@pytest.mark.parametrize(("rate", "picks"), [(0.15, 10), (0.3, 4), (1.0, 1), (0.047, 100)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_picks_compose_as_the_worst_of_a_dense_set_of_pairs(rate, picks, epsilon):
    """k pairs with log-ratios t and t - rate, by multiplying out their losses."""
    whole, places = bounded_range_delta(rate, picks, epsilon), [rate * step / 400 for step in range(1, 400)]

    def composed(upper):
        likely = (1 - math.exp(upper - rate)) / (1 - math.exp(-rate))
        losses = [(picks - low) * upper + low * (upper - rate) for low in range(picks + 1)]
        masses = [
            math.comb(picks, low) * likely ** (picks - low) * (1 - likely) ** low for low in range(picks + 1)
        ]
        return sum(
            mass * max(0.0, 1 - math.exp(epsilon - loss)) for mass, loss in zip(masses, losses, strict=True)
        )

    dense = max(map(composed, places))
    assert dense <= whole * (1 + 1e-9)
    assert whole <= dense * 1.02 + 1e-15


def test_rates_of_picks():
    budget = tc.Budget(1.0, 1e-6)
    rates = [bounded_range_rate(picks, budget) for picks in (10, 25, 50, 100)]
    assert rates == pytest.approx([0.1550, 0.0957, 0.0673, 0.0475], abs=1e-4)
    assert all(bounded_range_delta(rate, k, 1.0) <= 1e-6 for rate, k in zip(rates, (10, 25, 50, 100), strict=True))
    assert all(
        bounded_range_delta(1.01 * rate, k, 1.0) > 1e-6 for rate, k in zip(rates, (10, 25, 50, 100), strict=True)
    )
