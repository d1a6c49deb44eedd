"""The paper's table of q against the exact q of random, extremal and searched neighbouring pairs."""

import itertools
import math

import numpy as np
import pytest
from tests.accounting.neighbours import (
    BETWEEN_ONLY,
    OUTCOMES,
    between_laws,
    boundary_wrapped,
    conditional_release,
    evolved,
    extremal_pairs,
    largest_q,
    mark_only,
    off_diagonal,
    pairs_at,
    random_pairs,
    run_twice,
)

from targetcharge.accounting import best_q, qvalues, split
from targetcharge.accounting.targets import Between, Boundary, Disagreement, Everything, NotPrior, QTarget
from targetcharge.errors import InvalidParameter

EPSILONS = (0.01, 0.1, 0.3, 0.61, 1.0, 2.0, 4.0)
PAIRS_PER_BATCH = 4000
"""Per number of outcomes and generator: 40,000 for each row and ε."""

ROUNDING = 1e-7
"""Of differences between two masses near 1, divided by ε and by a small probability of a hit."""


def publish_all_but_first(law0, law1):
    return law0, law1, np.arange(law0.shape[1]) > 0


def publish_release(law0, law1):
    released = np.arange(law0.shape[1]) % 2 == 0
    hits = np.arange(released.sum() + 1) > 0
    return conditional_release(law0, released), conditional_release(law1, released), hits


def publish_everything(law0, law1):
    return law0, law1, np.ones(law0.shape[1], dtype=bool)


def publish_wrapped(law0, law1):
    return boundary_wrapped(law0), boundary_wrapped(law1), mark_only(law0.shape[1])


def publish_two_runs(law0, law1):
    return run_twice(law0), run_twice(law1), off_diagonal(law0.shape[1])


def pairs_of(epsilon):
    rng = np.random.default_rng(round(1000 * epsilon))
    for generate, outcomes in itertools.product((random_pairs, extremal_pairs), OUTCOMES):
        yield generate(rng, PAIRS_PER_BATCH, outcomes, epsilon)


def searched_q(publish, parameter, epsilon, sizes=(2, 3)):
    """Return the smallest q* found by differential evolution over pairs of an ε-DP algorithm."""

    def negated(points):
        return -largest_q(*publish(*pairs_at(points, epsilon)), parameter)

    return min(-evolved(negated, 2 * outcomes) for outcomes in sizes)


# The table: every pair has at least the row's q, and the tight rows are attained.

ROWS = {
    "not-prior": (NotPrior(0), publish_all_but_first),
    "conditional-release": (NotPrior(0), publish_release),
    "boundary": (Boundary(), publish_wrapped),
    "disagreement": (Disagreement(), publish_two_runs),
    "everything": (Everything(), publish_everything),
}


@pytest.mark.parametrize(
    ("target", "publish"), [pytest.param(*row, id=f"{name}-best-q") for name, row in ROWS.items()]
)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_pair_has_at_least_the_q_of_its_row(target, publish, epsilon):
    parameter, q = target.paper_row(epsilon)
    for pair in pairs_of(epsilon):
        assert largest_q(*publish(*pair), parameter).min() >= q * (1 - ROUNDING)
    assert searched_q(publish, parameter, epsilon) >= q * (1 - ROUNDING)


