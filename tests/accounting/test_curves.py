"""Curves against mpmath and against pairs of laws: moments, shares, plain data, bad input."""

import itertools
import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.accounting.paid_games import exponential_mechanism, gaussian_losses, losses_of
from tests.refusals import every
from tests.sizes import size, spread

from targetcharge.accounting.curves import (
    MAX_RHO,
    MIN_RHO,
    BoundedRange,
    Concentrated,
    Gaussian,
    Pure,
    of_plain,
)
from targetcharge.accounting.targets import Everything
from targetcharge.accounting.targets.plain import in_words, plain, priced_like
from targetcharge.errors import InvalidParameter

EPSILONS = (1e-3, 0.01, 0.1, 0.5, math.log(2), 1.0, 3.0, 10.0)
ORDERS = (1.01, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0, 1e4, 1e6, 1e9, 1e12)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


# Moments


def pair_moment(order, length, upper):
    """Return ln E_P[(P/Q)^(order-1)] of the pair with the log-ratios upper and upper - length."""
    exponent, first = mpmath.mpf(order) - 1, (mpmath.exp(length) - mpmath.exp(upper)) / mpmath.expm1(length)
    lower = (1 - first) * mpmath.exp(-exponent * length)
    return exponent * upper + mpmath.log(first + lower)


def worst_moment(order, length):
    """Return the largest moment of a range's pairs, by golden section: it has one maximum."""
    length = mpmath.mpf(length)
    low, high, golden = mpmath.mpf(0), length, (mpmath.sqrt(5) - 1) / 2
    for _ in range(100):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if pair_moment(order, length, left) < pair_moment(order, length, right):
            low = left
        else:
            high = right
    return pair_moment(order, length, (low + high) / 2)


def ratio(found, exact):
    return float(mpmath.mpf(found) / exact - 1)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, *EPSILONS])
def test_the_moment_of_dp_is_that_of_randomised_response(epsilon):
    for order in ORDERS:
        exact = pair_moment(order, 2 * mpmath.mpf(epsilon), mpmath.mpf(epsilon))
        assert 0 <= ratio(Pure(epsilon).moment(order), exact) <= 1e-9


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_moment_of_a_range_is_that_of_its_worst_pair(epsilon):
    for order in ORDERS:
        assert 0 <= ratio(BoundedRange(epsilon).moment(order), worst_moment(order, epsilon)) <= 1e-6


def test_the_moment_of_a_tiny_range_is_not_below_its_worst_pair():
    for epsilon, order in itertools.product([1e-9, 1e-8, 1e-7, 1e-5, 1e-4], [1.01, 2.0, 5.0, 50.0, 1e3, 1e5, 1e9]):
        assert ratio(BoundedRange(epsilon).moment(order), worst_moment(order, epsilon)) >= 0, (epsilon, order)


def test_the_moment_of_a_range_next_to_order_one_is_not_below_its_worst_pair():
    for epsilon, order in itertools.product([0.1, math.log(2), 1.0], [1 + 1e-9, 1 + 1e-6, 1 + 1e-4]):
        assert ratio(BoundedRange(epsilon).moment(order), worst_moment(order, epsilon)) >= 0, (epsilon, order)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
def test_the_moment_of_a_range_is_at_most_that_of_its_zcdp_and_of_its_dp(epsilon):
    for order in ORDERS:
        moment = BoundedRange(epsilon).moment(order)
        assert moment <= order * (order - 1) * epsilon**2 / 8 * (1 + 1e-12)
        assert Pure(epsilon / 2).moment(order) <= moment * (1 + 1e-9)
        assert moment <= Pure(epsilon).moment(order)


@pytest.mark.parametrize("order", [1 + 1e-12, 1.5, 3.0, 1e6])
def test_the_moments_of_zcdp_and_of_gaussian_noise(order):
    for rho in (10 * MIN_RHO, 1e-6, 0.3, MAX_RHO):
        exact = mpmath.mpf(order) * (mpmath.mpf(order) - 1)
        assert 0 <= ratio(Concentrated(rho).moment(order), exact * mpmath.mpf(rho)) <= 1e-12
        variance = Fraction(7) / (2 * Fraction(rho)) * Fraction(1 + 1e-9)
        noise = Gaussian(7, variance)
        part = mpmath.mpf(noise.rho.numerator) / noise.rho.denominator
        assert 0 <= ratio(noise.moment(order), exact * part) <= 1e-12


