"""A DuckDB engine's own connection reaches its table and its spill folder, and cannot be told otherwise."""

import gc
import os
import stat
import threading
import time
from contextlib import closing

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.engines.duckdb.types import RELATION
from targetcharge.queries.measures import Count, Total
from targetcharge.queries.tree import Compare, Operator

COLUMNS = {"id": [1, 1, 2, 3], "name": ["a", "b", None, "c"]}
KINDS = ("parquet", "parquet-folder", "csv", "duckdb", "arrow", "polars", "pandas")

TRIES = {
    "read_text": "SELECT content FROM read_text('{text}')",
    "read_blob": "SELECT content FROM read_blob('{text}')",
    "read_csv": "SELECT * FROM read_csv('{text}')",
    "read_json": "SELECT * FROM read_json('{json}')",
    "read_parquet": "SELECT * FROM read_parquet('{parquet}')",
    "file-as-table": "SELECT * FROM '{parquet}'",
    "parquet_metadata": "SELECT * FROM parquet_metadata('{parquet}')",
    "pattern": "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "glob": "SELECT * FROM glob('{folder}/*')",
    "sniff_csv": "SELECT * FROM sniff_csv('{text}')",
    "attach": "ATTACH '{database}' AS other",
    "attach-read-only": "ATTACH '{database}' AS other (READ_ONLY)",
    "copy-to": "COPY data TO '{out}.csv'",
    "copy-to-parquet": "COPY data TO '{out}.parquet' (FORMAT parquet)",
    "copy-from": "CREATE TABLE c (a VARCHAR); COPY c FROM '{text}'",
    "export": "EXPORT DATABASE '{out}'",
    "import": "IMPORT DATABASE '{folder}'",
    "install": "INSTALL httpfs",
    "install-from": "INSTALL spatial FROM community",
    "load": "LOAD httpfs",
    "load-file": "LOAD '{folder}/evil.duckdb_extension'",
    "http": "SELECT * FROM read_csv('http://127.0.0.1:9/data.csv')",
    "https-as-table": "SELECT * FROM 'https://127.0.0.1:9/data.parquet'",
    "s3": "SELECT * FROM read_parquet('s3://bucket/data.parquet')",
    "set-external-access": "SET enable_external_access = true",
    "set-allowed-paths": "SET allowed_paths = ['{text}']",
    "set-allowed-directories": "SET allowed_directories = ['{folder}']",
    "set-temp-directory": "SET temp_directory = '{folder}'",
    "set-memory": "SET memory_limit = '1TB'",
    "set-threads": "SET threads = 1",
    "set-lock": "SET lock_configuration = false",
    "set-replacements": "SET python_enable_replacements = true",
    "set-autoload": "SET autoload_known_extensions = true",
    "set-collation": "SET default_collation = 'nocase'",
    "set-logging": "SET enable_logging = true",
    "reset": "RESET enable_external_access",
    "pragma": "PRAGMA enable_profiling",
    "python-variable": "SELECT * FROM secret_frame",
}
NEVER = (
    *("import", "install", "install-from", "load", "load-file", "http", "https-as-table", "s3"),
    *("set-external-access", "reset", "set-lock"),
)
"""What no connection can do here: it needs a network or such a file, or was never allowed."""


def opened(kind, folder, **options):
    """Open a table of three units, in a folder of its own."""
    own = folder / "own"
    own.mkdir()
    table = pa.table(COLUMNS)
    match kind:
        case "parquet":
            pq.write_table(table, own / "data.parquet")
            return open_duckdb(own / "data.parquet", "id", **options)
        case "parquet-folder":
            pq.write_table(table.slice(0, 2), own / "a.parquet")
            pq.write_table(table.slice(2), own / "b.parquet")
            return open_duckdb(own, "id", **options)
        case "csv":
            (own / "data.csv").write_text("id,name\n1,a\n1,b\n2,\n3,c\n")
            return open_duckdb(own / "data.csv", "id", types={"id": "integer"}, **options)
        case "duckdb":
            with duckdb.connect(str(own / "data.duckdb")) as connection:
                connection.register("in_arrow", table)
                connection.execute("CREATE TABLE t AS FROM in_arrow")
            return open_duckdb(own / "data.duckdb", "id", **options)
        case "arrow":
            return open_duckdb(table, "id", **options)
        case "polars":
            return open_duckdb(pl.DataFrame(COLUMNS), "id", **options)
        case "pandas":
            return open_duckdb(pd.DataFrame(COLUMNS), "id", **options)


def append(engine, kind, folder):
    """Append a row of a unit that there is, in the form that the table has, and take back another."""
    later = {"id": [1], "name": ["a"]}
    for number in range(2):
        match kind:
            case "parquet" | "parquet-folder":
                source = folder / f"later-{number}.parquet"
                pq.write_table(pa.table(later), source)
            case "csv":
                source = folder / f"later-{number}.csv"
                source.write_text("id,name\n1,a\n")
            case "duckdb":
                source = folder / f"later-{number}.duckdb"
                with duckdb.connect(str(source)) as connection:
                    connection.execute("CREATE TABLE t AS SELECT CAST(1 AS BIGINT) AS id, 'a' AS name")
            case "arrow" | "parquet-arrow":
                source = pa.table(later)
            case "polars":
                source = pl.DataFrame(later)
            case "pandas":
                source = pd.DataFrame(later)
        engine.append(source)
    engine.retract()
    assert engine.units() == 3


