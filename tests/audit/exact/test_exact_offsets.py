"""Sessions whose counts carry a secret offset: with the offset integrated out, no game tells more than is claimed.

Each mistake with an offset is flagged by a game of a few questions, and the same game passes on the right session.
"""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from tests.accounting import offset_games
from tests.audit.exact.broken import OFFSET_MISTAKES, ORDER, broken
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting import Meter, OffsetNoise, gumbel_delta, offset_delta, renyi_epsilon
from targetcharge.audit.exact import (
    ODOMETER,
    Claim,
    attack,
    explore,
    hockey_stick,
    judge,
    losses,
    opener,
    response,
    sparse_opener,
)
from targetcharge.audit.exact.attack import Strategy
from targetcharge.audit.exact.numbers import Offsets, always, at_least, between, changed, law_of, side
from targetcharge.audit.exact.tools import usable
from targetcharge.errors import InvalidParameter, TooLarge
from targetcharge.mechanisms import above_threshold, between_thresholds, noisy_count, side_of_threshold
from targetcharge.mechanisms import changed as changed_count
from targetcharge.mechanisms.algorithm import redrawn
from targetcharge.mechanisms.noise import Carried, CountNoise, centre, rate_for
from targetcharge.outcomes import UNCHANGED, Side
from targetcharge.randomness import laws

GEOMETRIC = sparse_opener(1.0, hits=1)
EXACT = opener(1.0, hits=1, offset_epsilon=2.0)
SESSIONS = {
    "exact": (EXACT, (1.0,)),
    "exact two hits": (opener(0.5, 2, offset_epsilon=1.0), (0.5, 0.2)),
    "exact band": (opener(0.5, 2, offset_epsilon=0.8, targets=(tc.Between(0, 3), tc.NotPrior(0))), (0.5,)),
    "exact own delta": (opener(0.5, 1, offset_epsilon=1.0, computation_delta=0.05), (0.5,)),
    "renyi": (opener(0.3, 2, offset_epsilon=0.6, meter="renyi"), (0.3, 0.15)),
    "renyi band": (opener(0.3, 1, offset_epsilon=0.6, meter="renyi", targets=tc.Between(0, 3)), (0.3,)),
    "geometric": (GEOMETRIC, (1.0,)),
    "geometric two hits": (sparse_opener(0.5, 2), (0.5, 0.2)),
    "gumbel": (sparse_opener(0.5, 2, 0.02), (0.5,)),
    "gumbel half": (sparse_opener(1.0, 1, 0.01), (0.5,)),
}


# Laws.


