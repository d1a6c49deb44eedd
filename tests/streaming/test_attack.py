"""Who chooses the stream by what is published breaks a sketch, and the median of many, and not a robust stream.

The adversary puts in one heavy item, then tries light ones. Where the estimate rises by less than it should, most
signs are against the heavy item's: these are kept, and in the end they hide it.
"""

import numpy as np
import pytest

import targetcharge as tc
from targetcharge.randomness import SystemEntropy
from targetcharge.streaming import RobustStream, SecondMoment

COPIES, ROWS = 151, 11
"""Odd numbers: a rise is never exactly what it should be."""

TRIES, HEAVY = 12_000, 96.0
BUDGET = tc.Budget(60.0, 1e-6)
QUERY_EPSILON = 0.3
"""So that values where fewer than 25 of the 151 copies are on one side have a chance below 1e-6."""


def exact_median(copies, rows=ROWS):
    """Return what publishes the exact median of copies after each item."""
    hidden = SecondMoment(rows).copies(copies, SystemEntropy())
    return lambda items, weights: np.median(
        hidden.follow(np.asarray(items, dtype=np.uint64), np.asarray(weights, dtype=np.float64)), axis=1
    )


def robust(rows=ROWS):
    return RobustStream(SecondMoment(rows), COPIES, BUDGET, query_epsilon=QUERY_EPSILON)


def settled(follow):
    """Return the estimate once it has come to rest."""
    return float(follow([0] * 20, [0.0] * 20)[-1])


def tried_apart(follow):
    """Try each light item alone; put in those that raised the estimate too little. Return it and the truth."""
    follow([0], [HEAVY])
    base = settled(follow)
    items = np.arange(1, TRIES + 1)
    after = follow(np.repeat(items, 2), np.tile([1.0, -1.0], TRIES))[::2]
    kept = items[after - base < 1]
    follow(kept, np.ones(len(kept)))
    return settled(follow), HEAVY**2 + len(kept)


def tried_in_turn(follow, steps, heavy):
    """Keep each light item that raised the estimate too little, else take it back; return estimates and truths."""
    follow([0], [heavy])
    last, truth = settled(follow), heavy**2
    estimates, truths = [last], [truth]
    for item in range(1, steps + 1):
        now = float(follow([item], [1.0])[0])
        if now - last < 1:
            last, truth = now, truth + 1
        else:
            last = float(follow([item], [-1.0])[0])
        estimates.append(last)
        truths.append(truth)
    return np.array(estimates), np.array(truths)


def test_one_sketch_is_broken():
    estimates, truths = tried_in_turn(exact_median(1, rows=61), steps=600, heavy=30.0)
    assert estimates[-1] < 0.2 * truths[-1]


def test_the_exact_median_of_many_is_broken():
    estimate, truth = tried_apart(exact_median(COPIES))
    assert estimate < 0.5 * truth


def test_a_robust_stream_is_not_broken_by_what_breaks_the_median():
    stream = robust()
    estimate, truth = tried_apart(stream.follow)
    assert 0.55 * truth < estimate < 1.8 * truth
    assert stream.changes < stream.plan.changes


def test_a_robust_stream_is_not_broken_at_any_step():
    stream = robust(rows=61)
    estimates, truths = tried_in_turn(stream.follow, steps=600, heavy=30.0)
    shares = estimates / truths
    assert np.quantile(shares, 0.02) > 0.7
    assert np.quantile(shares, 0.98) < 1.4
    assert 0.75 < shares[-1] < 1.3


def test_without_an_adversary_all_are_right():
    """The same items, whatever they did to the estimate."""
    items, weights = np.arange(6_000), np.ones(6_000)
    for follow in (exact_median(COPIES), robust().follow):
        follow([6_000], [HEAVY])
        follow(items, weights)
        assert settled(follow) == pytest.approx(HEAVY**2 + 6_000, rel=0.45)
