"""The Rényi prices in closed form: mpmath, the theory's golden values, lookups, refusals and membership."""

import math
import re

import mpmath
import numpy as np
import pytest
from tests.accounting.neighbours import order_at
from tests.refusals import every

from targetcharge.accounting import prices
from targetcharge.accounting.targets import (
    Between,
    Boundary,
    Disagreement,
    Everything,
    NotPrior,
    QTarget,
)
from targetcharge.errors import InvalidParameter
from targetcharge.outcomes import BOUNDARY, Side

NOT_PRIOR = NotPrior("no")
FRACTIONS = (0.005, 0.1, 0.4, 0.8, 0.999)
"""Orders, as fractions of the way from 1 to the order where the price becomes infinite."""

ROUNDING = 1 + 1e-9


# The closed forms against mpmath.


def minus_log(value):
    return -mpmath.log(value) if value > 0 else mpmath.inf


def not_prior_by_mpmath(order, epsilon):
    return minus_log(1 + mpmath.exp(epsilon) - mpmath.exp(order * epsilon)) - (order - 1) * epsilon


def q_by_mpmath(q):
    def price(order, epsilon):
        shift, miss = (order - 1) * epsilon, 1 / (1 + mpmath.exp(epsilon))
        moment = (1 - miss) * mpmath.exp(shift) + miss * mpmath.exp(-shift)
        hit = q * mpmath.exp(-shift)
        if q > miss:
            hit = miss * mpmath.exp(-shift) + (q - miss) * mpmath.exp(shift)
        return minus_log(1 - (moment - 1) / hit)

    return price


def disagreement_by_mpmath(order, epsilon):
    shift, miss = (order - 1) * epsilon, 1 / (1 + mpmath.exp(epsilon))
    plus, minus = (1 - miss) * mpmath.exp(shift), miss * mpmath.exp(-shift)
    return minus_log((1 - plus**2 - minus**2) / (2 * plus * minus))


def boundary_by_mpmath(order, epsilon):
    p, g = mpmath.exp(-epsilon), mpmath.exp(epsilon)
    three, two = mpmath.mpf(3) ** (1 - order), mpmath.mpf(2) ** (1 - order)
    first = minus_log(((2 + p) ** order * three - (2 - p) ** order) / p**order - 1)
    second = three * (2 + g) ** order - two * (1 + g) ** (order - 1) * (g**order + g ** (1 - order))
    return max(first, minus_log(second))


CLOSED_FORMS = {
    "not-prior": (NOT_PRIOR, not_prior_by_mpmath, 0),
    "disagreement": (Disagreement(), disagreement_by_mpmath, 0),
    "boundary": (Boundary(), boundary_by_mpmath, 2e-3),
    **{f"q={q}": (QTarget(q, ()), q_by_mpmath(q), 0) for q in (1e-6, 0.01, 0.3, 0.475, 0.5, 0.9, 1 - 1e-9)},
}
MPMATH_EPSILONS = (1e-9, 1e-4, 0.01, 0.1, 0.3, 0.61, 0.8, 1.0, 3.0, 10.0)
MPMATH_CASES = [
    pytest.param(target, exact, epsilon, margin, id=f"{name}-mpmath-{epsilon}")
    for name, (target, exact, margin) in CLOSED_FORMS.items()
    for epsilon in MPMATH_EPSILONS
    if epsilon <= target.max_epsilon
]


def pole_by_mpmath(exact, epsilon):
    """Return the order from which the closed form has no real value, by bisection at 60 digits."""
    low, high = mpmath.mpf(1), mpmath.mpf(2)
    while exact(high, epsilon) < mpmath.inf:
        low, high = high, 2 * high - 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if exact(middle, epsilon) < mpmath.inf else (low, middle)
    return low


