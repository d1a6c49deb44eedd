"""Any private algorithm of the copies' estimates may choose: it pays for change, and is checked before it runs."""

from fractions import Fraction

import numpy as np
import pytest
from tests.streaming.scripted_estimates import ScriptedCopies

import targetcharge as tc

BUDGET = tc.Budget(400.0, 1e-6)
SIZES = ("small", "middle", "large")


def stream_of(truth, aggregate, **more):
    script = ScriptedCopies(np.tile(np.asarray(truth, dtype=np.float64)[:, None], (1, 60)))
    settings = {"query_epsilon": 2.0, "start": "small", **more}
    return tc.streaming.RobustStream(script, 60, BUDGET, aggregate=aggregate, **settings), script


def scores(estimates):
    """Return how many copies are in each class of sizes."""
    return np.bincount(np.searchsorted([10.0, 100.0], estimates, side="right"), minlength=3).tolist()


CHOICES = {
    "exponential": lambda _: tc.mechanisms.exponential(scores, 2.0, SIZES),
    "permute_and_flip": lambda _: tc.mechanisms.permute_and_flip(scores, 2.0, SIZES),
    "noisy_max": lambda _: tc.mechanisms.noisy_max(scores, 2.0, SIZES),
}
TRUTH = [1.0, 5.0, 50.0, 50.0, 500.0, 1.0, 1.0]
NAMES = ["small", "small", "middle", "middle", "large", "small", "small"]


@pytest.mark.parametrize("aggregate", CHOICES.values(), ids=CHOICES)
def test_a_choice_of_names_pays_for_change(aggregate):
    """All 60 copies agree: another choice has a chance below e^-50."""
    stream, script = stream_of(TRUTH, aggregate)
    values = stream.follow(range(7))
    assert values.tolist() == NAMES
    assert stream.changes == stream.meter.hits == 3
    assert stream.value == "small"
    assert script.asked == [(moment, moment + 1) for moment in range(7)]


def test_asking_one_by_one_gives_the_same():
    stream, _ = stream_of(TRUTH, CHOICES["exponential"])
    found = []
    for item in range(7):
        stream.update(item)
        found.append(stream.estimate())
    assert found == NAMES
    assert stream.changes == 3


def test_the_aggregation_is_told_what_was_published():
    told = []

    def aggregate(prior):
        told.append(prior)
        return CHOICES["exponential"](prior)

    stream, _ = stream_of(TRUTH, aggregate)
    stream.follow(range(7))
    assert told == ["small", *NAMES[:-1]]


def test_a_declared_function_may_publish_arrays():
    """It gets an array of all estimates; what leaves is plain data."""

    @tc.private(epsilon=2.0)
    def share(estimates):
        assert isinstance(estimates, np.ndarray)
        assert estimates.shape == (60,)
        return np.round(estimates[:2] / 10)

    stream, _ = stream_of([1.0, 2.0, 30.0], lambda _: share, start=[0, 0.0])
    assert stream.value == (0, 0.0)
    assert stream.follow(range(3)).tolist() == [(0.0, 0.0), (0.0, 0.0), (3.0, 3.0)]
    assert stream.changes == 1


def test_a_budget_that_ends_on_the_way():
    stream, _ = stream_of([1.0, 50.0] * 100, CHOICES["exponential"])
    allowed = stream.plan.changes
    assert 2 < allowed < 100
    values = stream.follow(range(200))
    assert values.tolist() == ["small", *(["middle", "small"] * 100)[: len(values) - 1]]
    assert len(values) == allowed + 1
    assert isinstance(values.refusal, tc.BudgetSpent)
    nothing = stream.follow(range(3))
    assert (nothing.tolist(), type(nothing.refusal)) == ([], tc.BudgetSpent)
    with pytest.raises(tc.BudgetSpent):
        stream.estimate()
    assert stream.changes == allowed


@pytest.mark.parametrize("aggregate", [3, "median", [len]])
def test_what_is_no_function_is_refused(aggregate):
    with pytest.raises(tc.InvalidParameter, match=r"^aggregate is .* a function of the published value"):
        stream_of(TRUTH, aggregate)


@pytest.mark.parametrize("made", [None, 3.0, len, "median"])
def test_a_function_that_makes_no_algorithm_is_refused_before_a_copy_is_asked(made):
    stream, script = stream_of(TRUTH, lambda _: made)
    for call in (stream.estimate, lambda: stream.follow([1])):
        with pytest.raises(tc.InvalidParameter, match=r"^aggregate is .* returns an algorithm"):
            call()
    assert (stream.changes, script.asked) == (0, [])


@pytest.mark.parametrize(("epsilon", "delta"), [(2.5, 0.0), (2.0, 1e-9), (0.5, 0.1)])
def test_an_algorithm_that_is_not_private_enough_is_refused(epsilon, delta):
    algorithm = tc.private(epsilon=epsilon, delta=delta)(len)
    stream, script = stream_of(TRUTH, lambda _: algorithm)
    with pytest.raises(tc.InvalidParameter, match=r"at most query_epsilon=2 and a delta of 0; .*len.* has more$"):
        stream.follow([1])
    assert (stream.changes, script.asked) == (0, [])


@pytest.mark.parametrize("wrap", [tc.boundary, tc.twice])
def test_wrapped_algorithms_are_refused(wrap):
    wrapped = wrap(tc.mechanisms.exponential(scores, 1.0, SIZES))
    stream, script = stream_of(TRUTH, lambda _: wrapped)
    with pytest.raises(tc.NotAllowed, match="does not support NotPrior"):
        stream.follow([1])
    assert (stream.changes, script.asked) == (0, [])


@pytest.mark.parametrize(
    "start", [object(), {1: 2}, float("nan"), Fraction(1, 2)], ids=["object", "dict", "nan", "fraction"]
)
def test_a_start_that_cannot_be_published_is_refused(start):
    with pytest.raises(tc.InvalidParameter, match=r"^start is "):
        stream_of(TRUTH, CHOICES["exponential"], start=start)


def test_an_algorithm_that_fails_costs_and_says_nothing():
    @tc.private(epsilon=2.0)
    def failing(estimates):
        raise RuntimeError(str(estimates))

    stream, _ = stream_of(TRUTH, lambda _: failing)
    stream.update(1)
    with pytest.raises(tc.ComputationFailed) as caught:
        stream.estimate()
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert stream.meter.hits_left == stream.plan.changes - 1


@pytest.mark.parametrize("wrong", [None, "raises"])
def test_an_aggregation_that_fails_half_way_ends_the_stream(wrong):
    calls = []

    def aggregate(prior):
        calls.append(prior)
        if len(calls) <= 30:
            return CHOICES["permute_and_flip"](prior)
        if wrong == "raises":
            msg = "the owner's own mistake"
            raise ValueError(msg)
        return wrong

    stream, _ = stream_of([50.0] * 50, aggregate)
    with pytest.raises(ValueError, match=r"own mistake|aggregate is"):
        stream.follow(range(50))
    assert (stream.value, stream.changes) == ("middle", 1)
    with pytest.raises(tc.NotAllowed, match="broke"):
        stream.follow(range(3))


def test_an_aggregation_cannot_call_its_own_stream():
    def aggregate(prior):
        stream.update(7)
        return CHOICES["permute_and_flip"](prior)

    stream, script = stream_of([50.0] * 9, aggregate)
    with pytest.raises(tc.NotAllowed, match="from within a call of its own"):
        stream.estimate()
    assert not script.asked
