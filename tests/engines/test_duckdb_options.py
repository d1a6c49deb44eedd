"""Frames and options that cannot be used: one plain sentence, none of the values, and nothing left behind."""

from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.engines.refusing import FRAME, NUMBER, ROW, SECRET, TABLE, database, parquet, refused, written

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import EngineError, InvalidParameter


def test_tables_of_a_database(tmp_path):
    tables = (
        "CREATE TABLE one (a INT)",
        "CREATE SCHEMA s; CREATE TABLE s.two (a INT)",
        "CREATE VIEW seen AS FROM one",
    )
    path = database(tmp_path / "a.db", *tables)
    for wrong in ("seen", "ONE", "two", "", 5, 'one"; DROP TABLE one'):
        refused(InvalidParameter, ["table is", "one, s.two"], path, table=wrong)


@pytest.mark.parametrize("source", ["parquet", "frame"])
def test_only_a_database_has_tables(source, tmp_path):
    given = FRAME if source == "frame" else parquet(tmp_path / "data.parquet")
    refused(InvalidParameter, ["table is 't'", "left out"], given, table="t")


SOURCES = {
    "parquet": lambda at: parquet(at / "data.parquet"),
    "csv": lambda at: written(at / "data.csv", "id,name,number\n" + ROW),
    "database": lambda at: database(
        at / "a.db", f"CREATE TABLE t AS SELECT 1 AS id, '{SECRET}' AS name, 2 AS number"
    ),
    "arrow": lambda _: TABLE,
    "polars": lambda _: pl.from_arrow(TABLE),
    "pandas": lambda _: FRAME,
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("unit", ["nobody", "", SECRET.upper(), 5, True, b"id", ["id"]], ids=repr)
def test_a_unit_that_is_no_column(name, unit, tmp_path):
    refused(InvalidParameter, ["unit is", "id (", "name (text)"], SOURCES[name](tmp_path), unit)


@pytest.mark.parametrize("name", ["parquet", "arrow", "polars"])
def test_a_unit_of_a_type_that_cannot_be_asked_about(name, tmp_path):
    refused(InvalidParameter, ["unit is 'list'", "id (number)"], SOURCES[name](tmp_path), "list")


@pytest.mark.parametrize("name", SOURCES)
def test_declared_types_that_are_none(name, tmp_path):
    source = SOURCES[name](tmp_path)
    for kind in ("int", "BIGINT", "", None, 5, ["integer"]):
        refused(
            InvalidParameter,
            ["types is", "integer, number, text", "'id'"],
            source,
            types={"id": kind},
        )
    for types in (5, "integer", ["id"], {"id"}):
        refused(InvalidParameter, ["types is", "dictionary"], source, types=types)
    refused(InvalidParameter, ["types is 'nane'", "did you mean name?"], source, types={"nane": "integer"})
    for column in ("nobody", "ID", 5):
        refused(InvalidParameter, ["types is", "id, name"], source, types={column: "integer"})


@pytest.mark.parametrize(
    "memory", ["lots", "", "5", 5, -1, "-1", "-5GB", "4 apples", "1B", "4GB; SET threads = 1", "10%"]
)
def test_an_amount_of_memory_that_is_none(memory):
    refused(InvalidParameter, ["memory is", "'4GB'"], FRAME, memory=memory)


def test_too_little_memory_is_an_error_like_any_other():
    refused(EngineError, ["table"], TABLE, memory="2KB")


# Things that are no table


NOTHING = {
    "none": None,
    "number": 5,
    "floating": 1.5,
    "bytes": b"data.parquet",
    "list": [1],
    "dictionary": {"id": [NUMBER]},
    "series": FRAME["name"],
    "array": FRAME["number"].to_numpy(),
    "chunks": TABLE["name"],
    "class": pd.DataFrame,
}


@pytest.mark.parametrize("name", NOTHING)
def test_things_that_are_no_table(name):
    with pytest.raises(
        InvalidParameter, match=r"^source is .*; it must be a file, a folder or pattern of files"
    ) as caught:
        open_duckdb(NOTHING[name], None)
    assert SECRET not in str(caught.value)
    assert str(NUMBER) not in str(caught.value)


def test_frames_that_can_be_read_only_once():
    lazy, reader = pl.from_arrow(TABLE).lazy(), pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    refused(InvalidParameter, ["source", "LazyFrame", ".collect()"], lazy)
    refused(InvalidParameter, ["source", "RecordBatchReader", ".read_all()"], reader)


@pytest.mark.parametrize("source", ["", "  ", "a\0b"], ids=["empty", "blank", "zero"])
def test_names_that_no_file_has(source):
    refused(InvalidParameter, ["source is", "Parquet, CSV or DuckDB"], source)


FRAMES = {
    "number-as-name": (InvalidParameter, ["a text as their name"], FRAME.rename(columns={"id": 0})),
    "pair-as-name": (InvalidParameter, ["a text as their name"], FRAME.rename(columns={"id": ("a", "b")})),
    "no-name": (InvalidParameter, ["a text as their name"], FRAME.rename(columns={"id": ""})),
    "zero-in-name": (InvalidParameter, ["a text as their name"], TABLE.rename_columns(["a\0", "b", "c", "d"])),
    "name-twice": (InvalidParameter, ["different names"], FRAME.rename(columns={"id": "name"})),
    "name-in-capitals": (InvalidParameter, ["different names"], FRAME.rename(columns={"id": "NAME"})),
    "name-twice-in-arrow": (InvalidParameter, ["different names"], TABLE.rename_columns(["a", "b", "a", "d"])),
    "name-in-capitals-in-polars": (
        InvalidParameter,
        ["different names"],
        pl.DataFrame({"a": [SECRET], "A": [SECRET]}),
    ),
    "no-columns": (InvalidParameter, ["at least one column"], pd.DataFrame()),
    "no-columns-that-count": (InvalidParameter, ["at least one column"], pd.DataFrame({"a": [1j * NUMBER]})),
    "no-columns-in-polars": (EngineError, ["polars table"], pl.DataFrame()),
    "no-columns-in-arrow": (EngineError, ["arrow table"], pa.table({})),
    "objects-in-polars": (
        EngineError,
        ["polars table"],
        pl.DataFrame({"a": pl.Series([{SECRET}], dtype=pl.Object)}),
    ),
    "wide-decimals": (
        EngineError,
        ["arrow table"],
        pa.table({"a": pa.array([Decimal(NUMBER)], pa.decimal256(60, 2))}),
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_that_are_no_table(name):
    kind, words, frame = FRAMES[name]
    refused(kind, words, frame)
