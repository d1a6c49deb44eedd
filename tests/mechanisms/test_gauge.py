"""Gauges: value, steps, least and most agree with each other; a sketch's estimate and blur with simulations."""

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import BufferedEntropy
from tests.sizes import size

from targetcharge.mechanisms import above_threshold, changed, noisy_count
from targetcharge.mechanisms.gauge import COUNTED, gauged, grid, occupancy

TRIALS = size(2000, 10_000)

STEPS = {
    "1": Fraction(1),
    "0.01": Fraction(1, 100),
    "0.001": Fraction(1, 1000),
    "1e-6": Fraction(1, 10**6),
    "1/3": Fraction(1, 3),
    "2.5": Fraction(5, 2),
    "7": Fraction(7),
    "1e9": Fraction(10**9),
}
BUCKETS = [2**14, 2**17, 2**20, 2**30]


def itself(data):
    return data


GAUGES = [
    pytest.param(COUNTED, 2**53, id="counted"),
    *(pytest.param(grid(step), 2**50, id=f"grid-{name}") for name, step in STEPS.items()),
    *(pytest.param(occupancy(buckets), buckets - 1, id=f"occupancy-{buckets}") for buckets in BUCKETS),
]


def some_steps(end, seed=1):
    """Return numbers of steps of all sizes, of both signs, below an end."""
    rng = random.Random(seed)
    sizes = [2**power for power in range(1, end.bit_length())]
    found = {0, 1, -1, end - 1, 1 - end, *(rng.randrange(size) for size in sizes for _ in range(40))}
    return sorted(found | {-each for each in found})


@pytest.mark.parametrize(("gauge", "end"), GAUGES)
def test_steps_are_what_their_value_stands_for(gauge, end):
    for steps in some_steps(end):
        value = gauge.value(steps)
        assert gauge.steps(value) == steps
        assert gauge.least(value) == steps
        assert gauge.most(value) == steps


@pytest.mark.parametrize(("gauge", "end"), GAUGES)
def test_values_increase(gauge, end):
    values = [gauge.value(steps) for steps in some_steps(end)]
    assert all(first < second for first, second in itertools.pairwise(values))


