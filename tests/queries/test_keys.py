"""Declared keys: each becomes a value that its column can have, once; anything else is refused by its place."""

import datetime as dt
import enum
import json
import math
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queries.patients import SCHEMA
from tests.queries.trees import check_value

from targetcharge.errors import InvalidKey, InvalidParameter
from targetcharge.outcomes import MISSING, canonical_json, from_plain, to_plain
from targetcharge.queries.keys import MOST_KEYS, KeyRange, Keys, Period, days, declare, from_published, hours
from targetcharge.queries.tree import Column, Exact, Kind

D, T = dt.date, dt.datetime
DAY, NEXT = D(2024, 1, 31), D(2024, 2, 1)
EIGHT, NINE = T(2024, 1, 31, 8), T(2024, 1, 31, 9)
NANOSECOND = "2024-01-31T08:00:00.000000001"


class County(enum.StrEnum):
    KENT = "Kent"


ONE_COLUMN = [
    ("age", [1, -2], [1, -2], None),
    ("AGE", (1, -2), [1, -2], None),
    (["age"], range(3), [0, 1, 2], None),
    ("age", [1.0, Decimal("2.00"), np.int8(3), np.float64(4)], [1, 2, 3, 4], None),
    ("age", [-128, 127], [-128, 127], None),
    ("visits", [2**63 - 1, float(2**53)], [2**63 - 1, 2**53], None),
    ("price", [0.1, 1, Decimal("9.99"), -0.07, 1e3, Decimal("1E+2")], [10, 100, 999, -7, 100000, 10000], None),
    ("bmi", [1, 2.5, -0.0, np.float32(0.5), 1e300], [1.0, 2.5, 0.0, 0.5, 1e300], None),
    ("diagnosis", ["flu", "", "it's", np.str_("cold"), County.KENT], ["flu", "", "it's", "cold", "Kent"], None),
    ("smoker", [True, np.False_], [True, False], None),
    (
        "born",
        [DAY, "2024-02-01", T(2024, 2, 2), np.datetime64("2024-02-03")],
        [DAY, NEXT, D(2024, 2, 2), D(2024, 2, 3)],
        None,
    ),
    ("born", days("2024-01-31", NEXT), [DAY, NEXT], None),
    (
        "seen",
        [EIGHT, "2024-01-31 09:00", np.datetime64("2024-01-31T10", "ns")],
        [EIGHT, NINE, T(2024, 1, 31, 10)],
        None,
    ),
    ("seen", [EIGHT.replace(fold=1), pd.Timestamp(NINE)], [EIGHT, NINE], None),
    ("seen", [DAY, "2024-02-01"], [DAY, NEXT], Period.DAY),
    ("seen", ["2024-01-31", NEXT], [DAY, NEXT], Period.DAY),
    ("seen", days(DAY, NEXT), [DAY, NEXT], Period.DAY),
    ("seen", hours(EIGHT, "2024-01-31 09:00"), [EIGHT, NINE], Period.HOUR),
    # Rows without a value.
    ("age", [None, 0], [None, 0], None),
    ("diagnosis", ["NULL", MISSING, "None"], ["NULL", None, "None"], None),
    ("smoker", [None], [None], None),
    ("seen", [None, DAY], [None, DAY], Period.DAY),
    ("seen", [EIGHT, None], [EIGHT, None], None),
    ("bmi", pl.Series([0.5, None]), [0.5, None], None),
    # Arrays and series.
    ("age", np.array([1, 2], dtype="int8"), [1, 2], None),
    ("age", pd.Series([1, 2]), [1, 2], None),
    ("age", pd.Index([1, 2]), [1, 2], None),
    ("age", pl.Series([1, 2]), [1, 2], None),
    ("age", pa.array([1, 2]), [1, 2], None),
    ("age", pa.chunked_array([[1], [2]]), [1, 2], None),
    ("bmi", np.array([0.5, 2], dtype="float32"), [0.5, 2.0], None),
    ("diagnosis", np.array(["flu", "cold"]), ["flu", "cold"], None),
    ("diagnosis", pd.Series(["flu", "cold"], dtype="category"), ["flu", "cold"], None),
    ("diagnosis", pl.Series(["flu", "cold"]), ["flu", "cold"], None),
    ("smoker", np.array([True, False]), [True, False], None),
    ("born", pd.date_range(DAY, NEXT), [DAY, NEXT], None),
    ("born", np.array([DAY, NEXT], dtype="datetime64[D]"), [DAY, NEXT], None),
    ("seen", np.array([DAY, NEXT], dtype="datetime64[D]"), [DAY, NEXT], Period.DAY),
    ("seen", np.array([EIGHT, NINE], dtype="datetime64[ns]"), [EIGHT, NINE], None),
    ("seen", pd.date_range(EIGHT, NINE, freq="h"), [EIGHT, NINE], None),
    ("seen", pl.Series([EIGHT, NINE]), [EIGHT, NINE], None),
    ("seen", pl.Series([DAY, NEXT]), [DAY, NEXT], Period.DAY),
    ("seen", pa.array([EIGHT, NINE]), [EIGHT, NINE], None),
]


