"""Ids of units: given when they are needed, by what the data says and nothing else."""

import datetime as dt
import os
from contextlib import closing
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.growing import FIRST, KEY, SECOND, arrow
from tests.sizes import size

from targetcharge import identity
from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import EngineError, InvalidParameter
from targetcharge.queries.keys import Keys
from targetcharge.queries.measures import Count, Total
from targetcharge.queries.tree import Column, Compare, Missing, Operator


def number(engine, name, value, snapshot=None):
    """Return who has a value."""
    return engine.contributions([Count(Compare(engine.schema[name], Operator.EQ, value))], snapshot).units.tolist()


def units_tables(engine):
    return engine._table.link.rows("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'units%'")


def test_units_are_numbered_when_that_is_needed_and_once():
    with closing(open_duckdb(arrow(FIRST), "id")) as engine:
        engine.measure([Count(None)])
        engine.measure_by(Count(None), Keys((engine.schema["id"],), (("b",),)))
        engine.fingerprint(KEY, 1)
        assert units_tables(engine) == []
        engine.contributions([Count(None)])
        made = engine._table.unit_ids
        engine.units()
        engine.append(arrow(SECOND))
        assert units_tables(engine) == []
        assert (engine.units(), len(units_tables(engine))) == (4, 1)
        assert engine._table.unit_ids is not made


@pytest.mark.parametrize("unit", ["id", None])
def test_an_empty_table_has_no_units(unit):
    empty = {name: [] for name in FIRST}
    with closing(open_duckdb(arrow(empty), unit)) as engine:
        assert engine.units() == 0
        total = Total(engine.schema["x"], 1, 5, Fraction(1), None)
        found = engine.contributions([Count(None), total, Count(None)])
        assert (len(found), found.units.tolist(), found.steps.tolist(), found.starts.tolist()) == (
            3,
            [],
            [],
            [0, 0, 0, 0],
        )
        assert len(engine.contributions([])) == 0
        assert engine.contributions([]).steps is None
        assert len(engine.contributions_by(Count(None), Keys((engine.schema["x"],), ()))) == 0
        before = engine.digest_of_units(KEY)
        engine.append(arrow(empty))
        assert (engine.units(), engine.digest_of_units(KEY, 1)) == (0, before)
        engine.append(arrow(FIRST))
        assert engine.units() == (2 if unit else 4)
        if unit:  # nobody was there before
            assert engine.digest_of_units(KEY, 2) == engine.digest_of_units(KEY, 1) == before
        assert engine.digest_of_units(KEY) != before
        assert engine.contributions([Count(None)], 2).units.tolist() == []


def test_rows_without_a_unit_are_nobodys():
    table = pa.table({"id": [float("nan"), None, -0.0, 0.0, 5.0], "x": [1, 2, 3, 4, 5]})
    with closing(open_duckdb(table, "id")) as engine:
        assert engine.units() == 2
        assert [number(engine, "x", value) for value in range(1, 6)] == [[], [], [0], [0], [1]]
        assert engine.contributions([Count(Missing(engine.schema["id"]))]).units.tolist() == []


def test_a_bound_above_nothing_is_for_those_with_a_value():
    table = pa.table({"id": [1, 2, 2, 3], "x": pa.array([None, None, 1, 9], pa.int64())})
    with closing(open_duckdb(table, "id")) as engine:
        x = engine.schema["x"]
        asked = [Total(x, 5, 7, Fraction(1), None), Total(x, -1, 0, Fraction(1), None), Count(None)]
        found = engine.contributions(asked)
        assert [found.of(place)[0].tolist() for place in range(3)] == [[1, 2], [], [0, 1, 2]]
        assert [found.of(place)[1].tolist() for place in range(3)] == [[5, 7], [], [1, 1, 1]]
        assert engine.measure(asked) == [12, 0, 3]