@pytest.mark.parametrize("name", ["not-prior", "conditional-release", "everything"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_search_attains_the_q_of_the_tight_rows(name, epsilon):
    target, publish = ROWS[name]
    parameter, q = target.paper_row(epsilon)
    assert searched_q(publish, parameter, epsilon) == pytest.approx(q, rel=1e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("width", [1, 2, 5, 12, 30])
def test_the_q_of_a_band_is_the_smallest_over_all_counts(epsilon, width):
    parameter, q = Between(0, width - 1).paper_row(epsilon)
    reach = math.ceil(12 / epsilon)  # beyond it the rounding of the sure side hides the hits
    counts = np.arange(-reach, width + reach)
    laws = between_laws(counts, width, epsilon)
    qs = largest_q(laws[:-1], laws[1:], BETWEEN_ONLY, parameter)
    assert qs.min() == pytest.approx(q, rel=ROUNDING)
    assert qs[counts[:-1] == -1] == pytest.approx(q, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_laws_of_a_noisy_count_sum_the_noise_directly(epsilon):
    counts, noise = np.arange(-9, 14), np.arange(-5000, 5001)
    weights = np.exp(-epsilon * np.abs(noise))
    values = counts[:, None] + noise
    direct = [(weights * side).sum(axis=1) for side in (values < 0, (values >= 0) & (values < 5), values >= 5)]
    assert between_laws(counts, 5, epsilon) == pytest.approx(np.stack(direct, axis=1) / weights.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        pytest.param(qvalues.not_prior(0.1), 0.4750, id="not-prior"),
        pytest.param(qvalues.between(0.1, 5), 0.1869, id="between"),
        pytest.param(qvalues.boundary(0.1), 0.2704, id="boundary"),
        pytest.param(qvalues.disagreement(0.1), 0.2585, id="disagreement"),
        pytest.param(qvalues.boundary_epsilon(1.0), 1.2366, id="wrapper-epsilon"),
        pytest.param(QTarget(0.4, ()).paper_row(0.1)[1], 0.4, id="declared"),
    ],
)
def test_golden_q_values(q, expected):
    assert q == pytest.approx(expected, abs=5e-5)


# The wrapper's tight parameter t(ε).


def largest_log_ratio(law0, law1):
    return np.abs(np.log(law0) - np.log(law1)).max()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_wrapped_pairs_stay_within_their_tight_parameter(epsilon):
    tight = qvalues.boundary_epsilon(epsilon)
    assert epsilon < tight <= 4 * epsilon / 3
    for pair in pairs_of(epsilon):
        assert largest_log_ratio(*publish_wrapped(*pair)[:2]) <= tight * (1 + ROUNDING)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_outcome_of_vanishing_mass_approaches_the_tight_parameter(epsilon):
    gaps = [
        qvalues.boundary_epsilon(epsilon) - wrapped_ratio_beside_a_coin(rare, epsilon) for rare in (1e-2, 1e-6)
    ]
    assert 0 < gaps[1] < 1e-3 * gaps[0]


def wrapped_ratio_beside_a_coin(rare, epsilon):
    """Return the log-ratio of an outcome of little mass when the rest goes from one dominant outcome to none."""
    growth = math.exp(epsilon)
    law0 = np.array([[rare * growth, 0.5 / growth, 1 - 0.5 / growth - rare * growth]])
    law1 = np.array([[rare, 0.5, 0.5 - rare]])
    assert largest_log_ratio(law0[:, :2], law1[:, :2]) == pytest.approx(epsilon)
    return largest_log_ratio(*publish_wrapped(law0, law1)[:2])


# The sharper q of THEORY 2.7: seen in searches, not used by the package.


def sharper_boundary_q(epsilon):
    wrapped = math.exp(qvalues.boundary_epsilon(epsilon))
    growth = math.exp(epsilon)
    return (wrapped - 1) / (2 * growth * wrapped - wrapped + growth - 2)


def sharper_disagreement_q(epsilon):
    plus = 1 / (1 + math.exp(-epsilon))
    return min(2 * plus * (1 - plus), math.expm1(2 * epsilon) / math.expm1(3 * epsilon))


@pytest.mark.parametrize(
    ("name", "sharper"),
    [
        pytest.param("boundary", sharper_boundary_q, id="boundary-best-q"),
        pytest.param("disagreement", sharper_disagreement_q, id="disagreement-best-q"),
    ],
)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_smallest_q_seen_is_the_sharper_one(name, sharper, epsilon):
    target, publish = ROWS[name]
    parameter, q = target.paper_row(epsilon)
    assert q < sharper(epsilon)
    for pair in pairs_of(epsilon):
        assert largest_q(*publish(*pair), parameter).min() >= sharper(epsilon) * (1 - ROUNDING)
    assert searched_q(publish, parameter, epsilon) == pytest.approx(sharper(epsilon), rel=1e-3)


def test_the_sharper_q_of_two_runs_is_the_golden_one():
    assert sharper_disagreement_q(0.1) == pytest.approx(0.4988, abs=5e-5)


# best_q and the structure lemma.


@pytest.mark.parametrize("outcomes", OUTCOMES)
def test_best_q_is_the_largest_q_by_brute_force_over_common_parts(outcomes):
    rng = np.random.default_rng(outcomes)
    hits = np.arange(outcomes) > 0
    for law0, law1 in zip(*random_pairs(rng, 50, outcomes, 0.5), strict=True):
        q = best_q(law0, law1, hits, 0.5 + 1e-12)
        common = split(law0, law1, 0.5 + 1e-12).common
        shares = rng.random((500, outcomes)) * common
        rates = [np.where(hits, law - shares, 0).sum(axis=1) / (1 - shares.sum(axis=1)) for law in (law0, law1)]
        assert np.min(rates, axis=0).max() <= q * (1 + ROUNDING)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_split_is_a_common_part_and_randomised_response(epsilon):
    for law0, law1 in zip(*random_pairs(np.random.default_rng(1), 100, 5, epsilon), strict=True):
        parts = split(law0, law1, epsilon + 1e-12)
        assert parts.common.min() >= 0
        assert parts.common + parts.residual0 == pytest.approx(law0, abs=1e-15)
        assert parts.common + parts.residual1 == pytest.approx(law1, abs=1e-15)
        rises = parts.residual0 > parts.residual1
        growth = np.where(rises, math.exp(epsilon), math.exp(-epsilon))
        assert parts.residual0 == pytest.approx(growth * parts.residual1, rel=1e-9, abs=1e-14)
        plus = parts.residual0[rises].sum() / parts.residual0.sum()
        assert plus == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-6)


@pytest.mark.parametrize(
    ("p0", "p1", "target", "expected"),
    [
        pytest.param([0.5, 0.5], [0.5, 0.5], [False, True], 1.0, id="no-data-used"),
        pytest.param([0.5, 0.5], [0.5, 0.5], [False, False], 1.0, id="no-data-used-and-no-hit"),
        pytest.param([0.6, 0.4], [0.5, 0.5], [True, True], 1.0, id="everything-hits"),
        pytest.param([0.6, 0.4], [0.5, 0.5], [False, False], 0.0, id="nothing-hits"),
        pytest.param([0.75, 0.25], [0.25, 0.75], [False, True], 0.25, id="randomised-response"),
        pytest.param([0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [True, False, False], 1.0, id="outcome-without-mass"),
    ],
)
def test_best_q_at_its_ends(p0, p1, target, expected):
    assert best_q(p0, p1, target, math.log(3)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("p0", "p1", "target", "epsilon", "name"),
    [
        pytest.param([0.5, 0.6], [0.5, 0.5], [False, True], 0.5, "p0", id="p0-sums-to-more"),
        pytest.param([0.5, 0.5], [0.5, 0.4], [False, True], 0.5, "p1", id="p1-sums-to-less"),
        pytest.param([1.5, -0.5], [0.5, 0.5], [False, True], 0.5, "p0", id="negative"),
        pytest.param([math.nan, 0.5], [0.5, 0.5], [False, True], 0.5, "p0", id="nan"),
        pytest.param([0.5, 0.5], [math.inf, 0.5], [False, True], 0.5, "p1", id="infinite"),
        pytest.param([], [], [], 0.5, "p0", id="empty"),
        pytest.param([[0.5, 0.5]], [[0.5, 0.5]], [[False, True]], 0.5, "p0", id="two-dimensional"),
        pytest.param("law", [0.5, 0.5], [False, True], 0.5, "p0", id="text"),
        pytest.param([0.5, 0.5], [0.5, 0.25, 0.25], [False, True], 0.5, "p1", id="different-lengths"),
        pytest.param([0.5, 0.5], [0.5, 0.5], [True], 0.5, "target", id="short-target"),
        pytest.param([0.5, 0.5], [0.5, 0.5], [0, 1], 0.5, "target", id="target-of-integers"),
        pytest.param([0.5, 0.5], [0.5, 0.5], [1], 0.5, "target", id="target-of-indices"),
        pytest.param([0.5, 0.5], [0.5, 0.5], [False, True], 0, "epsilon", id="epsilon-0"),
        pytest.param([0.5, 0.5], [0.5, 0.5], [False, True], math.nan, "epsilon", id="epsilon-nan"),
    ],
)
def test_best_q_refuses_what_is_not_a_pair_by_name(p0, p1, target, epsilon, name):
    with pytest.raises(InvalidParameter) as caught:
        best_q(p0, p1, target, epsilon)
    assert caught.value.name == name


def test_laws_of_different_lengths_are_refused_with_both():
    with pytest.raises(InvalidParameter, match="as long as p0: it has 3 outcomes and p0 has 2"):
        best_q([0.5, 0.5], [0.5, 0.25, 0.25], [False, True], 0.5)


@pytest.mark.parametrize(
    ("p0", "p1", "needed"),
    [
        pytest.param([0.6, 0.4], [0.4, 0.6], math.log(1.5), id="both-outcomes"),
        pytest.param([0.9, 0.1], [0.95, 0.05], math.log(2), id="the-rare-outcome"),
        pytest.param([1.0, 0.0], [0.5, 0.5], math.inf, id="an-outcome-of-one-side-only"),
    ],
)
@pytest.mark.parametrize("call", [split, lambda p0, p1, epsilon: best_q(p0, p1, [False, True], epsilon)])
def test_a_pair_that_is_too_far_apart_is_refused_with_the_epsilon_it_needs(call, p0, p1, needed):
    with pytest.raises(InvalidParameter, match=f"at least {needed:.6g}") as caught:
        call(p0, p1, 0.1)
    assert caught.value.name == "epsilon"
