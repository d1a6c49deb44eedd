"""The sketches against naive ones with the same hash functions, and their laws against theory."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.goodness import BufferedEntropy
from tests.sizes import size as scaled

import targetcharge as tc
from targetcharge.streaming import DistinctValues, SecondMoment, sketches
from targetcharge.streaming.sketches import PRIME

P = int(PRIME)
UNHURRIED = settings(deadline=None, max_examples=60)


def numbers(items):
    return np.array(items, dtype=np.uint64)


def value_of(family, place, item):
    """Return the hash value of an item by one function, with big integers."""
    value = 0
    for coefficient in family.coefficients[(slice(None), *place)].tolist():
        value = (value * item + coefficient) % P
    return value


def naive_moments(copies, rows, stream):
    """Return the estimates of all copies after each of (item, weight), adding up signs in Python."""
    count = len(copies._sums)
    sums = [[0.0] * rows for _ in range(count)]
    for item, weight in stream:
        for copy in range(count):
            for row in range(rows):
                value = value_of(copies._hash, (copy, row // 61), item)
                sums[copy][row] += weight if value >> (row % 61) & 1 else -weight
        yield [math.fsum(number**2 for number in own) / rows for own in sums]


@pytest.mark.parametrize("rows", [1, 60, 61, 62, 130])
@given(
    stream=st.lists(st.tuples(st.integers(0, P - 1) | st.integers(0, 4), st.integers(-9, 9)), max_size=12),
    cut=st.integers(0, 12),
    block=st.sampled_from([1, 300, 2**17]),
)
@UNHURRIED
def test_second_moments_are_those_of_a_naive_sketch(rows, stream, cut, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketches, "_SUMS", block)
        copies = SecondMoment(rows).copies(2, BufferedEntropy(len(stream)))
        expected = list(naive_moments(copies, rows, stream))
        items, weights = numbers([item for item, _ in stream]), np.array([weight for _, weight in stream], float)
        found = copies.follow(items[:cut], weights[:cut])
        copies.update(items[cut:], weights[cut:])
    assert found.shape == (len(stream[:cut]), 2)
    np.testing.assert_allclose(found, np.array(expected[:cut]).reshape(found.shape), rtol=1e-12)
    np.testing.assert_allclose(copies.estimates(), expected[-1] if stream else [0.0, 0.0], rtol=1e-12)


def test_what_is_taken_back_leaves_nothing():
    copies = SecondMoment(61).copies(5, BufferedEntropy(1))
    items = numbers(range(1000))
    copies.update(items, np.full(1000, 3.0))
    assert (copies.estimates() > 0).all()
    copies.update(items[::-1].copy(), np.full(1000, -3.0))
    assert copies.estimates().tolist() == [0.0] * 5


def relative_moments(rows, items, weights=None):
    """Return the mean and variance of 4,000 copies' estimates, in terms of the truth, and 1 - F4/F2²."""
    copies = SecondMoment(rows).copies(4_000, BufferedEntropy(rows))
    copies.update(numbers(items), weights)
    f = np.ones(len(items)) if weights is None else weights
    truth = (f**2).sum()
    found = copies.estimates() / truth
    return found.mean(), found.var(), 1 - (f**4).sum() / truth**2


@pytest.mark.parametrize("rows", [20, 61])
@pytest.mark.parametrize(
    ("items", "weights"),
    [(range(100), None), ([3**power for power in range(30)], np.linspace(-5, 7, 30)), ([5, P - 5], None)],
)
def test_second_moments_have_no_bias_and_their_variance(rows, items, weights):
    """With 4,000 copies: the mean within seven deviations, the variance within eight or so."""
    mean, variance, less = relative_moments(rows, items, weights)
    assert abs(mean - 1) < 7 * math.sqrt(2 / rows / 4_000)
    assert 0.8 < variance / (2 / rows * less) < 1.2


def test_power_the_variance_tells_rows_apart():
    _, variance, less = relative_moments(45, range(100))
    assert variance / (2 / 61 * less) > 1.2


def test_the_product_of_four_signs_is_fair():
    """Independence for three items would not be enough for it, nor for the variance."""
    copies = SecondMoment(61).copies(4_000, BufferedEntropy(3))
    signs = copies._signs(numbers([1, 2, 3, 4]))
    assert abs(signs.prod(axis=0).mean()) < 7 / math.sqrt(4_000 * 61)


