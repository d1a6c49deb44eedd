"""The Rényi prices against many neighbouring pairs per target type, and against a search for the worst pair.

The search is differential evolution over all masses and ratios, without the closed forms or their proofs.
"""

import itertools
import math

import numpy as np
import pytest
from tests.accounting.neighbours import (
    BETWEEN_ONLY,
    OUTCOMES,
    PAIRS,
    batches,
    between_laws,
    boundary_wrapped,
    conditional_release,
    evolved,
    extremal_pairs,
    hit_or_nothing,
    largest_q,
    mark_only,
    needed_price,
    off_diagonal,
    order_at,
    pairs_at,
    random_pairs,
    run_twice,
)
from tests.sizes import spread

from targetcharge.accounting import best_q, prices
from targetcharge.accounting.targets import (
    Between,
    Boundary,
    Disagreement,
    Everything,
    NotPrior,
    QTarget,
)
from targetcharge.randomness import Rate

NOT_PRIOR = NotPrior("no")
EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0)
BOUNDARY_EPSILONS = (0.01, 0.05, 0.1, 0.3, 0.61, 0.8, 1.0)
FRACTIONS = (0.005, 0.1, 0.4, 0.8, 0.999)
"""Orders, as fractions of the way from 1 to the order where the price becomes infinite."""

ROUNDING = 1 + 1e-9
WIDTHS = range(1, 31)


def publish_all_but_first(law0, law1):
    return law0, law1, np.arange(law0.shape[1]) > 0


def publish_all_but_last(law0, law1):
    return law0, law1, np.arange(law0.shape[1]) < law0.shape[1] - 1


def publish_hit_or_nothing(law0, law1):
    return hit_or_nothing(law0, 0), hit_or_nothing(law1, 0), np.array([False, True])


def publish_release_of_last(law0, law1):
    target = np.arange(law0.shape[1]) == law0.shape[1] - 1
    return conditional_release(law0, target), conditional_release(law1, target), np.array([False, True])


def publish_two_runs(law0, law1):
    return run_twice(law0), run_twice(law1), off_diagonal(law0.shape[1])


def publish_wrapped(law0, law1):
    return boundary_wrapped(law0), boundary_wrapped(law1), mark_only(law0.shape[1])


def publish_everything(law0, law1):
    return law0, law1, np.ones(law0.shape[1], dtype=bool)


# Each price against PAIRS neighbouring pairs, in both directions.

COVERED = {
    "not-prior-first": (NOT_PRIOR, publish_all_but_first, EPSILONS, random_pairs, 3),
    "not-prior-last": (NOT_PRIOR, publish_all_but_last, EPSILONS, random_pairs, 3),
    "not-prior-hit-or-nothing": (NOT_PRIOR, publish_hit_or_nothing, EPSILONS, random_pairs, 3),
    "conditional-release": (NOT_PRIOR, publish_release_of_last, EPSILONS, random_pairs, 1),
    "disagreement": (Disagreement(), publish_two_runs, EPSILONS, random_pairs, 1),
    "everything": (Everything(), publish_everything, EPSILONS, random_pairs, 1),
    "boundary-random": (Boundary(), publish_wrapped, BOUNDARY_EPSILONS, random_pairs, 1),
    "boundary-extremal": (Boundary(), publish_wrapped, BOUNDARY_EPSILONS, extremal_pairs, 1),
}
"""Target, what it publishes, which ε, which pairs, and how many rows share the target's PAIRS."""

COVERED_CASES = [
    pytest.param(target, publish, epsilon, generate, rows * len(epsilons), id=f"{name}-brute-force-{epsilon}")
    for name, (target, publish, epsilons, generate, rows) in COVERED.items()
    for epsilon in epsilons
]


@pytest.mark.parametrize(("target", "publish", "epsilon", "generate", "settings"), COVERED_CASES)
def test_no_pair_needs_more_than_the_price(target, publish, epsilon, generate, settings):
    rng = np.random.default_rng(round(1000 * epsilon))
    for fraction, outcomes in itertools.product(FRACTIONS, OUTCOMES):
        order = order_at(target, epsilon, fraction)
        price = target.price(order, epsilon)
        for count in batches(PAIRS, settings * len(FRACTIONS) * len(OUTCOMES)):
            law0, law1, hits = publish(*generate(rng, count, outcomes, epsilon))
            worst = needed_price(law0, law1, hits, order).max()
            assert worst <= price * ROUNDING, f"order {order}, {outcomes} outcomes: {worst} above {price}"


