"""Copies that fail, callers that interrupt, threads: nothing of a copy shows, and the rest decide."""

import math
import threading

import numpy as np
import pytest
from tests.sessions.leaks import lets_out
from tests.streaming.random_sketches import NoisyCounter, counters, failing

import targetcharge as tc
from targetcharge.streaming import DistinctValues, RobustStream, SecondMoment

BUDGET = tc.Budget(200.0, 1e-6)
QUERY_EPSILON = 0.5
"""With 200 copies of which most agree, another choice has a chance below e^-45."""

SECRET = "swordfish"  # noqa: S105 - stands for what a copy knows of itself


def raising(sketch):
    msg = f"{SECRET} {sketch.seed}"
    raise RuntimeError(msg)


ODD = {
    "raises": raising,
    "nan": lambda _: math.nan,
    "inf": lambda _: math.inf,
    "negative": lambda _: -1e300,
    "text": lambda _: SECRET,
    "none": lambda _: None,
    "too large": lambda _: 10**400,
    "array": lambda _: np.array([1.0, 2.0]),
}


@pytest.mark.parametrize("act", ODD.values(), ids=ODD)
def test_copies_that_fail_to_estimate_are_outvoted(act):
    """A fifth of all fail after 10 items, the truth is then 40."""
    stream = RobustStream(late(failing(act, after=10)), 200, BUDGET, query_epsilon=QUERY_EPSILON)
    stream.follow(range(40))
    for _ in range(20):
        value = stream.estimate()
    assert value == pytest.approx(40, rel=0.12)


def late(kind, first=201):
    """Return a maker whose first sketches, copies and spare, are of a kind; their twins are always well."""

    def make(seed):
        made.append(1)
        return kind(seed) if len(made) <= first else NoisyCounter(seed)

    made = []
    return make


class Refusing(NoisyCounter):
    """A fifth of all fails when it takes in the eleventh item."""

    def update(self, item, weight=1):
        if len(self.items) == 10 and self.seed % 5 == 0:
            raising(self)
        super().update(item, weight)


def test_copies_that_fail_to_update_are_left_out_for_good():
    stream = RobustStream(late(Refusing, first=200), 200, BUDGET, query_epsilon=QUERY_EPSILON)
    all_copies = counters(stream)
    stream.follow(range(40))
    left = counters(stream)
    assert {len(sketch.items) for sketch in left} == {40}
    assert len(left) == sum(sketch.seed % 5 != 0 for sketch in all_copies) < 200
    assert np.isnan(stream._copies.estimates()).sum() == 200 - len(left)
    for _ in range(5):
        value = stream.estimate()
    assert value == pytest.approx(40, rel=0.12)


def test_when_all_copies_fail_the_stream_still_answers():
    stream = RobustStream(late(failing(raising, after=10, share=1.0)), 200, BUDGET, query_epsilon=QUERY_EPSILON)
    stream.follow(range(20))
    assert not counters(stream)
    assert stream.estimate() >= 0


def test_an_item_that_every_copy_refuses_is_the_callers_error():
    class Choosy(NoisyCounter):
        def update(self, item, weight=1):
            if item == "bad":
                msg = "no such item"
                raise ValueError(msg)
            super().update(item, weight)

    stream = RobustStream(Choosy, 200, BUDGET, query_epsilon=QUERY_EPSILON)
    stream.follow(["a", "b"])
    for call in (stream.follow, stream.update_many):
        with pytest.raises(ValueError, match="no such item"):
            call(["c", "bad", "d"])
    assert {tuple(sketch.items) for sketch in counters(stream)} == {(("a", 1), ("b", 1))}
    assert len(counters(stream)) == 200
    stream.follow(["e"])


def test_sketches_get_plain_values():
    stream = RobustStream(NoisyCounter, 200, BUDGET, query_epsilon=QUERY_EPSILON)
    stream.follow(np.array([1, 2], dtype=np.int16), np.float32([0.5, 2]))
    stream.update_many(np.array(["a"]))
    items = counters(stream)[0].items
    assert items == [(1, 0.5), (2, 2.0), ("a", 1)]
    assert [type(part) for pair in items[:2] for part in pair] == [int, float] * 2


def test_nothing_of_a_failed_copy_hangs_on_a_later_error():
    stream = RobustStream(
        late(failing(raising, after=10)), 200, BUDGET, query_epsilon=QUERY_EPSILON, aggregate=lambda _: broken
    )
    stream.update_many(range(20))
    with pytest.raises(tc.ComputationFailed) as caught:
        stream.estimate()
    assert not lets_out(caught.value, SECRET)
    assert SECRET not in repr(stream)


@tc.private(epsilon=0.1)
def broken(estimates):
    raise RuntimeError(SECRET + str(estimates.sum()))


class Interrupting(NoisyCounter):
    """Some copy is interrupted, as by Ctrl-C, in the middle of the items."""

    armed = False

    def update(self, item, weight=1):
        if item == "stop" and Interrupting.armed:
            Interrupting.armed = False
            raise KeyboardInterrupt
        super().update(item, weight)


@pytest.mark.parametrize("call", ["follow", "update_many"])
def test_a_stream_that_was_interrupted_in_an_update_says_so(call):
    Interrupting.armed = False
    stream = RobustStream(late(Interrupting, first=200), 200, BUDGET, query_epsilon=QUERY_EPSILON)
    stream.follow(["a", "b"])
    value, Interrupting.armed = stream.value, True
    with pytest.raises(KeyboardInterrupt):
        getattr(stream, call)(["a", "stop", "c"])
    for later in (stream.estimate, lambda: stream.follow(["d"]), lambda: stream.update("d")):
        with pytest.raises(tc.NotAllowed, match="broke"):
            later()
    assert stream.value == value