def naive_distinct(copies, size, items):
    found = []
    for copy in range(len(copies._kept)):
        smallest = sorted({value_of(copies._hash, (copy,), item) for item in items})[:size]
        found.append((size - 1) * P / (smallest[-1] + 1) if len(smallest) == size else float(len(smallest)))
    return found


@given(
    size=st.integers(3, 8),
    stream=st.lists(st.integers(0, 12) | st.sampled_from([P - 1, P - 2, 2**31]), max_size=40),
    cut=st.integers(0, 40),
    block=st.sampled_from([1, 7, 2**20]),
)
@UNHURRIED
def test_distinct_values_are_those_of_a_set_of_hash_values(size, stream, cut, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketches, "_HASH_VALUES", block)
        copies = DistinctValues(size).copies(3, BufferedEntropy(size))
        found = copies.follow(numbers(stream[:cut]), None)
        copies.update(numbers(stream[cut:]), None)
    expected = [naive_distinct(copies, size, stream[: place + 1]) for place in range(len(stream[:cut]))]
    assert found.tolist() == expected
    assert copies.estimates().tolist() == naive_distinct(copies, size, stream)


def test_updating_and_following_leave_the_same_state():
    one, other = (DistinctValues(16).copies(4, BufferedEntropy(9)) for _ in range(2))
    items = np.random.default_rng(1).integers(0, 3_000, 20_000).astype(np.uint64)
    one.update(items, None)
    rows = [other.follow(some, None)[-1] for some in np.array_split(items, 7)]
    assert one._kept == other._kept
    assert one.estimates().tolist() == other.estimates().tolist() == rows[-1].tolist()


def test_estimates_that_were_given_away_do_not_change():
    copies = DistinctValues(16).copies(4, BufferedEntropy(9))
    given_away = copies.estimates()
    copies.update(numbers([1]), None)
    assert given_away.tolist() == [0.0] * 4


@pytest.mark.parametrize("size", [16, 64])
def test_distinct_values_have_no_bias_and_their_error(size):
    """Random items; of independent values the relative variance is about 1/(size - 2)."""
    copies = DistinctValues(size).copies(1_500, BufferedEntropy(size))
    items = np.random.default_rng(size).integers(0, P, 1_000).astype(np.uint64)
    copies.update(np.concatenate([items, items[:500]]), None)
    found = copies.estimates() / 1_000
    expected = math.sqrt((1 - size / 1_000) / (size - 2))
    assert abs(found.mean() - 1) < 8 * expected / math.sqrt(1_500)
    assert 0.75 < found.std() / expected < 1.35


@pytest.mark.parametrize("step", [1, 2**40 + 1])
def test_no_copy_is_far_off_on_a_regular_stream(step):
    """A hash that is linear in the items would put one copy in 200 or so off by four standard errors."""
    kept, items = scaled(128, 256), scaled(1_000, 2_000)
    copies = DistinctValues(kept).copies(4_000, BufferedEntropy(step))
    copies.update(numbers([place * step for place in range(items)]), None)
    off = np.abs(copies.estimates() / items - 1)
    assert (off > 4 / math.sqrt(kept)).sum() <= 8
    assert np.median(off) < 1 / math.sqrt(kept)


@pytest.mark.parametrize("rows", [0, -1, 1.5, "8", None, True])
def test_rows_and_sizes_are_checked(rows):
    with pytest.raises(tc.InvalidParameter, match=r"^rows is "):
        SecondMoment(rows)
    with pytest.raises(tc.InvalidParameter, match=r"^size is "):
        DistinctValues(rows)


@pytest.mark.parametrize("size", [1, 2])
def test_a_size_without_variance_is_refused(size):
    with pytest.raises(tc.InvalidParameter, match=f"^size is {size}; it must be an integer of at least 3$"):
        DistinctValues(size)


@pytest.mark.parametrize("kind", [SecondMoment(61), DistinctValues(64)])
def test_taking_in_many_items_keeps_no_row_for_each(kind, monkeypatch):
    """`update` works on some items at a time, and holds nothing of them afterwards."""
    copies = kind.copies(100, BufferedEntropy(1))
    lengths = []
    original = type(copies._hash).__call__

    def watched(self, items):
        lengths.append(len(items))
        return original(self, items)

    monkeypatch.setattr(type(copies._hash), "__call__", watched)
    copies.update(numbers(range(25_000)), None)
    assert sum(lengths) == 25_000
    assert max(lengths) * 100 <= 2**20
