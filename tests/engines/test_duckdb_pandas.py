"""Columns of pandas: one unit's value may change their type, and must change nothing about the others."""

import datetime as dt
from contextlib import closing
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from tests.engines.counting import having, known

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.keys import Keys
from targetcharge.queries.measures import Count, Sketch
from targetcharge.queries.tree import Column, Exact, Kind, OneOf

BIGINT = Exact(0, -(2**63), 2**63 - 1)


def same_for_others(one, other, **options):
    """Compare all counts about units 1 to 3 in two frames that differ only in unit 4."""
    found = []
    for frame in (one, other):
        with closing(open_duckdb(frame, "id", **options)) as engine:
            column = engine.schema["x"]
            literals = {Kind.NUMBER: (0, 1, 2.5), Kind.BOOLEAN: (True, False), Kind.TEXT: ("true", "1", "a")}
            literals |= {Kind.DATE: (dt.date(2024, 1, 1),), Kind.TIME: (dt.datetime(2024, 1, 1),)}
            others = OneOf(engine.schema["id"], (1.0, 2.0, 3.0))
            values = tuple((value,) for value in literals[column.kind])
            found.append(
                (
                    engine.schema,
                    engine.measure([Count(others), Sketch(column, others, 1, 2**30, "key")]),
                    engine.measure_by(Count(others), Keys((column,), values)),
                )
            )
    assert found[0] == found[1]
    return found[0]


ODD = {
    "none": None,
    "nan": np.nan,
    "na": pd.NA,
    "nat": pd.NaT,
    "whole": 5,
    "huge": 10**5000,
    "floating": 1.5,
    "decimal": Decimal(1),
    "loud-nan": Decimal("sNaN"),
    "text": "x",
    "half-a-pair": "\ud800a",
    "bytes": b"a",
    "list": ["a"],
    "dictionary": {"a": 1},
    "class": object,
    "first-day": dt.date(1, 1, 1),
    "zoned": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    "end-of-time": dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.timezone(-dt.timedelta(hours=5))),
    "duration": dt.timedelta(1),
    "complex": 1j,
}
"""What may turn up in a column of objects."""


def frames(cells, last):
    """Return two frames that differ only in the last unit's value, of the types that pandas makes of them."""
    return pd.DataFrame({"id": [1, 2, 3, 4], "x": [*cells, cells[0]]}), pd.DataFrame(
        {"id": [1, 2, 3, 4], "x": [*cells, last]}
    )


def test_whole_numbers_stay_the_same_numbers_when_one_is_missing():
    one, other = frames([0, 1, 1], None)
    assert (one["x"].dtype.kind, other["x"].dtype.kind) == ("i", "f")
    schema, _, counts = same_for_others(one, other)
    assert schema["x"] == Column("x", Kind.NUMBER)
    assert counts == [1, 2, 0]


def test_whole_numbers_declared_as_such_stay_so_when_one_is_missing():
    schema, _, counts = same_for_others(*frames([0, 1, 1], None), types={"x": "integer"})
    assert schema["x"].exact == BIGINT
    assert counts[:2] == [1, 2]


def test_booleans_declared_as_such_stay_so_when_one_is_missing():
    one, other = frames([True, False, True], None)
    assert (one["x"].dtype.kind, other["x"].dtype.kind) == ("b", "O")
    schema, _, counts = same_for_others(one, other, types={"x": "boolean"})
    assert schema["x"].kind is Kind.BOOLEAN
    assert counts == [2, 1]


@pytest.mark.parametrize("kind", ["text", "integer", "number", "date", "time"])
def test_booleans_declared_as_something_else_are_the_same_when_one_is_missing(kind):
    same_for_others(*frames([True, False, True], None), types={"x": kind})


@pytest.mark.parametrize("last", ODD.values(), ids=ODD)
def test_booleans_among_anything_are_booleans_if_declared(last):
    one, other = frames([True, False, True], None)
    other["x"] = pd.Series([True, False, True, last], dtype="object")
    same_for_others(one, other, types={"x": "boolean"})


def test_booleans_that_nobody_declared_turn_into_text_without_values_when_one_is_missing():
    """The reason to declare them: the docs say so."""
    with closing(open_duckdb(frames([True, False, True], None)[1], "id")) as engine:
        assert engine.schema["x"].kind is Kind.TEXT
        assert known(engine, "x") == [0]


