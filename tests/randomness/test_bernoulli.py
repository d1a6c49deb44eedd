import importlib
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.randomness.sources import SeededEntropy, exact_law

import targetcharge as tc
from targetcharge.randomness import bernoulli, bernoulli_exp
from targetcharge.randomness.coins import bernoulli_exp_array, bernoulli_exp_one

module = importlib.import_module("targetcharge.randomness.coins")


@pytest.fixture
def walked(monkeypatch):
    """Replace uniform draws by a walk over all of them."""
    monkeypatch.setattr(module, "below", lambda choose, bound: choose(bound))


@pytest.mark.parametrize("probability", [0.0, 1.0, 0.5, 0.75, Fraction(1, 3), Fraction(5, 7), 3 / 8])
@pytest.mark.usefixtures("walked")
def test_coin_is_exact(probability):
    law, unfinished = exact_law(lambda choose: bernoulli(choose, probability), draws=1)
    assert unfinished == 0
    assert law.get(True, 0) == Fraction(probability)


@pytest.mark.parametrize("numerator", [0, 1, 2, 3, 4])
@pytest.mark.usefixtures("walked")
def test_exponential_coin_is_exact(numerator):
    law, unfinished = exact_law(lambda choose: bernoulli_exp(choose, numerator, 4), draws=5)
    truth = math.exp(-numerator / 4)
    assert unfinished < 1e-2
    assert law[True] - 1e-15 <= truth <= law[True] + unfinished + 1e-15


def test_float_probabilities_are_taken_to_the_last_bit():
    entropy = SeededEntropy(1)
    assert not any(bernoulli(entropy, 5e-324) for _ in range(100))
    assert all(bernoulli(entropy, math.nextafter(1, 0)) for _ in range(100))


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 10), (7, 10), (1, 1), (25, 10), (5, 1)])
def test_exponential_coin_has_its_rate_and_no_other(numerator, denominator):
    entropy = SeededEntropy(2)
    count, truth = 30_000, math.exp(-numerator / denominator)
    heads = sum(bernoulli_exp(entropy, numerator, denominator) for _ in range(count))
    assert binomtest(heads, count, truth).pvalue > 1e-9
    assert numerator / denominator > 2 or binomtest(heads, count, truth * 0.9).pvalue < 1e-9


def test_one_over_e():
    entropy = SeededEntropy(3)
    heads = sum(bernoulli_exp_one(entropy) for _ in range(100_000))
    assert binomtest(heads, 100_000, math.exp(-1)).pvalue > 1e-9
    assert binomtest(heads, 100_000, math.exp(-1) * 0.95).pvalue < 1e-9


def test_one_over_e_beyond_twenty_digits(monkeypatch):
    """The path that needs more than 20 digits: all zero below 20!, then one more base."""
    draws = iter([0, 0, 1])
    monkeypatch.setattr(module, "below", lambda *_: next(draws))
    assert bernoulli_exp_one(None) is False  # stopped at base 22, even


def test_arrays_of_exponential_coins():
    numerators = np.repeat(np.array([0, 1, 5, 10], dtype=np.uint64), 50_000)
    heads = bernoulli_exp_array(SeededEntropy(4), numerators, 10)
    for numerator in (0, 1, 5, 10):
        found = int(heads[numerators == numerator].sum())
        assert binomtest(found, 50_000, math.exp(-numerator / 10)).pvalue > 1e-9
        assert binomtest(found, 50_000, math.exp(-numerator / 10) * 0.95).pvalue < 1e-9


@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan, math.inf])
def test_a_probability_must_be_one(probability):
    with pytest.raises(tc.InvalidParameter, match="probability is"):
        bernoulli(SeededEntropy(0), probability)
