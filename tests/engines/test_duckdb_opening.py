"""Files that cannot be opened: one plain sentence, nothing of what is in them, and nothing left behind."""

import gzip
import subprocess
import sys
from contextlib import closing

import duckdb
import pyarrow as pa
import pytest
from tests.engines.refusing import ROW, SECRET, TABLE, database, folder, parquet, refused, written

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import EngineError, InvalidParameter
from targetcharge.queries.measures import Count
from targetcharge.queries.tree import Compare, Operator


def spoiled(path):
    """Return a Parquet file whose ends are right and whose footer is not."""
    data = bytearray(parquet(path).read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    data[-8 - footer : -8] = b"\xff" * footer
    path.write_bytes(data)
    return path


FILES = {
    "missing": (InvalidParameter, ["source", "no such file"], lambda at: at / "none.parquet"),
    "missing-text": (InvalidParameter, ["source", "no such file"], lambda at: str(at / "none.csv")),
    "pattern-matches-none": (InvalidParameter, ["source", "matches none"], lambda at: str(at / "*.parquet")),
    "folder-without-tables": (
        InvalidParameter,
        ["source", "this one has none"],
        lambda at: folder(at / "f", a_txt=SECRET),
    ),
    "folder-of-two-kinds": (
        InvalidParameter,
        ["source", "one kind"],
        lambda at: folder(at / "f", a_parquet=TABLE, b_csv="id,name,number\n" + ROW),
    ),
    "pattern-of-texts": (
        InvalidParameter,
        ["source", "Parquet, CSV or DuckDB"],
        lambda at: str(folder(at / "f", a_txt=SECRET) / "*"),
    ),
    "two-databases": (
        InvalidParameter,
        ["source", "one kind"],
        lambda at: str(database(database(at / "a.db").parent / "b.db").parent / "*.db"),
    ),
    "web-address": (InvalidParameter, ["source", "on this machine"], lambda _: "https://example.org/data.parquet"),
    "bucket": (InvalidParameter, ["source", "on this machine"], lambda _: "s3://bucket/data.parquet"),
    "name-too-long": (EngineError, ["cannot be looked for"], lambda at: at / ("x" * 300)),
    "text-named-parquet": (EngineError, ["data.parquet"], lambda at: written(at / "data.parquet", ROW * 9)),
    "nothing-named-parquet": (EngineError, ["data.parquet"], lambda at: written(at / "data.parquet", b"")),
    "spoiled-parquet": (EngineError, ["data.parquet"], lambda at: spoiled(at / "data.parquet")),
    "cut-parquet": (
        EngineError,
        ["cut.parquet"],
        lambda at: written(at / "cut.parquet", parquet(at / "whole.parquet").read_bytes()[:-50]),
    ),
    "parquet-without-columns": (
        EngineError,
        ["data.parquet"],
        lambda at: parquet(at / "data.parquet", pa.table({"a": [1]}).select([])),
    ),
    "text-of-no-kind": (
        InvalidParameter,
        ["source", "Parquet, CSV or DuckDB"],
        lambda at: written(at / "a.txt", ROW),
    ),
    "text-named-database": (InvalidParameter, ["source"], lambda at: written(at / "data.duckdb", ROW * 2000)),
    "spoiled-database": (
        EngineError,
        ["data.duckdb"],
        lambda at: written(at / "data.duckdb", b"\0" * 8 + b"DUCK" + SECRET.encode() * 2000),
    ),
    "empty-csv": (InvalidParameter, ["source", "first line names"], lambda at: written(at / "data.csv", "")),
    "blank-first-line": (
        InvalidParameter,
        ["source", "first line names"],
        lambda at: written(at / "data.csv", "\n" + ROW),
    ),
    "blank-name": (
        InvalidParameter,
        ["source", "names every column"],
        lambda at: written(at / "a.csv", "id,,x\n" + ROW),
    ),
    "same-name-twice": (
        InvalidParameter,
        ["source", "each once"],
        lambda at: written(at / "a.csv", "id,x,ID\n" + ROW),
    ),
    "name-of-two-lines": (
        InvalidParameter,
        ["source", "first line names"],
        lambda at: written(at / "a.csv", '"i\nd",x\n' + ROW),
    ),
    "endless-name": (
        InvalidParameter,
        ["source", "first line names"],
        lambda at: written(at / "a.csv", "x" * 200_000),
    ),
    "csv-in-latin-1": (
        EngineError,
        ["a.csv", "UTF-8"],
        lambda at: written(at / "a.csv", "größe,x\n".encode("latin-1")),
    ),
    "csv-in-utf-16": (EngineError, ["a.csv", "UTF-8"], lambda at: written(at / "a.csv", "a,b\n".encode("utf-16"))),
    "not-zipped": (EngineError, ["a.csv.gz", "UTF-8"], lambda at: written(at / "a.csv.gz", "id,x\n" + ROW)),
    "zipped-and-cut": (
        EngineError,
        ["a.csv.gz"],
        lambda at: written(at / "a.csv.gz", gzip.compress(("id,x,y\n" + ROW * 9999).encode())[:-200]),
    ),
    "csv-files-with-other-columns": (
        EngineError,
        ["a.csv", "b.csv", "same columns"],
        lambda at: folder(at / "f", a_csv="id,x\n" + ROW, b_csv="id,y\n" + ROW),
    ),
    "csv-files-with-other-separators": (
        EngineError,
        ["a.csv", "b.csv", "same columns"],
        lambda at: folder(at / "f", a_csv="id,x\n" + ROW, b_csv="id;x\n" + ROW),
    ),
    "no-table": (InvalidParameter, ["table", "it has none"], lambda at: database(at / "data.duckdb")),
    "several-tables": (
        InvalidParameter,
        ["table is None", "one, two"],
        lambda at: database(at / "a.db", "CREATE TABLE one (a INT)", "CREATE TABLE two (b INT)"),
    ),
    "only-a-view": (
        InvalidParameter,
        ["table", "it has none"],
        lambda at: database(at / "a.db", f"CREATE VIEW v AS SELECT '{SECRET}' AS a"),
    ),
    "pipe": (InvalidParameter, ["source"], lambda _: "/dev/null"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_table(name, tmp_path):
    kind, words, make = FILES[name]
    refused(kind, words, make(tmp_path))


OTHER_SHAPES = {
    "another-name": pa.table({"id": [1], "other": [SECRET]}),
    "one-more": pa.table({"id": [1], "name": [SECRET], "more": [1]}),
    "one-less": pa.table({"id": [1]}),
    "text-for-number": pa.table({"id": [SECRET], "name": [SECRET]}),
    "floating": pa.table({"id": [1.5], "name": [SECRET]}),
    "narrower": pa.table({"id": pa.array([1], pa.int8()), "name": [SECRET]}),
}


@pytest.mark.parametrize("name", OTHER_SHAPES)
def test_parquet_files_of_one_folder_have_one_schema(name, tmp_path):
    own = pa.table({"id": [1], "name": [SECRET]})
    made = folder(tmp_path / "f", a_parquet=own, b_parquet=own, c_parquet=OTHER_SHAPES[name])
    refused(EngineError, ["a.parquet", "c.parquet", "same columns"], made)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.timestamp("ms")),
        (pa.int64(), pa.uint64()),
    ],
    ids=["scale", "zone", "precision", "sign"],
)
def test_parquet_types_that_differ_only_a_little_are_not_one_schema(one, other, tmp_path):
    none = [pa.table({"x": pa.array([None], each)}) for each in (one, other)]
    made = folder(tmp_path / "f", a_parquet=none[0], b_parquet=none[1])
    refused(EngineError, ["a.parquet", "b.parquet", "same columns"], made)


