"""No value that a source can store makes a question fail: raw integers of times and dates, bytes that are no text.

Every kind of question, with such a column asked about and as the unit, against the naive reference.
"""

import datetime as dt
import tempfile
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.engines.asking import measures, measures_by_key, told
from tests.engines.counting import by_codes, having, known
from tests.engines.identities import by_value, in_order
from tests.engines.naive import NaiveEngine
from tests.sizes import size

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.measures import Count, Sketch
from targetcharge.queries.tree import Column, Exact, Kind

TABLES = size(6, 60)
"""Random tables of each source."""

KEY = b"0" * 32
EPOCH = dt.datetime(1970, 1, 1)
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The first second of year 1, and the last of year 9999, since 1970."""

EDGES = (
    *(-(2**63), -(2**63) + 1, -(2**63) + 2, 2**63 - 1, 2**63 - 2, 2**62, -(2**62), 0, 1, -1, 999, -999, -1001),
    *(-9223372022400000000, -9223372022400000001, -9223372036854775, -9223372036854776, 9223372036854776),
    *(-9223372022400000, -9223372022400001, -9223372036855, 9223372036855, 1_709_210_096, -2208988800),
)


def raw_times(unit):
    """Integers of times: the ends of what integers, DuckDB, pandas and the calendar hold, and any others."""
    step = PER_SECOND[unit]
    ends = [end * step + more for end in (FIRST, LAST + 1) for more in (-1, 0, 1)]
    usual = st.integers(1_700_000_000, 1_700_000_400).map(lambda second: second * step)
    inside = [end for end in (*EDGES, *ends) if -(2**63) <= end < 2**63]
    return st.sampled_from(inside) | usual | st.integers(-(2**63), 2**63 - 1)


def time_of(raw, unit):
    """Return the time that an integer stands for, down to the microsecond; None if it cannot be represented."""
    if raw is None or (unit == "ns" and abs(raw) >= 2**63 - 1):
        return None
    microseconds = raw * 10**6 // PER_SECOND[unit]
    if not FIRST * 10**6 <= microseconds < (LAST + 1) * 10**6:
        return None
    return EPOCH + dt.timedelta(microseconds=microseconds)


def date_of(raw):
    return None if raw is None or not -719162 <= raw <= 2932896 else EPOCH.date() + dt.timedelta(days=raw)


def arrow_times(cells, unit, zone):
    return pa.array(cells, pa.int64()).cast(pa.timestamp(unit, zone))


def numpy_times(cells, unit, zone):
    integers = np.array([-(2**63) if cell is None else cell for cell in cells], dtype=np.int64)
    series = pd.Series(integers.view(f"datetime64[{unit}]"))
    return series if zone is None else series.dt.tz_localize("UTC").dt.tz_convert(zone)


def table(cells, column):
    places = range(len(cells))
    whole = pa.array(places, pa.int64()), pa.array([place // 2 for place in places], pa.int64())
    return pa.table({"v": column, "w": whole[0], "u": whole[1]})


def parquet(cells, column, folder):
    try:
        pq.write_table(table(cells, column), folder / "t.parquet")
    except pa.ArrowInvalid:  # Arrow itself cannot write it
        assume(False)
    return folder / "t.parquet"


SOURCES = {
    "arrow": lambda cells, column, _: table(cells, column),
    "polars": lambda cells, column, _: pl.from_arrow(table(cells, column)),
    "parquet": parquet,
    "pandas-arrow": lambda cells, column, _: table(cells, column).to_pandas(types_mapper=pd.ArrowDtype),
}


def agrees(source, rows, unit, drawn, schema):
    """Compare all questions about a table with the reference."""
    for row in rows:
        row["whose"], row["rank"] = (row["unit"], row["rank"]) if unit == "v" else (row.get(unit), row.get(unit))
    rank = (lambda row: row["rank"]) if unit == "v" or not isinstance(source, pd.DataFrame) else None
    if rank is None:
        rank = lambda row: row["whose"]  # noqa: E731 - whole numbers
    as_text = isinstance(source, pd.DataFrame)  # canonical: the end of what by_value_rank() makes
    data = (lambda row: (row["rank"][1] if unit == "v" else str(int(row["whose"]))).encode()) if as_text else None
    naive = NaiveEngine(rows, schema, None if unit is None else "whose", rank, data)
    questions = drawn.draw(measures(naive))
    keyed = drawn.draw(measures_by_key(naive))
    with closing(open_duckdb(source, unit)) as engine:
        assert engine.schema == naive.schema
        differing = {
            **{told(each): (engine.measure([each]), naive.measure([each])) for each in questions},
            **{told(*each): (engine.measure_by(*each), naive.measure_by(*each)) for each in keyed},
            "together": (engine.measure(questions), naive.measure(questions)),
            "units": (engine.units(), naive.units()),
        }
        assert not {question: pair for question, pair in differing.items() if pair[0] != pair[1]}
        wheres = [each.where for each in questions if isinstance(each, Count) and each.where is not None]
        coded = by_codes(engine, wheres)
        assert list(coded.values()) == naive.measure([Count(wheres[index]) for index in coded])
        plain = [each for each in questions if not isinstance(each, Sketch)]
        theirs, ours = naive.contributions(plain), engine.contributions(plain)
        assert [each.tolist() for each in (ours.units, ours.starts)] == [
            each.tolist() for each in (theirs.units, theirs.starts)
        ]
        assert engine.digest_of_units(KEY) == engine.digest_of_units(KEY)
        assert engine.fingerprint(KEY, 1)
        engine.append(source) if not isinstance(source, Path) else None
        engine.check_unchanged()


WHOLE = Exact(0, -(2**63), 2**63 - 1)


def schema_of(kind, source):
    numbers = None if isinstance(source, pd.DataFrame) else WHOLE
    return {"v": Column("v", kind), "w": Column("w", Kind.NUMBER, numbers), "u": Column("u", Kind.NUMBER, numbers)}


def rows_of(cells, values, source, units):
    plain = float if isinstance(source, pd.DataFrame) else int
    rows = []
    for place, (value, unit) in enumerate(zip(values, units, strict=True)):
        rank = by_value_rank(value, unit) if isinstance(source, pd.DataFrame) else unit
        rows.append({"v": value, "w": plain(place), "u": plain(place // 2), "unit": unit, "rank": rank})
    assert len(rows) == len(cells)
    return rows


def by_value_rank(value, unit):
    """Return the text by which pandas' units are ordered: microseconds, and what is left in nanoseconds."""
    if value is None:
        return None
    left = unit % 1000 if isinstance(unit, int) else 0
    return in_order(by_value(value) + (f".{left}" if left else ""))


