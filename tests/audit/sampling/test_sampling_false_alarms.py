"""A true claim falls no more often than stated, a false one nearly always; what is learnt is not counted."""

import random
from collections import Counter

from scipy.stats import binomtest
from tests.sizes import size

import targetcharge as tc
from targetcharge.audit import black_box
from targetcharge.audit.sampling import epsilon_at_least
from targetcharge.audit.sampling.events import candidates
from targetcharge.audit.sampling.features import default_features
from targetcharge.audit.sampling.published import published_of
from targetcharge.randomness import bernoulli

AUDITS = size(40, 400)
CONFIDENCE = 0.9
EPSILON = 1.0
CHANCE = 0.7310585786300049  # e/(1+e)


def response(rows, entropy):
    """Randomised response with ε = 1 exactly, beside a colour that has nothing to do with the data."""
    truth = bool(rows) == bernoulli(entropy, CHANCE)
    return truth, entropy.word() % 5


def alarms(claimed):
    audits = [
        black_box(
            response, [], ["row"], tc.Budget(claimed, 0.0), runs=600, confidence=CONFIDENCE, seed=seed, workers=1
        )
        for seed in range(AUDITS)
    ]
    return sum(not verdict.passed for verdict in audits)


def test_a_true_claim_falls_no_more_often_than_stated():
    """Randomised response attains its ε, so there is no slack in the claim."""
    found = alarms(EPSILON)
    assert binomtest(found, AUDITS, 1 - CONFIDENCE, alternative="greater").pvalue > 1e-6


def test_power_a_false_claim_nearly_always_falls():
    found = alarms(0.5 * EPSILON)
    assert found >= 0.95 * AUDITS


def test_power_counting_where_one_chose_would_fall_too_often():
    """The same bound on the runs by which events were learnt and chosen: true claims fall most of the time."""
    generator = random.Random(5)
    found = 0
    audits = size(30, 120)
    for _ in range(audits):
        tallies = [Counter(published_of(generator.randrange(200)) for _ in range(500)) for _ in range(2)]
        features = default_features(tallies[0])
        alpha = (1 - CONFIDENCE) / 4
        event = candidates(tallies, tallies, features, delta=0.0, alpha=alpha, runs=500)[0]
        found += epsilon_at_least(*event.counts(tallies), 0.0, alpha, event.tilt) > 0  # the true ε is 0
    assert binomtest(found, audits, 1 - CONFIDENCE, alternative="greater").pvalue < 1e-9
