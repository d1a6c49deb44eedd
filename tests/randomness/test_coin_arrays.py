"""Arrays of coins: exact to the last bit of every float, and the law of the single coin for every exponent."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from tests.randomness.sources import SeededEntropy

from targetcharge.randomness import bernoulli_array, bernoulli_exp
from targetcharge.randomness.coins import bernoulli_exp_array
from targetcharge.randomness.laplace import Rate

WORD = 2**64

FLOATS = {
    "0": 0.0,
    "1": 1.0,
    "1/2": 0.5,
    "1/3": 1 / 3,
    "0.1": 0.1,
    "3/4": 0.75,
    "the largest below 1": 1 - 2**-53,
    "a word's last bit": 2.0**-64,
    "below a word": 3 * 2.0**-66,
    "bits in two words": 2.0**-12 + 2.0**-64,
    "bits on both sides of a word's end": (2**52 + 1) * 2.0**-90,
    "the smallest normal": 2.0**-1022,
    "the smallest of all": 2.0**-1074,
    "a denormal": 12345 * 2.0**-1074,
    "the largest denormal": 2.0**-1022 - 2.0**-1074,
}


class Scripted:
    """Gives words that are written down, the same for every coin; and counts how many were taken."""

    def __init__(self, *words):
        self.words_left = list(words)

    def words(self, count):
        return np.full(count, self.words_left.pop(0), dtype=np.uint64)


def digits(probability):
    """Return the 64-bit digits of a float in [0, 1): p = Σ digit_i·2^{-64·i}, exactly."""
    rest, found = Fraction(probability), []
    while rest:
        rest *= WORD
        found.append(int(rest))
        rest -= int(rest)
    return found


def coin(probability, *words):
    """Return the coin that these words give, and how many were not needed."""
    source = Scripted(*words)
    (drawn,) = bernoulli_array(source, np.array([probability])).tolist()
    return drawn, len(source.words_left)


def check_exact(probability):
    """A uniform number with digits w is below p iff its first digit that differs from p's is smaller."""
    expected = digits(probability)
    for place, digit in enumerate(expected):
        before = expected[:place]
        if digit:
            assert coin(probability, *before, digit - 1, 0, 0) == (True, 2), place
            assert coin(probability, *before, 0, WORD - 1, 0) == (True, 2), place
        if digit < WORD - 1:
            assert coin(probability, *before, digit + 1, 0, 0) == (False, 2), place
            assert coin(probability, *before, WORD - 1, 0, 0) == (False, 2), place
    assert coin(probability, *expected, 0, 0) == (False, 2), "a uniform number that equals it is not below it"


@pytest.mark.parametrize("probability", [each for each in FLOATS.values() if 0 < each < 1])
def test_a_coin_is_exact_at_every_word_where_it_could_turn(probability):
    check_exact(probability)


@settings(deadline=None)
@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_coin_is_exact_for_every_float(probability):
    check_exact(probability)


def test_certain_coins_fall_as_they_must():
    for word in (0, 1, WORD - 1):
        assert not coin(0.0, word)[0]
        assert not coin(-0.0, word)[0]
        assert coin(1.0, word)[0]
    assert bernoulli_array(Scripted(), np.array([1.0, 1.0])).tolist() == [True, True]
    assert bernoulli_array(Scripted(), np.array([])).tolist() == []


def test_the_coins_of_an_array_are_decided_each_by_its_own_digits():
    """The words of those that are not decided are not mixed up, and the probabilities are left alone."""
    values = np.array(list(FLOATS.values()))
    kept = values.copy()
    longest = max((digits(value) for value in values[values < 1]), key=len)
    drawn = bernoulli_array(Scripted(*[0] * len(longest), 0), values)
    assert drawn.tolist() == [value > 0 for value in values]
    assert bernoulli_array(Scripted(*[WORD - 1] * 3), values).tolist() == [value == 1 for value in values]
    assert (values == kept).all()
    for position, value in enumerate(values):
        here = digits(value) if value < 1 else [WORD - 1]
        drawn = bernoulli_array(Scripted(*here, *[0] * 20), values)
        below = [_below(here, other) for other in values]
        assert drawn.tolist() == below, position


def _below(words, probability):
    number = sum(Fraction(word, WORD ** (place + 1)) for place, word in enumerate(words))
    return number < Fraction(probability)


@pytest.mark.parametrize("probability", [0.5, 1 / 3, 0.1, 0.8])
def test_many_coins_have_their_probability_and_no_other(probability):
    count = 400_000
    heads = int(bernoulli_array(SeededEntropy(5), np.full(count, probability)).sum())
    assert binomtest(heads, count, probability).pvalue > 1e-9
    for wrong in (0.95, 1.05):
        assert binomtest(heads, count, probability * wrong).pvalue < 1e-9