@pytest.mark.parametrize(
    ("by", "keys", "values", "period"), ONE_COLUMN, ids=[str(number) for number in range(len(ONE_COLUMN))]
)
def test_keys_of_one_column(by, keys, values, period):
    found = declare(by, keys, SCHEMA)
    column = SCHEMA[(by if isinstance(by, str) else by[0]).lower()]
    assert repr(found) == repr(Keys((column,), tuple((value,) for value in values), period))
    if period is None:
        for value in values:
            assert value is None or check_value(column, value) is None


def test_keys_of_two_columns():
    age, diagnosis, seen = SCHEMA["age"], SCHEMA["diagnosis"], SCHEMA["seen"]
    keys = [(1, "flu"), (2, "flu"), [1, "cold"]]
    assert declare(["age", "Diagnosis"], keys, SCHEMA) == Keys(
        (age, diagnosis), ((1, "flu"), (2, "flu"), (1, "cold"))
    )
    assert declare(("seen", "age"), [(EIGHT, 1)], SCHEMA) == Keys((seen, age), ((EIGHT, 1),))
    index = pd.MultiIndex.from_product([[1, 2], ["flu"]])
    assert declare(["age", "diagnosis"], index, SCHEMA).values == ((1, "flu"), (2, "flu"))
    assert declare(["age", "visits"], np.array([[1, 2], [3, 4]]), SCHEMA).values == ((1, 2), (3, 4))


