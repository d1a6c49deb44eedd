"""What meters charge for computations whose every outcome is paid for: prices, refusals, rates, running totals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.refusals import every
from tests.sizes import spread

import targetcharge as tc
from targetcharge.accounting import Meter, OffsetNoise, prices
from targetcharge.accounting.curves import BoundedRange, Concentrated, Gaussian, Pure
from targetcharge.accounting.exchange import exact_rates, hits_of, largest_pure, largest_range, largest_shift
from targetcharge.accounting.meter.allowance import Allowance
from targetcharge.accounting.offsets.games import GumbelGame, LaplaceGame
from targetcharge.numerics.rounding import GRAINS
from targetcharge.numerics.search import largest_real

BUDGET = tc.Budget(1.0, 1e-6)
ABOVE, TEST = tc.NotPrior(None), tc.NotPrior(False)


def meters():
    """Yield (name, meter, query ε) of every sort of meter."""
    any_question = OffsetNoise(0.1, 0.06, "laplace", "any")
    yield "exact", Meter.exact(BUDGET, 0.03), 0.03
    yield "two runs", Meter.exact(BUDGET, 0.03, (TEST, tc.Disagreement())), 0.03
    yield "q-targets", Meter.exact(BUDGET, 0.03, tc.QTarget(0.5, {1})), 0.03
    yield "tests and q-targets", Meter.exact(BUDGET, 0.03, (TEST, tc.QTarget(0.3, {1}))), 0.03
    yield "alternatives", Meter.exact(BUDGET, 0.03, alternatives=3), 0.03
    yield "exact with an offset", Meter.exact(BUDGET, 0.03, offset=any_question), 0.03
    yield "renyi", Meter.renyi(BUDGET, 0.03), 0.03
    yield "renyi with an offset", Meter.renyi(BUDGET, 0.03, offset=any_question), 0.03
    yield "renyi for individuals", Meter.renyi(BUDGET, 0.03, individual=True), 0.03
    for noise, offset_noise in (("gumbel", "laplace"), ("gumbel", "geometric"), ("laplace", "laplace")):
        law = OffsetNoise(0.1, 0.03, noise, "at least", offset_noise)
        yield f"{noise} beside {offset_noise}", Meter.sparse(BUDGET, law, hits=12), 0.03
    yield "pure", Meter.sparse(tc.Budget(1.0, 0.0), OffsetNoise(0.1, 0.03, "geometric", "at least")), 0.03
    yield "gumbel for individuals", Meter.gumbel(BUDGET, 0.03), 0.03


METERS = {name: (meter, query) for name, meter, query in meters()}


def cost(meter, curve, query):
    """Return the grains of a computation; infinite if it is refused."""
    try:
        return meter.quote(tc.Everything(curve), query).grains
    except tc.NotAllowed:
        return math.inf


def curves_of(rates, times=1.0):
    """Return the computations that have exactly these rates, or so many times them."""
    yield Pure(times * rates.pure)
    yield BoundedRange(times * rates.bounded_range)
    for squared in (1, 4, 10**6):
        rate = rates.gaussian(squared)
        if rate is not None:
            variance = Fraction(rate.denominator, rate.numerator) ** 2
            yield Gaussian(squared, (variance - rates.spread) / Fraction(times) ** 2 + rates.spread)


# Prices and refusals


def test_an_exact_meter_charges_the_hits_of_a_computation_and_refuses_it_when_fewer_are_left():
    meter = Meter.exact(BUDGET, 0.03)
    four = meter.quote(tc.Everything(Pure(0.03 * 2.6)), 0.03)
    one = meter.quote(tc.Everything(BoundedRange(0.03 * 2.6)), 0.03)
    assert (four.grains, four.value, one) == (4, 4.0, meter.quote(TEST, 0.03))
    left = meter.hits_left
    while meter.hits_left >= 4:
        meter.charge(four)
    assert meter.hits_left == left % 4
    with pytest.raises(tc.BudgetSpent, match=f"this could cost 4 hits on the exact meter and {left % 4}"):
        meter.check(four)
    meter.charge(one, meter.hits_left)
    with pytest.raises(tc.BudgetSpent):
        meter.check(one)


def test_what_needs_more_hits_than_a_meter_has_in_all_is_refused():
    meter = Meter.exact(tc.Budget(0.1, 1e-6), 0.004)
    capacity = meter.tariff.capacity
    assert 8 <= capacity <= 60
    shift = largest_shift(0.004)
    for hits, covered in ((capacity, True), (capacity + 1, False)):
        curve = Gaussian(1, Fraction(1 / (hits * shift**2) * (1 + 1e-9)) + Fraction(5, 2))
        assert (cost(meter, curve, 0.004) == hits) == covered
        assert covered or cost(meter, curve, 0.004) == math.inf


def test_an_epsilon_alone_is_charged_as_dp():
    for meter, query in METERS.values():
        for epsilon in (query / 2, query / 3):
            assert meter.quote(tc.Everything(), epsilon).grains == cost(meter, Pure(epsilon), query)


def test_what_a_meter_does_not_price_names_one_that_does():
    unpriced = [
        Pure(1.0),
        BoundedRange(2.0),
        Concentrated(1e-4),
        Gaussian(1, Fraction(5, 2)),
        Gaussian(1, Fraction(900)),
    ]
    refused = dict.fromkeys(METERS, 0)

    def check(name, curve):
        meter, query = METERS[name]
        if cost(meter, curve, query) < math.inf:
            return
        refused[name] += 1
        with pytest.raises(tc.NotAllowed, match=r"[Oo]pen the session with meter='renyi'$"):
            meter.quote(tc.Everything(curve), query)
        budget = tc.Budget(meter.guarantee.epsilon, meter.guarantee.delta or 1e-6)
        other = Meter.renyi(budget, query, individual=meter.individual)
        assert other.quote(tc.Everything(curve), query).grains >= 1

    every(itertools.product(METERS, unpriced), check)
    assert refused["exact"] == 4
    assert refused["two runs"] == refused["q-targets"] == refused["gumbel for individuals"] == 5
    assert refused["pure"] == 3
    assert not any(refused[name] for name in METERS if name.startswith("renyi"))


def test_zcdp_that_is_declared_has_a_price_on_renyi_meters_alone():
    for name, (meter, query) in METERS.items():
        assert (cost(meter, Concentrated(1e-5), query) < math.inf) == name.startswith("renyi")


def test_in_a_pure_session_a_computation_costs_the_hits_whose_epsilons_add_up_to_its_own():
    meter, query = METERS["pure"]
    for curve in (Pure, BoundedRange):
        assert [cost(meter, curve(times * query), query) for times in (0.1, 1, 1.01, 2, 7.5)] == [1, 1, 2, 2, 8]
        assert cost(meter, curve(math.nextafter(query, 1)), query) == 2


def test_alternatives_share_a_budget_and_not_the_rates():
    alone, sharing = METERS["exact"][0], METERS["alternatives"][0]
    assert sharing.hits_left < alone.hits_left
    assert sharing.tariff.paid(0.03) == alone.tariff.paid(0.03)


def test_an_offset_at_half_leaves_the_rates_of_the_query_epsilon_that_is_accounted_for():
    assert METERS["exact with an offset"][0].tariff.paid(0.03) == METERS["exact"][0].tariff.paid(0.03)
    assert METERS["exact"][0].tariff.paid(0.03).pure == largest_pure(0.03)


# What one hit pays for


@pytest.mark.parametrize("name", METERS)
def test_what_a_hit_pays_for_costs_at_most_a_hit_and_a_little_more_costs_more(name):
    meter, query = METERS[name]
    test = ABOVE if meter.tariff.at_least else tc.QTarget(0.5, {1}) if name == "q-targets" else TEST

    def check(epsilon):
        price, rates = meter.quote(test, epsilon).grains, meter.tariff.paid(epsilon)
        for curve in curves_of(rates):
            assert cost(meter, curve, query) <= price, curve
        dearer = [cost(meter, curve, query) for curve in curves_of(meter.tariff.paid(query), 1.001)]
        whole = meter.quote(test, query).grains
        assert all(grains > whole for grains in dearer), dearer

    every([query, 0.7 * query, 0.1 * query], check)


@pytest.mark.parametrize(
    ("query", "epsilon"), [(0.001, 0.1), (0.2, 50.0), (1.0, 300.0), (2.0, 3000.0), (4.0, 9000.0)]
)
def test_what_a_hit_pays_for_on_meters_with_larger_and_smaller_query_epsilons(query, epsilon):
    budget = tc.Budget(epsilon, 1e-6)
    for meter in (Meter.exact(budget, query), Meter.renyi(budget, min(query, 2.0))):
        asked = min(query, 2.0) if meter.tariff.name == "renyi" else query
        price = meter.quote(TEST, asked).grains
        assert all(cost(meter, curve, asked) <= price for curve in curves_of(meter.tariff.paid(asked)))


@pytest.mark.parametrize("query", [4.4, 9.5])
def test_what_a_hit_pays_for_is_never_more_than_a_computation_may_be(query):
    rates = exact_rates(query)
    assert all(hits_of(curve, query, 1) == 1 for curve in curves_of(rates))
    assert rates.bounded_range == 10.0


def test_what_a_renyi_price_pays_for_is_never_more_than_a_computation_may_be():
    meter = Meter.renyi(tc.Budget(2000.0, 1e-6), 3.0)
    price = meter.quote(TEST, 3.0).grains
    assert all(cost(meter, curve, 3.0) <= price for curve in curves_of(meter.tariff.paid(3.0)))


def test_a_renyi_meter_refuses_to_say_what_a_test_without_a_price_pays_for():
    with pytest.raises(tc.NotAllowed, match="no finite price"):
        METERS["renyi"][0].tariff.paid(1.0)


# Running figures: no larger moment than the price that was charged


def orders(query):
    """Return orders up to the one where private tests have no finite price."""
    pole = math.log(1 + math.exp(query)) / query
    return [1 + fraction * (pole - 1) for fraction in (1e-3, 0.01, 0.1, 0.3, 0.6, 0.9, 0.999)]


def longest(curve, query, hits):
    """Return the curve with the largest ε, or range, that so many hits pay for."""
    return curve(largest_real(lambda most: hits_of(curve(most), query, hits) is not None, query, 10.0, 1e-7))


def test_so_many_hits_of_a_computation_have_no_larger_moment_than_as_many_prices():
    """So the running figure of an exact meter holds, whatever it was charged for."""
    closest = {Pure: 0.0, BoundedRange: 0.0, Gaussian: 0.0}

    def check(query, hits):
        shift = hits * largest_shift(query) ** 2
        paid = [Gaussian(1, 1 / Fraction(shift) + Fraction(5, 2))]
        paid += [longest(curve, query, hits) for curve in (Pure, BoundedRange)]
        for order, curve in itertools.product(orders(query), paid):
            share = curve.moment(order) / (hits * prices.not_prior(order, query))
            assert share <= 1, (order, curve)
            closest[type(curve)] = max(closest[type(curve)], share)

    every(spread(itertools.product([0.01, 0.1, 0.5, 1.0, 3.0], [1, 2, 3, 5, 8, 30, 200, 1000]), 14), check)
    assert min(closest[Pure], closest[BoundedRange]) > 0.85


@pytest.mark.parametrize("query", [0.001, 0.1, 1.0, 3.0])
def test_a_range_has_no_larger_moment_than_a_hit_of_an_at_least_session(query):
    """Whatever λ the running figure is analysed at; also for individuals, whose game is that of both sides."""
    for game in (GumbelGame(3, 2), GumbelGame(1, 1), GumbelGame(9, 1), LaplaceGame(3, 2)):
        width, closest = query / (game.above + game.below), 0.0
        for exponent in (1e-3, 0.1, 0.3, 1.0, 2.0, 4.0):
            order = 1 + exponent / query
            price = game.kappa(order, width)
            if price < math.inf:
                closest = max(closest, BoundedRange(query).moment(order) / price)
        assert 0 < closest <= 1


@pytest.mark.parametrize("name", [name for name, (meter, _) in METERS.items() if meter.tariff.order < math.inf])
def test_the_running_total_of_a_meter_stays_above_the_moments_of_what_was_charged(name):
    meter, query = METERS[name]
    order = meter.tariff.order
    before = meter.tariff.total(0)
    for times in (0.3, 1.0, 1.5, 3.0):
        for curve in curves_of(meter.tariff.paid(query), times):
            grains = cost(meter, curve, query)
            if grains < math.inf:
                added = meter.tariff.total(grains) - before
                assert curve.moment(order) <= added * (1 + 1e-12), curve


def test_the_running_figure_of_a_pure_session_adds_up_what_was_charged():
    meter = Meter.sparse(tc.Budget(1.0, 0.0), OffsetNoise(0.1, 0.03, "geometric", "at least"))
    meter.charge(meter.quote(tc.Everything(Pure(0.1)), 0.03))
    assert meter.totals.spent == 4
    assert meter.odometer().epsilon == pytest.approx(0.1 + 4 * 0.03)


def test_a_range_for_a_hit_is_twice_the_epsilon_for_a_hit_on_exact_meters_alone():
    assert METERS["exact"][0].tariff.paid(0.03).bounded_range == largest_range(0.03) == 2 * largest_pure(0.03)
    renyi = METERS["renyi"][0].tariff.paid(0.03)
    assert 1.9 < renyi.bounded_range / renyi.pure < 2.1
    assert METERS["gumbel for individuals"][0].tariff.paid(0.03).bounded_range == 0.03


# Where each unit has a budget of its own


@pytest.mark.parametrize("curve", [Pure(0.03), BoundedRange(0.06), Gaussian(144, Fraction(10**5))], ids=str)
def test_a_unit_is_charged_at_least_the_moment_of_what_it_contributes(curve):
    tariff = METERS["renyi for individuals"][0].tariff
    allowance = Allowance.of(tariff)
    charged = allowance.prices(tc.Everything(curve), 0.03, 12).of(np.arange(13)).tolist()
    assert charged == sorted(charged)
    assert charged[0] == 0
    for steps in range(1, 13):
        moment = Fraction(curve.of_share(Fraction(steps, 12)).moment(tariff.order))
        assert moment <= charged[steps] / (GRAINS * allowance.scale) <= moment * Fraction(1.001)


def test_under_gumbel_noise_every_unit_that_contributes_is_charged_a_hit():
    prices_of = Allowance.of(METERS["gumbel for individuals"][0].tariff).prices(
        tc.Everything(BoundedRange(0.03)), 0.03, 12
    )
    assert prices_of.of(np.array([0, 1, -5, 12])).tolist() == [0, 1, 1, 1]
