"""Tables that grow: the same rows handed over in every form, and all that an engine tells of itself."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.measures import Count, Total
from targetcharge.queries.tree import Compare, Missing, Operator

KEY = b"a key"
FIRST = {"id": ["b", "d", "b", None], "x": [1.5, 2.0, None, 4.0]}
SECOND = {"id": ["a", "b", "e"], "x": [1.5, -0.0, 7.0]}
THIRD = {"id": ["d", "c", "e"], "x": [1.5, 1.5, 1.5]}
TYPES = {"id": pa.string(), "x": pa.float64()}
DECLARED = {"id": "text", "x": "number"}


def arrow(rows):
    return pa.table({name: pa.array(cells, TYPES[name]) for name, cells in rows.items()})


def in_pandas(rows):
    return pd.DataFrame({"id": pd.Series(rows["id"], dtype="str"), "x": pd.Series(rows["x"], dtype="float64")})


def parquet(rows, path):
    path = path.with_suffix(".parquet")
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else arrow(rows), path)
    return path


def csv(rows, path):
    path = path.with_suffix(".csv")
    lines = [
        ",".join("" if cell is None else str(cell) for cell in row) for row in zip(*rows.values(), strict=True)
    ]
    path.write_text("\n".join([",".join(rows), *lines]) + "\n")
    return path


def database(rows, path):
    path = path.with_suffix(".duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", rows if isinstance(rows, pa.Table) else arrow(rows))
        connection.execute("CREATE TABLE t AS FROM rows")
    return path


FORMS = {
    "parquet": parquet,
    "csv": csv,
    "duckdb": database,
    "arrow": lambda rows, _: arrow(rows),
    "polars": lambda rows, _: pl.from_arrow(arrow(rows)),
    "pandas": lambda rows, _: in_pandas(rows),
}


def opened(form, folder, rows=None, unit="id"):
    """Open the first rows in a form; x is a number in every one."""
    source = FORMS[form](FIRST if rows is None else rows, folder / "first")
    return open_duckdb(source, unit, types=DECLARED)


def ids(engine, snapshot=None):
    """Return who has a row at all."""
    return engine.contributions([Count(None)], snapshot).units.tolist()


def state(engine):
    """Return all that can be told of an engine, and what it holds in DuckDB and on disk."""
    engine.units()
    relations = engine._table.link.rows(
        "SELECT 'table', database_name, table_name FROM duckdb_tables()"
        " UNION ALL SELECT 'view', database_name, view_name FROM duckdb_views() WHERE NOT internal"
        " UNION ALL SELECT 'database', database_name, '' FROM duckdb_databases() ORDER BY ALL"
    )
    return {
        "snapshot": engine.snapshot,
        "files": engine.files,
        "schema": engine.schema,
        "units": engine.units(),
        "digest": engine.digest_of_units(KEY),
        "fingerprints": [engine.fingerprint(KEY, number) for number in range(1, engine.snapshot + 1)],
        "ids": [ids(engine, number) for number in range(1, engine.snapshot + 1)],
        "measures": engine.measure([Count(None)]),
        "relations": relations,
        "spilled": sorted(path.name for path in engine._table.link.spill.rglob("*")),
    }


def by_hand(engine):
    """Compare a table of all three snapshots with what was worked out by hand: units are b d | a e | c."""
    x = engine.schema["x"]
    same, total = Count(Compare(x, Operator.EQ, 1.5)), Total(x, -3, 3, 1, None)
    assert (engine.snapshot, engine.units(), engine.measure([Count(None)])) == (3, 5, [5])
    assert [ids(engine, number) for number in (1, 2, 3, None)] == [
        [0, 1],
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4],
    ]
    assert engine.contributions([same]).units.tolist() == [0, 1, 2, 3, 4]
    assert engine.contributions([same], 1).units.tolist() == [0]
    assert engine.contributions([same], 2).units.tolist() == [0, 2]
    assert engine.contributions([Count(Missing(x))]).units.tolist() == [0]
    found = engine.contributions([total], 2)
    assert (found.units.tolist(), found.steps.tolist()) == ([0, 1, 2, 3], [2, 2, 2, 3])
    assert engine.measure([same, total]) == [5, 2 + 3 + 2 + 3 + 2]
