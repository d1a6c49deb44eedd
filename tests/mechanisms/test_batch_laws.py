"""Batches: each test has the law of an above-threshold test of its own, whatever the others are."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from tests.discrete_laplace import DiscreteLaplace
from tests.goodness import DRAWS, BufferedEntropy, draws_to_tell, pvalue, towards

import targetcharge as tc
from targetcharge.mechanisms import above_threshold, batch_by_key, batch_by_name
from targetcharge.mechanisms.gauge import grid
from targetcharge.mechanisms.noise import rate_for

COUNTS = [7, 0, -3, 12, 7]
KEYS = ["a", "b", "c", "d", "e"]
REPEATED = 2000
MANY = range(REPEATED * len(COUNTS))
"""Keys of a batch with each of the counts many times: large arrays are drawn quickly."""
WINDOW = range(-400, 401)


def itself(data):
    return data


def published(tests, times, seed=1):
    """Return, for each of the counts, how often each outcome is published."""
    entropy, found = BufferedEntropy(seed), [Counter() for _ in COUNTS]
    for _ in range(times // REPEATED):
        drawn = tests.drawing.draw(COUNTS * REPEATED, entropy)
        told = [steps if steps >= least else None for steps, least in zip(drawn, tests.drawing.least, strict=True)]
        for place, counted in enumerate(found):
            counted.update(told[place :: len(COUNTS)])
    return found


def law(algorithm, count):
    chances = {outcome: algorithm.oracle.probability(count, outcome) for outcome in (None, *WINDOW)}
    return {outcome: chance for outcome, chance in chances.items() if chance > 0}


# The law.


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.3, 1), (0.9, 3)])
def test_each_test_has_the_law_of_an_above_threshold_test_and_no_other_scale(epsilon, sensitivity):
    found = published(batch_by_key(itself, MANY, 8.5, epsilon, sensitivity=sensitivity), DRAWS)
    single = above_threshold(itself, 8.5, epsilon, sensitivity=sensitivity)
    for count, counted in zip(COUNTS, found, strict=True):
        assert pvalue(counted, law(single, count)) > 1e-9
    for factor in (1.05, 1 / 1.05):
        wrong = above_threshold(itself, 8.5, epsilon * factor, sensitivity=sensitivity)
        laws = [(law(wrong, count), law(single, count)) for count in COUNTS]
        assert min(map(draws_to_tell, *zip(*laws, strict=True))) < DRAWS
        assert min(towards(counted, *pair) for counted, pair in zip(found, laws, strict=True)) < 1e-9


def test_a_batch_has_the_law_of_tests_with_thresholds_of_their_own():
    limits = [8.5, -2, 0, 30, 7]
    found = published(batch_by_name(itself, [str(key) for key in MANY], limits * REPEATED, 0.3), DRAWS)
    for limit, count, counted in zip(limits, COUNTS, found, strict=True):
        assert pvalue(counted, law(above_threshold(itself, limit, 0.3), count)) > 1e-9
    assert pvalue(found[0], law(above_threshold(itself, 9.5, 0.3), COUNTS[0])) < 1e-9


def test_the_noise_of_one_test_tells_nothing_of_the_others():
    tests, entropy = batch_by_key(itself, range(400), 0, 0.5), BufferedEntropy(2)
    drawn = np.array([tests.drawing.draw([0] * 400, entropy) for _ in range(DRAWS // 250)])
    parts = np.clip(drawn.reshape(-1, 5), -2, 2)  # neighbours in the array, and in time
    for first, second in itertools.combinations(range(5), 2):
        table = np.zeros((5, 5))
        np.add.at(table, (parts[:, first] + 2, parts[:, second] + 2), 1)
        assert chi2_contingency(table).pvalue > 1e-9
    again = np.zeros((5, 5))  # and the search would find it if one test took the noise of another now and then
    copied = parts[:, 1].copy()
    copied[::20] = parts[::20, 0]
    np.add.at(again, (parts[:, 0] + 2, copied + 2), 1)
    assert chi2_contingency(again).pvalue < 1e-9


def test_no_draw_repeats_another():
    tests = batch_by_key(itself, range(300), 0, 0.01)
    entropy = tc.randomness.SystemEntropy()
    first, second = (tests.drawing.draw([0] * 300, entropy) for _ in range(2))
    assert first != second
    assert len(set(first)) > 100


def test_the_law_of_a_test_does_not_depend_on_how_many_there_are():
    noise = DiscreteLaplace.of(rate_for(0.4, 1))
    truth = {k: noise.mass(k) for k in range(-200, 201)}
    for size, times in ((1, DRAWS // 200), (7, DRAWS // 20), (5000, DRAWS)):
        entropy, found = BufferedEntropy(size), Counter()
        tests = batch_by_key(itself, range(size), 0, 0.4)
        while found.total() < times:
            found.update(tests.drawing.draw([0] * size, entropy))
        assert pvalue(found, truth) > 1e-9


# What is drawn from.


def once(values):
    yield from values


GIVEN = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "array of bytes": lambda values: np.array(values, dtype=np.uint8),
    "list of numpy's": lambda values: [np.int16(value) for value in values],
    "generator": once,
    "keys": dict.fromkeys,
}


@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_counts_come_in_any_collection(give):
    drawn = batch_by_key(give, [1, 2, 3], 0, 10.0).drawing.draw([100, 0, 250], BufferedEntropy(1))
    assert [type(each) for each in drawn] == [int] * 3
    assert all(abs(found - count) < 30 for found, count in zip(drawn, [100, 0, 250], strict=True))


@pytest.mark.parametrize(
    "counts",
    [[1, 2], [1, 2, 3, 4], [], [1, 2.5, 3], [1, None, 3], ["1", "2", "3"], [1, math.nan, 2], 7, None, "abc"],
    ids=repr,
)
def test_counts_that_are_not_one_integer_for_each_test_are_not_drawn_from(counts):
    with pytest.raises((TypeError, ValueError)):
        batch_by_key(lambda _: counts, [1, 2, 3], 0, 1.0).drawing.draw(None, BufferedEntropy(1))


def test_counts_beyond_64_bits_are_exact():
    drawn = batch_by_key(itself, [1], 0, 10.0).drawing.draw([2**80], BufferedEntropy(1))
    assert abs(drawn[0] - 2**80) < 30


def test_the_data_is_touched_once_for_all_tests():
    calls = []
    tests = batch_by_key(lambda data: calls.append(data) or [0] * 50, range(50), 0, 1.0)
    assert calls == []
    tests.drawing.draw("data", BufferedEntropy(1))
    assert calls == ["data"]


# What they declare.


def test_declarations():
    tests = batch_by_key(itself, KEYS, 8.5, 0.3, sensitivity=2, name="beds")
    assert len(tests) == 5
    assert tests.keys == tuple(KEYS)
    assert tests.drawing.least == (9,) * 5
    for test in tests.algorithms:
        assert (test.name, test.epsilon, test.delta) == ("beds", 0.3, 0.0)
        assert test.default_target == tc.NotPrior(None)
        assert test.accuracy.interval(None) == (None, 8 + test.accuracy.margin)
        with pytest.raises(AssertionError, match="drawn together"):
            test.run(None, BufferedEntropy(1))
    assert batch_by_key(itself, KEYS, 1, 0.3).algorithms[0].name == "batch_by_key(itself)"
    names = [test.name for test in batch_by_name(itself, ["x", "y"], [1, 2], 0.3).algorithms]
    assert names == ["x", "y"]


def test_thresholds_and_counts_are_in_what_the_gauge_shows_and_steps():
    tests = batch_by_key(itself, ["a"], 12.3, 10.0, sensitivity=1, gauge=grid(Fraction(1, 100)))
    assert tests.drawing.least == (1230,)
    assert tests.algorithms[0].accuracy.scale == pytest.approx(0.001, rel=1e-6)
    low, high = tests.algorithms[0].accuracy.interval(12.5)
    assert (low, high) == (12.5, 12.5)  # at ε 10 the noise is 0 in 95% of draws


@pytest.mark.parametrize(
    "keys", [[(1, "a"), (1, "b")], [True, False], [1.5, 2.5], [None, "x"], range(3), (b"a", "a")]
)
def test_keys_of_all_kinds(keys):
    assert batch_by_key(itself, keys, 0, 1.0).keys == tuple(keys)


# Bad input.

BAD = [
    ("counts", {"counts": 5}),
    ("counts", {"counts": [1, 2]}),
    ("keys", {"keys": []}),
    ("keys", {"keys": ["a", "a"]}),
    ("keys", {"keys": [1, True]}),
    ("keys", {"keys": [0.0, -0.0]}),
    ("keys", {"keys": [1, 1.0]}),
    ("keys", {"keys": [math.nan]}),
    ("keys", {"keys": [{}]}),
    ("keys", {"keys": [object]}),
    ("keys", {"keys": 5}),
    ("keys", {"keys": None}),
    ("keys", {"keys": "abc"}),
    ("keys", {"keys": {"a": 1}}),
    ("threshold", {"threshold": math.nan}),
    ("threshold", {"threshold": math.inf}),
    ("threshold", {"threshold": -math.inf}),
    ("threshold", {"threshold": "9"}),
    ("threshold", {"threshold": None}),
    ("threshold", {"threshold": True}),
    ("threshold", {"threshold": 2**54}),
    ("threshold", {"threshold": 1j}),
    ("epsilon", {"epsilon": 0}),
    ("epsilon", {"epsilon": -1.0}),
    ("epsilon", {"epsilon": math.nan}),
    ("epsilon", {"epsilon": 10.5}),
    ("epsilon", {"epsilon": "1"}),
    ("epsilon", {"epsilon": 1e-9, "sensitivity": 2}),
    ("sensitivity", {"sensitivity": 0}),
    ("sensitivity", {"sensitivity": 1.5}),
    ("sensitivity", {"sensitivity": -1}),
    ("sensitivity", {"sensitivity": True}),
    ("name", {"name": ""}),
    ("name", {"name": 7}),
]
GOOD = {"counts": itself, "keys": ["a", "b"], "threshold": 5, "epsilon": 0.5}


@pytest.mark.parametrize(("name", "changes"), BAD, ids=lambda each: str(each)[:60].replace("\n", " "))
def test_bad_input_is_refused_by_name(name, changes):
    with pytest.raises(tc.InvalidParameter) as caught:
        batch_by_key(**(GOOD | changes))
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("counts", (None, ["a"], [1], 0.5)),
        ("names", (itself, [], [], 0.5)),
        ("names", (itself, "ab", [1, 2], 0.5)),
        ("names", (itself, 7, [1], 0.5)),
        ("name", (itself, ["a", ""], [1, 2], 0.5)),
        ("name", (itself, ["a", None], [1, 2], 0.5)),
        ("thresholds", (itself, ["a", "b"], [1], 0.5)),
        ("thresholds", (itself, ["a"], [1, 2], 0.5)),
        ("thresholds", (itself, ["a"], 1, 0.5)),
        ("threshold", (itself, ["a", "b"], [1, math.nan], 0.5)),
        ("threshold", (itself, ["a"], ["1"], 0.5)),
        ("epsilon", (itself, ["a"], [1], 0)),
    ],
    ids=lambda each: each if isinstance(each, str) else str(each[1:]),
)
def test_bad_input_of_a_batch_is_refused_by_name(name, arguments):
    with pytest.raises(tc.InvalidParameter) as caught:
        batch_by_name(*arguments)
    assert caught.value.name == name