NUMBER = "a number from -128 to 127 in steps of 1, as age is"
CENTS = "a number from -9999999.99 to 9999999.99 in steps of 0.01, as price is"
DOUBLE = "a finite number in double precision, as bmi is"
DATE = "a date, as born is: a datetime.date, or text such as '2024-01-31'"
TIME = "a time without a zone, as seen is: a datetime, or text such as '2024-01-31 08:00'"
LIST = "a list of keys, or a range of days or hours"
PAIR = "a pair, with a value for each column"
BAD_KEYS = [
    ("age", [1, "2"], f"keys[1] is '2'; it must be {NUMBER}"),
    ("age", [1, 2.5], f"keys[1] is 2.5; it must be {NUMBER}"),
    ("age", [128], f"keys[0] is 128; it must be {NUMBER}"),
    ("age", [-129.0], f"keys[0] is -129.0; it must be {NUMBER}"),
    ("age", [True], f"keys[0] is True; it must be {NUMBER}"),
    ("age", [np.True_], f"keys[0] is True; it must be {NUMBER}"),
    ("age", ["NULL"], f"keys[0] is 'NULL'; it must be {NUMBER}"),
    ("age", [math.nan], f"keys[0] is nan; it must be {NUMBER}"),
    ("age", [math.inf], f"keys[0] is inf; it must be {NUMBER}"),
    ("age", [Decimal("NaN")], f"keys[0] is NaN; it must be {NUMBER}"),
    ("age", [Decimal("sNaN")], f"keys[0] is sNaN; it must be {NUMBER}"),
    ("age", [Decimal("1e999999")], f"keys[0] is 1E+999999; it must be {NUMBER}"),
    ("age", [Decimal(1) + Decimal("1e-27")], f"keys[0] is 1.000000000000000000000000001; it must be {NUMBER}"),
    ("age", [Decimal("1." + "0" * 150 + "1")], "keys[0] is 1.0000"),
    ("age", [1j], f"keys[0] is 1j; it must be {NUMBER}"),
    ("age", [[1]], f"keys[0] is <list>; it must be {NUMBER}"),
    ("age", [object()], f"keys[0] is <object>; it must be {NUMBER}"),
    ("age", pd.Series([1, None]), f"keys[1] is nan; it must be {NUMBER}"),
    ("price", [0.125], f"keys[0] is 0.125; it must be {CENTS}"),
    ("price", [Decimal("0.001")], f"keys[0] is 0.001; it must be {CENTS}"),
    ("bmi", [math.nan], f"keys[0] is nan; it must be {DOUBLE}"),
    ("bmi", [-math.inf], f"keys[0] is -inf; it must be {DOUBLE}"),
    ("bmi", [2**53 + 1], f"keys[0] is 9007199254740993; it must be {DOUBLE}"),
    ("bmi", [10**400], "…; it must be a finite number in double precision"),
    ("bmi", ["1"], f"keys[0] is '1'; it must be {DOUBLE}"),
    ("bmi", [False], f"keys[0] is False; it must be {DOUBLE}"),
    ("diagnosis", ["flu", 5], "keys[1] is 5; it must be text, as diagnosis is"),
    ("diagnosis", ["flu\0"], "keys[0] is 'flu\\x00'; it must be text, as diagnosis is"),
    ("diagnosis", ["\ud800"], "keys[0] is '\\ud800'; it must be text"),
    ("diagnosis", [b"flu"], "keys[0] is b'flu'; it must be text"),
    ("smoker", [1], "keys[0] is 1; it must be True or False, as smoker is"),
    ("smoker", ["TRUE"], "keys[0] is 'TRUE'; it must be True or False"),
    ("born", [EIGHT], f"keys[0] is 2024-01-31 08:00:00; it must be {DATE}"),
    ("born", ["2024-1-31"], f"keys[0] is '2024-1-31'; it must be {DATE}"),
    ("born", ["2023-02-29"], f"keys[0] is '2023-02-29'; it must be {DATE}"),
    ("born", ["2024-01-31 00:00"], f"keys[0] is '2024-01-31 00:00'; it must be {DATE}"),
    ("born", [20240131], f"keys[0] is 20240131; it must be {DATE}"),
    ("born", [pd.NaT], f"keys[0] is NaT; it must be {DATE}"),
    ("seen", ["08:00"], f"keys[0] is '08:00'; it must be {TIME}"),
    ("seen", [EIGHT.replace(tzinfo=dt.UTC)], f"keys[0] is 2024-01-31 08:00:00+00:00; it must be {TIME}"),
    ("seen", ["2024-01-31 08:00Z"], f"keys[0] is '2024-01-31 08:00Z'; it must be {TIME}"),
    (
        "seen",
        pd.date_range(EIGHT, NINE, freq="h", tz="UTC"),
        f"keys[0] is 2024-01-31 08:00:00+00:00; it must be {TIME}",
    ),
    ("seen", [pd.Timestamp(NANOSECOND)], f"keys[0] is 2024-01-31 08:00:00.000000001; it must be {TIME}"),
    ("seen", [np.datetime64(NANOSECOND)], f"keys[0] is <datetime64>; it must be {TIME}"),
    ("seen", np.array([NANOSECOND], dtype="datetime64[ns]"), f"keys[0] is <datetime64>; it must be {TIME}"),
    ("seen", np.array([EIGHT, "NaT"], dtype="datetime64[us]"), f"keys[1] is <datetime64>; it must be {TIME}"),
    ("seen", [pd.NaT], f"keys[0] is NaT; it must be {TIME}"),
    ("seen", [EIGHT, DAY], f"keys[1] is 2024-01-31; it must be {TIME}"),
    (
        "seen",
        [DAY, EIGHT],
        "keys[1] is 2024-01-31 08:00:00; it must be a date, as keys[0] is: write all keys as dates or",
    ),
    # Twice.
    ("age", [1, 2, 1], "keys[2] is 1; it must be another key than keys[0]"),
    ("age", [0, 2, 2.0], "keys[2] is 2.0; it must be another key than keys[1]"),
    ("bmi", [0.0, -0.0], "keys[1] is -0.0; it must be another key than keys[0]"),
    ("born", [DAY, "2024-01-31"], "keys[1] is '2024-01-31'; it must be another key than keys[0]"),
    ("born", [DAY, DAY], "keys[1] is 2024-01-31; it must be another key than keys[0]"),
    (
        "seen",
        [EIGHT, EIGHT.replace(fold=1)],
        "keys[1] is 2024-01-31 08:00:00; it must be another key than keys[0]",
    ),
    (["age", "diagnosis"], [(1, "a"), (1, "a")], "keys[1] is (1, 'a'); it must be another key than keys[0]"),
    # Not a list.
    ("diagnosis", "flu", f"keys is 'flu'; it must be {LIST}"),
    ("diagnosis", {"flu"}, f"keys is <set>; it must be {LIST}"),
    ("diagnosis", frozenset({"flu"}), f"keys is <frozenset>; it must be {LIST}"),
    ("diagnosis", {"flu": 1}, f"keys is <dict>; it must be {LIST}"),
    ("diagnosis", (key for key in ["flu"]), f"keys is <generator>; it must be {LIST}"),
    ("diagnosis", None, f"keys is None; it must be {LIST}"),
    ("age", 5, f"keys is 5; it must be {LIST}"),
    ("age", np.array(5), f"keys is <ndarray>; it must be {LIST}"),
    ("age", np.int64(5), f"keys is <int64>; it must be {LIST}"),
    ("age", np.ndarray, f"keys is <class 'numpy.ndarray'>; it must be {LIST}"),
    ("age", pd.DataFrame({"age": [1]}), f"keys is <DataFrame>; it must be {LIST}"),
    ("age", [], f"keys is []; it must be {LIST}, and at least one"),
    ("age", np.array([]), f"keys is <ndarray>; it must be {LIST}, and at least one"),
    ("seen", np.array([], dtype="datetime64[us]"), f"keys is <ndarray>; it must be {LIST}, and at least one"),
    ("visits", range(MOST_KEYS + 1), "keys is <range>; it must be at most 1,000,000 keys, not 1,000,001"),
    # Pairs.
    (["age", "diagnosis"], [(1, "flu"), (2, 3)], "keys[1][1] is 3; it must be text, as diagnosis is"),
    (["age", "diagnosis"], [("1", "flu")], f"keys[0][0] is '1'; it must be {NUMBER}"),
    (["age", "diagnosis"], [1], f"keys[0] is 1; it must be {PAIR}"),
    (["age", "diagnosis"], ["ab"], f"keys[0] is 'ab'; it must be {PAIR}"),
    (["age", "diagnosis"], [(1, "flu", 2)], f"keys[0] is <tuple>; it must be {PAIR}"),
    (["seen", "age"], [(DAY, 1)], f"keys[0][0] is 2024-01-31; it must be {TIME}"),
    # Rows without a value.
    ("diagnosis", ["flu", None, None], "keys[2] is None; it must be another key than keys[1]"),
    ("diagnosis", [math.nan], "; rows without a value are NULL, in Python None"),
    ("seen", [np.datetime64("NaT", "us")], "; rows without a value are NULL, in Python None"),
    (["age", "diagnosis"], [("null", "flu")], "; rows without a value are NULL, in Python None"),
    (["age", "diagnosis"], [(1, None), (None, 2)], "keys[1][1] is 2; it must be text"),
    ("seen", [None, DAY, EIGHT], "a date, as keys[1] is: write all keys as dates or all as times"),
    # Columns.
    ("zzz", [1], "by is 'zzz'; it must be one of the columns age (number), visits (number)"),
    (["age", "zzz"], [(1, 1)], "by is 'zzz'; it must be one of the columns"),
    ("diagnoses", ["flu"], "; did you mean diagnosis?"),
    ([5], [1], "by is 5; it must be one of the columns"),
    (5, [1], "by is 5; it must be the name of a column, or a list of two"),
    (None, [1], "by is None; it must be the name of a column, or a list of two"),
    ([], [1], "by is []; it must be the name of a column, or a list of two"),
    (["age", "bmi", "born"], [1], "by is <list>; it must be the name of a column, or a list of two"),
    ({"age"}, [1], "by is <set>; it must be the name of a column, or a list of two"),
    (["age", "AGE"], [(1, 1)], "by is (age (number), age (number)); it must be two different columns"),
    # Ranges.
    ("age", days(DAY, DAY), "by is age (number); it must be a date or a time if the keys are a range of days"),
    ("born", hours(EIGHT, NINE), "by is born (date); it must be a time if the keys are a range of hours"),
    (["seen", "age"], days(DAY, DAY), "it must be one column if the keys are a range of days"),
    (["seen", "age"], hours(EIGHT, NINE), "it must be one column if the keys are a range of hours"),
]


