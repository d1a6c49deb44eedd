"""Many measures in one call: the same numbers as one by one, whichever way they are computed."""

import datetime as dt
import itertools
import random
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.engines.asking import measures, predicates
from tests.engines.rows import ARROW, BOOLEAN, DATE, DOUBLE, TEXT, TIME, Table
from tests.engines.sources import SOURCES

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.measures import Count
from targetcharge.queries.tree import All, Any, Compare, Missing, Not, OneOf, Operator

SIZES = (1, 3, 8, 30, 200)


def table_of(rows, seed=5):
    """Return a table with a few values of many types in each column."""
    chance = random.Random(seed)
    types = {
        "county": TEXT,
        "score": DOUBLE,
        "day": DATE,
        "at": TIME,
        "ill": BOOLEAN,
        "age": ARROW[0],
        "id": ARROW[2],
    }
    pools = {
        "county": [None, "", "Kent", "kent", "Èze", "%", "o'k"],
        "score": [None, float("nan"), 0.0, -0.0, 1.5, float("inf"), -7.25],
        "day": [None, *(dt.date(2024, 2, 27) + dt.timedelta(days) for days in range(4))],
        "at": [None, *(dt.datetime(2024, 2, 28, hour, 59, 59, 500_000) for hour in range(4))],
        "ill": [None, True, False],
        "age": [None, -128, 0, 1, 17, 18, 127],
        "id": [None, *range(60)],
    }
    cells = ((chance.choice(pools[name]) for name in types) for _ in range(rows))
    return Table(types, tuple(map(tuple, cells)))


TABLE = table_of(300)


def combined(simple, number):
    """Return as many predicates as asked for, made of a few."""
    pairs = itertools.cycle(itertools.product(simple, simple))
    forms = itertools.cycle(
        (
            lambda one, _: one,
            lambda one, other: All((one, other)),
            lambda one, other: Any((Not(one), other)),
            lambda one, other: Not(Any((one, All((other, Not(one)))))),
        )
    )
    return [form(*pair) for form, pair in zip(itertools.islice(forms, number), pairs, strict=False)]


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("name", ["arrow-table", "parquet-file", "duckdb-file"])
@settings(
    max_examples=1,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.reuse, Phase.generate],  # what is found in a fixed table is not made smaller
)
@given(data=st.data())
def test_a_batch_is_its_measures_one_by_one(name, unit, tmp_path_factory, data):
    naive = SOURCES[name].naive(TABLE, unit)
    simple = data.draw(predicates(naive, 7))
    other = data.draw(measures(naive, 3))
    with (
        closing(SOURCES[name].opened(TABLE, tmp_path_factory.mktemp("batch"), unit)) as engine,
        closing(SOURCES[name].opened(TABLE, tmp_path_factory.mktemp("alone"), unit)) as alone,
    ):
        for size in SIZES:
            mixed = [Count(None), *map(Count, combined(simple, size)), *other]
            random.Random(size).shuffle(mixed)
            expected = naive.measure(mixed[:size])
            assert [alone.measure([each])[0] for each in mixed[:size]] == expected
            assert engine.measure(mixed[:size]) == expected
        assert cubes(alone) == set()


def equal_to(column, some):
    return [Count(Compare(column, operator, value)) for operator in Operator for value in some]


@pytest.fixture
def rows():
    """An engine whose units are rows, and its reference."""
    with closing(SOURCES["arrow-table"].opened(TABLE, None, None)) as engine:
        yield engine, SOURCES["arrow-table"].naive(TABLE, None)


def cubes(engine):
    """Return the names of the cubes that there are in DuckDB, and the columns that they are known by."""
    found = engine._table.link.rows("SELECT table_name FROM duckdb_tables() WHERE temporary")
    assert sorted(name for name, *_ in found) == sorted(engine._table.cubes._made.values())
    return set(engine._table.cubes._made)


def test_seven_counts_make_no_cube_and_eight_do(rows):
    engine, naive = rows
    asked = equal_to(engine.schema["age"], (0, 17))
    assert engine.measure(asked[:7]) == naive.measure(asked[:7])
    assert cubes(engine) == set()
    assert engine.measure(asked[:8]) == naive.measure(asked[:8])
    assert cubes(engine) == {("age",)}


def test_a_cube_answers_later_questions_about_some_of_its_columns(rows):
    engine, naive = rows
    schema = engine.schema
    wide = [Count(All((each.where, Missing(schema["ill"])))) for each in equal_to(schema["county"], ("Kent", ""))]
    assert engine.measure(wide) == naive.measure(wide)
    engine._table.link.rows("DELETE FROM kept")  # whoever looks there finds nothing
    for asked in (equal_to(schema["county"], ("kent", "%")), [Count(Missing(schema["ill"]))], [Count(None)]):
        assert engine.measure(asked) == naive.measure(asked)
    assert cubes(engine) == {("county", "ill")}


