import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import nbinom
from tests.accounting.adversary import attained_delta
from tests.accounting.naive_exact import lower_delta
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting import (
    Kind,
    exact_delta,
    exact_epsilon,
    exact_hits,
    exact_profile,
    optimal_delta,
    renyi_delta,
    renyi_epsilon,
    renyi_hits,
)
from targetcharge.accounting.exact import lattice as lattice_module
from targetcharge.accounting.exact import levels as levels_module
from targetcharge.accounting.exact.certificate import violation
from targetcharge.accounting.exact.lattice import Lattice
from targetcharge.accounting.exact.levels import (
    STOP,
    after_hits,
    bellman,
    iterate_policy,
    moves_of,
    sweep_not_prior,
)
from targetcharge.accounting.targets import NOT_PRIOR

GOLDEN = [
    (0.1, 1, 1e-6, 1.731),
    (0.1, 5, 1e-6, 2.598),
    (0.1, 20, 1e-6, 4.294),
    (0.1, 100, 1e-6, 9.020),
    (0.05, 50, 1e-6, 2.876),
    (0.01, 100, 1e-6, 0.671),
    (0.5, 20, 1e-6, 36.32),
]


@pytest.mark.parametrize(("epsilon", "hits", "delta", "expected"), GOLDEN)
def test_golden_epsilon(epsilon, hits, delta, expected):
    assert exact_epsilon(epsilon, hits, delta) == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize(("hits", "expected"), [(1, 1.826), (5, 2.867)])
def test_golden_epsilon_with_disagreement(hits, expected):
    assert exact_epsilon(0.1, hits, 1e-6, disagreement=True) == pytest.approx(expected, rel=5e-4)


def test_golden_epsilon_of_q_target():
    assert exact_epsilon(0.1, 5, 1e-6, q=1 / (1 + math.exp(0.1))) == pytest.approx(2.6004, rel=5e-5)


def test_golden_delta():
    assert exact_delta(0.1, 1, 1.0) == pytest.approx(1.058295e-4, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("place", [0, 1, 7, 20])
def test_one_hit_has_a_closed_form(epsilon, place):
    x = 1 / (1 + math.exp(-epsilon))
    closed = x ** (place + 2) * -math.expm1(-2 * epsilon) / (1 - x + x * x)
    assert closed <= exact_delta(epsilon, 1, place * epsilon) <= closed * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("hits", [1, 2, 5])
def test_policy_a_alone_is_the_negative_binomial_pair(epsilon, hits):
    move = moves_of(NOT_PRIOR, epsilon)[0]
    bottom, top = 60, math.ceil(60 / epsilon)
    losses = np.arange(-bottom, top + 3) * epsilon
    payoff = -np.expm1(-np.maximum(losses, 0.0))
    ghosts, level = payoff[-2:], payoff[:-2]
    for _ in range(hits):
        level, _ = iterate_policy(
            [move], after_hits([move], level, ghosts), ghosts, np.zeros(len(level), dtype=np.intp)
        )
    misses = np.arange(20_000)
    law = nbinom.pmf(misses, hits, move.hit_probability)
    for place in (0, 5, 10):
        closed = float((law * np.maximum(0.0, -np.expm1((place - (misses - hits)) * epsilon))).sum())
        assert level[bottom - place] == pytest.approx(closed, rel=1e-9)


def test_policy_a_alone_golden():
    misses = np.arange(1, 3000)
    law = nbinom.pmf(misses, 1, 1 / (1 + math.exp(0.1)))
    closed = float((law * np.maximum(0.0, -np.expm1(1 - (misses - 1) * 0.1))).sum())
    assert closed == pytest.approx(7.943816e-5, rel=1e-6)
    assert closed < exact_delta(0.1, 1, 1.0)


@pytest.mark.parametrize(
    "kind",
    [{}, {"disagreement": True}, {"q": 0.3}, {"q": 0.6}, {"q": 0.9}, {"q": 0.6, "disagreement": True}],
    ids=str,
)
@pytest.mark.parametrize(
    ("epsilon", "hits", "whole"), [(0.5, 1, 2.0), (0.5, 3, 3.3), (1.0, 2, 4.0), (2.0, 2, 0.0)]
)
def test_value_iteration_from_below_meets_it(kind, epsilon, hits, whole):
    below = lower_delta(epsilon, hits, whole, **kind)
    assert below <= exact_delta(epsilon, hits, whole, **kind) <= below * (1 + 1e-7)


@pytest.mark.parametrize(("epsilon", "hits", "whole"), [(0.1, 20, 4.0), (0.3, 5, 3.0), (1.0, 3, 10.0)])
def test_explicit_adversary_attains_it(epsilon, hits, whole):
    attained = attained_delta(epsilon, hits, whole, steps=40 * hits + 400, width=600)
    bound = exact_delta(epsilon, hits, whole)
    assert 0.9999 * bound <= attained <= bound


@pytest.mark.parametrize(("epsilon", "count", "whole"), [(0.1, 100, 3.0), (0.5, 50, 15.0), (0.05, 400, 2.0)])
def test_q_one_is_optimal_composition(epsilon, count, whole):
    closed = optimal_delta(epsilon, count, whole)
    assert exact_delta(epsilon, count, whole, q=1) == pytest.approx(closed, rel=1e-8)


def test_q_one_is_pure_at_the_end():
    assert exact_delta(0.1, 10, 1.0, q=1) == 0
    assert exact_epsilon(0.1, 10, 0.0, q=1) == pytest.approx(1.0)
    assert exact_epsilon(0.1, 10, 1e-60, q=1) <= 1.0


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0])
def test_sweeps_and_policy_iteration_agree(epsilon):
    moves = (*moves_of(NOT_PRIOR, epsilon), STOP)
    bottom, top = 80, math.ceil(60 / epsilon)
    losses = np.arange(-bottom, top + 3) * epsilon
    payoff = -np.expm1(-np.maximum(losses, 0.0))
    ghosts, below = payoff[-2:], payoff[:-2] + 1e-100
    up = 1 / (1 + math.exp(-epsilon))
    for _ in range(4):
        worth = after_hits(moves, below, ghosts)
        swept = sweep_not_prior(below, ghosts, bottom, up, 1 / (1 + math.exp(epsilon)))
        found, _ = iterate_policy(moves, worth, ghosts, np.zeros(len(below), dtype=np.intp))
        assert swept == pytest.approx(found, rel=1e-11)
        below = swept


