"""What of a source ends up in a table: types, missing values; and one unit's rows do nothing to the others."""

import datetime as dt
import gzip
from contextlib import closing

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.counting import having, known
from tests.engines.rows import Table
from tests.engines.sources import FOLDER, SOURCES

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import InvalidParameter
from targetcharge.queries.keys import Keys, Period
from targetcharge.queries.measures import Count, Sketch, Total
from targetcharge.queries.tree import Column, Compare, Exact, Kind, Like, Missing, Not, OneOf, Operator

BIGINT = Exact(0, -(2**63), 2**63 - 1)


# CSV


def csv(tmp_path, content, name="data.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return closing(open_duckdb(path, None, **options))


def test_columns_that_are_not_declared_are_text(tmp_path):
    with csv(tmp_path, "a,b,c,d\n1,2024-01-01,true,1.50\n01,,false,x\n") as engine:
        assert {column.kind for column in engine.schema.values()} == {Kind.TEXT}
        assert having(engine, "a", "1", "01") == [1, 1]
        assert having(engine, "d", "1.50", "1.5") == [1, 0]


def test_declared_columns_are_what_they_are_declared_to_be(tmp_path):
    types = dict(zip("abcdef", ("integer", "number", "text", "date", "time", "boolean"), strict=True))
    row = "7,1.5,x,2024-02-29,2024-02-29 23:59:59.5,true\n"
    with csv(tmp_path, "a,b,c,d,e,f\n" + row, types=types) as engine:
        assert engine.schema == {
            "a": Column("a", Kind.NUMBER, BIGINT),
            "b": Column("b", Kind.NUMBER),
            "c": Column("c", Kind.TEXT),
            "d": Column("d", Kind.DATE),
            "e": Column("e", Kind.TIME),
            "f": Column("f", Kind.BOOLEAN),
        }
        day = dt.date(2024, 2, 29)
        found = [
            having(engine, "a", 7),
            having(engine, "b", 1.5),
            having(engine, "d", day),
            having(engine, "f", True),
        ]
        assert found == [[1]] * 4
        assert having(engine, "e", dt.datetime(2024, 2, 29, 23, 59, 59, 500_000)) == [1]


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("integer", ["x", "1.5x", "9223372036854775808", "--1", "1 2", "0x", "∞", "2024-01-01", "nan"]),
        ("number", ["x", "1,5", "1..5", "nan", "NaN", "five"]),
        ("date", ["x", "2024-02-30", "2024-13-01", "29/02/2024", "0"]),
        ("time", ["x", "2024-02-29 25:00:00", "2024-02-30 00:00:00", "12:00"]),
        ("boolean", ["x", "maybe", "2", "tru e"]),
    ],
    ids=["integer", "number", "date", "time", "boolean"],
)
def test_a_value_that_is_none_of_its_type_is_missing_and_its_row_stays(kind, wrong, name, tmp_path):
    right = {
        "integer": "1",
        "number": "1.5",
        "date": "2024-01-01",
        "time": "2024-01-01 00:00:00",
        "boolean": "true",
    }
    lines = [f'{number},"{value}"' for number, value in enumerate([right[kind], *wrong, right[kind]])]
    content = "\n".join(["id,x", *lines]).encode()
    content = gzip.compress(content) if name.endswith("gz") else content
    with csv(tmp_path, content, name, types={"x": kind, "id": "integer"}) as engine:
        assert engine.measure([Count(None)]) == [len(wrong) + 2]
        assert known(engine, "x", "id") == [2, len(wrong) + 2]


RAGGED = {
    "short": ("1,a,x\n2\n3,c,z\n", 2, ["1", "3"]),
    "long": ("1,a,x\n2,b,y,w,v\n3,c,z\n", 2, ["1", "3"]),
    "blank": ("1,a,x\n\n3,c,z\n", 2, ["1", "3"]),
    "windows": ("1,a,x\r\n2,b,y\r\n3,c,z\r\n", 3, ["1", "2", "3"]),
    "last-line-open": ("1,a,x\n3,c,z", 2, ["1", "3"]),
    "no-utf-8": (b"1,a,x\n2,\xff\xfe,y\n3,c,z\n", 3, ["1", "2", "3"]),
    "return-inside": ("1,a,x\n2,b\r8,forged\r,y\n3,c,z\n", 2, ["1", "3"]),
    "return-at-the-end": ("1,a,x\n2,b,y\r\n3,c,z\n", 3, ["1", "2", "3"]),
    "very-long": ("1,a,x\n2," + "b" * 3_000_000 + ",y\n3,c,z\n", 2, ["1", "3"]),
    "quote-inside": ('1,a,x\n2,b"b,y\n3,c,z\n', 3, ["1", "2", "3"]),
    "line-break-inside": ('1,a,x\n2,"b\nb",y\n3,c,z\n', 3, ["1", "2", "3"]),
    "no-rows": ("", 0, []),
}


