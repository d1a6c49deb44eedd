"""Sessions with an offset against games that integrate it out: none exceeds the guarantee, every mistake does."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.accounting.offset_games import (
    Ask,
    Mechanism,
    Top,
    all_but,
    at_least,
    at_most,
    best_deltas,
    between,
    gaps,
)
from tests.sizes import size

from targetcharge.accounting import offset_delta
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.offsets.noise import OffsetNoise

EPSILONS = (0.0, 0.3, 0.8, 1.5, 2.5, 4.0)

SESSIONS = [
    ("any", "laplace", "laplace", 2),
    ("at least", "laplace", "laplace", 1),
    ("at least", "laplace", "laplace", 2),
    ("at least", "geometric", "geometric", 1),
    ("at least", "gumbel", "laplace", 2),
    ("at least", "gumbel", "geometric", 2),
]
"""(questions, noise, law of the offset, M)."""


@functools.cache
def claimed(questions, noise, offset_noise, lattice, offset, query, hits):
    """Return δ' at EPSILONS by the couplings that the lattice 1/M has."""
    law = OffsetNoise(offset, query, noise, questions, offset_noise)
    pure = noise == "geometric"
    shares = [share for share in range(100 if pure else 50, 101) if share * lattice % 100 == 0]
    couplings = [Coupling(law, share, 200_000) for share in (shares if questions == "at least" else [50])]
    return np.array([min(coupling.delta(hits, epsilon) for coupling in couplings) for epsilon in EPSILONS])


def random_question(rng, lattice, questions):
    """Return a question with a threshold anywhere that matters."""
    sensitivity = int(rng.choice([1, 1, 2]))
    moved, threshold = int(rng.integers(sensitivity + 1)), int(rng.integers(-3 * lattice, 3 * lattice + 1))
    block = int(rng.choice([1, 1, 2, 5, 20]))
    targets = {"at least": at_least(threshold, 6)}
    if questions == "any":
        targets["at most"] = at_most(threshold, 6)
        targets["between"] = between(threshold, threshold + int(rng.integers(3)))
        targets["all but"] = all_but(threshold, int(rng.integers(3)), 4)
    kind = str(rng.choice([*targets, "falling", "top"]))
    if kind == "falling":
        lower = tuple(between(threshold - 2 * step, threshold - 2 * step + 1) for step in (1, 2))
        return Ask(moved, targets["at least"], sensitivity, revisions=lower)
    if kind == "top":
        candidates = tuple((int(rng.integers(-1, 2)), int(rng.integers(2))) for _ in range(rng.integers(2, 4)))
        return Top(candidates, int(rng.integers(1, 3)), -3 * lattice, 3 * lattice)
    return Ask(moved, targets[kind], sensitivity, block)


def random_game(rng, questions, noise, offset_noise, lattice):
    """Return a mechanism, a menu, how many questions are asked, and how many hits there are."""
    rates = float(rng.choice([0.5, 1.0, 2.0, 4.0])), float(rng.choice([0.5, 1.0, 2.0]))
    mechanism = Mechanism(*rates, noise, offset_noise, lattice, removed=bool(rng.integers(2)))
    menu = [random_question(rng, lattice, questions) for _ in range(rng.integers(1, 4))]
    hits = int(rng.choice([1, 1, 2, 3]))
    return mechanism, menu, int(rng.integers(max(2, hits), 4)), hits


def excess(mechanism, menu, questions, hits, claim):
    """Return by how much a game exceeds a claim for certain, and how close it comes to it."""
    deltas = best_deltas(mechanism, menu, questions, hits, EPSILONS)
    least = deltas - np.exp(EPSILONS) * mechanism.dropped
    told = claim > 1e-5
    return float((least - claim * (1 + 1e-9)).max()), float((least[told] / claim[told]).max(initial=0.0))


@pytest.mark.parametrize("session", SESSIONS, ids=str)
def test_no_random_game_exceeds_the_guarantee(session):
    rng, closest = np.random.default_rng(19), 0.0
    for _ in range(size(30, 1500)):
        mechanism, menu, asked, hits = random_game(rng, *session)
        claim = claimed(*session, mechanism.offset_epsilon, mechanism.query_epsilon, hits)
        over, close = excess(mechanism, menu, asked, hits, claim)
        assert over <= 0, (mechanism, menu, asked, hits)
        closest = max(closest, close)
    assert closest > 0.5


