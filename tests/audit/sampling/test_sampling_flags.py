"""The audit can fail: broken mechanisms that must be flagged."""

import pytest
from tests.audit.sampling.session_scripts import budget_of, until_hits
from tests.audit.sampling.shared_generator import shared_laplace, shared_uniform
from tests.audit.sampling.sparse_vector import WRONG
from tests.sizes import LONG, size

import targetcharge as tc
from targetcharge.audit import black_box
from targetcharge.randomness import Rate, discrete_laplace

TEN, NINE = ["row"] * 10, ["row"] * 9


@pytest.mark.parametrize("variant", WRONG, ids=str)
def test_wrong_sparse_vectors_are_flagged(variant):
    claim = tc.Budget(variant.epsilon, 0.0)
    verdict = black_box(variant.run, *variant.data, claim, relation="any", runs=variant.runs, workers=1)
    assert not verdict.passed
    assert verdict.attained > variant.epsilon * 1.1


def noisy(epsilon, claimed):
    """Return a count with noise for one ε that claims another."""
    return tc.private(claimed, name="count")(
        lambda rows, entropy: len(rows) + discrete_laplace(entropy, Rate.at_most(epsilon))
    )


@pytest.mark.parametrize("claimed", [0.25, 0.5, 1.0])
def test_halved_noise_is_flagged(claimed):
    verdict = black_box(noisy(2 * claimed, claimed), TEN, NINE, runs=size(4_000, 12_000), workers=1)
    assert not verdict.passed
    assert claimed < verdict.attained < 2 * claimed


def test_noise_that_is_a_little_short_is_flagged_with_more_runs():
    """At ε = 1 a claim of 0.8 falls with 16,000 runs, of 0.9 with 60,000, and not with 1,000.

    The verdict says what could be seen.
    """
    claimed, enough = (0.9, 60_000) if LONG else (0.8, 16_000)
    few, many = (black_box(noisy(1.0, claimed), TEN, NINE, runs=runs, workers=1) for runs in (1_000, enough))
    assert few.passed
    assert not many.passed
    assert f"would show an epsilon from {0.968 if LONG else 0.93} on" in many.worst


def test_the_low_bits_of_float_noise_are_flagged():
    """numpy's Laplace noise on a count of 0 has finer bits than on a count of 1; ours are integers."""

    def float_laplace(rows):
        return len(rows) + shared_laplace(scale=1.0)

    verdict = black_box(float_laplace, [], ["row"], tc.Budget(1.0, 0.0), runs=size(3_000, 12_000), workers=1)
    assert not verdict.passed
    assert "lowest bit" in verdict.worst
    assert verdict.attained > 3

    def on_a_grid(rows):
        return round(float_laplace(rows) * 1024)

    assert black_box(on_a_grid, [], ["row"], tc.Budget(1.0, 0.0), runs=size(3_000, 12_000), workers=1).passed


def test_values_with_the_same_noise_are_flagged():
    """Each value alone is private; their difference is not."""

    def same_noise(rows):
        noise = round(1024 * shared_laplace()) / 1024
        return len(rows) + noise, rows.count("a") + noise

    both_rise, one_rises = (["b"] * 5, ["b"] * 5 + ["a"]), (["b"] * 5, ["b"] * 6)
    claim, runs = tc.Budget(2.0, 0.0), size(1_000, 4_000)
    assert black_box(same_noise, *both_rise, claim, runs=runs, workers=1).passed
    assert not black_box(same_noise, *one_rises, claim, runs=runs, workers=1).passed


def test_a_failure_that_depends_on_the_data_is_flagged():
    def fails(rows):
        if len(rows) > 9:
            raise ValueError
        return shared_uniform() < 0.5

    verdict = black_box(fails, TEN, NINE, tc.Budget(1.0, 0.0), runs=size(500, 2_000), workers=1)
    assert not verdict.passed
    assert "ValueError raised" in verdict.worst


def test_looks_are_flagged():
    """1 and True are equal to Python and look different."""
    verdict = black_box(
        lambda rows: 1 if len(rows) > 9 else True, TEN, NINE, tc.Budget(1.0, 0.0), runs=size(200, 1_000), workers=1
    )
    assert not verdict.passed
    assert "it is not random" in verdict.worst


def test_a_rare_disaster_is_flagged_at_a_small_delta():
    """With probability 2% the data itself is published: a claim of δ = 0.5% is false whatever ε."""

    def rarely(rows):
        return tuple(rows) if shared_uniform() < 0.02 else None

    assert not black_box(rarely, TEN, NINE, tc.Budget(1.0, 0.005), runs=size(6_000, 24_000), workers=1).passed
    assert black_box(rarely, TEN, NINE, tc.Budget(3.0, 0.03), runs=size(6_000, 24_000), workers=1).passed


@pytest.mark.parametrize(("meter", "hits"), [("exact", 16), ("renyi", 32)])
def test_a_session_with_more_hits_than_it_claims_is_flagged(meter, hits):
    """As if hits were not charged: so many happen on a budget of one. By five standard deviations at least."""
    script = until_hits(hits, budget_of(hits, meter), meter)
    verdict = black_box(script, TEN, NINE, budget_of(1, meter), runs=size(600, 4_000), workers=1)
    assert not verdict.passed


def test_a_refusal_that_depends_on_the_data_is_flagged():
    def refuses(rows):
        with tc.Session(rows, tc.Budget(3.0, 1e-6), 0.1) as session:
            for _ in range(3):
                if len(rows) > 9:
                    raise tc.BudgetSpent("", asked=1, left=0)
                session.test(tc.mechanisms.above_threshold(len, 9, 0.1))
            return list(session.transcript)

    assert not black_box(refuses, TEN, NINE, tc.Budget(3.0, 1e-6), runs=size(400, 4_000), workers=1).passed
