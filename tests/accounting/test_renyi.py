import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import targetcharge as tc
from targetcharge.accounting import exact_delta, exact_epsilon, renyi_delta, renyi_epsilon, renyi_hits
from targetcharge.accounting.renyi import best_order_for_budget, epsilon_of_total, total_of_budget

PLAIN = tc.NotPrior(False)
GOLDEN = [
    (0.1, 1, 2.122),
    (0.1, 5, 2.977),
    (0.1, 20, 4.747),
    (0.1, 100, 9.746),
    (0.05, 50, 3.142),
    (0.01, 100, 0.735),
]


@pytest.mark.parametrize(("epsilon", "hits", "expected"), GOLDEN)
def test_golden(epsilon, hits, expected):
    assert renyi_epsilon(PLAIN, epsilon, hits, 1e-6) == pytest.approx(expected, rel=7e-4)


@settings(max_examples=80, deadline=None)
@given(
    target=st.sampled_from([PLAIN, tc.Disagreement(), tc.Between(1, 12), tc.QTarget(0.3, ()), tc.Everything()]),
    epsilon=st.floats(0.02, 1.0),
    hits=st.integers(1, 10),
    log_delta=st.floats(-25, -3),
)
def test_never_below_exact_accounting(target, epsilon, hits, log_delta):
    whole = renyi_epsilon(target, epsilon, hits, math.exp(log_delta))
    kind = target.kind(epsilon)
    assert exact_delta(epsilon, hits, whole, kind.q, disagreement=kind.disagreement) <= math.exp(log_delta) * (
        1 + 1e-9
    )


@pytest.mark.parametrize("order", [1.001, 1.5, 3.0, 6.0])
def test_conversion_is_the_best_markov_bound(order):
    """E[e^{uL}] ≤ e^K gives δ ≤ max_z (1-e^{-z})e^{-uz} · e^{K-uε'}: maximised numerically here."""
    exponent, total, whole = order - 1, 0.7, 5.0
    best = -minimize_scalar(
        lambda z: -(1 - math.exp(-z)) * math.exp(-exponent * z), bounds=(0, 200), method="bounded"
    ).fun
    delta = best * math.exp(total - exponent * whole)
    assert epsilon_of_total(total, order, delta) == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("order", [1.01, 2.0, 5.0])
def test_total_and_epsilon_are_inverse_and_rounded_safely(order):
    total = total_of_budget(tc.Budget(30.0, 1e-6), order)
    assert 30 - 1e-9 <= epsilon_of_total(total, order, 1e-6) <= 30 + 1e-11


@pytest.mark.parametrize(
    "target", [PLAIN, tc.Boundary(), tc.Disagreement(), tc.Between(0, 30), tc.Everything()], ids=repr
)
def test_hits_are_the_most_that_fit(target):
    budget = tc.Budget(1.0, 1e-6)
    hits = renyi_hits(target, 0.01, budget)
    assert renyi_epsilon(target, 0.01, hits, 1e-6) <= 1.0 < renyi_epsilon(target, 0.01, hits + 1, 1e-6)


def test_the_chosen_order_is_as_good_as_a_dense_scan():
    budget = tc.Budget(2.0, 1e-6)
    order = best_order_for_budget(PLAIN, 0.05, budget)
    best = total_of_budget(budget, order) / PLAIN.kappa(order, 0.05)
    for scanned in (1 + 0.01 * step for step in range(1, 1500)):
        price = PLAIN.kappa(scanned, 0.05)
        assert price == math.inf or total_of_budget(budget, scanned) / price <= best * (1 + 1e-9)


@pytest.mark.parametrize("delta", [1e-30, 1e-6, 0.5, 0.999])
@pytest.mark.parametrize("exponent", [1e-9, 1e-5, 0.01, 1.0, 50.0, 1e6])
def test_conversions_round_to_the_safe_side(delta, exponent):
    order, total, whole = 1 + exponent, 0.37 * exponent, 3.0
    with mpmath.workdps(50):
        a, d = mpmath.mpf(order), mpmath.mpf(delta)
        u = a - 1
        true_epsilon = mpmath.mpf(total) / u + mpmath.log(1 - 1 / a) - (mpmath.log(d) + mpmath.log(a)) / u
        true_total = u * (whole - mpmath.log(1 - 1 / a)) + mpmath.log(d) + mpmath.log(a)
        assert epsilon_of_total(total, order, delta) >= true_epsilon
        assert total_of_budget(tc.Budget(whole, delta), order) <= true_total


@pytest.mark.parametrize("hits", [1, 10])
def test_delta_and_epsilon_are_inverse(hits):
    whole = renyi_epsilon(PLAIN, 0.1, hits, 1e-6)
    assert renyi_delta(PLAIN, 0.1, hits, whole) == pytest.approx(1e-6, rel=1e-6)
    assert exact_delta(0.1, hits, whole) < 1e-6


def test_a_budget_too_small_buys_nothing():
    assert renyi_hits(PLAIN, 0.1, tc.Budget(0.1, 1e-6)) == 0


def test_renyi_is_close_to_exact_for_many_hits():
    assert renyi_epsilon(PLAIN, 0.01, 5000, 1e-6) < 1.1 * exact_epsilon(0.01, 5000, 1e-6)


def test_extreme_parameters_stay_finite():
    for epsilon in (1e-9, 1e-4, 10.0):
        for target in (PLAIN, tc.Everything()):
            assert 0 <= renyi_epsilon(target, epsilon, 1, 1e-6) < math.inf
    assert renyi_epsilon(tc.Everything(), 0.1, 1, 0.99) == 0
