"""Answers as frames of pandas, polars and Arrow: their columns and types follow from what was asked."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.tables.people import opened, table

import targetcharge as tc
from targetcharge.tables import questions as q

A = "kind = 'a'"


def test_answers_become_tables_of_every_kind():
    with opened() as t:
        answers = t.watch(None, ["kind", "old"], [("a", True), ("b", True)], 2000)
    names = ["kind", "old", "outcome", "hit", "low", "high", "scale", "seq", "repeat"]
    found = answers.columns()
    assert list(found) == names
    assert found["kind"] == ["a", "b"]
    assert found["outcome"] == [answers[0].outcome, None]
    assert found["low"] == [answers[0].interval[0], None]
    assert found["high"] == [answers[0].interval[1], answers[1].interval[1]]
    for frame, kind in ((answers.to_pandas(), pd.DataFrame), (answers.to_polars(), pl.DataFrame)):
        assert isinstance(frame, kind)
        assert list(frame.columns) == names
        assert list(frame["hit"]) == [True, False]
        assert list(frame["seq"]) == [1, 2]
    arrow = answers.to_arrow()
    assert isinstance(arrow, pa.Table)
    assert arrow.to_pydict() == found
    assert answers[:1] == (answers[0],)
    assert answers[-1] is answers[1]


def test_a_key_without_a_value_is_a_missing_value():
    made = table()
    made = made.set_column(1, "kind", pc.if_else(pc.equal(made["kind"], "b"), None, made["kind"]))
    with opened(made) as t:
        answers = t.watch(None, "kind", ["a", None, "NULL"], 2000)
        pairs = t.watch(None, ["old", "doctor"], [(None, 5), (True, None)], -5000)
    assert [(answer.key, answer.hit) for answer in answers] == [("a", True), (tc.MISSING, True), ("NULL", False)]
    assert abs(answers[1].outcome - 3000) < 700
    assert "NULL " in str(answers)
    assert answers.columns()["kind"] == ["a", None, "NULL"]
    types(answers)
    assert pairs.columns()["old"] == [None, True]
    assert types(pairs)[0].field("doctor").type == pa.int64()


def test_an_outcome_that_is_no_number_is_in_a_column_of_its_own():
    with opened(meter="renyi") as t:
        answers = t.ask_many(
            [q.count(A), q.count(A, prior=6000, tolerance=1000), q.side(A, 3000), q.above(A, 9000)]
        )
    columns = answers.columns()
    assert list(columns)[:3] == ["question", "outcome", "text"]
    assert columns["outcome"] == [answers[0].outcome, None, None, None]
    assert columns["text"] == [None, "unchanged", "above", None]
    assert answers.to_arrow().to_pydict() == answers.to_polars().to_dict(as_series=False) == columns
    assert answers.to_pandas()["text"].tolist()[1:3] == ["unchanged", "above"]


def types(answers):
    """Return the names and types of the columns in every kind of frame; check that they hold the same."""
    arrow, polars, pandas = answers.to_arrow(), answers.to_polars(), answers.to_pandas()
    assert polars.to_dicts() == arrow.to_pylist()
    again = pa.Table.from_pandas(pandas, preserve_index=False)
    kinds = [pa.timestamp("us") if kind == pa.date32() else kind for kind in arrow.schema.types]
    assert again.cast(pa.schema(zip(arrow.schema.names, kinds, strict=True))).equals(
        arrow.cast(pa.schema(zip(arrow.schema.names, kinds, strict=True)))
    )
    return arrow.schema, polars.schema, dict(pandas.dtypes)


@pytest.mark.parametrize(
    ("asked", "number"),
    [
        (lambda t, least: t.watch(None, "kind", ["a", "c"], least), pa.int64()),
        (lambda t, least: t.watch(q.sum("fee", 0, 10), ["kind", "old"], [("a", True)], least), pa.float64()),
        (lambda t, least: t.ask_many([q.above(A, least)]), pa.int64()),
        (lambda t, least: t.ask_many([q.above(q.distinct("doctor"), max(least, 1))]), pa.int64()),
        (lambda t, least: t.top(None, "kind", ["a", "c"], 2, threshold=least), pa.int64()),
    ],
    ids=["watch", "watch of sums", "many", "distinct values", "top"],
)
def test_the_types_of_frames_do_not_depend_on_hits(asked, number):
    schemas = []
    for least, hits in ((-5_000_000, 2), (5_000_000, 2), (-5_000_000, 1)):
        with opened(hits=hits) as t:
            schemas.append(types(asked(t, least)))
    with opened(hits=1) as t:
        t.count()
        spent = asked(t, -5_000_000)
        assert len(spent) == 0
        schemas.append(types(spent))
    assert all(schema == schemas[0] for schema in schemas)
    arrow = schemas[0][0]
    assert {arrow.field(name).type for name in ("outcome", "low", "high")} == {number}
    assert (arrow.field("hit").type, arrow.field("seq").type) == (pa.bool_(), pa.int64())


def test_marks_do_not_change_the_types_of_frames():
    schemas = []
    for tolerance in (6000, 0):
        with opened(meter="exact") as t:
            answers = t.ask_many([q.count(A, prior=6000, tolerance=tolerance), q.count(None)])
            assert [answer.outcome is tc.UNCHANGED for answer in answers] == [tolerance > 0, False]
            schemas.append(types(answers))
    assert schemas[0] == schemas[1]


def test_keys_are_of_their_declared_kind_in_frames():
    made = pa.table(
        {
            "patient": range(4),
            "day": pa.array([dt.date(2024, 1, 31)] * 4),
            "time": pa.array([dt.datetime(2024, 1, 31, 8)] * 4, pa.timestamp("us")),
            "price": pa.array([Decimal("9.99")] * 4, pa.decimal128(38, 2)),
            "weight": [0.5] * 4,
            "old": [True] * 4,
        }
    )
    long = Decimal("123456789012345678.01")
    asked = {
        "day": (["2024-01-31"], pa.date32(), [dt.date(2024, 1, 31)]),
        "time": (["2024-01-31 08:00"], pa.timestamp("us"), [dt.datetime(2024, 1, 31, 8)]),
        "price": ([Decimal("9.99"), 1], pa.float64(), [9.99, 1.0]),
        "weight": ([1, 2], pa.int64(), [1, 2]),
        "old": ([True, False], pa.bool_(), [True, False]),
    }
    with opened(made) as t:
        for by, (keys, kind, values) in asked.items():
            answers = t.watch(None, by, keys, 3000)
            assert answers.to_arrow()[by].type == kind, by
            assert answers.to_arrow()[by].to_pylist() == values
            types(answers)
        by_day = t.watch(None, "time", tc.days("2024-01-31", "2024-02-01"), 3000)
        assert by_day.to_polars()["time"].to_list() == [dt.date(2024, 1, 31), dt.date(2024, 2, 1)]
        assert by_day.columns()["time"] == ["2024-01-31", "2024-02-01"]
        assert t.watch(None, "price", [long], 3000).to_polars()["price"].to_list() == [str(long)]
        quantiles = t.quantiles("weight", [0.5], 0, 1)
        assert quantiles.to_arrow().schema.types[:2] == [pa.float64(), pa.float64()]


@pytest.mark.parametrize("name", ["outcome", "hit", "low", "high", "scale", "seq", "repeat", "question", "key"])
def test_a_column_of_keys_may_be_called_like_one_of_the_answers(name):
    made = table().rename_columns({"kind": name, "old": name + "_"})
    with opened(made) as t:
        for by, keys in ((name, ["a", "c"]), ([name, name + "_"], [("a", True), ("c", True)])):
            answers = t.watch(None, by, keys, 2000)
            found = answers.columns()
            assert found["hit"] == [True, False]
            assert found["seq"] == [answer.seq for answer in answers]
            assert next(iter(found.values())) == ["a", "c"]
            assert len(found) == 7 + len(keys[0]) if isinstance(keys[0], tuple) else len(found) == 8
            assert answers.to_arrow().num_columns == len(found)


def test_no_answers_are_a_table_too():
    empty = tc.Answers([])
    assert empty.to_pandas().shape == (0, 9)
    assert empty.to_polars().shape == (0, 9)
    assert empty.to_arrow().num_rows == 0
    assert repr(empty) == "<0 answers, 0 hits>"
