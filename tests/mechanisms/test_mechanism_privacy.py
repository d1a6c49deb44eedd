"""No outcome's probability changes by more than e^ε between neighbours, by the oracle of the law that is drawn."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from targetcharge import UNCHANGED, Between, Side
from targetcharge.accounting import best_q
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

ROUNDING = 1 + 1e-9
EPSILONS = (0.01, 0.1, 1.0, 5.0)
SIDES = (Side.BELOW, Side.BETWEEN, Side.ABOVE)


def itself(data):
    return data


def worst_ratio(algorithm, pairs, outcomes):
    """Return the largest |ln(law/law')| over pairs of data and outcomes."""
    worst = 0.0
    for data, neighbour in pairs:
        for outcome in outcomes:
            mass, other = (algorithm.oracle.probability(each, outcome) for each in (data, neighbour))
            worst = max(worst, abs(math.log(mass / other)))
    return worst


def test_power_the_ratio_of_other_noise_is_seen():
    louder = noisy_count(itself, 0.105)
    assert worst_ratio(louder, [(0, 1)], range(-9, 10)) > 0.1 * ROUNDING


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 7, 49])
def test_counts(epsilon, sensitivity):
    pairs = [(count, count + step) for count in range(-4, 5) for step in range(1, sensitivity + 1)]
    plain = noisy_count(itself, epsilon, sensitivity=sensitivity)
    assert 0.999 * epsilon <= worst_ratio(plain, pairs, range(-60, 60)) <= epsilon * ROUNDING
    test = above_threshold(itself, 1.5, epsilon, sensitivity=sensitivity)
    assert 0.999 * epsilon <= worst_ratio(test, pairs, [None, *range(2, 60)]) <= epsilon * ROUNDING
    if sensitivity == 1:
        assert worst_ratio(test, [(1, 2)], [None]) == pytest.approx(epsilon, rel=1e-6)  # randomised response


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 7])
def test_sides(epsilon, sensitivity):
    pairs = [(count, count + step) for count in range(-30, 31) for step in range(1, sensitivity + 1)]
    side = side_of_threshold(itself, 0.5, epsilon, sensitivity=sensitivity)
    assert 0.9 * epsilon <= worst_ratio(side, pairs, (Side.BELOW, Side.ABOVE)) <= epsilon * ROUNDING
    if sensitivity == 1:
        both = [worst_ratio(side, [(0, 1)], [one]) for one in (Side.BELOW, Side.ABOVE)]
        assert both == pytest.approx([epsilon] * 2, rel=1e-6)  # randomised response


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("threshold", [None, -9, 1, 2.5, 12])
def test_changes(epsilon, sensitivity, threshold):
    pairs = [(count, count + step) for count in range(-12, 20) for step in range(1, sensitivity + 1)]
    change = changed(itself, 1, 2.5, epsilon, threshold=threshold, sensitivity=sensitivity)
    marks = [UNCHANGED] if threshold is None else [UNCHANGED, None]
    published = [k for k in range(-40, 40) if abs(k - 1) > 2 and (threshold is None or k >= threshold)]
    assert 0.999 * epsilon <= worst_ratio(change, pairs, published) <= epsilon * ROUNDING
    assert worst_ratio(change, pairs, marks) <= epsilon * ROUNDING


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [2, 3, 7])
@pytest.mark.parametrize("width", [1, 2, 5, 21])
def test_bands_of_sums(epsilon, sensitivity, width):
    target = Between(0.5, width + 0.5, sensitivity)
    algorithm = between_thresholds(itself, target.low, target.high, epsilon, sensitivity=sensitivity)
    assert algorithm.default_target == target
    reach = min(math.ceil(12 * sensitivity / epsilon), 60)
    counts = range(-reach, width + reach)
    laws = {count: [algorithm.oracle.probability(count, side) for side in SIDES] for count in counts}
    pairs = [(count, count + step) for step in range(1, sensitivity + 1) for count in counts[:-step]]
    assert worst_ratio(algorithm, pairs, SIDES) <= epsilon * ROUNDING
    members = [side in target for side in SIDES]
    smallest = min(best_q(laws[one], laws[other], members, epsilon) for one, other in pairs)
    declared = target.kind(epsilon).q
    assert declared * (1 - 1e-9) <= smallest
    assert smallest == pytest.approx(declared, rel=1e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("width", [1, 2, 5, 21])
def test_bands(epsilon, width):
    target = Between(0.5, width + 0.5)
    algorithm = between_thresholds(itself, target.low, target.high, epsilon)
    assert algorithm.default_target == target
    assert target.width == width
    reach = math.ceil(12 / epsilon)  # beyond it the rounding of the sure side hides the hits from best_q
    counts = range(-min(reach, 60), width + min(reach, 60))
    assert 0.99 * epsilon <= worst_ratio(algorithm, itertools.pairwise(counts), SIDES) <= epsilon * ROUNDING
    laws = [[algorithm.oracle.probability(count, side) for side in SIDES] for count in counts]
    members = [side in target for side in SIDES]
    smallest = min(best_q(*pair, members, epsilon) for pair in itertools.pairwise(laws))
    declared = target.kind(epsilon).q
    assert declared * (1 - 1e-9) <= smallest
    assert smallest == pytest.approx(declared, rel=1e-5)


def moves(count, sensitivity, *, monotone):
    """Yield what adding or removing a unit may do to the scores, at its extremes."""
    steps = (0, sensitivity) if monotone else (-sensitivity, 0, sensitivity)
    return itertools.product(steps, repeat=count)


SELECTIONS = [(0, 0), (0, 3), (0, 1, 2), (2, 1, 0), (0, 0, 0), (0, 4, 4)]


@pytest.mark.parametrize("make", [exponential, noisy_max, permute_and_flip])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.1, 1), (0.5, 2), (1.0, 1), (5.0, 3)])
def test_selections(make, monotone, epsilon, sensitivity):
    for scores in SELECTIONS:
        algorithm = make(itself, epsilon, len(scores), sensitivity=sensitivity, monotone=monotone)
        pairs = [
            (scores, tuple(map(sum, zip(scores, move, strict=True))))
            for move in moves(len(scores), sensitivity, monotone=monotone)
        ]
        assert worst_ratio(algorithm, pairs, range(len(scores))) <= epsilon * ROUNDING