@pytest.mark.parametrize("epsilon", BOUNDARY_EPSILONS)
def test_the_boundary_pairs_have_dominant_switching_and_no_dominant_outcomes(epsilon):
    pairs = [random_pairs, extremal_pairs]
    regimes = np.zeros(3)
    for generate, outcomes in itertools.product(pairs, OUTCOMES):
        law0, law1 = generate(np.random.default_rng(1), 2000, outcomes, epsilon)
        same = law0.argmax(axis=1) == law1.argmax(axis=1)
        some = np.maximum(law0.max(axis=1), law1.max(axis=1)) > 0.5
        regimes += [(same & some).mean(), (~same & some).mean(), (~some).mean()]
    assert regimes.min() > 0.05, regimes


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_pair_needs_more_than_the_price_at_its_own_q(epsilon):
    rng = np.random.default_rng(round(1000 * epsilon))
    settings = len(EPSILONS) * len(FRACTIONS) * len(OUTCOMES)
    for fraction, outcomes in itertools.product(FRACTIONS, OUTCOMES):
        order = order_at(NOT_PRIOR, epsilon, fraction)
        priced = 0
        while priced < PAIRS / settings:
            law0, law1 = random_pairs(rng, 10_000, outcomes, epsilon)
            hits = rng.random(law0.shape) < rng.uniform(0.2, 1, (len(law0), 1))
            hits[np.arange(len(law0)), rng.integers(outcomes, size=len(law0))] = True
            price = price_by_q(largest_q(law0, law1, hits, epsilon), order, epsilon)
            needed = needed_price(law0, law1, hits, order)
            assert (needed <= price * ROUNDING).all(), f"order {order}: {needed.max()}"
            priced += np.isfinite(price).sum()


def price_by_q(qs, order, epsilon):
    return np.array([prices.q_target(order, epsilon, q) for q in qs.tolist()])


@pytest.mark.parametrize("outcomes", OUTCOMES)
def test_the_vectorised_q_is_best_q(outcomes):
    rng = np.random.default_rng(outcomes)
    law0, law1 = random_pairs(rng, 300, outcomes, 0.7)
    hits = rng.random(law0.shape) < 0.5
    expected = [best_q(p0, p1, target, 0.7 + 1e-12) for p0, p1, target in zip(law0, law1, hits, strict=True)]
    assert largest_q(law0, law1, hits, 0.7) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def drawn(epsilon):
    """Return the rate of the noise that is drawn for ε, which is rounded down: a band is priced for this noise."""
    rate = Rate.at_most(epsilon)
    return rate.numerator / rate.denominator


BETWEEN_EPSILONS = (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)


@pytest.mark.parametrize("epsilon", BETWEEN_EPSILONS)
def test_no_count_needs_more_than_the_between_price(epsilon):
    rng = np.random.default_rng(round(1000 * epsilon))
    for width in WIDTHS:
        target = Between(0, width - 1)
        laws = between_laws(np.arange(-40, width + 41), width, drawn(epsilon))
        orders = math.ceil(PAIRS / (len(BETWEEN_EPSILONS) * len(WIDTHS) * (len(laws) - 1)))
        for fraction in np.append(rng.random(orders), [0.005, 0.999]):
            order = order_at(target, epsilon, float(fraction))
            worst = needed_price(laws[:-1], laws[1:], BETWEEN_ONLY, order).max()
            assert worst <= target.price(order, epsilon) * ROUNDING, f"order {order}, width {width}"


def test_the_needed_price_is_its_definition():
    law0, law1 = random_pairs(np.random.default_rng(1), 1000, 4, 0.7)
    hits = np.array([True, False, True, True])
    sums = [
        (z0**1.3 * z1**-0.3)[:, part].sum(axis=1)
        for z0, z1 in ((law0, law1), (law1, law0))
        for part in (hits, ~hits)
    ]
    naive = np.maximum(-np.log((1 - sums[1]) / sums[0]), -np.log((1 - sums[3]) / sums[2]))
    assert needed_price(law0, law1, hits, 1.3) == pytest.approx(naive, rel=1e-9, abs=1e-14)


