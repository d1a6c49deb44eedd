"""The explorer against hand computations, and the verdict's words."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import targetcharge as tc
from targetcharge.accounting import exact_delta, renyi_epsilon
from targetcharge.audit import Verdict
from targetcharge.audit.exact import (
    ODOMETER,
    Claim,
    curve,
    explore,
    hockey_stick,
    judge,
    leaky,
    losses,
    moment,
    opener,
    response,
)

UP = 1 / (1 + math.exp(-0.5))


def two_tests(player):
    for _ in range(2):
        player.test(player.algorithm(response(0.5, False, True), 0.5))


def test_two_tests_are_the_product_of_their_laws():
    views = explore(opener(0.5, hits=2), two_tests)
    expected = {(p * q, (1 - p) * (1 - q)) for p in (UP, 1 - UP) for q in (UP, 1 - UP)}
    assert sorted(views.seen.values()) == [
        pytest.approx(pair) for pair in sorted([*expected, (UP * (1 - UP),) * 2])
    ]
    assert losses(views) == pytest.approx([-1.0, 0.0, 1.0])
    assert [epsilon for epsilon, _ in curve(views)] == pytest.approx([0.0, 1.0])
    assert dict(curve(views))[0.0] == pytest.approx(UP**2 - (1 - UP) ** 2)


def test_the_measures_are_their_definitions():
    views = explore(opener(0.5, hits=2), two_tests)
    first, second = views.weights.T
    assert hockey_stick(views, [0.3])[0] == pytest.approx(np.maximum(0, first - math.exp(0.3) * second).sum())
    assert moment(views, 3.0) == pytest.approx(math.log((first**3 / second**2).sum()))


def test_a_view_that_gives_the_dataset_away_has_no_moment():
    def game(player):
        player.ask_prior(player.algorithm(leaky(response(0.5, 0, 1), 0.01, 2, 3), 0.5, 0.01), 0)

    views = explore(opener(0.5, hits=1, computation_delta=0.01), game)
    assert moment(views, 2.0) == math.inf
    assert hockey_stick(views, [5.0])[0] == pytest.approx(0.01)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_loss_of_a_player_is_that_of_the_view(order):
    """Releases, revisions, selections with ties, run twice: compared with the posterior of the whole view."""
    seen = {}

    def game(player):
        player.release(player.algorithm(response(0.5, *order), 0.5), frozenset())
        player.ask(player.twice(response(0.5, 0, 1), 0.5))
        candidates = [player.algorithm(response(0.5, *order), 0.5) for _ in range(2)]
        player.select(candidates, 2, lambda answers: answers[-1].outcome)
        if player.pending:
            player.revise(0, frozenset({1}))
        player.ask_prior(player.algorithm(response(0.5, 0, KeyboardInterrupt), 0.5), 0)
        seen[player.view] = player.loss

    views = explore(opener(0.5, hits=6, targets=(tc.Disagreement(),)), game)
    assert len(views) == len(seen)
    for view, (p0, p1) in views.seen.items():
        assert seen[view.events] == pytest.approx(math.log(p0 / p1), abs=1e-9)


def test_the_claim_of_an_exact_session_is_exact_accounting_and_its_budget():
    session = opener(0.5, hits=2, delta=0.02, computation_delta=0.01)()
    claim = Claim.of(session)
    assert session.meter.hits_left == 2
    assert claim.delta(1.0) == pytest.approx(exact_delta(0.5, 2, 1.0) + 0.01, rel=1e-9)
    assert claim.delta(session.meter.guarantee.epsilon) <= 0.03 * (1 + 1e-9)
    assert claim.order is None


def test_the_claim_of_alternatives_is_the_sum_of_theirs():
    session = opener(0.5, hits=1, alternatives=[tc.NotPrior(0), tc.NotPrior(1)])()
    assert [meter.hits_left for meter in session.meters] == [1, 1]
    assert Claim.of(session).delta(1.0) == pytest.approx(2 * exact_delta(0.5, 1, 1.0), rel=1e-9)


def test_the_claim_of_a_renyi_session_is_its_capacity_and_curve():
    session = opener(0.3, hits=2, delta=0.01, meter="renyi")()
    claim = Claim.of(session)
    assert session.meter.hits_left == 2
    assert session.meter.guarantee.epsilon == pytest.approx(renyi_epsilon(tc.NotPrior(0), 0.3, 2, 0.01), rel=1e-6)
    assert claim.total == pytest.approx(2 * tc.NotPrior(0).price(claim.order, 0.3), rel=1e-6)
    assert claim.delta(session.meter.guarantee.epsilon) <= 0.01


def test_the_odometer_passes_in_a_session_with_alternatives_and_deltas():
    def game(player):
        for _ in range(4):
            player.ask(player.algorithm(leaky(response(0.5, 0, 1), 0.004, 2, 3), 0.5, 0.004))

    opened = opener(0.5, hits=1, computation_delta=0.01, alternatives=[tc.NotPrior(0), tc.NotPrior(1)])
    assert judge(explore(opened, game), ODOMETER).passed


def test_a_verdict_is_words_and_plain_data():
    verdict = judge(explore(opener(0.5, hits=2), two_tests), Claim.of(opener(0.5, hits=2)()), "two tests")
    assert str(verdict).startswith("passed (exact, 4 runs): at epsilon = ")
    assert str(verdict).endswith("worst: two tests")
    read = json.loads(json.dumps(verdict.as_dict()))
    assert read["passed"] is True
    assert read["ratio"] == verdict.ratio
    assert all(attained <= claimed for _, claimed, attained in read["curve"])


@pytest.mark.parametrize(
    ("quantity", "claimed", "attained", "ratio"),
    [("delta", 0.0, 0.0, 0.0), ("delta", 0.0, 0.1, math.inf), ("q", 0.2, 0.4, 0.5), ("epsilon", 2.0, 1.0, 0.5)],
)
def test_the_ratio_of_a_verdict(quantity, claimed, attained, ratio):
    verdict = Verdict(
        passed=True, mode="exact", quantity=quantity, claimed=claimed, attained=attained, at=1.0, runs=1
    )
    assert verdict.ratio == ratio
