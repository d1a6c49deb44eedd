"""Whether a table is still the one that was opened, and whether two tables are the same one."""

import gzip
import os
import shutil
import subprocess
import sys
from contextlib import closing

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import NotAllowed
from targetcharge.queries.measures import Count
from targetcharge.queries.tree import Compare, Operator

KEY = b"a key"
ROWS = {"id": [1, 2, 3], "name": ["swordfish", None, "b"], "x": [0.5, None, -0.0]}
CHANGED = {
    "value": {**ROWS, "id": [1, 9, 3]},
    "text": {**ROWS, "name": ["swordfisH", None, "b"]},
    "missing": {**ROWS, "x": [0.5, 1.0, -0.0]},
    "one-row-more": {name: [*cells, cells[0]] for name, cells in ROWS.items()},
    "one-row-less": {name: cells[:2] for name, cells in ROWS.items()},
    "name": {"other": ROWS["id"], "name": ROWS["name"], "x": ROWS["x"]},
    "swapped": {**ROWS, "id": [2, 1, 3]},
}


def write(kind, rows, path):
    """Write rows to a file and return its path."""
    table = pa.table(rows)
    path.parent.mkdir(exist_ok=True)
    match kind:
        case "parquet":
            pq.write_table(table, path)
        case "csv":
            path.write_bytes(_csv(table))
        case "csv-zipped":
            path.write_bytes(gzip.compress(_csv(table), mtime=0))
        case "duckdb":
            path.unlink(missing_ok=True)
            with duckdb.connect(str(path)) as connection:
                connection.register("rows", table)
                connection.execute("CREATE TABLE t AS FROM rows")
    return path


def _csv(table):
    return table.to_pandas().to_csv(index=False).encode()


ENDINGS = {"parquet": "parquet", "csv": "csv", "csv-zipped": "csv.gz", "duckdb": "duckdb"}


@pytest.fixture(params=ENDINGS)
def kind(request):
    return request.param


def path_of(kind, folder, name="data"):
    return folder / f"{name}.{ENDINGS[kind]}"


# Changes while a table is open


def append(path):
    with path.open("ab") as file:
        file.write(b"4,x,1\n")


def cut(path):
    os.truncate(path, path.stat().st_size - 1)


def replace(path):
    other = path.with_name("new")
    shutil.copy2(path, other)  # the same bytes, size and time: only the inode differs
    other.replace(path)


def rewrite(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 10**9))


def touch(path):
    os.utime(path, ns=(0, 0))


def delete(path):
    path.unlink()


@pytest.mark.parametrize(
    "change", [append, cut, replace, rewrite, touch, delete], ids=lambda change: change.__name__
)
def test_a_file_that_changes_is_refused(kind, change, tmp_path):
    path = write(kind, ROWS, path_of(kind, tmp_path))
    with closing(open_duckdb(path, None)) as engine:
        engine.check_unchanged()
        assert engine.measure([Count(None)]) == [3]
        engine.check_unchanged()
        change(path)
        for _ in range(2):
            with pytest.raises(NotAllowed, match="was changed, moved or removed") as caught:
                engine.check_unchanged()
            assert str(path) in str(caught.value)
            assert "swordfish" not in repr(caught.value)


def test_a_change_of_any_file_of_a_folder_is_seen(tmp_path):
    paths = [write("parquet", ROWS, path_of("parquet", tmp_path / "folder", name)) for name in "abc"]
    for path in paths:
        with closing(open_duckdb(tmp_path / "folder", None)) as engine:
            engine.check_unchanged()
            touch(path)
            with pytest.raises(NotAllowed, match=path.name):
                engine.check_unchanged()


def test_reading_and_looking_is_no_change(kind, tmp_path):
    path = write(kind, ROWS, path_of(kind, tmp_path))
    with closing(open_duckdb(path, "id")) as engine, closing(open_duckdb(path, None)) as other:
        path.read_bytes()
        os.utime(path, ns=(12345, path.stat().st_mtime_ns))  # only when it was read
        (tmp_path / "another.parquet").touch()
        assert other.measure([Count(None)]) == engine.measure([Count(None)])
        engine.check_unchanged()
        other.check_unchanged()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_frame_is_copied_and_cannot_change(make):
    frame = make(ROWS)
    with closing(open_duckdb(frame, None)) as engine:
        if isinstance(frame, pd.DataFrame):
            frame.loc[:, "x"] = 7.0
            frame["name"] = "another"
        del frame
        engine.check_unchanged()
        assert engine.measure([Count(Compare(engine.schema["x"], Operator.EQ, 0.5))]) == [1]
        assert engine.measure([Count(Compare(engine.schema["name"], Operator.EQ, "b"))]) == [1]


# Fingerprints


