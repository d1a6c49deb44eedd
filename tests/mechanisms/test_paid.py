"""Numbers that are always paid for: the least noise, what a unit moves, outcomes on neighbours, and intervals."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.discrete_gaussian import DiscreteGaussian
from tests.discrete_laplace import DiscreteLaplace
from tests.goodness import FAR, BufferedEntropy
from tests.offset_noise import noise_of
from tests.refusals import every
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting import OffsetNoise
from targetcharge.accounting.curves import Gaussian, Pure
from targetcharge.accounting.exchange import PaidRates, exact_rates, hits_of
from targetcharge.accounting.targets import Everything, NotPrior
from targetcharge.mechanisms.algorithm import paid
from targetcharge.mechanisms.noise import Carried, CountNoise
from targetcharge.mechanisms.paid import PaidNoise, always_count, histogram, mean
from targetcharge.randomness import Rate

ROUNDING = 1 + 1e-9
LAWS = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}

ONLY_LAPLACE = PaidRates(2.0, 4.0)
ONLY_GAUSSIAN = PaidRates(1e-3, 2e-3, 1.0, Fraction(5, 2))
KINDS = {"laplace": ONLY_LAPLACE, "gaussian": ONLY_GAUSSIAN}
each_kind = pytest.mark.parametrize("rates", KINDS.values(), ids=KINDS)


def itself(data):
    return data


def drawn(algorithm, rates, session=None):
    """Return an algorithm as a session draws it."""
    return paid(algorithm, PaidNoise(rates, session))


def deviation(kind, rate):
    """Return the standard deviation of noise; Laplace noise of rate r has 1/(√2·sinh(r/2))."""
    if kind == "laplace":
        return 1 / (math.sqrt(2) * math.sinh(rate / 2))
    return DiscreteGaussian(1 / rate**2).standard_deviation


@pytest.fixture
def script(monkeypatch):
    """Let noise be what this list ends with, from now on."""
    left = []
    monkeypatch.setattr(CountNoise, "draw", lambda *_: left.pop())
    monkeypatch.setattr(CountNoise, "draws", lambda _, __, count: [left.pop() for _ in range(count)])
    return left


def noise_drawn(algorithm, data):
    """Return the noise that a run draws; all of it is of one kind."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CountNoise, "draw", lambda noise, _: seen.append(noise) or 0)
        patch.setattr(CountNoise, "draws", lambda noise, _, count: [noise.draw(None) for _ in range(count)])
        algorithm.run(data, None)
    (noise,) = set(seen)
    return noise, len(seen)


# The least noise.

RATES = {
    **{f"exact-{epsilon}": exact_rates(epsilon) for epsilon in (0.01, 0.1, 1.0, 3.0)},
    "only-dp": PaidRates(0.1, 0.1),
    "twice-the-shift": PaidRates(0.1, 0.2, 0.2),
    "half-the-shift": PaidRates(0.1, 0.2, 0.05),
    "just-less": PaidRates(1.0, 2.0, 1 / math.sqrt(1.8415 - 0.02)),
    "just-more": PaidRates(1.0, 2.0, 1 / math.sqrt(1.8415 + 0.02)),
}
MOVED = [(1, 1), (2, 2), (3, 9), (10, 10), (10, 100), (1000, 1000), (12345, 12345**2)]