UNITS = st.sampled_from([None, "u", "v"])
CALM = {"max_examples": TABLES, "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


@pytest.mark.parametrize("name", [*SOURCES, "pandas-numpy"])
@settings(**CALM)
@given(unit=st.sampled_from(list(PER_SECOND)), zone=st.sampled_from([None, "Asia/Tokyo"]), data=st.data())
def test_times_of_any_integer(name, unit, zone, data):
    cells = data.draw(st.lists(st.none() | raw_times(unit), max_size=8), label="raw")
    if name == "pandas-numpy":
        times = numpy_times(cells, unit, zone)
        source = pd.DataFrame({"v": times, "w": range(len(cells)), "u": [n // 2 for n in range(len(cells))]})
        source = source.astype({"w": "int64", "u": "int64"})
    if name == "polars" and unit == "s":  # it has none, and multiplies
        cells = [None if cell is None else cell // 1000 for cell in cells]
    values = [time_of(cell, unit) for cell in cells]
    units = [None if v is None else cell if unit == "ns" else v for v, cell in zip(values, cells, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        if name != "pandas-numpy":
            source = SOURCES[name](cells, arrow_times(cells, unit, zone), Path(folder))
        rows = rows_of(cells, values, source, units)
        agrees(source, rows, data.draw(UNITS, label="unit"), data, schema_of(Kind.TIME, source))


DAYS = st.sampled_from([-(2**31), 2**31 - 1, -(2**31) + 1, 2**31 - 2, -719163, -719162, 2932896, 2932897, 0, -1])
DATES = {
    "days": (DAYS | st.integers(-(2**31), 2**31 - 1), lambda cells: pa.array(cells, pa.int32()).cast(pa.date32())),
    "milliseconds": (
        (DAYS | st.integers(-(2**37), 2**37 - 1))
        .map(lambda day: day * 86_400_000)
        .filter(lambda n: abs(n) < 2**63),
        lambda cells: pa.array(cells, pa.int64()).cast(pa.date64()),
    ),
}


@pytest.mark.parametrize("name", SOURCES)
@settings(**CALM)
@given(kind=st.sampled_from(list(DATES)), data=st.data())
def test_dates_of_any_integer(name, kind, data):
    assume((kind, name) != ("milliseconds", "polars"))  # it makes times
    raw, made = DATES[kind]
    cells = data.draw(st.lists(st.none() | raw, max_size=8), label="raw")
    step = 1 if kind == "days" else 86_400_000
    values = [None if cell is None else date_of(cell // step) for cell in cells]
    if kind == "milliseconds" and name == "parquet":
        assume(all(cell is None or abs(cell // step) < 2**31 for cell in cells))  # they hold days in 32 bits
    with tempfile.TemporaryDirectory() as folder:
        source = SOURCES[name](cells, made(cells), Path(folder))
        rows = rows_of(cells, values, source, values)
        agrees(source, rows, data.draw(UNITS, label="unit"), data, schema_of(Kind.DATE, source))


# Bytes that are no text


def strings(*parts, kind=pa.string(), offset=np.int32):  # noqa: B008 - a type, not a value that is shared
    ends = np.cumsum([0, *map(len, parts)]).astype(offset)
    return pa.Array.from_buffers(
        kind, len(parts), [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(parts))]
    )


@pytest.mark.parametrize("unit", [None, "id", "x"])
@pytest.mark.parametrize("name", ["arrow", "arrow-large", "parquet"])
def test_bytes_that_are_no_text_make_no_question_fail(name, unit, tmp_path):
    parts = [b"a", b"b\xff", b"\xc3", b"\xed\xa0\x80", "é".encode(), b"", b"\xf4\x90\x80\x80", b"a\0b"]
    large = name == "arrow-large"
    texts = strings(*parts, kind=pa.large_string(), offset=np.int64) if large else strings(*parts)
    source = pa.table({"id": range(8), "x": texts})
    if name == "parquet":
        pq.write_table(source, tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    with closing(open_duckdb(source, unit)) as engine:
        assert having(engine, "x", "a", "é", "") == [1, 1, 1]
        assert engine.measure([Sketch(engine.schema["x"], None, 1, 2**40, "key")])[0] >= 4
        assert engine.units() == engine.measure([Count(None)])[0]
        assert known(engine, "x")[0] >= 4
        assert engine.digest_of_units(KEY)


def test_halves_of_characters_in_pandas_make_no_question_fail():
    ids = pd.Series(["a", "\ud800", "b\udfff", "\ud83d\ude00", "a\0"], dtype="object")
    with closing(open_duckdb(pd.DataFrame({"id": ids, "x": ids}), "id")) as engine:
        assert engine.units() == engine.measure([Count(None)])[0] == 4
        assert known(engine, "x") == [1]


# What a reader refuses


def test_a_text_that_is_no_json_in_a_column_of_json_is_text(tmp_path):
    texts = ["{}"] * 4 + ["", "{", '"\\ud800"']
    table = pa.table({"id": range(7), "j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts))})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", table):
        for unit in (None, "id", "j"):
            with closing(open_duckdb(source, unit)) as engine:
                assert having(engine, "j", "{}", "", "{") == [1 if unit == "j" else 4, 1, 1]
                assert engine.units() == (4 if unit == "j" else 7)


def test_a_decimal_with_more_digits_than_it_declares_is_missing(tmp_path):
    raw = b"".join((number % 2**128).to_bytes(16, "little") for number in (-(2**127), 100, 2**127 - 1, 10**38))
    prices = pa.Array.from_buffers(pa.decimal128(38, 2), 4, [None, pa.py_buffer(raw)])
    pq.write_table(pa.table({"id": range(4), "price": prices}), tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", pa.table({"id": range(4), "price": prices})):
        for unit in (None, "id", "price"):
            with closing(open_duckdb(source, unit)) as engine:
                assert known(engine, "price") == [1]
                assert engine.measure([Sketch(engine.schema["price"], None, 1, 64, "k")]) == [1]
                assert engine.units() == (1 if unit == "price" else 4)
                assert engine.digest_of_units(KEY)


@pytest.mark.parametrize("odd", [0, 2**62])
def test_a_copy_of_a_file_has_the_columns_of_the_file(odd, tmp_path):
    folder = tmp_path / "site=A" / "visits"
    (folder / "year=2024").mkdir(parents=True)
    nested = {
        "s": pa.array([{"ts": None}] * 2, pa.struct([("ts", pa.timestamp("ms"))])),
        "m": pa.array([[("a", None)]] * 2, pa.map_(pa.string(), pa.timestamp("ms"))),
    }
    times = {"ts": arrow_times([10**15] * 2, "us", None), "when": arrow_times([0, odd], "ms", None)}
    pq.write_table(
        pa.table({"id": [1, 2], **times, "value": [1, 2], **nested}), folder / "year=2024" / "f.parquet"
    )
    with closing(open_duckdb(folder, None)) as engine:
        assert list(engine.schema) == ["id", "ts", "when", "value", "site", "year"]
        assert having(engine, "ts", EPOCH + dt.timedelta(seconds=10**9)) == [2]
        assert known(engine, "when", "value") == [2 if odd == 0 else 1, 2]
        assert having(engine, "site", "A") == [2]


UNASKED = {
    "list": pa.array([[2**62]], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("ms", "UTC"))),
    "duration": pa.array([2**62], pa.int64()).cast(pa.duration("s")),
    "struct": pa.StructArray.from_arrays([arrow_times([2**62], "s", "UTC")], ["t"]),
}


@pytest.mark.parametrize("name", UNASKED)
def test_a_column_that_cannot_be_asked_about_is_not_read(name):
    with closing(open_duckdb(pa.table({"id": [1], "v": UNASKED[name]}), "id")) as engine:
        assert (list(engine.schema), list(engine._table.shape.other)) == (["id"], ["v"])


@pytest.mark.parametrize(("unit", "zone"), [("us", None), ("ms", "UTC"), ("s", "UTC"), ("ns", None)])
def test_times_in_runs_and_dictionaries_are_times(unit, zone):
    odd, usual = arrow_times([-(2**63)], unit, zone), arrow_times([0], unit, zone)
    runs = pa.RunEndEncodedArray.from_arrays([1, 3], pa.concat_arrays([odd, usual]))
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), pa.concat_arrays([odd, usual]))
    with closing(open_duckdb(pa.table({"id": range(3), "r": runs, "d": coded}), "id")) as engine:
        assert having(engine, "r", EPOCH) == having(engine, "d", EPOCH) == [2]
        assert known(engine, "r", "d") == [2, 2]


def test_a_computed_column_that_fails_for_a_row_is_missing_there(tmp_path):
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute("CREATE TABLE t (id INT, s VARCHAR, y INT GENERATED ALWAYS AS (CAST(s AS INT)))")
        connection.execute("INSERT INTO t VALUES (1, '1'), (2, '2')")
        connection.execute("UPDATE t SET s = 'x' WHERE id = 2")
    with closing(open_duckdb(tmp_path / "t.duckdb", "id")) as engine:
        assert having(engine, "y", 1) == [1]
        assert known(engine, "y", "s") == [1, 2]
