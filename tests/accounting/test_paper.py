import math

import numpy as np
import pytest
from scipy.stats import binom
from tests.accounting.adversary import attained_delta

import targetcharge as tc
from targetcharge.accounting import exact_delta, exact_epsilon, overrun_probability, paper_epsilon

GOLDEN = [
    (0.1, 1, 1e-6, 4.68),
    (0.1, 5, 1e-6, 5.244),
    (0.1, 20, 1e-6, 6.835),
    (0.1, 100, 1e-6, 11.93),
    (0.05, 50, 1e-6, 4.21),
    (0.01, 100, 1e-6, 1.006),
    (0.5, 20, 1e-6, 55.42),
]


@pytest.mark.parametrize(("epsilon", "hits", "delta", "expected"), GOLDEN)
def test_golden(epsilon, hits, delta, expected):
    assert paper_epsilon(epsilon, hits, delta) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("alpha", "factor"), [(0.5, 10.6), (1.0, 3.26), (5.0, 0.31)])
def test_remark_how_many_hits_the_raw_tail_needs(alpha, factor):
    """δ* ≤ δ needs τ > factor·ln(1/δ): just enough hits do, 2% fewer do not."""
    delta = 1e-6
    needed = -math.log(delta) / (alpha - math.log1p(alpha))
    assert needed / -math.log(delta) == pytest.approx(factor, rel=6e-3)
    assert overrun_probability(math.ceil(needed), alpha, "raw") <= delta
    assert overrun_probability(math.floor(0.98 * needed), alpha, "raw") > delta


@pytest.mark.parametrize("tail", ["simple", "raw"])
@pytest.mark.parametrize("q", [0.1, 0.475, 0.9, 1.0])
def test_chernoff_forms_bound_the_true_tail(tail, q):
    """Over ⌊r⌋ computations, not ⌊r⌋+1: see the errata."""
    for hits in (1, 2, 7, 50):
        for alpha in (0.05, 0.5, 1.0, 5.0, 20.0):
            computations = math.floor((1 + alpha) * hits / q)
            assert binom.cdf(hits - 1, computations, q) <= overrun_probability(hits, alpha, tail) * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "hits", "delta", "_"), GOLDEN)
def test_sharper_tails_and_exact_accounting_are_better(epsilon, hits, delta, _):
    simple, raw, tail = (paper_epsilon(epsilon, hits, delta, tail=name) for name in ("simple", "raw", "exact"))
    assert simple > raw > tail > exact_epsilon(epsilon, hits, delta)


@pytest.mark.parametrize("tail", ["simple", "raw", "exact"])
@pytest.mark.parametrize("composition", ["basic", "advanced", "best"])
@pytest.mark.parametrize("q", [0.2, 0.5, 0.9, 1.0])
def test_the_corrected_theorem_is_true(tail, composition, q):
    """No (ε, q)-session exceeds what the theorem promises: exact accounting says so."""
    for epsilon, hits, delta in [(0.1, 3, 1e-3), (1.0, 1, 0.1), (3.0, 1, 0.125), (3.0, 2, 1e-2)]:
        promised = paper_epsilon(epsilon, hits, delta, q, tail=tail, composition=composition)
        assert exact_delta(epsilon, hits, promised, q) <= delta


def _with_tail_of_one_more(hits, q, delta):
    """The claim if the exact tail were Pr[Bin(r+1, q) < τ]: r computations."""
    return next(r for r in range(hits, 10_000) if binom.cdf(hits - 1, r + 1, q) <= delta)


def test_the_exact_tail_must_not_count_one_more_computation():
    epsilon, hits, q, delta = 3.0, 1, 0.5, 0.126
    claimed = _with_tail_of_one_more(hits, q, delta) * epsilon
    assert exact_delta(epsilon, hits, claimed, q) > 1.5 * delta
    corrected = paper_epsilon(epsilon, hits, delta, q, tail="exact", composition="basic")
    assert corrected == pytest.approx(claimed + epsilon)


def _as_printed(epsilon, hits, delta):
    """The advanced line without the 2 under the root, best α and split, simple Chernoff."""
    q = 1 / (1 + math.exp(epsilon))
    best = math.inf
    for share in np.geomspace(1e-6, 0.999, 4000):
        ratio = -math.log(share * delta) / hits
        r = (1 + ratio + math.sqrt(ratio * ratio + 2 * ratio)) * hits / q
        best = min(best, r * epsilon**2 / 2 + epsilon * math.sqrt(r * -math.log((1 - share) * delta)))
    return best


def test_the_printed_formula_is_below_what_an_explicit_adversary_attains():
    printed = _as_printed(0.1, 100, 1e-6)
    assert printed == pytest.approx(8.97, rel=1e-3)
    assert attained_delta(0.1, 100, printed, steps=900, width=500) > 1e-6
    corrected = paper_epsilon(0.1, 100, 1e-6)
    assert attained_delta(0.1, 100, corrected, steps=900, width=500) < 1e-6


def test_computations_with_their_own_delta():
    plain = paper_epsilon(0.1, 20, 1e-6)
    assert paper_epsilon(0.1, 20, 3e-6, computation_delta=2e-6) == pytest.approx(plain, rel=1e-9)
    assert paper_epsilon(0.1, 20, 1e-6, computation_delta=5e-7) > plain
    with pytest.raises(tc.InvalidParameter, match="computation_delta is 1e-06; it must be below delta"):
        paper_epsilon(0.1, 20, 1e-6, computation_delta=1e-6)


def test_words_are_checked():
    with pytest.raises(tc.InvalidParameter, match="tail is 'none'; it must be one of 'simple', 'raw', 'exact'"):
        paper_epsilon(0.1, 20, 1e-6, tail="none")
    with pytest.raises(tc.InvalidParameter, match="composition is 'none'"):
        paper_epsilon(0.1, 20, 1e-6, composition="none")
    with pytest.raises(tc.InvalidParameter, match="alpha is 0"):
        overrun_probability(3, 0.0)
