"""Accuracy: the interval of an outcome holds the true value where the noise is within the margin."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.sessions.scripted import EPSILON, opened

import targetcharge as tc
from targetcharge.mechanisms import (
    above_threshold,
    batch_by_key,
    between_thresholds,
    changed,
    exponential,
    noisy_count,
    noisy_max,
    side_of_threshold,
)
from targetcharge.mechanisms.accuracy import Accuracy, above, exactly
from targetcharge.mechanisms.gauge import COUNTED, gauged, grid
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.randomness import Rate

EPSILONS = [1e-9, 3e-9, 1e-6, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.7, 1.0, 2.5, 3.7, 5.0, 10.0]


def itself(data):
    return data


def tell_the_noise(monkeypatch):
    """Let an algorithm that is made from now on take its noise from where its randomness should come from."""
    monkeypatch.setattr("targetcharge.mechanisms.noise.discrete_laplace", lambda noise, _rate: noise)


# The margin.


def beyond(rate, steps):
    """Return Pr[|noise| > steps], to sixty digits."""
    p = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
    return 2 * p ** (steps + 1) / (1 + p)


def many_rates():
    rng = np.random.default_rng(1)
    return [Rate.at_most(epsilon) for epsilon in (*EPSILONS, *10 ** rng.uniform(-8.9, 1, 300))]


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_margin_is_the_smallest_that_noise_leaves_seldom_enough(confidence):
    with mpmath.workdps(60):
        for rate in many_rates():
            found = NoiseLaw.of(rate).margin(confidence)
            seldom = 1 - mpmath.mpf(confidence)
            assert beyond(rate, found) <= seldom * (1 + mpmath.mpf(10) ** -9)
            assert found == 0 or beyond(rate, found - 1) > seldom * (1 - mpmath.mpf(10) ** -9)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0, 10.0])
def test_the_margin_by_adding_up_the_law(epsilon):
    noise = NoiseLaw.of(Rate.at_most(epsilon))
    wide = noise.margin()
    inside = math.fsum(noise.mass(k) for k in range(-wide, wide + 1))
    assert inside >= 0.95
    assert wide == 0 or math.fsum(noise.mass(k) for k in range(1 - wide, wide)) < 0.95


def test_the_scale_is_one_over_the_rate_that_is_drawn_with():
    for sensitivity in (1, 3, 7):
        algorithm = noisy_count(itself, 0.3, sensitivity=sensitivity)
        rate = rate_for(0.3, sensitivity)
        assert algorithm.accuracy.scale == rate.denominator / rate.numerator >= sensitivity / 0.3


# Spans, by every noise within and beyond the margin.

MADE = {
    "count": lambda s: noisy_count(itself, 0.5, sensitivity=s),
    "above": lambda s: above_threshold(itself, 12, 0.5, sensitivity=s),
    "above a half": lambda s: above_threshold(itself, -2.5, 0.5, sensitivity=s),
    "between": lambda s: between_thresholds(itself, -4, 9.5, 0.5, sensitivity=s),
    "between one": lambda s: between_thresholds(itself, 3, 3, 0.5, sensitivity=s),
    "side": lambda s: side_of_threshold(itself, 2.5, 0.5, sensitivity=s),
    "changed": lambda s: changed(itself, 3, 5.5, 0.5, sensitivity=s),
    "changed above": lambda s: changed(itself, 3, 5, 0.5, threshold=20, sensitivity=s),
    "changed, band above": lambda s: changed(itself, 30, 5, 0.5, threshold=20, sensitivity=s),
    "changed, threshold inside": lambda s: changed(itself, 3, 5, 0.5, threshold=4, sensitivity=s),
}
SHOWN = {"counted": COUNTED, "cents": grid(Fraction(1, 100)), "thirds": grid(Fraction(1, 3))}


def holds(interval, value):
    low, high = interval
    return (low is None or low <= value) and (high is None or value <= high)


@pytest.mark.parametrize("gauge", SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_an_interval_holds_the_truth_whenever_the_noise_is_within_the_margin(
    monkeypatch, make, sensitivity, gauge
):
    tell_the_noise(monkeypatch)
    algorithm = gauged(make(sensitivity), gauge)
    accuracy, wide = algorithm.accuracy, algorithm.accuracy.margin
    spread, touched = {}, set()
    for count in range(-2 * wide - 40, 2 * wide + 40):
        for noise in range(-wide, wide + 1):
            outcome = algorithm.run(count, noise)
            interval = accuracy.interval(outcome)
            assert holds(interval, gauge.value(count))
            spread.setdefault(outcome, set()).add(count)
    for outcome, counts in spread.items():
        low, high = accuracy.interval(outcome)
        if low is not None:  # no wider than it need be: some count that it is published for lies at the end
            touched.add(low == gauge.value(min(counts)) or min(counts) == -2 * wide - 40)
        if high is not None:
            touched.add(high == gauge.value(max(counts)) or max(counts) == 2 * wide + 39)
    assert touched <= {True}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_at_least_95_of_100_intervals_hold_the_truth_wherever_it_is(monkeypatch, make):
    tell_the_noise(monkeypatch)
    algorithm = make(2)
    noise = NoiseLaw.of(rate_for(0.5, 2))
    reach = math.ceil(45 / noise.rate)
    masses = {k: noise.mass(k) for k in range(-reach, reach + 1)}
    lowest = 1.0
    for count in range(-40, 60):
        covered = math.fsum(
            mass
            for k, mass in masses.items()
            if holds(algorithm.accuracy.interval(algorithm.run(count, k)), count)
        )
        assert covered >= 0.95
        lowest = min(lowest, covered)
    assert lowest < 0.98  # and not by intervals that are far too wide


def test_one_step_less_would_be_too_little():
    algorithm = noisy_count(itself, 0.5)
    noise, wide = NoiseLaw.of(rate_for(0.5, 1)), algorithm.accuracy.margin
    narrower = Accuracy(1.0, (wide - 1, wide - 1), exactly)
    reach = math.ceil(45 / noise.rate)
    covered = math.fsum(noise.mass(k) for k in range(-reach, reach + 1) if holds(narrower.interval(7 + k), 7))
    assert covered < 0.95


# What has none.


def test_a_mark_says_nothing_of_the_value_and_the_sides_what_they_say_alone():
    side = side_of_threshold(itself, 5, 0.3)
    marked = tc.boundary(side).accuracy
    assert marked.interval(tc.BOUNDARY) is None
    for outcome in (tc.Side.BELOW, tc.Side.ABOVE):
        assert marked.interval(outcome) == side.accuracy.interval(outcome)
    assert side.accuracy.interval(tc.Side.BELOW) == (None, 4 + side.accuracy.margin)
    assert side.accuracy.interval(tc.Side.ABOVE) == (5 - side.accuracy.margin, None)


def test_spans():
    assert exactly(3) == (3, 3)
    assert exactly("3") is None
    assert exactly(outcome=True) is None
    assert above(9)(None) == (None, 9)
    assert above(9)(12) == (12, 12)
    assert between_thresholds(itself, 2, 5, 0.3).accuracy.span(tc.Side.BETWEEN) == (2, 5)


@pytest.mark.parametrize(
    "algorithm",
    [
        tc.twice(noisy_count(itself, 0.1)),
        tc.agreement(noisy_count(itself, 0.1)),
        exponential(itself, 0.1, 3),
        noisy_max(itself, 0.1, 3),
        tc.private(epsilon=0.1)(itself),
    ],
    ids=["twice", "agreement", "exponential", "noisy_max", "private"],
)
def test_algorithms_without_one_noisy_number_have_no_accuracy(algorithm):
    assert algorithm.accuracy is None


# In sessions.


def test_a_yes_or_a_no_has_no_interval():
    session = opened(5, data=5000)
    for threshold, said in ((0, True), (10**5, False)):
        answer = session.test(above_threshold(itself, threshold, EPSILON))
        assert (answer.outcome, answer.interval) == (said, None)


def test_a_pending_release_says_nothing_of_the_value():
    """Its None stands for "not yet", not for "below the threshold"."""
    session = opened(5, data=5000)
    release = session.release(above_threshold(itself, 100, EPSILON), set())
    assert not release.released
    assert session.transcript[-1].outcome is None
    assert session.transcript[-1].interval is None
    released = session.release(above_threshold(itself, 100, EPSILON), lambda count: count > 0)
    low, high = session.transcript[-1].interval
    assert released.released
    assert low < released.outcome < high


def test_the_end_of_a_selection_says_nothing_of_a_value():
    session = opened(5, data=5000)
    tests = batch_by_key(lambda data: [data, 0], ["a", "b"], 0, EPSILON)
    assert [answer.key for answer in session.select(tests, k=2, threshold=2500)] == ["a"]
    assert (session.transcript[-1].outcome, session.transcript[-1].interval) == (None, None)


@pytest.mark.parametrize(
    "prior", [np.int64(1000), np.float64(1000.0), np.float32(1000), Fraction(2000, 2), 1000.5]
)
def test_a_prior_of_any_kind_of_number_is_kept_as_a_plain_one(tmp_path, prior):
    """A ledger file keeps nothing else: one that it cannot write would block it for ever."""
    budget = tc.Budget(3.0, 1e-6)
    with tc.Session(1000, budget, EPSILON, ledger=tmp_path / "ledger.db") as session:
        unchanged = session.ask(changed(itself, prior, 600, EPSILON))
        assert session.ask(changed(itself, 0, 100, EPSILON)).hit
    assert type(unchanged.prior) in {int, float}
    assert unchanged.prior == prior
    with tc.Session(1000, budget, EPSILON, ledger=tmp_path / "ledger.db") as session:
        assert session.transcript[0] == unchanged
