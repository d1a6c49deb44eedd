"""The bound for rare events: it fails no more often than stated, and needs as few of them as there can be."""

import math
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from tests.sizes import size

import targetcharge as tc
from targetcharge.audit import black_box
from targetcharge.audit.sampling import Counts, delta_at_least, epsilon_at_least, fewest_seen, rarest
from targetcharge.audit.sampling.bounds import by_intervals, by_tilting
from targetcharge.audit.sampling.events import candidates, varied
from targetcharge.audit.sampling.features import default_features
from targetcharge.audit.sampling.published import published_of
from targetcharge.randomness import bernoulli

ALPHA = 0.05
RUNS = 80
TILTS = [0.1, 0.5, 2.0, 30.0]


def failing(epsilon, delta, rare, tilt, *, forget_delta=False):
    """Return the chance that the bound is above the true ε, added up over everything that could be seen."""
    seen = np.arange(RUNS + 1)
    likely, other = (binom.pmf(seen, RUNS, chance) for chance in (math.exp(epsilon) * rare + delta, rare))
    counts = Counts(seen[:, None], RUNS), Counts(seen, RUNS)
    bounds = np.maximum(0.0, by_tilting(*counts, 0.0 if forget_delta else delta, ALPHA, tilt))
    return np.where(bounds > epsilon + 1e-12, np.outer(likely, other), 0.0).sum()


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.0, 0.2), (1.0, 0.02), (0.3, 0.1)])
def test_the_tilted_bound_fails_no_more_often_than_alpha(epsilon, delta, tilt):
    for rare in (0.0, 0.01, 0.1, 0.25):
        assert failing(epsilon, delta, rare, tilt) <= ALPHA


def test_bounds_of_many_events_are_those_of_each():
    seen, rare = np.array([0, 3, 70, 999]), np.array([5, 0, 3, 1])
    many = Counts(seen, 1_000), Counts(rare, 1_000)
    for delta, tilt in ((0.0, None), (0.01, 2.0)):
        bounds = by_intervals(*many, delta, 0.01) if tilt is None else by_tilting(*many, delta, 0.01, tilt)
        each = [
            epsilon_at_least(Counts(a, 1_000), Counts(b, 1_000), delta, 0.01, tilt)
            for a, b in zip(seen.tolist(), rare.tolist(), strict=True)
        ]
        assert np.maximum(0.0, bounds).tolist() == each


def test_power_a_forgotten_delta_is_noticed():
    assert failing(0.3, 0.1, 0.01, 2.0, forget_delta=True) > 4 * ALPHA


def test_epsilon_and_delta_agree():
    """At δ = 0 they are one test; at larger δ the bound on ε is the weaker one."""
    likely, rare = Counts(70, 1_000), Counts(3, 1_000)
    for tilt in TILTS[:3]:
        epsilon = epsilon_at_least(likely, rare, 0.0, 0.01, tilt)
        assert delta_at_least(likely, rare, epsilon, 0.01, tilt) == pytest.approx(0.0, abs=1e-12)
        shown = epsilon_at_least(likely, rare, 0.01, 0.01, tilt)
        assert shown == 0 or delta_at_least(likely, rare, shown, 0.01, tilt) >= 0.01
    assert delta_at_least(likely, rare, 9.0, 0.01, 2.0) == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0])
def test_the_fewest_that_must_be_seen(epsilon):
    alpha = 2.5e-4
    fewest = fewest_seen(epsilon, 0.0, 10_000, alpha)
    assert fewest == math.floor(math.log(1 / alpha) / math.log1p(math.exp(-epsilon))) + 1
    assert binom.sf(fewest - 1, 10_000, rarest(epsilon, 0.0, 10_000, alpha)) == pytest.approx(0.9)
    assert fewest_seen(epsilon, 0.01, 10_000, alpha) > fewest + 100
    assert fewest_seen(epsilon, 0.0, 10, alpha) == 11
    assert rarest(epsilon, 0.0, 10, alpha) == 1.0


def rarely(rows, entropy):
    """Publish a rare word that is e times as likely on one of the inputs: exactly ε = 1, and by a rare event."""
    return bernoulli(entropy, 0.1 if rows else 0.1 * math.exp(-1))


def alarms(claimed, audits, length=1_200):
    found = [
        black_box(rarely, [], ["row"], tc.Budget(claimed, 0.0), runs=length, confidence=0.9, seed=seed, workers=1)
        for seed in range(audits)
    ]
    return sum(not verdict.passed for verdict in found)


def test_a_true_claim_about_a_rare_event_falls_no_more_often_than_stated():
    audits = size(50, 400)
    assert binomtest(alarms(1.0, audits), audits, 0.1, alternative="greater").pvalue > 1e-6


def test_power_a_false_claim_about_a_rare_event_falls():
    audits = size(10, 80)
    assert alarms(0.2, audits, length=6_000) > 0.9 * audits


def test_one_event_of_each_family_is_counted():
    """A tail that is never seen on the other input is chosen beside events that promise more."""
    rng = np.random.default_rng(3)
    parts = [
        [Counter(map(published_of, (centre + rng.laplace(0, 1.0, 2_000)).tolist())) for centre in (10, 9)]
        for _ in range(2)
    ]
    events = candidates(*parts, default_features(parts[0][0]), 0.0, 0.01, runs=4_000)
    chosen = varied(events, 4)
    assert chosen[0] is events[0]
    assert {event.family for event in chosen} == {"often", "never", "low bits"}
    assert len({id(event) for event in chosen}) == 4
    assert varied(events[:1], 4) == events[:1]
    assert varied([], 4) == []
    never = next(event for event in chosen if event.family == "never")
    assert not sum(never.counts(tallies)[1].seen for tallies in parts)


def test_that_nothing_tells_the_inputs_apart_is_said():
    """Whatever is rare did not happen where events are learnt, and did where they are counted."""

    def rare(_rows, entropy):
        return bernoulli(entropy, 0.001)

    said = "nothing in the first half of the runs told the inputs apart. So many runs would show an epsilon from"
    verdicts = []
    for seed in range(20):
        with suppress(tc.InvalidParameter):  # it did not happen at all
            verdicts.append(black_box(rare, [], ["row"], tc.Budget(1.0, 0.0), runs=600, seed=seed, workers=1))
    (verdict, *_) = [verdict for verdict in verdicts if verdict.worst.startswith(said)]
    assert (verdict.passed, verdict.attained) == (True, 0.0)
    assert {attained for _, _, attained in verdict.curve} == {0.0}
