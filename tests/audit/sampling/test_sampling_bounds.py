"""Clopper-Pearson intervals and what they say of ε, against computations of their own."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, binomtest

from targetcharge.audit.sampling import Counts, delta_at_least, detectable, epsilon_at_least, runs_needed
from targetcharge.audit.sampling.bounds import by_intervals
from targetcharge.errors import InvalidParameter

CASES = [(0, 10), (1, 10), (5, 10), (10, 10), (3, 1_000), (997, 1_000), (50_000, 100_000), (1, 100_000)]
ALPHAS = [0.05, 1e-3, 1e-7]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("seen", "runs"), CASES)
def test_the_interval_is_that_of_scipy(seen, runs, alpha):
    interval = binomtest(seen, runs).proportion_ci(1 - 2 * alpha, method="exact")
    assert Counts(seen, runs).at_least(alpha) == pytest.approx(interval.low, rel=1e-6, abs=1e-12)
    assert Counts(seen, runs).at_most(alpha) == pytest.approx(interval.high, rel=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("seen", "runs"), [case for case in CASES if case[1] <= 1_000])
def test_at_its_ends_the_binomial_tail_is_alpha_by_mpmath(seen, runs, alpha):
    def tail(chance, counts):
        with mpmath.workdps(40):
            chance = mpmath.mpf(chance)
            return sum(mpmath.binomial(runs, k) * chance**k * (1 - chance) ** (runs - k) for k in counts)

    if seen:
        low = Counts(seen, runs).at_least(alpha)
        assert float(tail(low, range(seen, runs + 1))) == pytest.approx(alpha, rel=1e-6)
    if seen < runs:
        high = Counts(seen, runs).at_most(alpha)
        assert float(tail(high, range(seen + 1))) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("runs", [30, 200])
@pytest.mark.parametrize("chance", [0.001, 0.02, 0.3, 0.5, 0.9, 0.999])
def test_coverage_is_at_least_what_is_stated(chance, runs):
    """The probability that a bound is wrong, added up over everything that could be seen."""
    alpha = 0.05
    chances = [(seen, float(binom.pmf(seen, runs, chance))) for seen in range(runs + 1)]
    assert math.fsum(p for seen, p in chances if Counts(seen, runs).at_least(alpha) > chance) <= alpha
    assert math.fsum(p for seen, p in chances if Counts(seen, runs).at_most(alpha) < chance) <= alpha


def test_epsilon_and_delta_agree():
    likely, rare = Counts(700, 1_000), Counts(60, 1_000)
    for delta in (0.0, 0.01, 0.3):
        epsilon = epsilon_at_least(likely, rare, delta, 0.01)
        assert delta_at_least(likely, rare, epsilon, 0.01) == pytest.approx(delta, abs=1e-12)
    assert epsilon_at_least(rare, likely, 0.0, 0.01) == 0.0
    assert epsilon_at_least(likely, rare, 0.9, 0.01) == 0.0
    assert delta_at_least(likely, rare, 50.0, 0.01) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.2])
def test_runs_needed_is_the_first_number_that_could_say_something(epsilon, delta):
    needed = runs_needed(epsilon, delta, 1e-3)
    assert epsilon_at_least(Counts(needed, needed), Counts(0, needed), delta, 1e-3) > epsilon
    fewer = needed - 1
    assert epsilon_at_least(Counts(fewer, fewer), Counts(0, fewer), delta, 1e-3) <= epsilon


def test_no_number_of_runs_is_enough_for_some_claims():
    with pytest.raises(InvalidParameter, match="small enough that samples can say something"):
        runs_needed(60.0, 0.0, 1e-3)


@pytest.mark.parametrize(("epsilon", "runs"), [(0.1, 5_000), (1.0, 5_000), (3.0, 50_000)])
def test_what_is_detectable_is_detected_nine_times_out_of_ten(epsilon, runs):
    alpha = 1e-3
    true = detectable(epsilon, 0.0, runs, alpha)
    assert true > epsilon
    chance = 1 / (1 + math.exp(-true))
    likely, rare = binom(runs, chance), binom(runs, 1 - chance)
    # The counts are independent, so that the power is a sum over all of both.
    seen, other = (np.arange(law.ppf(1e-6), law.isf(1e-6) + 1) for law in (likely, rare))
    shown = by_intervals(Counts(seen[:, None], runs), Counts(other, runs), 0.0, alpha) > epsilon
    assert 0.88 < likely.pmf(seen) @ shown @ rare.pmf(other) < 0.99


def test_nothing_is_detectable_with_too_few_runs():
    assert detectable(5.0, 0.0, 100, 1e-3) == math.inf
