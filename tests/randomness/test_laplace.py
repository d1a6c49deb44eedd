import importlib
import math
from collections import Counter

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2, chisquare, expon, kstest
from tests.goodness import FAR, BufferedEntropy, assert_only, draws_to_tell
from tests.randomness.sources import SeededEntropy, exact_law

from targetcharge.randomness import (
    Rate,
    SystemEntropy,
    discrete_laplace,
    discrete_laplace_array,
    geometric,
    geometric_array,
)

bernoulli_module = importlib.import_module("targetcharge.randomness.coins")
laplace_module = importlib.import_module("targetcharge.randomness.laplace")


def law_of(rate, reach):
    """Probabilities of -reach … reach and of both tails beyond, from the closed form."""
    p = math.exp(-rate)
    inner = [(1 - p) / (1 + p) * p ** abs(k) for k in range(-reach, reach + 1)]
    tail = p ** (reach + 1) / (1 + p)
    return np.array([tail, *inner, tail])


def pvalue(draws, rate):
    """Chi-square of draws against the discrete Laplace law of a rate."""
    reach = max(2, math.ceil(3 / rate))
    width = max(1, (2 * reach + 1) // 60)
    clipped = np.clip(np.asarray(draws), -reach - 1, reach + 1) + reach + 1
    counts = np.bincount(clipped, minlength=2 * reach + 3)
    starts = np.arange(0, len(counts), width)
    observed, expected = (np.add.reduceat(part, starts) for part in (counts, law_of(rate, reach) * len(draws)))
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def law_by_value(rate):
    reach = math.ceil(20 / rate)
    return dict(zip(range(-reach, reach + 1), law_of(rate, reach)[1:-1].tolist(), strict=True))


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.7, 2.0])
@pytest.mark.parametrize("kind", ["scalar", "array", "system array"])
def test_noise_has_the_right_scale_and_no_other(epsilon, kind):
    rate = Rate.at_most(epsilon)
    law, *wrong = (law_by_value(epsilon * factor) for factor in (1, 1.05, 1 / 1.05))
    count = draws_to_tell(law, *wrong)
    if kind == "scalar":
        entropy = BufferedEntropy(5)
        draws = [discrete_laplace(entropy, rate) for _ in range(count)]
    else:
        entropy = SystemEntropy() if kind == "system array" else SeededEntropy(6)
        draws = discrete_laplace_array(entropy, rate, count).tolist()
    assert pvalue(draws, epsilon) > FAR
    assert_only(Counter(draws), law, *wrong)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_noise_agrees_with_opendp(epsilon):
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = dp.m.make_laplace(*space, scale=1 / epsilon)([0] * 50_000)
    rate = Rate.at_most(epsilon)

    def compare(ours):
        """Two-sample chi-square over bins of about equal mass."""
        edges = np.unique(np.quantile(theirs, np.linspace(0, 1, 24)[1:-1]))
        table = np.array(
            [np.bincount(np.searchsorted(edges, part), minlength=len(edges) + 1) for part in (ours, theirs)]
        )
        table = table[:, table.sum(axis=0) > 0]
        expected = table.sum(axis=0) * table.sum(axis=1, keepdims=True) / table.sum()
        return chi2.sf(((table - expected) ** 2 / expected).sum(), table.shape[1] - 1)

    assert compare(discrete_laplace_array(SystemEntropy(), rate, 50_000)) > 1e-9
    assert compare(discrete_laplace_array(SystemEntropy(), Rate.at_most(epsilon * 1.15), 50_000)) < 1e-9


def geometric_draws(kind, rate, count):
    if kind == "scalar":
        entropy = BufferedEntropy(7)
        return [geometric(entropy, rate) for _ in range(count)]
    return geometric_array(SystemEntropy() if kind == "system array" else SeededEntropy(8), rate, count).tolist()


def geometric_law(rate):
    return {value: -math.expm1(-rate) * math.exp(-rate * value) for value in range(math.ceil(30 / rate))}


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("kind", ["scalar", "array", "system array"])
def test_geometric_noise_has_the_right_scale_and_no_other(epsilon, kind):
    law, *wrong = (geometric_law(epsilon * factor) for factor in (1, 1.05, 1 / 1.05))
    count = draws_to_tell(law, *wrong)
    assert_only(Counter(geometric_draws(kind, Rate.at_most(epsilon), count)), law, *wrong)


@pytest.mark.parametrize("kind", ["scalar", "array"])
def test_geometric_noise_of_the_smallest_rate_is_a_continuous_law(kind):
    draws = np.array(geometric_draws(kind, Rate.at_most(1e-9), 50_000)) * 1e-9
    assert kstest(draws, expon.cdf).pvalue > FAR
    assert kstest(draws * 1.05, expon.cdf).pvalue < FAR
    assert kstest(draws / 1.05, expon.cdf).pvalue < FAR


@pytest.mark.parametrize("kind", ["scalar", "array"])
def test_geometric_noise_of_a_large_rate_is_none(kind):
    assert set(geometric_draws(kind, Rate(50, 1), 2000)) == {0}


def test_small_laws_exactly(monkeypatch):
    """Rate 1/2, every path of up to eight draws: each probability is within the unfinished mass of the truth."""
    for target in (laplace_module, bernoulli_module):
        monkeypatch.setattr(target, "below", lambda choose, bound: choose(bound))
    monkeypatch.setattr(
        laplace_module, "bernoulli_exp_one", lambda choose: bernoulli_module.bernoulli_exp(choose, 1, 1)
    )
    rate = Rate(1, 2)
    law, unfinished = exact_law(lambda choose: geometric(choose, rate), draws=8)
    assert unfinished < 0.3
    for size in range(4):
        truth = -math.expm1(-0.5) * math.exp(-size / 2)
        assert law[size] <= truth <= law[size] + unfinished


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.1, 0.5, 1.0, math.pi, 10.0])
def test_rates_round_down_and_only_just(epsilon):
    rate = Rate.at_most(epsilon)
    assert rate.denominator <= 2**52
    assert epsilon * (1 - 2**-21) <= rate.numerator / rate.denominator <= epsilon


def test_counts():
    rate = Rate.at_most(0.1)
    for count in (0, 1, 5, 1000):
        assert discrete_laplace_array(SystemEntropy(), rate, count).shape == (count,)
        assert geometric_array(SystemEntropy(), rate, count).shape == (count,)
    draws = discrete_laplace_array(SystemEntropy(), Rate.at_most(1e-9), 1000)
    assert 1e8 < np.abs(draws).mean() < 1e10
