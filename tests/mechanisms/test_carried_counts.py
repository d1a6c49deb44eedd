"""Counts that carry a session's offset: what is drawn, what is published, and what that says of the truth."""

import math
from fractions import Fraction
from functools import partial

import pytest
from tests.randomness.sources import SeededEntropy
from tests.refusals import every

import targetcharge as tc
from targetcharge.accounting import OffsetNoise
from targetcharge.mechanisms import above_threshold, batch_by_key, batch_by_name, noisy_count
from targetcharge.mechanisms.algorithm import redrawn
from targetcharge.mechanisms.gauge import gauged, grid
from targetcharge.mechanisms.noise import Carried, CountNoise, draw_offset
from targetcharge.randomness import discrete_gumbel, discrete_laplace, geometric

LAWS = (
    OffsetNoise(0.3, 0.1),
    OffsetNoise(0.3, 0.1, "laplace", "at least"),
    OffsetNoise(0.2, 0.1, "geometric", "at least"),
    OffsetNoise(0.3, 0.1, "gumbel", "at least"),
    OffsetNoise(0.3, 0.1, "gumbel", "at least", "geometric"),
)
SENSITIVITIES = (1, 2, 3, 7, 50, 100, 12345)
SAMPLERS = {"laplace": discrete_laplace, "geometric": geometric, "gumbel": discrete_gumbel}


def carried(law):
    """Return the noise of counts of a session with these laws, for each sensitivity."""
    return partial(CountNoise.carried, law)


def test_the_offset_moves_a_count_as_the_coupling_needs():
    # λ·M steps of the offset's lattice, whole by choice of λ, move the count by Δ·λ of its steps: exactly.
    def check(law, sensitivity):
        noise = CountNoise.carried(law, sensitivity)
        assert Fraction(noise.weight, noise.lattice) == Fraction(sensitivity, law.lattice)
        rate = Fraction(noise.rate.numerator, noise.rate.denominator)
        whole = rate * noise.lattice * sensitivity
        assert whole <= Fraction(law.query_epsilon)
        assert whole > Fraction(law.query_epsilon) * Fraction(999_999, 1_000_000)

    every([(law, sensitivity) for law in LAWS for sensitivity in SENSITIVITIES], check)


def test_what_is_drawn_is_the_law_less_the_integer_next_to_its_mean():
    def check(law, sensitivity):
        noise = CountNoise.carried(law, sensitivity)
        drawn = [noise.draw(SeededEntropy(seed)) for seed in range(50)]
        bare = [SAMPLERS[law.noise](SeededEntropy(seed), noise.rate) for seed in range(50)]
        shifts = {one - other for one, other in zip(bare, drawn, strict=True)}
        mean = {"laplace": 0.0, "geometric": 1, "gumbel": 0.5772156649}[law.noise]
        steps = noise.rate.denominator / noise.rate.numerator
        assert len(shifts) == 1
        assert abs(shifts.pop() - mean * steps) <= 1

    every([(law, sensitivity) for law in LAWS for sensitivity in (1, 7)], check)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.noise}, {law.questions}, {law.offset_noise}")
def test_a_count_is_published_exactly_from_its_threshold_on_and_then_rounded(law):
    for sensitivity in (1, 7):
        noise = CountNoise.carried(law, sensitivity)
        test = redrawn(
            above_threshold(len, 30, epsilon=0.1, sensitivity=sensitivity, monotone=True),
            carried(law),
        )
        published = set()
        for seed in range(400):
            offset = seed % 41 - 20
            value = noise.lattice * 30 - noise.weight * offset + noise.draw(SeededEntropy(seed))
            outcome = test.run(Carried(range(30), offset), SeededEntropy(seed))
            assert (outcome is None) == (value < noise.lattice * 30)
            if outcome is not None:
                assert abs(Fraction(value, noise.lattice) - outcome) <= Fraction(1, 2)
                assert outcome >= 30
            published.add(outcome is None)
        assert published == {True, False}


def test_sums_are_shown_in_what_they_are_worth():
    law = LAWS[3]
    cents = grid(Fraction(1, 100))
    plain = noisy_count(lambda rows: 100 * len(rows), epsilon=0.1, sensitivity=100, monotone=True)
    total = redrawn(gauged(plain, cents), carried(law))
    outcome = total.run(Carried(range(5000), 0), SeededEntropy(1))
    assert isinstance(outcome, float)
    assert abs(outcome - 5000) < 200
    low, high = total.accuracy.interval(outcome)
    assert low < 5000 < high


def test_the_counts_of_a_batch_carry_the_offset_too():
    law = LAWS[3]
    noise = CountNoise.carried(law, 1)
    batch = batch_by_key(lambda _: [20, 40], ["few", "many"], 30, 0.1, monotone=True).redrawn(carried(law))
    counts = batch.drawing.draw(Carried(None, 11), SeededEntropy(3))
    drawn = noise.draws(SeededEntropy(3), 2)
    expected = [
        noise.lattice * count - noise.weight * 11 + shift for count, shift in zip((20, 40), drawn, strict=True)
    ]
    assert counts == expected
    outcomes = batch.drawing.start(Carried(None, 11), SeededEntropy(3))(0, 2)
    hits = [count >= noise.lattice * 30 for count in counts]
    assert outcomes.hits.tolist() == hits[: len(outcomes.hits)]
    named = batch_by_name(lambda _: [20, 40], ["few", "many"], [10, 30], 0.1, monotone=True).redrawn(carried(law))
    single = redrawn(above_threshold(len, 30, epsilon=0.1, monotone=True), carried(law))
    assert named.algorithms[1].accuracy.interval(None) == single.accuracy.interval(None)
    assert named.algorithms[1].accuracy.interval(50) == single.accuracy.interval(50)


