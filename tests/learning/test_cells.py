"""Every value has a cell, and which one depends on nothing but the value."""

import datetime as dt
import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import every

import targetcharge as tc
from targetcharge.learning.cells import Codes, Edges, declared, place

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**53, 2**53 + 1, 10**400, 0, 1, 2]),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["a", "b", b"a"]),
    st.complex_numbers(),
    st.lists(st.integers(), max_size=2),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(np.int64, st.integers(-5, 5)),
    st.just(pd.NA),
    st.builds(object),
)
ROWS = st.lists(st.one_of(st.lists(VALUES, max_size=3), VALUES), max_size=6)
FEATURES = [Edges(0, [0, 1.5, 1e300]), Edges(1, [-1]), Codes(0, ["a", 1, b"a"]), Codes(1, [0, 2**53, True])]


@given(ROWS)
def test_a_list_of_anything_has_cells_and_each_row_has_its_own(rows):
    for feature in FEATURES:
        found = feature.place(rows).tolist()
        assert found == [feature.place([row])[0] for row in rows]
        assert all(0 <= cell < feature.size for cell in found)


@given(st.lists(st.floats(), max_size=8), st.sampled_from(["list", "float", "object", "frame"]))
def test_the_same_numbers_have_the_same_cells_in_every_container(numbers, container):
    rows = [[number] for number in numbers]
    kinds = {"list": list, "float": _array, "object": lambda x: np.array(x, dtype=object), "frame": pd.DataFrame}
    table = kinds[container](rows)
    for feature in (Edges(0, [-1.0, 0.0, 2.5]), Codes(0, [0, 1.5, math.inf])):
        expected = [_naive(feature, number) for number in numbers]
        assert feature.place(table).tolist() == expected


@given(st.lists(st.sampled_from(["a", "b", "ba", "", "z"]), max_size=8))
def test_the_same_texts_have_the_same_cells_in_arrays_and_lists(texts):
    codes = ["b", 1, "", "a", b"b"]
    expected = [codes.index(text) if text in codes else 5 for text in texts]
    arrays = [np.array(texts, dtype=kind) for kind in (str, object)]
    for column in (texts, *arrays, pd.Series(texts, dtype=object)):
        assert place(column, codes).tolist() == expected
    assert place(np.array(texts, dtype=str), (1, 2)).tolist() == [2] * len(texts)


def _array(rows):
    return np.array(rows, dtype=float).reshape(len(rows), 1)


def _naive(feature, number):
    if isinstance(feature, Codes):
        return feature.values.index(number) if number in feature.values else len(feature.values)
    return feature.size - 1 if math.isnan(number) else sum(edge <= number for edge in feature.values)


def test_one_odd_row_does_not_change_the_cells_of_others():
    """As an array, the texts in the last row would turn all numbers into texts."""
    rows = [[1, "x"], [2**53 + 1, "y"], [3.5, "x"]]
    age, group = Edges(0, [2, 3]), Codes(1, ["x", "y"])
    for odd in (["one", 7], [None, None], [2.5], [10**400, math.nan], "text", None):
        assert age.place([*rows, odd])[:3].tolist() == age.place(rows).tolist() == [0, 2, 2]
        assert group.place([*rows, odd])[:3].tolist() == group.place(rows).tolist() == [0, 1, 0]


