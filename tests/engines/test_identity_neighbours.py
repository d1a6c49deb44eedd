"""A person counts once, however their id is written: one more person changes no number by more than is declared.

The generator writes one and the same id in several ways: in several files, in columns that declare what they are,
in columns of objects of pandas.
"""

import csv
import datetime as dt
import tempfile
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sizes import size

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.keys import Keys
from targetcharge.queries.measures import Count, Histogram, Sketch, Total, UnitValue
from targetcharge.queries.tree import Compare, Operator

CALM = {"max_examples": size(5, 40), "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


def integers(number):
    return (str(number), f"{number:+d}", f" {number}", f"{number}.0", f"{number:04d}", f"{number}e0", f"{number} ")


def numbers(number):
    half = number + 0.5
    return (str(half), f"{half:.3f}", f" {half}", f"{half:e}", f"{half}0")


def days(number):
    day = dt.date(2024, 1, 1) + dt.timedelta(number)
    return (day.isoformat(), f" {day}", f"{day.year}-{day.month}-{day.day}")


def times(number):
    time = dt.datetime(2024, 1, 1, 12) + dt.timedelta(minutes=number)
    return (
        *(time.isoformat(), str(time), f"{time}.000", f"{time - dt.timedelta(hours=5)}-05", f"{time}+00:00"),
        f" {time}",
    )


WRITTEN = {"integer": integers, "number": numbers, "date": days, "time": times}
"""Texts that are read as one and the same, by what their column is declared to be."""


def objects(number):
    """Return values of a column of objects that are one and the same id."""
    time = dt.datetime(2024, 1, 1) + dt.timedelta(hours=number)
    zoned = pd.Timestamp(time, tz="UTC")
    return {
        0: (
            number,
            float(number),
            str(number),
            np.int64(number),
            np.float32(number),
            Decimal(number),
            f"{number}.00",
        ),
        1: (Decimal(f"{number}.25"), number + 0.25, np.float32(number + 0.25), f"{number}.25", f"{number}.2500"),
        2: (
            time,
            pd.Timestamp(time),
            zoned,
            zoned.tz_convert("Asia/Tokyo"),
            np.datetime64(time),
            time.isoformat(),
        ),
        3: (f"p{number}", np.str_(f"p{number}"), f"p{number}".encode()),
    }[number % 4]


@st.composite
def people(draw, written):
    """Draw rows of a few people: whose each is, how the id is written there, and a number."""
    whose = draw(st.lists(st.integers(0, 7), min_size=1, max_size=24))
    return [(each, draw(st.sampled_from(written(each))), draw(st.integers(-5, 5))) for each in whose]


def frame(rows, _):
    ids, values = [each for _, each, _ in rows], [float(value) for *_, value in rows]
    return pd.DataFrame({"id": pd.Series(ids, dtype="object"), "v": pd.Series(values, dtype="float64")})


def csv_folder(rows, folder):
    for place in range(2):
        with (folder / f"{place}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([("id", "v"), *((each, value) for _, each, value in rows[place::2])])
    return folder


def arrow(rows, _):
    return pa.table(
        {"id": pa.array([r[1] for r in rows], pa.string()), "v": pa.array([r[2] for r in rows], pa.int64())}
    )


def parquet(rows, folder):
    pq.write_table(arrow(rows, folder), folder / "t.parquet")
    return folder / "t.parquet"


def database(rows, folder):
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("rows", arrow(rows, folder))
        connection.execute("CREATE TABLE t AS FROM rows")
    return folder / "t.duckdb"


SOURCES = {"csv": csv_folder, "parquet": parquet, "duckdb": database, "arrow": arrow, "pandas": frame}


def measured(source, rows, declared):
    """Return how much each number is, and by how much one more person may change it."""
    with tempfile.TemporaryDirectory() as folder:
        types = {**declared, **({"v": "integer"} if source == "csv" else {})}
        with closing(open_duckdb(SOURCES[source](rows, Path(folder)), "id", types=types)) as engine:
            value = engine.schema["v"]
            above = Compare(value, Operator.GT, type(rows[0][2])(0) if value.exact else 0.0)
            asked = [
                Count(None),
                Count(above),
                Total(value, -7, 7, Fraction(1), None),
                UnitValue(value, -7, 7, Fraction(1), None),
                Sketch(value, None, 2, 64, "k"),
            ]
            keys = Keys((value,), tuple((number if value.exact else float(number),) for number in range(-5, 6)))
            found = list(zip(engine.measure(asked), (each.sensitivity for each in asked), strict=True))
            found += [(each, 1) for each in engine.measure_by(Count(None), keys)]
            found += [(each, 1) for each in engine.measure_by(Histogram(None, 2, "k"), keys)]
            found.append((sum(engine.measure_by(Histogram(None, 2, "k"), keys)), 2))
            return found, engine.units(), engine.contributions([Count(None)]).units.tolist()


def compared(source, rows, declared):
    everybody = {whose for whose, *_ in rows}
    found, units, contributing = measured(source, rows, declared)
    assert units == found[0][0] == len(everybody)
    assert contributing == list(range(len(everybody)))
    if len(everybody) > 1:
        for gone in everybody:
            without, *_ = measured(source, [row for row in rows if row[0] != gone], declared)
            assert all(abs(one - other) <= most for (one, most), (other, _) in zip(found, without, strict=True))


@pytest.mark.parametrize("source", SOURCES)
@settings(**CALM)
@given(kind=st.sampled_from(list(WRITTEN)), data=st.data())
def test_an_id_of_a_declared_column_is_one_person_however_it_is_written(source, kind, data):
    compared(source, data.draw(people(WRITTEN[kind])), {"id": kind})


@settings(**CALM)
@given(data=st.data())
def test_an_id_in_a_column_of_objects_is_one_person_however_it_is_typed(data):
    compared("pandas", data.draw(people(objects)), {})


@pytest.mark.parametrize("source", ["csv", "parquet", "duckdb", "arrow", "pandas"])
def test_an_id_that_is_not_what_it_is_declared_to_be_is_told_apart_as_it_is_written(source):
    rows = [(0, "1", 1), (0, "01", 2), (1, "x", 3), (1, "x", 4), (2, "x1", 5), (3, "9" * 30, 5), (4, "X", 1)]
    found, units, _ = measured(source, rows, {"id": "integer"})
    assert units == found[0][0] == 5


def test_an_id_in_two_files_and_another_that_is_appended_are_one_person(tmp_path):
    (tmp_path / "a.csv").write_text("patient,x\n1,5\n2,5\n")
    (tmp_path / "b.csv").write_text("patient,x\n1.0,5\n3,5\n")
    with closing(open_duckdb(tmp_path, "patient", types={"patient": "integer"})) as engine:
        one = Compare(engine.schema["patient"], Operator.EQ, 1)
        assert engine.measure([Count(one), Count(None)]) == [1, 3]
        engine.append(pa.table({"patient": [1, 4], "x": ["5", "5"]}))
        engine.append(pd.DataFrame({"patient": [1.0, None], "x": pd.Series(["5", "5"], dtype="str")}))
        assert engine.measure([Count(one), Count(None)]) == [1, 4]
        assert engine.units() == 4


def test_pandas_frames_whose_ids_have_become_another_type_are_of_the_same_people():
    frames = [
        pd.DataFrame({"id": [1, 2, 3], "v": [1.0, 1.0, 1.0]}),
        pd.DataFrame({"id": [1.0, None, 4.0], "v": [1.0, 1.0, 1.0]}),
        pd.DataFrame({"id": pd.Series([2, None, 5], dtype="Int64"), "v": [1.0, 1.0, 1.0]}),
        pd.DataFrame({"id": pd.Series([3, 5], dtype="int64[pyarrow]"), "v": [1.0, 1.0]}),
    ]
    with closing(open_duckdb(frames[0], "id")) as engine:
        for each in frames[1:]:
            engine.append(each)
        assert (engine.units(), engine.measure([Count(None)])) == (5, [5])
