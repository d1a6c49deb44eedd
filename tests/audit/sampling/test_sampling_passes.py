"""Correct mechanisms and our own sessions pass."""

import pytest
from tests.audit.sampling import session_scripts as scripts
from tests.audit.sampling.session_scripts import DELTA, EPSILON, budget_of, until_hits
from tests.audit.sampling.sparse_vector import RIGHT
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, renyi_epsilon
from targetcharge.audit import black_box, interaction
from targetcharge.mechanisms import above_threshold, between_thresholds, exponential, noisy_count, noisy_max

TEN, NINE = ["row"] * 10, ["row"] * 9
ALGORITHMS = [
    noisy_count(len, 1.0),
    above_threshold(len, 10, 1.0),
    between_thresholds(len, 10, 12, 1.0),
    exponential(lambda rows: [len(rows), 9], 1.0, outcomes=["many", "few"]),
    noisy_max(lambda rows: [len(rows), 9, 8], 1.0, outcomes=[0, 1, 2]),
]


@pytest.mark.parametrize("variant", RIGHT, ids=str)
def test_right_sparse_vectors_pass(variant):
    claim = tc.Budget(variant.epsilon, 0.0)
    verdict = black_box(variant.run, *variant.data, claim, relation="any", runs=variant.runs, workers=1)
    assert verdict.passed


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_our_algorithms_pass_and_the_audit_comes_near_them(algorithm):
    verdict = black_box(algorithm, TEN, NINE, runs=size(4_000, 20_000), workers=1)
    assert verdict.passed
    assert verdict.claimed == 1.0
    assert verdict.attained > (0.1 if algorithm.name.startswith(("exponential", "noisy_max")) else 0.8)


def test_wrapped_algorithms_pass_at_the_price_of_all_they_run():
    test = above_threshold(len, 10, 0.5)

    def audited(wrapped, epsilon, runs):
        return black_box(wrapped, TEN, NINE, tc.Budget(epsilon, 0.0), runs=runs, workers=1)

    with pytest.raises(tc.InvalidParameter, match="claim is None"):
        black_box(tc.twice(test), TEN, NINE, runs=2_000, workers=1)
    twice = audited(tc.twice(test), 1.0, size(4_000, 20_000))
    assert twice.passed
    assert twice.attained > 0.7
    assert not audited(tc.twice(test), 0.5, size(4_000, 20_000)).passed
    assert audited(tc.agreement(test), 1.0, size(2_000, 10_000)).passed
    assert audited(tc.boundary(test), 0.67, size(2_000, 10_000)).passed


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_a_session_that_is_used_up_passes(meter):
    budget = budget_of(2, meter)
    verdict = black_box(until_hits(2, budget, meter), TEN, NINE, budget, runs=size(2_500, 24_000), workers=1)
    assert verdict.passed
    assert verdict.curve[0][2] > 0  # at ε = 0: the inputs are told apart, as far as the budget allows


@pytest.mark.parametrize("meter", ["exact", "renyi"])
@pytest.mark.parametrize("script", ["tests", "values", "releases", "selections"])
def test_sessions_pass(script, meter):
    budget = budget_of(3, meter)
    run = interaction(lambda rows: tc.Session(rows, budget, EPSILON, meter=meter), getattr(scripts, script))
    assert black_box(run, TEN, NINE, budget, runs=size(400, 3_000), workers=1).passed


@pytest.mark.parametrize(
    ("script", "target", "meter"),
    [
        ("twices", tc.Disagreement(), "exact"),
        ("twices", tc.Disagreement(), "renyi"),
        ("boundaries", tc.Boundary(), "renyi"),
        ("betweens", tc.Between(10, 14), "renyi"),
    ],
)
def test_sessions_with_other_targets_pass(script, target, meter):
    budget = (
        tc.Budget(2.0, DELTA) if meter == "exact" else tc.Budget(renyi_epsilon(target, EPSILON, 2, DELTA), DELTA)
    )
    run = interaction(
        lambda rows: tc.Session(rows, budget, EPSILON, meter=meter, targets=[target]), getattr(scripts, script)
    )
    assert black_box(run, TEN, NINE, budget, runs=size(400, 3_000), workers=1).passed


def test_a_function_that_returns_its_session_knows_its_claim():
    budget = tc.Budget(exact_epsilon(EPSILON, 1, DELTA) * 1.001, DELTA)

    def ask(rows):
        session = tc.Session(rows, budget, EPSILON)
        session.test(above_threshold(len, 10, EPSILON))
        return session

    verdict = black_box(ask, TEN, NINE, runs=size(400, 3_000), workers=1)
    assert verdict.passed
    assert (verdict.claimed, verdict.at) == (budget.epsilon, budget.delta)
