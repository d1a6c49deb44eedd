"""Discrete Gaussian noise: every proposal is kept with the right probability, exactly, and draws have the law."""

import importlib
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2, chi2_contingency, kstest, norm
from tests.goodness import FAR, BufferedEntropy, assert_only, draws_to_tell
from tests.randomness.sources import SeededEntropy, exact_law
from tests.sizes import size

from targetcharge.randomness import Rate, SystemEntropy, discrete_gaussian, discrete_gaussian_array

module = importlib.import_module("targetcharge.randomness.gaussian")

RATES = {
    "the smallest": Rate(1, 2**52),
    "1e-9": Rate.at_most(1e-9),
    "0.01": Rate.at_most(0.01),
    "0.3": Rate.at_most(0.3),
    "1": Rate(1, 1),
    "3": Rate.at_most(3.0),
    "10": Rate.at_most(10.0),
    "50": Rate(50, 1),
}
each_rate = pytest.mark.parametrize("rate", RATES.values(), ids=RATES)


# What is kept of the proposals.


def exponent(rate, value):
    """Return x for which e^{-x} is e^{-k²s²/2} over e^{-|k|s} and over √e, the most that this ratio can be."""
    scaled = Fraction(abs(value) * rate.numerator, rate.denominator)
    return scaled**2 / 2 - scaled + Fraction(1, 2)


def proposals_of(rate):
    """Return values in the middle and as far out as e^{-1000}, which no sample will ever see."""
    scaled = *np.random.default_rng(1).exponential(size=size(200, 5000)), 0.999999, 1, 1.000001, 2, 40, 300, 1000
    sizes = {round(number * rate.denominator / rate.numerator) for number in scaled} | {0, 1, 2, 3}
    return sorted(sizes | {-value for value in sizes})


@each_rate
def test_a_single_proposal_is_kept_as_often_as_the_two_laws_ask_for(monkeypatch, rate):
    asked = []
    monkeypatch.setattr(module, "bernoulli_exp", lambda _, *fraction: asked.append(Fraction(*fraction)) or True)
    for value in proposals_of(rate):
        monkeypatch.setattr(module, "discrete_laplace", lambda *_, value=value: value)
        assert discrete_gaussian(None, rate) == value
        assert asked.pop() == exponent(rate, value)
        assert not asked


@each_rate
def test_the_proposals_of_an_array_are_kept_as_often_as_the_two_laws_ask_for(monkeypatch, rate):
    """The exponents of the coins of a value add up to the right one, exactly: so no product overflows either."""
    values = proposals_of(rate)
    near, far = [], []

    def half_squares(_, numerators, denominator):
        near.extend(Fraction(numerator, denominator) ** 2 / 2 for numerator in numerators.tolist())
        assert max(numerators.tolist()) < denominator
        return np.ones(len(numerators), dtype=np.bool_)

    def exponential_coins(_, numerators, denominator):
        far.append([Fraction(numerator, denominator) for numerator in numerators.tolist()])
        return np.ones(len(numerators), dtype=np.bool_)

    monkeypatch.setattr(module, "signed_sizes", lambda *_: np.array(values))
    monkeypatch.setattr(module, "_exp_half_square", half_squares)
    monkeypatch.setattr(module, "bernoulli_exp_array", exponential_coins)
    assert module._values(None, rate, len(values)).tolist() == values
    is_far = [abs(abs(value) * rate.numerator - rate.denominator) >= rate.denominator for value in values]
    rest = zip(*far, strict=True)
    sums = [half + (sum(next(rest)) if more else 0) for half, more in zip(near, is_far, strict=True)]
    assert sums == [exponent(rate, value) for value in values]
    assert not list(rest)