@pytest.fixture(autouse=True)
def sixty_digits():
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize(("target", "exact", "epsilon", "margin"), MPMATH_CASES)
def test_a_price_is_at_most_a_billionth_above_the_closed_form(target, exact, epsilon, margin):
    pole = pole_by_mpmath(exact, mpmath.mpf(epsilon))
    fractions = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)
    for order in (*(float(1 + fraction * (pole - 1)) for fraction in fractions), 1.01, 1.5, 2.0, 3.0):
        if order > 1 + 0.999 * (pole - 1):
            continue
        ratio = target.price(order, epsilon) / exact(mpmath.mpf(order), mpmath.mpf(epsilon))
        assert 1 <= ratio <= 1 + margin + 1e-9, f"order {order}: {mpmath.nstr(ratio - 1, 5)}"


@pytest.mark.parametrize(("target", "exact", "epsilon", "_margin"), MPMATH_CASES)
def test_a_price_next_to_order_one_stays_above_the_closed_form(target, exact, epsilon, _margin):
    for order in (1 + 1e-12, 1 + 1e-9, 1 + 1e-7):
        assert target.price(order, epsilon) >= exact(mpmath.mpf(order), mpmath.mpf(epsilon)) > 0


@pytest.mark.parametrize(("target", "exact", "epsilon", "margin"), MPMATH_CASES)
def test_a_price_is_infinite_just_where_the_closed_form_is(target, exact, epsilon, margin):
    pole = pole_by_mpmath(exact, mpmath.mpf(epsilon))
    for distance in (1e-2, 1e-6, 1e-9):
        below, above = float(1 + (pole - 1) * (1 - distance)), float(1 + (pole - 1) * (1 + distance))
        closed_form = exact(mpmath.mpf(below), mpmath.mpf(epsilon))
        assert closed_form <= target.kappa(below, epsilon) <= (1 + margin + 1e-3) * closed_form
        assert target.kappa(above, epsilon) == math.inf
    for order in (2 * above, 1e6 * above, 1e300):
        assert target.kappa(order, epsilon) == math.inf


@pytest.mark.parametrize("epsilon", MPMATH_EPSILONS)
@pytest.mark.parametrize("exponent", [1e-3, 0.1, 2.0, 50.0, 290.0])
def test_the_price_of_everything_is_plain_renyi_by_mpmath(epsilon, exponent):
    order = 1 + exponent / epsilon
    shift, miss = (mpmath.mpf(order) - 1) * mpmath.mpf(epsilon), 1 / (1 + mpmath.exp(epsilon))
    moment = mpmath.log((1 - miss) * mpmath.exp(shift) + miss * mpmath.exp(-shift))
    assert 1 <= Everything().price(order, epsilon) / moment <= ROUNDING


@pytest.mark.parametrize("epsilon", MPMATH_EPSILONS)
def test_the_price_of_everything_at_a_huge_order_is_the_pure_bound(epsilon):
    order = 1e9 / epsilon
    assert Everything().price(order, epsilon) == pytest.approx((order - 1) * epsilon, rel=1e-6)


# Golden values of THEORY 4, and identities between the rows.

GOLDEN = [
    pytest.param(NOT_PRIOR, 2.0, 0.1, 0.0235605, 5e-8, id="not-prior-attained-by-top-1"),
    pytest.param(Disagreement(), 2.0, 0.1, 0.041170, 5e-7, id="disagreement-0.1-2"),
    pytest.param(Disagreement(), 3.0, 0.1, 0.130817, 5e-7, id="disagreement-0.1-3"),
    pytest.param(Disagreement(), 2.0, 0.05, 0.010071, 5e-7, id="disagreement-0.05-2"),
    pytest.param(Boundary(), 2.0, 0.1, 0.02994, 4e-5, id="boundary-0.1-2"),
    pytest.param(Boundary(), 3.0, 0.1, 0.10177, 1.1e-4, id="boundary-0.1-3"),
    pytest.param(Boundary(), 2.0, 0.05, 0.00703, 1.2e-5, id="boundary-0.05-2"),
    pytest.param(Boundary(), 1.2, 0.8, 0.3371, 4e-4, id="boundary-0.8-1.2"),
    pytest.param(Boundary(), 1.05, 1.0, 0.1081, 1.6e-4, id="boundary-1-1.05"),
]