@pytest.mark.parametrize("unit", ["id", None])
def test_more_measures_than_one_scan_takes(unit):
    numbers = np.arange(500)
    table = pa.table({"id": numbers // 2, "x": numbers % 97, "y": numbers % 11 - 5})
    with closing(open_duckdb(table, unit)) as engine:
        x, y = engine.schema["x"], engine.schema["y"]
        asked = []
        for value in range(97):
            where = Compare(x, Operator.EQ, value)
            asked += [Count(where)] + ([Total(y, -3, 4, Fraction(1), where)] if value % 3 else [])
        together, alone = engine.contributions(asked), [engine.contributions([each]) for each in asked]
        for place, each in enumerate(alone):
            units, steps = together.of(place)
            expected = each.steps if each.steps is not None else np.ones(len(each.units))
            assert (units.tolist(), steps.tolist()) == (each.units.tolist(), expected.tolist())


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_rows_of_a_large_frame_keep_their_order(make):
    """DuckDB reads them in several threads."""
    size = 1_000_000
    with closing(open_duckdb(make({"x": np.arange(size)}), None)) as engine:
        engine.append(make({"x": np.arange(size, 2 * size)}))
        x = engine.schema["x"]
        for least in (size - 3, 2 * size - 100_000):
            where = Compare(x, Operator.GE, type(1.0 if x.exact is None else 1)(least))
            assert engine.contributions([Count(where)]).units.tolist() == list(range(least, 2 * size))


def test_rows_of_large_parquet_files_keep_their_order(tmp_path):
    for name, start in {"b": 0, "a": 300_000}.items():
        numbers = np.arange(start, start + 300_000)
        pq.write_table(pa.table({"x": numbers}), tmp_path / f"{name}.parquet", row_group_size=10_000)
    with closing(open_duckdb(tmp_path, None, snapshots=[["b.parquet"]])) as engine:
        for low in (5, 123_456, 299_999, 300_000, 456_789):
            assert number(engine, "x", low) == [low]
        where = Compare(engine.schema["x"], Operator.GE, 250_000)
        assert engine.contributions([Count(where)]).units.tolist() == list(range(250_000, 600_000))
        assert engine.contributions([Count(where)], 1).units.tolist() == list(range(250_000, 300_000))


def test_partitions_that_a_predicate_leaves_out_do_not_shift_the_others(tmp_path):
    """DuckDB's own number of a file is another then."""
    for part in "abc":
        (tmp_path / f"p={part}").mkdir()
        pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / f"p={part}" / "t.parquet")
    with closing(open_duckdb(tmp_path, None)) as engine:
        assert [number(engine, "p", part) for part in "abc"] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
        found = engine.contributions_by(Count(None), Keys((engine.schema["p"],), (("c",), ("b",))))
        assert found.units.tolist() == [6, 7, 8, 3, 4, 5]
    snapshots = [["p=c/t.parquet"], ["p=a/t.parquet"]]
    with closing(open_duckdb(tmp_path, "x", snapshots=snapshots)) as engine:
        assert engine.contributions([Count(Compare(engine.schema["p"], Operator.EQ, "b"))], 2).units.tolist() == []
        assert number(engine, "p", "b") == [0, 1, 2]


@pytest.mark.parametrize("gone", [[], [0], [3, 4], [9], list(range(10))], ids=str)
def test_rows_of_a_database_from_which_some_were_deleted(gone, tmp_path):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT CAST(i AS BIGINT) AS x FROM range(10) r(i)")
        connection.executemany("DELETE FROM t WHERE x = ?", [[each] for each in gone] or [[-1]])
    left = [each for each in range(10) if each not in gone]
    with closing(open_duckdb(tmp_path / "a.duckdb", None)) as engine:
        assert engine.units() == len(left)
        assert [number(engine, "x", each) for each in left] == [[place] for place in range(len(left))]
        engine.append(pa.table({"x": [5, 100]}))
        assert number(engine, "x", 100) == [len(left) + 1]
        assert number(engine, "x", 5) == [*([left.index(5)] if 5 in left else []), len(left)]


def test_units_of_an_enum_are_its_texts_however_they_are_numbered(tmp_path):
    for place, names in enumerate(("'z', 'b', 'a'", "'a', 'c', 'z'")):
        with duckdb.connect(str(tmp_path / f"{place}.duckdb")) as connection:
            connection.execute(f"CREATE TYPE name AS ENUM ({names}); CREATE TABLE t (id name)")
            connection.execute(f"INSERT INTO t SELECT unnest([{names}])")
    with closing(open_duckdb(tmp_path / "0.duckdb", "id")) as engine:
        assert [number(engine, "id", name) for name in "abz"] == [[0], [1], [2]]
        engine.append(tmp_path / "1.duckdb")
        engine.append(pa.table({"id": ["b", "aa"]}))
        assert [number(engine, "id", name) for name in ("a", "b", "z", "c", "aa")] == [[0], [1], [2], [3], [4]]
        assert engine.measure([Count(None)]) == [5]


NAMES = (
    *("filename", "file_index", "place", "file", "unit", "known", "contribution", "step"),
    *("u", "n", "m", "i", "id", "t", "s", "p", "start", "k1", "c0", "s0", "t0"),
)
"""Names that the SQL uses itself."""

STRIDE, BY_KEY = size(2, 1), size(2, len(NAMES))
"""Each source takes one name of so many as the unit, and beside it so many as the column of keys."""


@pytest.mark.parametrize(("source", "first"), [("arrow", 0), ("parquet", 1), ("duckdb", 0), ("pandas", 1)])
@pytest.mark.parametrize("unit", [0, None], ids=["unit", "rows"])
def test_columns_may_have_the_names_that_the_sql_uses(unit, source, first, tmp_path):
    cells = {name: [place, place + 1, place] for place, name in enumerate(NAMES)}
    table = pa.table(cells)
    pq.write_table(table, tmp_path / "t.parquet")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE t AS FROM rows")
    made = {"arrow": table, "pandas": table.to_pandas()}.get(source, tmp_path / f"t.{source}")
    for turn, named in enumerate(NAMES[first % STRIDE :: STRIDE] if unit is not None else (None,)):
        with closing(open_duckdb(made, named)) as engine:
            for later in (False, True):
                if later:
                    engine.append(table.to_pandas() if source == "pandas" else table)
                rows = [0, 2, 3, 5][: 4 if later else 2] if named is None else [0]
                columns = engine.schema.values()
                asked = [
                    Count(Compare(column, Operator.EQ, type_of(column)(place)))
                    for place, column in enumerate(columns)
                ]
                asked += [Total(column, -99, 99, Fraction(1), asked[0].where) for column in columns]
                found = engine.contributions(asked)
                assert [found.of(place)[0].tolist() for place in range(len(NAMES))] == [rows] * len(NAMES)
                assert [len(found.of(place)[0]) > 0 for place in range(len(NAMES), len(asked))] == [
                    place > 0 for place in range(len(NAMES))
                ]
                for place, column in sorted(enumerate(columns), key=lambda pair: (pair[0] - turn) % len(NAMES))[
                    :BY_KEY
                ]:
                    keys = Keys((column,), ((type_of(column)(place),),))
                    assert engine.contributions_by(asked[place], keys).units.tolist() == rows
                    assert engine.contributions_by(asked[len(NAMES) + 1], keys).units.tolist() == rows


def type_of(column):
    return float if column.exact is None else int


@pytest.mark.parametrize("source", ["parquet", "duckdb"])
def test_a_column_that_hides_the_numbers_of_rows_is_named(source, tmp_path):
    name = "ROWID" if source == "duckdb" else "File_Row_Number"
    table = pa.table({name: [7, 7, 8], "x": [1, 2, 3]})
    pq.write_table(table, tmp_path / "t.parquet")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE t AS FROM rows")
    path = tmp_path / f"t.{source}"
    with closing(open_duckdb(path, None)) as engine:
        assert engine.measure([Count(None)]) == [3]
        for ask in (engine.units, lambda: engine.contributions([Count(None)])):
            with pytest.raises(EngineError, match=f"column called {name.lower()}"):
                ask()
    with closing(open_duckdb(path, name)) as engine:
        assert (engine.units(), number(engine, "x", 3)) == (2, [1])
    with closing(open_duckdb(table, None)) as engine:
        assert number(engine, "x", 3) == [2]


def test_who_has_which_id_is_hashed():
    tables = {
        "same": {"id": ["a", "b"], "x": [1.0, 2.0]},
        "again": {"id": ["b", "a", "a"], "x": [7.0, 1.0, 2.0]},
        "other": {"id": ["a", "c"], "x": [1.0, 2.0]},
        "one-more": {"id": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]},
        "cut-otherwise": {"id": ["a1:b", ""], "x": [1.0, 2.0]},
    }
    found = {}
    for name, rows in tables.items():
        with closing(open_duckdb(arrow(rows), "id")) as engine:
            found[name] = engine.digest_of_units(KEY)
            assert engine.digest_of_units(KEY) == found[name] != engine.digest_of_units(b"another")
    assert found["same"] == found["again"]
    assert len(set(found.values())) == len(found) - 1
    for first, second in (("a", "b"), ("b", "a")):
        with closing(open_duckdb(arrow({"id": [first], "x": [1.0]}), "id")) as engine:
            engine.append(arrow({"id": [second], "x": [1.0]}))
            found[first, second] = engine.digest_of_units(KEY)
    assert found["a", "b"] == found["same"] != found["b", "a"]