def test_noise_is_that_with_the_least_variance():
    kinds = Counter()

    def check(rates, moved, squared):
        choices = {"laplace": deviation("laplace", rates.pure / moved)}
        if rates.shift is not None:
            variance = squared / rates.shift**2 + float(rates.spread)
            choices["gaussian"] = (
                deviation("gaussian", 1 / math.sqrt(variance)) if variance < 1e6 else variance**0.5
            )
        noise, target = PaidNoise(rates).least(moved, squared)
        kinds[noise.noise] += 1
        assert choices[noise.noise] == min(choices.values())
        assert noise.standard_deviation == pytest.approx(choices[noise.noise], rel=1e-6)
        assert (noise.lattice, noise.weight, noise.offset) == (1, 0, None)
        rate = Fraction(noise.rate.numerator, noise.rate.denominator)
        if noise.noise == "laplace":
            assert target == Everything(Pure(rates.pure))
            assert rate * moved <= Fraction(rates.pure)  # never more than is paid for
        else:
            assert target == Everything(Gaussian(squared, 1 / rate**2))
            assert 1 / rate**2 >= squared / Fraction(rates.shift) ** 2 + rates.spread

    every({f"{name}, {case}": (rates, *case) for name, rates in RATES.items() for case in MOVED}, check)
    assert min(kinds["laplace"], kinds["gaussian"]) > 10


def test_of_two_noises_that_are_nearly_as_good_the_better_is_drawn():
    """At ε 1 the variance of Laplace noise is 1.8415; Gaussian noise has a little less, or a little more."""
    assert deviation("laplace", 1.0) ** 2 == pytest.approx(1.8415, abs=1e-3)
    assert PaidNoise(RATES["just-less"]).least(1, 1)[0].noise == "gaussian"
    assert PaidNoise(RATES["just-more"]).least(1, 1)[0].noise == "laplace"


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
def test_one_hit_of_an_exact_meter_pays_for_it(epsilon):
    def check(moved, squared):
        for rates in (exact_rates(epsilon), replace(exact_rates(epsilon), shift=None)):
            _, target = PaidNoise(rates).least(moved, squared)
            assert hits_of(target.curve, epsilon, most=3) == 1

    every(MOVED, check)


def test_power_five_percent_more_are_two_hits():
    rates = exact_rates(0.1)
    for larger in (PaidRates(rates.pure * 1.05, 1.0), replace(rates, shift=rates.shift * 1.05)):
        _, target = PaidNoise(larger).least(1, 1)
        assert hits_of(target.curve, 0.1, most=3) == 2


# Counts: the session's own noise or fresh noise.

OFFSETS = {
    "a large offset": OffsetNoise(0.05, 0.2),
    "a small offset": OffsetNoise(1.0, 0.4),
    "gumbel": OffsetNoise(0.3, 0.4, "gumbel", "at least"),
    "geometric": OffsetNoise(0.4, 0.05, "geometric", "at least"),
}


def test_a_count_gets_the_noise_of_its_session_where_that_is_less():
    rates, chosen = exact_rates(0.1), Counter()

    def check(law, sensitivity):
        session = partial(CountNoise.carried, law)
        query_epsilon = law.query_epsilon / 2 if law.questions == "any" else law.query_epsilon
        carried = noise_of(law, query_epsilon, sensitivity).standard_deviation
        fresh = min(
            deviation("laplace", rates.pure / sensitivity),
            deviation("gaussian", 1 / math.sqrt((sensitivity / rates.shift) ** 2 + 2.5)),
        )
        count = always_count(itself, 0.1, sensitivity=sensitivity, monotone=True, name="n")
        algorithm = drawn(count, rates, session)
        chosen[algorithm.carries] += 1
        assert algorithm.carries == (carried <= fresh)
        scale = algorithm.accuracy.scale * math.sqrt(2)
        assert scale == pytest.approx(min(carried, fresh), rel=1e-5)
        if algorithm.carries:
            assert algorithm.default_target == NotPrior(None)
        else:
            assert type(algorithm.default_target.curve) in {Pure, Gaussian}
        assert algorithm.supports(algorithm.default_target)
        assert (algorithm.name, algorithm.epsilon, algorithm.paid, algorithm.counted) == ("n", 0.1, None, None)
        # What may be lower carries none.
        signed = drawn(always_count(itself, 0.1, sensitivity=sensitivity), rates, session)
        assert not signed.carries
        assert signed.accuracy.scale * math.sqrt(2) == pytest.approx(fresh, rel=1e-5)

    every({f"{name}, {s}": (law, s) for name, law in OFFSETS.items() for s in (1, 20)}, check)
    assert min(chosen[True], chosen[False]) >= 2