@pytest.mark.parametrize(("gauge", "end"), GAUGES)
def test_least_is_the_fewest_steps_worth_a_value_and_most_the_most(gauge, end):
    rng = random.Random(7)
    for steps in some_steps(end // 2):
        low, high = gauge.value(steps - 1), gauge.value(steps + 1)
        for wanted in (low, high, low + (high - low) * rng.random(), math.nextafter(float(high), math.inf)):
            least, most = gauge.least(wanted), gauge.most(wanted)
            assert gauge.value(least) >= wanted > gauge.value(least - 1)
            assert gauge.value(most) <= wanted < gauge.value(most + 1)


@pytest.mark.parametrize("digits", [1, 2, 3, 6])
def test_a_decimal_threshold_is_the_number_that_was_written(digits):
    """12.3 is a double, a little more or less than it: that must not move the threshold by a step."""
    gauge = grid(Fraction(1, 10**digits))
    rng = random.Random(digits)
    for steps in [*range(-1000, 1000), *(rng.randrange(10**12) for _ in range(1000))]:
        written = float(Decimal(steps).scaleb(-digits))
        assert gauge.least(written) == gauge.most(written) == steps


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_grid_is_exact_where_it_is_whole_and_else_the_nearest_double(step):
    gauge = grid(step)
    for steps in some_steps(2**40):
        value, exact = gauge.value(steps), steps * step
        assert (type(value) is int) == (exact.denominator == 1)
        assert value == exact if type(value) is int else abs(Fraction(value) - exact) <= abs(exact) / 2**53
        assert gauge.blur(steps) == 0
    assert gauge.full is None


# Sketches.


def taken(buckets, values, trials, seed):
    """Return how many buckets are taken by so many values, in each of many trials."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(trials):
        marked = np.zeros(buckets, dtype=bool)
        marked[rng.integers(0, buckets, values)] = True
        found.append(int(marked.sum()))
    return np.array(found)


LOADS = [0.02, 1 / 16, 0.5, 1.0, 3.0]


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_a_sketch_estimates_the_number_of_values_and_no_other(load):
    buckets = 2**12
    gauge, values = occupancy(buckets), round(load * buckets)
    estimates = np.array([gauge.value(int(each)) for each in taken(buckets, values, TRIALS, seed=3)])
    error = estimates.std() / math.sqrt(TRIALS)
    bias = (math.exp(load) - load - 1) / 2  # of linear counting, and 1/2 for rounding
    assert abs(estimates.mean() - values) <= 6 * error + bias + 0.5
    assert abs(estimates.mean() - 1.05 * values) > 6 * error + bias + 0.5


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_a_sketch_is_off_by_its_blur_in_few_trials_and_by_a_quarter_of_it_in_many(load):
    buckets = 2**12
    gauge, values = occupancy(buckets), round(load * buckets)
    found = taken(buckets, values, TRIALS, seed=4)
    expected = -buckets * math.expm1(values * math.log1p(-1 / buckets))
    blurs = np.array([gauge.blur(int(each)) for each in found])
    slack = 4 * math.sqrt(0.05 * 0.95 / TRIALS)
    assert np.mean(np.abs(found - expected) <= blurs) >= 0.95 - slack
    assert np.mean(np.abs(found - expected) <= blurs / 4) < 0.8


@pytest.mark.parametrize("load", [0.02, 1 / 16, 1.0, 4.0, 7.0, 8.5, 10.0, 30.0], ids=str)
def test_the_interval_of_a_noisy_sketch_holds_the_number_of_values(load):
    buckets, epsilon = 2**11, 0.2
    values = round(load * buckets)
    algorithm = gauged(above_threshold(itself, -(10**6), epsilon), occupancy(buckets))
    entropy, inside, open_above = BufferedEntropy(5), 0, 0
    for each in taken(buckets, values, TRIALS, seed=6):
        low, high = algorithm.accuracy.interval(algorithm.run(int(each), entropy))
        inside += low <= values and (high is None or values <= high)
        open_above += high is None
    assert inside / TRIALS >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / TRIALS)
    if load <= 1:
        assert open_above == 0
    if load > 8:
        assert open_above / TRIALS > 0.9


def test_a_full_sketch_says_no_more_than_that_there_are_many():
    accuracy = gauged(noisy_count(itself, 0.1), occupancy(2**14)).accuracy
    low, high = accuracy.interval(occupancy(2**14).value(2**14 + 500))
    assert low > 2**14
    assert high is None


def test_a_sketch_below_nothing_is_shown_as_it_is():
    gauge = occupancy(2**14)
    assert [gauge.value(steps) for steps in (-70, -1, 0, 1)] == [-70, -1, 0, 1]
    assert [gauge.least(value) for value in (-70, -0.5, 0, 0.5)] == [-70, 0, 0, 1]
    assert gauge.blur(-5) == gauge.blur(0) == 0


# Algorithms through gauges.


def test_the_integers_of_an_algorithm_are_shown_through_a_gauge_and_nothing_else_is_touched():
    cents = grid(Fraction(1, 100))
    plain = changed(itself, 500, 20, 0.2, threshold=100, name="fares")
    shown = gauged(plain, cents)
    for data in (-1000, 500, 90, 10_001):
        outcomes = [[each.run(data, BufferedEntropy(seed)) for seed in range(200)] for each in (plain, shown)]
        assert outcomes[1] == [cents.value(each) if type(each) is int else each for each in outcomes[0]]
    assert (shown.name, shown.epsilon, shown.delta) == ("fares", 0.2, 0.0)
    assert shown.default_target == plain.default_target
    assert shown.oracle is None  # it tells the probabilities of steps, not of what is published


def test_counts_need_no_gauge():
    algorithm = noisy_count(itself, 0.2)
    assert gauged(algorithm, COUNTED) is algorithm


def test_true_and_false_are_no_integers_to_be_shown():
    algorithm = gauged(noisy_count(itself, 0.2), grid(Fraction(1, 100)))
    assert algorithm.accuracy.interval(outcome=True) is None