HASHED_UNITS = {
    "equal": (pa.table({"id": ["a", "b"]}), None, "2938b0922cff8688"),
    "by value": (pd.DataFrame({"id": [2, 10]}), None, "f209355550ad45da"),
    "nanoseconds": (pa.table({"id": pa.array([1, 2], pa.timestamp("ns"))}), None, "bf6ec7c5a5035a25"),
    "read as integer": (pa.table({"id": ["2", "10", "x"]}), "integer", "e4504952cb23bd01"),
    "read as number": (pa.table({"id": ["2", "10", "x"]}), "number", "d094a501df17f762"),
    "read as date": (pa.table({"id": ["2024-01-31", "x"]}), "date", "f62eb3fa55a98502"),
    "read as time": (pa.table({"id": ["2024-01-31 12:00", "x"]}), "time", "a676906ff93ca1c3"),
    "read as boolean": (pa.table({"id": ["true", "x"]}), "boolean", "8f3135319bc8b7fa"),
    "text of number": (pa.table({"id": [2, 10]}), "text", "28e1f132cc28bc53"),
    "text of date": (pa.table({"id": [dt.date(2024, 1, 31)]}), "text", "ea304d4edc921d32"),
    "text of time": (pa.table({"id": [dt.datetime(2024, 1, 31, 12)]}), "text", "0e211d91ff20fef4"),
    "text of boolean": (pa.table({"id": [True, False]}), "text", "deece13126ba176f"),
}


