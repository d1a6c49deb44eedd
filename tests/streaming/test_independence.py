"""Copies must differ by their seeds: what does not is refused, what does is not."""

import math
import random

import pytest
from tests.streaming.random_sketches import MorrisCounter, NoisyCounter, SamplingCounter

import targetcharge as tc
from targetcharge.randomness import SystemEntropy
from targetcharge.streaming import copies
from targetcharge.streaming.copies import seeded_copies


@pytest.fixture
def hasty(monkeypatch):
    """Give up on a pair after 8,192 items, for tests of what never differs."""
    monkeypatch.setattr(copies, "_MOST_ITEMS", 8_192)


def made(make, count):
    return seeded_copies(make, count, SystemEntropy())


class ExactCounter:
    def __init__(self, _seed):
        self.seen = set()

    def update(self, item):
        self.seen.add(item)

    def estimate(self):
        return len(self.seen)


class LateCounter(NoisyCounter):
    """Exact up to 3,000 updates, as a large sketch is."""

    def estimate(self):
        return len(self.items) if len(self.items) <= 3_000 else super().estimate()


ALIKE = {
    "one seed for all": lambda _: MorrisCounter(1),
    "two seeds": lambda seed: MorrisCounter(seed % 2),
    "seeds that are cut": lambda seed: NoisyCounter(seed >> 57),
    "constant": lambda _: NoisyCounter(0),
    "exact": ExactCounter,
}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("make", ALIKE.values(), ids=ALIKE)
def test_copies_that_do_not_differ_are_refused(make):
    with pytest.raises(
        tc.InvalidParameter, match=r"^sketch is .* two with different seeds had the same estimates"
    ):
        made(make, 150)


def test_two_that_do_not_differ_are_refused():
    with pytest.raises(tc.InvalidParameter, match="on all of 1,048,576 random items"):
        made(lambda _: MorrisCounter(1), 2)


@pytest.mark.usefixtures("hasty")
def test_one_pair_among_many_is_found():
    """All copies differ but two: the last has the randomness of the first."""
    seeds = []

    def make(seed):
        if seed not in seeds:
            seeds.append(seed)
        return MorrisCounter(seeds[0] if seed == seeds[59] else seed) if len(seeds) >= 60 else MorrisCounter(seed)

    with pytest.raises(tc.InvalidParameter, match="had the same estimates"):
        made(make, 60)


@pytest.mark.parametrize("make", [MorrisCounter, SamplingCounter, NoisyCounter, LateCounter])
@pytest.mark.parametrize("count", [2, 50, 300])
def test_coarse_sketches_with_seeds_of_their_own_are_taken(make, count):
    for _ in range(3 if count < 300 else 1):
        assert len(made(make, count).estimates()) == count


def test_a_sketch_that_draws_its_own_randomness_is_taken():
    made(lambda _: MorrisCounter(random.SystemRandom().random()), 20)


def test_copies_begin_with_an_empty_stream():
    """What is fed for comparison are twins."""
    copies = made(NoisyCounter, 20)
    assert copies.estimates().tolist() == [0.0] * 20
    assert all(not sketch.items for sketch in [*copies._copies, copies._spare])
    assert len({sketch.seed for sketch in [*copies._copies, copies._spare]}) == 21


def test_seeds_fit_in_signed_words():
    copies = made(NoisyCounter, 100)
    seeds = [sketch.seed for sketch in copies._copies]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**60


def test_one_object_twice_is_refused():
    shared = NoisyCounter(1)
    with pytest.raises(tc.InvalidParameter, match="makes another sketch each time: it gave one twice"):
        made(lambda _: shared, 5)


class NoUpdate:
    def __init__(self, seed):
        self.seed = seed

    def estimate(self):
        return self.seed


class NoEstimate:
    estimate = 3

    def __init__(self, seed):
        self.seed = seed

    def update(self, item):
        pass


@pytest.mark.parametrize("make", [NoUpdate, NoEstimate, lambda _: None, lambda seed: seed])
def test_objects_that_are_no_sketches_are_refused(make):
    with pytest.raises(tc.InvalidParameter, match="objects with `update` and `estimate`"):
        made(make, 5)


def estimating(number):
    class Odd(NoisyCounter):
        def estimate(self):
            return number

    return Odd


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, "many", None, [1, 2], 10**400, 1j], ids=repr)
def test_estimates_that_are_no_numbers_are_refused(number):
    with pytest.raises(tc.InvalidParameter, match=r"sketches with finite estimates: one gave .* after 1 items"):
        made(estimating(number), 5)


class Text(NoisyCounter):
    def update(self, item):
        if not isinstance(item, str):
            msg = "text please"
            raise TypeError(msg)


def test_a_sketch_that_refuses_integers_is_refused_by_what_it_raised():
    with pytest.raises(
        tc.InvalidParameter, match=r"sketches of integers: one refused \d+ \(TypeError\)"
    ) as caught:
        made(Text, 5)
    assert str(caught.value.__cause__) == "text please"


class Breaking(NoisyCounter):
    def estimate(self):
        raise RuntimeError(self.seed)


def test_a_sketch_that_cannot_estimate_is_refused():
    with pytest.raises((tc.InvalidParameter, RuntimeError)):
        made(Breaking, 5)
