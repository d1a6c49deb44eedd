"""The functions of the how-to page on choosing, and previews, against sums over Laplace noise."""

import math
from doctest import DocTestParser
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import mpmath
import pandas as pd
import pytest
from tests.sizes import size

import targetcharge as tc
from targetcharge.mechanisms.noise import NoiseLaw, rate_for

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "choosing.md"
RATES = [0.02, 0.1, 0.5, 2.0]
DISTANCES = [-70, -31, -30, -10, -2, -1, 0, 1, 2, 10, 29, 30, 31, 70]


def of_the_page(**known):
    """Return the functions that the page defines, with what they use of it."""
    for example in DocTestParser().get_examples(PAGE.read_text(encoding="utf-8")):
        if example.source.startswith("def "):
            exec(example.source, known)  # noqa: S102 - what readers are told to run
    return SimpleNamespace(**known)


def reaches(distance, rate):
    """Return Pr[noise ≥ distance] of Laplace noise."""
    p = math.exp(-rate)
    return p**distance / (1 + p) if distance >= 0 else 1 - p ** (1 - distance) / (1 + p)


class Law:
    """Discrete Laplace noise with 40 digits, its definition added up."""

    def __init__(self, rate):
        self.reach = math.ceil(100 / rate) + 100  # beyond it lies less than 1e-40, also of a tail from 100 on
        with mpmath.workdps(40):
            self.p = mpmath.exp(-mpmath.mpf(rate))
            powers = [mpmath.mpf(1)]
            while len(powers) <= self.reach:
                powers.append(powers[-1] * self.p)
            total = powers[0] + 2 * mpmath.fsum(powers[1:])
            self.masses = {z: powers[abs(z)] / total for z in range(-self.reach, self.reach + 1)}

    def mean(self, value, event):
        """Return E[value(z); event(z)]."""
        with mpmath.workdps(40):
            return mpmath.fsum(value(z) * mass for z, mass in self.masses.items() if event(z))

    def chance(self, event):
        return self.mean(lambda _: 1, event)


LAWS = {rate: Law(rate) for rate in RATES}


def close(found, truth, *, absolute=1e-13):
    return found == pytest.approx(float(truth), rel=1e-11, abs=absolute)


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("distance", [-12, -1, 0, 1, 12])
def test_the_tail_is_exact_in_fractions(p, distance):
    """Of Pr[z] = (1-p)/(1+p)·p^|z| only the far tail is not added up: it is a geometric series."""
    far = 40
    added = sum(((1 - p) / (1 + p) * p ** abs(z) for z in range(distance, far)), Fraction(0))
    truth = added + p**far / (1 + p)
    assert truth == (p**distance / (1 + p) if distance >= 0 else 1 - p ** (1 - distance) / (1 + p))
    assert close(reaches(distance, -math.log(p)), truth)


@pytest.mark.parametrize("rate", RATES)
def test_both_tails_are_those_of_the_noise(rate):
    law = LAWS[rate]
    for distance in range(-80, 80, size(5, 1)):
        assert close(reaches(distance, rate), law.chance(lambda z, d=distance: z >= d))


def chances(rate):
    """Return what happens to a number so far from the threshold, as the page has it."""
    return {
        far: SimpleNamespace(hit=reaches(-far, rate), miss=1 - reaches(-far, rate) if far >= 0 else None)
        for far in range(-2_000, 2_000)
    }


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("keys", [1, 345, 1_000_000])
@pytest.mark.parametrize("alarms", [0.01, 1, 10])
def test_the_quiet_margin_is_the_smallest_that_keeps_false_alarms_as_few(rate, keys, alarms):
    margin, law = of_the_page().quiet_margin(chances(rate), keys, alarms), LAWS[rate]
    assert keys * law.chance(lambda z: z >= margin) <= alarms * (1 + 1e-9)
    assert margin == 1 or keys * law.chance(lambda z: z >= margin - 1) > alarms * (1 - 1e-9)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("chance", [0.4, 0.1, 0.01, 1e-6])
def test_the_event_margin_is_the_smallest_that_keeps_misses_as_rare(rate, chance):
    margin, law = of_the_page().event_margin(chances(rate), chance), LAWS[rate]
    assert law.chance(lambda z: z < -margin) <= chance * (1 + 1e-9)
    assert margin == 0 or law.chance(lambda z: z < -margin + 1) > chance * (1 - 1e-9)


def of_published(rate, wide):
    """Return the functions about published numbers, whose intervals reach so far either way."""
    tails = {far: reaches(far, rate) for far in range(-2_000, 2_000)}
    return of_the_page(reaches=tails, below=wide, above=wide)