@pytest.mark.parametrize(
    ("part", "whole", "mixed", "refused"),
    [(1, -1, -1, {1, 3}), (-1, 4, -1, {4, 5}), (-1, -1, 6, {5}), (2, 1, 1, {0, 2, 3}), (-1, -1, -1, set())],
)
def test_a_value_of_an_array_is_kept_if_all_its_coins_are_heads(monkeypatch, part, whole, mixed, refused):
    """At 3/4 the numerators of |k|s - 1 are 4, 1, 2, 5, 8 and 11 for k from 0 to 5. Coins for some are tails."""

    def half_squares(_, numerators, denominator):
        assert denominator == 4
        return numerators != part

    def exponential_coins(_, numerators, denominator):
        return numerators != {2: whole, 4: mixed}[denominator]

    monkeypatch.setattr(module, "signed_sizes", lambda *_: np.arange(6))
    monkeypatch.setattr(module, "_exp_half_square", half_squares)
    monkeypatch.setattr(module, "bernoulli_exp_array", exponential_coins)
    assert set(range(6)) - set(module._values(None, Rate(3, 4), 6).tolist()) == refused


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (0, 4), (1, 4), (2, 4), (3, 4), (1, 2), (3, 8)])
def test_the_coin_of_half_a_square_is_exact(monkeypatch, numerator, denominator):
    """All values of up to nine uniform integers."""

    def below_array(choose, bounds):
        return np.array([choose(int(bound)) for bound in bounds], dtype=np.uint64)

    def sampler(choose):
        return module._exp_half_square(choose, np.array([numerator], dtype=np.uint64), denominator).tolist()[0]

    monkeypatch.setattr(module, "below_array", below_array)
    law, unfinished = exact_law(sampler, draws=9)
    truth = math.exp(-((numerator / denominator) ** 2) / 2)
    assert unfinished < 0.01
    assert law[True] - 1e-15 <= truth <= law[True] + unfinished + 1e-15


# The law.


def law_by_value(rate):
    """Return {k: Pr[X = k]}, from the definition."""
    reach = math.ceil(12 / rate)
    weights = {value: math.exp(-((value * rate) ** 2) / 2) for value in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {value: weight / total for value, weight in weights.items()}


def drawn(kind, rate, count):
    if kind == "scalar":
        entropy = BufferedEntropy(5)
        return [discrete_gaussian(entropy, rate) for _ in range(count)]
    entropy = SystemEntropy() if kind == "system array" else SeededEntropy(6)
    return discrete_gaussian_array(entropy, rate, count).tolist()


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("kind", ["scalar", "array", "system array"])
def test_noise_has_the_right_scale_and_no_other(epsilon, kind):
    law, *wrong = (law_by_value(epsilon * factor) for factor in (1, 1.05, 1 / 1.05))
    count = draws_to_tell(law, *wrong)
    assert_only(Counter(drawn(kind, Rate.at_most(epsilon), count)), law, *wrong)


@pytest.mark.parametrize("kind", ["scalar", "array"])
def test_noise_of_a_small_rate_is_a_continuous_law(kind):
    """At 1e-9 and at the smallest rate there are far more values than a sample could tell from a continuum."""

    def scale(draws):
        """Return the p-value of the sum of squares, which is chi-square, on its smaller side."""
        square = (draws**2).sum()
        return min(chi2.sf(square, len(draws)), chi2.cdf(square, len(draws)))

    for rate in (RATES["1e-9"], RATES["the smallest"]):
        draws = np.array(drawn(kind, rate, size(20_000, 100_000))) * (rate.numerator / rate.denominator)
        assert kstest(draws, norm.cdf).pvalue > FAR
        assert scale(draws) > FAR
        assert scale(draws * 1.05) < FAR
        assert scale(draws / 1.05) < FAR
        assert kstest(draws + 0.1, norm.cdf).pvalue < FAR


@pytest.mark.parametrize("kind", ["scalar", "array"])
def test_noise_of_a_large_rate_is_none(kind):
    for rate in (RATES["10"], RATES["50"]):
        assert set(drawn(kind, rate, 2000)) == {0}


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_noise_agrees_with_opendp(epsilon):
    dp.enable_features("contrib")
    count = 50_000
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = dp.m.make_gaussian(*space, scale=1 / epsilon)([0] * count)
    edges = np.unique(np.quantile(theirs, np.linspace(0, 1, 24)[1:-1]))

    def agreement(rate):
        """Return the p-value of both samples having one law, over bins of about equal mass."""
        samples = discrete_gaussian_array(SystemEntropy(), rate, count), theirs
        bins = [np.bincount(np.searchsorted(edges, part), minlength=len(edges) + 1) for part in samples]
        table = np.array(bins)
        return chi2_contingency(table[:, table.sum(axis=0) > 0], correction=False).pvalue

    assert agreement(Rate.at_most(epsilon)) > FAR
    assert agreement(Rate.at_most(epsilon * 1.15)) < FAR


def test_counts():
    for count in (0, 1, 5, 1000):
        draws = discrete_gaussian_array(SystemEntropy(), Rate.at_most(0.1), count)
        assert draws.shape == (count,)
        assert draws.dtype == np.int64