@pytest.mark.parametrize(
    "last", [each for name, each in ODD.items() if name != "text"], ids=[name for name in ODD if name != "text"]
)
def test_texts_are_the_same_whatever_else_is_among_them(last):
    one = pd.DataFrame({"id": [1, 2, 3, 4], "x": pd.Series(["a", "1", "true", "b"], dtype="object")})
    other = one.assign(x=pd.Series(["a", "1", "true", last], dtype="object"))
    _, _, counts = same_for_others(one, other)
    assert counts == [1, 1, 1]
    same_for_others(one, other, types={"x": "integer"})


@pytest.mark.parametrize("last", ODD.values(), ids=ODD)
@pytest.mark.parametrize("kind", ["date", "time"])
def test_dates_are_the_same_whatever_else_is_among_them(kind, last):
    day = dt.date(2024, 1, 1) if kind == "date" else dt.datetime(2024, 1, 1)
    one = pd.DataFrame({"id": [1, 2, 3, 4], "x": pd.Series([day, day, None, day], dtype="object")})
    other = one.assign(x=pd.Series([day, day, None, last], dtype="object"))
    _, _, counts = same_for_others(one, other, types={"x": kind})
    assert counts == [2]


def test_declared_objects_are_read_as_they_are_written():
    objects = [
        7,
        np.int64(8),
        2**62,
        1.5,
        Decimal("2.25"),
        True,
        "9",
        None,
        float("nan"),
        Decimal("sNaN"),
        10**5000,
    ]
    frame = pd.DataFrame({"x": pd.Series(objects, dtype="object")})
    with closing(open_duckdb(frame, None, types={"x": "number"})) as engine:
        assert having(engine, "x", 7.0, 8.0, 2.0**62, 1.5, 2.25, 9.0) == [1] * 6
        assert known(engine, "x") == [6]
    with closing(open_duckdb(frame, None, types={"x": "integer"})) as engine:
        assert having(engine, "x", 7, 8, 2**62, 9) == [1] * 4
    zoned = pd.Timestamp("2024-01-01 00:30", tz="Europe/Berlin")
    with closing(open_duckdb(pd.DataFrame({"x": [zoned, "2024-01-02"]}), None, types={"x": "time"})) as engine:
        assert having(engine, "x", dt.datetime(2023, 12, 31, 23, 30), dt.datetime(2024, 1, 2)) == [1, 1]


LONG = [2**60, 2**60 + 1, 2**60 + 1, 2**53, 2**53 + 2, 7]


@pytest.mark.parametrize("unit", ["ID", "id"])
@pytest.mark.parametrize("kind", ["int64", "uint64", "Int64", "int64[pyarrow]", "object"])
def test_units_of_pandas_are_as_exact_as_floating_point_whatever_their_column_has_become(kind, unit):
    frame = pd.DataFrame({"ID": pd.Series(LONG, dtype=kind), "unit": range(6)})
    for one_more in ([], [None], [0.5], ["ann"], [Decimal("0.25")]):
        more = pd.DataFrame({"ID": pd.Series(one_more, dtype="object"), "unit": range(len(one_more))})
        both = pd.concat([frame, more]) if one_more else frame
        if one_more in ([None], [0.5]) and kind in ("int64", "uint64"):
            both["ID"] = both["ID"].astype("float64")  # as pandas does when it reads such a column
        with closing(open_duckdb(both, unit)) as engine:
            assert engine.measure([Count(None)]) == [4 + (one_more not in ([], [None]))]
            assert list(engine.schema) == ["ID", "unit"]


def test_a_value_among_many_that_are_missing_is_not_missed():
    """DuckDB looks at a sample of a column of objects to tell its type."""
    for place in (0, 7, 4999, 19_999):
        texts, truths = [None] * 20_000, [None] * 20_000
        texts[place], truths[place] = "x", True
        frame = pd.DataFrame({"x": pd.Series(texts, dtype="object"), "b": pd.Series(truths, dtype="object")})
        with closing(open_duckdb(frame, None, types={"b": "boolean"})) as engine:
            assert [having(engine, "x", "x"), having(engine, "b", True), known(engine, "x")] == [[1], [1], [1]]