def law_moment(order, losses, chances):
    """Return ln E[e^{(order-1)·loss}]."""
    logs = np.log(chances) + (order - 1) * losses
    return float(np.logaddexp.reduce(logs))


@pytest.mark.parametrize("shifts", [(1,), (3,), (1, 1), (2, 1, 1)], ids=str)
def test_no_discrete_gaussian_noise_has_a_larger_moment(shifts):
    squared = sum(shift**2 for shift in shifts)
    for variance, order in itertools.product([0.3, 1.0, 4.0, 40.0], [1.1, 1.5, 2.0, 3.0]):
        moment = Gaussian(squared, Fraction(variance)).moment(order)
        attained = law_moment(order, *gaussian_losses(shifts, variance))
        assert attained <= moment * (1 + 1e-9)
        if variance >= 4:
            assert attained >= moment * (1 - 1e-6)


def test_power_a_gaussian_moment_a_percent_lower_is_exceeded():
    losses = gaussian_losses((2,), 20.0)
    assert law_moment(2.0, *losses) > 0.99 * Gaussian(4, Fraction(20)).moment(2.0)


@pytest.mark.parametrize("outcomes", [2, 3, 5])
def test_no_exponential_mechanism_whose_scores_rise_has_a_larger_moment(outcomes):
    rng, closest = np.random.default_rng(outcomes), 0.0
    for _ in range(size(200, 5000)):
        rate, order = float(rng.choice([0.1, 0.5, 2.0])), float(rng.choice([1.2, 2.0, 5.0, 20.0]))
        scores, moved = rng.integers(0, 4, outcomes), rng.integers(0, 2, outcomes)
        pair = exponential_mechanism(rate, scores, moved)[:: int(rng.choice([1, -1]))]
        if rng.random() < 0.5:
            pair = tuple((second, first) for first, second in pair)
        moment = BoundedRange(rate).moment(order)
        attained = law_moment(order, *losses_of(pair))
        assert attained <= moment * (1 + 1e-9)
        closest = max(closest, attained / moment)
    assert closest > 0.95


# Shares


SHARES = [Fraction(1, 4096), Fraction(1, 100), 0.1, Fraction(1, 3), 0.5, Fraction(2, 3), 0.9, 1]


def test_a_share_of_laplace_noise_is_not_undercharged():
    """A number is moved by c of 12 steps, under discrete Laplace noise of rate ε/12."""
    values = np.arange(-4000, 4001)
    for epsilon, moved in itertools.product([0.2, 1.0], range(1, 13)):
        first, second = (np.exp(-epsilon / 12 * np.abs(values - center)) for center in (0, moved))
        losses = np.log(first / second)
        for order in (1.5, 2.0, 5.0):
            curve = Pure(epsilon).of_share(Fraction(moved, 12))
            assert law_moment(order, losses, first / first.sum()) <= curve.moment(order)


def test_a_share_of_scores_is_not_undercharged():
    """Scores of up to 6, of which a unit moves some by at most c."""
    rng = np.random.default_rng(3)
    for _ in range(size(300, 3000)):
        most, rate, order = int(rng.integers(1, 7)), float(rng.choice([0.3, 2.0])), float(rng.choice([1.5, 3.0]))
        scores, moved = rng.integers(0, 20, 4), rng.integers(0, most + 1, 4)
        pair = exponential_mechanism(rate / 6, scores, moved)
        curve = BoundedRange(rate).of_share(Fraction(most, 6))
        assert law_moment(order, *losses_of(pair)) <= curve.moment(order) * (1 + 1e-9)


def test_a_share_of_gaussian_noise_is_not_undercharged():
    """A vector may be moved by a length of 5: all integer moves that are shorter."""
    for first, second in itertools.product(range(6), range(6)):
        squared = first**2 + second**2
        if 0 < squared <= 25:
            share = math.sqrt(squared / 25)
            curve = Gaussian(25, Fraction(50)).of_share(min(1.0, share * (1 - 1e-16)))
            losses = gaussian_losses([shift for shift in (first, second) if shift], 50.0)
            assert law_moment(2.0, *losses) <= curve.moment(2.0) * (1 + 1e-9)
            assert curve.shift_squared in {squared, squared + 1}


