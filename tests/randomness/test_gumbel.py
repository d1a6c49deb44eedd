"""Discrete Gumbel noise: the digits of a uniform number decide as mpmath does, wherever they lie; and its law."""

import importlib
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binomtest, gumbel_r, kstest
from tests.goodness import FAR, BufferedEntropy, assert_only, draws_to_tell
from tests.randomness.sources import SeededEntropy
from tests.sizes import size

from targetcharge.randomness import Rate, SystemEntropy, discrete_gumbel, discrete_gumbel_array

module = importlib.import_module("targetcharge.randomness.gumbel")

WORD = 2**64
ONES = WORD - 1

RATES = {
    "the smallest": Rate(1, 2**52),
    "1e-9": Rate.at_most(1e-9),
    "0.01": Rate.at_most(0.01),
    "0.3": Rate.at_most(0.3),
    "1": Rate(1, 1),
    "5": Rate(5, 1),
    "50": Rate(50, 1),
}
each_rate = pytest.mark.parametrize("rate", RATES.values(), ids=RATES)


class Scripted:
    """Gives words that are written down: those of an array, and one by one."""

    def __init__(self, array, *words):
        self.array = np.array(array, dtype=np.uint64)
        self.left = list(words)

    def word(self):
        return self.left.pop(0)

    def words(self, count):
        assert count == len(self.array)
        return self.array


# What the digits of a uniform number V stand for, by mpmath.


def steps(rate, digits, bits):
    """Return ⌈-ln(-ln(1 - V))/rate⌉ for V = digits/2^bits."""
    if digits in {0, 2**bits}:
        return math.inf if digits == 0 else -math.inf
    with mpmath.workprec(2 * bits + 200):
        uniform = mpmath.mpf(digits) / mpmath.mpf(2) ** bits
        return int(mpmath.ceil(-mpmath.log(-mpmath.log1p(-uniform)) * rate.denominator / rate.numerator))


def border(rate, value, count):
    """Return the first words of 1 - exp(-e^{-rate·value}): the V that is the border of `value` and one more."""
    with mpmath.workprec(64 * count + 300):
        smaller = -mpmath.expm1(-mpmath.exp(-mpmath.mpf(rate.numerator) * value / rate.denominator))
        digits = int(mpmath.floor(smaller * mpmath.mpf(2) ** (64 * count)))
    return [digits >> 64 * place & ONES for place in reversed(range(count))]


def decided(rate, words):
    """Return K, and how many of the words decide it: both ends of all V that begin with them have one K."""
    digits = 0
    for place, word in enumerate(words, start=1):
        digits = digits << 64 | word
        lowest, highest = (steps(rate, end, 64 * place) for end in (digits + 1, digits))
        if lowest == highest:
            return lowest, place
    raise ValueError(words)


def rightly(rate, words):
    """Return whether scalar and array take as many of these words as it takes to decide, and decide rightly."""
    value, needed = decided(rate, words)
    alone, first = Scripted([], *words), Scripted(words[:1], *words[1:])
    try:
        values = discrete_gumbel(alone, rate), *discrete_gumbel_array(first, rate, 1).tolist()
    except IndexError:  # more words than there are
        return False
    return values == (value, value) and len(alone.left) == len(first.left) == len(words) - needed


