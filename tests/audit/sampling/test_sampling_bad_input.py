"""Bad input: each refusal names the parameter, and says what to do."""

import math

import pytest

import targetcharge as tc
from targetcharge.audit import black_box
from targetcharge.audit.sampling import check_neighbours
from targetcharge.audit.sampling.published import CannotCountError, Raised, published_of
from targetcharge.mechanisms import noisy_count

COUNT = noisy_count(len, 1.0)
CLAIM = tc.Budget(1.0, 0.0)


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        ([1, 2], [1], "add-remove"),
        ([1], [2, 1], "add-remove"),
        ([], [1], "add-remove"),
        ((1, 1), (1, 1, 1), "add-remove"),
        ({1, 2}, {1}, "add-remove"),
        ({"a": 1}, {"a": 1, "b": 2}, "add-remove"),
        ([{"a": [1]}], [], "add-remove"),
        ([1, 2], [1, 3], "replace-one"),
        ([1], [True], "replace-one"),
        (7, "anything", "any"),
    ],
)
def test_neighbours(one, other, relation):
    check_neighbours(one, other, relation)


@pytest.mark.parametrize(
    ("one", "other", "relation", "how"),
    [
        ([1, 2], [1, 2], "add-remove", "both are the same"),
        ([1, 2], [2, 1], "add-remove", "both are the same"),
        ([1, 2], [1, 3], "add-remove", "it lacks 1 and has 1 more"),
        ([1, 2], [], "add-remove", "it lacks 2 and has 0 more"),
        ([1, 2], [1], "replace-one", "it lacks 1 and has 0 more"),
        (10, 9, "add-remove", "a list, tuple, set or dict of units"),
        ("ab", "a", "add-remove", "a list, tuple, set or dict of units"),
        ([object()], [], "add-remove", "object cannot"),
    ],
)
def test_not_neighbours(one, other, relation, how):
    with pytest.raises(tc.InvalidParameter, match=how):
        black_box(COUNT, one, other, relation=relation, workers=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relation": "close"}, "relation is 'close'; it must be one of 'add-remove'"),
        ({"runs": 0}, "runs is 0; it must be an integer"),
        ({"runs": 1.5}, "runs is 1.5; it must be an integer"),
        ({"runs": 40}, "runs is 40; it must be at least 58: half of them are counted"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": math.nan}, "confidence is nan"),
        ({"confidence": 0.1}, "confidence is 0.1"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.0}, "seed is 1.0"),
        ({"workers": 0}, "workers is 0"),
        ({"claim": 1.0}, "claim is 1.0; it must be a tc.Budget"),
        ({"features": [3]}, "features is 3; it must be functions of what is published"),
        (
            {"claim": tc.Budget(40.0, 0.0)},
            "epsilon is 40.0; it must be small enough that samples can say something",
        ),
    ],
)
def test_parameters(options, message):
    with pytest.raises(tc.InvalidParameter, match=message):
        black_box(COUNT, [1], [], **{"workers": 1, "runs": 1_000, **options})


@pytest.mark.parametrize("run", [3, None, lambda: 1, lambda *, data: data, int, "count"])
def test_what_cannot_be_run(run):
    with pytest.raises(tc.InvalidParameter, match=r"run is|function is"):
        black_box(run, [1], [], CLAIM, workers=1)


@pytest.mark.parametrize(("runs", "epsilon"), [(20, 1.0), (100, 3.0)])
def test_the_number_of_runs_needed_is_enough(runs, epsilon):
    """With fewer even certainty would not be enough; with it the claim of a function without noise falls."""
    claim = tc.Budget(epsilon, 0.0)
    with pytest.raises(tc.InvalidParameter) as refused:
        black_box(len, [1], [], claim, runs=runs, workers=1)
    needed = int(str(refused.value).split("at least ")[1].split(":")[0].replace(",", ""))
    verdict = black_box(len, [1], [], claim, runs=needed, workers=1)
    assert not verdict.passed
    assert "it is not random" in verdict.worst


def test_always_the_same_says_nothing():
    with pytest.raises(tc.InvalidParameter, match="random, or depend on its input: all 2,000 runs published 3"):
        black_box(lambda _: 3, [1], [], CLAIM, runs=1_000, workers=1)


def fails(_rows):
    raise ValueError


@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_that_always_raises(workers):
    with pytest.raises(tc.InvalidParameter, match="published ValueError raised; does it work on this data"):
        black_box(fails, [1], [], CLAIM, runs=1_000, workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "thing",
    [object(), (1, object()), bytearray(b"1"), [iter([])]],
    ids=["object", "inside a tuple", "bytearray", "iterator"],
)
def test_outcomes_that_cannot_be_counted(thing, workers):
    with pytest.raises(tc.InvalidParameter, match="publishes plain data"):
        black_box(lambda _: thing, [1], [], CLAIM, runs=1_000, workers=workers)


def test_a_claim_is_needed():
    with pytest.raises(tc.InvalidParameter, match="claim is None; it must be given"):
        black_box(len, [1], [], workers=1)


def test_features_that_raise_are_told():
    def ratio(outcome):
        return 1 / (outcome - outcome)

    with pytest.raises(tc.InvalidParameter, match="able to take everything that is published: ZeroDivisionError"):
        black_box(COUNT, [1], [], runs=1_000, workers=1, features=[ratio])


def test_a_feature_of_ones_own_finds_what_it_is_about():
    """The parity of a large random number: no default feature sees it in so few runs."""

    def parity_of_digits(outcome):
        return sum(map(int, str(outcome))) % 2

    def hides(rows, entropy):
        while True:
            word = entropy.word()
            if parity_of_digits(word) == len(rows):
                return str(word)

    assert black_box(hides, [1], [], CLAIM, runs=1_000, workers=1).passed
    assert not black_box(hides, [1], [], CLAIM, runs=1_000, workers=1, features=[parity_of_digits]).passed


def test_what_looks_different_is_different():
    things = [
        1,
        True,
        1.0,
        "1",
        b"1",
        (1,),
        ((1,),),
        {1},
        {1: 1},
        None,
        0.0,
        -0.0,
        math.nan,
        tc.BOUNDARY,
        Raised("x"),
    ]
    assert len({published_of(thing) for thing in things}) == len(things)
    assert published_of(math.nan) == published_of(float("nan"))
    assert published_of({1: 2, 3: 4}) == published_of({3: 4, 1: 2})
    with pytest.raises(CannotCountError, match="generator"):
        published_of([(x for x in [1])])
