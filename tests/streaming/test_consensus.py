"""Consensus is ε-DP where one copy is replaced: all rows of a few copies and replacements; drawn as it says."""

import math
from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest
from tests.goodness import DRAWS, FAR, BufferedEntropy, assert_only, draws_to_tell, pvalue
from tests.streaming.scripted_estimates import GRID, law_of, naive_scores, next_place

from targetcharge.streaming.consensus import Consensus, Grid

WIDE = Grid(1.0, 20.0, 1.0)
ROUNDING = 1 + 1e-9
EPSILONS = (0.05, 0.4, 2.0)


def representatives(moves):
    """Return two estimates of each cell, its lower edge and one inside, and none."""
    edges = moves.edges.tolist()
    return [-1.0, *edges, *(edge * 1.0001 for edge in edges), math.inf, math.nan]


def rows_of(copies, moves):
    """Return all rows of estimates, one of each cell or none, in rising order."""
    inside = [0.0, *(edge * 1.0001 for edge in moves.edges.tolist()), math.nan]
    return list(combinations_with_replacement(range(len(inside)), copies)), inside


def neighbours(copies, kinds):
    """Yield all pairs of rows of which one has one copy replaced."""
    for rest in combinations_with_replacement(range(kinds), copies - 1):
        for old in range(kinds):
            for new in range(kinds):
                if old != new:
                    yield tuple(sorted((*rest, old))), tuple(sorted((*rest, new)))


def all_scores(consensus, place):
    moves = consensus.grid.moves(place)
    rows, inside = rows_of(consensus.copies, moves)
    estimates = np.array([[inside[cell] for cell in row] for row in rows])
    return dict(zip(rows, consensus.scores(estimates, place), strict=True)), len(inside)


def cases():
    return [(GRID, copies, place) for copies in (2, 3, 4, 6) for place in range(4)] + [
        (WIDE, copies, place) for copies in (2, 5) for place in (0, 3, 6)
    ]


@pytest.mark.parametrize("inertia", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("grid", "copies", "place"), cases())
def test_a_replaced_copy_moves_each_score_by_at_most_one(grid, copies, place, inertia):
    scores, kinds = all_scores(Consensus(grid, copies, 1.0, inertia), place)
    changes = np.array([scores[first] - scores[second] for first, second in neighbours(copies, kinds)])
    assert np.abs(changes).max() == 1
    assert ((changes == 1).any(axis=1) & (changes == -1).any(axis=1)).any()


def worst_loss(consensus, place, rate):
    scores, kinds = all_scores(consensus, place)
    laws = dict(zip(scores, np.log(law_of(np.array(list(scores.values())), rate)), strict=True))
    return max(np.abs(laws[first] - laws[second]).max() for first, second in neighbours(consensus.copies, kinds))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("grid", "copies", "place"), cases())
def test_the_choice_is_private(grid, copies, place, epsilon):
    assert worst_loss(Consensus(grid, copies, epsilon), place, epsilon / 2) <= epsilon * ROUNDING


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_choice_uses_its_epsilon(epsilon):
    """Not much less is lost than what is paid for."""
    assert worst_loss(Consensus(GRID, 6, epsilon), 1, epsilon / 2) >= 0.85 * epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("copies", [2, 3, 4, 6])
def test_power_the_rate_of_monotone_scores_is_not_private(copies, epsilon):
    assert worst_loss(Consensus(GRID, copies, epsilon), 1, epsilon) > 1.3 * epsilon


@pytest.mark.parametrize(("grid", "copies", "place"), cases())
def test_scores_are_those_of_the_definition(grid, copies, place):
    consensus = Consensus(grid, copies, 1.0, inertia=0.5)
    moves = grid.moves(place)
    rows = list(combinations_with_replacement(representatives(moves), min(copies, 3)))
    estimates = np.array([row + row[:1] * (copies - len(row)) for row in rows])
    expected = [naive_scores(row, moves, int(0.5 * copies)) for row in estimates]
    assert consensus.scores(estimates, place).tolist() == expected


def test_scores_do_not_depend_on_the_order_of_the_copies():
    generator = np.random.default_rng(1)
    estimates = generator.choice([0.0, 0.9, 1.0, 2.5, 4.0, 9.0, math.inf, math.nan], size=(200, 7))
    consensus = Consensus(WIDE, 7, 1.0)
    shuffled = generator.permuted(estimates, axis=1)
    assert consensus.scores(estimates, 2).tolist() == consensus.scores(shuffled, 2).tolist()


ROWS = {
    "split": [0.5, 1.5, 1.5, 3.0, 9.0, 9.0],
    "agreeing": [1.5] * 6,
    "apart": [0.0, 0.0, 0.0, 9.0, 9.0, 9.0],
    "none": [math.nan] * 6,
    "failing": [3.0, 3.0, 3.0, math.nan, math.nan, math.inf],
}


def drawn_places(consensus, row, place, seed, draws=DRAWS):
    estimates = np.tile(np.array(row), (draws, 1))
    return Counter(consensus.draw(estimates, place, BufferedEntropy(seed)).tolist())


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("row", ROWS)
def test_draws_have_the_law(row, place):
    consensus = Consensus(GRID, 6, 0.7)
    counts = drawn_places(consensus, ROWS[row], place, seed=place)
    assert pvalue(counts, next_place(ROWS[row], place, consensus)) > FAR


@pytest.mark.parametrize("row", ["split", "agreeing", "none", "failing"])
def test_draws_do_not_have_a_law_that_is_a_little_off(row):
    consensus = Consensus(GRID, 6, 0.7)
    law, *wrong = (next_place(ROWS[row], 1, consensus, rate=0.35 * factor) for factor in (1, 0.95, 1.05))
    assert_only(drawn_places(consensus, ROWS[row], 1, seed=7, draws=draws_to_tell(law, *wrong)), law, *wrong)


def test_without_estimates_nothing_pulls_but_the_bonus():
    """All copies failed: the law is the same wherever they would have been."""
    law = next_place(ROWS["none"], 2, Consensus(GRID, 6, 0.7))
    assert max(law, key=law.get) == 2
    assert len({round(mass, 12) for place, mass in law.items() if place != 2}) == 1