def test_violation_sees_a_level_that_is_too_low():
    moves = (*moves_of(NOT_PRIOR, 0.5), STOP)
    losses = np.arange(-40, 103) * 0.5
    payoff = -np.expm1(-np.maximum(losses, 0.0))
    ghosts, below = payoff[-2:], payoff[:-2] + 1e-100
    worth = after_hits(moves, below, ghosts)
    level = sweep_not_prior(below, ghosts, 40, 1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(0.5)))
    assert violation(bellman(moves, level, worth, ghosts), level) < 1e-14
    level[20] *= 1 - 1e-9
    assert violation(bellman(moves, level, worth, ghosts), level) == pytest.approx(1e-9, rel=1e-2)


def test_a_wrong_solver_is_caught_by_the_certificate(monkeypatch):
    right = exact_delta(0.1, 5, 2.0)

    def too_low(*arguments):
        return sweep_not_prior(*arguments) * 0.999

    monkeypatch.setattr(lattice_module, "sweep_not_prior", too_low)
    assert exact_delta(0.1, 5, 2.0) > right


@pytest.mark.parametrize(
    "kind", [NOT_PRIOR, Kind(disagreement=True), Kind(q=0.2), Kind(q=0.8), Kind(q=1.0)], ids=str
)
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_renyi_price_closes_off_the_lattice(kind, epsilon):
    """The certificate's edges are supersolutions: no move gains on e^{uεj + sκ} or on e^{-εj}."""
    exponent = Lattice.for_hits(kind, epsilon, 10, 1e-6).exponent
    price = kind.kappa(1 + exponent, epsilon)
    for move in moves_of(kind, epsilon):
        for rate, factor in ((exponent, math.exp(-price)), (-1.0, 1.0)):
            grown = sum(p * math.exp(rate * epsilon * step) for step, p in move.miss.items())
            grown += factor * sum(p * math.exp(rate * epsilon * step) for step, p in move.hit.items())
            assert grown <= 1 + 1e-14


@pytest.mark.parametrize("exponent", [0.5, 2.0, 5.0])
def test_any_order_for_the_edges_gives_an_upper_bound(exponent):
    best = exact_delta(0.1, 5, 2.0)
    charge = 5 * NOT_PRIOR.kappa(1 + exponent, 0.1)
    *_, level = Lattice(NOT_PRIOR, 0.1, 21, exponent, charge).levels(5)
    assert best * (1 - 1e-9) <= level.delta_at(2.0) <= best * (1 + 1e-6)