@pytest.mark.parametrize(("target", "order", "epsilon", "golden", "tolerance"), GOLDEN)
def test_golden_prices(target, order, epsilon, golden, tolerance):
    assert target.price(order, epsilon) == pytest.approx(golden, abs=tolerance)


@pytest.mark.parametrize(
    ("target", "order", "epsilon", "golden"),
    [
        pytest.param(Disagreement(), 2.0, 0.1, 0.210, id="disagreement-0.1-2"),
        pytest.param(Disagreement(), 3.0, 0.1, 1.218, id="disagreement-0.1-3"),
        pytest.param(Disagreement(), 2.0, 0.05, 0.0410, id="disagreement-0.05-2"),
        pytest.param(Boundary(), 2.0, 0.1, 0.0768, id="boundary-0.1-2"),
        pytest.param(Boundary(), 3.0, 0.1, 0.2938, id="boundary-0.1-3"),
        pytest.param(Boundary(), 2.0, 0.05, 0.0171, id="boundary-0.05-2"),
    ],
)
def test_golden_prices_of_the_papers_rows(target, order, epsilon, golden):
    row_epsilon, q = target.paper_row(epsilon)
    by_row = QTarget(q, ()).price(order, row_epsilon)
    assert by_row == pytest.approx(golden, abs=0.5 * 10 ** -len(str(golden).partition(".")[2]))
    assert target.price(order, epsilon) < by_row


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_the_not_prior_price_is_that_of_its_q(epsilon, fraction):
    order = order_at(NOT_PRIOR, epsilon, fraction)
    by_q = QTarget(1 / (1 + math.exp(epsilon)), ()).price(order, epsilon)
    assert NOT_PRIOR.price(order, epsilon) == pytest.approx(by_q, rel=1e-9)


# Lookups.


@pytest.mark.parametrize(
    ("target", "cached"),
    [
        pytest.param(NOT_PRIOR, prices.not_prior, id="not-prior"),
        pytest.param(QTarget(0.4, ()), prices.q_target, id="q-target"),
        pytest.param(Between(0, 4), prices.q_target, id="between"),
        pytest.param(Everything(), prices.q_target, id="everything"),
        pytest.param(Disagreement(), prices.disagreement, id="disagreement"),
        pytest.param(Boundary(), prices.boundary, id="boundary"),
    ],
)
def test_the_second_lookup_of_a_price_computes_nothing(target, cached):
    first = target.price(1.9, 0.123)
    before = cached.cache_info()
    assert target.price(1.9, 0.123) == first
    after = cached.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


# Refusals.

ALL_TARGETS = [
    pytest.param(NOT_PRIOR, id="not-prior"),
    pytest.param(QTarget(0.3, ()), id="q-target"),
    pytest.param(Between(3, 7), id="between"),
    pytest.param(Disagreement(), id="disagreement"),
    pytest.param(Boundary(), id="boundary"),
]


@pytest.mark.parametrize("target", [*ALL_TARGETS, pytest.param(Everything(), id="everything")])
def test_a_bad_order_is_refused_by_name(target):
    every(
        [1, 1.0, 0.5, 0, -2.0, math.nan, math.inf, "2", None, True, 2j],
        lambda order: order_is_refused(target, order),
    )


def order_is_refused(target, order):
    with pytest.raises(InvalidParameter) as caught:
        target.price(order, 0.1)
    assert caught.value.name == "order"


@pytest.mark.parametrize("target", [*ALL_TARGETS, pytest.param(Everything(), id="everything")])
def test_a_bad_epsilon_is_refused_by_name(target):
    bad = [0, 0.0, -0.1, math.nan, math.inf, -math.inf, 11, "0.1", None, True]
    every(bad, lambda epsilon: epsilon_is_refused(target, epsilon))


def epsilon_is_refused(target, epsilon):
    with pytest.raises(InvalidParameter) as caught:
        target.price(1.01, epsilon)
    assert caught.value.name == "epsilon"


