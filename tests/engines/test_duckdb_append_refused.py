"""Appends that are refused, broken or interrupted: nothing has changed, and no value is told."""

import os
import threading
import time
from contextlib import closing
from unittest.mock import patch

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from tests.engines.growing import (
    FIRST,
    FORMS,
    SECOND,
    THIRD,
    arrow,
    by_hand,
    database,
    opened,
    parquet,
    state,
)
from tests.refusals import every

from targetcharge.engines.duckdb import loading, open_duckdb
from targetcharge.errors import EngineError, NotAllowed
from targetcharge.queries.measures import Count

# What is refused

OTHERS = {
    "missing": ({"id": ["a"]}, ["it lacks x"]),
    "no-unit": ({"x": [1.0]}, ["it lacks id"]),
    "one-more": ({**SECOND, "more": [1, 2, 3]}, ["it has more, which"]),
    "capitals": ({"id": SECOND["id"], "X": SECOND["x"]}, ["it lacks x"]),
    "text": ({"id": ["a"], "x": ["swordfish"]}, ["x must be a floating-point number, and is text"]),
    "whole": ({"id": ["a"], "x": [987654321]}, ["x must be a floating-point number, and is a number from"]),
    "unit": ({"id": [987654321], "x": [1.0]}, ["id must be text, and is a number from"]),
    "list": ({"id": ["a"], "x": [["swordfish"]]}, ["x must be a floating-point number, and is LIST"]),
}


READ_AS_DECLARED = ("text", "list", "whole")
"""Where types are declared, what is there is read as a number, as far as it is one."""


@pytest.mark.parametrize("first", ["parquet", "duckdb", "arrow", "csv", "pandas"])
@pytest.mark.parametrize("later", ["parquet", "duckdb", "arrow"])
def test_other_columns_are_refused_and_nothing_has_changed(first, later, tmp_path):
    declared = first in ("csv", "pandas")
    write = {"parquet": parquet, "duckdb": database}.get(later, lambda table, _: table)
    others = {name: case for name, case in OTHERS.items() if not (declared and name in READ_AS_DECLARED)}
    source = FORMS[first](FIRST, tmp_path / "first")
    with closing(open_duckdb(source, "id", types={"x": "number"} if declared else None)) as engine:
        engine.append(FORMS[first](SECOND, tmp_path / "second"))
        before = state(engine)

        def is_refused(rows, words):
            with pytest.raises(ValueError, match=r"^source is ") as caught:
                engine.append(write(pa.table(rows), tmp_path / f"other-{len(list(tmp_path.iterdir()))}"))
            assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)
            assert "swordfish" not in str(caught.value)
            assert "987654321" not in str(caught.value)
            assert state(engine) == before

        every(others, is_refused)
        engine.append(FORMS[first](THIRD, tmp_path / "third"))
        by_hand(engine)


UNITS = {
    "objects": pd.Series(["a", "b"], dtype="object"),
    "categories": pd.Series(["a", "b"], dtype="category"),
    "texts": pd.Series(["a", "b"], dtype="str"),
}


@pytest.mark.parametrize("declared", [None, "text"])
@pytest.mark.parametrize("name", UNITS)
def test_pandas_units_are_the_same_in_columns_of_another_type(name, declared):
    types = {} if declared is None else {"id": declared}
    for other in UNITS.values():
        with closing(open_duckdb(pd.DataFrame({"id": UNITS[name]}), "id", types=types)) as engine:
            engine.append(pd.DataFrame({"id": other}))
            assert engine.units() == 2


def test_units_that_are_told_apart_otherwise_are_refused_unless_they_are_declared():
    """They look alike, and one and the same unit would have two budgets."""
    frame, table = pd.DataFrame({"id": ["a", "01"]}), pa.table({"id": ["a", "1"]})
    for first, second in ((frame, table), (table, frame)):
        with closing(open_duckdb(first, "id")) as engine:
            with pytest.raises(ValueError, match=r"told apart by .* a column that is declared with types"):
                engine.append(second)
            assert engine.units() == 2
        with closing(open_duckdb(first, "id", types={"id": "text"})) as engine:
            engine.append(second)
            assert engine.units() == 3


def test_whole_numbers_are_the_same_units_whether_or_not_one_is_missing():
    one = pd.DataFrame({"id": pd.Series([2**50, 2**50 + 1], dtype="Int64")})
    other = pd.DataFrame({"id": pd.Series([2**50 + 1, None, 2**50 + 2], dtype="Int64")})
    for first, second in ((one, other), (other, one)):
        for kind in ("Int64", "Float64", "int64[pyarrow]"):
            with closing(open_duckdb(first.astype(kind), "id")) as engine:
                engine.append(second)
                assert (engine.units(), engine.measure([Count(None)])) == (3, [3])


