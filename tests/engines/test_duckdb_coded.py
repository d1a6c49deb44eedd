"""Counts of many predicates by scans of codes: the same as the reference tells, and nothing left over."""

import datetime as dt
import random
import tempfile
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.asking import predicates
from tests.engines.counting import by_codes
from tests.engines.rows import tables
from tests.engines.sources import FOLDER, SOURCES
from tests.sizes import size

from targetcharge.engines.coding import terms
from targetcharge.engines.duckdb import coded, open_duckdb
from targetcharge.engines.duckdb import engine as engine_module
from targetcharge.queries.measures import Count, Total
from targetcharge.queries.parser import parse

TABLES = size(4, 20)
"""Random tables of each source."""


def temporary(engine):
    return {name for name, *_ in engine._table.link.rows("SELECT table_name FROM duckdb_tables() WHERE temporary")}


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=TABLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_random_predicates(name, data):
    source = SOURCES[name]
    table = source.fitted(data.draw(tables(source.types), label="table"))
    unit = data.draw(st.none() | st.sampled_from(list(table.types)), label="unit")
    naive = source.naive(table, unit)
    wheres = data.draw(predicates(naive, 40))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / FOLDER
        folder.mkdir()
        with closing(source.opened(table, folder, unit)) as engine:
            counted = by_codes(engine, wheres)
            assert set(counted) == {index for index, where in enumerate(wheres) if terms(where)}
            asked = [Count(wheres[index]) for index in counted]
            differing = zip(asked, counted.values(), naive.measure(asked), strict=True)
            assert not {str(count.where): pair for count, *pair in differing if pair[0] != pair[1]}
            assert temporary(engine) == set()


# Many predicates on columns with many values

ROWS = 20_000


