"""Every factory refuses bad parameters by name and value, and bad data breaks the run."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import BufferedEntropy
from tests.refusals import every

import targetcharge as tc
from targetcharge.mechanisms import (
    Algorithm,
    above_threshold,
    between_thresholds,
    changed,
    exponential,
    noisy_count,
    noisy_max,
    permute_and_flip,
    side_of_threshold,
)

BAD_EPSILON = [math.nan, math.inf, 0.0, -0.1, 10.1, 1e-12, "0.1", None, True, 1j, [0.1]]
BAD_SENSITIVITY = [0, -1, math.nan, math.inf, "1", None, True, 1j]
BAD_INTEGER = [1.0, 2.5, Fraction(3, 2)]
BAD_THRESHOLD = [math.nan, math.inf, -math.inf, 2.0**54, -(10**400), "5", None, True]
BAD_FINITE = [math.nan, math.inf, -math.inf, -(10**400), "5", None, True, 1j, tc.UNCHANGED]
BAD_FUNCTION = [None, 3, "len", [1]]
BAD_OUTCOMES = [0, -1, 2.0, None, True, "ab", b"ab", [], {1, 2}, [1, 1], [1, True], [0.0, -0.0], [math.nan, 1]]
BAD_OUTCOMES += [
    [object()],
    [{}],
    ["below", tc.Side.BELOW],
    [tc.BOUNDARY, 1],
    [1, tc.UNCHANGED],
    np.array([1, 1]),
    {"a": 1},
    range(0),
]
BAD_NAME = ["", "  ", 3, b"name"]
BAD_FLAG = [1, 0, None, "yes"]

SELECTION = {
    "epsilon": BAD_EPSILON,
    "outcomes": BAD_OUTCOMES,
    "monotone": BAD_FLAG,
    "scores": BAD_FUNCTION,
    "name": BAD_NAME,
}
COUNTING = {"count": BAD_FUNCTION, "epsilon": BAD_EPSILON, "name": BAD_NAME}
TABLE = [
    (noisy_count, {"count": len, "epsilon": 0.1}, COUNTING | {"sensitivity": BAD_SENSITIVITY + BAD_INTEGER}),
    (
        above_threshold,
        {"count": len, "threshold": 5, "epsilon": 0.1},
        COUNTING | {"sensitivity": BAD_SENSITIVITY + BAD_INTEGER, "threshold": BAD_THRESHOLD},
    ),
    (
        between_thresholds,
        {"count": len, "low": 5, "high": 9, "epsilon": 0.1},
        COUNTING
        | {
            "low": BAD_THRESHOLD,
            "high": [*BAD_THRESHOLD, 4],
            "sensitivity": BAD_SENSITIVITY + BAD_INTEGER,
        },
    ),
    (
        side_of_threshold,
        {"count": len, "threshold": 5, "epsilon": 0.1},
        COUNTING | {"sensitivity": BAD_SENSITIVITY + BAD_INTEGER, "threshold": BAD_THRESHOLD},
    ),
    (
        changed,
        {"count": len, "prior": 5.5, "tolerance": 2, "epsilon": 0.1, "threshold": 3},
        COUNTING
        | {
            "prior": BAD_FINITE,
            "tolerance": [*BAD_FINITE, -1, -1e-300, 0, 0.49, Fraction(49, 100)],
            "threshold": [bad for bad in BAD_THRESHOLD if bad is not None],
            "sensitivity": BAD_SENSITIVITY + BAD_INTEGER,
        },
    ),
    (exponential, {"scores": len, "epsilon": 0.1, "outcomes": 2}, SELECTION | {"sensitivity": BAD_SENSITIVITY}),
    (
        permute_and_flip,
        {"scores": len, "epsilon": 0.1, "outcomes": 2},
        SELECTION | {"sensitivity": BAD_SENSITIVITY},
    ),
    (
        noisy_max,
        {"scores": len, "epsilon": 0.1, "outcomes": 2},
        SELECTION | {"sensitivity": BAD_SENSITIVITY + BAD_INTEGER},
    ),
    (
        tc.private,
        {"epsilon": 0.1},
        {
            "epsilon": [*BAD_EPSILON, len],
            "delta": [math.nan, -1e-9, 1.0, "0", None],
            "targets": [None, tc.QTarget(0.3, {1}), [tc.NotPrior(0)], [3], "q"],
            "name": BAD_NAME,
        },
    ),
]


@pytest.mark.parametrize(("make", "good", "bad"), TABLE, ids=[make.__name__ for make, *_ in TABLE])
def test_refused_by_name_and_value(make, good, bad):
    def is_refused(name, value):
        with pytest.raises(tc.InvalidParameter) as refusal:
            make(**{**good, name: value})
        told = refusal.value.value
        assert refusal.value.name == name
        assert told is value or repr(told) == repr(value) or isinstance(value, np.ndarray)

    make(**good)
    every([(name, value) for name, values in bad.items() for value in values], is_refused)


def test_a_sensitivity_too_large_for_its_epsilon():
    with pytest.raises(
        tc.InvalidParameter, match=r"epsilon is 1e-06; it must be at least 0\.01 at sensitivity 10000000"
    ):
        noisy_count(len, 1e-6, sensitivity=10**7)
    with pytest.raises(tc.InvalidParameter, match="epsilon is 1e-09"):
        noisy_max(len, 1e-9, 2)
    noisy_max(len, 1e-9, 2, monotone=True)


# Declared functions.


def test_private_without_parentheses():
    with pytest.raises(tc.InvalidParameter, match=r"write @private\(epsilon=0.1\)"):

        @tc.private
        def forgotten(data):
            return data


def test_private_keeps_names_and_takes_entropy_if_asked():
    @tc.private(0.5, 1e-7, targets=[tc.QTarget(0.4, frozenset({1, 2}))])
    def plain(data):
        """Say what it is."""
        return len(data)

    assert isinstance(plain, Algorithm)
    assert (plain.name, plain.epsilon, plain.delta) == ("plain", 0.5, 1e-7)
    assert plain.__doc__ == "Say what it is."
    assert plain.run([1, 2], BufferedEntropy(1)) == 2
    assert plain.supports(tc.NotPrior(3))
    assert plain.supports(tc.Everything())
    assert plain.supports(tc.QTarget(0.4, frozenset({1, 2})))
    assert plain.supports(tc.QTarget(0.3, frozenset({1, 2})))
    assert not plain.supports(tc.QTarget(0.5, frozenset({1, 2})))
    assert not plain.supports(tc.QTarget(0.4, frozenset({1, 3})))
    assert not any(plain.supports(target) for target in (tc.Between(0, 1), tc.Boundary(), tc.Disagreement()))

    named = tc.private(0.5, name="other name")(lambda data, entropy: (data, entropy.word()))
    assert named.name == "other name"
    assert named.run(1, BufferedEntropy(1)) == (1, BufferedEntropy(1).word())


class Callable:
    def __call__(self, data, entropy):
        return data, entropy


def test_private_takes_any_callable():
    assert tc.private(0.1)(len).run([1, 2], None) == 2
    assert tc.private(0.1)(Callable()).run(1, 2) == (1, 2)
    assert tc.private(0.1)(Callable()).name == "Callable"
    assert tc.private(0.1)(functools.partial(pow, 2)).run(3, None) == 8
    assert tc.private(0.1)(max).run([3, 1], None) == 3
    assert tc.private(0.1)(lambda data, scale=2: data * scale).run(3, None) == 6
    assert tc.private(0.1)(lambda *data: data).run(3, None) == (3,)


async def coroutine(data):
    return data


def generator(data):
    yield data


@pytest.mark.parametrize(
    "function",
    [
        lambda: 1,
        lambda data, other: (data, other),
        lambda *, data: data,
        lambda data, entropy, other: (data, entropy, other),
        coroutine,
        generator,
        3,
    ],
)
def test_private_refuses_other_signatures(function):
    with pytest.raises(tc.InvalidParameter, match="function is"):
        tc.private(0.1)(function)


# Names.


def test_names():
    assert noisy_count(len, 0.1).name == "noisy_count(len)"
    assert noisy_count(functools.partial(len), 0.1).name == "noisy_count(partial)"
    assert above_threshold(len, 5, 0.1, name="many").name == "many"
    assert repr(above_threshold(len, 5, 0.1, name="many")) == "<many, epsilon=0.1, delta=0>"


# Declared targets.


def test_default_targets_and_support():
    band = between_thresholds(len, 3, 7, 0.1)
    assert band.default_target == tc.Between(3, 7)
    assert band.supports(tc.Between(3.0, 7))
    assert not band.supports(tc.Between(3, 8))
    assert not band.supports(tc.Between(3, 7, 2))
    sums = between_thresholds(len, 3, 7, 0.1, sensitivity=2)
    assert sums.default_target == tc.Between(3, 7, sensitivity=2)
    assert not sums.supports(tc.Between(3, 7))
    assert above_threshold(len, 3, 0.1).default_target == tc.NotPrior(None)
    for algorithm in (band, noisy_count(len, 0.1), exponential(len, 0.1, 3), permute_and_flip(len, 0.1, 3)):
        assert algorithm.supports(tc.NotPrior(0))
        assert algorithm.supports(tc.Everything())
        assert not any(algorithm.supports(t) for t in (tc.QTarget(0.3, {0}), tc.Boundary(), tc.Disagreement()))


# Data.


@pytest.mark.parametrize("count", [3, True, np.int64(3), np.uint8(3)])
@pytest.mark.parametrize("make", [noisy_count, lambda f, e: above_threshold(f, -(10**6), e)])
def test_integers_of_all_kinds(make, count):
    outcome = make(lambda data: data, 1.0).run(count, BufferedEntropy(1))
    assert type(outcome) is int
    assert abs(outcome - 3) < 60


@pytest.mark.parametrize("count", [3.0, np.float64(3), math.nan, "3", None, [3], Fraction(3)])
def test_counts_that_are_not_integers_break_the_run(count):
    for algorithm in (
        noisy_count(lambda data: data, 1.0),
        above_threshold(lambda data: data, 0, 1.0),
        between_thresholds(lambda data: data, 0, 1, 1.0),
        side_of_threshold(lambda data: data, 0, 1.0),
        changed(lambda data: data, 0, 1, 1.0),
        noisy_max(lambda data: [data, 0], 1.0, 2),
    ):
        with pytest.raises(TypeError):
            algorithm.run(count, BufferedEntropy(1))


@pytest.mark.parametrize(
    "scores",
    [
        [1],
        [1, 2, 3],
        [],
        [1, math.nan],
        [math.inf, 0],
        [1, None],
        [1, "2"],
        [1, 1j],
        np.array([[1, 2], [3, 4]]),
        None,
        5,
    ],
)
@pytest.mark.parametrize("make", [exponential, noisy_max, permute_and_flip])
def test_bad_scores_break_the_run(make, scores):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        make(lambda data: data, 1.0, 2).run(scores, BufferedEntropy(1))


@pytest.mark.parametrize(
    "scores",
    [
        [0, 300],
        (0.0, 300.0),
        np.array([0, 300]),
        np.array([0, 300], dtype=np.float32),
        [np.float32(0), np.int16(300)],
        [Fraction(1, 3), 10**400],
        [-1e308, 1e308],
        [False, 300],
        range(0, 301, 300),
        {"a": 0, "b": 300}.values(),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("make", [exponential, permute_and_flip])
def test_scores_of_all_kinds(make, scores):
    assert make(lambda data: data, 1.0, ["a", "b"]).run(scores, BufferedEntropy(1)) == "b"


def test_outcomes_are_published_in_canonical_form():
    algorithm = noisy_max(lambda data: data, 1.0, [np.int64(7), [1, 2]])
    assert repr(algorithm.run([0, 900], BufferedEntropy(1))) == "(1, 2)"
    assert repr(algorithm.run([900, 0], BufferedEntropy(1))) == "7"
    assert algorithm.oracle.probability([900, 0], 7) == pytest.approx(1)


def test_ties_go_to_the_first(monkeypatch):
    monkeypatch.setattr("targetcharge.mechanisms.choice.discrete_laplace", lambda *_: 0)
    assert noisy_max(lambda data: data, 1.0, 4).run([1, 3, 3, 0], None) == 1


def test_thresholds_count_from_the_next_integer(monkeypatch):
    monkeypatch.setattr("targetcharge.mechanisms.noise.discrete_laplace", lambda *_: 0)
    test = above_threshold(lambda data: data, 2.5, 1.0)
    assert [test.run(count, None) for count in (2, 3)] == [None, 3]
    assert above_threshold(lambda data: data, 2, 1.0).run(2, None) == 2
    band = between_thresholds(lambda data: data, 1.5, 3, 1.0)
    assert [band.run(count, None).value for count in (1, 2, 3, 4)] == ["below", "between", "between", "above"]
    assert above_threshold(lambda data: data, Fraction(10**20 + 1, 10**20), 1.0).run(1, None) is None