def test_a_count_is_the_true_one_and_its_noise(script):
    rates, session = exact_rates(0.1), partial(CountNoise.carried, OffsetNoise(1.0, 0.4))
    fresh = drawn(always_count(len, 0.1), rates, session)
    carried = drawn(always_count(len, 0.1, monotone=True), rates, session)
    script += [-3, 1, 7]
    assert fresh.run(range(50), None) == 57
    # On half steps the offset is taken off, and half a step is rounded down.
    assert carried.run(Carried(range(50), 4), None) == math.floor((2 * 50 - 4 + 1) / 2)
    assert carried.run(Carried(range(50), 4), None) == math.floor((2 * 50 - 4 - 3) / 2)
    assert not script


def test_on_their_own_they_are_private_as_they_say_and_take_any_prior():
    def check(algorithm, data, moved):
        assert noise_drawn(algorithm, data)[0] == CountNoise.natural(0.3, moved)
        assert (algorithm.epsilon, algorithm.delta) == (0.3, 0.0)
        assert algorithm.default_target == Everything()
        assert algorithm.supports(NotPrior(None))
        assert algorithm.supports(Everything())
        in_session = drawn(algorithm, exact_rates(0.3))
        assert in_session.supports(in_session.default_target)
        assert not in_session.supports(NotPrior(None))
        assert not in_session.supports(Everything())
        assert in_session.default_target.curve is not None

    every(
        {
            "count": (always_count(itself, 0.3, sensitivity=2), 7, 2),
            "histogram": (histogram(itself, 0.3, 2, per_unit=2), (1, 1), 2),
            "mean": (mean(itself, 0.3, -1, 4), (5, 2), 5),
        },
        check,
    )


def test_what_they_take_is_checked():
    def check(make, match):
        with pytest.raises(tc.InvalidParameter, match=match):
            make()

    every(
        {
            "no key": (lambda: histogram(itself, 0.1, 0), "keys is 0"),
            "no key of a unit": (lambda: histogram(itself, 0.1, 3, per_unit=0), "per_unit is 0"),
            "half a key": (lambda: histogram(itself, 0.1, 2.5), "keys is 2.5"),
            "no function": (lambda: histogram([1, 2], 0.1, 2), "counts"),
            "no totals": (lambda: mean((1, 2), 0.1, 0, 2), "totals"),
            "no range": (lambda: mean(itself, 0.1, 2, 2), "sensitivity is 0"),
            "no epsilon": (lambda: mean(itself, 0, 0, 2), "epsilon is 0"),
        },
        check,
    )


# What a unit moves: the exact numbers under the noise, on random neighbours.


class _Recorder:
    """Adds nothing to a number, and remembers it."""

    def __init__(self, seen):
        self._seen = seen

    def __radd__(self, number):
        self._seen.append(number)
        return number


