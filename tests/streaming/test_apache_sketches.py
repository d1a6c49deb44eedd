"""Sketches of Apache DataSketches as copies: right through the stream, each with a hash of its own."""

import builtins

import numpy as np
import pytest

import targetcharge as tc
from targetcharge.streaming import RobustStream, apache

pytest.importorskip("datasketches", reason="the extra `sketches` is not installed")

BUDGET = tc.Budget(10.0, 1e-6)
MAKERS = {"hll": apache.hll, "cpc": apache.cpc, "theta": apache.theta}
SEEDS = np.random.default_rng(1).integers(0, 2**63, 40).tolist()
LIMITS = {"hll": (7, 16), "cpc": (4, 16), "theta": (5, 16)}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_stream_counts_distinct_items(maker):
    stream = RobustStream(maker(), 150, BUDGET)
    stream.update_many(np.arange(2_000))
    stream.update_many(np.arange(2_000))
    for _ in range(8):
        value = stream.estimate()
    assert value == pytest.approx(2_000, rel=0.2)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_estimates_are_right_and_differ_from_seed_to_seed(maker):
    sketches = [maker(9)(seed) for seed in SEEDS]
    for sketch in sketches:
        for item in range(5_000):
            sketch.update(item)
    found = np.array([sketch.estimate() for sketch in sketches]) / 5_000
    assert len(set(found)) > 30
    assert abs(found.mean() - 1) < 0.05
    assert 0.005 < found.std() < 0.1


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_copy_with_the_same_seed_is_the_same(maker):
    make = maker(9)
    one, other = make(123456789), make(123456789)
    for item in ["a", "b", 3, 4.5, *range(3_000)]:
        one.update(item)
        other.update(item)
    assert one.estimate() == other.estimate()


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_items_of_several_types(maker):
    sketch = maker()(1)
    for item in ["a", "b", "", 3, -3, 4.5, "a", 3]:
        sketch.update(item)
    assert round(sketch.estimate()) == 6


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_items_are_told_apart_as_by_a_set(maker):
    sketch = maker()(1)
    for item in [1, "1", 1.0, "1.0", b"1", True, np.int8(1), "", -1]:
        sketch.update(item)
    assert round(sketch.estimate()) == 6


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_another_stream_hashes_with_another_key(maker):
    """Texts that collide under every seed of MurmurHash3 cannot be found without the key."""
    one, other = (maker(9)(123456789) for _ in range(2))
    for item in range(5_000):
        one.update(item)
        other.update(item)
    assert one.estimate() != other.estimate()


@pytest.mark.parametrize("item", [None, float("nan"), (1,), [1]])
def test_other_items_are_refused_and_no_copy_changes(item):
    stream = RobustStream(apache.hll(), 150, BUDGET)
    with pytest.raises(tc.InvalidParameter, match=r"^item is .* an integer, a float, text or bytes"):
        stream.update(item)
    assert stream._copies.estimates().tolist() == [0.0] * 150
    stream.update("goes on")


@pytest.mark.parametrize("name", MAKERS)
def test_sizes_are_limited(name):
    least, most = LIMITS[name]
    for size in (least, 12):
        assert MAKERS[name](size)(1).estimate() == 0
    for size in (least - 1, most + 1, 0, -1, 4.5, "11", None, True):
        with pytest.raises(tc.InvalidParameter, match=r"^lg_k is "):
            MAKERS[name](size)


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    original = builtins.__import__

    def missing(name, *arguments, **more):
        if name == "datasketches":
            raise ModuleNotFoundError(name=name)
        return original(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'targetcharge\[sketches\]'"):
        apache.cpc()


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_copy_shows_nothing_of_its_salt(maker):
    assert "75bcd15" not in repr(maker()(123456789))
    assert "123456789" not in repr(maker()(123456789))
