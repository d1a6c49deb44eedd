import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from targetcharge.numerics.rounding import GRAINS, down, from_grains, grains_down, grains_up, up
from targetcharge.numerics.search import largest_integer, largest_real, smallest_real


@given(st.integers(0, 10**12))
def test_largest_integer_finds_the_edge(edge):
    assert largest_integer(lambda n: n <= edge) == edge


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_largest_integer_respects_its_limit(edge, limit):
    tried = []

    def good(n):
        tried.append(n)
        return n <= edge

    assert largest_integer(good, limit) == min(edge, limit)
    assert all(n <= limit for n in tried)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_reals_close_in_from_the_good_side(edge, high):
    low_side = largest_real(lambda x: x <= edge, 0.0, high)
    assert low_side <= edge
    assert low_side >= min(edge, high) * (1 - 2e-12)
    high_side = smallest_real(lambda x: x >= edge, 0.0, max(edge, high))
    assert edge <= high_side <= edge * (1 + 2e-12)


def test_reals_at_the_ends():
    assert largest_real(lambda _: True, 0.0, 3.0) == 3.0
    assert smallest_real(lambda _: True, 0.5, 3.0) == 0.5


@given(st.floats(0, 1e6))
def test_grains_round_to_their_side(value):
    assert Fraction(grains_down(value), GRAINS) <= Fraction(value) <= Fraction(grains_up(value), GRAINS)
    assert grains_up(value) - grains_down(value) <= 1
    assert math.isclose(from_grains(grains_up(value)), value, abs_tol=1e-38)


@given(st.floats(1e-300, 1e300))
def test_up_and_down(value):
    assert down(value) < value < up(value)