@pytest.mark.parametrize(("noise", "lattice"), [("laplace", 20), ("gumbel", 50)])
@pytest.mark.parametrize("removed", [False, True])
def test_no_game_on_a_fine_lattice_exceeds_the_best_coupling(noise, lattice, removed):
    """Every λ that is tried is a point of the lattice."""
    for offset, query, hits in [(2.0, 4.0, 1), (1.0, 3.0, 2)]:
        mechanism = Mechanism(offset, query, noise, lattice=lattice, removed=removed)
        cells = tuple((lattice * low // 2, lattice * (low + 1) // 2 - 1) for low in range(-1, 4))
        target = (*cells, (2 * lattice, math.inf))
        menu = [Ask(moved, target, block=block) for moved in (0, 1) for block in (1, 10)]
        deltas = best_deltas(mechanism, menu, 3, hits, EPSILONS)
        for epsilon, delta in zip(EPSILONS, deltas, strict=True):
            claim = offset_delta(offset, query, hits, epsilon, noise, "at least")
            assert delta - math.exp(epsilon) * mechanism.dropped <= claim


@pytest.mark.parametrize("session", [SESSIONS[0], SESSIONS[1], SESSIONS[3], SESSIONS[5]], ids=str)
def test_power_what_is_claimed_for_a_third_of_the_rates_is_exceeded(session):
    rng, seen = np.random.default_rng(19), 0
    for _ in range(20):
        mechanism, menu, asked, hits = random_game(rng, *session)
        rates = mechanism.offset_epsilon / 3, mechanism.query_epsilon / 3
        seen += excess(mechanism, menu, asked, hits, claimed(*session, *rates, hits))[0] > 1e-6
    assert seen > 1


# Counter-examples: what a session must not do, and what would be claimed for it

ONE = Mechanism(1.0, 1.0, lattice=1)


def claims_nothing(mechanism, epsilon, hits=1):
    """Return whether λ = 1 would claim that δ' is 0."""
    law = OffsetNoise(
        mechanism.offset_epsilon, mechanism.query_epsilon, mechanism.noise, "at least", mechanism.offset_law
    )
    return Coupling(law, 100).delta(hits, epsilon) < 1e-15


def test_signed_contributions():
    menu = [Ask(moved, at_least(threshold), block=3) for moved in (-1, 0, 1) for threshold in range(-2, 4)]
    menu += [replace(ask, block=1) for ask in menu]
    assert best_deltas(ONE, menu, 2, 1, [2.0])[0] == pytest.approx(0.0929, abs=5e-5)
    assert best_deltas(ONE, [ask for ask in menu if ask.moved >= 0], 2, 1, [2.0])[0] < 1e-9
    assert claims_nothing(ONE, 2.0 + 1e-9)


def test_one_offset_for_at_least_and_at_most():
    mechanism = replace(ONE, removed=True)
    misses, hit = Ask(1, at_most(0, 20), block=6), Ask(0, at_least(0, 20), block=3)
    assert best_deltas(mechanism, [misses, hit], 2, 1, [2.0])[0] == pytest.approx(0.0092, abs=5e-5)
    assert claims_nothing(mechanism, 2.0 + 1e-9)


@pytest.mark.parametrize(("noise", "delta"), [("gumbel", 0.0702), ("geometric", 0.321)])
def test_all_ties_published_for_one_hit(noise, delta):
    """This direction has no first move."""
    mechanism = Mechanism(1.0, 1.5, noise, "geometric", lattice=1, removed=True)
    tied = Top(((0, 1),) * 3, 1, -30, 30, ties=True)
    assert best_deltas(mechanism, [tied], 1, 1, [1.5])[0] == pytest.approx(
        delta, abs=5e-4 if delta > 0.1 else 5e-5
    )
    assert best_deltas(mechanism, [replace(tied, ties=False)], 1, 1, [1.5])[0] < 1e-9


def test_individual_charging_with_an_offset():
    """Ten misses with the unit, then three hits without it: no hit is charged to it."""
    miss, hit = Ask(1, at_least(-1), block=10), Ask(0, ((-2, math.inf),))
    (missed, _), (_, three) = miss.branches(ONE), hit.branches(ONE)
    first, second = (
        float((ONE.weights * one[0] * other[0] ** 3).sum())
        for one, other in ((missed.first, three.first), (missed.second, three.second))
    )
    assert math.log(first / second) == pytest.approx(3.998, abs=5e-4)
    assert first == pytest.approx(0.0012, abs=5e-5)


def test_a_pick_of_twice_the_range_for_one_hit():
    """Five equal candidates, one of which the unit raises: the exponential mechanism with range 2·ε2."""
    query = 0.1
    raised = math.exp(2 * query) / (math.exp(2 * query) + 4)
    assert raised - math.exp(query) / 5 == pytest.approx(0.0129, abs=5e-5)
    assert claims_nothing(replace(ONE, offset_epsilon=1e-7, query_epsilon=query), query + 1e-6)
    half = math.exp(query) / (math.exp(query) + 4)
    assert half - math.exp(query) / 5 < 0


# The games themselves


def test_what_can_happen_adds_up_to_one():
    for noise in ("laplace", "geometric", "gumbel"):
        mechanism = Mechanism(1.0, 1.0, noise, lattice=2)
        missed, hit = Ask(1, at_least(1), revisions=(between(-1, 0),)).branches(mechanism)
        np.testing.assert_allclose(missed.first.sum(axis=0) + hit.first.sum(axis=0), 1.0, atol=1e-12)
        (later,) = missed.pending
        total = sum(branch.second.sum(axis=0) for branch in later.branches(mechanism))
        np.testing.assert_allclose(total[missed.second[0] > 0], 1.0)
        (top,) = Top(((0, 1), (1, 0), (0, 0)), 2, -12, 12).branches(mechanism)
        np.testing.assert_allclose(top.first.sum(axis=0), 1.0)


def test_gaps_are_what_is_left():
    assert gaps(at_least(3, 2)) == ((-math.inf, 2),)
    assert gaps(all_but(0, 1, 2)) == ((-1, 1),)
    assert gaps(()) == ((-math.inf, math.inf),)
    assert gaps(((1, 2), (5, math.inf))) == ((-math.inf, 0), (3, 4))
