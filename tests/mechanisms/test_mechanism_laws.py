"""What is drawn follows the oracle, and the oracle an independent computation."""

import importlib
import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.integrate import simpson
from tests.goodness import assert_only, drawn, draws_to_tell
from tests.mechanisms.paths import law_of_paths
from tests.randomness.sources import exact_law

from targetcharge import BOUNDARY, UNCHANGED, Side
from targetcharge.mechanisms import (
    above_threshold,
    between_thresholds,
    changed,
    exponential,
    noisy_count,
    noisy_max,
    permute_and_flip,
    side_of_threshold,
)
from targetcharge.randomness import Rate

SIDES = (Side.BELOW, Side.BETWEEN, Side.ABOVE)
WINDOW = range(-400, 401)
SCORES = [(0, 5, 10), (4, 4, 0), (0.5, -2.25, 3.0, Fraction(7, 3))]
INTEGERS = [(0, 3, 5), (4, 4, 4), (-9, 2, 2, 1)]


def itself(data):
    return data


def law_by_oracle(algorithm, data, outcomes):
    law = {outcome: algorithm.oracle.probability(data, outcome) for outcome in outcomes}
    return {outcome: probability for outcome, probability in law.items() if probability > 0}


# What is drawn, on every path, against the oracle, and against that of noise 5% wrong.

PATHS = {
    "noisy_count": (lambda e: noisy_count(itself, e), 0.7, 7, WINDOW),
    "noisy_count-by-3": (lambda e: noisy_count(itself, e, sensitivity=3), 0.6, 0, WINDOW),
    "above-below": (lambda e: above_threshold(itself, 9.5, e), 0.3, 7, [None, *WINDOW]),
    "above-above": (lambda e: above_threshold(itself, 0, e), 0.3, 3, [None, *WINDOW]),
    "above-sensitivity": (lambda e: above_threshold(itself, 2, e, sensitivity=2), 0.5, 1, [None, *WINDOW]),
    "between-below": (lambda e: between_thresholds(itself, 5, 14.5, e), 0.2, 0, SIDES),
    "between-inside": (lambda e: between_thresholds(itself, -4, 4, e), 0.2, 0, SIDES),
    "between-sums-below": (lambda e: between_thresholds(itself, 5, 14.5, e, sensitivity=4), 0.8, 0, SIDES),
    "between-sums-inside": (lambda e: between_thresholds(itself, -4, 4, e, sensitivity=4), 0.8, 0, SIDES),
    "side-below": (lambda e: side_of_threshold(itself, 6.5, e), 0.3, 0, SIDES[::2]),
    "side-above-by-3": (lambda e: side_of_threshold(itself, -6, e, sensitivity=3), 0.9, 1, SIDES[::2]),
    "changed-from-below": (lambda e: changed(itself, 0, 3.5, e), 0.3, 7, [UNCHANGED, *WINDOW]),
    "changed-above-a-threshold": (
        lambda e: changed(itself, 2, 5, e, threshold=12, sensitivity=2),
        0.6,
        0,
        [UNCHANGED, None, *WINDOW],
    ),
    "permute_and_flip": (lambda e: permute_and_flip(itself, e, 3), 0.6, SCORES[0], range(3)),
    "permute_and_flip-floats": (
        lambda e: permute_and_flip(itself, e, 4, sensitivity=2.5, monotone=True),
        0.9,
        SCORES[2],
        range(4),
    ),
    "noisy_max": (lambda e: noisy_max(itself, e, 2), 1.2, (0, 3), range(2)),
    "noisy_max-monotone": (
        lambda e: noisy_max(itself, e, ["a", "b"], sensitivity=2, monotone=True),
        1.4,
        (0, 3),
        "ab",
    ),
}


@pytest.mark.parametrize(("make", "epsilon", "data", "outcomes"), PATHS.values(), ids=PATHS)
def test_the_paths_of_all_draws_give_the_oracle_and_no_other_scale(make, epsilon, data, outcomes):
    found = law_of_paths(make(epsilon), data)
    assert math.fsum(found.values()) == pytest.approx(1, abs=1e-9)
    assert set(found) <= set(outcomes)

    def distance(other):
        oracle = law_by_oracle(make(other), data, outcomes)
        return math.fsum(abs(found.get(outcome, 0) - oracle.get(outcome, 0)) for outcome in outcomes)

    assert distance(epsilon) < 1e-9
    assert min(distance(epsilon * 1.05), distance(epsilon / 1.05)) > 1e-3


