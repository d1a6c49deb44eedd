"""What a stream refuses: by name and value, before anything is taken in; and it goes on afterwards."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import BufferedEntropy

import targetcharge as tc
from targetcharge.streaming import DistinctValues, RobustStream, SecondMoment
from targetcharge.streaming.consensus import Grid
from targetcharge.streaming.sketches import ItemNumbers

BUDGET = tc.Budget(5.0, 1e-6)
MOST = 2**61 - 2


def stream_of(kind=None, **more):
    return RobustStream(kind or DistinctValues(64), **{"copies": 150, "budget": BUDGET, **more})


def state(stream):
    return stream._copies.estimates().tolist(), stream.value, stream.changes


INTEGERS = [
    [0, 1, MOST],
    range(5),
    (3, 4),
    {7},
    [np.int8(5), np.uint64(MOST), 3],
    *[np.array([0, 1, 127], dtype=dtype) for dtype in "bBhHiIlLqQ"],
    np.array([MOST, 2**60], dtype=np.uint64),
    np.array([1, 2**60], dtype=object),
    np.array([], dtype=np.int64),
    [],
]
TEXTS = [
    ["a", "", "é", "\ud800"],
    ["a", b"a", b""],
    np.array(["a", "b"]),
    np.array([b"a"]),
    np.array(["a"], object),
]


@pytest.mark.parametrize("items", INTEGERS + TEXTS, ids=repr)
@pytest.mark.parametrize("kind", [DistinctValues(64), SecondMoment(61)], ids=repr)
def test_items_of_one_kind_are_taken(kind, items):
    items = list(items) if not isinstance(items, np.ndarray) else items
    stream = stream_of(kind)
    values = stream.follow(items)
    stream.update_many(items)
    assert len(values) == len(items)
    distinct = len({(type(item) is bytes or isinstance(item, np.bytes_), item) for item in items})
    if isinstance(kind, DistinctValues):
        assert set(stream._copies.estimates()) == {float(distinct)}


def test_items_may_come_from_a_generator():
    stream = stream_of()
    assert len(stream.follow(number for number in (1, 2, 1))) == 3
    assert stream._copies.estimates().tolist() == [2.0] * 150


def test_numbers_are_the_items_themselves_whatever_their_type():
    expected = [0, 5, MOST]
    assert ItemNumbers(BufferedEntropy(1))(expected).tolist() == expected
    assert ItemNumbers(BufferedEntropy(1))(np.array(expected, dtype=np.uint64)).tolist() == expected
    assert ItemNumbers(BufferedEntropy(1))(np.array([0, 5], dtype=np.int8)).tolist() == [0, 5]


def test_texts_and_bytes_have_other_numbers_with_another_key():
    one, other = (ItemNumbers(BufferedEntropy(seed)) for seed in (1, 2))
    items = ["a", b"a", "b", "ab", ""]
    found = one(items).tolist()
    assert found == one(items).tolist()
    assert len(set(found)) == len(items)
    assert not set(found) & set(other(items).tolist())
    assert max(found) <= MOST


WRONG = [
    [-1],
    [MOST + 1],
    [2**64],
    [1.0],
    [math.nan],
    [True],
    [None],
    [(1, 2)],
    [[1]],
    [np.int64(-3)],
    [np.bool_(True)],
    [np.float32(0.5)],
    np.array([3, -1]),
    np.array([3, -1], dtype=np.int8),
    np.array([MOST + 1], dtype=np.uint64),
    np.array([2**64 - 1], dtype=np.uint64),
    np.array([1.0]),
    np.array([True]),
    np.array([None], dtype=object),
    [1, "a"],
    ["a", 1],
    [b"a", 1],
]


@pytest.mark.parametrize("items", WRONG, ids=repr)
@pytest.mark.parametrize("kind", [DistinctValues(64), SecondMoment(61)], ids=repr)
def test_other_items_are_refused_by_value_and_nothing_is_taken_in(kind, items):
    stream = stream_of(kind)
    before = state(stream)
    wrong = (items.tolist() if isinstance(items, np.ndarray) else items)[-1]
    for call in (stream.follow, stream.update_many):
        with pytest.raises(tc.InvalidParameter) as caught:
            call(items)
        assert caught.value.name == "items"
        assert caught.value.value == wrong or math.isnan(wrong)
        assert type(caught.value.value) is type(getattr(wrong, "item", lambda: wrong)())
    assert state(stream) == before
    stream.follow(["text goes on"])
    assert stream._copies.estimates().tolist() == [1.0] * 150


@pytest.mark.parametrize(
    ("first", "then"), [([1], ["a"]), (np.array([1]), [b"a"]), (["a"], [1]), ([b"a"], np.array([1]))]
)
def test_a_stream_keeps_to_the_kind_of_its_first_item(first, then):
    stream = stream_of()
    stream.update_many(first)
    with pytest.raises(tc.InvalidParameter, match="as the first item of this stream is"):
        stream.update_many(then)
    stream.update_many(first)
    assert stream._copies.estimates().tolist() == [1.0] * 150


@pytest.mark.parametrize("items", ["abc", b"abc", 5, None, 1.5, np.array(5), np.array([[1, 2]])], ids=repr)
def test_what_is_no_sequence_of_items_is_refused(items):
    stream = stream_of()
    for call in (stream.follow, stream.update_many):
        with pytest.raises(tc.InvalidParameter, match=r"^items is "):
            call(items)


WRONG_WEIGHTS = [
    [1.0],
    [1.0, 2.0, 3.0],
    [[1.0, 2.0]],
    [[1.0], [2.0, 3.0]],
    5,
    [math.nan, 1.0],
    [1.0, math.inf],
    [1.0, -math.inf],
    ["1", "2"],
    "12",
    [None, 1.0],
    [1j, 1.0],
    np.array([1j, 1.0]),
    [True, False],
    [10**400, 1],
    [2.0**40 + 1, 1.0],
    [1.0, -(2.0**41)],
    np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"),
]


@pytest.mark.parametrize("weights", WRONG_WEIGHTS, ids=repr)
def test_other_weights_are_refused_and_nothing_is_taken_in(weights):
    stream = stream_of(SecondMoment(61))
    for call in (stream.follow, stream.update_many):
        with pytest.raises(tc.InvalidParameter, match=r"^weights is "):
            call([1, 2], weights)
    assert state(stream) == ([0.0] * 150, 0.0, 0)
    stream.follow(["text goes on"], [2])
    assert stream._copies.estimates().tolist() == [4.0] * 150


@pytest.mark.parametrize("weight", [math.nan, "1", 2.0**50, [1.0]], ids=repr)
def test_one_wrong_weight_is_refused(weight):
    stream = stream_of(SecondMoment(61))
    with pytest.raises(tc.InvalidParameter, match=r"^weights is "):
        stream.update(1, weight)
    assert stream._copies.estimates().tolist() == [0.0] * 150


def test_a_wrong_weight_is_named():
    with pytest.raises(tc.InvalidParameter, match=r"^weights is nan; .* one for each of the 2 items"):
        stream_of(SecondMoment(61)).follow([1, 2], [1.0, math.nan])
    with pytest.raises(tc.InvalidParameter, match=r"^weights is -2199023255552.0; it must be numbers from -2\^40"):
        stream_of(SecondMoment(61)).follow([1, 2], [1.0, -(2.0**41)])


def test_distinct_values_are_not_weighed():
    with pytest.raises(tc.InvalidParameter, match=r"^weights is .* left out: distinct items are counted"):
        stream_of().follow([1], [1.0])


@pytest.mark.parametrize("weights", [[3, -4], (3.0, -4.0), np.array([3, -4], dtype=np.int8), np.float32([3, -4])])
def test_weights_of_any_numeric_type(weights):
    stream = stream_of(SecondMoment(61))
    stream.update_many([7, 7], weights)
    assert stream._copies.estimates().tolist() == [1.0] * 150


SETTINGS = {
    "copies": [0, 1, -5, 10_001, 2.5, True, "9", None],
    "budget": [None, 1.0, (1.0, 1e-6)],
    "query_epsilon": [0, -1.0, 10.5, math.nan, math.inf, "x", True],
    "estimates": [0, -1, 1.5, math.nan, "x", None],
    "tolerance": [0.0, -1.0, math.nan, math.inf, 1e300, 1e-12, "x", "0%", "-5%", None],
    "inertia": [1.0, -0.1, math.nan, "x", None],
    "smallest": [0.0, -1.0, math.nan, 1e-300, "x"],
    "largest": [0.0, 1.0, math.nan, math.inf, 1e300, "x"],
    "start": [-1.0, math.nan, math.inf, "x", None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, wrong in SETTINGS.items() for value in wrong])
def test_absurd_settings_are_refused_by_name(name, value):
    with pytest.raises(tc.InvalidParameter) as caught:
        stream_of(**{name: value})
    assert caught.value.name == name


@pytest.mark.parametrize("value", [0.999, Fraction(1, 3), 0, np.float32(0.25)])
def test_odd_settings_work(value):
    stream = stream_of(
        SecondMoment(11), inertia=value, tolerance=np.float32(0.2), start=np.int64(4), largest=10**9
    )
    assert stream.value == pytest.approx(4.0, rel=0.1)
    stream.follow(range(3))


@pytest.mark.parametrize("start", [1e300, 2.0**60])
def test_a_start_above_the_grid_is_its_largest_value(start):
    assert stream_of(start=start).value == pytest.approx(2.0**53, rel=0.1)


def test_too_few_copies_for_one_change_are_refused_by_their_number():
    budget = tc.Budget(1.0, 1e-6)
    with pytest.raises(tc.InvalidParameter, match=r"^copies is 50; it must be at least 393, or the budget \(1, "):
        stream_of(copies=50, budget=budget)
    assert tc.streaming.plan(budget, 393).changes == 1
    assert tc.streaming.plan(budget, 392).changes == 0
    with pytest.raises(tc.InvalidParameter, match=r"^budget is .* with no number of copies it covers a change"):
        stream_of(copies=50, budget=tc.Budget(0.001, 1e-6))


@pytest.mark.parametrize("sketch", [None, 5, "hll", DistinctValues, SecondMoment, object, len])
def test_what_makes_no_sketches_is_refused(sketch):
    with pytest.raises((tc.InvalidParameter, TypeError)):
        RobustStream(sketch, 150, BUDGET)


@pytest.mark.parametrize("sketch", [DistinctValues, SecondMoment])
def test_a_kind_itself_instead_of_one_of_it_is_refused_clearly(sketch):
    with pytest.raises(tc.InvalidParameter, match=rf"^sketch is .*one of this kind: {sketch.__name__}\(\)$"):
        RobustStream(sketch, 150, BUDGET)


def test_a_stream_is_not_copied_or_pickled():
    stream = stream_of()
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(tc.NotAllowed, match="cannot be pickled or copied"):
            act(stream)


def test_a_stream_shows_public_facts_only():
    stream = stream_of()
    stream.follow(range(10))
    changes = f"{stream.changes} changes, {stream.meter.hits_left:,} left"
    assert repr(stream) == f"<robust stream of 150 copies, {changes}>"
    public = {name for name in vars(stream) if not name.startswith("_")}
    assert public == {"plan"}
    assert "coefficients" not in repr(vars(stream))


def test_a_tolerance_may_be_written_as_a_share():
    grids = [Grid(1.0, 100.0, tolerance).values for tolerance in (0.2, "20%", "20 percent")]
    assert grids[0] == grids[1] == grids[2]
