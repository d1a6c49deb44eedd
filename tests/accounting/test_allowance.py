"""What units pay by what they contribute: the price inequality on the laws that are published, with 40 digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.sizes import spread

import targetcharge as tc
from targetcharge.accounting import renyi_epsilon
from targetcharge.accounting.meter import Allowance, Meter
from targetcharge.accounting.meter.tariff import exact_tariff, renyi_tariff
from targetcharge.mechanisms.noise import rate_for

DIGITS = 40
LEVELS = 4096
MOST = 2**40


def renyi(epsilon=0.1, hits=5, order=None, delta=1e-6):
    """Return the allowance of a budget of this many tests of ε, at an order of its own or another."""
    whole = renyi_epsilon(tc.NotPrior(None), epsilon, hits, delta) * (1 + 1e-6)
    return Allowance.of(renyi_tariff(tc.Budget(whole, delta), epsilon, tc.NotPrior(None), order))


def kappa(prices, steps):
    """Return the price of a contribution as a number; infinite if nobody can pay it."""
    units = int(prices.of(np.array([steps]))[0])
    if units > prices.allowance.capacity:
        return mpmath.inf
    grains = units / prices.allowance.scale
    return mpmath.mpf(grains.numerator) / grains.denominator / mpmath.mpf(2) ** 128


# Laws: of a number n with the noise that is drawn for ε. All of it in mpmath, from the rate as a fraction.


class Noise:
    def __init__(self, epsilon, sensitivity):
        rate = rate_for(epsilon, sensitivity)
        self.p = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)

    def mass(self, k):
        return (1 - self.p) / (1 + self.p) * self.p ** abs(k)

    def at_least(self, k):
        return self.p**k / (1 + self.p) if k > 0 else 1 - self.p ** (1 - k) / (1 + self.p)


def moment(order, first, second):
    return first**order * second ** (1 - order) if first else mpmath.mpf(0)


def tail(noise, order, n, m, start):
    """Return Σ_{v ≥ start} of the moment of the values themselves, for n and m; beyond both it is geometric."""
    far = max(n, m, start)
    told = [moment(order, noise.mass(v - n), noise.mass(v - m)) for v in range(start, far)]
    return mpmath.fsum(told) + moment(order, noise.mass(far - n), noise.mass(far - m)) / (1 - noise.p)


def above(noise, order, n, m, threshold):
    """Return what misses and what hits add to the left side: all below a threshold is one outcome, free."""
    free = moment(order, noise.at_least(1 - (threshold - n)), noise.at_least(1 - (threshold - m)))
    return free, tail(noise, order, n, m, threshold)


def everything(noise, order, n, m, _):
    return mpmath.mpf(0), tail(noise, order, n, m, min(n, m)) + tail(noise, order, -n, -m, 1 - min(n, m))


def changed(noise, order, n, m, threshold):
    """All of a band of five is one outcome, free; any other is told."""
    low, high = threshold - 2, threshold + 2
    inside = [noise.at_least(low - n) - noise.at_least(high + 1 - n)]
    inside += [noise.at_least(low - m) - noise.at_least(high + 1 - m)]
    return moment(order, *inside), tail(noise, order, n, m, high + 1) + tail(noise, order, -n, -m, 1 - low)


def between(width):
    def law(noise, order, n, m, low):
        high = low + width - 1
        free = moment(order, noise.at_least(1 - (low - n)), noise.at_least(1 - (low - m)))
        free += moment(order, noise.at_least(high + 1 - n), noise.at_least(high + 1 - m))
        band = [noise.at_least(low - it) - noise.at_least(high + 1 - it) for it in (n, m)]
        return free, moment(order, *band)

    return law


def near(noise, order, n, m, threshold):
    """The boundary wrapper of a side: a mark near the threshold, else a fresh side."""
    laws, marks = [], []
    for it in (n, m):
        sides = noise.at_least(1 - (threshold - it)), noise.at_least(threshold - it)
        rest = min(sides)
        marks.append(min(mpmath.mpf(1) / 3, rest / (1 + rest)))
        laws.append([(1 - marks[-1]) * side for side in sides])
    return mpmath.fsum(moment(order, *pair) for pair in zip(*laws, strict=True)), moment(order, *marks)


TARGETS = {
    "above": (tc.NotPrior(None), above),
    "count": (tc.NotPrior(None), everything),
    "changed": (tc.NotPrior(None), changed),
    "near": (tc.Boundary(), near),
    "band of 1": (1, between(1)),
    "band of 7": (7, between(7)),
    "band of 300": (300, between(300)),
}


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "hits"),
    spread([(most, *case) for most in (4, 1, 30) for case in ((0.1, 5), (0.05, 1), (0.5, 40))], 5),
)
@pytest.mark.parametrize(("target", "law"), TARGETS.values(), ids=TARGETS)
def test_the_price_of_a_contribution_covers_what_is_published_about_it(target, law, epsilon, hits, sensitivity):
    """Misses plus e^-κ hits are at most 1: for numbers around the threshold, in both directions."""
    allowance = renyi(epsilon, hits)
    edges = {0}
    if isinstance(target, int):
        edges |= {target - 1, target}
        target = tc.Between(0, target - 1, sensitivity)
    order, priced = allowance.tariff.order, 0
    for query in (epsilon, epsilon / 4, epsilon / 30, epsilon / 1000):
        try:
            prices = allowance.prices(target, query, sensitivity)
        except tc.NotAllowed:  # a narrow band has no finite price at this order
            continue
        priced += 1
        with mpmath.workdps(DIGITS):
            noise, far = Noise(query, sensitivity), 2 * sensitivity + 3
            for steps in {1, sensitivity // 3, sensitivity - 1, sensitivity} - {0}:
                factor = mpmath.exp(-kappa(prices, steps))
                for n in {*edges, 1, -1, -steps, 1 - steps, -steps - 1, far, -far, far // 2}:
                    for pair in ((n, n + steps), (n + steps, n)):
                        missed, hit = law(noise, order, *pair, 0)
                        assert missed + factor * hit <= 1, (query, steps, pair)
    assert priced


# Against the closed form at the contribution's own ε.


def closed(order, epsilon):
    shift = (order - 1) * epsilon
    left = 1 - mpmath.expm1(shift) * mpmath.expm1(order * epsilon)
    return -mpmath.log(left) if left > 0 else mpmath.inf


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 100, 4095, 4096, 4097, 5000, 10**6, 2**31 + 11, 2**50])
@pytest.mark.parametrize(("epsilon", "hits"), [(0.1, 5), (0.02, 1000), (0.4, 2)])
def test_a_price_is_that_of_the_contribution_rounded_up_by_one_level_at_most(epsilon, hits, sensitivity):
    rng = np.random.default_rng(sensitivity)
    allowance = renyi(epsilon, hits)
    prices = allowance.prices(tc.NotPrior(None), epsilon, sensitivity)
    order = mpmath.mpf(allowance.tariff.order)
    some = {1, 2, sensitivity, sensitivity - 1, sensitivity // 2, sensitivity // LEVELS, sensitivity // LEVELS + 1}
    some |= {int(each) for each in rng.integers(1, sensitivity, 40, endpoint=True)}
    with mpmath.workdps(DIGITS):
        for steps in sorted(each for each in some if 1 <= each <= sensitivity):
            found = kappa(prices, steps)
            assert found >= closed(order, mpmath.mpf(epsilon) * steps / sensitivity)
            next_level = steps + (0 if sensitivity <= LEVELS else Fraction(sensitivity, LEVELS) + 1)
            at = mpmath.mpf(epsilon) * min(mpmath.mpf(1), mpmath.mpf(float(next_level)) / sensitivity)
            unit = mpmath.mpf(float(1 / allowance.scale)) / mpmath.mpf(2) ** 128
            assert found <= closed(order, at * (1 + mpmath.mpf(2) ** -40)) * (1 + mpmath.mpf(10) ** -8) + unit


@pytest.mark.parametrize("sensitivity", [1, 7, 4096, 5000, 2**31 + 11, 10**15])
@pytest.mark.parametrize(
    "target", [tc.NotPrior(None), tc.Boundary(), tc.Between(0, 10), tc.Between(-(2**20), 2**20)], ids=repr
)
def test_prices_grow_with_the_contribution_up_to_the_full_one_and_have_no_sign(target, sensitivity):
    if isinstance(target, tc.Between):
        target = tc.Between(target.low, max(target.high, 4 * sensitivity), sensitivity)
    prices = renyi(0.1, 20).prices(target, 0.05, sensitivity)
    steps = np.unique(np.geomspace(1, sensitivity, 300).astype(np.int64).clip(1, sensitivity))
    found = prices.of(steps)
    assert found.dtype == np.int64
    assert (np.diff(found) >= 0).all()
    assert found.min() >= 1
    assert found[-1] == prices.full
    assert (prices.of(-steps) == found).all()
    assert (prices.of(steps) == found).all()  # again, when they are known
    assert prices.of(np.array([0, sensitivity, 0])).tolist() == [0, prices.full, 0]
    assert prices.of(np.array([], np.int64)).tolist() == []


def test_prices_do_not_depend_on_what_was_asked_before():
    """They are found when they are needed: in any order, one by one or many at once."""
    steps = np.arange(-9000, 9001, 7)
    whole = renyi().prices(tc.NotPrior(None), 0.1, 9000).of(steps)
    piecewise = renyi().prices(tc.NotPrior(None), 0.1, 9000)
    shuffled = np.random.default_rng(1).permutation(len(steps))
    parts = [piecewise.of(steps[some]) for some in np.array_split(shuffled, 50)]
    assert (np.concatenate(parts) == whole[shuffled]).all()


def test_a_price_that_nobody_can_pay_is_one_more_than_the_capacity():
    allowance = renyi(0.1, 1)
    epsilon = 0.1
    while tc.NotPrior(None).kappa(allowance.tariff.order, epsilon) * 2**128 <= 2 * allowance.tariff.capacity:
        epsilon *= 1.00001
    prices = allowance.prices(tc.NotPrior(None), epsilon, 10)
    assert prices.full == allowance.capacity + 1
    assert (prices.of(np.arange(11)) <= prices.full).all()
    assert prices.of(np.array([1]))[0] <= allowance.capacity  # who contributes little can


# Exact.


@pytest.mark.parametrize("sensitivity", [1, 2, 4096, 4097, 10**9, 2**50])
def test_on_the_exact_meter_every_contribution_but_none_is_one_hit(sensitivity):
    allowance = Allowance.of(exact_tariff(tc.Budget(3.0, 1e-6), 0.1, tc.NotPrior(None)))
    assert (allowance.capacity, allowance.scale) == (7, 1)
    for epsilon in (0.1, 0.03):
        prices = allowance.prices(tc.NotPrior(None), epsilon, sensitivity)
        steps = np.array([0, 1, -1, sensitivity, -sensitivity, max(1, sensitivity // 2), 0])
        assert prices.of(steps).tolist() == [0, 1, 1, 1, 1, 1, 0]


def test_on_the_exact_meter_a_band_that_was_declared_is_one_hit_for_who_moves_it_less():
    band = tc.Between(100, 400, 10)
    allowance = Allowance.of(exact_tariff(tc.Budget(9.0, 1e-6), 0.1, [tc.NotPrior(None), band]))
    assert allowance.prices(band, 0.1, 10).of(np.arange(11)).tolist() == [0] + [1] * 10


# The scale.


BUDGETS = [
    (epsilon, delta, query)
    for epsilon in (1.0, 3.0, 60.0, 900.0)
    for delta in (1e-3, 1e-6, 1e-12)
    for query in (1e-3, 0.01, 0.1, 0.7)
]
"""The exact meter's capacity takes long for very small ε: it is looked at for others."""