def test_hashes_are_those_that_ledgers_hold_whatever_is_said_of_them(monkeypatch):
    """Other words for people must not make every ledger refuse its data."""
    monkeypatch.setattr(identity, "_IN_WORDS", dict.fromkeys(identity.Way, "in other words"))
    monkeypatch.setattr(Column, "__repr__", lambda column: f"the column {column.name}")
    key = b"k" * 32
    for name, (table, declared, expected) in HASHED_UNITS.items():
        with closing(open_duckdb(table, "id", types=declared and {"id": declared})) as engine:
            assert engine.identity.words == "in other words"
            assert engine.digest_of_units(key)[:16] == expected, name
    types = {"n": pa.int8(), "m": pa.decimal128(5, 2), "f": pa.float64(), "t": pa.string(), "d": pa.date32()}
    types |= {"w": pa.timestamp("us"), "b": pa.bool_()}
    empty = pa.table({name: pa.array([], kind) for name, kind in types.items()})
    with closing(open_duckdb(empty, None)) as engine:  # without rows: DuckDB's own hash of them is no part of it
        assert engine.fingerprint(key, 1) == "487ee98d1d33c92dead8435371e9eaf16ddc2f4c686e6f3892b19ea20b6db96a"


def test_zero_has_no_sign_in_a_hash():
    made = []
    for cells in ([0.0, -0.0, 1.0], [-0.0, 0.0, 1.0], [-0.0, 1.0]):
        with closing(open_duckdb(pa.table({"id": cells}), "id")) as engine:
            made.append(engine.digest_of_units(KEY))
    assert len(set(made)) == 1


def test_snapshots_that_there_are_not():
    with closing(open_duckdb(arrow(FIRST), "id")) as engine:
        keys = Keys((engine.schema["id"],), (("b",),))
        for wrong in (0, 2, -1):
            for ask in (
                lambda at=wrong: engine.contributions([Count(None)], at),
                lambda at=wrong: engine.contributions_by(Count(None), keys, at),
                lambda at=wrong: engine.digest_of_units(KEY, at),
            ):
                with pytest.raises(InvalidParameter, match="snapshot is"):
                    ask()


def test_contributions_show_nobody():
    with closing(open_duckdb(arrow(FIRST), "id")) as engine:
        assert repr(engine.contributions([Count(None)] * 3)) == "<contributions to 3 numbers>"


def test_a_child_of_a_fork_ends_in_peace_after_an_append():
    engine = open_duckdb(arrow(FIRST), "id")
    engine.append(arrow(SECOND))
    engine.units()
    child = os.fork()
    if not child:
        del engine
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert engine.units() == 4
    engine.close()
