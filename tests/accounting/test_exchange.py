"""Exchange rates against mpmath, and against levels of the games, iterated from their definition."""

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.accounting.naive_exact import moves
from tests.accounting.offset_games import misses_delta, points_delta
from tests.accounting.paid_games import (
    between_nodes,
    exponential_mechanism,
    gaussian_losses,
    gumbel_levels,
    levels,
    losses_of,
    on_lattice,
    scaled,
    shortfall,
    two_rates,
    two_ratios,
)
from tests.refusals import every
from tests.sizes import size, spread

from targetcharge.accounting import offset_delta
from targetcharge.accounting.curves import BoundedRange, Concentrated, Gaussian, Pure
from targetcharge.accounting.exchange import (
    SPREAD,
    exact_rates,
    hits_of,
    largest_pure,
    largest_range,
    largest_shift,
)
from targetcharge.accounting.targets import NOT_PRIOR, Kind
from targetcharge.numerics.search import largest_real

EPSILONS = (0.001, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0)
ROUNDING = 1e-12


def largest(curve, epsilon, hits):
    """Return the largest ε, or range, that so many hits pay for."""

    def paid(length):
        cost = hits_of(curve(length), epsilon, hits)
        return cost is not None and cost <= hits

    return largest_real(paid, epsilon, min(10.0, 4.0 * hits * epsilon), 1e-9)


# One hit, by mpmath


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def one_hit(epsilon, node):
    """Return V_1 at a node of the lattice: what is sure, and x^|m|·T of what is not."""
    epsilon = mpmath.mpf(epsilon)
    x = 1 / (1 + mpmath.exp(-epsilon))
    unsure = x ** abs(node) * mpmath.tanh(epsilon / 2) / (1 - x * (1 - x))
    return payoff(epsilon, node) + unsure * mpmath.exp(-epsilon * max(0, node))


def payoff(epsilon, node):
    return -mpmath.expm1(-mpmath.mpf(epsilon) * max(0, node))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_hit_is_worth_the_best_of_its_moves(epsilon):
    x = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
    for node in range(-12, 13):
        higher, lower = node + 1, node - 1
        options = (
            payoff(epsilon, node),
            x * one_hit(epsilon, higher) + (1 - x) * payoff(epsilon, lower),
            (1 - x) * one_hit(epsilon, lower) + x * payoff(epsilon, higher),
            x * payoff(epsilon, higher) + (1 - x) * payoff(epsilon, lower),
        )
        assert abs(one_hit(epsilon, node) - max(options)) < 1e-45