def around_borders(rate):
    """Yield words that follow a border's for a while and then lie just below or just above it; and the tails'."""
    for exponent in (-5, -2, -0.7, 0, 0.4, 1.5, 8, 14, 30, 90, 300):
        value = round(exponent * rate.denominator / rate.numerator)
        if value * rate.numerator / rate.denominator < -6:  # 1 - V is e^{-e^6} and less: 500 zeros
            continue
        words = border(rate, value, 8)
        for place, word in enumerate(words):
            if 0 < word < ONES:
                yield [*words[:place], word - 1, *[ONES // 3] * 4]
                yield [*words[:place], word + 1, *[ONES // 3] * 4]


@each_rate
def test_words_around_every_kind_of_border_decide_as_they_must(rate):
    asked = list(around_borders(rate))
    assert len(asked) > 60
    assert all(rightly(rate, words) for words in asked)


@each_rate
def test_no_tail_is_cut_off(rate):
    for count in (1, 2, 3, 10, 20):
        for end in (1, 12345, WORD // 2, ONES - 1):
            for tail in (0, ONES):
                assert rightly(rate, [*[tail] * count, end, *[ONES // 3] * 25]), (count, end, tail)


@each_rate
def test_any_words_decide_as_they_must(rate):
    words = BufferedEntropy(1)
    for _ in range(size(200, 3000)):
        assert rightly(rate, [words.word() for _ in range(6)])


@pytest.mark.parametrize("word", [0, 2**44 - 1, 2**44, 2**44 + 1, 2**63, WORD - 2**50 - 1, WORD - 2**50, ONES])
def test_words_where_floating_point_begins_and_ends(word):
    """At the smallest and the largest uniform number that it takes, and at those that a double rounds to 1."""
    for rate in RATES.values():
        assert rightly(rate, [word, *[ONES // 3] * 6])


@each_rate
def test_an_array_is_decided_as_single_draws_are(rate):
    """Every word of an array, those that floating point leaves open among them, in their places."""
    words = [*BufferedEntropy(2).words(size(3000, 50_000)).tolist(), 0, 1, ONES, *border(rate, 1, 3), WORD // 2]
    more = [ONES // 3] * 4 * len(words)
    drawn = discrete_gumbel_array(Scripted(words, *more), rate, len(words))
    assert drawn.dtype == np.int64
    assert drawn.tolist() == [discrete_gumbel(Scripted([], word, *more[:4]), rate) for word in words]


@pytest.mark.parametrize(("name", "wrong"), [("_MARGIN", 0.0), ("_LEAST", 2.0**-60), ("_MOST", 1 - 2.0**-45)])
def test_power_a_filter_that_dares_more_is_noticed(monkeypatch, name, wrong):
    rate, ends = RATES["1e-9"], (2.0 ** np.random.default_rng(3).uniform(4, 18, 40)).astype(np.uint64).tolist()
    asked = [[word, *[ONES // 3] * 4] for end in ends for word in (end, ONES - 64 * end)]
    asked += around_borders(rate)
    assert all(rightly(rate, words) for words in asked)
    monkeypatch.setattr(module, name, wrong)
    assert not all(rightly(rate, words) for words in asked)


def test_power_logarithms_that_are_rounded_on_their_way_are_noticed(monkeypatch):
    """To 28 digits, as a sign before a decimal does it."""
    monkeypatch.setattr(module, "Fraction", lambda number: Fraction(+number))
    assert not all(rightly(RATES["1"], words) for words in around_borders(RATES["1"]))


def test_logarithms_are_as_right_as_the_margin_takes_them_to_be():
    rng, count = np.random.default_rng(4), size(2000, 50_000)
    small, near_one = 2 ** -rng.uniform(0, 20, count), 1 - 2 ** -rng.uniform(0, 14, count)
    uniform = np.concatenate([rng.random(count), small, near_one])
    inner = np.log1p(-uniform)
    outer = np.log(-inner)
    with mpmath.workdps(40):
        for place, number in enumerate(uniform.tolist()):
            first = mpmath.log1p(-mpmath.mpf(number))
            second = mpmath.log(-mpmath.mpf(float(inner[place])))
            for truth, found in (
                (first, inner[place]),
                (first, math.log1p(-number)),
                (second, outer[place]),
                (second, math.log(-inner[place])),
            ):
                assert abs(mpmath.mpf(float(found)) - truth) <= abs(truth) * mpmath.mpf(2) ** -46


# The law.


def law_by_value(rate):
    """Return {k: Pr[K = k]}, from the definition."""
    values = range(-math.ceil(4 / rate), math.ceil(30 / rate))
    at_most = [math.exp(-math.exp(-rate * value)) for value in (values.start - 1, *values)]
    return dict(zip(values, np.diff(at_most).tolist(), strict=True))


def drawn(kind, rate, count):
    if kind == "scalar":
        entropy = BufferedEntropy(5)
        return [discrete_gumbel(entropy, rate) for _ in range(count)]
    entropy = SystemEntropy() if kind == "system array" else SeededEntropy(6)
    return discrete_gumbel_array(entropy, rate, count).tolist()


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.7, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("kind", ["scalar", "array", "system array"])
def test_noise_has_the_right_scale_and_no_other(epsilon, kind):
    law, *wrong = (law_by_value(epsilon * factor) for factor in (1, 1.05, 1 / 1.05))
    count = draws_to_tell(law, *wrong)
    assert_only(Counter(drawn(kind, Rate.at_most(epsilon), count)), law, *wrong)


@pytest.mark.parametrize("kind", ["scalar", "array"])
def test_the_smallest_rate_is_a_continuous_law(kind):
    """At 1e-9 cells are far narrower than what a sample could tell."""
    draws = np.array(drawn(kind, Rate.at_most(1e-9), 100_000)) * 1e-9
    assert kstest(draws, gumbel_r.cdf).pvalue > FAR
    assert kstest(draws * 1.05, gumbel_r.cdf).pvalue < FAR
    assert kstest(draws / 1.05, gumbel_r.cdf).pvalue < FAR


@pytest.mark.parametrize("kind", ["scalar", "array"])
def test_a_large_rate_leaves_two_values(kind):
    counts = Counter(drawn(kind, Rate(50, 1), 20_000))
    assert counts.keys() == {0, 1}
    assert binomtest(counts[0], 20_000, math.exp(-1)).pvalue > FAR
    assert binomtest(counts[0], 20_000, math.exp(-1.2)).pvalue < FAR


def test_counts():
    for count in (0, 1, 5, 1000):
        assert discrete_gumbel_array(SystemEntropy(), Rate.at_most(0.1), count).shape == (count,)