def fingerprint(source, key=KEY, **options):
    with closing(open_duckdb(source, None, **options)) as engine:
        found = engine.fingerprint(key, 1)
        assert engine.fingerprint(key, 1) == found
    return found


def test_the_same_file_has_the_same_fingerprint_anywhere(kind, tmp_path):
    path = write(kind, ROWS, path_of(kind, tmp_path / "one"))
    (tmp_path / "two").mkdir()
    copy = shutil.copy(path, path_of(kind, tmp_path / "two"))
    assert fingerprint(path) == fingerprint(copy) == fingerprint(str(path))
    assert "swordfish" not in fingerprint(path)


def test_another_key_gives_another_fingerprint(kind, tmp_path):
    path = write(kind, ROWS, path_of(kind, tmp_path))
    assert len({fingerprint(path, key) for key in (KEY, b"another", b"")}) == 3


@pytest.mark.parametrize("change", CHANGED)
def test_another_content_gives_another_fingerprint(kind, change, tmp_path):
    before = fingerprint(write(kind, ROWS, path_of(kind, tmp_path / "one")))
    assert fingerprint(write(kind, CHANGED[change], path_of(kind, tmp_path / "two"))) != before


def test_a_value_in_the_middle_of_a_parquet_file_is_not_in_its_footer_and_still_counts(tmp_path):
    numbers = list(range(1000))
    one = write("parquet", {"x": numbers}, tmp_path / "one" / "data.parquet")
    numbers[500], numbers[501] = numbers[501], numbers[500]
    other = write("parquet", {"x": numbers}, tmp_path / "two" / "data.parquet")
    assert one.stat().st_size == other.stat().st_size
    assert fingerprint(one) != fingerprint(other)


def test_the_names_and_the_number_of_files_count(tmp_path):
    for folder, names in {"one": "ab", "two": "ac", "three": "abc", "four": "ab"}.items():
        for name in names:
            write("parquet", ROWS, path_of("parquet", tmp_path / folder, name))
    found = {folder: fingerprint(tmp_path / folder) for folder in ("one", "two", "three", "four")}
    assert found["one"] == found["four"]
    assert len(set(found.values())) == 3


CRASH = """
import duckdb, os, sys
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO t VALUES (?, NULL, NULL)", [int(sys.argv[2])])
os._exit(1)  # before the log is folded into the file
"""


def test_what_a_database_has_only_in_its_log_counts(tmp_path):
    path = write("duckdb", ROWS, tmp_path / "data.duckdb")
    found = [fingerprint(path)]
    for number in (7, 8):
        copy = tmp_path / str(number) / "data.duckdb"
        copy.parent.mkdir()
        shutil.copy(path, copy)
        subprocess.run([sys.executable, "-c", CRASH, str(copy), str(number)], check=False)  # noqa: S603 - our own
        assert copy.with_name("data.duckdb.wal").exists()
        with closing(open_duckdb(copy, None)) as engine:
            assert engine.measure([Count(None)]) == [4]
        found.append(fingerprint(copy))
    assert len(set(found)) == 3


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.mark.parametrize("name", FRAMES)
def test_fingerprints_of_frames(name):
    make = FRAMES[name]
    backwards = {column: cells[::-1] for column, cells in ROWS.items()}
    assert fingerprint(make(ROWS)) == fingerprint(make(ROWS)) == fingerprint(make(backwards))
    assert fingerprint(make(ROWS), b"another") != fingerprint(make(ROWS))
    found = [fingerprint(make(rows)) for rows in (ROWS, *CHANGED.values(), {column: [] for column in ROWS})]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("column", ["d", "h", "data", "hash", "n", "row"])
def test_every_column_of_a_frame_counts_whatever_its_name(name, column):
    make = FRAMES[name]
    one, other = {column: [1, 1], "secret": ["a", "b"]}, {column: [1, 1], "secret": ["a", "c"]}
    assert fingerprint(make(one)) != fingerprint(make(other))


def test_rows_that_cancel_each_other_out_count():
    once, thrice = {"x": [1, 2]}, {"x": [1, 1, 1, 2]}
    assert fingerprint(pa.table(once)) != fingerprint(pa.table(thrice))


def test_units_of_pandas_keep_their_digits_in_a_fingerprint():
    one, other = pd.DataFrame({"id": [2**60, 1]}), pd.DataFrame({"id": [2**60 + 256, 1]})
    found = []
    for frame in (one, other):
        with closing(open_duckdb(frame, "id")) as engine:
            found.append(engine.fingerprint(KEY, 1))
    assert found[0] != found[1]


def test_an_empty_frame_of_another_type_is_another():
    assert fingerprint(pa.table({"x": pa.array([], pa.int64())})) != fingerprint(
        pa.table({"x": pa.array([], pa.string())})
    )
