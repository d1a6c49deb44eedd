"""The laws of integer noises: one suite for all of them, against the definitions in mpmath's arithmetic."""

import math
from functools import cache, partial
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from tests.sizes import size

from targetcharge.errors import InvalidParameter
from targetcharge.randomness import GaussianLaw, GeometricLaw, GumbelLaw, LaplaceLaw, Rate
from targetcharge.randomness.laws import law_of

DIGITS = 60

# Pr[X ≤ k] of each law, from its definition, with p = e^-rate.


def laplace_at_most(p, value):
    return p**-value / (1 + p) if value < 0 else 1 - p ** (value + 1) / (1 + p)


def geometric_at_most(p, value):
    return mpmath.mpf(0) if value < 0 else 1 - p ** (value + 1)


def gumbel_at_most(p, value):
    return mpmath.exp(-(p**value))


@cache
def gaussian_sums(p):
    """Return Σ_{j≥k} e^{-j²·rate²/2} for k = 0, 1, … up to terms of 10^-390, each made from the one before."""
    rate = -mpmath.log(p)
    terms, factor, shrink = [mpmath.mpf(1)], mpmath.exp(-(rate**2) / 2), mpmath.exp(-(rate**2))
    while terms[-1] > mpmath.mpf(10) ** -390:
        terms.append(terms[-1] * factor)
        factor *= shrink
    return [*accumulate(reversed(terms))][::-1]


def gaussian_above(p, value):
    """Return Pr[X ≥ value] for a value above 0.

    At a rate of 1e-9 there are too many terms. There the sum of f(x) = e^{-x²·rate²/2} from a value on is its
    integral from value - ½ on but for a relative (rate²·value)²/8: 2·10^-16 where f is 10^-300. The sum of
    all terms is √(2π)/rate.
    """
    rate = -mpmath.log(p)
    if rate < mpmath.mpf(10) ** -8:
        return mpmath.erfc((value - mpmath.mpf(1) / 2) * rate / mpmath.sqrt(2)) / 2
    sums = gaussian_sums(p)
    return sums[value] / (2 * sums[0] - 1) if value < len(sums) else mpmath.mpf(0)


def gaussian_at_most(p, value):
    return gaussian_above(p, -value) if value < 0 else 1 - gaussian_above(p, value + 1)


AT_MOST = {
    LaplaceLaw: laplace_at_most,
    GeometricLaw: geometric_at_most,
    GumbelLaw: gumbel_at_most,
    GaussianLaw: gaussian_at_most,
}
RATES = [
    Rate.at_most(1e-9),
    *(Rate.at_most(rate) for rate in (0.01, 0.1, 0.24999, 0.25, 0.3, 1.0, 5.0)),
    Rate(10, 1),
    Rate(50, 1),
]

each_law = pytest.mark.parametrize("law_class", AT_MOST)
each_rate = pytest.mark.parametrize("rate", RATES, ids=lambda rate: f"{rate.numerator / rate.denominator:.5g}")


@pytest.fixture(autouse=True)
def many_digits():
    """Tails of 1e-300 are taken from 1: so many digits are right in what is left."""
    with mpmath.workdps(DIGITS + 320):
        yield


def decay(rate):
    return mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)


def near(found, truth, relative=1e-12):
    return abs(found - truth) <= relative * abs(truth)


def values_of(rate):
    """Return values in the middle and in both tails, as far as probabilities are normal doubles."""
    scaled = (-650, -100, -37, -20, -6.4, -3, -1, -0.1, 0, 0.3, 1, 4, 20, 37, 100, 650)
    middle = {round(exponent * rate.denominator / rate.numerator) for exponent in scaled}
    return sorted(middle | {-2, -1, 0, 1, 2})


def check_precise(law, at_most, value):
    below, here = at_most(value - 1), at_most(value)
    if here > 1e-300:
        assert near(law.at_most(value), here), value
    if here - below > 1e-300:
        assert near(law.mass(value), here - below), value
    if 1 - below > 1e-300:
        assert near(law.at_least(value), 1 - below), value


@each_law
@each_rate
def test_masses_and_tails_are_precise_on_both_sides(law_class, rate):
    law, p = law_class.of(rate), decay(rate)
    for value in values_of(rate):
        if law_class is GumbelLaw and float(p) ** value > 680:
            assert law.at_most(value) == law.mass(value) == 0
            assert law.at_least(value) == 1
            continue
        check_precise(law, partial(AT_MOST[law_class], p), value)


BORDER = Rate(1, 512)
"""The smallest rate at which the tails of Gaussian noise are added up."""


@pytest.mark.parametrize(
    "rate",
    [*(Rate.at_most(rate) for rate in (0.0004, 0.001)[size(1, 0) :]), Rate(2**31 - 1, 2**40), BORDER, Rate(5, 2)],
    ids=lambda rate: f"{rate.numerator / rate.denominator:.8g}",
)
def test_gaussian_tails_are_precise_on_both_sides_of_the_rate_where_the_way_changes(rate):
    law, p = GaussianLaw.of(rate), decay(rate)
    for value in (*values_of(rate), *range(3, 10)):
        check_precise(law, partial(gaussian_at_most, p), value)
    with mpmath.workdps(DIGITS):
        square = mpmath.fsum((2 * place + 1) * above for place, above in enumerate(gaussian_sums(p)[1:]))
        assert near(law.variance, 2 * square / (2 * gaussian_sums(p)[0] - 1))