@pytest.mark.parametrize(
    ("by", "keys", "sentence"), BAD_KEYS, ids=[str(number) for number in range(len(BAD_KEYS))]
)
def test_keys_that_are_refused(by, keys, sentence):
    with pytest.raises(InvalidParameter) as refusal:
        declare(by, keys, SCHEMA)
    assert sentence in str(refusal.value)
    assert refusal.value.name.startswith(("keys", "by"))


def test_keys_that_were_declared_before_are_different_too():
    """A row that counts for several keys alike would count more often than its noise is for."""
    declared = declare("age", [5, 6, 7], SCHEMA)
    assert declare("age", declared.at([2, 0]), SCHEMA).values == ((7,), (5,))
    with pytest.raises(InvalidKey, match=r"keys\[2\] is 6; it must be another key than keys\[0\]"):
        declare("age", declared.at([1, 2, 1]), SCHEMA)


@pytest.mark.parametrize(
    ("by", "keys", "index", "column", "same_as"),
    [
        ("age", [1, "2"], 1, None, None),
        (["age", "diagnosis"], [(1, "flu"), (2, 3)], 1, 1, None),
        ("age", [0, 1, 2, 1], 3, None, 1),
        (["age", "diagnosis"], [(1, "a"), 5], 1, None, None),
    ],
    ids=["unfit", "column", "twice", "no-pair"],
)
def test_a_refusal_carries_which_key_it_is(by, keys, index, column, same_as):
    with pytest.raises(InvalidKey) as refusal:
        declare(by, keys, SCHEMA)
    error = refusal.value
    assert (error.index, error.column, error.same_as) == (index, column, same_as)
    assert error.value == (keys[index] if column is None else keys[index][column])