@pytest.mark.parametrize("tries", [1, 2, 3])
@pytest.mark.parametrize(
    ("scores", "options"), [(SCORES[0], {}), (SCORES[2], {"sensitivity": 2.5, "monotone": True})]
)
def test_the_exponential_mechanism_has_its_law_after_any_number_of_tries(scores, options, tries):
    """A try is an index and a coin; one that fails leaves nothing behind."""
    found = law_of_paths(exponential(itself, 0.6, len(scores), **options), scores, draws=2 * tries)
    taken = math.fsum(found.values())

    def distance(factor):
        oracle = exponential(itself, 0.6 * factor, len(scores), **options).oracle
        return math.fsum(abs(mass / taken - oracle.probability(scores, index)) for index, mass in found.items())

    assert distance(1) < 1e-12
    assert min(distance(1.05), distance(1 / 1.05)) > 1e-3


# Real draws, from the bits to the outcome.

LADDER = (0, 3, 6, 9, 12)
DRAWN = {
    "noisy_count": (lambda e: noisy_count(itself, e), 0.1, 7, WINDOW),
    "above": (lambda e: above_threshold(itself, 0, e), 0.3, 3, [None, *WINDOW]),
    "exponential": (lambda e: exponential(itself, e, 5), 0.9, LADDER, range(5)),
    "permute_and_flip": (lambda e: permute_and_flip(itself, e, 5), 0.6, LADDER, range(5)),
    "noisy_max": (lambda e: noisy_max(itself, e, 5), 0.9, LADDER, range(5)),
}


@pytest.mark.parametrize(("make", "epsilon", "data", "outcomes"), DRAWN.values(), ids=DRAWN)
def test_draws_follow_the_oracle_and_no_other_scale(make, epsilon, data, outcomes):
    law, *wrong = (law_by_oracle(make(epsilon * factor), data, outcomes) for factor in (1, 1.05, 1 / 1.05))
    assert_only(drawn(make(epsilon), data, draws_to_tell(law, *wrong)), law, *wrong)


@pytest.mark.parametrize("scores", [(0, 1), (2, 0), (0, 0, 1)])
@pytest.mark.parametrize("make", [exponential, permute_and_flip])
def test_small_selections_exactly(monkeypatch, make, scores):
    """At ε = 1, every path of up to seven draws: each probability is within the unfinished mass of the truth."""
    for module in ("mechanisms.choice", "randomness.coins"):
        monkeypatch.setattr(
            importlib.import_module(f"targetcharge.{module}"), "below", lambda choose, bound: choose(bound)
        )
    algorithm = make(itself, 1.0, len(scores))
    law, unfinished = exact_law(lambda choose: algorithm.run(scores, choose), draws=7)
    assert unfinished < 0.15
    for index in range(len(scores)):
        truth = algorithm.oracle.probability(scores, index)
        assert law[index] - 1e-15 <= truth <= law[index] + unfinished + 1e-15


# The oracle against mpmath and direct sums.


def noise_by_mpmath(epsilon, sensitivity=1):
    """Return the mass function of the noise for ε/sensitivity, rounded down as it is drawn."""
    rate = Rate.at_most(epsilon / sensitivity)
    p = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
    return lambda k: (1 - p) / (1 + p) * p ** abs(k)