@pytest.mark.parametrize(
    ("target", "epsilon"),
    [
        pytest.param(*target.values, epsilon, id=f"{target.id}-{epsilon}")
        for target in ALL_TARGETS
        for epsilon in (1e-9, 1e-4, 0.01, 0.05, 0.1, 0.3, 0.61, 0.8, 1.0, 2.0, 5.0, 10.0)
        if epsilon <= target.values[0].max_epsilon
    ],
)
def test_an_order_without_a_finite_price_is_refused_with_the_largest_that_has_one(target, epsilon):
    with pytest.raises(InvalidParameter) as caught:
        target.price(1e12, epsilon)
    assert caught.value.name == "order"
    named = float(re.search(r"(?:at most|below) (\S+)", str(caught.value))[1])
    assert 0 < target.price(named, epsilon) < math.inf
    assert target.kappa(1 + 1.01 * (named - 1), epsilon) == math.inf


def test_boundary_is_refused_by_name_above_its_largest_epsilon():
    assert Boundary().price(1.01, 1.0) > 0
    with pytest.raises(InvalidParameter, match="Boundary") as caught:
        Boundary().price(1.01, 1.0000001)
    assert caught.value.name == "epsilon"


@pytest.mark.parametrize(
    ("build", "name"),
    [
        pytest.param(lambda: NotPrior(math.nan), "prior", id="prior-nan"),
        pytest.param(lambda: NotPrior(np.array([1, 2])), "prior", id="prior-array"),
        pytest.param(lambda: Between(5, 4), "high", id="between-reversed"),
        pytest.param(lambda: Between(0.2, 0.8), "high", id="between-without-an-integer"),
        pytest.param(lambda: Between(math.nan, 1), "low", id="between-low-nan"),
        pytest.param(lambda: Between(0, math.nan), "high", id="between-high-nan"),
        pytest.param(lambda: Between(-math.inf, 0), "low", id="between-low-infinite"),
        pytest.param(lambda: Between(0, math.inf), "high", id="between-high-infinite"),
        pytest.param(lambda: Between("0", 1), "low", id="between-text"),
        pytest.param(lambda: QTarget(0, ()), "q", id="q-0"),
        pytest.param(lambda: QTarget(1.1, ()), "q", id="q-1.1"),
        pytest.param(lambda: QTarget(math.nan, ()), "q", id="q-nan"),
        pytest.param(lambda: QTarget(0.5, 7), "members", id="members-not-a-container"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused_by_name(build, name):
    with pytest.raises(InvalidParameter) as caught:
        build()
    assert caught.value.name == name


# Membership.


@pytest.mark.parametrize(
    ("target", "hits", "misses"),
    [
        pytest.param(NotPrior("no"), ["yes", None, 0, ""], ["no"], id="not-prior"),
        pytest.param(NotPrior(None), [0, False, "no"], [None], id="not-prior-none"),
        pytest.param(QTarget(0.4, {"high", 3}), ["high", 3], ["low", None], id="q-target"),
        pytest.param(QTarget(0.4, range(5, 9)), [5, 8], [4, 9], id="q-target-range"),
        pytest.param(Between(3, 7), [Side.BETWEEN], [Side.BELOW, Side.ABOVE, 5], id="between"),
        pytest.param(Disagreement(), [("a", "b"), (0, 1)], [("a", "a"), (1, 1)], id="disagreement"),
        pytest.param(
            Disagreement(), ["aa", 1, None, (), (1,), (1, 1, 1), [1, 1]], [], id="disagreement-non-pairs"
        ),
        pytest.param(Boundary(), [BOUNDARY], ["boundary", None, 1], id="boundary"),
        pytest.param(Everything(), [0, None, "no", BOUNDARY], [], id="everything"),
    ],
)
def test_membership(target, hits, misses):
    assert [outcome in target for outcome in hits] == [True] * len(hits)
    assert [outcome in target for outcome in misses] == [False] * len(misses)


@pytest.mark.parametrize(
    ("low", "high", "width"), [(0, 0, 1), (3, 7, 5), (-2, 2, 5), (0.5, 1.5, 1), (-1.5, 1.5, 3), (0.0, 10.9, 11)]
)
def test_the_width_of_a_band_is_its_number_of_integers(low, high, width):
    assert Between(low, high).width == width == sum(low <= k <= high for k in range(-20, 20))
