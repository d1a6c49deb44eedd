"""Whole sessions that also pay for everything they publish of some computations: none exceeds its guarantee.

A game is seeded by its case and number.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from tests.accounting.interactions import (
    Fresh,
    Revise,
    Selection,
    Twice,
    floor_rule,
    hockey_stick,
    random_floor,
    random_pair,
    random_subset,
    response,
)
from tests.accounting.offset_games import Ask, Mechanism, all_but, at_least, at_most, best_deltas
from tests.accounting.paid_games import Paid, cut_gaussian, exponential_mechanism, play, two_ratios
from tests.sizes import size

from targetcharge.accounting import exact_delta, offset_delta
from targetcharge.accounting.curves import BoundedRange, Gaussian, Pure
from targetcharge.accounting.exchange import SPREAD, hits_of, largest_pure, largest_range, largest_shift
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.offsets.noise import OffsetNoise
from targetcharge.accounting.targets import NOT_PRIOR, Kind
from targetcharge.numerics.search import largest_real

GAMES = size(150, 2000)
EPSILONS = (0.2, 0.5, 1.0, 2.0)
MULTIPLES = (0.0, 0.5, 1.0, 1.7, 2.0, 3.0, 4.3)
TOLERANCE = 1e-12
TWICE = Kind(disagreement=True)


@functools.cache
def largest(curve, epsilon, hits):
    """Return the largest ε, or range, that so many hits pay for."""
    return largest_real(lambda length: hits_of(curve(length), epsilon, hits) is not None, epsilon, 10.0, 1e-9)


@dataclass
class Adversary:
    """A random adaptive strategy that also asks for always-paid computations, as large as they may be.

    Attributes:
        rng: where its choices come from.
        epsilon: of every computation that is not always paid.
        menu: the kinds of action it takes.
        questions: how many it asks, over all branches of the game.
        charged: what it is charged for a computation that costs so many hits.
    """

    rng: np.random.Generator
    epsilon: float
    menu: tuple[str, ...]
    questions: int
    charged: dict[int, int]

    def __call__(self, node):
        self.questions -= 1
        if self.questions < 0 or self.rng.random() < 0.01:
            return None
        return getattr(self, str(self.rng.choice(self.menu)))(node)

    def pair(self):
        return random_pair(
            self.rng, self.epsilon, range(self.rng.integers(2, 5)), float(self.rng.choice([0.3, 0.9]))
        )

    def target(self, node, pair):
        """Return a target, often one whose misses raise a loss that is low and lower one that is high."""
        sign = -1 if node.loss < self.epsilon * self.rng.integers(3) - 1e-9 else 1
        clever = frozenset(y for y, (first, second) in pair.items() if sign * (first - second) > 0)
        return clever if clever and self.rng.random() < 0.7 else random_subset(self.rng, pair)

    def fresh(self, node):
        pair = self.pair()
        return Fresh(pair, self.target(node, pair))

    def revise(self, node):
        if not node.pending:
            return self.fresh(node)
        which = int(self.rng.integers(len(node.pending)))
        return Revise(which, self.target(node, node.pending[which]))

    def selection(self, node):
        candidates = tuple(self.pair() for _ in range(2))
        most = int(self.rng.integers(1, node.hits_left + 1))
        return Selection(candidates, most, floor_rule(most, random_floor(self.rng, 4)))

    def twice(self, _):
        return Twice(self.pair())

    def hits(self, node):
        """Return a number of hits that pay for a computation and are left as they are charged."""
        return int(self.rng.choice([hits for hits, charge in self.charged.items() if charge <= node.hits_left]))

    def paid(self, pair, hits):
        return Paid(pair if self.rng.random() < 0.5 else tuple(p[::-1] for p in pair), self.charged[hits])

    def noisy(self, node):
        """Ask for randomised response: the worst that is DP."""
        hits = self.hits(node)
        length = largest(Pure, self.epsilon, hits)
        return self.paid(two_ratios(2 * length, length), hits)

    def ranged(self, node):
        hits = self.hits(node)
        length = largest(BoundedRange, self.epsilon, hits)
        return self.paid(two_ratios(length, float(self.rng.uniform(0.3, 0.7)) * length), hits)

    def pick(self, node):
        """Ask for an exponential mechanism with scores that a unit raises, by 1 if at all."""
        hits, outcomes = self.hits(node), int(self.rng.integers(2, 6))
        rate = largest(BoundedRange, self.epsilon, hits)
        moved = [1, 0, *self.rng.integers(0, 2, outcomes - 2).tolist()]
        return self.paid(exponential_mechanism(rate, self.rng.integers(0, 3, outcomes), moved), hits)

    def gaussian(self, node):
        """Ask for a count with discrete Gaussian noise, whose far values are told together: that tells less."""
        hits, shift = self.hits(node), int(self.rng.choice([1, 3]))
        variance = float(SPREAD) + shift**2 / (hits * largest_shift(self.epsilon) ** 2)
        assert hits_of(Gaussian(shift**2, Fraction(variance * (1 + 1e-9))), self.epsilon, 9) == hits
        return self.paid(cut_gaussian(shift, variance * (1 + 1e-9), int(self.rng.integers(1, 4))), hits)


HONEST = {1: 1, 2: 2, 3: 3}
HALF = {1: 1, 2: 1, 3: 2}
TESTS = ("fresh", "revise", "selection")
PAIRS = ("noisy", "ranged", "pick")


def leaks(epsilon, hits, menu, charged, games):
    """Return δ of random games (rows) at the multiples of ε (columns)."""
    rows = []
    for game in range(games):
        rng = np.random.default_rng([hits, int(100 * epsilon), game])
        some = (str(rng.choice(menu[-1:] if "gaussian" in menu else PAIRS)), *sorted(random_subset(rng, menu)))
        leaves = play(Adversary(rng, epsilon, some, int(rng.choice([4, 15, 60])), charged), hits)
        assert sum(leaf.weight0 for leaf in leaves) == pytest.approx(1, abs=1e-11)
        assert sum(leaf.weight1 for leaf in leaves) == pytest.approx(1, abs=1e-11)
        rows.append(hockey_stick(leaves, epsilon * np.array(MULTIPLES)))
    return np.array(rows)


def bounds(epsilon, hits, kind=NOT_PRIOR):
    return np.array(
        [exact_delta(epsilon, hits, times * epsilon, disagreement=kind.disagreement) for times in MULTIPLES]
    )


CASES = [
    pytest.param((*TESTS, *PAIRS, "gaussian"), NOT_PRIOR, id="private tests"),
    pytest.param((*TESTS, "twice", *PAIRS), TWICE, id="run twice"),
]


@pytest.mark.parametrize("hits", [1, 2, 3])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("menu", "kind"), CASES)
def test_no_game_with_always_paid_computations_exceeds_the_guarantee(menu, kind, epsilon, hits):
    rows, bound = leaks(epsilon, hits, menu, HONEST, GAMES), bounds(epsilon, hits, kind)
    games = np.flatnonzero((rows > bound + TOLERANCE).any(axis=1))
    assert not len(games), f"games {games} exceed the bound, by up to {(rows - bound).max():.3g}"
    assert (rows / bound).max() > 0.85


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("menu", "kind"), CASES)
def test_power_games_that_are_charged_half_as_many_hits_do_exceed_it(menu, kind, epsilon):
    exceeded = [(leaks(epsilon, hits, menu, HALF, 20) > bounds(epsilon, hits, kind) + 1e-4) for hits in (1, 2)]
    assert all(rows.any() for rows in exceeded)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_power_a_response_that_is_a_thousandth_too_large_exceeds_one_hit(epsilon):
    for times, exceeds in ((1.0, False), (1.001, True)):
        length = times * largest_pure(epsilon)
        leaves = play(lambda node: None if node.transcript else Paid(two_ratios(2 * length, length)), 1)  # noqa: B023
        assert (hockey_stick(leaves, [0.0])[0] > exact_delta(epsilon, 1, 0.0)) == exceeds


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_peeled_picks_stay_below_as_many_hits(epsilon):
    """Five candidates, of which two are raised: three picks, each without those before it."""

    def peeled(rate):
        def strategy(node):
            left = [place for place in range(5) if place not in chosen(node)]
            return Paid(exponential_mechanism(rate, [0] * len(left), [int(place < 2) for place in left]))

        def chosen(node):
            taken: list[int] = []
            for place in node.transcript:
                taken.append([other for other in range(5) if other not in taken][place])
            return taken

        return hockey_stick(play(strategy, 3), epsilon * np.array(MULTIPLES))

    bound = bounds(epsilon, 3)
    assert (peeled(largest_range(epsilon)) <= bound + TOLERANCE).all()
    assert (peeled(2.5 * largest_range(epsilon)) > bound).any()


# With a secret offset, integrated out: every strategy is tried


WHOLE = (0.0, 0.3, 0.8, 1.5, 2.5)


def excess(mechanism, menu, questions, hits, claim):
    """Return by how much the best strategy exceeds a claim for certain."""
    deltas = best_deltas(mechanism, menu, questions, hits, WHOLE)
    return float((deltas - np.exp(WHOLE) * mechanism.dropped - np.array(claim) * (1 + 1e-9)).max())


def half_menu(rng, query, charged):
    """Return tests of numbers that carry the offset, and computations at the rates of half the query ε."""
    threshold, epsilon = int(rng.integers(-3, 4)), query / 2
    targets = [at_least(threshold, 4), at_most(threshold, 4), all_but(threshold, 1, 3)]
    asked = [Ask(int(rng.integers(2)), targets[rng.integers(3)], block=int(rng.choice([1, 5]))) for _ in range(2)]
    hits = int(rng.choice([hits for hits in charged if charged[hits] == 1 or rng.random() < 0.5]))
    length, ranged = largest(Pure, epsilon, hits), largest(BoundedRange, epsilon, hits)
    noise = cut_gaussian(1, 2.5 + 1 / (hits * largest_shift(epsilon) ** 2), 2)
    pairs = two_ratios(2 * length, length), exponential_mechanism(ranged, (0, 0, 0), (1, 1, 0)), noise
    return [*asked, *(Paid(pair, charged[hits]) for pair in pairs[: 2 + int(rng.integers(2))])]


def test_no_session_with_an_offset_at_half_exceeds_its_guarantee_and_mutants_do():
    seen = []
    for charged, exceeds in ((HONEST, False), (HALF, True)):
        rng, over = np.random.default_rng(5), []
        for _ in range(size(60, 600)):
            offset, query, hits = (
                float(rng.choice([0.5, 2.0])),
                float(rng.choice([1.0, 2.0])),
                int(rng.integers(1, 4)),
            )
            mechanism = Mechanism(offset, query, lattice=2, removed=bool(rng.integers(2)))
            menu = [
                question
                for question in half_menu(rng, query, charged)
                if not isinstance(question, Paid) or question.hits <= hits
            ]
            claim = [offset_delta(offset, query, hits, epsilon) for epsilon in WHOLE]
            over.append(excess(mechanism, menu, 3, hits, claim))
        assert (max(over) > 1e-4) == exceeds
        seen.append(max(over))
    assert seen[0] <= 0


def test_in_a_pure_session_each_computation_adds_its_own_epsilon():
    """Two hits of 0.5 and an offset of 1: beyond 2 nothing is left, and just below it something is."""
    response, double = two_ratios(1.0, 0.5), two_ratios(2.0, 1.0)
    pick = exponential_mechanism(0.5, (0, 0, 0), (1, 0, 0))
    for threshold, removed in itertools.product((0, 1, 2), (False, True)):
        mechanism = Mechanism(1.0, 0.5, "geometric", lattice=1, removed=removed)
        menu = [Ask(1, at_least(threshold)), Ask(0, at_least(threshold)), Ask(1, at_least(threshold), block=5)]
        menu += [Paid(response), Paid(pick), Paid(tuple(chances[::-1] for chances in pick)), Paid(double, 2)]
        assert best_deltas(mechanism, menu, 3, 2, [2.0])[0] <= 10 * mechanism.dropped
        if threshold == 1 and not removed:
            assert best_deltas(mechanism, menu, 3, 2, [1.9])[0] > 0.01
            assert best_deltas(mechanism, [*menu, Paid(double, 1)], 3, 2, [2.0])[0] > 0.1


@pytest.mark.parametrize(
    ("noise", "offset_noise"), [("gumbel", "laplace"), ("gumbel", "geometric"), ("laplace", "")]
)
def test_no_at_least_session_with_computations_of_its_range_exceeds_its_guarantee(noise, offset_noise):
    worst = {1.0: [], 2.5: []}
    for times, over in worst.items():
        rng = np.random.default_rng(11)
        for _ in range(size(40, 400)):
            offset, query, hits = (
                float(rng.choice([1.0, 3.0])),
                float(rng.choice([1.0, 2.0])),
                int(rng.integers(1, 3)),
            )
            mechanism = Mechanism(offset, query, noise, offset_noise, 2, removed=bool(rng.integers(2)))
            asked = [
                Ask(moved, at_least(int(rng.integers(-4, 5)), 5), block=int(rng.choice([1, 5])))
                for moved in (0, 1)
            ]
            length = times * query
            pairs = [two_ratios(length, float(rng.uniform(0.2, 0.8)) * length)]
            pairs.append(exponential_mechanism(length, (0, 1, 0), (1, int(rng.integers(2)), 0)))
            menu = [*asked, *map(Paid, pairs), *(Paid(tuple(p[::-1] for p in pair)) for pair in pairs)]
            law = OffsetNoise(offset, query, noise, "at least", offset_noise)
            claim = [
                min(Coupling(law, share, 200_000).delta(hits, epsilon) for share in (50, 100)) for epsilon in WHOLE
            ]
            over.append(excess(mechanism, menu, 3, hits, claim))
    assert max(worst[1.0]) <= 0
    assert max(worst[2.5]) > 1e-4


def test_the_pairs_of_games_are_what_they_say():
    assert two_ratios(2.0, 1.0) == pytest.approx(np.array([response(1.0)[1], response(1.0)[-1]]), rel=1e-12)
    for pair in (exponential_mechanism(0.7, (0, 2, 1), (1, 0, 1)), two_ratios(0.7, 0.3)):
        ratios = [math.log(first / second) for first, second in pair]
        assert max(ratios) - min(ratios) == pytest.approx(0.7)
    assert [sum(side) for side in zip(*cut_gaussian(2, 3.0, 2), strict=True)] == pytest.approx([1.0, 1.0])
