"""Selections from batches, and games: no more is told than the meter claims."""

from __future__ import annotations

import functools
import itertools
from contextlib import ExitStack, suppress

import numpy as np
import pytest
from tests.discrete_laplace import DiscreteLaplace
from tests.sessions.scripted import EPSILON, computes, opened
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.accounting import exact_delta, exact_epsilon
from targetcharge.audit.exact import explore, hockey_stick, response
from targetcharge.ledger import MemoryLedger
from targetcharge.mechanisms import batch_by_key, batch_by_name
from targetcharge.mechanisms.noise import rate_for
from targetcharge.sessions import gap

RULES = {
    "one": {"k": 1},
    "two": {"k": 2},
    "all": {"k": 3},
    "threshold": {"k": 3, "threshold": 1},
    "gap": {"k": 3, "stop": gap(1)},
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_selection_from_a_batch_is_that_from_separate_candidates(monkeypatch, tmp_path, rule):
    """For every noise of three candidates, ties and all: the same are published at the same price."""
    counts = [0, 1, 0]
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(opened(99, ledger=where)) for where in (":memory:", tmp_path / "ledger.db")
        ]
        for noise in itertools.product((-1, 0, 1), repeat=3):
            silence(monkeypatch, noise)
            tests = batch_by_key(lambda _: counts, ["a", "b", "c"], -9, EPSILON)
            separate = [computes(lambda _, score=c + n: score) for c, n in zip(counts, noise, strict=True)]
            with suppress(tc.BudgetSpent):
                found = [s.select(each, **rule) for s, each in zip(sessions, (separate, tests), strict=True)]
                plain = [[(a.candidate, a.outcome, a.price, a.grains, a.call) for a in each] for each in found]
                assert plain[0] == plain[1]
                assert [answer.key for answer in found[1]] == ["abc"[answer.candidate] for answer in found[1]]
        assert sessions[0].meter.totals == sessions[1].meter.totals
        assert len(sessions[0].transcript) == len(sessions[1].transcript)


def test_a_selection_from_a_batch_names_each_by_its_own_name(monkeypatch):
    silence(monkeypatch)
    session = opened(5)
    tests = batch_by_name(lambda _: [1, 9, 5], ["x", "y", "z"], [100, 100, 100], EPSILON)
    found = session.select(tests, k=3, threshold=2)
    assert [(answer.algorithm, answer.outcome, answer.candidate) for answer in found] == [("y", 9, 1), ("z", 5, 2)]
    assert session.transcript[-1].algorithm == "3 candidates"


def test_a_selection_from_a_batch_that_breaks_spends_all_of_it():
    session = opened(5)
    with pytest.raises(tc.ComputationFailed):
        session.select(batch_by_key(lambda _: [1], ["a", "b"], 0, EPSILON), k=2)
    assert session.meter.hits == 2


# No more is told than the meter claims: every way that games with batches can go, on two datasets.


def pair_of(counts, least, epsilon):
    """Return the law of one test on two counts: what misses, two values that are published, and all above them."""
    noise = DiscreteLaplace.of(rate_for(epsilon, 1))
    cuts = [least, least + 1, least + 2]
    chances = []
    for count in counts:
        tails = [noise.at_least(cut - count) for cut in cuts]
        chances.append([1 - tails[0], tails[0] - tails[1], tails[1] - tails[2], tails[2]])
    return dict(zip([least - 1, *cuts], zip(*chances, strict=True), strict=True))


def playing(laws, epsilon, least, rng):
    """Return a game: a batch of such tests, stopped in the middle and mixed with other questions as is seen."""
    stops = rng.integers(0, 6, 50)

    def game(player):
        tests = batch_by_key(lambda _: [player.draw(law) for law in laws], range(len(laws)), least, epsilon)
        found = player.session.ask_each(tests)
        for _ in laws:
            answer = player.call(lambda: next(found, None), label="next")
            if player.refused or answer is None:
                break
            way = stops[(3 * answer.seq + 7 * answer.hit + (answer.outcome or 0)) % 50]
            if way == 0:
                return
            if way == 1:
                player.test(player.algorithm(response(epsilon, False, True), epsilon))

    return game


def told(laws, epsilon, hits, least, seed):
    whole = exact_epsilon(epsilon, hits, 0.02) * (1 + 1e-9)
    session = functools.partial(tc.Session, None, tc.Budget(whole, 0.02), epsilon)
    game = playing(laws, epsilon, least, np.random.default_rng(seed))
    return hockey_stick(explore(session, game), epsilon * np.array([0.0, 0.5, 1.0, 2.0]))


def neighbouring(rng, size):
    """Return counts of two neighbours: one unit changes each of them by at most 1, all the same way or not."""
    counts = rng.integers(-2, 3, size)
    return list(zip(counts.tolist(), (counts + rng.integers(-1, 2, size)).tolist(), strict=True))


@pytest.mark.parametrize("hits", [1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_no_game_with_batches_tells_more_than_the_meter_claims(monkeypatch, epsilon, hits):
    silence(monkeypatch)  # the game draws counts with their noise
    claims = np.array([exact_delta(epsilon, hits, epsilon * m) for m in (0.0, 0.5, 1.0, 2.0)])
    most = np.zeros(4)
    for seed in range(8):
        rng = np.random.default_rng([seed, hits])
        laws = [pair_of(counts, 1, epsilon) for counts in neighbouring(rng, 4)]
        most = np.maximum(most, told(laws, epsilon, hits, 1, seed))
    assert (most <= claims + 1e-12).all()
    assert most[0] > claims[0] / 4


def test_a_batch_whose_hits_were_free_would_tell_more(monkeypatch):
    silence(monkeypatch)

    def free(ledger, settlement):
        ledger._entries += settlement.entries
        ledger._reserved = None

    monkeypatch.setattr(MemoryLedger, "settle", free)
    laws = [pair_of((0, 1), 1, 1.0)] * 5
    assert told(laws, 1.0, 1, 1, 2)[0] > exact_delta(1.0, 1, 0.0)