@pytest.fixture(scope="module")
def visits():
    """Rows whose every column but one has many values, some of them missing."""
    chance = np.random.default_rng(4)
    scores = chance.normal(size=ROWS)
    scores[chance.random(ROWS) < 0.1] = np.nan
    times = np.datetime64("2024-01-01", "us") + chance.integers(0, 10**13, ROWS).astype("timedelta64[us]")
    return pa.table(
        {
            "id": chance.integers(0, ROWS // 5, ROWS),
            "score": pa.array(scores),
            "fare": pa.array(chance.integers(-(10**9), 10**9, ROWS), mask=chance.random(ROWS) < 0.1),
            "at": times,
            "name": pa.array(
                [f"{number:x}" if number % 11 else None for number in chance.integers(0, 15_000, ROWS)]
            ),
            "ill": chance.random(ROWS) < 0.5,
        }
    )


def texts(number):
    """Return predicates over one column and over several, from several kinds."""
    chance = random.Random(5)

    def one():
        score, fare, name = chance.gauss(0, 1), chance.randrange(-(10**9), 10**9), f"{chance.randrange(15_000):x}"
        at = dt.datetime(2024, 1, 1) + dt.timedelta(seconds=chance.randrange(10**7))
        return chance.choice(
            (
                f"score > {score}",
                f"score <= {score} AND fare > {fare}",
                f"NOT (score <= {score} OR fare IS NULL) AND ill = TRUE",
                f"at >= '{at}' AND at < '{at + dt.timedelta(days=3)}'",
                f"name LIKE '{name[:2]}%' OR name = '{name}' OR name IS NULL",
                f"name NOT LIKE '%{name[-1]}' AND score > {score}",
                f"name < '{name}' OR at < '{at}'",
                f"fare IN ({fare}, {fare + 1}) OR (score > {score} AND name >= '{name}')",
            )
        )

    return [one() for _ in range(number)]


def alone(engine, wheres):
    return [engine.measure([Count(where)])[0] for where in wheres]


@pytest.fixture(params=[None, "id", "name"], scope="module")
def engine(request, visits):
    with closing(open_duckdb(visits, request.param)) as opened:
        yield opened


@pytest.fixture(scope="module")
def asked(engine):
    """Predicates, and how many units have a row of which each is true, asked one by one."""
    wheres = [parse(text, engine.schema) for text in texts(size(250, 1500))]
    return wheres, alone(engine, wheres)


def test_all_in_one_call(engine, asked, monkeypatch):
    wheres, expected = asked
    calls = []

    def noted(link, relation, of_wheres):
        calls.append(coded.count_coded(link, relation, of_wheres))
        return calls[-1]

    monkeypatch.setattr(engine_module, "count_coded", noted)
    total = Total(engine.schema["fare"], 0, 10, 1, None)
    assert engine.measure([total, *map(Count, (*wheres, None))]) == [
        *engine.measure([total]),
        *expected,
        *engine.measure([Count(None)]),
    ]
    assert len(calls) == 1
    assert len(calls[0]) > len(wheres) // 2


LIMITS = {
    "one mask": {"_MOST_MASKS": 1, "_BITS": 5},
    "few constants": {"_MOST_CONSTANTS": 7},
    "no shared cells": {"_MOST_CELLS": 1},
    "all cells shared": {"_MOST_CELLS": 10**40},
    "few at once": {"_READ": 1000},
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_however_they_are_divided_into_scans(engine, asked, limits, monkeypatch):
    wheres, expected = asked[0][:60], asked[1][:60]
    for name, limit in limits.items():
        monkeypatch.setattr(coded, name, limit)
    counted = by_codes(engine, wheres)
    assert counted == {index: expected[index] for index in counted}
    assert len(counted) == 60
    assert not any(name.startswith("coded") for name in temporary(engine))


def test_patterns_on_too_many_values_are_counted_in_other_ways(engine, asked, monkeypatch):
    wheres, expected = asked
    monkeypatch.setattr(coded, "_MOST_VALUES", 100)
    counted = by_codes(engine, wheres)
    assert set(counted) == {index for index, where in enumerate(wheres) if "LIKE" not in str(where)}
    assert engine.measure([Count(where) for where in wheres]) == expected


def test_a_list_of_more_constants_than_a_scan_takes_is_counted_in_other_ways(engine, monkeypatch):
    monkeypatch.setattr(coded, "_MOST_CONSTANTS", 10)
    wheres = [parse(f"fare IN ({', '.join(map(str, range(most)))})", engine.schema) for most in (10, 11)]
    assert set(by_codes(engine, wheres)) == {0}


def test_few_predicates_are_not_coded(engine, asked, monkeypatch):
    monkeypatch.setattr(engine_module, "count_coded", lambda *_: pytest.fail("a scan of codes"))
    few = coded.fewest(engine._table.all_rows) - 1
    assert engine.measure([Count(where) for where in asked[0][:few]]) == asked[1][:few]


def test_nothing_is_left_over_if_a_scan_fails(engine, asked, monkeypatch):
    def broken(*_):
        raise duckdb.Error

    before = temporary(engine)
    monkeypatch.setattr(coded, "_bit_counts", broken)
    with pytest.raises(duckdb.Error):
        by_codes(engine, asked[0])
    assert temporary(engine) == before


def test_rows_that_were_appended_are_counted_and_those_taken_back_are_not(visits):
    wheres_of = [text for text in texts(80) if "LIKE" not in text]
    with closing(open_duckdb(visits.slice(0, 5000), "id")) as engine:
        wheres = [parse(text, engine.schema) for text in wheres_of]
        counts = [by_codes(engine, wheres)]
        engine.append(visits.slice(5000))
        counts.append(by_codes(engine, wheres))
        assert [counts[1][index] for index in range(len(wheres))] == alone(engine, wheres)
        engine.retract()
        assert by_codes(engine, wheres) == counts[0] != counts[1]
        assert [counts[0][index] for index in range(len(wheres))] == alone(engine, wheres)


def test_no_rows_at_all(visits):
    for unit in (None, "id"):
        with closing(open_duckdb(visits.slice(0, 0), unit)) as engine:
            wheres = [parse(text, engine.schema) for text in texts(50)]
            assert by_codes(engine, wheres) == dict.fromkeys(range(50), 0)


def test_masks_are_counted_with_their_weights():
    masks = np.array([0b1, 0b11, 1 << 61, (1 << 62) - 1, 0], np.int64)
    once, weighted = coded._bit_counts(masks, None), coded._bit_counts(masks, np.array([1, 10, 100, 2**40, 5]))
    assert (once[0], once[1], once[60], once[61], once[62]) == (3, 2, 1, 2, 0)
    assert (weighted[0], weighted[1], weighted[61]) == (11 + 2**40, 10 + 2**40, 100 + 2**40)
