"""No game against a real session tells more than its meter claims, and some come close.

Games are enumerated through `tc.Session` itself: answers, refusals, failures, meters and transcript on two
neighbouring datasets.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.sessions.games import PLAIN, WITH_TWICE, Wanderer, climber
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting import exact_delta, exact_epsilon
from targetcharge.audit.exact import explore, hockey_stick, response
from targetcharge.ledger import MemoryLedger
from targetcharge.sessions.priced import Priced

GAMES = size(50, 500)
MULTIPLES = np.array([0.0, 0.5, 1.0, 1.7, 2.0, 3.0])
TOLERANCE = 1e-12


def opener(epsilon, hits, delta=0.02, **options):
    """Return a function that opens sessions whose exact meter has just this many hits."""
    disagreement = "targets" in options
    whole = exact_epsilon(epsilon, hits, delta, disagreement=disagreement) * (1 + 1e-9)
    opened = functools.partial(tc.Session, None, tc.Budget(whole, delta), epsilon, **options)
    assert opened().meter.hits_left == hits
    return opened


@functools.cache
def claims(epsilon, hits, *, disagreement=False):
    return np.array([exact_delta(epsilon, hits, m * epsilon, disagreement=disagreement) for m in MULTIPLES])


@functools.cache
def seen(epsilon, hits, menu, games):
    """Return δ of random games (rows) at the multiples of ε (columns)."""
    options = {"targets": (tc.Disagreement(),)} if menu is WITH_TWICE else {}
    opened = opener(epsilon, hits, **options)
    wanderers = (Wanderer.drawn(1000 * hits + game, (epsilon,), menu) for game in range(games))
    return np.array([hockey_stick(explore(opened, wanderer), epsilon * MULTIPLES) for wanderer in wanderers])


@pytest.mark.parametrize("hits", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_no_game_of_tests_releases_and_selections_tells_more_than_the_meter_claims(epsilon, hits):
    rows = seen(epsilon, hits, PLAIN, GAMES // 5)
    assert (rows <= claims(epsilon, hits) + TOLERANCE).all()


@pytest.mark.parametrize("hits", [1, 2])
def test_no_game_with_run_twice_tells_more_than_the_meter_claims(hits):
    rows = seen(0.5, hits, WITH_TWICE, GAMES // 8)
    assert (rows <= claims(0.5, hits, disagreement=True) + TOLERANCE).all()


def test_the_same_games_do_tell_more_than_one_hit_less_would_allow():
    assert (seen(0.5, 2, PLAIN, 30).max(axis=0) > claims(0.5, 1)).any()


@pytest.mark.parametrize(("hits", "questions"), [(1, 14), (2, 11), (3, 9)])
def test_tests_aimed_by_the_loss_so_far_come_close_to_the_claim(hits, questions):
    views = explore(opener(1.0, hits), climber(1.0, 1.0, questions))
    told, claim = hockey_stick(views, [1.0])[0], exact_delta(1.0, hits, 1.0)
    assert {1: 0.98, 2: 0.96, 3: 0.9}[hits] * claim < told <= claim


def test_a_selection_of_one_comes_close_to_the_claim():
    """One candidate per level: the response that is released speaks for one dataset, then for the other."""
    levels = 8

    def game(player):
        pairs = [response(1.0, *((0, levels - i) if i % 2 == 0 else (levels - i, 0))) for i in range(levels)]
        candidates = [player.algorithm(pair, 1.0) for pair in pairs]
        player.select(candidates)

    told = hockey_stick(explore(opener(1.0, 1), game), [0.0])[0]
    assert 0.97 * exact_delta(1.0, 1, 0.0) < told <= exact_delta(1.0, 1, 0.0)


def test_a_prior_that_looks_different_on_the_two_datasets_tells_nothing():
    game = Wanderer(3, (1.0,), ("twins",), 5, 0.0, 0.5)
    assert len(explore(opener(1.0, 1), game)) == 1


def test_revisions_of_one_release_tell_no_more_than_one_hit():
    pair = {0: (0.5, 0.2), 1: (0.3, 0.3), 2: (0.2, 0.5)}

    def game(player):
        player.release(player.algorithm(pair, 1.0), frozenset())
        for outcome in (2, 0, 1):
            if player.pending:
                player.revise(0, frozenset({outcome}))

    views = explore(opener(1.0, 1), game)
    assert sorted(views.seen.values()) == [pytest.approx(pair[y]) for y in (2, 1, 0)]
    assert hockey_stick(views, [0.0])[0] <= exact_delta(1.0, 1, 0.0)


def free_failures(ledger, _algorithm):
    ledger._reserved = None


def as_it_looks(question, outcome):
    hits = tuple(outcome in target for target in question.targets)
    return outcome, hits


def free_revisions(ledger, settlement):
    if settlement.closes is None:
        return settle(ledger, settlement)
    ledger._pending.pop(settlement.closes)
    ledger._reserved = None
    return None


settle = MemoryLedger.settle


@pytest.mark.parametrize(
    ("owner", "name", "mistake", "menu"),
    [
        (MemoryLedger, "forfeit", free_failures, ("failing",)),
        (Priced, "judge", as_it_looks, ("twins",)),
        (MemoryLedger, "settle", free_revisions, ("revise",)),
    ],
    ids=["failures are free", "a prior is published as it looks", "revisions are free"],
)
def test_a_session_with_a_mistake_does_tell_more_than_its_meter_claims(monkeypatch, owner, name, mistake, menu):
    monkeypatch.setattr(owner, name, mistake)
    opened = opener(1.0, 1)
    views = (explore(opened, Wanderer.drawn(5000 + game, (1.0,), menu)) for game in range(40))
    assert any((hockey_stick(each, MULTIPLES) > 1.05 * claims(1.0, 1)).any() for each in views)