@pytest.mark.parametrize("epsilon", [*EPSILONS, 1e-9, 10.0])
def test_one_hit_pays_for_randomised_response_up_to_the_kink_and_no_further(epsilon):
    exact = epsilon + mpmath.log((2 * mpmath.exp(epsilon) + 1) / (mpmath.exp(epsilon) + 2))
    assert abs(mpmath.tanh(exact / 2) - one_hit(epsilon, 0)) < mpmath.mpf(10) ** -48
    assert 1 - 2e-14 < largest_pure(epsilon) / exact < 1
    assert largest_range(epsilon) == 2 * largest_pure(epsilon)
    for node in range(40):
        stick = max(0, 1 - mpmath.exp(node * epsilon - exact)) / (1 + mpmath.exp(-exact))
        assert stick <= one_hit(epsilon, -node) * (1 + mpmath.mpf(10) ** -45)
    assert mpmath.tanh(exact * 1.0001 / 2) > one_hit(epsilon, 0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_hit_pays_for_twice_that_range(epsilon):
    length = 2 * (epsilon + mpmath.log((2 * mpmath.exp(epsilon) + 1) / (mpmath.exp(epsilon) + 2)))
    for node in range(8):
        line = (mpmath.exp(length / 2) - mpmath.exp(node * epsilon / 2)) ** 2 / mpmath.expm1(length)
        covered = line <= one_hit(epsilon, -node) * (1 + mpmath.mpf(10) ** -45)
        assert covered or node * epsilon > length
        assert mpmath.exp(node * mpmath.mpf(epsilon) / 2) >= mpmath.exp(length / 2) or node < 3


def test_golden_values():
    for epsilon, rate in ((0.1, 1.33309), (1.0, 1.31055), (2.0, 1.25954)):
        assert largest_pure(epsilon) / epsilon == pytest.approx(rate, abs=5e-6)
    for epsilon, rate in ((0.02, 1.3540), (0.1, 1.3532), (0.5, 1.3356), (1.0, 1.2862), (2.0, 1.1459)):
        assert largest_shift(epsilon) / epsilon == pytest.approx(rate, abs=5e-5)
    for hits, rate in ((1, 1.333), (2, 1.889), (3, 2.288), (4, 2.615), (8, 3.598)):
        assert largest(Pure, 0.1, hits) / 0.1 == pytest.approx(rate, abs=6e-4)
        assert largest(BoundedRange, 0.1, hits) / 0.1 == pytest.approx(2 * rate, abs=1.2e-3)


# How many hits, against sums over outcomes and levels from the definition


def hockey_stick(pair, factor):
    return sum(max(0.0, first - factor * second) for first, second in pair)


@functools.cache
def values(epsilon, hits, cells, shifts=(0.0,), finer=1, disagreement=False, q=None):
    """Return the levels of a session's private tests, and of what else it may ask."""
    played = moves(epsilon, disagreement=disagreement)
    played += moves(epsilon, q=q) if q is not None else []
    return levels(scaled(played, finer), epsilon / finer, hits, cells, shifts)


def fewest_hits(pairs, epsilon, most):
    """Return the fewest hits whose level is above the hockey sticks of all pairs at all nodes."""
    nodes, cells = math.ceil(10 / epsilon) if epsilon > 0.5 else 20, most + 30
    sticks = {
        node: max(hockey_stick(pair, math.exp(node * epsilon)) for pair in pairs) for node in range(nodes + 1)
    }
    for hits, level in enumerate(values(epsilon, most, cells)[1:, 0], 1):
        if all(stick <= level[cells - node] for node, stick in sticks.items()):
            return hits
    return None


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0])
def test_computations_cost_the_fewest_hits_whose_level_is_above_them(epsilon):
    seen = set()
    for part in np.linspace(0.2, 4.5, size(30, 200)):
        length = min(10.0, float(part) * epsilon)
        uppers = np.linspace(0, length, 41)
        responses, ranged = [two_ratios(2 * length, length)], [two_ratios(length, upper) for upper in uppers]
        assert hits_of(Pure(length), epsilon, 12) == fewest_hits(responses, epsilon, 12)
        assert hits_of(BoundedRange(length), epsilon, 12) == fewest_hits(ranged, epsilon, 12)
        seen.add(hits_of(Pure(length), epsilon, 12))
    assert {1, 2, 3, 4} <= seen


def test_where_private_tests_are_not_asked_a_hit_pays_for_its_epsilon_and_nothing_more():
    for kind in (Kind(q=1.0), Kind(q=0.3)):
        assert hits_of(Pure(0.1), 0.1, 9, kind) == hits_of(BoundedRange(0.1), 0.1, 9, kind) == 1
        assert hits_of(Pure(0.1001), 0.1, 9, kind) is hits_of(BoundedRange(0.1001), 0.1, 9, kind) is None
        assert hits_of(Gaussian(1, Fraction(1000)), 0.1, 9, kind) is exact_rates(0.1, kind).gaussian(1) is None


def test_gaussian_noise_has_a_price_beside_private_tests_alone_and_zcdp_has_none():
    quiet = Gaussian(1, Fraction(100))
    assert hits_of(quiet, 0.1, 9) == 1
    for kind in (Kind(disagreement=True), Kind(not_prior=True, q=0.3)):
        assert hits_of(quiet, 0.1, 9, kind) is exact_rates(0.1, kind).gaussian(1) is None
    assert hits_of(Concentrated(1e-6), 0.1, 9) is hits_of(Gaussian(1, SPREAD), 1.0, 9) is None