def test_a_short_lattice_is_safe_though_loose():
    best = exact_delta(0.1, 5, 2.0)
    *_, level = Lattice(NOT_PRIOR, 0.1, 21, 6.4, -44.0).levels(5)
    assert level.delta_at(2.0) >= best


@settings(max_examples=size(20, 100), deadline=None)
@given(
    epsilon=st.floats(0.02, 1.5),
    hits=st.integers(1, 12),
    log_delta=st.floats(-30, -2),
    factor=st.floats(1.05, 1.5),
)
def test_monotone(epsilon, hits, log_delta, factor):
    delta = math.exp(log_delta)
    base = exact_epsilon(epsilon, hits, delta)
    assert exact_epsilon(epsilon * factor, hits, delta) > base or base == 0
    assert exact_epsilon(epsilon, hits + 1, delta) > base or base == 0
    assert exact_epsilon(epsilon, hits, delta / factor) >= base
    assert exact_epsilon(epsilon, hits, delta, disagreement=True) >= base
    q = 0.9 / factor
    assert exact_epsilon(epsilon, hits, delta, q=q / factor) >= exact_epsilon(epsilon, hits, delta, q=q) - 1e-9


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(0.01, 2.0), hits=st.integers(1, 15), log_delta=st.floats(-40, -1))
def test_epsilon_and_delta_are_inverse(epsilon, hits, log_delta):
    delta = math.exp(log_delta)
    whole = exact_epsilon(epsilon, hits, delta)
    found = exact_delta(epsilon, hits, whole)
    assert found <= delta * (1 + 1e-9)
    assert whole == 0 or found >= delta * (1 - 1e-6)


@pytest.mark.parametrize("kind", [{}, {"disagreement": True}, {"q": 0.4}], ids=str)
def test_profile_agrees_with_single_runs(kind):
    profile = exact_profile(0.2, 8, 1e-9, **kind)
    for hits in (1, 3, 8):
        assert profile.delta(hits, 2.0) == pytest.approx(exact_delta(0.2, hits, 2.0, **kind), rel=1e-6)
        single = exact_epsilon(0.2, hits, 1e-6, **kind)
        assert single * (1 - 1e-9) <= profile.epsilon(hits, 1e-6) <= single * 1.01


def test_profile_says_where_it_ends():
    profile = exact_profile(0.2, 3, 1e-6)
    assert profile.epsilon(3, 1e-60) == math.inf
    with pytest.raises(tc.InvalidParameter, match="hits is 4; it must be at most 3"):
        profile.delta(4, 1.0)


@pytest.mark.parametrize("kind", [NOT_PRIOR, Kind(disagreement=True), Kind(q=0.3), Kind(q=1.0)], ids=str)
def test_hits_are_the_most_that_fit(kind):
    budget = tc.Budget(1.0, 1e-6)
    hits = exact_hits(0.02, budget, kind)
    assert hits > 5
    for count, fits in ((hits, True), (hits + 1, False)):
        spent = exact_delta(0.02, count, 1.0, kind.q, disagreement=kind.disagreement)
        assert (spent <= budget.delta) is fits


def test_hits_of_a_pure_budget():
    assert exact_hits(0.1, tc.Budget(1.05, 0.0), Kind(q=1.0)) == 10


def test_tiny_and_large_parameters():
    assert exact_epsilon(1e-6, 10, 1e-6) < 1e-4
    assert exact_epsilon(5.0, 2, 1e-6) > 1000
    assert exact_epsilon(0.1, 1, 0.9) == 0
    assert exact_delta(0.1, 1, 9999.0) < 1e-90


def test_too_large_is_refused_with_what_fits():
    with pytest.raises(tc.TooLarge, match=r"hits is 10000000; it must be at most \d+ at query_epsilon 0.1"):
        exact_epsilon(0.1, 10_000_000, 1e-6)
    with pytest.raises(tc.TooLarge, match=r"query_epsilon is 10\.0; .*cells wide.*use renyi_epsilon"):
        exact_epsilon(10.0, 2000, 1e-6)
    with pytest.raises(tc.TooLarge, match="profile"):
        exact_profile(0.1, 200_000)
    with pytest.raises(tc.TooLarge):
        exact_hits(1e-6, tc.Budget(1.0, 1e-6))


