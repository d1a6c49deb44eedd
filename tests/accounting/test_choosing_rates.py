"""What sessions draw with: rates for a wanted number of hits, and offsets that cost at most a tenth of them."""

import math
from itertools import pairwise

import numpy as np
import pytest
from tests.discrete_laplace import DiscreteLaplace
from tests.refusals import every

import targetcharge as tc
from targetcharge.accounting import Budget, OffsetNoise, exact_hits, gumbel_delta, offset_epsilon, renyi_hits
from targetcharge.accounting.meter import Meter
from targetcharge.accounting.meter.choosing import ExactSession, GumbelSession, RenyiSession, rates
from targetcharge.accounting.qvalues import best_q
from targetcharge.mechanisms.noise import CountNoise

BUDGETS = [Budget(0.3, 1e-8), Budget(1.0, 1e-6), Budget(3.0, 1e-6), Budget(8.0, 1e-5)]
PLAIN = tc.NotPrior(prior=False)


def meter_of(session, found):
    """Return the meter that would be opened with these rates."""
    if isinstance(session, ExactSession):
        return Meter.exact(
            session.budget, found.query_epsilon, session.targets, offset=found.offset, hits=found.hits
        )
    return Meter.renyi(session.budget, found.query_epsilon, session.target, offset=found.offset)


def deviation(query, offset):
    """Return the standard deviation of a count by adding up two discrete Laplace laws on half steps."""
    laws = [DiscreteLaplace(2 * query / 2), DiscreteLaplace(offset / 2)]
    variances = [sum(law.mass(k) * k * k for k in range(-4000, 4001)) for law in laws]
    return math.sqrt(sum(variances)) / 2


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("of", [ExactSession, RenyiSession])
def test_beside_a_query_epsilon_an_offset_costs_at_most_a_tenth_of_the_hits(budget, of):
    def check(query):
        natural = exact_hits(query, budget) if of is ExactSession else renyi_hits(PLAIN, query, budget)
        if not natural:
            return
        session = of(budget)
        found = rates(session, query_epsilon=query, offset=True)
        assert found.query_epsilon == query
        if found.offset is None:  # there is no room for one that helps
            assert natural < 10
            return
        assert meter_of(session, found).hits_left >= natural - natural // 10
        assert found.offset.query_epsilon == 2 * query
        assert found.standard_deviation < math.sqrt(2) / query
        if natural >= 10:
            assert found.standard_deviation < 0.6 * math.sqrt(2) / query
            # It is as large as can be: a fifth more does not leave so many hits.
            larger = OffsetNoise(1.2 * found.offset.offset_epsilon, 2 * query)
            if larger.offset_epsilon < min(20 * query, budget.epsilon):
                more = rates(session, query_epsilon=query, offset=True).hits
                fewer = Meter.exact if of is ExactSession else Meter.renyi
                assert fewer(budget, query, PLAIN, offset=larger).hits_left < more + (of is RenyiSession)

    every([(budget.epsilon / times,) for times in (15, 30, 60, 100)], check)


@pytest.mark.parametrize("hits", [1, 5, 20, 100])
@pytest.mark.parametrize("of", [ExactSession, RenyiSession])
def test_for_hits_the_rates_cover_them_with_the_least_noise(hits, of):
    for budget in BUDGETS[1:3]:
        session = of(budget)
        found, alone = rates(session, hits=hits, offset=True), rates(session, hits=hits)
        assert meter_of(session, found).hits_left >= hits
        assert meter_of(session, alone).hits_left >= hits
        assert alone.offset is None
        assert found.standard_deviation < 0.65 * alone.standard_deviation
        assert found.standard_deviation == pytest.approx(
            deviation(found.query_epsilon, found.offset.offset_epsilon), rel=1e-6
        )
        if of is ExactSession:
            offset = found.offset
            assert (
                offset_epsilon(offset.offset_epsilon, 2 * found.query_epsilon, hits, budget.delta)
                <= budget.epsilon
            )
            # No other split of the same guarantee has much less noise.
            for times in (0.7, 1.4):
                other = times * offset.offset_epsilon
                query = found.query_epsilon
                while offset_epsilon(other, 2 * query, hits, budget.delta) > budget.epsilon:
                    query *= 0.99
                assert deviation(query, other) > 0.999 * found.standard_deviation


@pytest.mark.parametrize("hits", [1, 4, 13, 50])
def test_individuals_get_the_largest_rate_whose_closed_form_covers_the_hits(hits):
    budget = Budget(3.0, 1e-6)
    query = rates(GumbelSession(budget), hits=hits).query_epsilon
    assert gumbel_delta(query, hits, budget.epsilon) <= budget.delta
    assert gumbel_delta(query * 1.0001, hits, budget.epsilon) > budget.delta
    assert Meter.gumbel(budget, query).hits_left == hits


def test_more_hits_have_more_noise():
    for of in (ExactSession, RenyiSession, GumbelSession):
        found = [rates(of(BUDGETS[1]), hits=hits).query_epsilon for hits in (1, 2, 5, 20, 60)]
        assert all(fewer > more for fewer, more in pairwise(found))


def test_what_is_not_covered_is_refused_by_name():
    session = ExactSession(BUDGETS[1])
    with pytest.raises(tc.InvalidParameter, match=r"hits is 500; it must be at most 229 at query ε 0.01") as error:
        rates(session, query_epsilon=0.01, hits=500, offset=True)
    assert error.value.name == "hits"
    with pytest.raises(tc.InvalidParameter, match="hits is None"):
        rates(session)
    with pytest.raises(tc.InvalidParameter, match=r"query_epsilon is 0\.5"):
        rates(session, query_epsilon=0.5)
    with pytest.raises(tc.InvalidParameter, match="covers them at no query ε"):
        rates(RenyiSession(Budget(1e-6, 1e-12)), hits=10**9)


# Bands.


def sides(position, rate, points):
    """Return the chances to be below, in, or above a band of so many points, by noise from a position."""
    law = DiscreteLaplace(rate)
    below, above = law.at_least(position + 1), law.at_least(points - position)
    return below, 1 - below - above, above


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("width", [1, 2, 5, 30])
def test_a_band_has_the_q_that_is_priced_wherever_it_lies_and_however_far_a_count_moves(sensitivity, width):
    """After the coupling a unit that adds b of Δ steps moves a count by Δ/2 - b of them, either way."""
    epsilon = 0.7
    noise = CountNoise.carried(OffsetNoise(1.0, 2 * epsilon), sensitivity)
    rate, points = noise.rate.numerator / noise.rate.denominator, noise.lattice * width
    kind = tc.Between(10, 10 + width - 1, sensitivity).with_offset().kind(epsilon)
    least = 1.0
    for added in range(sensitivity + 1):
        moved = noise.lattice * added - noise.lattice * sensitivity // 2
        for position in range(-3 * sensitivity - 5, points + 3 * sensitivity + 5):
            first, second = sides(position, rate, points), sides(position + moved, rate, points)
            ratios = np.log(np.array(first)) - np.log(np.array(second))
            assert abs(ratios).max() <= epsilon + 1e-9
            if moved:
                least = min(least, best_q(first, second, [False, True, False], epsilon))
    assert kind.q <= least + 1e-12
    assert kind.q > 0.9 * least


def test_a_band_costs_no_more_with_an_offset():
    for width in (1, 3, 11, 41):
        band = tc.Between(5, 5 + width - 1)
        for order in (2.0, 5.0):
            assert band.with_offset().kappa(order, 0.1) <= band.kappa(order, 0.1) * (1 + 1e-12)
    assert PLAIN.with_offset() is PLAIN