# Every level and every node


@pytest.mark.parametrize(("epsilon", "most"), [(0.02, 100), (0.1, 100), (0.5, 60), (1.0, 40), (2.0, 20)])
def test_randomised_response_is_covered_at_every_level(epsilon, most):
    def check(hits):
        limit = largest(Pure, epsilon, hits)
        for length, covered in ((limit, True), (1.02 * limit, False)):
            law = losses_of(two_ratios(2 * length, length))
            shifts = (0.0, *(float(loss) for loss in law[0]))
            reached = values(epsilon, most, most + 24, shifts)
            least = shortfall(reached, reached, hits, on_lattice(law, epsilon, shifts), nodes=8)
            assert (least > -ROUNDING) == covered, (length, least)
            assert covered or least < -1e-4

    every(spread([1, 2, 3, 4, 8], 3) if 8 * epsilon < 5 else [1, 2, 3], check)


KINDS = ({}, {"disagreement": True}, {"q": 0.3}, {"q": 0.8}, {"q": 0.15, "disagreement": True})


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_all_pairs_of_a_range_are_covered_at_every_level_and_between_nodes_too(kind):
    """Losses and log-ratios are on a lattice eight times as fine, and on one shifted by the range."""
    finer, least = 8, {}

    def check(epsilon, most, hits):
        for times in (1.0, 1.05):
            length, width = times * largest(BoundedRange, epsilon, hits), epsilon / finer
            shifts = (0.0, -length % width)
            cells = finer * (most + math.ceil(length / epsilon) + 6)
            reached = values(epsilon, most, cells, shifts, finer, **kind)
            for upper in np.arange(0, length, width).tolist():
                law = losses_of(two_ratios(length, upper))
                short = shortfall(reached, reached, hits, on_lattice(law, width, shifts), nodes=3 * finer)
                least[times] = min(short, least.get(times, 1.0))
            assert least[1.0] > -ROUNDING

    every(spread(itertools.product([0.1, 0.5, 1.0], [size(8, 30)], [1, 2, 3]), 4), check)
    if not kind or kind.get("q") == 0.8:  # elsewhere V is larger, and so much is covered
        assert least[1.05] < -0.01


# Gaussian noise


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_levels_of_private_tests_are_straight_between_nodes(epsilon):
    shifts = tuple(epsilon * np.arange(9) / 8)
    inner = values(epsilon, 20, 60, shifts)[:, :, 25:-25]
    share = np.expm1(epsilon - np.array(shifts)) / math.expm1(epsilon)
    straight = share[:, None] * inner[:, :1] + (1 - share)[:, None] * inner[:, -1:]
    np.testing.assert_allclose(inner, straight, rtol=1e-12, atol=1e-15)
    curved = values(epsilon, 20, 60, shifts, disagreement=True)[:, :, 25:-25]
    assert (curved < straight * (1 - 1e-6)).any() or (curved[:, 4] > straight[:, 4] * 1.001).any()


def noise_short(epsilon, most, hits, shifts, variance):
    """Return the least of V_t - E V_{t-hits} for discrete Gaussian noise, over all levels and near nodes."""
    cells = most + math.ceil(14 * math.sqrt(hits)) + math.ceil(4 / epsilon)
    reached = values(epsilon, most, cells)
    return shortfall(reached, reached, hits, between_nodes(gaussian_losses(shifts, variance), epsilon), nodes=4)


GAUSSIAN = list(
    itertools.product(
        [(0.05, 100), (0.1, 100), (0.5, 50), (1.0, 40), (2.0, 20), (3.0, 10)],
        [(1,), (1, 1, 1), (1, 2), (1,) * 8, (3,)],
        [1, 2, 4],
    )
)


