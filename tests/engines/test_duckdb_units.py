"""Units are told apart whatever they are; no row makes a question fail, or is read for another's sake."""

import datetime as dt
import os
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.counting import having

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import EngineError
from targetcharge.queries.measures import Count, Total
from targetcharge.queries.tree import Missing


def test_units_of_a_csv_file_are_what_they_are_declared_to_be(tmp_path):
    (tmp_path / "ids.csv").write_text("id,x\n12,1\n012,1\n12.4,1\n123456789012345678901,1\nx,1\n")
    with closing(open_duckdb(tmp_path / "ids.csv", "id", types={"id": "integer"})) as engine:
        assert engine.measure([Count(None)]) == [3]
    with closing(open_duckdb(tmp_path / "ids.csv", "id")) as engine:
        assert engine.measure([Count(None)]) == [5]


FINE = {
    "decimal": pa.array([Decimal("12345678901234567.01"), Decimal("12345678901234567.02")], pa.decimal128(19, 2)),
    "nanosecond": pa.array([1, 2], pa.timestamp("ns")),
    "nanosecond-zoned": pa.array([1, 2], pa.timestamp("ns", tz="UTC")),
    "whole": pa.array([2**62, 2**62 + 1], pa.int64()),
}


@pytest.mark.parametrize("source", ["arrow", "parquet", "pandas", "polars"])
@pytest.mark.parametrize("name", FINE)
def test_units_keep_every_digit_but_for_numbers_of_pandas(name, source, tmp_path):
    table = pa.table({"id": FINE[name], "x": pa.array([10.0, -20.0])})
    if source == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
    made = {
        "arrow": lambda: table,
        "parquet": lambda: tmp_path / "t.parquet",
        "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pl.from_arrow(table),
    }[source]()
    rounded = source == "pandas" and name in ("decimal", "whole")
    with closing(open_duckdb(made, "id")) as engine:
        assert engine.measure([Count(None)]) == [1 if rounded else 2]
        column = engine.schema["x"]
        assert engine.measure([Total(column, -20, 20, Fraction(1), None)]) == [-10]
        assert engine.measure([Total(column, -10, 10, Fraction(1), None)]) == [-10 if rounded else 0]


def test_pandas_units_of_any_object():
    ids = [1, "1", True, UUID(int=1), UUID(int=2), None, b"1", str(UUID(int=1)), (1,), object()]
    frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "x": range(10)})
    with closing(open_duckdb(frame, "id")) as engine:
        assert engine.measure([Count(None)]) == [3]


def test_pandas_units_at_the_end_of_time_in_a_zone_that_is_ahead():
    times = pd.Series(["9999-12-31 23:59:59.999999", "2024-01-01", "2024-01-01", None], dtype="datetime64[us]")
    zoned = times.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    with closing(open_duckdb(pd.DataFrame({"id": zoned, "x": range(4)}), "id")) as engine:
        assert (engine.measure([Count(None)]), engine.units()) == ([2], 2)


# One row's value makes no question fail


def test_text_that_is_not_utf_8_is_read(tmp_path):
    bad = pa.StringArray.from_buffers(2, pa.array([0, 1, 3], pa.int32()).buffers()[1], pa.py_buffer(b"ab\xff"))
    pq.write_table(pa.table({"id": [1, 2], "x": bad}), tmp_path / "t.parquet")
    with closing(open_duckdb(tmp_path / "t.parquet", "id")) as engine:
        assert having(engine, "x", "a", "b") == [1, 0]
    with closing(open_duckdb(tmp_path / "t.parquet", "x")) as engine:
        assert engine.measure([Count(None)]) == [2]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["id", "t", None])
def test_times_that_do_not_fit_are_missing(tmp_path, unit, zone):
    times = pa.array([0, 2**62, -(2**63), 1_704_067_200_000], pa.int64()).cast(pa.timestamp("ms", zone))
    (tmp_path / "year=7").mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "t": times}), tmp_path / "year=7" / "t.parquet")
    with closing(open_duckdb(tmp_path, unit)) as engine:
        everybody = 2 if unit == "t" else 4
        assert engine.measure([Count(None)]) == [everybody]
        assert engine.units() == everybody
        assert having(engine, "t", dt.datetime(1970, 1, 1), dt.datetime(2024, 1, 1)) == [1, 1]
        assert having(engine, "year", "7") == [everybody]
        missing = engine.measure([Count(Missing(engine.schema["t"]))])
        assert missing == [0 if unit == "t" else 2]


def test_names_that_differ_in_capitals_only_are_refused(tmp_path):
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([7])], ["ID", "id"]), tmp_path / "t.parquet")
    with pytest.raises(EngineError, match="capitals only"):
        open_duckdb(tmp_path / "t.parquet", "id")


def test_a_partition_folder_that_is_also_a_column_is_refused(tmp_path):
    (tmp_path / "id=5").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "x": [1, 2]}), tmp_path / "id=5" / "t.parquet")
    with pytest.raises(EngineError, match="as a partition folder"):
        open_duckdb(tmp_path, "id")


def test_partition_folders_of_a_pattern_are_columns(tmp_path):
    (tmp_path / "year=5").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "year=5" / "t.parquet")
    with closing(open_duckdb(tmp_path / "*" / "*.parquet", "id")) as engine:
        assert having(engine, "year", "5") == [2]


def test_a_child_of_a_fork_ends_in_peace():
    engine = open_duckdb(pa.table({"id": [1]}), "id")
    child = os.fork()
    if not child:
        del engine
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert engine.measure([Count(None)]) == [1]
    engine.close()