def test_coins_of_different_probabilities_do_not_disturb_each_other():
    count = 400_000
    spread = bernoulli_array(SeededEntropy(6), np.linspace(0, 1, count))
    assert binomtest(int(spread.sum()), count, 0.5).pvalue > 1e-9
    quarters = [int(part.sum()) for part in np.split(spread, 4)]
    for place, heads in enumerate(quarters):
        assert binomtest(heads, count // 4, (2 * place + 1) / 8).pvalue > 1e-9


EXPONENTS = [(0, 8), (1, 8), (7, 8), (8, 8), (9, 8), (15, 8), (16, 8), (17, 8), (24, 8), (30, 8)]


@pytest.mark.parametrize(("numerator", "denominator"), EXPONENTS)
def test_exponential_coins_have_their_rate_and_no_other(numerator, denominator):
    """At and around every multiple of the denominator; a step of an eighth is told apart."""
    count = 400_000
    numerators = np.full(count, numerator, dtype=np.uint64)
    heads = int(bernoulli_exp_array(SeededEntropy(3), numerators, denominator).sum())
    assert (numerators == numerator).all()
    if numerator == 0:
        assert heads == count
        return
    assert binomtest(heads, count, math.exp(-numerator / denominator)).pvalue > 1e-9
    for other in (numerator - 1, numerator + 1):
        assert binomtest(heads, count, math.exp(-other / denominator)).pvalue < 1e-9


def test_exponential_coins_of_different_rates_do_not_disturb_each_other():
    """Small and large exponents in one array, in any order: each place has its own rate."""
    kinds, count = np.array([30, 0, 8, 17, 1, 9, 16, 4]), 60_000
    drawn = bernoulli_exp_array(SeededEntropy(4), np.tile(kinds, count).astype(np.uint64), 8).reshape(count, 8)
    for numerator, heads in zip(kinds.tolist(), drawn.sum(axis=0).tolist(), strict=True):
        assert binomtest(heads, count, math.exp(-numerator / 8)).pvalue > 1e-9
    pairs = drawn[:, 2] & drawn[:, 4]
    assert binomtest(int(pairs.sum()), count, math.exp(-9 / 8)).pvalue > 1e-9, "two coins depend on each other"


def test_exponential_coins_are_those_that_fall_one_by_one():
    """The array and the single coin have one law, at an exponent of several units."""
    entropy, count = SeededEntropy(11), 40_000
    single = sum(bernoulli_exp(entropy, 21, 10) for _ in range(count))
    together = int(bernoulli_exp_array(entropy, np.full(count, 21, dtype=np.uint64), 10).sum())
    for heads in (single, together):
        assert binomtest(heads, count, math.exp(-2.1)).pvalue > 1e-9
        assert binomtest(heads, count, math.exp(-1.9)).pvalue < 1e-9
        assert binomtest(heads, count, math.exp(-2.3)).pvalue < 1e-9


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.1, 1.0, 10.0])
def test_the_largest_gap_of_votes_overflows_nothing(epsilon):
    """A million teachers: gap·numerator stays below 2^64, and the coin has the rate of the true product."""
    rate, gap = Rate.at_most(epsilon), 10**6
    assert gap * rate.numerator < WORD
    assert 2 * rate.denominator <= 2**53
    exact = math.exp(-gap * rate.numerator / (2 * rate.denominator))
    gaps = np.full(20_000, gap, dtype=np.uint64) * np.uint64(rate.numerator)
    heads = int(bernoulli_exp_array(SeededEntropy(8), gaps, 2 * rate.denominator).sum())
    assert binomtest(heads, len(gaps), exact).pvalue > 1e-9
    assert heads == 0 if epsilon > 1e-4 else heads > 0


def test_the_largest_numerators_of_all_end():
    """Coins that never fall on heads are decided within a few steps, not one for each unit of the exponent."""
    numerators = np.array([WORD - 1, WORD - 2, 2**63, 2**53 + 1], dtype=np.uint64)
    assert not bernoulli_exp_array(SeededEntropy(9), numerators[:3], 1).any()
    many = np.full(20_000, 2**53 + 1, dtype=np.uint64)
    heads = int(bernoulli_exp_array(SeededEntropy(9), many, 2**53).sum())
    assert binomtest(heads, len(many), math.exp(-1)).pvalue > 1e-9
    assert bernoulli_exp_array(SeededEntropy(9), numerators[:0], 1).tolist() == []
