"""Appending: every form to every form; what is refused changes nothing; what was handed over is ours."""

from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.engines.growing import (
    FIRST,
    FORMS,
    KEY,
    SECOND,
    THIRD,
    arrow,
    by_hand,
    ids,
    in_pandas,
    opened,
    parquet,
    state,
)
from tests.engines.refusing import is_open

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import NotAllowed
from targetcharge.queries.measures import Count
from targetcharge.queries.tree import Compare, Operator


@pytest.mark.parametrize("later", FORMS)
@pytest.mark.parametrize("first", FORMS)
def test_every_form_is_appended_to_every_form(first, later, tmp_path):
    with closing(opened(first, tmp_path)) as engine:
        engine.append(FORMS[later](SECOND, tmp_path / "second"))
        engine.append(FORMS[first](THIRD, tmp_path / "third"))
        by_hand(engine)
        engine.check_unchanged()
        assert list(engine._table.link.spill.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_numbered_on(form, tmp_path):
    with closing(opened(form, tmp_path, unit=None)) as engine:
        engine.append(FORMS[form](SECOND, tmp_path / "second"))
        engine.append(FORMS["pandas"](THIRD, tmp_path / "third"))
        where = Count(Compare(engine.schema["id"], Operator.EQ, "b"))
        assert (engine.units(), engine.contributions([where]).units.tolist()) == (10, [0, 2, 5])
        assert [ids(engine, number) for number in (1, 2)] == [list(range(4)), list(range(7))]
        assert engine.measure([where, Count(None)]) == [3, 10]


@pytest.mark.parametrize("form", FORMS)
def test_columns_may_be_in_another_order(form, tmp_path):
    with closing(opened(form, tmp_path)) as engine:
        turned = {name: SECOND[name] for name in ("x", "id")}
        engine.append(FORMS[form](turned, tmp_path / "second"))
        assert engine.measure([Count(Compare(engine.schema["x"], Operator.EQ, 7.0))]) == [1]
        assert list(engine.schema) == ["id", "x"]


def test_csv_is_read_with_the_types_that_were_declared(tmp_path):
    (tmp_path / "a.csv").write_text("id,n\n01,1\n1,x\n")
    (tmp_path / "b.csv").write_text("id,n\n1,7\n001,\n")
    with closing(open_duckdb(tmp_path / "a.csv", "id", types={"id": "integer", "n": "integer"})) as engine:
        engine.append(tmp_path / "b.csv")
        assert engine.measure([Count(None), Count(Compare(engine.schema["n"], Operator.EQ, 7))]) == [1, 1]
        assert engine.units() == 1  # 01, 1 and 001 are one integer


def test_parquet_files_stay_where_they_are(tmp_path):
    with closing(opened("parquet", tmp_path)) as engine:
        before = engine._table.link.raw
        engine.append(parquet(SECOND, tmp_path / "second"))
        engine.append(parquet(THIRD, tmp_path / "third"))
        assert engine._table.copies == ()
        assert not is_open(before)
        by_hand(engine)


def test_parquet_files_of_another_width_are_copied(tmp_path):
    seconds = pa.table({"id": ["a"], "t": pa.array([1], pa.timestamp("ms"))})
    finer = pa.table({"id": ["b"], "t": pa.array([1000], pa.timestamp("us"))})
    with closing(open_duckdb(parquet(seconds, tmp_path / "a"), "id")) as engine:
        engine.append(parquet(finer, tmp_path / "b"))
        assert len(engine._table.copies) == 1
        values = engine.schema["t"]
        assert engine.measure(
            [Count(Compare(values, Operator.EQ, pd.Timestamp(1000, unit="us").to_pydatetime()))]
        ) == [2]


def test_single_precision_and_double_are_not_rounded():
    single = pa.table({"id": ["a"], "x": pa.array([0.1], pa.float32())})
    double = pa.table({"id": ["b"], "x": pa.array([0.1], pa.float64())})
    for one, other in ((single, double), (double, single)):
        with closing(open_duckdb(one, "id")) as engine:
            engine.append(other)
            x = engine.schema["x"]
            wanted = [Count(Compare(x, Operator.EQ, value)) for value in (0.1, float(np.float32(0.1)))]
            assert engine.measure(wanted) == [1, 1]


def test_a_frame_that_its_owner_changes_later_is_ours(tmp_path):
    frame = in_pandas(SECOND)
    with closing(opened("pandas", tmp_path)) as engine:
        engine.append(frame)
        frame["x"] = 0.0
        frame["id"] = "z"
        engine.append(in_pandas(THIRD))
        by_hand(engine)


def test_many_appends_make_few_tables():
    with closing(open_duckdb(arrow(FIRST), "id")) as engine:
        expected, ends = engine.units(), []
        for number in range(40):
            engine.append(arrow({"id": [f"n{number:02d}", "b"], "x": [float(number), 1.0]}))
            ends.append(expected + number + 1)
        assert len(engine._table.copies) <= 6
        held = engine._table.link.rows("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'part%'")
        assert len(held) == len(engine._table.copies)
        assert [len(ids(engine, number + 2)) for number in range(40)] == ends
        assert engine.contributions([Count(Compare(engine.schema["x"], Operator.EQ, 17.0))]).units.tolist() == [
            2 + 17
        ]


def test_cubes_do_not_outlive_an_append():
    with closing(open_duckdb(arrow(FIRST), None)) as engine:
        asked = [Count(Compare(engine.schema["id"], Operator.EQ, name)) for name in "abcdefghij"]
        assert engine.measure(asked) == [0, 2, 0, 1] + [0] * 6
        engine.append(arrow(SECOND))
        assert engine.measure(asked) == [1, 3, 0, 1, 1] + [0] * 5
        engine.retract()
        assert engine.measure(asked) == [0, 2, 0, 1] + [0] * 6


# Taking back


@pytest.mark.parametrize("form", FORMS)
def test_what_is_taken_back_was_never_there(form, tmp_path):
    with closing(opened(form, tmp_path)) as engine:
        before = state(engine)
        engine.append(FORMS[form](THIRD, tmp_path / "wrong"))
        engine.units()
        engine.retract()
        assert state(engine) == before
        with pytest.raises(NotAllowed, match="nothing was appended"):
            engine.retract()
        engine.append(FORMS[form](SECOND, tmp_path / "second"))
        engine.append(FORMS[form](FIRST, tmp_path / "wrong too"))
        engine.retract()
        engine.append(FORMS[form](THIRD, tmp_path / "third"))
        by_hand(engine)


# Fingerprints


def test_fingerprints_of_snapshots(tmp_path):
    for form in [each for each in FORMS if each != "duckdb"]:  # whose files are not the same twice
        folders = [tmp_path / form / name for name in ("one", "two", "three")]
        found = []
        for folder, last in zip(folders, (THIRD, THIRD, SECOND), strict=True):
            folder.mkdir(parents=True)
            with closing(opened(form, folder)) as engine:
                engine.append(FORMS[form](last, folder / "last"))
                found.append([engine.fingerprint(KEY, number) for number in (1, 2, None)])
                assert engine.fingerprint(b"other", 2) != found[-1][1]
                for wrong in (0, 3, -1):
                    with pytest.raises(ValueError, match="snapshot is"):
                        engine.fingerprint(KEY, wrong)
        assert found[0][0] == found[2][0]
        assert found[0][1] != found[2][1]
        assert found[0][2] != found[2][2]
        assert found[0] == found[1]


def test_a_fingerprint_stays_when_copies_are_put_together():
    with closing(open_duckdb(arrow(FIRST), "id")) as engine:
        found = {}
        for number in range(2, 20):
            engine.append(arrow({"id": [f"n{number}"], "x": [float(number)]}))
            found[number] = engine.fingerprint(KEY, number)
        assert {number: engine.fingerprint(KEY, number) for number in found} == found
        assert len(set(found.values())) == len(found)
