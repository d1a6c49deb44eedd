"""Exact accounting against whole interactions, enumerated: none exceeds the bound, some meet it.

A game is seeded by its case and number.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounting.interactions import (
    NOTHING,
    Fresh,
    Published,
    Revise,
    Selection,
    Twice,
    floor_rule,
    hockey_stick,
    largest_gap_rule,
    play,
    random_floor,
    random_pair,
    random_subset,
    response,
    searched_table,
    table_strategy,
)
from tests.sizes import size

from targetcharge.accounting import best_q, exact_delta, exact_epsilon, split

GAMES = size(50, 500)
ENOUGH = max(GAMES, 150)
"""Games that suffice to show that the comparison can fail."""

EPSILONS = (0.2, 0.5, 1.0, 2.0)
MULTIPLES = (0.0, 0.5, 1.0, 1.7, 2.0, 3.0, 4.3)
QS = (0.05, 0.15, 0.3, 0.5, 0.8)
TOLERANCE = 1e-12

PLAIN = ("fresh", "revise", "selection")
WITH_TWICE = (*PLAIN, "twice")
PUBLISHED = ("published",)
EVERYTHING = (*WITH_TWICE, *PUBLISHED)


@dataclass
class Adversary:
    """A random adaptive strategy.

    Attributes:
        rng: where its choices come from.
        epsilon: of every computation.
        menu: the kinds of action it takes.
        questions: how many it asks, over all branches of the game.
        aim: with probability `skill` a target is chosen to push the loss up to or past this.
        skill: the probability of a clever choice.
        extreme: the probability that a pair is randomised response.
        q: published computations have at least this q.
        least_q: the smallest q of any published computation so far.
    """

    rng: np.random.Generator
    epsilon: float
    menu: tuple[str, ...]
    questions: int
    aim: float
    skill: float
    extreme: float
    q: float
    least_q: float = 1.0

    @classmethod
    def random(cls, rng, epsilon, menu):
        some = tuple(sorted(random_subset(rng, menu)))
        questions, aim = int(rng.choice([5, 20, 80])), epsilon * int(rng.integers(0, 4))
        skill, extreme = rng.choice([0.2, 0.6, 0.95], 2)
        return cls(rng, epsilon, some, questions, aim, skill, extreme, float(rng.choice(QS)))

    def __call__(self, node):
        self.questions -= 1
        if self.questions < 0 or self.rng.random() < 0.01:
            return None
        return getattr(self, self.menu[self.rng.integers(len(self.menu))])(node)

    def pair(self, least, most):
        return random_pair(self.rng, self.epsilon, range(self.rng.integers(least, most + 1)), self.extreme)

    def wants_up(self, node):
        """Return whether the loss is below the aim, so that the free outcomes should raise it."""
        return node.loss < self.aim - 1e-9

    def target(self, node, pair):
        sign = -1 if self.wants_up(node) else 1
        clever = frozenset(y for y, (p0, p1) in pair.items() if sign * (p0 - p1) > 0)
        return clever if clever and self.rng.random() < self.skill else random_subset(self.rng, pair)

    def fresh(self, node):
        pair = self.pair(2, 4)
        return Fresh(pair, self.target(node, pair))

    def revise(self, node):
        if not node.pending or self.rng.random() < 0.3:
            pair = self.pair(2, 4)
            return Fresh(pair, random_subset(self.rng, pair))
        which = int(self.rng.integers(len(node.pending)))
        return Revise(which, self.target(node, node.pending[which]))

    def selection(self, node):
        candidates = tuple(self.pair(2, 4) for _ in range(self.rng.integers(2, 4)))
        most = int(self.rng.integers(1, node.hits_left + 1))
        return Selection(candidates, most, floor_rule(most, random_floor(self.rng, 4)))

    def twice(self, _):
        return Twice(self.pair(2, 3))

    def published(self, node):
        pair = self.pair(2, 4)
        target = self.target(node, pair)
        if self.rng.random() < self.skill:
            pair, target = self.sparing(node)
        if q_of(pair, target, self.epsilon) < self.q - TOLERANCE:
            target = frozenset(pair)
        self.least_q = min(self.least_q, q_of(pair, target, self.epsilon))
        return Published(pair, target)

    def sparing(self, node):
        """Return randomised response with a coin that hits as rarely as q allows."""
        (up, down), _ = response(self.epsilon).values()
        rates = sorted((0.0, self.q / down) if self.q <= down else (1.0, (self.q - down) / up))
        plus, minus = rates if self.wants_up(node) else rates[::-1]
        if self.rng.random() < 0.1:
            plus = minus = self.q
        chances = ((up * plus, down * plus), (up * (1 - plus), down * (1 - plus)))
        chances += ((down * minus, up * minus), (down * (1 - minus), up * (1 - minus)))
        return {y: p for y, p in enumerate(chances) if p[0] > 0}, frozenset({0, 2})


def q_of(pair, target, epsilon):
    law0, law1 = zip(*pair.values(), strict=True)
    return best_q(law0, law1, [outcome in target for outcome in pair], epsilon)


@functools.cache
def leaks(menu, epsilon, hits, games):
    """Return δ of random games (rows) at the multiples of ε (columns), and each game's smallest q."""
    rows, qs = [], []
    for game in range(games):
        adversary = Adversary.random(np.random.default_rng([hits, int(100 * epsilon), game]), epsilon, menu)
        leaves = play(adversary, hits)
        assert sum(leaf.weight0 for leaf in leaves) == pytest.approx(1, abs=1e-12)
        assert sum(leaf.weight1 for leaf in leaves) == pytest.approx(1, abs=1e-12)
        rows.append(hockey_stick(leaves, epsilon * np.array(MULTIPLES)))
        qs.append(adversary.least_q)
    return np.array(rows), qs