def close(found, truth):
    return found == pytest.approx(float(truth), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("count", [-50, -1, 0, 1, 2, 3, 40])
def test_oracles_of_counts_by_direct_sums(epsilon, count):
    with mpmath.workdps(400):
        mass = noise_by_mpmath(epsilon)
        tail = mpmath.exp(-mpmath.mpf(Rate.at_most(epsilon).numerator) / Rate.at_most(epsilon).denominator)

        def at_least(k):
            return 1 - at_least(1 - k) if k <= 0 else tail**k / (1 + tail)

        plain = noisy_count(itself, epsilon).oracle
        assert all(close(plain.probability(count, k), mass(k - count)) for k in range(-9, 10))
        assert close(plain.peak(count), mass(0))
        assert close(plain.rest(count), 1 - mass(0))

        test = above_threshold(itself, 0.5, epsilon).oracle
        none = 1 - at_least(1 - count)
        assert close(test.probability(count, None), none)
        assert all(close(test.probability(count, k), mass(k - count) if k >= 1 else 0) for k in range(-9, 10))
        peak = max(none, *(mass(k - count) for k in range(1, 60)))
        assert close(test.peak(count), peak)
        assert close(test.rest(count), 1 - peak)

        band = between_thresholds(itself, -0.5, 2, epsilon).oracle
        law = [1 - at_least(0 - count), sum(mass(k - count) for k in range(3)), at_least(3 - count)]
        assert all(close(band.probability(count, side), part) for side, part in zip(SIDES, law, strict=True))
        assert close(band.peak(count), max(law))
        assert close(band.rest(count), 1 - max(law))


ENUMERATED = {
    "between": (lambda e, s: between_thresholds(itself, -2, 3.5, e, sensitivity=s), lambda v: side(v, -2, 3)),
    "between-one": (lambda e, s: between_thresholds(itself, 4, 4, e, sensitivity=s), lambda v: side(v, 4, 4)),
    "side": (lambda e, s: side_of_threshold(itself, 1.5, e, sensitivity=s), lambda v: SIDES[2 * (v >= 1.5)]),
}
CHANGES = [
    (0, 0, None),
    (0, 2.5, None),
    (3.5, 0.5, None),
    (0.1, 0.3, None),
    (-7, 4, -20),
    (-7, 4, -9),
    (-7, 4, -2.5),
    (-7, 4, 6),
    (2, 40, 5),
    (Fraction(1, 3), Fraction(8, 3), 3),
    (10**18, 3, None),
]


def side(value, low, high):
    return SIDES[(value >= low) + (value > high)]


def change(value, prior, tolerance, threshold):
    if abs(value - Fraction(prior)) <= Fraction(tolerance):
        return UNCHANGED
    return value if threshold is None or value >= threshold else None


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.4, 1), (2.0, 3), (10.0, 1)])
@pytest.mark.parametrize(
    ("make", "rule"),
    [pytest.param(*case, id=name) for name, case in ENUMERATED.items()]
    + [
        pytest.param(
            lambda e, s, case=case: changed(itself, *case[:2], e, threshold=case[2], sensitivity=s),
            lambda v, case=case: change(v, *case),
            id=f"changed-{case}",
        )
        for case in CHANGES
    ],
)
def test_oracles_by_enumeration_of_the_noise(make, rule, epsilon, sensitivity):
    """Every noisy value whose mass is not below e^-200, put through the rule as it is documented."""
    algorithm = make(epsilon, sensitivity)
    reach = math.ceil(200 * sensitivity / epsilon)
    with mpmath.workdps(120):
        mass = noise_by_mpmath(epsilon, sensitivity)
        weights = {k: mass(k) for k in range(-reach, reach + 1)}
        for count in (-31, -12, -11, -7, -3, -1, 0, 1, 2, 4, 5, 9, 43):
            law = Counter()
            for k, weight in weights.items():
                law[rule(count + k)] += weight
            found = {outcome: algorithm.oracle.probability(count, outcome) for outcome in law}
            assert found == pytest.approx(
                {outcome: float(truth) for outcome, truth in law.items()}, rel=1e-12, abs=1e-60
            )
            top = max(law.values())
            assert algorithm.oracle.peak(count) == pytest.approx(float(top), rel=1e-12)
            assert algorithm.oracle.rest(count) == pytest.approx(float(1 - top), rel=1e-12, abs=1e-60)


@pytest.mark.parametrize("case", CHANGES, ids=str)
def test_what_is_published_of_each_noisy_value(monkeypatch, case):
    algorithm = changed(itself, *case[:2], 1.0, threshold=case[2])
    monkeypatch.setattr("targetcharge.mechanisms.noise.discrete_laplace", lambda entropy, _: entropy)
    for value in [*range(-60, 60), *range(10**18 - 9, 10**18 + 9)]:
        published, expected = algorithm.run(5, value - 5), change(value, *case)
        assert (type(published), published) == (type(expected), expected)