def test_discrete_gaussian_noise_as_it_is_drawn_is_covered_at_every_level():
    def check(session, shifts, hits):
        epsilon, squared = session[0], sum(shift**2 for shift in shifts)
        variance = Fraction(squared / (hits * largest_shift(epsilon) ** 2) * (1 + 1e-12)) + SPREAD
        assert hits_of(Gaussian(squared, variance), epsilon, 9) == hits
        assert noise_short(*session, hits, shifts, float(variance)) > -ROUNDING

    every(spread(GAUSSIAN, 30), check)


def test_the_noise_that_one_hit_pays_for_is_drawn_at_a_rate_that_one_hit_pays_for():
    for epsilon, squared in itertools.product([0.001, 0.1, 1.0, 3.0], [1, 2, 9, 10**6]):
        rate = exact_rates(epsilon).gaussian(squared)
        variance = Fraction(rate.denominator, rate.numerator) ** 2
        assert hits_of(Gaussian(squared, variance), epsilon, 9) == 1
        assert hits_of(Gaussian(squared, (variance - SPREAD) * Fraction(0.999) + SPREAD), epsilon, 9) == 2


@pytest.mark.parametrize(("epsilon", "most"), [(0.05, 60), (0.1, 60), (0.5, 40)])
def test_power_noise_of_a_few_percent_less_is_not_covered(epsilon, most):
    """So wide noise that it is all but continuous."""
    limit = largest_shift(epsilon)
    for times, covered in ((1.0, True), (1.02, False), (1.05, False)):
        assert (noise_short(epsilon, most, 1, (40,), (40 / (times * limit)) ** 2) > -ROUNDING) == covered


def test_power_narrow_noise_needs_the_spread():
    for epsilon, hits in ((2.0, 1), (2.0, 2), (3.0, 1)):
        variance = 1 / (hits * largest_shift(epsilon) ** 2)
        assert noise_short(epsilon, 10, hits, (1,), variance) < -0.01
        assert noise_short(epsilon, 10, hits, (1,), variance + 2.5) > -ROUNDING


def test_discrete_gaussian_noise_is_continuous_noise_rounded_at_random():
    """The rounding's normalisation is constant but for 8e-22, and the law of the result is the discrete one.

    Integrals are sums over a grid of eighths: of functions as smooth as these they are off by less than 1e-40.
    """
    variance, rounding, finer = mpmath.mpf(3) / 2, mpmath.mpf(5) / 2, 8
    assert rounding == mpmath.mpf(SPREAD.numerator) / SPREAD.denominator

    def bell(distance, squared):
        return mpmath.exp(-(mpmath.mpf(distance) ** 2) / (2 * squared))

    totals = [mpmath.fsum(bell(k - mpmath.mpf(i) / finer, rounding) for k in range(-40, 41)) for i in range(finer)]
    usual = mpmath.sqrt(2 * mpmath.pi * rounding)
    assert 7e-22 < max(abs(total / usual - 1) for total in totals) < 8e-22
    whole = mpmath.fsum(bell(k, variance + rounding) for k in range(-60, 61))
    for k in (0, 1, 4, 9):
        rounded = mpmath.fsum(
            bell(mpmath.mpf(i) / finer, variance) * bell(k - mpmath.mpf(i) / finer, rounding) / totals[i % finer]
            for i in range(-20 * finer, 20 * finer + 1)
        ) / (finer * mpmath.sqrt(2 * mpmath.pi * variance))
        assert abs(rounded * whole / bell(k, variance + rounding) - 1) < 8e-22


# At-least questions


CELLS = 50
"""Into how many the query ε of an at-least game is divided."""


def ranges_short(reached, width, cells, nodes=120):
    """Return the least shortfall of all pairs of a range of so many cells, at the price of one hit."""
    return min(
        shortfall(
            reached, reached, 1, on_lattice(losses_of(two_ratios(cells * width, upper * width)), width), nodes
        )
        for upper in range(0, cells + 1, 2)
    )


