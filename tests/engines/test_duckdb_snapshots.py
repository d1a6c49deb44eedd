"""Folders that grow: which files belong to which snapshot, and ids that are the same whoever opens them."""

import subprocess
import sys
from contextlib import closing

import pyarrow as pa
import pytest
from tests.engines.growing import FIRST, KEY, SECOND, THIRD, arrow, by_hand, csv, database, ids, parquet

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.queries.keys import Keys
from targetcharge.queries.measures import Count
from targetcharge.queries.tree import Compare, Operator

WRITERS = {"parquet": parquet, "csv": csv}
TYPES = {"x": "number"}


@pytest.fixture(params=WRITERS)
def kind(request):
    return request.param


def grown(kind, folder):
    """Write three files whose names are not in the order of their snapshots."""
    folder.mkdir()
    (folder / "deeper").mkdir()
    write = WRITERS[kind]
    return [
        write(rows, folder / name).relative_to(folder).as_posix()
        for name, rows in {"m": FIRST, "deeper/z": SECOND, "a": THIRD}.items()
    ]


def test_files_belong_to_snapshots(kind, tmp_path):
    one, two, three = grown(kind, tmp_path / "f")
    with closing(open_duckdb(tmp_path / "f", "id", types=TYPES, snapshots=[[one], [two], [three]])) as engine:
        by_hand(engine)
        assert engine.files == ((one,), (two,), (three,))
        together = [engine.fingerprint(KEY, number) for number in (1, 2, 3)]
        digests = [engine.digest_of_units(KEY, number) for number in (1, 2, 3)]
    with closing(open_duckdb(tmp_path / "f" / one, "id", types=TYPES)) as engine:
        engine.append(tmp_path / "f" / two)
        engine.append(tmp_path / "f" / three)
        by_hand(engine)
        assert [engine.fingerprint(KEY, number) for number in (1, 2, 3)] == together
        assert [engine.digest_of_units(KEY, number) for number in (1, 2, 3)] == digests


def test_files_that_are_not_named_are_one_more_snapshot(kind, tmp_path):
    one, two, three = grown(kind, tmp_path / "f")
    folder = tmp_path / "f"
    with closing(open_duckdb(folder, "id", types=TYPES, snapshots=[[one]])) as engine:
        assert engine.files == ((one,), (three, two))
        assert [ids(engine, number) for number in (1, 2)] == [[0, 1], [0, 1, 2, 3, 4]]
    with closing(open_duckdb(folder, "id", types=TYPES, snapshots=[[two, one]])) as engine:
        assert engine.files == ((two, one), (three,))
        where = Count(Compare(engine.schema["x"], Operator.EQ, 7.0))
        assert engine.contributions([where]).units.tolist() == [3]  # a b d e | c
    for snapshots in (None, []):
        with closing(open_duckdb(folder, "id", types=TYPES, snapshots=snapshots)) as engine:
            assert (engine.snapshot, engine.files) == (1, ((three, two, one),))


def test_rows_are_in_the_order_of_snapshots_and_names(kind, tmp_path):
    one, two, _ = grown(kind, tmp_path / "f")
    with closing(open_duckdb(tmp_path / "f", None, types=TYPES, snapshots=[[one], [two]])) as engine:
        where = Count(Compare(engine.schema["x"], Operator.EQ, 1.5))
        assert engine.contributions([where]).units.tolist() == [0, 4, 7, 8, 9]
        assert [len(ids(engine, number)) for number in (1, 2, 3)] == [4, 7, 10]
        assert engine.units() == 10
        found = engine.contributions_by(Count(None), Keys((engine.schema["id"],), (("e",), ("b",), ("q",))), 2)
        assert [found.of(place)[0].tolist() for place in range(3)] == [[6], [0, 2, 5], []]


@pytest.mark.parametrize("pattern", ["*.{}", "**/*.{}"])
def test_patterns(kind, pattern, tmp_path):
    one, two, three = grown(kind, tmp_path / "f")
    source = str(tmp_path / "f" / pattern.format(kind))
    with closing(open_duckdb(source, "id", types=TYPES, snapshots=[[one], [three]])) as engine:
        assert engine.files == (((one,), (three,)) if pattern[1] == "." else ((one,), (three,), (two,)))