def test_a_count_that_outgrows_the_lattice_is_refused(monkeypatch):
    budget = tc.Budget(1.0, 1e-6)
    lattice = Lattice.for_budget(NOT_PRIOR, 0.01, budget)
    between = (renyi_hits(NOT_PRIOR, 0.01, budget) + exact_hits(0.01, budget)) // 2
    monkeypatch.setattr(lattice_module, "MAX_CELLS", max(lattice.width, 1000) * between)
    with pytest.raises(tc.TooLarge, match=f"buys more than the {between} hits"):
        exact_hits(0.01, budget)


@pytest.mark.parametrize(
    ("epsilon", "hits", "delta", "kind"),
    [
        (0.7458, 2, 0.029069565734, {"q": 0.32173}),
        (1.3968, 1, 0.17155, {"q": 0.459, "disagreement": True}),
        (0.0252, 20, 1e-6, {"q": 0.4}),
        (2.0, 5, 1e-8, {"q": 0.2, "disagreement": True}),
    ],
)
def test_between_lattice_points_it_is_tight_too(epsilon, hits, delta, kind):
    whole = exact_epsilon(epsilon, hits, delta, **kind)
    assert delta * (1 - 1e-5) <= exact_delta(epsilon, hits, whole, **kind) <= delta * (1 + 1e-12)


def test_many_hits_of_other_kinds_end_with_the_chord():
    hits = size(1000, 4000)
    whole = exact_epsilon(0.01, hits, 1e-6, q=0.5)
    assert 1e-6 * (1 - 1e-2) <= exact_delta(0.01, hits, whole, q=0.5) <= 1e-6


@pytest.mark.parametrize("spoilt", [0.0, -1e-9, math.nan, math.inf])
def test_a_level_that_is_no_level_certifies_nothing(spoilt):
    level = np.array([0.1, spoilt, 0.3])
    assert violation(np.array([[0.1, 0.1, 0.1]]), level) == math.inf


def test_unsettled_policies_are_never_worse_than_renyi(monkeypatch):
    monkeypatch.setattr(levels_module, "_MOST_ROUNDS", 1)
    kind, budget = Kind(q=0.01, disagreement=True), tc.Budget(600.0, 1e-6)
    assert exact_epsilon(1.0, 3, 1e-6, q=0.01, disagreement=True) <= renyi_epsilon(kind, 1.0, 3, 1e-6)
    assert exact_delta(1.0, 3, 60.0, q=0.01, disagreement=True) <= renyi_delta(kind, 1.0, 3, 60.0)
    assert exact_hits(0.3, budget, kind) >= renyi_hits(kind, 0.3, budget) > 0


def test_unsettled_policies_give_a_loose_bound_not_a_false_one(monkeypatch):
    right = exact_delta(1.0, 3, 20.0, q=0.3, disagreement=True)
    monkeypatch.setattr(levels_module, "_MOST_ROUNDS", 1)
    assert exact_delta(1.0, 3, 20.0, q=0.3, disagreement=True) >= right


def test_kind_unions():
    assert Kind(disagreement=True).not_prior
    assert NOT_PRIOR | Kind(q=1.0) == NOT_PRIOR
    assert NOT_PRIOR.covers(Kind(q=1.0))
    assert not NOT_PRIOR.covers(Kind(q=0.9))
    assert Kind(q=0.3).covers(Kind(q=0.5))
    assert not Kind(q=0.5).covers(Kind(q=0.3))
    with pytest.raises(tc.InvalidParameter, match="at least one"):
        Kind()


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("q", [1e-12, 1e-6, 1.0])
def test_every_legal_q_has_a_bound(epsilon, q):
    assert 0 <= exact_delta(epsilon, 1, 1.0, q=q) <= 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_a_target_that_hits_too_rarely_is_refused(epsilon):
    with pytest.raises(tc.TooLarge, match=f"query_epsilon is {epsilon}; it must be such that its lattice fits"):
        exact_epsilon(epsilon, 1, 1e-6, q=1e-12)


def test_a_level_says_when_it_does_not_reach():
    *_, level = Lattice(NOT_PRIOR, 0.1, 3, 5.0, 0.5).levels(1)
    assert level.epsilon_at(1e-30) == math.inf
    assert level.epsilon_at(0.9) == 0
    assert level.delta_at(50.0) == level.deltas[-1]
