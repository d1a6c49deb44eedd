"""Noise in floating point and noise that is cut off fall at the default number of runs; on a grid it passes."""

import math

import numpy as np
import pytest
from tests.audit.sampling import float_laplace as laplace
from tests.sizes import LONG, size

import targetcharge as tc
from targetcharge.audit import black_box
from targetcharge.audit.sampling import float_noise
from targetcharge.audit.sampling.float_noise import FloatNoise, digits, likely_noises
from targetcharge.randomness import Rate, discrete_laplace

RUNS = size(8_000, 20_000)
"""Of what needs fewer than the default: the guide's examples run with that."""

SURE = 1 - 1e-9
"""The confidence at which what is right must pass, so that it fails once in a thousand million audits at most."""

DIRECT = [laplace.by_logarithm, laplace.by_numpy, laplace.by_sign, laplace.by_single_precision]


def audited(run, data, epsilon, **options):
    return black_box(run, *data, tc.Budget(epsilon, 0.0), relation="any", workers=1, **options)


CASES = [
    *((noise, 1.0, (10, 9)) for noise in DIRECT),
    (laplace.by_logarithm, 0.1, (100, 99)),
    (laplace.by_numpy, 0.5, (7, 8)),
    (laplace.by_sign, 2.0, (10, 9)),
]


@pytest.mark.parametrize(("noise", "epsilon", "data"), CASES)
def test_the_digits_behind_float_noise_are_flagged(noise, epsilon, data):
    """Hundreds of counted runs on one input publish what the other cannot; 66 would do."""
    verdict = audited(lambda number: number + noise(1 / epsilon), data, epsilon, runs=RUNS)
    assert not verdict.passed
    assert verdict.attained > epsilon + 0.5
    assert "bit" in verdict.worst or "digits behind" in verdict.worst


@pytest.mark.parametrize("noise", [laplace.by_numpy, laplace.by_difference], ids=lambda noise: noise.__name__)
def test_the_same_noise_on_a_grid_passes(noise):
    verdict = audited(lambda number: laplace.on_a_grid(number + noise(1.0)), (10, 9), 1.0, confidence=SURE)
    assert verdict.passed
    assert verdict.attained > 0.75


def test_float_noise_around_a_statistic_of_the_data_is_flagged():
    data = [40.1, 30.7, 0.33, 1.11], [40.1, 30.7, 0.33]
    verdict = audited(lambda rows: sum(rows) + laplace.by_logarithm(1.2), data, 1.0, runs=RUNS)
    assert not verdict.passed
    assert "digits behind the answer" in verdict.worst


def test_float_noise_in_one_of_many_answers_is_flagged():
    def answers(number):
        return ["count", {"exact": 3, "noisy": number + laplace.by_numpy(1.0)}]

    verdict = audited(answers, (10, 9), 1.0, runs=RUNS)
    assert not verdict.passed
    assert "digits behind answer" in verdict.worst


def test_low_bits_beside_the_size_are_flagged():
    """No logarithm to undo, but between 1 and 2 there is half a bit more from 9 than from 10 at ε = 0.1."""
    verdict = audited(lambda number: number + laplace.by_difference(10.0), (10, 9), 0.1)
    assert not verdict.passed
    assert "the size and the lowest bit" in verdict.worst


CUTS = [
    (0.1, 4, laplace.clamped),
    (0.5, 4, laplace.drawn_again),
    (1.0, 5, laplace.clamped),
    (1.0, 5, laplace.drawn_again),
    (2.0, 5, laplace.drawn_again),
]


@pytest.mark.parametrize(("epsilon", "cut", "noise"), CUTS)
def test_noise_that_is_cut_off_is_flagged(epsilon, cut, noise):
    """On both inputs: each tail is enough by itself all but once in 10,000 times."""
    verdict = audited(lambda number: laplace.on_a_grid(number + noise(1 / epsilon, cut)), (10, 9), epsilon)
    assert not verdict.passed


def test_what_is_too_rare_is_said_and_more_runs_show_it():
    """Cut off at 4 scales, drawn again: at ε = 0.1 one run in 1,000 tells, at 3 scales three; 13 must be seen."""
    scales, enough = (4, 120_000) if LONG else (3, 24_000)

    def run(number):
        return laplace.on_a_grid(number + laplace.drawn_again(10.0, scales))

    few = audited(run, (10, 9), 0.1, runs=4_000)
    assert few.passed
    assert "a chance below 0.89%" in few.worst
    assert "it must be seen 13 times in the counted runs; what is ten times rarer" in few.worst
    assert not audited(run, (10, 9), 0.1, runs=enough).passed


def test_exact_noise_passes():
    @tc.private(epsilon=1.0)
    def count(rows, entropy):
        return len(rows) + discrete_laplace(entropy, Rate.at_most(1.0)) / 1

    assert black_box(count, ["row"] * 10, ["row"] * 9, confidence=SURE, workers=1).passed


def test_noises_are_told_by_their_digits_and_nothing_is_where_there_is_none():
    rng = np.random.default_rng(1)
    data = (10, 9.25)
    direct = [rng.laplace(centre, 3.0, 4_000) for centre in data]
    noises = likely_noises(direct, data, 0.7)
    assert [noise.centre for noise in noises] == [10.0, 9.25]
    assert [noise.scale for noise in noises] == pytest.approx([3.0, 3.0], rel=1e-15)
    smeared = [centre + rng.exponential(3.0, 4_000) - rng.exponential(3.0, 4_000) for centre in data]
    assert likely_noises(smeared, data, 0.7) == []
    assert likely_noises(([1.5] * 100, [0.5] * 10), data, 0.7) == []


@pytest.mark.parametrize("value", [None, "text", True, math.inf, -math.inf, math.nan, 1e300])
def test_what_is_no_float_near_the_centre_has_no_digits(value):
    assert digits(value, FloatNoise(0.0, 1.0)) is None


def test_digits_are_those_of_the_uniform_number():
    for length in (1, 5, 20, 40):
        t = 1 - 2.0**-length
        assert digits(100 - math.log(t), FloatNoise(100.0, 1.0)) == length
    assert digits(100, FloatNoise(100.0, 1.0)) == 0


def test_where_no_round_scale_is_near_nothing_is_looked_for(monkeypatch):
    """With millions of runs the scale is known so well that no number of two digits may be near it."""
    monkeypatch.setattr(float_noise, "_WINDOW", 1e-3)
    values = np.random.default_rng(1).normal(10, 1.3, 4_000)
    assert likely_noises((values, values), (10, 10), 0.7) == []