def test_a_file_that_is_gone(kind, tmp_path):
    one, two, three = grown(kind, tmp_path / "f")
    (tmp_path / "f" / two).unlink()
    with pytest.raises(NotAllowed, match=two):
        open_duckdb(tmp_path / "f", "id", types=TYPES, snapshots=[[one], [two], [three]])


@pytest.mark.parametrize(
    "snapshots", ["a", 5, ["a.csv"], [[]], [[5]], [["a.csv"], ["a.csv"]], [["a.csv", None]]], ids=repr
)
def test_snapshots_that_are_none(snapshots, tmp_path):
    csv(FIRST, tmp_path / "a")
    with pytest.raises(InvalidParameter, match="snapshots is"):
        open_duckdb(tmp_path, "id", snapshots=snapshots)


def test_only_files_have_names(tmp_path):
    with pytest.raises(InvalidParameter, match="snapshots is"):
        open_duckdb(arrow(FIRST), "id", snapshots=[["a"]])
    for write in (parquet, csv, database):
        path = write(FIRST, tmp_path / "alone")
        with closing(open_duckdb(path, "id", snapshots=[[path.name]])) as engine:
            assert (engine.snapshot, engine.files) == (1, ((),))
        with pytest.raises(NotAllowed, match="another"):
            open_duckdb(path, "id", snapshots=[["another"]])
    with closing(open_duckdb(arrow(FIRST), "id")) as engine:
        assert engine.files == ((),)


def test_names_of_what_is_appended_to_a_folder(tmp_path):
    grown("parquet", tmp_path / "f")
    with closing(open_duckdb(tmp_path / "f", "id")) as engine:
        engine.append(parquet(SECOND, tmp_path / "f" / "later"))
        engine.append(parquet(THIRD, tmp_path / "elsewhere"))
        engine.append(arrow(THIRD))
        assert engine.files[1:] == (("later.parquet",), (), ())


def test_a_year_of_days(tmp_path):
    """Two units a day, one of them there before; days are snapshots."""
    names = []
    for day in range(365):
        rows = pa.table({"id": [day, day // 2], "day": [day, day]})
        names.append([parquet(rows, tmp_path / f"{day:03d}").name])
    with closing(open_duckdb(tmp_path, "id", snapshots=names)) as engine:
        assert (engine.snapshot, engine.units()) == (365, 365)
        asked = [Count(Compare(engine.schema["day"], Operator.EQ, day)) for day in range(365)]
        found = engine.contributions(asked)
        assert [found.of(day)[0].tolist() for day in range(365)] == [sorted({day // 2, day}) for day in range(365)]
        assert engine.contributions([Count(None)], 100).units.tolist() == list(range(100))
        assert engine._table.relation().rows == "data"  # one relation over all files


CHILD = """
import sys
from pathlib import Path
from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.measures import Count
folder, unit, key = Path(sys.argv[1]), sys.argv[2] or None, b"a key"
engine = open_duckdb(folder, unit, types={"x": "number"}, snapshots=[sys.argv[3:4], sys.argv[4:5], sys.argv[5:6]])
print([engine.digest_of_units(key, number) for number in (None, 1, 2, 3)], engine.units())
print([engine.contributions([Count(None)], number).units.tolist() for number in (1, 2, 3)])
"""


@pytest.mark.parametrize("unit", ["id", None])
def test_ids_are_the_same_in_another_process(kind, unit, tmp_path):
    names = grown(kind, tmp_path / "f")
    told = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", CHILD, str(tmp_path / "f"), unit or "", *names],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    with closing(open_duckdb(tmp_path / "f" / names[0], unit, types=TYPES)) as engine:
        first = engine.digest_of_units(KEY)
        for name in names[1:]:
            engine.append(tmp_path / "f" / name)
        digests = [engine.digest_of_units(KEY, number) for number in (None, 1, 2, 3)]
        assert digests[1] == first
        assert told[0] == f"{digests} {engine.units()}"
        assert told[1] == str([ids(engine, number) for number in (1, 2, 3)])