def test_whole_numbers_and_the_floats_that_one_nan_makes_of_them_are_the_same():
    whole = pd.DataFrame({"code": [1, 2, 3]})
    holed = pd.DataFrame({"code": [1, 2, 3, None]})
    code = Codes(0, [3, 1])
    assert code.place(whole).tolist() == code.place(holed)[:3].tolist() == [1, 2, 0]
    assert code.place(holed)[3] == 2
    assert place(holed["code"], (1, 2)).tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_have_the_cells_of_their_columns(frame):
    table = frame(
        {"age": [20.5, None, 70.0], "ward": ["a", None, "z"], "beds": [1, 2, 3], "ok": [True, False, True]}
    )
    features = [Edges(0, [40]), Codes(1, ["a", "b"]), Codes(2, [3.0, 1.0]), Codes(3, [False, True])]
    expected = [[0, 2, 1], [0, 2, 2], [1, 2, 0], [1, 0, 1]]
    assert [feature.place(table).tolist() for feature in features] == expected
    assert [feature.place(frame()).tolist() for feature in features] == [[]] * 4
    assert place(table["ward"], ("z", "a")).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    "edges", [[], (), 3, None, "12", [1, 1], [2, 1], [0, math.nan], [0, math.inf], ["a"], [True, 2], [1, None]]
)
def test_edges_that_are_none(edges):
    with pytest.raises(tc.InvalidParameter, match=r"^edges is .* at least one finite number"):
        Edges(0, edges)


@pytest.mark.parametrize(
    "codes",
    [[], {"a"}, "ab", None, [None], [1, True], [1, 1.0], ["a", "a"], [math.nan], [[1]], [2**53, 2**53 + 1], [1j]],
)
def test_codes_that_are_none(codes):
    with pytest.raises(tc.InvalidParameter, match=r"^codes is .* each once"):
        Codes(0, codes)


@pytest.mark.parametrize("column", [-1, 0.0, "age", True, None])
def test_columns_that_are_none(column):
    for make in (Edges, Codes):
        with pytest.raises(tc.InvalidParameter, match=r"^column is"):
            make(column, [1])


def test_declared_values_are_plain():
    assert Edges(np.int64(2), np.array([1, 2])) == Edges(2, (1.0, 2.0))
    assert declared("classes", np.array(["a", "b"])) == ("a", "b")
    codes = Codes(0, [np.int64(3), np.float64(1), np.str_("x")])
    assert [type(value) for value in codes.values] == [int, float, str]


ODD = [
    1j,
    2 + 0j,
    np.complex64(1),
    None,
    math.nan,
    "x",
    b"x",
    "1",
    True,
    0.5,
    2**70,
    Decimal("1.5"),
    Fraction(3, 2),
    np.datetime64("2024-01-01"),
    np.timedelta64(5, "ns"),
    dt.datetime(2024, 1, 1),
    dt.timedelta(3),
    [],
    {},
    object(),
    np.float16(1),
    np.longdouble(2),
    pd.NaT,
    pd.NA,
]
POOLS = {
    "integers": [0, 1, 2, 3],
    "floats": [0.0, 0.5, 1.0, 2.5],
    "flags": [True, False, True, True],
    "texts": ["a", "b", "a", "c"],
    "times": pd.to_datetime(["2001-01-01", "2020-01-01", "2021-01-01", "2021-01-02"]).tolist(),
    "durations": pd.to_timedelta([1, 2, 3, 10**9], unit="ns").tolist(),
    "large": [2**53, 2**53 + 1, 2**60, 7],
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("feature", [Edges(0, [0.5, 2, 1e18]), Codes(0, [1, 2.5, "a", 7])], ids=["edges", "codes"])
def test_one_records_value_does_not_move_another_ones(pool, feature):
    """Frames and lists with and without one odd record: the cells of all others stay what they were."""
    values = POOLS[pool]
    alone = [feature.place([[value]])[0] for value in values]
    everybody = slice(0, len(values))

    def stay(others, kept):
        assert feature.place([[value] for value in others])[kept].tolist() == alone
        frame = None
        with suppress(ValueError, TypeError):  # pandas itself refuses to put some together
            frame = pd.DataFrame({"value": others})
        assert frame is None or feature.place(frame)[kept].tolist() == alone

    stay(values, everybody)
    every([([*values, odd], everybody) for odd in ODD], stay)
    every([([odd, *values], slice(1, None)) for odd in ODD], stay)


def test_an_array_that_is_no_table_is_refused():
    with pytest.raises(tc.InvalidParameter, match="rows"):
        Edges(0, [1]).place(np.array([1.0, 2.0]))
