"""The search never finds more than the claim, and comes within 2% of exact accounting."""

from __future__ import annotations

import pytest
from tests.audit.exact.broken import broken
from tests.sizes import size

import targetcharge as tc
from targetcharge.audit.exact import Claim, attack, explore, judge, opener
from targetcharge.audit.exact.attack import STOP, Strategy
from targetcharge.audit.exact.tools import TOOLS, usable
from targetcharge.errors import TooLarge

LENGTH = {"restarts": size(3, 8), "steps": size(3, 8), "limit": size(100, 200)}
GAMES = size(4, 16)

RIVALS = [tc.NotPrior(0), tc.NotPrior(1)]
SESSIONS = {
    "tests": (opener(0.5, 1), (0.5,)),
    "two hits": (opener(1.0, 2), (1.0, 0.4)),
    "run twice": (opener(0.5, 1, targets=(tc.Disagreement(),)), (0.5,)),
    "any q": (opener(0.5, 1, targets=(tc.NotPrior(0), tc.QTarget(0.3, ()))), (0.5, 0.2)),
    "band": (opener(0.5, 2, targets=(tc.Between(0, 3), tc.NotPrior(0))), (0.5,)),
    "own delta": (opener(0.5, 1, computation_delta=0.05), (0.5,)),
    "alternatives": (opener(0.5, 1, alternatives=RIVALS), (0.5,)),
    "renyi": (opener(0.3, 3, meter="renyi"), (0.3, 0.15)),
    "renyi run twice": (opener(0.3, 1, meter="renyi", targets=tc.Disagreement()), (0.3, 0.15)),
    "renyi boundary": (opener(0.3, 2, meter="renyi", targets=tc.Boundary()), (0.3, 0.15)),
    "renyi own delta": (opener(0.3, 1, meter="renyi", computation_delta=0.05), (0.3, 0.15)),
    "renyi alternatives": (opener(0.3, 1, meter="renyi", alternatives=RIVALS), (0.3,)),
}


@pytest.mark.parametrize(("epsilon", "hits"), [(1.0, 1), (1.0, 2), (0.1, 1), (0.1, 2)])
def test_the_search_comes_within_two_percent_of_exact_accounting(epsilon, hits):
    verdict = attack(opener(epsilon, hits), **LENGTH | {"restarts": size(2, 8)})
    assert verdict.passed
    assert 0.98 < verdict.ratio <= 1
    assert verdict.quantity == "delta"
    assert "questions by" in verdict.worst


@pytest.mark.parametrize("name", SESSIONS)
def test_the_search_never_finds_more_than_is_claimed(name):
    opened, epsilons = SESSIONS[name]
    verdict = attack(opened, epsilons=epsilons, questions=7, seed=len(name), **LENGTH)
    assert verdict.passed, str(verdict)
    assert 0.1 < verdict.ratio <= 1


@pytest.mark.parametrize("name", SESSIONS)
def test_random_games_never_tell_more_than_is_claimed(name):
    opened, epsilons = SESSIONS[name]
    tools = usable(opened(), max(epsilons))
    claim = Claim.of(opened())
    for seed in range(GAMES):
        menu = tuple(tools[(7 * seed + place) % len(tools)] for place in (0, 2, 5))
        game = Strategy(menu, epsilons, 4, seed % 3 * max(epsilons), seed)
        try:
            verdict = judge(explore(opened, game, limit=500), claim, game.words())
        except TooLarge:
            continue
        assert verdict.passed, str(verdict)


def test_a_renyi_price_is_nearly_attained():
    game = Strategy(("test",), (0.3,), 40, float("inf"), 1)
    verdict = judge(explore(opener(0.3, 1, meter="renyi"), game), Claim.of(opener(0.3, 1, meter="renyi")()))
    assert verdict.passed
    assert verdict.quantity == "moment"
    assert verdict.ratio > 0.95


@pytest.mark.parametrize("name", ["last_hit_not_charged", "failures_are_free", "prior_published_as_it_looks"])
def test_the_search_finds_a_mistake_and_tells_the_game(monkeypatch, name):
    opened = opener(1.0, 1)
    claim = Claim.of(opened())
    broken(name, monkeypatch)
    tools = {"failures_are_free": ["failing"], "prior_published_as_it_looks": ["twins"]}.get(name, ["test"])
    verdict = attack(opened, claim=claim, tools=tools, questions=6, restarts=6, steps=6, limit=200)
    assert not verdict.passed
    assert verdict.ratio > 1.02
    assert tools[0] in verdict.worst


def test_a_search_is_reproducible_from_its_seed_and_shows_how_far_it_is():
    seen = []
    arguments = {"restarts": 2, "steps": 2, "questions": 5, "seed": 4}
    first = attack(opener(0.5, 1), progress=lambda *state: seen.append(state), **arguments)
    assert first == attack(opener(0.5, 1), **arguments)
    assert [done for done, _, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert {total for _, total, _ in seen} == {6}
    assert [ratio for _, _, ratio in seen] == sorted(ratio for _, _, ratio in seen)


def test_a_limit_that_no_game_keeps_is_refused():
    with pytest.raises(TooLarge, match="none of the games"):
        attack(opener(0.5, 1), tools=["everything"], limit=1, restarts=1, steps=1)


@pytest.mark.parametrize("tool", TOOLS)
def test_each_tool_is_played(tool):
    opened = {
        "rivals": SESSIONS["alternatives"][0],
        "leaky": SESSIONS["own delta"][0],
        "twice": SESSIONS["run twice"][0],
        "agreement": SESSIONS["run twice"][0],
        "between": SESSIONS["band"][0],
    }.get(tool, SESSIONS["renyi boundary"][0])
    epsilon = 0.5 if tool == "between" else 0.3
    sizes = [len(explore(opened, Strategy((tool,), (epsilon,), 2, 0.3, seed), limit=2000)) for seed in range(6)]
    assert max(sizes) == 1 if tool == "twins" else max(sizes) > 1  # twins have one look


def test_a_strategy_says_what_it_does():
    strategy = Strategy(("test", "select"), (0.5,), 3, 0.5, 7)
    explore(opener(0.5, 1), strategy, limit=500)
    move = strategy.usual(0, 0.0)
    changed = Strategy(("test", "select"), (0.5,), 3, 0.5, 7, {(0, 1, 0): move}, strategy.visited)
    assert "at loss +0 steps, 1 hit left, question 1: " + move.words() in changed.words()
    assert (0, 1, 0) in strategy.visited
    assert type(move)(STOP, 0.5, 1, 0).words() == "stop"
