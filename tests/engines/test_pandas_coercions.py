"""One row turns a pandas column into another type: nobody else's number, and nobody else's identity changes."""

import datetime as dt
import io
import itertools
import random
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.sizes import spread

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.engines.duckdb.frames import texts, written
from targetcharge.engines.duckdb.types import number_text
from targetcharge.queries.measures import Count
from targetcharge.queries.tree import Compare, Operator

NOON = pd.Timestamp("2024-01-01 12:00:00.5")
COLUMNS = {
    "long": [2**60 + number for number in range(300)],
    "whole": list(range(300)),
    "halves": [number + 0.5 for number in range(300)],
    "zeros": ["0" * number + "1" for number in range(50)],
    "texts": [f"p{number}" for number in range(50)],
    "times": [NOON + pd.Timedelta(minutes=number) for number in range(50)],
    "single": list(np.arange(300, dtype=np.float32) / 10),
    "flags": [True, False],
}
DECLARED = [None, "integer", "number", "text", "time", "date", "boolean"]
ODD = [None, "x", 0.25, dt.date(2030, 1, 1), (1, 2), pd.Timestamp("2031-01-01", tz="Asia/Tokyo")]


@pytest.mark.parametrize(("name", "declared"), spread(itertools.product(COLUMNS, DECLARED), 20))
def test_one_row_more_is_at_most_one_unit_more(name, declared):
    types = {} if declared is None else {"id": declared}
    values = COLUMNS[name]

    def units(cells):
        with closing(
            open_duckdb(pd.DataFrame({"id": cells, "x": range(len(cells))}), "id", types=types)
        ) as engine:
            assert engine.units() == engine.measure([Count(None)])[0]
            return engine.units()

    alone = units(pd.Series(values))
    for odd in ODD:
        assert units(pd.Series([*values, odd])) - alone in (0, 1), odd


ASKED = {
    "text of whole": ([1], "text", "1"),
    "halves up": ([2.5], "integer", 3),
    "not down": ([2.5], "integer", 2),
    "truth": ([1.0], "boolean", True),
    "long": ([2**60 + 1], "integer", 2**60 + 1),
    "rounded": ([2**60 + 1], "integer", 2**60),
    "longest": ([2**63 - 1], "integer", 2**63 - 1),
    "text of time": ([NOON], "text", "2024-01-01 12:00:00.5"),
    "time": ([NOON], "time", dt.datetime(2024, 1, 1, 12, 0, 0, 500_000)),
    "single": ([np.float32(0.1)], "number", 0.1),
    "single itself": ([np.float32(0.1)], "number", float(np.float32(0.1))),
    "flag": ([True], "boolean", True),
    "text of large": ([1e22], "text", "1e+22"),
}


@pytest.mark.parametrize("name", ASKED)
def test_one_row_more_changes_no_other_value_of_a_declared_column(name):
    values, declared, literal = ASKED[name]
    counts = []
    for more in ([], ["odd"], [None], [(1,)]):
        frame = pd.DataFrame({"v": pd.Series([*values * 100, *more]), "w": range(100 + len(more))})
        with closing(open_duckdb(frame, None, types={"v": declared})) as engine:
            counts += engine.measure([Count(Compare(engine.schema["v"], Operator.EQ, literal))])
    assert len(set(counts)) == 1


def test_what_a_reader_of_files_makes_of_a_column_merges_and_splits_nobody():
    text = "id,x\n" + "".join(f"{number},1\n0{number},1\n" for number in range(1, 50))
    for more, units in (("", 49), ("x,1\n", 50), (",1\n", 49), ("0.5,1\n", 50)):
        with closing(open_duckdb(pd.read_csv(io.StringIO(text + more)), "id")) as engine:
            assert engine.units() == units


def test_numbers_are_written_alike_by_both_libraries():
    draw = random.Random(5)
    numbers = [draw.uniform(-1, 1) * 10.0 ** draw.randint(-320, 308) for _ in range(20_000)]
    numbers += [draw.randint(-(2**62), 2**62) / 3 for _ in range(2_000)]
    numbers += [
        1e-5,
        1e15,
        1e16,
        1e17,
        1e22,
        2.0**63,
        -(2.0**63),
        5e-324,
        1.7976931348623157e308,
        float("inf"),
        -0.0,
    ]
    with duckdb.connect() as connection:
        connection.register("numbers", {"x": np.array(numbers)})
        rows = connection.execute(f"SELECT {number_text('x')} FROM numbers").fetchall()
    assert [text for (text,) in rows] == texts(pd.Series(numbers, dtype="object"), written).tolist()


SAME = {
    "long": (pd.DataFrame({"id": [2**53 + 1]}), pa.table({"id": ["9007199254740993"]}), "integer"),
    "whole text": (pd.DataFrame({"id": [1]}), pa.table({"id": ["1"]}), "text"),
    "objects": (pd.DataFrame({"id": [1.0]}), pd.DataFrame({"id": pd.Series([1, "1"], dtype="object")}), "text"),
    "numbers": (pa.table({"id": [1]}), pa.table({"id": [1.0]}), "text"),
    "decimals": (pa.table({"id": pa.array([1], pa.decimal128(9, 1))}), pa.table({"id": [1.0]}), "text"),
    "beyond": (pa.table({"id": [1e19]}), pa.table({"id": ["1e19"]}), "integer"),
    "unsigned": (pa.table({"id": pa.array([10**19], pa.uint64())}), pa.table({"id": [1e19]}), "integer"),
    "bytes": (pa.table({"id": ["José"]}), pa.table({"id": ["José".encode()]}), "text"),
    "single": (pd.DataFrame({"id": np.array([0.1], np.float32)}), pa.table({"id": ["0.1"]}), "number"),
}


@pytest.mark.parametrize("name", SAME)
def test_a_person_who_comes_again_in_another_form_is_the_same(name):
    first, second, declared = SAME[name]
    for one, other in ((first, second), (second, first)):
        with closing(open_duckdb(one, "id", types={"id": declared})) as engine:
            engine.append(other)
            assert (engine.units(), engine.measure([Count(None)])) == (1, [1])
