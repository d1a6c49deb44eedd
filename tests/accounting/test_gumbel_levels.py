"""Gumbel noise below λ = 1: certified levels lie between what questions attain and a slow bound from above."""

import itertools

import numpy as np
import pytest
from tests.accounting.offset_games import (
    Ask,
    Mechanism,
    at_least,
    best_deltas,
    gumbel_delta_attained,
    gumbel_delta_from_above,
    points_delta,
)
from tests.refusals import every
from tests.sizes import size, spread

from targetcharge.accounting import gumbel_delta
from targetcharge.accounting.exact.lattice import Lattice
from targetcharge.accounting.offsets import gumbel
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.offsets.games import GumbelGame, LaplaceGame
from targetcharge.accounting.offsets.gumbel import gumbel_levels
from targetcharge.accounting.offsets.noise import OffsetNoise
from targetcharge.errors import InvalidParameter

CELLS = 20
"""Into how many a query ε is divided by the slow ways."""

GAMES = list(itertools.product([0.2, 1.0, 2.5], [10, 12, 14, 16], [1, 2, 3], [0, 10, 30]))
"""(ε2, λ in 20ths, hits, ε' in 20ths of ε2)."""


def certified(query, above, below, hits, delta=1e-8, finer=15):
    """Return the certified level of a game, on 300 cells for a query ε."""
    game = GumbelGame(finer * above, finer * below)
    return list(gumbel_levels(Lattice.for_hits(game, query / (finer * CELLS), hits, delta), hits))[-1]


def slow(query, share, hits, place, *, width=2 * CELLS):
    """Return δ' that is attained, and a bound from above."""
    epsilon, twice = place * query / CELLS, 2 * share
    attained = gumbel_delta_attained(
        query * share / CELLS, query * (CELLS - share) / CELLS, query / width, hits, epsilon
    )
    return attained, gumbel_delta_from_above(twice, width - twice, query / width, hits, 2 * place)


def test_certified_levels_lie_between_what_is_attained_and_a_slow_bound():
    closest = []

    def check(query, share, hits, place):
        attained, most = slow(query, share, hits, place)
        delta = certified(query, share, CELLS - share, hits).delta_at(place * query / CELLS)
        assert attained <= delta * (1 + 1e-9)
        assert delta <= most * (1 + 1e-9)
        closest.append(attained / delta)

    every(spread(GAMES, 11), check)
    assert min(closest) > 0.98


def test_power_a_level_a_tenth_lower_or_at_another_coupling_is_noticed():
    for query, share, hits, place in [(1.0, 12, 2, 10), (0.2, 15, 3, 30), (2.5, 16, 2, 10)]:
        attained, most = slow(query, share, hits, place)
        epsilon = place * query / CELLS
        assert 0.9 * certified(query, share, CELLS - share, hits).delta_at(epsilon) < attained
        swapped = certified(query, CELLS - share, share, hits).delta_at(epsilon)
        assert not attained <= swapped <= most


@pytest.mark.parametrize("share", [50, 60, 80])
def test_after_the_first_move_too(share):
    offset, query, hits, epsilon = 0.5, 1.0, 2, 1.0
    first = offset * share / 100
    chances = 1 / (1 + np.exp(-first)), 1 / (1 + np.exp(first))
    rates = query * share / 100, query * (100 - share) / 100
    attained = [gumbel_delta_attained(*rates, 1 / 40, hits, epsilon + move) for move in (-first, first)]
    least = float(np.dot(chances, attained))
    delta = Coupling(OffsetNoise(offset, query, "gumbel", "at least"), share).delta(hits, epsilon)
    assert least <= delta <= 1.003 * least


