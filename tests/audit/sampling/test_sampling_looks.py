"""What is told apart, at every place of what is published; what the verdict says that it did not look at."""

import math
import pickle
import random
import sys

import numpy as np
import pytest
from tests.sizes import size

import targetcharge as tc
from targetcharge.audit import black_box, interaction
from targetcharge.audit.sampling.features import default_features, left_out
from targetcharge.audit.sampling.published import Raised, published_of
from targetcharge.mechanisms import above_threshold

CLAIM = tc.Budget(1.0, 0.0)
RUNS = size(160, 800)
ALIKE = {
    "list and tuple": ([1.5], (1.5,)),
    "empty list and tuple": ([], ()),
    "dict and items": ({"a": 1}, (("a", 1),)),
    "array and list": (np.array([1.5]), [1.5]),
    "numpy's float": (np.float64(1.5), 1.5),
    "numpy's small float": (np.float32(1.5), 1.5),
    "numpy's integer": (np.int64(2), 2),
    "numpy's truth": (np.bool(True), True),
    "zeros": (0.0, -0.0),
    "not a number": (math.nan, "nan"),
    "text of an error": ("one", "other"),
    "truth": (1, True),
}


def audited(run, runs=RUNS, **options):
    return black_box(run, ["row"], [], CLAIM, runs=runs, workers=1, **options)


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("place", ["alone", "among random numbers", "inside a list"])
def test_what_looks_different_is_told_apart_wherever_it_is(name, place):
    one, other = ALIKE[name]

    def run(rows):
        found = one if rows else other
        if place == "alone":
            return found
        if place == "inside a list":
            return [random.random(), [random.random(), found]]
        return random.random(), found, random.random()

    verdict = audited(run)
    assert not verdict.passed
    assert pickle.loads(pickle.dumps(published_of(one))) == published_of(one)  # noqa: S301 - our own


def test_texts_of_errors_are_told_apart():
    def fails(rows):
        raise ValueError(len(rows))

    verdict = audited(fails)
    assert not verdict.passed
    assert "ValueError raised (" in verdict.worst


def test_kinds_of_errors_are_told_apart_when_no_text_comes_twice():
    def fails(rows):
        raise (ValueError if rows else TypeError)(random.random())

    verdict = audited(fails)
    assert not verdict.passed
    assert "the kind of error" in verdict.worst


def test_an_error_without_a_text():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    assert Raised.of(MuteError()) == Raised("MuteError")


@pytest.mark.parametrize("workers", [1, 2])
def test_leaving_is_an_outcome(workers):
    def leaves(rows):
        if rows:
            sys.exit(0)
        return random.random() < 0.5

    verdict = black_box(leaves, ["row"], [], CLAIM, runs=400, workers=workers)
    assert not verdict.passed
    assert "SystemExit raised" in verdict.worst


def test_the_users_interruption_is_none():
    def interrupted(_rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audited(interrupted)


def entries(rows, leak, questions):
    """Return a transcript's like: much of it constant, the rest random, and one place that tells the truth."""
    return [
        (random.random() < 0.5, bool(rows) if place == leak else random.random(), None, "a name", "another")
        for place in range(questions)
    ]


@pytest.mark.parametrize("leak", [0, 17, 19])
def test_constants_use_up_no_places(leak):
    verdict = audited(lambda rows: entries(rows, leak, 20))
    assert not verdict.passed


def test_constant_values_are_dropped_and_those_that_differ_between_the_inputs_kept():
    seen = [published_of(("same", "one", 3)), published_of(("same", "other", 3))]
    names = {feature.name for feature in default_features(seen)}
    assert "answer 2" in names
    assert not names & {"answer 1", "answer 3", "the lowest bit of answer 3"}
    assert "answer 2" in {feature.name for feature in default_features([published_of((1,)), published_of((1, 1))])}


def test_what_was_not_looked_at_is_said():
    assert left_out(map(published_of, [(1, 2), (2, 1)])) == ""
    many = [published_of([shift + place for place in range(200)]) for shift in (0, 1)]
    assert left_out(many) == "72 of 200 values that change were not looked at by themselves"
    assert left_out([published_of([0] * 600)]).startswith("what comes after the first 512 values")
    assert "after the first 512 values" in audited(lambda _: [random.random() < 0.5] * 600, 100).worst


def test_labels_that_never_repeat_are_said():
    assert "No outcome came twice" in audited(lambda _: str(random.random()), 100).worst
    assert "No outcome came twice" not in audited(lambda _: random.random(), 100).worst


BUDGET = tc.Budget(1.0, 0.1)
TEST = above_threshold(len, 10, 0.3)


def ask(session):
    for _ in range(30):
        session.test(TEST)


def test_a_session_that_runs_into_a_refusal():
    def run(rows):
        session = tc.Session(rows, BUDGET, 0.3)
        ask(session)
        return session

    data = ["row"] * 10, ["row"] * 9
    with pytest.raises(tc.InvalidParameter, match=r"ended in BudgetSpent.*interaction\(opening, script\)"):
        black_box(run, *data, runs=200, workers=1)

    def sometimes(rows):
        return run(rows) if random.random() < 0.9 else "nothing"

    verdict = black_box(sometimes, *data, BUDGET, runs=200, workers=1)
    assert "BudgetSpent ended" in verdict.worst
    assert "interaction(opening, script)" in verdict.worst
    kept = black_box(
        interaction(lambda rows: tc.Session(rows, BUDGET, 0.3), ask), *data, BUDGET, runs=200, workers=1
    )
    assert "BudgetSpent ended" not in kept.worst