@pytest.mark.parametrize(("epsilon", "delta", "query"), spread(BUDGETS, 23))
def test_the_scale_rounds_prices_up_and_the_capacity_down(epsilon, delta, query):
    for make in (exact_tariff, renyi_tariff)[query < 0.1 :]:
        try:
            tariff = make(tc.Budget(epsilon, delta), query, tc.NotPrior(None))
        except tc.InvalidParameter:
            continue
        allowance = Allowance.of(tariff)
        scale = 1 / allowance.scale
        assert 1 <= allowance.capacity <= MOST
        assert allowance.capacity * scale <= tariff.capacity < (allowance.capacity + 1) * scale
        assert scale == 1 or allowance.capacity >= MOST // 4  # no much finer one fits
        for units in (1, tariff.typical.grains, tariff.capacity - 1, tariff.capacity, 3 * tariff.capacity):
            scaled = allowance.scaled(units)
            assert scaled * scale >= min(units, allowance.capacity * scale)
            assert (scaled - 1) * scale < units
            assert scaled <= allowance.capacity
        full = allowance.prices(tc.NotPrior(None), query, 3).full
        assert full * scale >= tariff.quote(tc.NotPrior(None), query).grains
        kind = allowance.counter
        assert kind in (np.uint8, np.uint16, np.uint32, np.int64)
        assert allowance.capacity <= np.iinfo(kind).max
        smaller = {np.uint16: np.uint8, np.uint32: np.uint16, np.int64: np.uint32}.get(kind)
        assert smaller is None or allowance.capacity > np.iinfo(smaller).max


@pytest.mark.parametrize("hits", [1, 2, 5, 50])
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_a_unit_can_pay_for_the_hits_that_the_meter_shows(meter, epsilon, hits):
    """With the least budget for so many hits, as `renyi_epsilon` names it; with one hit it is all or nothing."""
    find = {"exact": tc.accounting.exact_epsilon, "renyi": lambda *it: renyi_epsilon(tc.NotPrior(None), *it)}[
        meter
    ]
    made = getattr(Meter, meter)(tc.Budget(find(epsilon, hits, 1e-6), 1e-6), epsilon, individual=True)
    allowance = Allowance.of(made.tariff)
    full = allowance.prices(tc.NotPrior(None), epsilon, 1).full
    assert allowance.capacity // full == made.hits_left
