"""Sparse meters: hits of at-least questions in a session with an offset."""

import math
from fractions import Fraction

import pytest

import targetcharge as tc
from targetcharge.accounting import Meter, OffsetNoise, least_noise, offset_hits
from targetcharge.accounting.curves import BoundedRange, Gaussian, Pure
from targetcharge.accounting.offsets.bounds import covers

BUDGET = tc.Budget(1.0, 1e-6)
ABOVE = tc.NotPrior(None)


@pytest.mark.parametrize("hits", [3, 10, 30])
def test_a_sparse_meter_grants_the_hits_that_its_rates_were_chosen_for(hits):
    law = least_noise(BUDGET, hits).law
    meter = Meter.sparse(BUDGET, law)
    assert meter.tariff.capacity >= hits
    assert meter.tariff.capacity == offset_hits(
        law.offset_epsilon, law.query_epsilon, BUDGET, law.noise, law.questions, offset_noise=law.offset_noise
    )
    price = meter.quote(ABOVE, law.query_epsilon)
    meter.charge(price, meter.hits_left)
    with pytest.raises(tc.BudgetSpent, match="this could cost 1 hit on the sparse meter and nothing is left"):
        meter.check(price)


def test_what_a_sparse_meter_does_not_take_names_one_that_does():
    meter = Meter.sparse(BUDGET, least_noise(BUDGET, 10).law)
    for target, other in (
        (tc.NotPrior(False), "exact"),
        (tc.Disagreement(), "renyi"),
        (tc.Between(1, 5), "renyi"),
        (tc.Boundary(), "renyi"),
    ):
        with pytest.raises(tc.NotAllowed, match=f"meter='{other}'"):
            meter.quote(target, 0.1)


def test_what_is_always_paid_costs_a_hit_if_it_is_private_enough():
    gumbel = Meter.sparse(BUDGET, OffsetNoise(0.2, 0.1, "gumbel", "at least"))
    for curve in (Pure(0.05), BoundedRange(0.1)):
        assert gumbel.quote(tc.Everything(curve), 0.1) == gumbel.quote(ABOVE, 0.1)
    assert gumbel.quote(tc.Everything(), 0.05).grains == 1
    for curve, what in ((Pure(0.051), "epsilon 0.051"), (BoundedRange(0.11), "bounded range 0.11")):
        with pytest.raises(tc.NotAllowed, match=f"this sparse meter .* has {what}.* meter='renyi'"):
            gumbel.quote(tc.Everything(curve), 0.1)


def test_what_is_always_paid_in_a_pure_session_costs_the_hits_that_its_epsilon_is_worth():
    pure = Meter.sparse(tc.Budget(1.0, 0.0), OffsetNoise(0.2, 0.1, "geometric", "at least"))
    for curve in (Pure, BoundedRange):
        assert [pure.quote(tc.Everything(curve(epsilon)), 0.1).grains for epsilon in (0.1, 0.11, 0.75)] == [
            1,
            2,
            8,
        ]
    assert pure.quote(tc.Everything(), 0.11).grains == 2
    pure.charge(pure.quote(tc.Everything(Pure(0.75)), 0.1))
    with pytest.raises(tc.BudgetSpent, match="this could cost 1 hit on the sparse meter and nothing is left"):
        pure.check(pure.quote(ABOVE, 0.1))
    with pytest.raises(tc.NotAllowed, match=r"this sparse meter .* has Gaussian noise of 10 times the shift"):
        pure.quote(tc.Everything(Gaussian(1, Fraction(100))), 0.1)


def test_the_odometer_of_a_pure_session_is_what_it_has_cost():
    meter = Meter.sparse(tc.Budget(1.0, 0.0), OffsetNoise(0.2, 0.1, "geometric", "at least"))
    assert (meter.tariff.capacity, meter.odometer().delta) == (8, 0.0)
    assert meter.odometer().epsilon == pytest.approx(0.2)
    meter.charge(meter.quote(ABOVE, 0.1), 3)
    assert meter.odometer().epsilon == pytest.approx(0.5)


@pytest.mark.parametrize("offset_noise", ["laplace", "geometric"])
def test_the_odometer_of_gumbel_noise_holds_for_either_direction(offset_noise):
    law = OffsetNoise(0.2, 0.1, "gumbel", "at least", offset_noise)
    meter = Meter.sparse(tc.Budget(1.5, 1e-6), law)
    figures = [meter.odometer().epsilon]
    for _ in range(3):
        meter.charge(meter.quote(ABOVE, 0.1))
        figures.append(meter.odometer().epsilon)
    assert figures == sorted(figures)
    # A running figure is no smaller than the guarantee of a session that stops there, whatever the direction.
    for hits, epsilon in enumerate(figures[1:], start=1):
        assert epsilon >= tc.accounting.offset_epsilon(0.2, 0.1, hits, 1e-6, "gumbel", "at least") * 0.99
        assert math.isfinite(epsilon)


def test_rates_that_cover_no_hit_are_refused_by_name():
    with pytest.raises(tc.InvalidParameter, match="query_epsilon is 2"):
        Meter.sparse(BUDGET, OffsetNoise(2.0, 2.0, "geometric", "at least"))


@pytest.mark.parametrize("rates", [(0.24, 0.09), (0.3, 0.05)])
def test_what_a_budget_covers_is_what_the_finest_lattice_says(rates):
    budget = tc.Budget(1.0, 1e-6)
    law = OffsetNoise(*rates, "gumbel", "at least")
    most = offset_hits(*rates, budget, "gumbel", "at least")
    assert [covers(law, budget, hits) for hits in (1, most - 1, most, most + 1)] == [True, True, True, False]