@functools.cache
def bounds(query_epsilon, hits, q=None, *, epsilon=None, disagreement=False):
    """Return the exact bound at the multiples of ε."""
    epsilon = query_epsilon if epsilon is None else epsilon
    return np.array(
        [exact_delta(query_epsilon, hits, m * epsilon, q, disagreement=disagreement) for m in MULTIPLES]
    )


def assert_never_exceeded(rows, bound):
    games = np.flatnonzero((rows > bound + TOLERANCE).any(axis=1))
    assert not len(games), f"games {games} exceed the bound, by up to {(rows - bound).max():.3g}"


def test_a_revised_computation_publishes_each_outcome_with_its_probability():
    pair = {0: (0.5, 0.4), 1: (0.3, 0.3), 2: (0.2, 0.3)}
    actions = [Fresh(pair, frozenset({0})), Revise(0, frozenset({2}))]
    leaves = play(lambda node: dict(enumerate(actions)).get(len(node.transcript)), hits=1)
    found = {leaf.transcript: (leaf.weight0, leaf.weight1) for leaf in leaves}
    assert found == {
        (0,): pytest.approx((0.5, 0.4)),
        (NOTHING, 2): pytest.approx((0.2, 0.3)),
        (NOTHING, NOTHING): pytest.approx((0.3, 0.3)),
    }


def test_a_selection_breaks_ties_by_index_and_shows_only_that_nothing_else_reached_the_floor():
    selection = Selection((response(1.0, 1, 0),) * 2, 2, floor_rule(2, lambda _: 1))
    up = response(1.0)[1][0]
    leaves = play(lambda node: None if node.transcript else selection, hits=2)
    found = {leaf.transcript[0]: leaf.weight0 for leaf in leaves}
    assert found == pytest.approx(
        {((0, 1), (1, 1)): up * up, ((0, 1),): up * (1 - up), ((1, 1),): up * (1 - up), (): (1 - up) ** 2}
    )


def test_a_selection_of_more_than_the_hits_left_is_refused():
    selection = Selection((response(1.0),) * 3, 2, floor_rule(2, lambda _: 0))
    with pytest.raises(ValueError, match="needs as many hits"):
        play(lambda _: selection, hits=1)