def test_which_side_is_published_of_each_noisy_value(monkeypatch):
    monkeypatch.setattr("targetcharge.mechanisms.noise.discrete_laplace", lambda entropy, _: entropy)
    for threshold in (-3, 2, 1.5, Fraction(10**20 + 1, 10**20)):
        algorithm = side_of_threshold(itself, threshold, 1.0)
        for value in range(-9, 10):
            assert algorithm.run(5, value - 5) is (Side.ABOVE if value >= threshold else Side.BELOW)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "monotone"), [(0.3, 1, False), (2.0, 0.75, True), (10, 1e-3, False)]
)
def test_oracle_of_exponential_by_mpmath(scores, epsilon, sensitivity, monotone):
    algorithm = exponential(itself, epsilon, len(scores), sensitivity=sensitivity, monotone=monotone)
    rate = Rate.at_most(epsilon)
    with mpmath.workdps(40):
        factor = mpmath.mpf(rate.numerator) / rate.denominator / (1 if monotone else 2) / mpmath.mpf(sensitivity)
        exact = [mpmath.mpf(Fraction(s).numerator) / Fraction(s).denominator for s in scores]
        weights = [mpmath.exp(factor * (s - max(exact))) for s in exact]
        law = [weight / sum(weights) for weight in weights]
        for index, truth in enumerate(law):
            assert close(algorithm.oracle.probability(scores, index), truth)
        assert close(algorithm.oracle.peak(scores), max(law))
        assert close(algorithm.oracle.rest(scores), sum(sorted(law)[:-1]))


@pytest.mark.parametrize("scores", [*SCORES, (0, 0), (3,), tuple(range(6)), (0, 400, 401, 2)])
@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "monotone"), [(0.3, 1, False), (2.0, 0.75, True), (10, 1e-3, False)]
)
def test_oracle_of_permute_and_flip_by_all_orders(scores, epsilon, sensitivity, monotone):
    algorithm = permute_and_flip(itself, epsilon, len(scores), sensitivity=sensitivity, monotone=monotone)
    rate = Rate.at_most(epsilon)
    with mpmath.workdps(40):
        factor = mpmath.mpf(rate.numerator) / rate.denominator / (1 if monotone else 2) / mpmath.mpf(sensitivity)
        exact = [mpmath.mpf(Fraction(s).numerator) / Fraction(s).denominator for s in scores]
        taken = [mpmath.exp(factor * (s - max(exact))) for s in exact]
        law = [mpmath.mpf(0)] * len(scores)
        for order in itertools.permutations(range(len(scores))):
            left = mpmath.mpf(1) / math.factorial(len(scores))
            for index in order:
                law[index] += left * taken[index]
                left *= 1 - taken[index]
        for index, truth in enumerate(law):
            assert close(algorithm.oracle.probability(scores, index), truth)
        assert close(algorithm.oracle.rest(scores), sum(sorted(law)[:-1]))