@pytest.mark.parametrize("make", [exponential, noisy_max, permute_and_flip])
@pytest.mark.parametrize("monotone", [False, True])
def test_selections_attain_their_epsilon(make, monotone):
    """Four far better candidates, which rise while the last falls (or stays, if scores move the same way)."""
    epsilon = 0.5
    far = round(40 / epsilon)
    algorithm = make(itself, epsilon, 5, monotone=monotone)
    pair = ((far,) * 4 + (0,), (far + 1,) * 4 + ((0,) if monotone else (-1,)))
    worst = worst_ratio(algorithm, [pair], [4])
    assert 0.99 * epsilon <= worst <= epsilon * ROUNDING


@pytest.mark.parametrize("make", [exponential, noisy_max, permute_and_flip])
def test_scores_that_are_not_monotone_need_the_factor_two(make):
    algorithm = make(itself, 0.5, 5, monotone=True)
    assert worst_ratio(algorithm, [((80,) * 4 + (0,), (81,) * 4 + (-1,))], [4]) > 0.9


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("make", [exponential, noisy_max, permute_and_flip])
def test_random_scores(epsilon, make):
    rng = np.random.default_rng(7)
    for _ in range(60):
        count = int(rng.integers(2, 7))
        scores = rng.integers(-6, 7, count)
        other = scores + rng.integers(-1, 2, count)
        algorithm = make(itself, epsilon, count)
        assert worst_ratio(algorithm, [(scores, other)], range(count)) <= epsilon * ROUNDING


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1 / 3, 1e-6])
@pytest.mark.parametrize("sensitivity", [1, 3, 7, 10, 49, 97])
def test_rates_never_exceed_the_quotient(epsilon, sensitivity):
    noise = noisy_count(itself, epsilon, sensitivity=sensitivity).oracle.noise
    assert Fraction(noise.rate) * sensitivity <= Fraction(epsilon)
    assert noise.rate * sensitivity >= epsilon * (1 - 1e-6)