def test_a_pair_whose_misses_alone_outweigh_one_needs_an_infinite_price():
    law0, law1 = np.array([[0.9, 0.1]]), np.array([[0.1, 0.9]])
    assert needed_price(law0, law1, np.array([False, True]), 2.0) == [np.inf]


# Each price against the worst pair that a search finds: at least that, and at most 1% more.


def searched(publish, outcomes, order, epsilon):
    """Return the largest price that a pair with so many outcomes was found to need."""

    def needed(points):
        return needed_price(*publish(*pairs_at(points, epsilon)), order)

    return evolved(needed, 2 * outcomes)


def assert_worst(target, publish, sizes, order, epsilon):
    price = target.price(order, epsilon)
    worst = max(searched(publish, outcomes, order, epsilon) for outcomes in sizes)
    assert 1 / ROUNDING <= price / worst <= 1.01, f"order {order}: worst pair {worst}, price {price}"


SEARCHED = {
    "not-prior": (NOT_PRIOR, publish_all_but_first, (2, 3)),
    "not-prior-hit-or-nothing": (NOT_PRIOR, publish_hit_or_nothing, (2, 3)),
    "disagreement": (Disagreement(), publish_two_runs, (2, 3)),
    "everything": (Everything(), publish_everything, (2, 3)),
}


@pytest.mark.parametrize(
    ("target", "publish", "sizes"),
    [pytest.param(*case, id=f"{name}-differential-evolution") for name, case in SEARCHED.items()],
)
@pytest.mark.parametrize(("epsilon", "fraction"), spread(itertools.product(EPSILONS, [0.01, 0.5, 0.99]), 8))
def test_a_search_finds_a_pair_within_one_percent_of_the_price(target, publish, sizes, epsilon, fraction):
    assert_worst(target, publish, sizes, order_at(target, epsilon, fraction), epsilon)


def publish_at_rate(q, epsilon):
    """Return a publication that moves a part of all hits (or misses) across, so that q* is just q."""

    def publish(law0, law1):
        hits = np.arange(law0.shape[1]) % 2 == 0
        hit0, hit1 = law0[:, hits].sum(axis=1), law1[:, hits].sum(axis=1)
        growth = math.exp(epsilon)
        unshared = np.abs(law0 - law1) / (growth - 1) * np.where(law0 > law1, growth, 1)
        inside, outside = unshared[:, hits].sum(axis=1), unshared[:, ~hits].sum(axis=1)
        # q* = min_b hit_b / (hit0 + outside) after the move: linear in the moved part for either b.
        kept = np.max([q * (inside + outside) / (hit - q * (hit0 - inside)) for hit in (hit0, hit1)], axis=0)
        raised = np.max(
            [(q * (hit0 + outside) - hit) / (1 - hit - q * (1 - hit0) + q * outside) for hit in (hit0, hit1)],
            axis=0,
        )
        moved = np.where(hits, 1 - kept[:, None], raised[:, None])
        moved = np.clip(np.where(hits == (raised < 0)[:, None], moved, 0), 1e-15, 1 - 1e-15)
        return *(np.hstack([law * (1 - moved), law * moved]) for law in (law0, law1)), np.append(hits, ~hits)

    return publish


@pytest.mark.parametrize(("epsilon", "q"), spread(itertools.product(EPSILONS, [0.05, 0.3, 0.45, 0.6, 0.9]), 9))
def test_a_search_among_pairs_of_one_q_comes_within_one_percent_of_its_price(epsilon, q):
    publish = publish_at_rate(q, epsilon)
    published = publish(*random_pairs(np.random.default_rng(1), 1000, 3, epsilon))
    assert largest_q(*published, epsilon) == pytest.approx(q, rel=1e-7)
    for fraction in (0.05, 0.5, 0.9):
        order = order_at(QTarget(q, ()), epsilon, fraction)
        assert_worst(QTarget(q, ()), publish, (2, 3), order, epsilon)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("width", [1, 2, 5, 12, 30])