@pytest.mark.parametrize("kind", [DistinctValues(64), SecondMoment(61)])
def test_an_interrupt_between_blocks_of_followed_items_ends_the_stream_too(kind, monkeypatch):
    """The copies are alike then, but nobody could say which items they have."""
    stream = RobustStream(kind, 200, BUDGET, query_epsilon=QUERY_EPSILON)
    original, calls = type(stream._copies).follow, []

    def interrupted(self, items, weights):
        calls.append(len(items))
        return original(self, items, weights)

    monkeypatch.setattr(type(stream._copies), "follow", interrupted)
    draw = tc.streaming.robust.Consensus.draw

    def drawn(self, estimates, place, entropy):
        if len(calls) == 2:
            raise KeyboardInterrupt
        return draw(self, estimates, place, entropy)

    monkeypatch.setattr(tc.streaming.robust.Consensus, "draw", drawn)
    with pytest.raises(KeyboardInterrupt):
        stream.follow(np.zeros(5_000, dtype=np.int64))
    with pytest.raises(tc.NotAllowed, match="broke"):
        stream.estimate()


def test_an_interrupted_estimate_leaves_the_stream_whole(monkeypatch):
    stream = RobustStream(NoisyCounter, 200, BUDGET, query_epsilon=QUERY_EPSILON)
    stream.update_many(range(50))
    with monkeypatch.context() as patch:
        patch.setattr(stream._copies, "estimates", interrupt)
        with pytest.raises(KeyboardInterrupt):
            stream.estimate()
    assert stream.estimate() >= 0


def interrupt(*_):
    raise KeyboardInterrupt


def test_threads_take_turns():
    """Each item is taken in once by all copies, in one order for all; changes are as many as are paid for."""
    stream = RobustStream(NoisyCounter, 200, BUDGET, query_epsilon=QUERY_EPSILON)
    published = []

    def work(number):
        for item in range(20):
            published.extend(stream.follow([100 * number + item]).tolist())
            stream.update(100 * number + 50 + item)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    orders = {tuple(item for item, _ in sketch.items) for sketch in counters(stream)}
    assert len(orders) == 1
    assert len(set(orders.pop())) == 160
    assert len(published) == 80
    assert stream.changes <= stream.plan.changes


def test_memory_does_not_grow_with_the_number_of_estimates():
    """The ledger in memory remembers a bounded part of the past."""
    stream = RobustStream(SecondMoment(11), 200, BUDGET, query_epsilon=QUERY_EPSILON)
    stream.update(1)
    for _ in range(3_000):
        stream.estimate()
    assert len(list(stream._session._ledger.entries())) <= 1_001


def test_a_stream_is_right_on_items_that_nobody_chose():
    """Within the tolerance and the error of a median of sketches, at all times but right after a jump."""
    stream = RobustStream(DistinctValues(256), 300, tc.Budget(12.0, 1e-6))
    values = stream.follow(np.arange(20_000))
    truth = np.arange(1, 20_001)
    assert np.quantile(np.abs(values / truth - 1), 0.99) < 0.2
    assert values[-1] == pytest.approx(20_000, rel=0.2)
    assert stream.changes == np.count_nonzero(np.diff(np.concatenate([[0.0], values])))


def test_the_share_of_wrong_copies_is_that_of_the_budget():
    stream = RobustStream(SecondMoment(11), 200, BUDGET, query_epsilon=QUERY_EPSILON)
    assert stream.share_of_wrong_copies(1e-5) == tc.streaming.share_of_wrong_copies(BUDGET, 1e-5)


class Panic(BaseException):
    """What bindings to other languages raise, and no `except Exception` sees."""


class Panicking(NoisyCounter):
    def update(self, item, weight=1):
        if item == "panic" and self.seed % 2:
            raise Panic(SECRET, self.seed)
        super().update(item, weight)


def test_a_copy_that_panics_shows_nothing_of_itself():
    stream = RobustStream(late(Panicking, first=200), 200, BUDGET, query_epsilon=QUERY_EPSILON)
    with pytest.raises(tc.ComputationFailed) as raised:
        stream.update_many(["a", "panic", "c"])
    assert not lets_out(raised.value, SECRET)
    with pytest.raises(tc.NotAllowed, match="broke"):
        stream.estimate()


def test_an_estimate_that_fails_costs_one_change(monkeypatch):
    stream = RobustStream(DistinctValues(64), 400, tc.Budget(20.0, 1e-6), query_epsilon=0.05)
    assert stream.plan.changes > 300

    def fail(*_):
        raise ValueError(SECRET)

    with monkeypatch.context() as patch:
        patch.setattr(tc.streaming.robust.Consensus, "draw", fail)
        with pytest.raises(tc.ComputationFailed):
            stream.estimate()
    assert stream.changes == 1
    assert stream.estimate() == 0.0


def test_weights_for_a_sketch_that_takes_none_are_refused():
    class Unweighted(NoisyCounter):
        def update(self, item):
            super().update(item)

    stream = RobustStream(Unweighted, 200, BUDGET, query_epsilon=QUERY_EPSILON)
    with pytest.raises(tc.InvalidParameter, match=r"^weights is .* left out if the sketch takes none"):
        stream.update("a", weight=2.0)
    stream.update("a")