def _brute_force_law(noise):
    """Return the law of fresh noise less the offset's share by adding up both laws, the long way."""
    offset_noise, offset_rate = noise.offset.offset_noise, noise.offset.offset_epsilon / noise.offset.lattice
    rate = noise.rate.numerator / noise.rate.denominator
    law = {}
    fresh, moved = _masses(noise.noise, rate), _masses(offset_noise, offset_rate)
    for shift, likely in moved.items():
        for value, mass in fresh.items():
            place = value - noise.weight * shift
            law[place] = law.get(place, 0.0) + likely * mass
    return law


def _masses(noise, rate):
    if noise == "laplace":
        reach = math.ceil(30 / rate)
        masses = {value: math.tanh(rate / 2) * math.exp(-rate * abs(value)) for value in range(-reach, reach + 1)}
    elif noise == "geometric":
        masses = {value: -math.expm1(-rate) * math.exp(-rate * value) for value in range(math.ceil(30 / rate))}
    else:
        reach = math.ceil(30 / rate)
        masses = {
            value: math.exp(-math.exp(-rate * value)) - math.exp(-math.exp(-rate * (value - 1)))
            for value in range(-math.ceil(4 / rate), reach)
        }
    mean = round(sum(value * mass for value, mass in masses.items()))
    return {value - mean: mass for value, mass in masses.items()}


@pytest.mark.parametrize(
    "law",
    [
        OffsetNoise(6.0, 3.0),
        OffsetNoise(9.0, 4.0, "geometric", "at least"),
        OffsetNoise(9.0, 4.0, "gumbel", "at least"),
        OffsetNoise(9.0, 4.0, "gumbel", "at least", "geometric"),
    ],
    ids=lambda law: f"{law.noise}, {law.offset_noise}",
)
def test_margins_and_deviation_are_those_of_both_laws_together(law):
    noise = CountNoise.carried(law, 1)
    brute = _brute_force_law(noise)
    below, above = noise.margins
    for value in (-below, 0, above, above // 2):
        assert noise.law.at_most(value) == pytest.approx(
            sum(mass for place, mass in brute.items() if place <= value), abs=1e-8
        )
    assert sum(mass for place, mass in brute.items() if place < -below) <= 0.025
    assert sum(mass for place, mass in brute.items() if place <= -below) > 0.025
    assert sum(mass for place, mass in brute.items() if place > above) <= 0.025
    assert sum(mass for place, mass in brute.items() if place >= above) > 0.025
    mean = sum(place * mass for place, mass in brute.items())
    variance = sum((place - mean) ** 2 * mass for place, mass in brute.items())
    assert noise.standard_deviation == pytest.approx(math.sqrt(variance) / noise.lattice, rel=1e-6)
    assert noise.standard_deviation == pytest.approx(law.standard_deviation, rel=1e-6)


def test_an_interval_holds_the_truth_in_95_of_100_draws_offset_included():
    for law in LAWS:
        total = redrawn(noisy_count(len, epsilon=0.1, monotone=True), carried(law))
        source, held = SeededEntropy(5), 0
        for _ in range(3000):
            outcome = total.run(Carried(range(500), draw_offset(source, law)), source)
            low, high = total.accuracy.interval(outcome)
            held += low <= 500 <= high
        assert 0.94 < held / 3000 < 0.975  # rounding makes it a little more; 1% less would be six deviations away


def test_chances_are_those_of_the_noise_and_the_offset():
    law = LAWS[3]
    test = redrawn(above_threshold(lambda count: count, 100, epsilon=0.1, monotone=True), carried(law))
    noise = CountNoise.carried(law, 1)
    for count in (60, 95, 100, 130):
        missed = test.oracle.probability(count, None)
        assert missed == pytest.approx(noise.law.at_most(noise.lattice * (100 - count) - 1), rel=1e-12)
        assert test.oracle.rest(count) == pytest.approx(min(missed, 1 - missed), abs=1e-9) or missed < 0.5


def test_what_may_not_carry_an_offset_is_refused_by_name():
    law = LAWS[3]
    plain = above_threshold(len, 30, epsilon=0.1)
    with pytest.raises(tc.InvalidParameter, match="declared monotone"):
        redrawn(plain, carried(law))
    with pytest.raises(tc.InvalidParameter, match="declared monotone"):
        batch_by_key(lambda _: [1], ["a"], 30, 0.1).redrawn(carried(law))
    with pytest.raises(tc.InvalidParameter, match="monotone is 1; it must be True or False"):
        noisy_count(len, epsilon=0.1, monotone=1)


def test_data_with_an_offset_shows_nothing_of_it():
    assert "987654321987" not in repr(Carried([987654321987], 987654321987))