@pytest.mark.parametrize("rate", [rate for rate in RATES if rate >= 0.5])  # the page leaves out what is beyond 150
@pytest.mark.parametrize("distance", DISTANCES)
def test_the_bias_is_the_mean_of_the_noise_of_published_numbers(rate, distance):
    law = LAWS[rate]
    truth = law.mean(lambda z: z, lambda z: z >= -distance) / law.chance(lambda z: z >= -distance)
    assert close(of_published(rate, 0).bias(distance), truth, absolute=1e-9)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("distance", DISTANCES)
def test_the_coverage_is_that_of_published_numbers(rate, distance):
    law, wide = LAWS[rate], NoiseLaw(rate).margin()
    truth = law.chance(lambda z: z >= -distance and abs(z) <= wide) / law.chance(lambda z: z >= -distance)
    assert of_published(rate, wide).coverage(distance) == pytest.approx(float(truth), abs=1e-12)
    assert truth >= 0.95 if distance >= 0 else truth < 0.95 or distance > -wide
    assert (truth == 0) == (distance < -wide)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("below", [1, 7, 40])
@pytest.mark.parametrize("excess", [0, 1, 5, 30])
def test_false_alarms_exceed_the_threshold_alike_from_wherever_they_come(rate, below, excess):
    law = LAWS[rate]
    truth = law.chance(lambda z: z >= below + excess) / law.chance(lambda z: z >= below)
    assert close(math.exp(-rate * excess), truth, absolute=0)


@pytest.fixture(scope="module")
def table():
    """A table whose counts carry no offset: the formulas are those of Laplace noise alone."""
    rows = pd.DataFrame({"u": [1, 2], "key": [1, 2], "cost": [1.5, 2.5]})
    with tc.open(
        rows, "u", tc.Budget(4.0, 1e-6), query_epsilon=0.1, meter="renyi", charging="individual"
    ) as opened:
        yield opened


@pytest.mark.parametrize("epsilon", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("batch", [False, True])
def test_a_preview_says_what_the_formulas_say(table, epsilon, batch):
    single, watch = tc.questions.above(None, 1000), tc.questions.watch(None, "key", range(365), 1000)
    seen = table.preview(watch if batch else single, DISTANCES, epsilon=epsilon)
    for chance, above in zip(seen.chances, DISTANCES, strict=True):
        if above < 0:
            assert chance.false_alarm == pytest.approx(reaches(-above, epsilon), rel=1e-7)
        else:
            assert chance.miss == pytest.approx(reaches(above + 1, epsilon), rel=1e-7)
        assert chance.hit == pytest.approx(reaches(-above, epsilon), rel=1e-7)
    assert seen.scale == pytest.approx(1 / epsilon, rel=1e-7)
    assert seen.margin == NoiseLaw.of(rate_for(epsilon, 1)).margin()


@pytest.mark.parametrize(("lower", "upper", "grid"), [(0, 700, 1), (-500, 100, 1), (0, 20, "0.01")])
def test_a_preview_of_a_sum_says_what_the_formulas_say_in_steps(table, lower, upper, grid):
    step = float(grid)
    rate = 0.1 * step / max(abs(lower), abs(upper))
    asked = tc.questions.above(tc.questions.sum("cost", lower, upper, grid=grid), 100)
    below, above = table.preview(asked, [-300, 300]).chances
    assert below.false_alarm == pytest.approx(reaches(round(300 / step), rate), rel=1e-7)
    assert above.miss == pytest.approx(reaches(round(300 / step) + 1, rate), rel=1e-7)


@pytest.mark.parametrize("width", [5, 11, 41, 61])
def test_a_preview_of_a_band_says_how_often_its_middle_is_inside(table, width):
    half = width // 2
    (middle,) = table.preview(tc.questions.between(None, 100, 100 + width - 1), [half]).chances
    assert middle.hit == pytest.approx(1 - 2 * reaches(half + 1, 0.1), rel=1e-7)
    assert close(middle.hit, LAWS[0.1].chance(lambda z: abs(z) <= half), absolute=1e-7)


def test_the_winner_of_many_alike_is_as_much_too_high_as_top_says():
    """E[max] of 300 draws: each value times the chance that the largest is just that."""
    p, n, law = math.exp(-0.1), 300, LAWS[0.1]
    below, truth = mpmath.mpf(0), mpmath.mpf(0)
    for value in sorted(law.masses):
        upto = below + law.masses[value]
        truth += value * (upto**n - below**n)
        below = upto
    assert close(sum(1 - (1 - p**d / (1 + p)) ** n for d in range(1, 1_000)), truth, absolute=1e-9)


def test_all_noises_stay_as_small_as_top_says():
    p, n, beta, law = math.exp(-0.1), 306, 0.01, LAWS[0.1]
    wide = math.ceil(math.log(2 * n / ((1 + p) * beta)) / 0.1)
    assert 1 - law.chance(lambda z: abs(z) < wide) ** n <= beta
    assert 1 - law.chance(lambda z: abs(z) < wide - 1) ** n > beta