@pytest.mark.parametrize("scores", [tuple(range(40)), (0,) * 300, (0, 10**6), (7,) * 3 + (0,) * 50])
def test_permute_and_flip_is_noisy_max_with_exponential_noise(scores):
    """By quadrature of the density of the winner's noise; and it errs less than the exponential mechanism."""
    rate, best = 0.35, max(scores)
    flip, other = (make(itself, 2 * rate, len(scores)).oracle for make in (permute_and_flip, exponential))
    law = [flip.probability(scores, index) for index in range(len(scores))]
    assert abs(math.fsum(law) - 1) < 1e-12
    noise = np.linspace(0, 60 / rate, 20_001)
    for index in {0, len(scores) // 2, len(scores) - 1}:
        above = noise + float(best - scores[index])
        beaten = [-np.expm1(-rate * (above + float(scores[index] - score))) for score in scores]
        density = rate * np.exp(-rate * above) * np.prod(np.delete(beaten, index, axis=0), axis=0)
        assert law[index] == pytest.approx(simpson(density, x=noise), rel=1e-6, abs=1e-12)
    error = math.fsum(mass * (best - score) for mass, score in zip(law, scores, strict=True))
    worse = math.fsum(other.probability(scores, i) * (best - score) for i, score in enumerate(scores))
    assert error <= worse * (1 + 1e-12)


def test_permute_and_flip_has_no_oracle_where_the_law_takes_too_long():
    assert permute_and_flip(itself, 0.1, 5000).oracle is None


@pytest.mark.parametrize("scores", INTEGERS[:2])
def test_oracle_of_noisy_max_by_all_triples_of_noise(scores):
    algorithm = noisy_max(itself, 2.0, 3)
    reach = np.arange(-45, 46)
    mass = np.exp(-np.abs(reach)) * math.tanh(0.5)
    weights = mass[:, None, None] * mass[None, :, None] * mass[None, None, :]
    noise = np.stack(np.meshgrid(reach, reach, reach, indexing="ij"))
    winner = np.argmax(noise + np.array(scores)[:, None, None, None], axis=0)
    for index in range(3):
        assert abs(algorithm.oracle.probability(scores, index) - weights[winner == index].sum()) < 1e-12


@pytest.mark.parametrize("epsilon", [0.02, 0.5, 9.0])
@pytest.mark.parametrize("scores", [*INTEGERS, (0, 10**6), (0, 2**70, 2**70 + 1), tuple(range(40))])
def test_laws_of_noisy_max_add_up(epsilon, scores):
    oracle = noisy_max(itself, epsilon, len(scores)).oracle
    law = [oracle.probability(scores, index) for index in range(len(scores))]
    assert abs(math.fsum(law) - 1) < 1e-12
    assert oracle.peak(scores) == max(law)
    assert abs(oracle.rest(scores) + oracle.peak(scores) - 1) < 1e-12
    for i, j in itertools.combinations(range(len(scores)), 2):
        assert law[i] <= law[j] + 1e-15 or scores[i] >= scores[j]  # of equals the first is ahead


def test_no_oracle_where_the_law_takes_too_long():
    assert noisy_max(itself, 1e-6, 3).oracle is None
    assert noisy_max(itself, 0.1, 5000).oracle is None


def test_outcomes_that_cannot_be_have_probability_0():
    assert noisy_count(itself, 1.0).oracle.probability(1, True) == 0
    assert noisy_count(itself, 1.0).oracle.probability(1, None) == 0
    assert above_threshold(itself, 5, 1.0).oracle.probability(9, 4) == 0
    assert between_thresholds(itself, 0, 1, 1.0).oracle.probability(0, "between") == 0
    assert side_of_threshold(itself, 0, 1.0).oracle.probability(0, "above") == 0
    assert side_of_threshold(itself, 0, 1.0).oracle.probability(0, Side.BETWEEN) == 0
    change = changed(itself, 5, 1, 1.0).oracle
    assert [change.probability(5, outcome) for outcome in (4, 6, None, True, 9.0, BOUNDARY)] == [0] * 6
    assert changed(itself, 5, 1, 1.0, threshold=9).oracle.probability(5, 8) == 0
    assert exponential(itself, 1.0, 2).oracle.probability((0, 0), True) == 0
    assert exponential(itself, 1.0, 2).oracle.probability((0, 0), BOUNDARY) == 0


@pytest.mark.parametrize("far", [10**20, -(10**20), 10**400, -(10**400)], ids=["up", "down", "far up", "far down"])
def test_far_counts_do_not_overflow(far):
    band = between_thresholds(itself, 0, 9, 0.1)
    change = [changed(itself, 5, 2, 0.1, threshold=threshold) for threshold in (None, -9, 6, 90)]
    side = side_of_threshold(itself, 5, 0.1)
    for algorithm in (noisy_count(itself, 0.1), above_threshold(itself, 5, 0.1), band, side, *change):
        assert 0 < algorithm.oracle.peak(far) <= 1
        assert 0 <= algorithm.oracle.rest(far) < 1
    assert exponential(itself, 0.1, 2).oracle.peak((0, far)) == 1
    assert noisy_max(itself, 0.1, 2).oracle.peak((0, far)) == pytest.approx(1, abs=1e-12)