@pytest.fixture(params=[*KINDS, *(f"{kind}, appended" for kind in (*KINDS, "parquet-arrow"))])
def engine(request, tmp_path):
    kind, _, appended = request.param.partition(", ")
    with closing(opened(kind.removesuffix("-arrow"), tmp_path)) as engine:
        if appended:
            append(engine, kind, tmp_path)
        yield engine


@pytest.fixture
def places(tmp_path):
    """Files of somebody else, and a place to write to."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "text.csv").write_text("a\nsecret\n")
    (folder / "data.json").write_text('{"a": "secret"}')
    pq.write_table(pa.table({"a": ["secret"]}), folder / "data.parquet")
    with duckdb.connect(str(folder / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'secret' AS a")
    return {
        "folder": folder,
        "text": folder / "text.csv",
        "json": folder / "data.json",
        "parquet": folder / "data.parquet",
        "database": folder / "other.duckdb",
        "out": tmp_path / "out",
    }


def test_nothing_but_the_table_is_reached(engine, places):
    connection = engine._table.link.raw
    secret_frame = pd.DataFrame({"a": ["secret"]})
    reached = []
    for name, sql in TRIES.items():
        try:
            connection.execute(sql.format(**places)).fetchall()
            reached.append(name)
        except duckdb.Error:
            pass
    assert reached == []
    assert len(secret_frame) == 1
    assert not list(places["out"].parent.glob("out*"))
    assert engine.measure([Count(None), Count(Compare(engine.schema["name"], Operator.EQ, "b"))]) == [3, 1]


@pytest.mark.parametrize("name", [name for name in TRIES if name not in NEVER])
def test_a_connection_that_is_not_locked_is_told_all_this(name, places):
    """The tries above fail for the lock, not for a slip in them."""
    secret_frame = pd.DataFrame({"a": ["secret"]})
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE data AS SELECT 1 AS a")
        connection.execute(TRIES[name].format(**places)).fetchall()
    assert len(secret_frame) == 1


def test_a_cursor_of_the_connection_is_locked_too(engine, places):
    with closing(engine._table.link.raw.cursor()) as cursor:
        with pytest.raises(duckdb.Error):
            cursor.execute(TRIES["read_text"].format(**places))
        with pytest.raises(duckdb.Error):
            cursor.execute("SET enable_external_access = true")


@pytest.mark.parametrize("later", [False, True], ids=["opened", "appended"])
def test_a_database_cannot_be_written_to(later, tmp_path):
    with closing(opened("duckdb", tmp_path)) as engine:
        if later:
            append(engine, "duckdb", tmp_path)
        for sql in (
            "INSERT INTO source.t VALUES (9, 'x')",
            "DROP TABLE source.t",
            "CREATE TABLE source.x (a INT)",
        ):
            with pytest.raises(duckdb.Error):
                engine._table.link.raw.execute(sql)
        engine.check_unchanged()


# Spilling


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file whose units do not fit in 60 MB."""
    path = tmp_path_factory.mktemp("large") / "data.parquet"
    with duckdb.connect() as connection:
        units = "SELECT md5(CAST(i % 1000000 AS VARCHAR)) AS unit, i % 10 AS x FROM range(1200000) r(i)"
        connection.execute(f"COPY ({units}) TO '{path}' (FORMAT parquet)")
    return path


class Watched:
    """What is seen in a folder while something runs."""

    def __init__(self, folder):
        self.folder = folder
        self.bytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _watch(self):
        while not self._done.is_set():
            self.bytes = max(self.bytes, sum(map(_size, self.folder.rglob("*"))))
            time.sleep(0.002)


def _size(path):
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def test_what_does_not_fit_in_memory_is_spilled_to_a_private_folder(large):
    with closing(open_duckdb(large, "unit", memory="60MB")) as engine:
        spill = engine._table.link.spill
        assert stat.S_IMODE(spill.stat().st_mode) == 0o700
        assert spill.stat().st_uid == os.getuid()
        with Watched(spill) as seen:
            assert engine.measure([Count(None)]) == [1_000_000]
            total = Total(engine.schema["x"], 0, 9, 1, None)
            assert engine.measure([total]) == [
                sum(min(9, i % 10 * (2 if i < 200_000 else 1)) for i in range(10**6))
            ]
        assert seen.bytes > 10_000_000
    assert not spill.exists()


@pytest.mark.parametrize("way", ["closed", "closed-twice", "dropped"])
@pytest.mark.parametrize("kind", ["arrow", "arrow, appended", "parquet, appended"])
def test_the_spill_folder_goes_with_the_table(kind, way, tmp_path):
    kind, _, appended = kind.partition(", ")
    engine = opened(kind, tmp_path)
    if appended:
        append(engine, kind, tmp_path)
    spill = engine._table.link.spill
    (spill / "left behind").write_text("by a query that was cut off")
    assert stat.S_IMODE(spill.stat().st_mode) == 0o700
    if way != "dropped":
        engine.close()
    if way == "closed-twice":
        engine.close()
    del engine
    gc.collect()
    assert not spill.exists()


def test_two_tables_have_two_folders(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    with closing(opened("arrow", tmp_path / "1")) as one, closing(opened("arrow", tmp_path / "2")) as other:
        assert one._table.link.spill != other._table.link.spill
        one.close()
        assert other.measure([Count(None)]) == [3]
        assert other._table.link.spill.exists()


def test_a_closed_table_cannot_be_measured(engine):
    engine.close()
    with pytest.raises(duckdb.Error):
        engine.measure([Count(None)])


def test_what_an_engine_shows_of_itself_is_public(engine):
    assert repr(engine) == "<DuckDB table, 2 columns>"
    assert RELATION not in str(engine.schema)
