"""Rehearsals: an algorithm is run on made-up data, outside any budget, and says all that goes wrong."""

from __future__ import annotations

import opendp.prelude as dp
import pytest

import targetcharge as tc
from targetcharge.mechanisms import agreement, changed, distinct_count, exponential, noisy_count, side_of_threshold
from targetcharge.outcomes import UNCHANGED, Side
from targetcharge.randomness import Rate, discrete_laplace

MANY = ["made up"] * 10_000
SIDE = side_of_threshold(len, 100, 1.0)


@tc.private(epsilon=1.0)
def noisy(rows, entropy):
    return len(rows) + discrete_laplace(entropy, Rate.at_most(1.0))


@tc.private(epsilon=1.0)
def first(rows):
    return rows[0]


def opendp_count():
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    return tc.from_opendp(space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0))


@pytest.mark.parametrize("algorithm", [noisy, noisy_count(len, 1.0), opendp_count()], ids=repr)
def test_a_rehearsal_returns_an_outcome_with_fresh_noise(algorithm):
    outcomes = [algorithm.rehearse(MANY) for _ in range(50)]
    assert all(abs(outcome - 10_000) < 60 for outcome in outcomes)
    assert len(set(outcomes)) > 1


@pytest.mark.parametrize(
    ("algorithm", "outcome"),
    [
        (first, "made up"),
        (SIDE, Side.ABOVE),
        (tc.boundary(SIDE), Side.ABOVE),
        (tc.twice(SIDE), (Side.ABOVE, Side.ABOVE)),
        (agreement(SIDE), Side.ABOVE),  # of the two that agree one is published
        (changed(len, 10_000, 500, 1.0), UNCHANGED),
        (exponential(lambda rows: [0, len(rows)], 1.0, ["few", "many"]), "many"),
    ],
    ids=repr,
)
def test_a_rehearsal_returns_what_a_session_would_publish(algorithm, outcome):
    assert algorithm.rehearse(MANY) == outcome


def test_a_distinct_count_is_rehearsed():
    assert distinct_count(lambda rows: rows, 1.0).rehearse(range(1_000)) > 100


def test_a_rehearsal_raises_what_the_function_raises():
    with pytest.raises(IndexError, match="list index out of range"):
        first.rehearse([])


def test_an_outcome_that_cannot_be_published_is_named_in_a_rehearsal():
    with pytest.raises(tc.InvalidParameter, match="outcome is <dict>; it must be None, a bool, an int"):
        first.rehearse([{"made": "up"}])
    with pytest.raises(tc.InvalidParameter, match="outcome is nan"):
        first.rehearse([float("nan")])


def test_a_failed_computation_says_how_to_rehearse():
    session, broken = tc.Session([], tc.Budget(3.0, 1e-6), 0.1), tc.private(epsilon=0.1)(lambda rows: rows[0])
    with pytest.raises(tc.ComputationFailed, match=r"algorithm\.rehearse\(data\)"):
        session.ask(broken, tc.NotPrior(None))