@pytest.mark.parametrize("hits", [1, 2, 3])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_interaction_of_tests_revisions_and_selections_exceeds_the_bound(epsilon, hits):
    rows, _ = leaks(PLAIN, epsilon, hits, GAMES)
    assert_never_exceeded(rows, bounds(epsilon, hits))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_same_games_do_exceed_a_bound_that_is_a_little_too_small(epsilon):
    best1, best2 = (leaks(PLAIN, epsilon, hits, ENOUGH)[0].max(axis=0) for hits in (1, 2))
    assert (best1 > bounds(0.9 * epsilon, 1, epsilon=epsilon)).any()
    assert (best2 > bounds(epsilon, 1)).any()
    assert (best1 / bounds(epsilon, 1)).max() > 0.98


@pytest.mark.parametrize("hits", [1, 2, 3])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_interaction_with_run_twice_exceeds_the_bound_with_disagreement(epsilon, hits):
    rows, _ = leaks(WITH_TWICE, epsilon, hits, GAMES)
    assert_never_exceeded(rows, bounds(epsilon, hits, disagreement=True))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_run_twice_exceeds_the_bound_without_disagreement(epsilon):
    rows, _ = leaks(WITH_TWICE, epsilon, 1, ENOUGH)
    assert (rows > 1.005 * bounds(epsilon, 1)).any()


