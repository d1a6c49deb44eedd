"""The grid: geometric values, moves of one, two, four … steps, edges between their cells."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import targetcharge as tc
from targetcharge.streaming.consensus import Grid

SETTINGS = st.tuples(st.floats(1e-6, 1e6), st.floats(1.01, 1e9), st.floats(0.05, 50.0))
UNHURRIED = settings(deadline=None)


def made(drawn):
    smallest, factor, tolerance = drawn
    return Grid(smallest, smallest * factor, tolerance)


@given(SETTINGS, st.data())
@UNHURRIED
def test_cells_are_in_order_and_staying_is_within_the_tolerance(drawn, data):
    grid = made(drawn)
    place = data.draw(st.integers(0, len(grid.values) - 1))
    moves = grid.moves(place)
    edges, value = moves.edges.tolist(), grid.values[place]
    assert all(low < high for low, high in pairwise(edges))
    assert len(edges) == len(moves.places) - 1
    assert moves.places[moves.here] == place
    for at, (low, high) in enumerate(pairwise([-math.inf, *edges, math.inf])):
        assert low <= grid.values[moves.places[at]] * (1 + 1e-12) < high * (1 + 1e-9)
    if 0 < moves.here < len(edges):
        assert edges[moves.here - 1] == pytest.approx(value / grid.ratio)
        assert edges[moves.here] == pytest.approx(value * grid.ratio)


@given(SETTINGS, st.data())
@UNHURRIED
def test_any_place_is_reached_in_few_moves(drawn, data):
    grid = made(drawn)
    """The candidate that is closest to a goal leaves a third of the steps at most."""
    last = len(grid.values) - 1
    place, goal = (data.draw(st.integers(0, last)) for _ in range(2))
    for _ in range(2 * last.bit_length() + 1):
        moves = grid.moves(place)
        place = min(moves.places.tolist(), key=lambda at: abs(at - goal))
    assert place == goal


@given(SETTINGS)
@UNHURRIED
def test_the_number_of_moves_is_an_upper_bound(drawn):
    grid = made(drawn)
    most = max(len(grid.moves(place).places) - 1 for place in range(len(grid.values)))
    assert most <= grid.most_moves <= 2 * most + 2


@given(SETTINGS)
@UNHURRIED
def test_values_reach_from_the_smallest_to_the_largest(drawn):
    grid = made(drawn)
    assert grid.values[0] == 0
    assert all(high / low == pytest.approx(grid.ratio) for low, high in pairwise(grid.values[1:]))


def test_the_largest_value_is_not_below_the_largest():
    for largest in (1.5, 2.0, 99.0, 100.0, 2.0**53):
        values = Grid(1.0, largest, 0.1).values
        assert values[-2] < largest <= values[-1] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("start", "place"), [(0.0, 0), (0.4, 0), (1.2, 1), (3.9, 3), (4.0, 3), (5.0, 3), (1e20, 3), (1e300, 3)]
)
def test_a_start_is_put_on_the_closest_value(start, place):
    assert Grid(1.0, 4.0, 1.0).place("start", start) == place


@pytest.mark.parametrize("start", [math.nan, -1.0, math.inf, "1", None, True])
def test_a_start_that_is_no_size_is_refused(start):
    with pytest.raises(tc.InvalidParameter, match=r"^start is .* finite number of at least 0$"):
        Grid(1.0, 4.0, 1.0).place("start", start)


@pytest.mark.parametrize("name", ["smallest", "largest", "tolerance"])
@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0, 1e300, 1e-300, 5e-324, 10**400, "1", None, True])
def test_absurd_settings_are_refused_by_name(name, value):
    given_settings = {"smallest": 1.0, "largest": 100.0, "tolerance": 0.1, name: value}
    with pytest.raises(tc.InvalidParameter) as caught:
        Grid(**given_settings)
    assert caught.value.name == name


@pytest.mark.parametrize("tolerance", [1e-12, 1e-16, 1e-5])
def test_too_many_values_are_refused(tolerance):
    with pytest.raises(tc.InvalidParameter, match=r"^tolerance is .* at most 32,768 values"):
        Grid(1.0, 2.0**53, tolerance)


@pytest.mark.parametrize("largest", [1.0, 0.5])
def test_the_largest_must_be_above_the_smallest(largest):
    with pytest.raises(tc.InvalidParameter, match=r"^largest is .*above smallest=1.0"):
        Grid(1.0, largest, 0.1)


def test_extreme_settings_give_values_that_differ():
    for extreme in [(1e-100, 1e100, 1e100), (1e-100, 1e100, 0.1), (1.0, 1 + 1e-9, 1e-12), (1e99, 1e100, 1e100)]:
        values = Grid(*extreme).values
        assert all(math.isfinite(value) for value in values)
        assert len(set(values)) == len(values)