def test_the_between_price_is_attained_where_the_count_enters_the_band(epsilon, width):
    target = Between(0, width - 1)
    counts = np.arange(-60, width + 60)
    laws = between_laws(counts, width, drawn(epsilon))
    for fraction in FRACTIONS:
        order = order_at(target, epsilon, fraction)
        needed = needed_price(laws[:-1], laws[1:], BETWEEN_ONLY, order)
        # The price takes ε where the noise has a rate up to 2^-32 below it, and near its pole grows fast.
        assert needed.max() == pytest.approx(target.price(order, epsilon), rel=1e-6)
        assert needed[counts[:-1] == -1] == pytest.approx(needed.max(), rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "fraction"),
    spread(itertools.product([*BOUNDARY_EPSILONS, 0.55, 0.65], [None, 0.1, 0.5, 0.9, 0.999, 0.9999]), 20),
)
def test_a_search_finds_no_pair_above_the_boundary_price_and_one_within_one_percent(epsilon, fraction):
    order = 1.01 if fraction is None else order_at(Boundary(), epsilon, fraction)
    assert_worst(Boundary(), publish_wrapped, OUTCOMES, order, epsilon)


# The reduction behind the boundary price: the outcomes that are nowhere the most likely have ratio e^{±ε}.


def reduced(law0, law1, epsilon):
    """Return the pairs with the same most likely outcomes and the same other mass, in pieces of ratio e^{±ε}."""
    rows = np.arange(len(law0))[:, None]
    tops = np.stack([law0.argmax(axis=1), law1.argmax(axis=1)], axis=1)
    others = np.ones(law0.shape, dtype=bool)
    others[rows, tops] = False
    rest0, rest1 = (np.where(others, law, 0).sum(axis=1) for law in (law0, law1))
    top0, top1 = law0[rows, tops], law1[rows, tops]
    once = tops[:, 0] == tops[:, 1]
    top0[once, 1] = top1[once, 1] = NEGLIGIBLE
    rising = (rest0 - rest1 * math.exp(-epsilon)) / (2 * math.sinh(epsilon))
    pieces = np.maximum(np.stack([rising, rest1 - rising], axis=1), NEGLIGIBLE).repeat(PIECES, axis=1) / PIECES
    ratios = np.exp([epsilon, -epsilon]).repeat(PIECES)
    return np.hstack([top0, pieces * ratios]), np.hstack([top1, pieces])


NEGLIGIBLE = 1e-300
PIECES = 12
"""Enough for no piece to become the most likely outcome, which has at least 1/6."""


@pytest.mark.parametrize("epsilon", BOUNDARY_EPSILONS)
@pytest.mark.parametrize("generate", [random_pairs, extremal_pairs])
def test_pieces_of_extreme_ratio_are_the_worst_split_of_the_unlikely_outcomes(generate, epsilon):
    rng = np.random.default_rng(1)
    for fraction, outcomes in itertools.product(FRACTIONS, OUTCOMES):
        order = order_at(Boundary(), epsilon, fraction)
        laws = generate(rng, 2000, outcomes, epsilon)
        worse = reduced(*laws, epsilon)
        assert np.allclose(np.max(worse, axis=2), np.max(laws, axis=2), rtol=1e-12, atol=0)
        needed, needed_at_worst = (needed_price(*publish_wrapped(*pair), order) for pair in (laws, worse))
        assert (needed_at_worst >= needed / ROUNDING).all()


@pytest.mark.parametrize("epsilon", BOUNDARY_EPSILONS)
def test_without_a_dominant_outcome_on_either_side_the_mark_costs_less(epsilon):
    rng = np.random.default_rng(1)
    for fraction, outcomes in itertools.product(FRACTIONS, range(3, 7)):
        order = order_at(Boundary(), epsilon, fraction)
        law0, law1 = random_pairs(rng, 5000, outcomes, epsilon)
        flat = np.maximum(law0.max(axis=1), law1.max(axis=1)) <= 0.5
        response = np.array([[1.0, math.exp(epsilon)]]) / (1 + math.exp(epsilon))
        moment = (response**order * response[:, ::-1] ** (1 - order)).sum()
        needed = needed_price(*publish_wrapped(law0[flat], law1[flat]), order)
        assert needed.max() <= -math.log(3 - 2 * moment) * ROUNDING <= Boundary().price(order, epsilon)
