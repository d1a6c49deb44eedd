"""The price of the boundary wrapper with caution: against pairs, a search, and the steps of its proof."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from tests.accounting.neighbours import (
    OUTCOMES,
    boundary_wrapped,
    evolved,
    extremal_pairs,
    mark_only,
    needed_price,
    order_at,
    pairs_at,
    random_pairs,
)
from tests.sizes import spread

from targetcharge import Budget, InvalidParameter, NotAllowed, plan
from targetcharge.accounting import prices
from targetcharge.accounting.targets import Boundary
from targetcharge.audit import certify

CAUTIONS = (1.0, 1.2, 2.0, 3.0, 10.0, 100.0)
EPSILONS = (0.01, 0.1, 0.5, 1.0)
FRACTIONS = (0.005, 0.1, 0.4, 0.8, 0.999)
ROUNDING = 1 + 1e-9
PAIRS = 20_000


def needed(law0, law1, order, careful):
    wrapped = boundary_wrapped(law0, careful), boundary_wrapped(law1, careful)
    return needed_price(*wrapped, mark_only(law0.shape[1]), order)


@pytest.mark.parametrize(
    ("careful", "epsilon", "fraction"), spread(itertools.product(CAUTIONS, EPSILONS, FRACTIONS), 40)
)
def test_no_pair_needs_more(careful, epsilon, fraction):
    rng = np.random.default_rng(11)
    order = order_at(Boundary(careful), epsilon, fraction)
    price = Boundary(careful).price(order, epsilon)
    for outcomes in OUTCOMES:
        for make in (random_pairs, extremal_pairs):
            worst = needed(*make(rng, PAIRS // len(OUTCOMES), outcomes, epsilon), order, careful).max()
            assert worst <= price * ROUNDING


def test_power_nine_tenths_of_the_price_is_too_low():
    rng = np.random.default_rng(12)
    for careful in (1.0, 2.0, 3.0):
        price = Boundary(careful).price(2.0, 0.1)
        found = max(
            needed(*extremal_pairs(rng, PAIRS, outcomes, 0.1), 2.0, careful).max() for outcomes in OUTCOMES
        )
        assert found > 0.97 * price


@pytest.mark.parametrize(
    ("careful", "epsilon", "fraction", "outcomes"),
    spread(
        [
            (careful, epsilon, fraction, outcomes)
            for careful in (1.3, 2.0, 4.0, 30.0)
            for epsilon, fraction in ((0.05, 0.4), (0.2, 0.8), (0.6, 0.5), (1.0, 0.9))
            for outcomes in (2, 3, 5)
        ],
        20,
    ),
)
def test_a_search_without_the_proof_finds_nothing_above(careful, epsilon, fraction, outcomes):
    order = order_at(Boundary(careful), epsilon, fraction)
    price = Boundary(careful).price(order, epsilon)
    found = evolved(lambda points: needed(*pairs_at(points, epsilon), order, careful), 2 * outcomes)
    assert 0.9 * price <= found <= price * ROUNDING


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 0.3, 0.61, 0.8, 1.0])
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_without_more_caution_it_is_the_closed_form(epsilon, fraction):
    order = order_at(Boundary(), epsilon, fraction)
    assert prices.cautious_boundary(order, epsilon, 1.0) == pytest.approx(
        prices.boundary(order, epsilon), rel=3e-4
    )


@pytest.mark.parametrize(
    ("epsilon", "order", "careful", "price"),
    [(0.1, 2, 2, 0.01673), (0.1, 6, 2, 0.43362), (0.05, 9, 3, 0.17447), (0.3, 3, 5, 0.78399)],
)
def test_golden_values(epsilon, order, careful, price):
    assert Boundary(careful).price(order, epsilon) == pytest.approx(price * 1.001, abs=1.5e-5)


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 1.0])
@pytest.mark.parametrize("careful", [1.0, 2.0, 7.0])
def test_finer_grids_find_no_more(monkeypatch, epsilon, careful):
    order = order_at(Boundary(careful), epsilon, 0.6)
    coarse = prices.cautious_boundary.__wrapped__(order, epsilon, careful)
    monkeypatch.setattr(prices, "_LINE", 20_001)
    monkeypatch.setattr(prices, "_SQUARE", 1_001)
    assert prices.cautious_boundary.__wrapped__(order, epsilon, careful) <= coarse * (1 + 1e-4)


def test_more_caution_makes_a_mark_cheaper():
    for order, epsilon in ((2.0, 0.1), (6.0, 0.1), (1.2, 0.8)):
        found = [Boundary(careful).price(order, epsilon) for careful in (1.0, 1.01, 1.5, 2, 4, 10, 50, 100)]
        assert found == sorted(found, reverse=True)


def test_a_tiny_epsilon_keeps_a_price():
    """Rounding is added, not lost: never below the closed form of what is nearly sure."""
    for epsilon in (1e-9, 1e-6, 1e-4):
        price = Boundary(2.0).price(2.0, epsilon)
        assert 1.5 * 2 * epsilon**2 * 0.5 <= price <= 2e-13 + 1.7 * 2 * epsilon**2


@pytest.mark.parametrize("careful", CAUTIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_the_proof_assumes_costs_nothing(careful, epsilon):
    """The price is infinite before the assumption fails."""
    largest = order_at(Boundary(careful), epsilon, 1.0)
    assert largest * -math.expm1(-epsilon) < 1
    nearly = (1 - 1e-9) / -math.expm1(-epsilon)
    assert prices._Wrapper(nearly, epsilon, careful).vanishing() > 1 - 1e-6
    assert prices.cautious_boundary(1e300, epsilon, careful) == math.inf


# The steps of the proof.


@pytest.mark.parametrize("careful", [1.0, 2.0, 10.0])
def test_between_nearly_sure_and_one_half_nothing_is_worse(careful):
    """Case 1: for every ratio of the masses the worst is at an end, on a dense grid of both."""
    epsilon = 0.3
    order = order_at(Boundary(careful), epsilon, 0.7)
    wrapper = prices._Wrapper(order, epsilon, careful)
    ends = max(wrapper.vanishing(), wrapper.same_side())
    for ratio in np.exp(np.linspace(-epsilon, epsilon, 41)):
        one = np.geomspace(1e-5, 0.5 * min(1, 1 / ratio), 400)
        assert wrapper._needed(ratio * one, one) <= ends * (1 + 1e-6)


@pytest.mark.parametrize("careful", [1.0, 3.0])
def test_switching_splits_in_between_are_no_worse(careful):
    """Case 4: random splits of random masses, against the corners."""
    rng, epsilon = np.random.default_rng(5), 0.4
    order = order_at(Boundary(careful), epsilon, 0.7)
    wrapper, e = prices._Wrapper(order, epsilon, careful), math.exp(epsilon)
    zero, one = rng.uniform(0.5 / e, 0.5, (2, 200_000))
    most_zero, most_one = zero - (1 - one) / e, one - (1 - zero) / e
    rest_zero, rest_one = rng.random((2, 200_000)) * np.stack([most_zero, most_one])
    kept = (most_zero > 0) & (most_one > 0) & (rest_zero <= e * rest_one) & (rest_one <= e * rest_zero)
    zero, one, rest_zero, rest_one = (part[kept] for part in (zero, one, rest_zero, rest_one))
    assert kept.sum() > 1_000
    assert (
        wrapper._excess(zero, one, wrapper._split(zero, one, rest_zero, rest_one)) <= wrapper.switching() * 1.001
    )


# What it is part of.


def test_the_wrapper_marks_as_the_price_says():
    for careful in (1.0, 2.0, 9.0):
        target = Boundary(careful)
        assert target.mark_probability(0.1) == pytest.approx(0.1 * careful / (1 + 0.1 * careful))
        for rest in (0.5, 0.7, 1.0):
            assert target.mark_probability(rest) == pytest.approx(careful / (2 + careful))


def test_what_is_published_alone_has_the_tight_epsilon():
    rng, epsilon = np.random.default_rng(3), 0.5
    for careful in (1.0, 2.0, 10.0):
        worst = max(
            np.abs(np.log(boundary_wrapped(law0, careful) / boundary_wrapped(law1, careful))).max()
            for outcomes in OUTCOMES
            for law0, law1 in [extremal_pairs(rng, PAIRS, outcomes, epsilon)]
        )
        tight = Boundary(careful).published_epsilon(epsilon)
        assert tight * 0.95 <= worst <= tight * ROUNDING


@pytest.mark.parametrize("wrong", [0.5, 0, -1, 101, math.nan, math.inf, "2", True, None])
def test_a_caution_without_a_price_is_refused_by_name(wrong):
    with pytest.raises(InvalidParameter, match="caution"):
        Boundary(wrong)


def needed_exactly(order, epsilon, careful):
    """Return 1 - e^{-κ} that three worst pairs need, in 60 digits."""
    with mpmath.workdps(60):
        a, c, e = mpmath.mpf(order), mpmath.mpf(careful), mpmath.exp(mpmath.mpf(epsilon))
        beta, alpha = mpmath.sinh(a * epsilon) / mpmath.sinh(epsilon), -mpmath.sinh((a - 1) * epsilon)
        alpha /= mpmath.sinh(epsilon)
        found = [(1 + c) / c * (1 - (1 + a * (rho - 1)) * rho**-a) for rho in (e, 1 / e)]
        for zero, one in ((0.5 / e, mpmath.mpf(0.5)), (mpmath.mpf(0.5), 0.5 / e)):
            moments = (1 - zero) ** a * (1 - one) ** (1 - a) + alpha * one + beta * zero
            marked = c * zero**a * one ** (1 - a)
            found.append(1 - ((1 + c * zero) ** a * (1 + c * one) ** (1 - a) - moments) / marked)
        return max(found)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-4, 8.15e-4, 0.01])
@pytest.mark.parametrize("careful", [1.0, 1.72, 2.0, 30.0])
def test_rounding_at_a_large_order_is_on_the_safe_side(epsilon, careful):
    """Also just below the order where the price becomes infinite, where rounding could hide that."""
    pole = order_at(Boundary(careful + 1e-12), epsilon, 1.0)
    for order in (2.0, 20_242.5, 0.01 / epsilon, 0.5 / epsilon, pole * (1 - 1e-9), pole * (1 - 1e-14)):
        price = prices.cautious_boundary(order, epsilon, careful)
        needed_share = needed_exactly(order, epsilon, careful)
        if price == math.inf:
            assert order * epsilon > 0.3
        else:
            assert needed_share < 1
            assert price >= float(-mpmath.log1p(-needed_share))


def test_the_paper_does_not_know_it():
    with pytest.raises(NotAllowed, match="caution 1, and this has 2"):
        Boundary(2).paper_row(0.1)
    budget = Budget(3.0, 1e-5)
    names = [row.accounting for row in plan(budget, query_epsilon=0.05, target=Boundary(2)).rows]
    assert "Rényi" in names
    assert not any(name.startswith("paper") for name in names)
    ours = [plan(budget, query_epsilon=0.05, target=Boundary(c))["Rényi"].hits for c in (1, 2)]
    assert ours[1] > 1.5 * ours[0]


def test_its_name():
    assert repr(Boundary()) == "Boundary()"
    assert repr(Boundary(2)) == "Boundary(caution=2)"
    assert repr(Boundary(2.5)) == "Boundary(caution=2.5)"
    assert repr(Boundary(1 + 1e-12)) == "Boundary(caution=1.000000000001)"
    assert Boundary(2) == Boundary(2.0) != Boundary()


def test_it_is_certified():
    verdict = certify(Boundary(2), 0.1, 4.0, pairs=20_000)
    assert verdict.passed
    assert verdict.attained > 0.98 * verdict.claimed
    with pytest.raises(NotAllowed, match="the paper's theorem"):
        certify(Boundary(2), 0.1)
