"""Bands for sums: q and price with a sensitivity above 1, against enumerations in fractions and in 50 digits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.accounting.neighbours import BETWEEN_ONLY, between_laws, needed_price, order_at

import targetcharge as tc
from targetcharge.accounting import best_q
from targetcharge.accounting.targets import between as module
from targetcharge.accounting.targets.plain import in_words, kind, plain
from targetcharge.mechanisms.noise import NoiseLaw, rate_for

SENSITIVITIES = (1, 2, 3, 5, 8)
WIDTHS = (1, 2, 3, 5, 9, 20)


def law(p, value, width):
    """Return the probabilities of below, between and above [0, width - 1]; the band by summing the noise."""

    def at_least(k):
        return p**k / (1 + p) if k > 0 else 1 - p ** (1 - k) / (1 + p)

    between = sum((1 - p) / (1 + p) * p ** abs(k - value) for k in range(width))
    return at_least(value + 1), between, at_least(width - value)


def exact_q(first, second, growth):
    """Return the largest q of a pair, by its definition: as much shared mass off the band as the ratio allows."""
    shared = 0
    for side in (0, 2):
        low, high = sorted((first[side], second[side]))
        assert high - growth * low <= high / 10**40
        shared += (growth * low - high) / (growth - 1)
    return min(first[1], second[1]) / (1 - shared)


def drawn_rate(epsilon, sensitivity):
    rate = rate_for(epsilon, sensitivity)
    return Fraction(rate.numerator, rate.denominator)


def neighbours(width, sensitivity, reach):
    """Yield every two values up to the sensitivity apart, from far below the band to far above."""
    for value in range(-reach - sensitivity, width + reach):
        for step in range(1, sensitivity + 1):
            yield value, value + step


# q.


@pytest.mark.parametrize("p", [Fraction(1, 50), Fraction(1, 3), Fraction(4, 5), Fraction(99, 100)], ids=str)
@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
def test_the_least_q_over_all_values_is_the_formula_in_fractions(p, sensitivity):
    growth = p**-sensitivity
    for width in WIDTHS:
        laws = {value: law(p, value, width) for value in range(-2 * sensitivity - 8, width + sensitivity + 8)}
        assert {sum(one) for one in laws.values()} == {1}
        pairs = [(laws[one], laws[other]) for one, other in neighbours(width, sensitivity, 8)]
        assert min(exact_q(*pair, growth) for pair in pairs) == (1 - p**width) / (growth + 1)
        assert min(exact_q(*pair, 2 * growth) for pair in pairs) > (1 - p**width) / (growth + 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.7, 2.0, 10.0])
@pytest.mark.parametrize("sensitivity", [1, 2, 7])
@pytest.mark.parametrize("width", [1, 4, 30])
def test_the_declared_q_is_just_below_the_least_with_the_noise_that_is_drawn(epsilon, sensitivity, width):
    """With 50 digits, at the declared ε, and without any tolerance on the safe side."""
    declared = tc.Between(0, width - 1, sensitivity).kind(epsilon).q
    exact = drawn_rate(epsilon, sensitivity)
    reach = min(40, math.ceil(12 * sensitivity / epsilon))
    with mpmath.workdps(50):
        p = mpmath.exp(-mpmath.mpf(exact.numerator) / exact.denominator)
        laws = {value: law(p, value, width) for value in range(-reach - sensitivity, width + reach + sensitivity)}
        growth = mpmath.exp(mpmath.mpf(epsilon))
        least = min(
            exact_q(laws[one], laws[other], growth) for one, other in neighbours(width, sensitivity, reach)
        )
        assert declared <= least
        assert least <= declared * (1 + 1e-7)


def test_a_band_priced_without_its_sensitivity_would_claim_too_much():
    p = math.exp(-0.5 / 4)
    q = best_q(law(p, -4, 5), law(p, 0, 5), [False, True, False], 0.5 * (1 + 1e-12))
    assert q == pytest.approx(tc.Between(0, 4, 4).kind(0.5).q, rel=1e-6)
    assert q < 0.6 * tc.Between(0, 4).kind(0.5).q


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 7, 10, 49, 97, 1000])
def test_the_rate_is_that_of_the_noise_that_is_drawn(sensitivity):
    for epsilon in [*np.geomspace(1e-9 * sensitivity * (1 + 1e-9), 10, 400).tolist(), 1 / 3, 0.1, 0.3]:
        assert module._rate(epsilon, sensitivity) == NoiseLaw.of(rate_for(epsilon, sensitivity)).rate


def test_an_epsilon_that_no_noise_is_drawn_for_still_has_a_price():
    """A plan tries them on its way; the mechanism refuses them."""
    tiny = tc.Between(0, 9, sensitivity=1000)
    assert 0 < tiny.kind(1e-9).q < tc.Between(0, 9).kind(1e-9).q
    with pytest.raises(tc.InvalidParameter, match="epsilon is 1e-09"):
        tc.mechanisms.between_thresholds(len, 0, 9, 1e-9, sensitivity=1000)
    planned = tc.plan(tc.Budget(3.0, 1e-6), hits=5, target=tc.Between(0, 20, sensitivity=5))
    assert 0 < planned["exact"].query_epsilon < 0.1


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("width", [1, 7])
def test_a_larger_sensitivity_has_a_smaller_q_and_a_larger_price(epsilon, width):
    bands = [tc.Between(1, width, sensitivity) for sensitivity in (1, 2, 5, 40)]
    order = order_at(bands[-1], epsilon, 0.5)
    qs = [band.kind(epsilon).q for band in bands]
    prices = [band.price(order, epsilon) for band in bands]
    rows = [band.paper_row(epsilon) for band in bands]
    assert qs == sorted(qs, reverse=True)
    assert prices == sorted(prices)
    assert len(set(qs)) == len(set(prices)) == len(bands)
    assert [row[0] for row in rows] == [epsilon] * len(bands)
    assert [row[1] for row in rows] == pytest.approx(qs, rel=1e-8)


# The price.


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 6, 15])
def test_no_two_values_need_more_than_the_price(epsilon, sensitivity):
    rate = float(drawn_rate(epsilon, sensitivity))
    reach = math.ceil(16 / rate)
    for width in WIDTHS:
        target = tc.Between(0, width - 1, sensitivity)
        laws = between_laws(np.arange(-reach - sensitivity, width + reach + sensitivity), width, rate)
        for fraction in (0.005, 0.2, 0.6, 0.95, 0.999):
            order = order_at(target, epsilon, fraction)
            needed = [
                needed_price(laws[:-step], laws[step:], BETWEEN_ONLY, order).max()
                for step in range(1, sensitivity + 1)
            ]
            assert max(needed) == needed[-1]
            assert 0 < max(needed) <= target.price(order, epsilon) * (1 + 1e-9)
            if epsilon == 0.05 and fraction < 0.7:
                assert max(needed) > 0.95 * target.price(order, epsilon)


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "width"), [(0.3, 3, 2), (0.3, 2, 9), (1.5, 4, 4), (0.05, 6, 1)]
)
@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.99])
def test_the_price_by_its_definition_in_fifty_digits(epsilon, sensitivity, width, fraction):
    target = tc.Between(0, width - 1, sensitivity)
    order = order_at(target, epsilon, fraction)
    exact = drawn_rate(epsilon, sensitivity)
    with mpmath.workdps(50):
        p = mpmath.exp(-mpmath.mpf(exact.numerator) / exact.denominator)
        discount = mpmath.exp(-mpmath.mpf(target.price(order, epsilon)))
        laws = {value: law(p, value, width) for value in range(-30 - sensitivity, width + 30 + sensitivity)}
        power = mpmath.mpf(order)
        for one, other in neighbours(width, sensitivity, 30):
            for first, second in ((laws[one], laws[other]), (laws[other], laws[one])):
                below, between, above = (a**power * b ** (1 - power) for a, b in zip(first, second, strict=True))
                assert below + discount * between + above <= 1


# What it is: a target.


def test_without_a_sensitivity_it_is_as_before():
    assert tc.Between(3, 7) == tc.Between(3.0, 7, 1) == tc.Between(3, 7, sensitivity=np.int64(1))
    assert hash(tc.Between(3, 7)) == hash(tc.Between(3, 7, sensitivity=1))
    assert type(tc.Between(3, 7, np.int64(2)).sensitivity) is int
    assert tc.Between(3, 7) != tc.Between(3, 7, 2)
    assert tc.Side.BETWEEN in tc.Between(3, 7, 2)
    assert tc.Side.ABOVE not in tc.Between(3, 7, 2)


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, math.nan, math.inf, "1", None, True, 10**16, [1]], ids=repr)
def test_a_sensitivity_is_a_positive_integer(value):
    with pytest.raises(tc.InvalidParameter) as refusal:
        tc.Between(0, 4, sensitivity=value)
    assert refusal.value.name == "sensitivity"
    assert repr(refusal.value.value) == repr(value)


def test_plain_targets_tell_prices_apart():
    assert in_words(plain(tc.Between(3, 7))) == "Between(3, 7)"
    assert in_words(plain(tc.Between(3, 7, 5))) == "Between(3, 7, sensitivity=5)"
    assert kind(tc.Between(3, 7)) == kind(tc.Between(13, 17)) == ("Between", 1, 5, 1)
    assert kind(tc.Between(3, 7, 5)) == ("Between", 1, 5, 5)


def test_a_session_opened_for_one_sensitivity_refuses_a_larger_one():
    session = tc.Session([1] * 50, tc.Budget(20.0, 1e-6), 0.5, targets=[tc.Between(0, 9, 3)])
    asked = [
        tc.mechanisms.between_thresholds(sum, 45, 54, 0.5, sensitivity=sensitivity) for sensitivity in (1, 3, 4)
    ]
    assert session.ask(asked[1]).targets == (("Between", 45, 54, 3),)
    session.ask(asked[0])
    with pytest.raises(tc.NotAllowed):
        session.ask(asked[2])