@pytest.mark.parametrize("share", [0.5, 0.6, 0.72, 0.9, 1.0, "removed"])
def test_under_gumbel_noise_one_hit_pays_for_the_range_of_its_query_epsilon_whatever_lambda_is(share):
    """λ = 1 is also one direction of an individual's game; the other looks at points that come more often."""

    def check(query):
        above = 0 if share == "removed" else round(share * CELLS)
        below, width = (CELLS if share == "removed" else CELLS - above), query / CELLS
        reached = gumbel_levels(above, below, width, 4, 10 * CELLS)
        assert ranges_short(reached, width, CELLS) > -ROUNDING
        assert ranges_short(reached, width, CELLS * 6 // 5) < -0.01
        assert ranges_short(reached, width, CELLS + 2) < -1e-9

    every(spread([0.2, 1.0, 2.0], 2), check)


def test_the_levels_of_gumbel_noise_are_those_of_poisson_points():
    for rising in (False, True):
        reached = gumbel_levels(*((0, CELLS) if rising else (CELLS, 0)), 1 / CELLS, 2, 12 * CELLS)
        for place in (0, 25, 50):
            exact = float(points_delta(1.0, 2, place / CELLS, rising=rising))
            assert exact <= reached[2, 0, 12 * CELLS - place] <= 1.05 * exact


@pytest.mark.parametrize("share", range(10, 21))
def test_under_laplace_noise_one_hit_pays_for_that_range_too(share):
    def check(query):
        width = query / 20
        reached = levels(two_rates(share, 20 - share, width), width, 6, 240)
        assert ranges_short(reached, width, 20, 40) > -ROUNDING
        if share >= 19:
            assert ranges_short(reached, width, 24, 40) < -0.01

    every([0.1, 1.0, 4.0], check)


def test_under_laplace_noise_a_pick_of_twice_the_range_is_no_hit():
    pick = exponential_mechanism(0.2, (0,) * 5, (1, 0, 0, 0, 0))[::-1]
    assert max(hockey_stick([p[::-1] for p in pick], math.exp(0.1)), hockey_stick(pick, math.exp(0.1))) == (
        pytest.approx(0.0129, abs=5e-5)
    )
    assert misses_delta(0.1, 1, 0.1) == 0


# With an offset


@pytest.mark.parametrize("times", [1.0, 1.05])
def test_with_an_offset_that_leaves_half_computations_cost_what_they_cost_without(times):
    """Adversaries who may also ask for computations at any time, after the first move: on one lattice for all."""
    finer, epsilon, hits = 20, 0.5, 3
    width, cells = epsilon / finer, finer * 40
    length = math.floor(times * largest_range(epsilon) / width)
    pairs = [two_ratios(length * width, upper * width) for upper in range(length // 2 - 8, length // 2 + 9)]
    paid = [
        ({}, {round(loss / width): chance for loss, chance in zip(*losses_of(pair), strict=True)})
        for pair in pairs
    ]
    level = levels(scaled(moves(epsilon), finer) + paid, width, hits, cells)[-1, 0]
    exceeded = []
    for offset, whole in [(4, 10), (4, 35), (30, 30), (30, 60)]:
        first, x = offset * width, 1 / (1 + math.exp(-offset * width))
        reached = x * level[cells - whole + offset] + (1 - x) * level[cells - whole - offset]
        claim = offset_delta(2 * first, 2 * epsilon, hits, whole * width)
        assert claim <= reached * (1 + 1e-6)
        exceeded.append(reached > claim * (1 + 1e-9))
    assert any(exceeded) == (times > 1)


def test_kinds_are_those_that_meters_use():
    assert exact_rates(0.1) == exact_rates(0.1, NOT_PRIOR)
    assert exact_rates(0.1, Kind(disagreement=True)).pure == largest_pure(0.1)
    assert exact_rates(0.1, Kind(not_prior=True, q=0.2)).bounded_range == largest_range(0.1)