def test_cubes_are_dropped_the_least_recently_used_first(rows):
    engine, naive = rows
    some = {"county": ("Kent", ""), "score": (0.0, 1.5), "ill": (True, False), "age": (0, 17), "id": (3, 4)}
    questions = {name: equal_to(engine.schema[name], values) for name, values in some.items()}
    for name in ("county", "score", "ill", "age"):
        assert engine.measure(questions[name]) == naive.measure(questions[name])
    assert engine.measure(questions["county"]) == naive.measure(questions["county"])
    assert engine.measure(questions["id"]) == naive.measure(questions["id"])
    assert cubes(engine) == {("county",), ("ill",), ("age",), ("id",)}
    for name, asked in (*questions.items(), *reversed(questions.items())):
        assert engine.measure(asked) == naive.measure(asked), name
        assert len(cubes(engine)) == 4


def test_counts_of_all_rows_need_no_column(rows):
    engine, naive = rows
    assert engine.measure([Count(None)] * 9) == naive.measure([Count(None)] * 9) == [len(TABLE.rows)] * 9
    assert cubes(engine) == {()}
    assert engine.measure([]) == []


def test_an_empty_table_in_a_cube():
    empty = Table(TABLE.types, ())
    with closing(SOURCES["arrow-table"].opened(empty, None, None)) as engine:
        asked = [*equal_to(engine.schema["age"], (0, 17)), Count(None), Count(Not(Missing(engine.schema["age"])))]
        assert engine.measure(asked) == [0] * len(asked)
        assert cubes(engine) == {("age",)}


def test_more_columns_than_a_cube_has():
    names = [f"c{number}" for number in range(9)]
    table = pa.table({name: [number % 3, None, 1] for number, name in enumerate(names)})
    with closing(open_duckdb(table, None)) as engine:
        asked = [
            Count(All(tuple(Compare(engine.schema[name], Operator.LE, most) for name in names)))
            for most in range(9)
        ]
        assert engine.measure(asked) == [0, 1, 2, 2, 2, 2, 2, 2, 2]
        assert cubes(engine) == set()


def _threshold_counts(engine, name, thresholds):
    return engine.measure([Count(Compare(engine.schema[name], Operator.LT, each)) for each in thresholds])


def test_a_column_with_too_many_values_is_counted_in_passes():
    numbers = np.random.default_rng(3).permutation(30_000)
    table = pa.table({"many": numbers, "few": numbers % 7})
    thresholds = [int(each) for each in np.linspace(-5, 31_000, 60)]  # more than one pass takes
    expected = [int((numbers < each).sum()) for each in thresholds]
    with closing(open_duckdb(table, None)) as engine:
        assert _threshold_counts(engine, "many", thresholds) == expected
        assert _threshold_counts(engine, "many", thresholds) == expected
        assert cubes(engine) == set()
        assert engine._table.cubes._useless == {("many",)}
        assert _threshold_counts(engine, "few", range(8)) == [int((numbers % 7 < each).sum()) for each in range(8)]
        assert cubes(engine) == {("few",)}


def test_a_column_whose_many_values_come_late_is_counted_right_all_the_same():
    numbers = np.concatenate([np.zeros(100_000, dtype=np.int64), np.arange(25_000)])
    with closing(open_duckdb(pa.table({"late": numbers}), None)) as engine:
        thresholds = [0, 1, 2, 100, 10_000, 24_999, 25_000, 30_000]
        assert _threshold_counts(engine, "late", thresholds) == [
            int((numbers < each).sum()) for each in thresholds
        ]
        assert cubes(engine) == {("late",)}


def test_long_lists_and_deep_trees(rows):
    engine, naive = rows
    age, county = engine.schema["age"], engine.schema["county"]
    deep = Missing(age)
    for number in range(20):  # as deep as a predicate's text may be
        deep = Not(All((deep, Compare(age, Operator.NE, number))))
    names = tuple(f"o'{number}" for number in range(1000))
    wide = Any((OneOf(county, (*names, "Kent")), OneOf(age, tuple(range(-128, 128, 2)))))
    asked = [Count(deep), Count(wide), Count(All((deep, wide)))]
    assert engine.measure(asked) == naive.measure(asked)
    assert engine.measure(asked * 3) == naive.measure(asked * 3)