def test_the_same_columns_in_another_order_are_one_schema(tmp_path):
    own = pa.table({"id": [1], "name": ["a"]})
    made = folder(tmp_path / "f", a_parquet=own, b_parquet=own.select(["name", "id"]))
    with closing(open_duckdb(made, None)) as engine:
        where = Compare(engine.schema["id"], Operator.EQ, 1)
        assert engine.measure([Count(where)]) == [2]


# Databases that somebody else is using

WRITER = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO t VALUES (1)")
print("writing", flush=True)
sys.stdin.read()
"""


def test_a_database_that_another_process_is_writing_to(tmp_path):
    path = database(tmp_path / "a.db", "CREATE TABLE t (a INT)")
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "writing\n"
        refused(EngineError, [str(path), "cannot be read"], path)
        writer.stdin.close()
    open_duckdb(path, None).close()


def test_a_database_that_this_process_is_writing_to(tmp_path):
    path = database(tmp_path / "a.db", "CREATE TABLE t (a INT)")
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        refused(EngineError, [str(path), "cannot be read"], path)


def test_a_refused_database_can_be_written_to_again(tmp_path):
    path = database(tmp_path / "a.db", f"CREATE TABLE t AS SELECT 1 AS id, '{SECRET}' AS name")
    refused(InvalidParameter, ["unit"], path, "nobody")
    database(path, "INSERT INTO t VALUES (2, 'x')")


def test_two_engines_may_read_one_database(tmp_path):
    path = database(tmp_path / "a.db", f"CREATE TABLE t AS SELECT 1 AS id, '{SECRET}' AS name")
    one, other = open_duckdb(path, None), open_duckdb(path, "id")
    assert one.schema == other.schema
    one.close()
    other.close()