LAWS = {
    "any": OffsetNoise(1.0, 0.8),
    "geometric": OffsetNoise(1.0, 0.8, "geometric", "at least"),
    "gumbel": OffsetNoise(1.0, 0.8, "gumbel", "at least"),
    "gumbel, geometric": OffsetNoise(1.0, 0.8, "gumbel", "at least", "geometric"),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_offsets_are_those_that_are_drawn(name):
    offset = LAWS[name]
    offsets, rate = Offsets.of(offset), rate_for(offset.offset_epsilon, offset.lattice)
    law = laws.law_of(offset.offset_noise, rate)
    assert offsets.masses.sum() == pytest.approx(1, abs=1e-13)
    for value, mass in list(zip(offsets.values, offsets.masses, strict=True))[1:-1:97]:
        assert mass == pytest.approx(law.mass(int(value) + centre(offset.offset_noise, rate)), rel=1e-9)
    assert offsets.masses[-1] < 1e-15


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_a_number_is_drawn_as_the_mechanisms_draw_counts(name, sensitivity):
    """Given the offset, with the session's noise; only the thresholds are theirs."""
    noise_of = partial(CountNoise.carried, LAWS[name])
    given = {"epsilon": 0.4, "sensitivity": sensitivity, "monotone": True}
    pairs = [
        (above_threshold(int, 2, **given), at_least(2, 1, sensitivity), None),
        (side_of_threshold(int, 2, **given), side(2, sensitivity), Side.ABOVE),
        (between_thresholds(int, 0, 3, **given), between(tc.Between(0, 3, sensitivity)), Side.BETWEEN),
        (changed_count(int, 1, 1, **given), changed(1, 1, 1, sensitivity), UNCHANGED),
    ]
    for offset in (-140, -3, 0, 1, 250):
        for algorithm, published, outcome in pairs:
            law = law_of(published, (0, 3), noise_of(sensitivity), offset)
            oracle = redrawn(algorithm, noise_of).oracle
            chances = [oracle.probability(Carried(count, offset), outcome) for count in (0, 3)]
            assert law[outcome] == pytest.approx(chances, rel=1e-9)
            assert [math.fsum(one) for one in zip(*law.values(), strict=True)] == pytest.approx([1, 1], rel=1e-12)


def test_a_number_is_natural_where_there_is_no_offset():
    oracle = noisy_count(int, 0.4).oracle
    law = law_of(always(-2, 2), (0, 1), CountNoise.natural(0.4, 1))
    for value in (-1, 0, 1):
        assert law[value] == pytest.approx([oracle.probability(count, value) for count in (0, 1)])
    views = explore(opener(0.4, 1), lambda player: player.ask(player.number(at_least(1, 1), (0, 1), 0.4)))
    assert sorted(views.weights[:, 0]) == pytest.approx(sorted([1 - law[1][0] - law[2][0], law[1][0] + law[2][0]]))


EPSILONS = (0.0, 0.3, 0.8, 1.5)


@pytest.mark.parametrize("name", ["exact", "geometric", "gumbel"])
def test_the_explorer_integrates_the_offset_out(name):
    """The same question again and again, against games that know no sessions."""
    opened, (query,) = SESSIONS[name]
    offset = opened().meter.tariff.offset
    lattice, noise = offset.lattice, CountNoise.carried(offset.for_computation(query), 1)
    moved = centre(noise.noise, noise.rate) - centre(offset.offset_noise, rate_for(offset.offset_epsilon, lattice))
    cells = (lattice + moved, 2 * lattice - 1 + moved), (2 * lattice + moved, math.inf)
    expected = [
        offset_games.best_deltas(
            offset_games.Mechanism(
                offset.offset_epsilon,
                query * (2 if offset.questions == "any" else 1),
                offset.noise,
                offset.offset_noise,
                lattice,
                removed=removed,
            ),
            [offset_games.Ask(1, cells)],
            3,
            opened().meter.hits_left,
            EPSILONS,
        )
        for removed in (False, True)
    ]

    def game(player):
        for _ in range(3):
            if player.hits_left:
                player.ask(player.number(at_least(1, 2), (0, 1), query))

    assert hockey_stick(explore(opened, game), EPSILONS) == pytest.approx(np.max(expected, axis=0), abs=1e-8)


def test_the_loss_of_a_player_is_that_of_the_view():
    """Of numbers, together with releases, revisions, selections and what carries no offset."""
    seen = {}

    def game(player):
        player.release(player.number(always(-1, 1), (1, 0), 0.5), 1)
        player.test(player.number(at_least(0), (0, 0), 0.5))
        player.ask_prior(player.algorithm(response(0.5, 0, 1), 0.5), 0)
        player.select([player.number(always(0, 1), counts, 0.5) for counts in ((0, 0), (1, 0))], 1)
        if player.pending:
            player.revise(0, frozenset({0}))
        player.ask(player.number(changed(0, 1), (0, 0), 0.5))
        seen[player.view] = player.loss

    views = explore(opener(0.5, hits=6, offset_epsilon=1.0), game)
    assert len(views) == len(seen)
    for view, (p0, p1) in views.seen.items():
        assert seen[view.events] == pytest.approx(math.log(p0 / p1), abs=1e-9)


# Claims.


def test_the_claim_of_an_exact_session_with_an_offset_includes_the_first_move():
    session = opener(0.5, hits=2, delta=0.02, offset_epsilon=1.0)()
    claim = Claim.of(session)
    assert session.meter.hits_left == 2
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        assert claim.delta(epsilon) == pytest.approx(offset_delta(1.0, 1.0, 2, epsilon), rel=1e-6)
    assert claim.delta(session.meter.guarantee.epsilon) <= 0.02 * (1 + 1e-9)


def test_the_claim_of_a_renyi_session_with_an_offset_includes_the_first_move():
    session = opener(0.3, hits=2, delta=0.01, meter="renyi", offset_epsilon=0.8)()
    claim = Claim.of(session)
    assert session.meter.hits_left == 2
    up, down = 1 / (1 + math.exp(-0.4)), 1 / (1 + math.exp(0.4))
    first = math.log(up**claim.order * down ** (1 - claim.order) + down**claim.order * up ** (1 - claim.order))
    assert claim.total == pytest.approx(first + 2 * tc.NotPrior(0).price(claim.order, 0.3), rel=1e-5)


def test_the_claim_of_a_sparse_session_is_its_guarantee():
    pure, session = Claim.of(sparse_opener(0.5, 2)()), sparse_opener(0.5, 2, 0.02)()
    whole = (2 + 2 ** (1 / 3)) * 0.5
    assert pure.delta(whole * (1 + 1e-8)) == 0.0
    assert pure.delta(1.0) == pytest.approx(1 - math.exp(1.0 - whole), rel=1e-6)
    claim, rates = Claim.of(session), (session.meter.tariff.offset.offset_epsilon, 0.5)
    for epsilon in (0.1, 0.4, 0.8):
        expected = offset_delta(*rates, 2, epsilon, "gumbel", "at least")
        assert claim.delta(epsilon) == pytest.approx(expected, rel=1e-4)


def test_the_claim_where_each_unit_has_a_budget_is_that_of_gumbel_noise():
    meter = Meter.gumbel(tc.Budget(2.0, 1e-3), 0.3)
    claim = Claim.of(SimpleNamespace(meters=[meter]))
    assert claim.delta(1.0) == gumbel_delta(0.3, meter.tariff.capacity, 1.0)
    assert claim.delta(2.0) <= 1e-3


# Right sessions.


@pytest.mark.parametrize("name", SESSIONS)
def test_random_games_never_tell_more_than_is_claimed(name):
    opened, epsilons = SESSIONS[name]
    claim, tools = Claim.of(opened()), usable(opened(), max(epsilons))
    numbers = [tool for tool in tools if tool in ("above", "side", "changed", "band", "count", "top", "falling")]
    assert numbers
    played = 0
    for seed in range(size(7, 40)):
        menu = numbers[seed % len(numbers)], tools[7 * seed % len(tools)], numbers[(seed + 2) % len(numbers)]
        game = Strategy(menu, epsilons, 4, seed % 3 * max(epsilons), seed)
        try:
            views = explore(opened, game, limit=300)
        except TooLarge:
            continue
        played += 1
        for told in (judge(views, claim, game.words()), judge(views, ODOMETER, game.words())):
            assert told.passed, str(told)
    assert played > 2


@pytest.mark.parametrize("name", ["exact", "renyi", "geometric", "gumbel"])
def test_the_search_never_finds_more_than_is_claimed(name):
    opened, epsilons = SESSIONS[name]
    tools = [tool for tool in usable(opened(), max(epsilons)) if tool in ("above", "changed", "count")]
    given = {"questions": 5, "restarts": size(3, 9), "steps": size(2, 8), "limit": 100}
    verdict = attack(opened, epsilons=None if name == "geometric" else epsilons, tools=tools, **given)
    assert verdict.passed, str(verdict)
    assert 0.1 < verdict.ratio <= 1


def test_two_runs_of_a_number_share_the_offset_and_stay_within_the_claim():
    def game(player):
        for counts in ((-1, 0), (0, 0), (-1, 0)):
            player.ask(tc.twice(player.number(side(0), counts, 0.4)))

    opened = opener(0.4, 1, offset_epsilon=0.8, targets=(tc.Disagreement(),))
    verdict = judge(explore(opened, game), Claim.of(opened()))
    assert verdict.passed
    assert verdict.ratio > 0.3


def test_the_tools_of_a_session_are_those_that_it_has_a_price_for():
    at_least_only = ("above", "count", "top", "falling")
    assert usable(sparse_opener(0.5, 1)(), 0.5) == (*at_least_only, "everything")
    assert usable(sparse_opener(0.5, 1, 0.02)(), 0.5) == at_least_only
    assert usable(sparse_opener(0.5, 1, 0.02)(), 0.25) == (*at_least_only, "everything")
    assert "band" in usable(SESSIONS["exact band"][0](), 0.5)
    assert "between" not in usable(SESSIONS["exact band"][0](), 0.5)
    assert {"side", "changed", *at_least_only} <= set(usable(EXACT(), 1.0)) - {"band"}
    assert not {"side", "changed", *at_least_only} & set(usable(opener(1.0, 1)(), 1.0))


# Power.


def steered(query, aim, questions, count=-1):
    """Ask whether counts are at least 0: with the unit as long as the loss is below an aim, then without it."""

    def game(player):
        for _ in range(questions):
            if player.hits_left:
                counts = (count, count + 1) if player.loss < aim else (count, count)
                player.ask(player.number(side(0), counts, query))

    return game


def both_ways(query, aim, questions):
    """Ask by turns with the unit and without it, for the side that moves the loss towards an aim if it is free."""

    def game(player):
        for turn in range(questions):
            if player.hits_left:
                low = (turn % 2 == 1) == (player.loss < aim)
                count = -1 if low else 0
                number = player.number(side(0), (count, count + turn % 2), query)
                player.ask_prior(number, Side.BELOW if low else Side.ABOVE)

    return game


def missed_then_hit(player):
    """A miss with the unit tells of the offset, so that hits without it tell of the unit."""
    for counts in ((1, 2), (1, 1), (1, 1), (1, 1)):
        player.ask(player.number(at_least(0, 1), counts, 1.0))


@pytest.mark.parametrize("hits", [1, 2])
def test_a_game_attains_the_pure_guarantee_of_a_sparse_session(hits):
    opened = sparse_opener(1.0, hits)
    views = explore(opened, missed_then_hit)
    assert losses(views).max() == pytest.approx(opened().meter.guarantee.epsilon, rel=1e-8)
    assert judge(views, Claim.of(opened())).passed


@pytest.mark.parametrize(
    ("opened", "game", "least"),
    [
        pytest.param(EXACT, steered(1.0, 1.0, 14), 0.71, id="exact"),
        pytest.param(opener(2.0, 1, offset_epsilon=4.0), steered(2.0, 2.0, 14), 0.87, id="exact, much"),
        pytest.param(
            opener(0.6, 1, offset_epsilon=2.4, meter="renyi"), both_ways(0.6, math.inf, 14), 0.34, id="renyi"
        ),
    ],
)
def test_a_game_attains_a_good_part_of_the_claim(opened, game, least):
    verdict = judge(explore(opened, game), Claim.of(opened()))
    assert verdict.passed
    assert verdict.ratio > least


def test_what_is_claimed_for_smaller_rates_is_exceeded():
    claim = Claim.of(opener(0.65, 1, offset_epsilon=1.3)())
    assert not judge(explore(EXACT, steered(1.0, 1.0, 14)), claim).passed


# Mistakes.


def redrawn_each_time(player):
    ORDER["player"] = player
    for _ in range(4):
        player.ask(player.number(side(0), (-1, 0), 1.0))


def at_least_and_at_most(player):
    for _ in range(3):
        player.ask_prior(player.number(side(0), (-1, 0), 1.0), Side.ABOVE)
    player.ask(player.number(at_least(0, 1), (-1, 0), 1.0))


def up_and_down(player):
    player.ask(player.number(at_least(0, 1), (0, 1), 1.0))
    player.ask(player.number(at_least(0, 1), (1, 0), 1.0))


def natural_renyi():
    """A budget that covers a hit, and no offset beside it."""
    budget = tc.Budget(renyi_epsilon(tc.NotPrior(0), 0.5, 1, 0.02) * (1 + 1e-9), 0.02)
    return partial(tc.Session, None, budget, 0.5, meter="renyi", offset_epsilon=4.0)


GAMES = {
    "offset_drawn_for_every_question": [(lambda: opener(1.0, 1, offset_epsilon=4.0), redrawn_each_time)],
    "one_offset_for_at_least_and_at_most": [(lambda: GEOMETRIC, at_least_and_at_most)],
    "counts_that_a_unit_lowers": [(lambda: GEOMETRIC, up_and_down)],
    "hits_without_the_unit_are_free": [(lambda: GEOMETRIC, missed_then_hit)],
    "at_least_rates_for_any_question": [(lambda: opener(1.0, 1, offset_epsilon=1.0), both_ways(1.0, 3.0, 14))],
    "first_move_left_out": [
        (lambda: opener(1.0, 1, offset_epsilon=4.0), steered(1.0, 2.0, 14)),
        (natural_renyi, steered(0.5, 3.0, 14)),
    ],
}
CASES = [(name, *case) for name, cases in GAMES.items() for case in cases]


def test_every_mistake_has_a_game():
    assert set(GAMES) == set(OFFSET_MISTAKES)


@pytest.mark.parametrize(("name", "opening", "game"), CASES, ids=[case[0] for case in CASES])
def test_the_mistake_is_flagged(monkeypatch, name, opening, game):
    broken(name, monkeypatch)
    opened = opening()
    found = judge(explore(opened, game), Claim.of(opened()), name)
    assert not found.passed
    assert found.ratio > 1.05


@pytest.mark.parametrize(("name", "opening", "game"), CASES, ids=[case[0] for case in CASES])
def test_the_right_session_passes_the_same_game(name, opening, game):
    if opening is natural_renyi:
        with pytest.raises(InvalidParameter, match="offset_epsilon"):
            opening()()
        opening = partial(opener, 0.5, 1, meter="renyi", offset_epsilon=4.0)
    opened = opening()
    if name == "counts_that_a_unit_lowers":
        with pytest.raises(InvalidParameter, match="what adds to one count lowers none"):
            explore(opened, game)
        return
    assert judge(explore(opened, game), Claim.of(opened())).passed


def test_a_band_with_the_one_offset_of_a_sparse_session_is_flagged(monkeypatch):
    def game(player):
        for _ in range(6):
            player.ask(player.number(between(tc.Between(0, 0)), (0, 1), 1.0))
        player.ask(player.number(at_least(0, 1), (0, 0), 1.0))

    claim = Claim.of(GEOMETRIC())
    assert judge(explore(GEOMETRIC, game), claim).passed
    broken("one_offset_for_at_least_and_at_most", monkeypatch)
    found = judge(explore(GEOMETRIC, game), claim)
    assert not found.passed
    assert found.attained > 0.1


def test_individual_charging_reaches_what_the_theory_says(monkeypatch):
    """Every free hit without the unit adds its ε to the loss."""
    broken("hits_without_the_unit_are_free", monkeypatch)
    assert losses(explore(GEOMETRIC, missed_then_hit)).max() == pytest.approx(4.0, rel=1e-8)


# What is refused.


def test_counts_that_differ_by_more_than_the_sensitivity_are_refused():
    with pytest.raises(InvalidParameter, match="differ by at most 2"):
        explore(EXACT, lambda player: player.number(at_least(0, 1, sensitivity=2), (0, 3), 1.0))


def test_a_session_on_a_file_is_refused_where_it_has_an_offset(tmp_path):
    opened = partial(EXACT, ledger=tmp_path / "ledger.db")
    with pytest.raises(InvalidParameter, match="sessions in memory"):
        explore(opened, lambda _: None)