@pytest.mark.parametrize("ids_of", [[], [None, None]], ids=["empty", "all-missing"])
@pytest.mark.parametrize("kind", ["str", "object", "Int64", "category", "datetime64[us]", "boolean"])
def test_the_type_of_pandas_units_does_not_depend_on_their_values(kind, ids_of):
    values = {"Int64": [1, 2], "datetime64[us]": ["2024-01-01", "2024-01-02"], "boolean": [True, False]}
    full = pd.DataFrame({"id": pd.Series(values.get(kind, ["a", "b"]), dtype=kind)})
    bare = pd.DataFrame({"id": pd.Series(ids_of, dtype=kind)})
    for first, second in ((full, bare), (bare, full)):
        with closing(open_duckdb(first, "id")) as engine:
            engine.append(second)
            assert (engine.units(), engine.measure([Count(None)])) == (2, [2])


def damaged(path):
    data = bytearray(parquet(SECOND, path).read_bytes())
    data[8:-200] = b"\xff" * (len(data) - 208)
    path.with_suffix(".parquet").write_bytes(data)
    return path.with_suffix(".parquet")


BROKEN = {
    "no-such-file": lambda at: at / "none.parquet",
    "no-table": lambda _: 5,
    "cut": lambda at: _cut(parquet(SECOND, at / "cut")),
    "damaged": lambda at: damaged(at / "damaged"),
    "two-headers": lambda at: _texts(at, "id,x\na,1\n", "x;id\n1;a\n"),
    "no-utf-8": lambda at: _texts(at, "größe,x\n".encode("latin-1")),
    "lazy": lambda _: __import__("polars").LazyFrame(SECOND),
}


def _cut(path):
    path.write_bytes(path.read_bytes()[:-20])
    return path


def _texts(at, *contents):
    (at / "texts").mkdir()
    for number, content in enumerate(contents):
        (at / "texts" / f"{number}.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return at / "texts"


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("form", ["parquet", "arrow", "duckdb"])
def test_a_source_that_cannot_be_read_changes_nothing(form, name, tmp_path):
    with closing(opened(form, tmp_path)) as engine:
        before, broken = state(engine), BROKEN[name](tmp_path)
        with pytest.raises((ValueError, EngineError)) as caught:
            engine.append(broken)
        error = caught.value
        while error is not None:
            assert not isinstance(error, duckdb.Error)  # they quote values
            error = error.__context__
        assert state(engine) == before


@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb"])
def test_a_file_is_appended_once(form, tmp_path):
    with closing(opened(form, tmp_path)) as engine:
        second = FORMS[form](SECOND, tmp_path / "second")
        engine.append(second)
        link = tmp_path / f"link{second.suffix}"
        link.symlink_to(second)
        for again in (second, link, next(tmp_path.glob("first*"))):
            with pytest.raises(ValueError, match="not part of the table already"):
                engine.append(again)
        assert engine.snapshot == 2


@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb"])
def test_a_change_of_any_snapshots_files_is_seen(form, tmp_path):
    with closing(opened(form, tmp_path)) as engine:
        second = FORMS[form](SECOND, tmp_path / "second")
        engine.append(second)
        engine.check_unchanged()
        os.utime(second, ns=(0, 0))
        with pytest.raises(NotAllowed, match="second"):
            engine.check_unchanged()
        with pytest.raises(NotAllowed, match="second"):
            engine.append(FORMS[form](THIRD, tmp_path / "third"))
        assert engine.snapshot == 2


def test_tables_of_a_database_are_found_by_the_same_name(tmp_path):
    for name in ("a", "b"):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as connection:
            connection.execute(f"CREATE TABLE one AS SELECT '{name}' AS id; CREATE TABLE two AS SELECT 5 AS y")
    with closing(open_duckdb(tmp_path / "a.duckdb", "id", table="one")) as engine:
        engine.append(tmp_path / "b.duckdb")
        engine.append(parquet(pa.table({"id": ["c"]}), tmp_path / "c"))
        assert engine.measure([Count(None)]) == [3]


# Ctrl-C


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", ["check_alike", "_copied", "_in_place"])
def test_an_interrupted_append_changes_nothing(form, step, tmp_path):
    with closing(opened(form, tmp_path)) as engine:
        before, second = state(engine), FORMS[form](SECOND, tmp_path / "second")
        whole = getattr(loading, step)

        def interrupted(*arguments):
            if step == "_in_place":
                made = whole(*arguments)
                if made is not None:
                    made.link.close()
            raise KeyboardInterrupt

        with patch.object(loading, step, interrupted):
            try:
                engine.append(second)
            except KeyboardInterrupt:
                assert state(engine) == before
            else:  # this form does not take that step
                engine.retract()
        engine.append(second)
        engine.append(FORMS[form](THIRD, tmp_path / "third"))
        by_hand(engine)


def test_ctrl_c_during_a_copy_changes_nothing():
    """DuckDB hides it as an error of its own."""
    many = pa.table({"id": [str(number) for number in range(400_000)], "x": [0.5] * 400_000})
    with closing(open_duckdb(arrow(FIRST), "id")) as engine:
        before = state(engine)
        for wait in (0.001, 0.01, 0.05, 0.1):
            stopper = threading.Thread(
                target=lambda pause=wait: (time.sleep(pause), engine._table.link.raw.interrupt())
            )
            stopper.start()
            try:
                engine.append(many)
                engine.retract()
            except (KeyboardInterrupt, EngineError):
                pass
            stopper.join()
            assert state(engine) == before
        engine.append(arrow(SECOND))
        engine.append(arrow(THIRD))
        by_hand(engine)
