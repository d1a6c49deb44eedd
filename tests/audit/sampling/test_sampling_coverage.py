"""Coverage of the bound on ε: at chances where it has hardly any slack, by tests that notice a wrong α."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.stats import binomtest

import targetcharge as tc
from targetcharge.audit import black_box
from targetcharge.audit.sampling import Counts, epsilon_at_least
from targetcharge.randomness import bernoulli

ALPHA = 0.2
TRIALS = 4_000
CHANCES = [(1.0, 0.5, 40), (1.0, 0.02, 400), (0.999, 0.3, 60), (0.9, 0.3, 200), (0.6, 0.2, 1_000), (0.5, 0.5, 50)]
"""Chances on the two inputs, and runs. In the first two one chance is nearly sure, so that the other decides."""


def failures(likely, rare, runs, alpha):
    """Return how often the bound is above the true ε of an event."""
    rng = np.random.default_rng(7)
    true = math.log(likely / rare)
    seen = zip(rng.binomial(runs, likely, TRIALS).tolist(), rng.binomial(runs, rare, TRIALS).tolist(), strict=True)
    bounds = {}
    count = 0
    for pair in seen:
        if pair not in bounds:
            bounds[pair] = epsilon_at_least(Counts(pair[0], runs), Counts(pair[1], runs), 0.0, alpha)
        count += bounds[pair] > true
    return count


def too_often(count):
    """Return whether failures are more frequent than α, beyond chance."""
    return binomtest(count, TRIALS, ALPHA, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize(("likely", "rare", "runs"), CHANCES)
def test_the_bound_fails_no_more_often_than_alpha(likely, rare, runs):
    assert not too_often(failures(likely, rare, runs, ALPHA))


@pytest.mark.parametrize(("likely", "rare", "runs"), CHANCES)
def test_power_an_alpha_four_times_too_large_is_noticed(likely, rare, runs):
    assert too_often(failures(likely, rare, runs, 4 * ALPHA))


def test_the_shares_of_the_counted_events_add_up_to_what_is_stated(monkeypatch):
    """Every bound of an audit is taken at α/EVENTS, and no more than EVENTS are counted."""
    module = sys.modules["targetcharge.audit.sampling.black_box"]
    asked = []

    def noting(likely, rare, delta, alpha, tilt):
        asked.append(alpha)
        return epsilon_at_least(likely, rare, delta, alpha, tilt)

    monkeypatch.setattr(module, "epsilon_at_least", noting)
    confidence = 0.9

    def many_coins(rows, entropy):
        return tuple(bernoulli(entropy, 0.5 + 0.01 * len(rows)) for _ in range(3))

    black_box(many_coins, [], ["row"], tc.Budget(1.0, 0.0), runs=400, confidence=confidence, workers=1)
    assert 1 < len(asked) <= module.EVENTS
    assert len(set(asked)) == 1
    assert asked[0] * module.EVENTS == pytest.approx(1 - confidence)
    assert math.fsum(asked) <= (1 - confidence) * (1 + 1e-12)