@pytest.mark.parametrize("name", RAGGED)
def test_a_line_that_is_not_like_the_others_does_nothing_to_them(name, tmp_path):
    content, count, ids = RAGGED[name]
    content = content.encode() if isinstance(content, str) else content
    with csv(tmp_path, b"id,name,rest\n" + content) as engine:
        assert engine.measure([Count(None)]) == [count]
        assert having(engine, "id", "1", "2", "3") == [int(each in ids) for each in ("1", "2", "3")]
        if "3" in ids:
            assert having(engine, "rest", "z") == [1]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old-mac"])
def test_a_record_ends_as_the_first_line_does(end, tmp_path):
    others = {"\n": "\r", "\r\n": "\r", "\r": "\n"}[end]
    lines = ["id,name", "1,a", f"2,b{others}9{others}8,forged", '3,"c"', "4,d"]
    with csv(tmp_path, end.join(lines) + end) as engine:
        assert having(engine, "id", "1", "2", "3", "4", "8", "9") == [1, 0, 1, 1, 0, 0]
        assert having(engine, "name", "a", "c", "d") == [1, 1, 1]


def test_a_text_with_returns_makes_no_rows(tmp_path):
    """As pandas and csv.writer write it: not quoted."""
    (tmp_path / "with.csv").write_bytes(b"id,note\n1,a\n2,x\rfake0\rfake1\rfake2,\rz\n3,c\n")
    (tmp_path / "without.csv").write_bytes(b"id,note\n1,a\n3,c\n")
    counts = []
    for name in ("with.csv", "without.csv"):
        with closing(open_duckdb(tmp_path / name, "id")) as engine:
            counts.append(engine.measure([Count(None)])[0])
    assert counts[0] - counts[1] in (0, 1)


def test_folders_that_look_like_partitions_change_no_csv_file(tmp_path):
    folder = tmp_path / "id=abc"
    folder.mkdir()
    (folder / "y.csv").write_text("id,x\nu0,1\nu1,2\n")
    for source in (folder / "y.csv", tmp_path):
        with closing(open_duckdb(source, "id")) as engine:
            assert engine.measure([Count(None)]) == [2]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"], ids=["comma", "semicolon", "tab", "bar"])
def test_separators_and_a_byte_order_mark(separator, tmp_path):
    lines = ["\ufeffid" + separator + '"a ""b"""', "1" + separator + '"x' + separator + 'y"']
    with csv(tmp_path, "\n".join(lines)) as engine:
        assert list(engine.schema) == ["id", 'a "b"']
        assert having(engine, 'a "b"', f"x{separator}y") == [1]


def test_a_folder_of_csv_files_is_one_table(tmp_path):
    for name, rows in {"a.csv": "1,x\n", "b.csv": "2,y\n2,z\n", "c.csv": ""}.items():
        (tmp_path / name).write_text("id,name\n" + rows)
    with closing(open_duckdb(tmp_path, "id")) as engine:
        assert engine.measure([Count(None)]) == [2]