def numbers_under_noise(algorithm, data):
    """Return the exact numbers that a run adds noise to; of a mean the second is told beside the first."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CountNoise, "draw", lambda *_: _Recorder(seen))
        patch.setattr(CountNoise, "draws", lambda _, __, count: [_Recorder(seen)] * count)
        algorithm.run(data, None)
    return seen


def totals(values, lower):
    """Return how far values are above the least, added up, and how many there are."""
    return sum(value - lower for value in values), len(values)


def test_a_unit_moves_both_sums_of_a_mean_by_the_width_together_whatever_its_value():
    source, lengths = np.random.default_rng(1), Counter()
    for _ in range(size(300, 5000)):
        lower = int(source.integers(-50, 50))
        width = int(source.integers(1, 40))
        values = source.integers(lower, lower + width + 1, int(source.integers(0, 6))).tolist()
        unit = int(source.choice([lower, lower + width, source.integers(lower, lower + width + 1)]))
        algorithm = drawn(mean(partial(totals, lower=lower), 0.1, lower, lower + width), ONLY_GAUSSIAN)
        both = []
        for data in (values, [*values, unit]):
            first, sum_of_both = numbers_under_noise(algorithm, data)
            assert first == sum(value - lower for value in data)
            assert sum_of_both - first == sum(lower + width - value for value in data)
            both.append((first, sum_of_both - first))
        moved = [new - old for old, new in zip(*both, strict=True)]
        assert min(moved) >= 0
        assert sum(moved) == width
        assert sum(step**2 for step in moved) <= width**2
        lengths[sum(step**2 for step in moved) == width**2] += 1
        # And that is what is paid for.
        assert algorithm.default_target.curve.shift_squared == width**2
        laplace = noise_drawn(drawn(mean(itself, 0.1, lower, lower + width), ONLY_LAPLACE), (0, 0))[0].rate
        assert width * Fraction(laplace.numerator, laplace.denominator) <= 2
    assert min(lengths.values()) > 50


def test_a_unit_moves_as_many_counts_of_a_histogram_as_are_paid_for():
    source, attained = np.random.default_rng(2), 0
    for _ in range(size(300, 5000)):
        keys, per_unit = (int(source.integers(1, 6)) for _ in range(2))

        def counts(units, keys=keys):
            return [sum(key in unit for unit in units) for key in range(keys)]

        def one_unit(keys=keys, per_unit=per_unit):
            return set(source.permutation(keys)[: int(source.integers(0, per_unit + 1))].tolist())

        units = [one_unit() for _ in range(int(source.integers(0, 5)))]
        algorithm = drawn(histogram(counts, 0.1, keys, per_unit=per_unit), ONLY_GAUSSIAN)
        assert numbers_under_noise(algorithm, units) == counts(units)
        before, after = counts(units), counts([*units, one_unit()])
        moved = [new - old for old, new in zip(before, after, strict=True)]
        paid_for = algorithm.default_target.curve.shift_squared
        assert paid_for == min(per_unit, keys)
        assert sum(map(abs, moved)) <= paid_for
        assert sum(step**2 for step in moved) <= paid_for
        attained += sum(moved) == paid_for
        noise, drawn_for = noise_drawn(drawn(histogram(counts, 0.1, keys, per_unit=per_unit), ONLY_LAPLACE), units)
        assert drawn_for == keys
        assert paid_for * Fraction(noise.rate.numerator, noise.rate.denominator) <= 2
    assert attained > 50


# All outcomes on neighbours, from the law of the noise.


def masses_of(noise, reach):
    law = LAWS[noise.noise].of(noise.rate)
    return {value: law.mass(value) for value in range(-reach, reach + 1)}


def law_of(algorithm, data, script, reach):
    """Return {outcome: probability}: every noise up to a reach."""
    noise, draws = noise_drawn(algorithm, data)
    masses, law = masses_of(noise, reach), Counter()
    for values in itertools.product(masses.items(), repeat=draws):
        script += [value for value, _ in reversed(values)]
        law[algorithm.run(data, None)] += math.prod(mass for _, mass in values)
    assert not script
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-9)
    return law


def largest_ratio(law, other):
    """Return the largest |ln(law/other)|, where noise that is left out does not matter."""
    compared = [outcome for outcome in {*law, *other} if max(law[outcome], other[outcome]) > 1e-6]
    return max(abs(math.log(law[outcome] / other[outcome])) for outcome in compared)


def divergence(law, other, order):
    """Return the Rényi divergence at an order."""
    both = [(law[outcome], other[outcome]) for outcome in law if other[outcome] > 0]
    moments = math.fsum(math.exp(order * math.log(p) + (1 - order) * math.log(q)) for p, q in both)
    return math.log(moments) / (order - 1)


PAIRS = {
    "count": (lambda: always_count(itself, 0.1, sensitivity=2), [(5, 7), (5, 4), (0, 0)]),
    "histogram": (
        lambda: histogram(itself, 0.1, 2, per_unit=2),
        [((3, 1), (4, 2)), ((3, 1), (3, 2)), ((0, 0), (0, 0))],
    ),
    "mean": (
        lambda: mean(itself, 0.1, -1, 1, Fraction(1, 10)),
        [((9, 9), (9 + above, 10)) for above in (0, 1, 2)] + [((0, 0), (above, 1)) for above in (0, 1, 2)],
    ),
}


@pytest.mark.parametrize(("make", "pairs"), PAIRS.values(), ids=PAIRS)
def test_no_outcome_tells_more_than_the_dp_that_is_paid_for(script, make, pairs):
    """ε-DP at ε 2, for numbers that move by 2 together: noise of rate 1."""

    def worst(factor, pairs):
        algorithm = drawn(make(), PaidRates(2.0 * factor, 4.0))
        laws = {data: law_of(algorithm, data, script, reach=36) for data in set(itertools.chain(*pairs))}
        return max(largest_ratio(laws[one], laws[other]) for one, other in pairs)

    assert 0.99 * 2 <= worst(1, pairs) <= 2 * ROUNDING
    assert worst(1.05, pairs[:1]) > 2.05


@pytest.mark.parametrize(("make", "pairs"), PAIRS.values(), ids=PAIRS)
def test_no_outcome_tells_more_than_the_gaussian_noise_that_is_paid_for(script, make, pairs):
    """zCDP: at order a the divergence is at most aρ, which whole shifts attain at whole orders."""
    declared = drawn(make(), ONLY_GAUSSIAN).default_target.curve
    rho = declared.shift_squared / (2 * float(declared.variance))

    def worst(shift, pairs):
        algorithm = drawn(make(), replace(ONLY_GAUSSIAN, shift=shift))
        laws = {data: law_of(algorithm, data, script, reach=32) for data in set(itertools.chain(*pairs))}
        return max(
            divergence(laws[one], laws[other], order) / order
            for pair in pairs
            for one, other in (pair, pair[::-1])
            for order in (2, 3, 5)
        )

    assert 0.97 * rho <= worst(1.0, pairs) <= rho * ROUNDING
    assert worst(1.05, pairs[:1]) > 1.02 * rho


def test_a_mean_is_made_of_its_two_noisy_sums_alone(script):
    """Whatever the data: what is published, and the interval, follow from them."""
    algorithm = drawn(mean(itself, 0.1, -3, 7, Fraction(1, 2)), ONLY_LAPLACE)
    source, told = np.random.default_rng(3), {}
    for _ in range(size(2000, 20_000)):
        units = int(source.integers(0, 4))
        above = int(source.integers(0, 10 * units + 1))
        noisy, other = source.integers(-3, 25, 2).tolist()
        script += [other - (10 * units - above), noisy - above]
        outcome = algorithm.run((above, units), None)
        assert told.setdefault((noisy, other), outcome) == outcome


# Intervals of a mean.


def holds(interval, truth):
    return interval[0] <= truth <= interval[1]


MEANS = {
    "one unit": [4],
    "two far apart": [0, 9],
    "all at the least": [0] * 20,
    "all at the most": [9] * 20,
    "one away from the least": [0] * 39 + [9],
    "all in the middle": [4] * 15 + [5] * 15,
    "near an end": [0] * 25 + [3] * 10,
    "many": [2] * 400,
}


def coverage(make, values, script, narrower=1.0):
    """Return the probability that the interval of a mean of whole numbers from 0 to 9 holds it."""
    data, truth = totals(values, 0), sum(values) / len(values)
    noise, _ = noise_drawn(make, data)
    reach = math.ceil({"laplace": 10, "gaussian": 5}[noise.noise] * noise.standard_deviation)
    masses, held, published = masses_of(noise, reach), 0.0, 0.0
    for (first, mass), (second, other) in itertools.product(masses.items(), repeat=2):
        script += [second, first]
        outcome = make.run(data, None)
        middle, low, high = make.publish(outcome, hit=True), *make.interval(outcome)
        assert 0 <= low <= middle <= high <= 9
        low, high = (middle + narrower * (end - middle) for end in (low, high))
        held += mass * other * holds((low - 1e-12, high + 1e-12), truth)
        published += mass * other * (abs(middle - truth) <= make.margin / len(values))
    return held, published


COVERED = {"laplace": PaidRates(3.0, 6.0), "gaussian": PaidRates(1e-3, 2e-3, 2.5, Fraction(5, 2))}


@pytest.mark.parametrize("rates", COVERED.values(), ids=COVERED)
def test_the_interval_of_a_mean_holds_in_95_of_100_draws(script, rates):
    """Exactly: all noise of both sums. Nor is the margin, divided by the number of units, exceeded more often."""
    algorithm, lowest = drawn(mean(itself, 0.1, 0, 9), rates), 1.0
    for name, values in MEANS.items():
        held, close = coverage(algorithm, values, script)
        assert held >= 0.95, name
        assert close >= 0.95, name
        lowest = min(lowest, held)
    assert lowest < 0.99  # and not by intervals that are far too wide


@pytest.mark.parametrize("rates", COVERED.values(), ids=COVERED)
def test_power_narrower_intervals_of_a_mean_hold_less_often(script, rates):
    algorithm = drawn(mean(itself, 0.1, 0, 9), rates)
    held, _ = coverage(algorithm, MEANS["near an end"], script, narrower=0.7)
    assert held < 0.94


def sums_beyond(kind, rate, margin, share):
    """Return Pr[|(1-t)·e₁ - t·e₂| > margin] for two noises of one law."""
    reach = math.ceil({"laplace": 36, "gaussian": 9}[kind] / rate) + 2
    law = LAWS[kind].of(Fraction(rate))
    masses = np.array([law.mass(value) for value in range(-reach, reach + 1)])
    values, up_to = np.arange(-reach, reach + 1), np.append(0.0, np.cumsum(masses))

    def at_most(bounds):
        return up_to[np.clip(np.floor(bounds).astype(int) + reach + 1, 0, len(masses))]

    # In whole numbers, with t as a fraction: e₁ between two ends for each e₂.
    part, whole = share.numerator, share.denominator
    high = np.floor_divide(whole * margin + part * values, whole - part)
    low = -np.floor_divide(whole * margin - part * values, whole - part)
    return 1 - float(masses @ (at_most(high) - at_most(low - 1)))


def test_two_noises_weighed_are_within_the_margin_of_one_and_a_step():
    """On which intervals of means rest, for all shares and rates; without the step it is not true."""
    shares = [Fraction(place, 40) for place in range(21)]
    rates = [Fraction(text) for text in ("1/20", "1/10", "3/10", "1/2", "1", "2", "3", "4", "5", "10")]
    without = 0.0
    for kind, rate in itertools.product(LAWS, rates):
        exact = Rate.at_most(float(rate))
        margin = CountNoise(kind, exact).margins[0]
        drawn_with = Fraction(exact.numerator, exact.denominator)
        assert max(sums_beyond(kind, drawn_with, margin + 1, share) for share in shares) <= 0.05
        without = max(without, *(sums_beyond(kind, drawn_with, margin, share) for share in shares))
    assert without > 0.06


@pytest.mark.parametrize("epsilon", [0.1, 0.4])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_real_draws_of_a_mean_lie_in_its_interval(epsilon, kind):
    """At the rates of a session, on a grid of cents, for units that are near the least value, and some at most."""
    rates = exact_rates(epsilon) if kind == "gaussian" else replace(exact_rates(epsilon), shift=None)
    values = [*range(0, 300, 5), *[1000] * 20]
    truth = sum(values) / len(values) / 100 - 2
    algorithm = drawn(mean(lambda given: totals(given, 0), epsilon, -200, 800, Fraction(1, 100)), rates)
    assert noise_drawn(algorithm, values)[0].noise == kind
    entropy, draws = BufferedEntropy(4), size(4000, 40_000)
    held = narrower = 0
    for _ in range(draws):
        outcome = algorithm.run(values, entropy)
        middle, low, high = outcome[0], *algorithm.interval(outcome)
        assert -2 <= low <= middle <= high <= 8
        held += holds((low, high), truth)
        narrower += abs(middle - truth) <= 0.6 * max(high - middle, middle - low)
    assert binomtest(held, draws, 0.95, alternative="less").pvalue > FAR
    assert binomtest(held, draws, 0.99, alternative="greater").pvalue > FAR
    assert binomtest(narrower, draws, 0.95, alternative="less").pvalue < FAR


def test_where_no_units_are_left_by_the_noise_the_mean_may_be_anything(script):
    algorithm = drawn(mean(itself, 0.1, -10, 30, Fraction(1, 4)), ONLY_LAPLACE)
    width = 40
    for data, first, second in (
        ((0, 0), 0, 0),
        ((0, 0), -3, 3),
        ((0, 0), 5, -6),
        ((60, 2), -60, -20),
        ((60, 2), 10**6, -(10**7)),
    ):
        script += [second, first]
        outcome = algorithm.run(data, None)
        assert data[1] * width + first + second <= 0
        assert algorithm.publish(outcome, hit=True) == 2.5
        assert algorithm.interval(outcome) == (-2.5, 7.5)
    # One step more, and there is one fortieth of a unit: the mean is put into its bounds.
    for first, second, published in ((5, -4, 7.5), (-4, 5, -2.5)):
        script += [second, first]
        outcome = algorithm.run((0, 0), None)
        assert algorithm.publish(outcome, hit=True) == published
        assert algorithm.interval(outcome) == (-2.5, 7.5)


@each_kind
def test_no_units_at_all_have_a_mean_within_its_bounds(rates):
    entropy = BufferedEntropy(5)
    algorithm = drawn(mean(itself, 0.1, 3, 5), rates)
    for _ in range(500):
        outcome = algorithm.run((0, 0), entropy)
        low, high = algorithm.interval(outcome)
        assert 3 <= low <= outcome[0] <= high <= 5


def test_the_margin_of_a_mean_is_that_of_one_noise_and_a_step_on_its_grid():
    for rates in KINDS.values():
        algorithm = drawn(mean(itself, 0.1, 0, 9, Fraction(1, 100)), rates)
        noise, draws = noise_drawn(algorithm, (0, 0))
        law = LAWS[noise.noise].of(noise.rate)
        beyond = 0.025 if noise.noise == "gaussian" else 0.05 / 2
        margin = next(far for far in range(10**6) if law.at_least(far + 1) <= beyond)
        assert draws == 2
        assert algorithm.margin == pytest.approx((margin + 1) / 100)


# Histograms.


def test_a_histogram_is_the_true_counts_and_their_noise(script):
    algorithm = drawn(histogram(itself, 0.1, 3, per_unit=2), ONLY_GAUSSIAN)
    script += [5, -50, 0]
    assert algorithm.run((10, 20, 30), None) == (10, -30, 35)
    with pytest.raises(ValueError, match="2 scores for 3 outcomes"):
        algorithm.run((1, 2), None)


@each_kind
def test_a_count_of_a_histogram_is_within_its_margin_in_95_of_100_draws(rates):
    algorithm = drawn(histogram(itself, 0.1, 3, per_unit=2), rates)
    noise, _ = noise_drawn(algorithm, (0, 0, 0))
    law = LAWS[noise.noise].of(noise.rate)
    reach = math.ceil(20 * noise.standard_deviation)
    held = math.fsum(
        law.mass(value) for value in range(-reach, reach + 1) if holds(algorithm.accuracy.interval(40 + value), 40)
    )
    assert held >= 0.95
    narrower = math.fsum(
        law.mass(value) for value in range(-reach, reach + 1) if abs(value) < algorithm.accuracy.margin
    )
    assert narrower < 0.95
