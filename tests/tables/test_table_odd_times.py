"""One row with a time that cannot be represented: questions about any column go on, free where they were free."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sizes import spread

import targetcharge as tc

BUDGET = tc.Budget(3.0, 1e-6)
ODD = {
    "us": (-(2**63), -(2**63) + 1, -9223372022400000001, 2**63 - 1),
    "ms": (-9223372036854775, -9223372022400001, -(2**63), 2**62),
    "s": (-(2**63), 2**62, -9223372036855),
    "ns": (-(2**63), 2**63 - 1),
}
CASES = [
    (kind, unit, raw, zone)
    for kind in ("parquet", "arrow", "polars", "pandas")
    for unit, raws in ODD.items()
    for raw in raws
    for zone in (None, "UTC")
    if (kind, unit) != ("parquet", "s") or abs(raw) < 2**53  # Arrow cannot write the others
]


def visits(unit, raw, zone):
    """Return 500 ordinary visits, and one at an odd time."""
    ordinary = np.arange(500) * 3600 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    times = pa.array([*ordinary.tolist(), raw], pa.int64()).cast(pa.timestamp(unit, zone))
    return pa.table({"patient": range(501), "visit": times, "age": [40] * 501})


def source(kind, table, folder):
    if kind == "parquet":
        pq.write_table(table, folder / "visits.parquet")
        return folder / "visits.parquet"
    made = {"arrow": lambda: table, "polars": lambda: pl.from_arrow(table)}
    made |= {"pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype)}
    return made[kind]()


@pytest.mark.parametrize(("kind", "unit", "raw", "zone"), spread(CASES, 24))
def test_one_odd_time_makes_no_question_fail(kind, unit, raw, zone, tmp_path):
    made = source(kind, visits(unit, raw, zone), tmp_path)
    for whose in ("patient", "visit", tc.ROW):
        with tc.open(made, whose, BUDGET, query_epsilon=0.1, ledger=":memory:", meter="exact") as t:
            assert not t.distinct_above("visit", threshold=10**6).hit
            assert not t.above("age > 30", 10**6).hit
            assert not any(each.hit for each in t.watch(None, "visit", tc.days("1970-01-01", "1970-01-03"), 10**6))
            assert not any(
                each.hit for each in t.watch(None, "visit", tc.hours("1970-01-01", "1970-01-02"), 10**6)
            )
            assert t.meter.hits == 0
            assert 300 < t.above("visit IS NOT NULL", 300).outcome < 700
    with tc.open(made, "visit", BUDGET, query_epsilon=0.1, ledger=":memory:", charging="individual") as t:
        assert t.above("age > 30", 300).hit
        assert not t.above("visit > '1990-01-01'", 300).hit


def test_describe_says_which_times_are_missing():
    table = visits("us", 0, None)
    with tc.open(table, "patient", BUDGET, ledger=":memory:", meter="exact") as t:
        assert "dates and times before the year 1 or after 9999, infinite ones too" in str(t.describe())
        assert t.describe().as_dict()["missing"][0].startswith("dates and times")
        assert t.describe().as_dict()["identity"] == ""
    with tc.open(table.drop_columns(["visit"]), "patient", BUDGET, ledger=":memory:", meter="exact") as t:
        assert "year 1" not in str(t.describe())
        assert t.describe().as_dict()["missing"] == ["numbers that are NaN, or have more digits than their type"]


def test_describe_says_how_units_are_told_apart(tmp_path):
    (tmp_path / "a.csv").write_text("patient,age\n1,5\n")
    with tc.open(
        tmp_path / "a.csv", "patient", BUDGET, ledger=":memory:", types={"patient": "integer"}, meter="exact"
    ) as t:
        assert "unit: units of patient, read as integer; what is none, as it is written" in str(t.describe())
    frame = pd.DataFrame({"patient": [1, 2]})
    with tc.open(frame, "patient", BUDGET, ledger=":memory:", meter="exact") as t:
        assert "units of patient, however typed: 1, 1.0 and '1' are one unit" in str(t.describe())
        assert "however typed" in t.describe()._repr_html_()


def test_infinite_times_are_missing_with_and_without_a_zone(tmp_path):
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute("CREATE TABLE t (id INT, a TIMESTAMP, b TIMESTAMPTZ, c DATE)")
        connection.execute("INSERT INTO t SELECT range, 'infinity', '-infinity', 'infinity' FROM range(400)")
    with tc.open(tmp_path / "t.duckdb", "id", BUDGET, query_epsilon=0.1, ledger=":memory:", meter="exact") as t:
        for column in "abc":
            assert t.above(f"{column} IS NULL", 200).hit
            assert not t.above(f"{column} IS NOT NULL", 200).hit


@pytest.mark.parametrize("error", [duckdb.FatalException, duckdb.InternalException])
@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_an_engine_that_failed_for_good_is_charged_for_once(error, charging, monkeypatch):
    with tc.open(
        visits("us", 0, None), "patient", BUDGET, query_epsilon=0.1, ledger=":memory:", charging=charging
    ) as t:
        t.above("age > 30", 10**6)
        link = t._engine._table.link

        class Broken:
            def execute(self, *_):
                msg = "secret"
                raise error(msg)

        whole = link.raw
        monkeypatch.setattr(link, "raw", Broken())
        with pytest.raises(tc.ComputationFailed):
            t.above("age > 31", 10**6)
        monkeypatch.setattr(link, "raw", whole)
        before = t.meter.hits
        for ask in (
            lambda: t.above("age > 32", 10**6),
            lambda: t.watch(None, "age", [1, 2], 10**6),
            lambda: t.top(None, "age", [1, 2]),
            lambda: t.ask_many([tc.questions.above("age > 33", 10**6)]),
            lambda: t.release("age > 30", when=lambda _: False),
        ):
            with pytest.raises(tc.EngineError, match="has failed: nothing was asked or charged") as caught:
                ask()
            assert "secret" not in str(caught.value)
        assert t.meter.hits == before