@pytest.mark.parametrize("name", ["d*a", "d?a", "d[b]a", "[d]ba", "{dba,x}"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_whose_name_looks_like_a_pattern_is_one_file(name, ending, tmp_path):
    for each, number in {name: 1, "dba": 2, "d*ba": 3}.items():
        path = tmp_path / f"{each}.{ending}"
        pq.write_table(pa.table({"x": [str(number)]}), path) if ending == "parquet" else path.write_text(
            f"x\n{number}\n"
        )
    with closing(open_duckdb(tmp_path / f"{name}.{ending}", None)) as engine:
        assert engine.measure([Count(None)]) == [1]
        assert having(engine, "x", "1") == [1]


# Types that cannot be asked about

OTHER = {
    "photo": ("BLOB", "'swordfish'::BLOB", "BLOB"),
    "numbers": ("INTEGER[]", "[1]", "LIST"),
    "fixed": ("INTEGER[2]", "[1, 2]", "LIST"),
    "pair": ("STRUCT(a INTEGER)", "{'a': 1}", "STRUCT"),
    "map": ("MAP(VARCHAR, INTEGER)", "MAP {'swordfish': 1}", "MAP"),
    "wait": ("INTERVAL", "INTERVAL 1 DAY", "INTERVAL"),
    "hour": ("TIME", "TIME '12:00:00'", "TIME"),
    "bits": ("BIT", "'101'::BIT", "BIT"),
    "either": ("UNION(a INTEGER)", "union_value(a := 1)", "UNION"),
    "colours": ("colour[]", "['swordfish']::colour[]", "LIST"),
    "painted": ("STRUCT(c colour)", "{'c': 'swordfish'}", "STRUCT"),
}


def test_columns_of_other_types_are_listed_and_not_in_the_schema(tmp_path):
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TYPE colour AS ENUM ('red', 'swordfish')")
        columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in OTHER.items())
        connection.execute(f"CREATE TABLE t (id INTEGER, c colour, {columns})")
        values = ", ".join(value for _, value, _ in OTHER.values())
        connection.execute(f"INSERT INTO t VALUES (1, 'red', {values})")
    with closing(open_duckdb(path, "id")) as engine:
        assert engine.schema == {
            "id": Column("id", Kind.NUMBER, Exact(0, -(2**31), 2**31 - 1)),
            "c": Column("c", Kind.TEXT),
        }
        assert dict(engine._table.shape.other) == {name: shown for name, (*_, shown) in OTHER.items()}
        assert "swordfish" not in repr((engine, engine.schema, dict(engine._table.shape.other)))
        assert engine.measure([Count(None)]) == [1]


def test_other_types_in_parquet_and_arrow(tmp_path):
    table = pa.table(
        {
            "id": [1],
            "photo": [b"x"],
            "list": [["swordfish"]],
            "pair": [{"a": 1}],
            "hour": pa.array([dt.time(12)]),
            "map": pa.array([[("swordfish", 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet")
    expected = {"photo": "BLOB", "list": "LIST", "pair": "STRUCT", "hour": "TIME", "map": "MAP"}
    for source in (table, tmp_path / "data.parquet"):
        with closing(open_duckdb(source, "id")) as engine:
            assert list(engine.schema) == ["id"]
            assert dict(engine._table.shape.other) == expected


def test_other_types_in_pandas():
    frame = pd.DataFrame(
        {
            "id": [1],
            "wait": [pd.Timedelta(1)],
            "month": [pd.Period("2024-01")],
            "range": [pd.Interval(0, 987654321)],
            "complex": [1j],
            "list": pd.Series([["swordfish"]], dtype=pd.ArrowDtype(pa.list_(pa.string()))),
            "hour": pd.Series([dt.time(12)], dtype=pd.ArrowDtype(pa.time64("us"))),
        }
    )
    with closing(open_duckdb(frame, "id")) as engine:
        assert list(engine.schema) == ["id"]
        assert list(engine._table.shape.other) == ["wait", "month", "range", "complex", "list", "hour"]
        assert "987654321" not in repr(dict(engine._table.shape.other))


def test_a_column_of_a_type_that_cannot_be_asked_about_cannot_be_declared(tmp_path):
    pq.write_table(pa.table({"id": [1, 2], "list": [[1], None]}), tmp_path / "data.parquet")
    with pytest.raises(
        InvalidParameter, match="left out for column 'list': its type, LIST, cannot be asked about"
    ):
        open_duckdb(tmp_path / "data.parquet", None, types={"list": "text"})


def test_a_value_that_is_not_what_its_column_is_declared_to_be_is_missing(tmp_path):
    pq.write_table(
        pa.table({"id": [1, 2], "name": ["7", "x"], "raw": [b"12", b"\xff"]}), tmp_path / "data.parquet"
    )
    with closing(
        open_duckdb(tmp_path / "data.parquet", None, types={"name": "integer", "raw": "integer"})
    ) as engine:
        assert engine.schema["name"] == Column("name", Kind.NUMBER, BIGINT)
        assert known(engine, "name", "raw") == [1, 1]
        assert having(engine, "name", 7) == [1]
        total = Total(engine.schema["name"], 0, 100, 1, None)
        assert engine.measure([total]) == [7]
        assert engine.measure_by(Count(None), Keys((engine.schema["name"],), ((7,), (8,)))) == [1, 0]


def test_types_that_only_databases_have(tmp_path):
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (u UUID, j JSON, d DATE, t TIMESTAMP, z TIMESTAMPTZ)")
        one = "'6f3ab1b2-0000-4000-8000-000000000001', '{\"a\": 1}'"
        connection.execute(f"INSERT INTO t VALUES ({one}, 'infinity', 'infinity', 'infinity')")
        connection.execute(f"INSERT INTO t VALUES ({one}, '-infinity', '-infinity', '-infinity')")
        connection.execute(
            f"INSERT INTO t VALUES ({one}, '0044-03-15 (BC)', '0044-03-15 (BC) 12:00', '12024-01-01 00:00+00')"
        )
        connection.execute(
            f"INSERT INTO t VALUES ({one}, '9999-12-31', '9999-12-31 23:59:59.999999', '0001-01-01 00:00+00')"
        )
    with closing(open_duckdb(path, None)) as engine:
        kinds = {name: column.kind for name, column in engine.schema.items()}
        assert kinds == {"u": Kind.TEXT, "j": Kind.TEXT, "d": Kind.DATE, "t": Kind.TIME, "z": Kind.TIME}
        assert having(engine, "u", "6f3ab1b2-0000-4000-8000-000000000001") == [4]
        assert engine.measure([Count(Like(engine.schema["j"], "%a%"))]) == [4]
        day, time = dt.date(1, 1, 1), dt.datetime(1, 1, 1)
        found = [Compare(engine.schema["d"], Operator.LT, day), Compare(engine.schema["t"], Operator.LT, time)]
        assert engine.measure([*map(Count, found)]) == [0, 0]
        assert known(engine, "d", "t", "z") == [1, 1, 1]
        for period, value in ((Period.DAY, day), (Period.HOUR, time)):
            for name in ("t", "z"):
                known_one = [int(name == "z")]
                assert (
                    engine.measure_by(Count(None), Keys((engine.schema[name],), ((value,),), period)) == known_one
                )
        sketches = [Sketch(column, None, 1, 2**40, "key") for column in engine.schema.values()]
        assert engine.measure(sketches) == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("unit", [None, "id", "name"])
def test_texts_are_the_same_if_every_character_is_whatever_the_collation_of_a_column(unit, tmp_path):
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE TABLE t (id INT, name TEXT COLLATE NOCASE, "a b" TEXT COLLATE NOACCENT)')
        connection.execute("INSERT INTO t VALUES (1, 'a', 'e'), (2, 'A', 'é'), (3, 'a', 'é'), (4, 'b', NULL)")
    with closing(open_duckdb(path, unit)) as engine:
        names = [engine.schema["a b"]] if unit == "name" else [engine.schema["name"], engine.schema["a b"]]
        assert engine.measure([Count(None)]) == [3 if unit == "name" else 4]
        for column in names:
            some, expected = {"name": ("aAbB", [2, 1, 1, 0]), "a b": ("eéE", [1, 2, 0])}[column.name]
            wheres = [Compare(column, Operator.EQ, value) for value in some]
            assert engine.measure([*map(Count, wheres)]) == expected
            assert [engine.measure([Count(where)])[0] for where in wheres] == expected
            assert engine.measure_by(Count(None), Keys((column,), tuple((value,) for value in some))) == expected
            assert engine.measure([Sketch(column, None, 1, 2**40, "key")]) == [sum(each > 0 for each in expected)]
        assert engine.units() == (3 if unit == "name" else 4)


@pytest.mark.parametrize("missing", [[], [None]], ids=["none-missing", "one-missing"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    "others", [[0.25, 2.5], [1.0, 1.0], [float("inf"), 1.0], []], ids=["two", "one", "infinite", "no"]
)
def test_nan_is_missing_although_the_statistics_of_a_parquet_file_leave_it_out(kind, missing, others, tmp_path):
    cells = [*others, float("nan"), *missing]
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": range(len(cells)), "x": pa.array(cells, kind)}), path)
    for unit in (None, "id"):
        with closing(open_duckdb(path, unit)) as engine:
            column = engine.schema["x"]
            wheres = [
                Missing(column),
                Not(Missing(column)),
                Compare(column, Operator.NE, 7.0),
                Compare(column, Operator.GT, -1.0),
                Not(Compare(column, Operator.LT, -1.0)),
                Compare(column, Operator.LT, -1.0),
            ]
            present = len(others)
            expected = [len(cells) - present, present, present, present, present, 0]
            assert engine.measure([*map(Count, wheres)]) == expected
            assert [engine.measure([Count(where)])[0] for where in wheres] == expected
            assert engine.measure([*map(Count, wheres * 2)]) == expected * 2
            assert engine.measure([Total(column, 1, 1, 1, None), Sketch(column, None, 1, 2**50, "k")]) == [
                present,
                len(set(others)),
            ]


def test_texts_with_a_zero_inside():
    texts = ["a\0b", "a", "a\0", "\0", None]
    for make in (pa.table, pd.DataFrame, pl.DataFrame):
        with closing(open_duckdb(make({"x": texts}), None)) as engine:
            column = engine.schema["x"]
            assert having(engine, "x", *texts[:4]) == [1, 1, 1, 1]
            patterns = [Count(Like(column, pattern)) for pattern in ("a%", "a_b", "%\0", "_")]
            assert engine.measure(patterns) == [3, 1, 2, 2]
            assert engine.measure_by(
                Count(OneOf(column, ("a\0b", "a"))), Keys((column,), (("a\0b",), ("\0",)))
            ) == [1, 0]


# Empty tables


@pytest.mark.parametrize("unit", [True, False], ids=["units", "rows"])
@pytest.mark.parametrize("name", SOURCES)
def test_an_empty_table_opens_and_has_nothing(name, unit, tmp_path):
    source = SOURCES[name]
    kinds = {kind.duck: kind for kind in source.types}
    wanted = ("VARCHAR", "BIGINT", "DOUBLE", "TIMESTAMP", "DATE", "BOOLEAN")
    table = source.fitted(Table({f"c{number}": kinds[name] for number, name in enumerate(wanted)}, ()))
    folder = tmp_path / FOLDER
    folder.mkdir()
    with closing(source.opened(table, folder, "c1" if unit else None)) as engine:
        schema = engine.schema
        assert schema == source.naive(table, None).schema
        columns = list(schema.values())
        measures = [Count(None), *(Count(Missing(column)) for column in columns)]
        measures += [Sketch(column, None, 1, 8, "key") for column in columns]
        measures += [Total(column, -3, 7, 1, None) for column in columns if column.kind is Kind.NUMBER]
        assert engine.measure(measures) == [0] * len(measures)
        assert engine.measure_by(Count(None), Keys((schema["c3"],), ((dt.date(2024, 1, 1),),), Period.DAY)) == [0]
        assert engine.measure_by(
            measures[-1], Keys((schema["c5"], schema["c2"]), ((True, 1.0), (False, 2.0)))
        ) == [0, 0]
        assert len(engine.fingerprint(b"key", 1)) == 64


def test_times_with_a_zone_are_in_utc_on_every_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    instant = pa.table(
        {"x": pa.array([dt.datetime(2024, 1, 1, 2, tzinfo=dt.UTC)], pa.timestamp("us", "Asia/Tokyo"))}
    )
    pq.write_table(instant, tmp_path / "data.parquet")
    for source in (instant, pl.from_arrow(instant), instant.to_pandas(), tmp_path / "data.parquet"):
        for types in ({}, {"x": "time"}):
            with closing(open_duckdb(source, None, types=types)) as engine:
                assert having(engine, "x", dt.datetime(2024, 1, 1, 2)) == [1]
        with closing(open_duckdb(source, None, types={"x": "date"})) as engine:
            assert having(engine, "x", dt.date(2024, 1, 1)) == [1]


def test_files_that_begin_with_a_dot_or_a_line_are_no_part_of_a_folder(tmp_path):
    for name in ("a.csv", ".b.csv", "_c.csv", "_temporary/d.csv", ".checkpoints/e.csv"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id,name\n1,x\n")
    with closing(open_duckdb(tmp_path / "folder", None)) as engine:
        assert engine.measure([Count(None)]) == [1]


def test_the_key_null_is_also_among_keys_that_are_sifted():
    rows = pa.table({"a": [1, None, 1, None, 2], "b": ["x", None, None, "x", "x"]})
    with closing(open_duckdb(rows, unit=None)) as engine:
        a, b = engine.schema["a"], engine.schema["b"]
        for keys, expected in (
            (Keys((a,), ((None,), (2,))), [2, 1]),
            (Keys((b,), (("x",),)), [3]),
            (Keys((a, b), ((None, None), (1, None), (1, "x"), (2, None))), [1, 1, 1, 0]),
        ):
            assert engine.measure_by(Count(None), keys) == expected
            assert engine._by_key(Count(None), keys, sifted=True) == expected