@pytest.mark.parametrize(
    ("by", "keys", "published"),
    [
        ("age", [1, -2], (1, -2)),
        ("price", [0.1, 1, Decimal("-9999999.99")], (0.1, 1.0, -9999999.99)),
        ("bmi", [1, 2.5], (1, 2.5)),
        ("diagnosis", ["flu", "12"], ("flu", "12")),
        ("smoker", [True, False], (True, False)),
        ("born", [DAY], ("2024-01-31",)),
        ("seen", [EIGHT], ("2024-01-31 08:00:00",)),
        ("seen", [DAY], ("2024-01-31",)),
        ("seen", hours(EIGHT, NINE), ("2024-01-31 08:00:00", "2024-01-31 09:00:00")),
        (["diagnosis", "price"], [("flu", 1.5)], (("flu", 1.5),)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_published_keys_are_plain_and_read_back_as_the_same(by, keys, published):
    declared = declare(by, keys, SCHEMA)
    assert repr(declared.published()) == repr(published)
    names = [column.name for column in declared.columns]
    assert repr(from_published(names, published, declared.period, SCHEMA)) == repr(declared)
    assert from_published(names, published, declared.period, SCHEMA) == declared


def test_a_decimal_that_no_float_is_is_published_as_text():
    column = Column("x", Kind.NUMBER, Exact(20, -(10**38) + 1, 10**38 - 1))
    declared = declare("x", [Decimal("0.12345678901234567891")], {"x": column})
    assert declared.published() == ("0.12345678901234567891",)
    assert from_published(["x"], declared.published(), None, {"x": column}) == declared


def test_published_values_that_the_columns_do_not_have():
    with pytest.raises(InvalidParameter, match="key is 'old'; it must be a number from -128 to 127"):
        from_published(["age"], [1, "old"], None, SCHEMA)


@given(st.lists(st.floats(-1e5, 1e5).map(lambda number: round(number, 2)), min_size=1, unique=True))
def test_floats_are_the_decimal_numbers_that_they_are_written_as(numbers):
    found = declare("price", numbers, SCHEMA).values
    assert [value / 100 for (value,) in found] == [number + 0.0 for number in numbers]


# Ranges.


def test_ranges_are_closed():
    assert days("2023-12-31", "2024-01-02").listed() == [D(2023, 12, 31), D(2024, 1, 1), D(2024, 1, 2)]
    assert days(DAY, T(2024, 1, 31)) == KeyRange(Period.DAY, DAY, DAY)
    assert days(DAY, DAY).listed() == [DAY]
    assert len(days("2024-01-01", "2024-12-31").listed()) == 366
    assert days("9999-12-30", "9999-12-31").listed()[-1] == dt.date.max
    assert hours(EIGHT, NINE).listed() == [EIGHT, NINE]
    assert hours(DAY, NEXT) == KeyRange(Period.HOUR, T(2024, 1, 31), T(2024, 2, 1))
    assert len(hours(DAY, NEXT).listed()) == 25
    assert len(hours("9999-12-31", "9999-12-31 23:00").listed()) == 24
    assert hash(days(DAY, NEXT)) == hash(days(DAY, NEXT))


A_DAY = "a date, or text such as '2024-01-31'"
AN_HOUR = "a time on the hour without a zone, or text such as '2024-01-31 08:00'"
BAD_RANGES = [
    (
        days,
        ("2024-02-01", "2024-01-31"),
        "end is '2024-01-31'; it must be 2024-02-01 or later, since start is that",
    ),
    (
        days,
        ("0001-01-01", "9999-12-31"),
        "end is '9999-12-31'; it must be nearer to start, for at most 1,000,000 keys",
    ),
    (days, ("31.01.2024", DAY), f"start is '31.01.2024'; it must be {A_DAY}"),
    (days, (DAY, EIGHT), f"end is <datetime>; it must be {A_DAY}"),
    (days, (DAY, "2024-01-31 08:00"), f"end is '2024-01-31 08:00'; it must be {A_DAY}"),
    (days, (DAY, 5), f"end is 5; it must be {A_DAY}"),
    (days, (None, DAY), f"start is None; it must be {A_DAY}"),
    (days, (pd.NaT, DAY), f"start is <NaTType>; it must be {A_DAY}"),
    (
        hours,
        (NINE, EIGHT),
        "end is '2024-01-31T08:00:00'; it must be 2024-01-31T09:00:00 or later, since start is that",
    ),
    (hours, ("0001-01-01", "9999-12-31"), "it must be nearer to start"),
    (hours, ("2024-01-31 08:30", NINE), f"start is '2024-01-31 08:30'; it must be {AN_HOUR}"),
    (hours, (EIGHT, NINE.replace(microsecond=1)), f"end is <datetime>; it must be {AN_HOUR}"),
    (hours, (EIGHT, NINE.replace(tzinfo=dt.UTC)), f"end is <datetime>; it must be {AN_HOUR}"),
    (hours, (8, 9), f"start is 8; it must be {AN_HOUR}"),
]


@pytest.mark.parametrize(
    ("make", "ends", "sentence"), BAD_RANGES, ids=[str(number) for number in range(len(BAD_RANGES))]
)
def test_ranges_that_are_refused(make, ends, sentence):
    with pytest.raises(InvalidParameter) as refusal:
        make(*ends)
    assert sentence in str(refusal.value)


# Time.


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("diagnosis", [str(number) for number in range(10_000)]),
        ("visits", list(range(10_000))),
        ("seen", days("1990-01-01", "2017-05-18")),
        (["diagnosis", "visits"], [(str(number), number) for number in range(10_000)]),
    ],
    ids=["texts", "numbers", "days", "pairs"],
)
def test_ten_thousand_keys_take_no_time(by, keys):
    took = []
    for _ in range(5):
        start = time.perf_counter()
        assert len(declare(by, keys, SCHEMA).values) == 10_000
        took.append(time.perf_counter() - start)
    assert min(took) < 0.2  # ten times what it takes


def test_keys_without_a_value_are_published_as_a_mark_and_read_back():
    keys = declare(["diagnosis", "price"], [("flu", None), (None, 0.5), (None, None)], SCHEMA)
    published = keys.published()
    assert published == (("flu", MISSING), (MISSING, 0.5), (MISSING, MISSING))
    plain = from_plain(json.loads(canonical_json(to_plain(published))))
    assert from_published(["diagnosis", "price"], plain, None, SCHEMA) == keys
    assert declare(["diagnosis", "price"], published, SCHEMA) == keys