@each_law
@each_rate
def test_an_array_has_the_probabilities_of_its_values(law_class, rate):
    law = law_class.of(rate)
    values = [value for value in values_of(rate) if abs(value) < 2**53]
    array = np.array(values, dtype=np.float64)
    for alone, many in ((law.at_most, law.at_most_array(array)), (law.at_least, law.at_least_array(array))):
        assert many.tolist() == pytest.approx([alone(value) for value in values], rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("law_class", [LaplaceLaw, GaussianLaw])
@each_rate
@pytest.mark.parametrize("confidence", [0.001, 0.5, 0.95, 1 - 1e-9])
def test_a_margin_is_the_smallest_that_is_exceeded_rarely_enough(law_class, rate, confidence):
    law, above = law_class.of(rate), partial(AT_MOST[law_class], decay(rate))
    margin = law.margin(confidence)
    assert law.margins(confidence) == (margin, margin)
    assert 2 * above(-margin - 1) <= 1 - mpmath.mpf(confidence)
    assert margin == 0 or 2 * above(-margin) > 1 - mpmath.mpf(confidence)


def test_a_law_is_known_by_the_name_of_its_noise():
    names = {"laplace": LaplaceLaw, "geometric": GeometricLaw, "gumbel": GumbelLaw, "gaussian": GaussianLaw}
    for name, law_class in names.items():
        assert law_of(name, Rate(1, 8)) == law_class(0.125)


@each_law
@pytest.mark.parametrize("rate", [1e-9, 0.1])
def test_values_beyond_all_doubles_are_as_unlikely_as_they_look(law_class, rate):
    law, far = law_class(rate), 10**400
    assert law.mass(far) == law.mass(-far) == law.at_least(far) == law.at_most(-far) == 0
    assert law.at_least(-far) == law.at_most(far) == 1


@each_law
@pytest.mark.parametrize("rate", [rate for rate in RATES if rate.denominator < 2**40], ids=str)
def test_moments_are_those_of_the_law(law_class, rate):
    """By adding up the tails: E[X] = Σ_{k≥0} Pr[X > k] - Σ_{k<0} Pr[X ≤ k], and E[X²] likewise."""
    law, p, at_most = law_class.of(rate), decay(rate), AT_MOST[law_class]
    with mpmath.workdps(DIGITS):
        mean = square = mpmath.mpf(0)
        for value in range(math.ceil(60 * rate.denominator / rate.numerator) + 2):
            above, below = 1 - at_most(p, value), at_most(p, -value - 1)
            mean += above - below
            square += (2 * value + 1) * (above + below)
        assert law.mean == 0 if law_class in {LaplaceLaw, GaussianLaw} else near(law.mean, mean)
        variance = square - mean**2
        assert near(law.variance, variance) or law.variance < variance < 1e-300


@each_law
def test_moments_of_small_rates_are_those_of_continuous_laws(law_class):
    law = law_class(1e-9)
    mean, variance = {
        LaplaceLaw: (0, 2),
        GeometricLaw: (1, 1),
        GumbelLaw: (np.euler_gamma, math.pi**2 / 6),
        GaussianLaw: (0, 1),
    }[law_class]
    assert law.mean * 1e-9 == pytest.approx(mean, rel=1e-8)
    assert law.variance * 1e-18 == pytest.approx(variance, rel=1e-8)


@each_law
@each_rate
def test_a_quantile_is_the_first_value_that_is_likely_enough(law_class, rate):
    law, p, at_most = law_class.of(rate), decay(rate), AT_MOST[law_class]
    rng = np.random.default_rng(1)
    small = [1e-300, 1e-30, 1e-9, *(10 ** rng.uniform(-20, 0, size(10, 200))).tolist()]
    for probability in [*small, 0.5, *(1 - each for each in small if 0 < 1 - each < 1)]:
        found = law.quantile(probability)
        truth = mpmath.mpf(probability)
        for value, reached in ((found, True), (found - 1, False)):
            exact = at_most(p, value)
            doubtful = near(exact, truth) and near(1 - exact, 1 - truth)
            assert doubtful or (exact >= truth) == reached, (probability, found)


@each_law
@each_rate
def test_a_quantile_goes_back_from_the_probability_of_a_value(law_class, rate):
    law = law_class.of(rate)
    for value in values_of(rate):
        if law.at_most(value - 1) < law.at_most(value) <= 0.5:
            assert law.quantile(law.at_most(value)) == value


@each_law
@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 1.1, math.nan, math.inf])
def test_the_probability_of_a_quantile_is_above_0_and_below_1(law_class, probability):
    with pytest.raises(InvalidParameter, match=r"probability is .* above 0 and below 1"):
        law_class(0.1).quantile(probability)