@pytest.mark.parametrize(
    "curve", [Pure(0.3), BoundedRange(0.3), Concentrated(0.01), Gaussian(10**8, Fraction(10**9))]
)
def test_shares_rise_to_the_whole(curve):
    for order in (1.5, 4.0, 30.0):
        moments = [curve.of_share(share).moment(order) for share in SHARES]
        assert moments == sorted(moments)
        assert curve.of_share(1) == curve.of_share(1.0) == curve.of_share(Fraction(1)) == curve
        for share, moment in zip(SHARES, moments, strict=True):
            assert moment <= curve.moment(order)
            if isinstance(curve, Pure | BoundedRange):
                assert (
                    share * curve.epsilon <= curve.of_share(share).epsilon <= share * curve.epsilon * (1 + 1e-12)
                )
    assert Concentrated(0.01).of_share(0.5) == Concentrated(0.01)
    assert Pure(1e-9).of_share(0.5) == Pure(1e-9)


def test_a_small_share_of_quiet_gaussian_noise_has_a_price():
    """Contributions are data: a price must not be refused because of one."""
    assert Gaussian(4096**2, Fraction(4096**2 * 10**12)).of_share(Fraction(1, 4096)).moment(2.0) > 0


# Plain data


CURVES = [
    Pure(0.1),
    Pure(1e-9),
    BoundedRange(0.3),
    Concentrated(1e-6),
    Gaussian(4, Fraction(400)),
    Gaussian(3, Fraction(22, 7)),
    Gaussian(10**20, Fraction(10**21 + 1, 3)),
]


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_a_curve_comes_back_from_plain_data(curve):
    kept = json.loads(json.dumps(curve.plain()))
    assert of_plain(tuple(kept)) == curve
    target = Everything(curve)
    assert priced_like(tuple(json.loads(json.dumps(plain(target))))) == target
    assert str(curve) in in_words(plain(target))
    assert len({known.plain() for known in CURVES}) == len(CURVES)


def test_curves_that_are_not_known_are_none():
    for kept in ((), ("approximate", 0.1), ("gaussian", 4), ("gaussian", 4, 400), ("pure", 0.1, 0.1)):
        assert of_plain(kept) is None
    assert priced_like(("Everything",)) == Everything()
    assert priced_like(("Everything", "pure", -1.0)) is None


# Bad input


BAD = [math.nan, math.inf, -math.inf, 0, -0.1, True, "0.1", None, 1j]


def refused(name, make):
    with pytest.raises(InvalidParameter) as refusal:
        make()
    assert refusal.value.name == name


def test_bad_parameters_are_refused_by_name():
    def check(value):
        refused("epsilon", lambda: Pure(value))
        refused("bounded_range", lambda: BoundedRange(value))
        refused("rho", lambda: Concentrated(value))
        refused("variance", lambda: Gaussian(1, value))
        for curve in (Pure(0.1), BoundedRange(0.1), Concentrated(0.1), Gaussian(1, Fraction(9))):
            refused("order", lambda curve=curve: curve.moment(value))

    every(BAD, check)
    refused("epsilon", lambda: Pure(10.1))
    refused("epsilon", lambda: Pure(1e-10))
    refused("bounded_range", lambda: BoundedRange(10.1))
    refused("rho", lambda: Concentrated(MAX_RHO * 1.001))
    refused("rho", lambda: Concentrated(MIN_RHO / 1.001))
    refused("order", lambda: Pure(0.1).moment(1.0))


def test_bad_lengths_and_variances_are_refused_by_name():
    for shift_squared in (0, -1, 1.0, True, "1", None, Fraction(1), np.int64(1)):
        refused("shift_squared", lambda value=shift_squared: Gaussian(value, Fraction(9)))
    for variance in (9, 9.0, Fraction(-9), Fraction(1, 101), Fraction(10**19)):
        refused("variance", lambda value=variance: Gaussian(1, value))
    assert Gaussian(1, Fraction(1, 100)).rho == MAX_RHO


def test_bad_shares_are_refused_by_name():
    for curve, share in itertools.product(CURVES, [0, -0.5, 1.0001, math.nan, math.inf, Fraction(3, 2)]):
        refused("share", lambda curve=curve, share=share: curve.of_share(share))


def test_curves_in_words():
    assert [str(curve) for curve in spread(CURVES[:5], 5)] == [
        "epsilon 0.1",
        "epsilon 1e-09",
        "bounded range 0.3",
        "rho 1e-06",
        "Gaussian noise of 10 times the shift",
    ]