def test_a_geometric_offset_adds_its_rate_in_one_direction_only():
    law = OffsetNoise(0.5, 1.0, "gumbel", "at least", "geometric")
    for share, hits, epsilon in [(60, 2, 1.0), (70, 1, 0.7), (76, 3, 1.5)]:
        rates = share / 100, (100 - share) / 100
        towards = gumbel_delta_attained(*rates, 1 / 40, hits, epsilon - 0.5 * share / 100)
        away = float(points_delta(1.0, hits, epsilon, rising=False))
        delta = Coupling(law, share).delta(hits, epsilon)
        assert max(towards, away) <= delta <= 1.003 * max(towards, away)


@pytest.mark.parametrize("share", [55, 70, 80])
def test_a_coarser_lattice_is_never_below_a_finer_one(share):
    for offset, query, hits, epsilon in [(0.3, 0.1, 20, 1.0), (1.0, 1.0, 3, 2.0)]:
        law = OffsetNoise(offset, query, "gumbel", "at least")
        coarse, fine = (Coupling(law, share, cells).delta(hits, epsilon) for cells in (1, 10**9))
        assert fine * (1 - 1e-9) <= coarse


def test_levels_rise_with_hits_and_fall_with_epsilon():
    for query, share in itertools.product([0.1, 1.0], [10, 13, 18]):
        game = GumbelGame(5 * share, 5 * (CELLS - share))
        levels = list(gumbel_levels(Lattice.for_hits(game, query / (5 * CELLS), 8, 1e-6), 8))
        deltas = np.array([level.deltas for level in levels])
        assert (np.diff(deltas, axis=0) >= -1e-9 * deltas[1:]).all()
        assert (np.diff(deltas, axis=1) <= 1e-9 * deltas[:, 1:]).all()


def halved(level, where):
    """Return a mutant of a level: some nodes are half as high."""

    def mutant(self, before):
        values, threshold = level(self, before)
        values[where(threshold)] *= 0.5
        return values, threshold

    return mutant


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(lambda _: slice(None), id="all"),
        pytest.param(lambda threshold: threshold, id="threshold"),
        pytest.param(lambda threshold: threshold + 5, id="one above"),
        pytest.param(lambda threshold: threshold - 5, id="one below"),
        pytest.param(lambda threshold: slice(threshold + 1, None), id="all above"),
        pytest.param(lambda threshold: slice(0, threshold - 5), id="all below"),
    ],
)
def test_power_a_level_that_is_too_low_certifies_nothing_lower(monkeypatch, where):
    epsilons = [0.1, 0.5, 1.0]
    honest = [certified(1.0, 12, 8, 1, finer=2).delta_at(epsilon) for epsilon in epsilons]
    monkeypatch.setattr(gumbel._Run, "level", halved(gumbel._Run.level, where))
    broken = [certified(1.0, 12, 8, 1, finer=2).delta_at(epsilon) for epsilon in epsilons]
    assert all(high >= 0.99 * low for high, low in zip(broken, honest, strict=True)), (broken, honest)


def test_a_lattice_of_another_game_is_refused():
    with pytest.raises(InvalidParameter, match="lattice is"):
        next(gumbel_levels(Lattice.for_hits(LaplaceGame(6, 4), 0.1, 1, 1e-6), 1))
    with pytest.raises(InvalidParameter, match="game is"):
        GumbelGame(6, 4).moves(0.1)


@pytest.mark.parametrize("removed", [False, True])
def test_without_an_offset_questions_attain_the_closed_form(removed):
    """All values of one number are a hit: the value is told, and with it how much was looked at above it."""
    query, lattice = 1.0, size(20, 100)
    mechanism = Mechanism(1.0, query, "gumbel", "none", lattice, removed=removed)
    ask = Ask(1, at_least(-4 * lattice, 24 * lattice))
    epsilons = [0.0, 0.3, 0.6]
    for epsilon, attained in zip(epsilons, best_deltas(mechanism, [ask], 1, 1, epsilons), strict=True):
        closed = float(points_delta(query, 1, epsilon, rising=not removed))
        assert 0.999 * closed - 1e-4 <= attained <= closed * (1 + 1e-9)
        assert attained <= gumbel_delta(query, 1, epsilon)