@pytest.mark.parametrize("hits", [1, 2])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("menu", [PUBLISHED, EVERYTHING], ids=["published", "everything"])
def test_no_interaction_of_q_targets_exceeds_the_bound_of_its_smallest_q(menu, epsilon, hits):
    rows, qs = leaks(menu, epsilon, hits, GAMES // 2)
    kinds = [math.floor(q * 1e9) / 1e9 for q in qs]
    assert_never_exceeded(
        rows, np.array([bounds(epsilon, hits, q, disagreement=menu is EVERYTHING) for q in kinds])
    )


def test_sparing_q_targets_do_exceed_the_bound_of_a_slightly_larger_q():
    rows, qs = leaks(PUBLISHED, 0.5, 1, ENOUGH)
    larger = np.array([bounds(0.5, 1, min(1.0, 1.05 * q)) for q in qs])
    assert (rows > larger + 1e-3).any()


@pytest.mark.parametrize(
    ("epsilon", "hits", "whole_epsilon"),
    [(1.0, 1, 1.0), (1.0, 1, 2.5), (1.0, 2, 1.0), (2.0, 2, 2.0), (0.5, 1, 0.5), (1.0, 3, 1.0)],
)
def test_a_searched_interaction_comes_within_two_percent(epsilon, hits, whole_epsilon):
    rng, steps = np.random.default_rng(7), 14
    bound = exact_delta(epsilon, hits, whole_epsilon)
    searches = (searched_table(rng, epsilon, hits, steps, whole_epsilon) for _ in range(80))
    table, found = next(((t, d) for t, d in searches if d >= 0.98 * bound), (None, 0.0))
    assert 0.98 * bound <= found <= bound
    enumerated = hockey_stick(play(table_strategy(table, epsilon, steps), hits), [whole_epsilon])
    assert enumerated == pytest.approx(found, rel=1e-12)


def test_top_one_selection_attains_the_bound_of_one_hit():
    """Thirteen candidates, one per level: − is released at the loss 0, + at the loss ε."""
    candidates = [response(0.1, *((0, 13 - i) if i % 2 == 0 else (13 - i, 0))) for i in range(13)]
    selection = Selection(tuple(candidates), 1, floor_rule(1, lambda _: 0))
    leaves = play(lambda node: None if node.transcript else selection, hits=1)
    assert 0.9999 < hockey_stick(leaves, [0.0])[0] / exact_delta(0.1, 1, 0.0) < 1


def once(candidates, rule, grid):
    """Return δ of a session that only selects, at most two."""
    selection = Selection(candidates, 2, rule)
    return hockey_stick(play(lambda node: None if node.transcript else selection, hits=2), grid)


def worst_candidates(rng, epsilon, grid, bound):
    """Return six candidates, found by random changes, for which the largest-gap rule leaks much."""
    levels, best = [int(rng.integers(9)) for _ in range(6)], 0.0
    for _ in range(150):
        trial = [int(rng.integers(9)) if rng.random() < 0.3 else level for level in levels]
        candidates = tuple(response(epsilon, level, 9) for level in trial)
        found = (once(candidates, largest_gap_rule(3), grid) / bound).max()
        if found >= best:
            levels, best = trial, found
    return tuple(response(epsilon, level, 9) for level in levels)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_a_rule_that_peeks_at_an_unreleased_score_exceeds_the_bound_and_no_floor_rule_does(epsilon):
    rng = np.random.default_rng(3)
    grid = epsilon * np.arange(4)
    bound, charged = ([exact_delta(epsilon, hits, e) for e in grid] for hits in (2, 3))
    candidates = worst_candidates(rng, epsilon, grid, bound)
    peeking = once(candidates, largest_gap_rule(3), grid)
    assert (peeking / bound).max() > 1.03
    assert (peeking < charged).all()
    for _ in range(GAMES):
        assert (once(candidates, floor_rule(2, random_floor(rng, 10)), grid) <= bound).all()


def test_the_epsilon_of_the_hits_so_far_would_be_a_false_claim():
    """Stop when the loss exceeds what the hits so far would cost: the loss rises for free until it does."""
    epsilon, hits, delta = 0.5, 3, 0.01
    claims = [0.0, *(exact_epsilon(epsilon, so_far, delta) for so_far in (1, 2, 3))]

    def strategy(node):
        so_far = hits - node.hits_left
        if len(node.transcript) == 12 or (so_far and node.loss > claims[so_far]):
            return None
        return Fresh(response(epsilon), frozenset({-1 if node.loss < claims[max(so_far, 1)] else 1}))

    leaves = play(strategy, hits)
    late = [(leaf, claims[hits - leaf.hits_left]) for leaf in leaves if leaf.hits_left < hits]
    assert sum(leaf.weight0 for leaf, claim in late if leaf.loss > claim) > 5 * delta
    assert sum(max(0.0, leaf.weight0 - math.exp(claim) * leaf.weight1) for leaf, claim in late) > 1.9 * delta
    assert hockey_stick(leaves, [claims[hits]])[0] <= delta


def test_no_hits_so_far_is_not_no_loss():
    leaves = play(lambda node: None if node.transcript else Fresh(response(0.5), frozenset({-1})), hits=3)
    (free,) = (leaf for leaf in leaves if leaf.hits_left == 3)
    assert free.weight0 - free.weight1 > 0.2
    assert hockey_stick(leaves, [exact_epsilon(0.5, 3, 0.01)])[0] <= 0.01


@st.composite
def pairs(draw):
    """Draw ε and an ε-close pair: a law and its tilting, or ratios of e^{±ε} throughout."""
    epsilon = draw(st.floats(0.01, 4))
    entries = draw(st.lists(st.tuples(st.floats(1e-3, 1), st.floats(-0.5, 0.5)), min_size=2, max_size=6))
    law1, tilt = np.array(entries).T
    if draw(st.booleans()):
        signs = np.resize([1, -1], len(law1))
        (_, down), (_, up) = response(epsilon).values()
        law1 = np.where(signs > 0, down * law1 / law1[signs > 0].sum(), up * law1 / law1[signs < 0].sum())
        return law1 * np.exp(signs * epsilon), law1, epsilon
    law0 = law1 * np.exp(tilt * epsilon)
    return law0 / law0.sum(), law1 / law1.sum(), epsilon


@given(pairs())
def test_structure_lemma(drawn):
    law0, law1, epsilon = drawn
    parts = split(law0, law1, epsilon)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-13)
    assert (parts.common >= 0).all()
    close(parts.common + parts.residual0, law0)
    close(parts.common + parts.residual1, law1)
    plus, minus = law0 > law1, law0 < law1
    close(parts.residual0[plus], math.exp(epsilon) * parts.residual1[plus])
    close(parts.residual1[minus], math.exp(epsilon) * parts.residual0[minus])
    close(parts.residual0[law0 == law1], 0)
    up, down = response(epsilon)[1]
    close(down * parts.residual0[plus].sum(), up * parts.residual0[minus].sum())
    close(up * parts.residual1[plus].sum(), down * parts.residual1[minus].sum())
