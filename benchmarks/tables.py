"""What a table question costs in time: against the bare DuckDB query that finds the same number, in one run."""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from rich.table import Table

import targetcharge as tc
from benchmarks.timing import medians, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = int(os.environ.get("TARGETCHARGE_ROWS", "10_000_000"))
KEYS = 3_000
PREDICATES = 1_000
ALONE = 50
REPEATS = 7
BUDGET = tc.Budget(3.0, 1e-6)
WHERE = "age > 65 AND diagnosis = 'flu'"


def tables() -> Iterator[Table]:
    """Yield the tables, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        files = _make(Path(folder), ROWS)
        yield _watches(files)
        yield _questions(files)
        yield _always_paid(files)
        yield _predicates(files)
        yield _families(files["Parquet"])
        yield _noise()
    with tempfile.TemporaryDirectory() as folder:
        yield _growth(Path(folder))


def _make(folder: Path, rows: int) -> dict[str, Path]:
    """Return the same generated rows as a Parquet and as a DuckDB file."""
    files = {"Parquet": folder / f"{rows}.parquet", "DuckDB": folder / f"{rows}.duckdb"}
    with duckdb.connect(str(files["DuckDB"])) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT (hash(i) % 1000000)::INTEGER AS patient,"
            " (hash(i + 1) % 3000)::INTEGER AS county, (hash(i * 3) % 100)::INTEGER AS age,"
            " hash(i * 5) % 2 = 0 AS ward,"
            " ['flu', 'cold', 'covid', 'none'][(1 + hash(i * 7) % 4)::BIGINT] AS diagnosis,"
            f" (hash(i * 11) % 100000)::DOUBLE / 100 AS cost FROM range({rows}) r(i)"
        )
        connection.execute(f"COPY visits TO '{files['Parquet']}' (FORMAT parquet)")
    return files


def _bare(file: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    if file.suffix == ".duckdb":
        connection.execute(f"ATTACH '{file}' AS source (READ_ONLY); CREATE VIEW data AS FROM source.visits")
    else:
        connection.execute(f"CREATE VIEW data AS FROM read_parquet('{file}')")
    return connection


def _run(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    return connection.execute(sql).fetchall()


def _open(file: Path, unit: str | None, ledger: str = "file") -> tc.Table:
    where = ":memory:" if ledger == "memory" else file.with_name(f"{file.name}.{unit}.{time.time_ns()}.db")
    return tc.open(file, unit=unit or tc.ROW, budget=BUDGET, query_epsilon=0.01, ledger=where, meter="exact")


def _watches(files: dict[str, Path]) -> Table:
    title = f"watch: {KEYS:,} keys, {ROWS:,} rows, ledger in a file; against the bare GROUP BY (aim: ratio 2)"
    table = Table("file", "unit", "bare", "watch", "ratio", title=title, title_justify="left")
    for name, file in files.items():
        for unit in (None, "patient"):
            number = "count(*)" if unit is None else f"count(DISTINCT {unit})"
            sql = f"SELECT county, {number} FROM data WHERE {WHERE} GROUP BY county"
            with _bare(file) as connection, _open(file, unit) as opened:
                watch = partial(opened.watch, WHERE, "county", range(KEYS), 10**6)
                found = medians({"bare": partial(_run, connection, sql), "watch": watch}, REPEATS)
            ratio = f"{found['watch'] / found['bare']:.2f}"
            table.add_row(name, unit or "row", readable(found["bare"]), readable(found["watch"]), ratio)
    return table


def _questions(files: dict[str, Path]) -> Table:
    title = f"one question that misses, {ROWS:,} rows; over the bare scan (aim: 5 ms)"
    table = Table("file", "unit", "bare", "above", "overhead", title=title, title_justify="left")
    for name, file in files.items():
        for unit in (None, "patient"):
            number = "count(*)" if unit is None else f"count(DISTINCT {unit})"
            sql = f"SELECT {number} FROM data WHERE {WHERE}"
            with _bare(file) as connection, _open(file, unit) as opened:
                above = partial(opened.above, WHERE, 10**7)
                found = medians({"bare": partial(_run, connection, sql), "above": above}, 3 * REPEATS)
            overhead = f"{(found['above'] - found['bare']) * 1e3:+.1f} ms"
            table.add_row(name, unit or "row", readable(found["bare"]), readable(found["above"]), overhead)
    return table


def _always_paid(files: dict[str, Path]) -> Table:
    """Return what is always paid against the bare query: a histogram by GROUP BY, a quantile by a quantile."""
    title = f"always paid, all of {ROWS:,} rows, {KEYS:,} keys; over the bare query (aim: ratio 2, quantile 3)"
    table = Table("file", "unit", "question", "bare", "asked", "ratio", title=title, title_justify="left")
    for name, file in files.items():
        for unit in (None, "patient"):
            number = "count(*)" if unit is None else f"count(DISTINCT {unit})"
            grouped = f"SELECT county, {number} FROM data GROUP BY county"
            values = "data" if unit is None else f"(SELECT avg(cost) AS cost FROM data GROUP BY {unit})"
            with _bare(file) as connection, _open(file, unit) as opened:
                asked: dict[str, tuple[str, Callable[[], object]]] = {
                    "histogram": (grouped, partial(opened.histogram, None, "county", range(KEYS))),
                    "top 20": (grouped, partial(opened.top, None, "county", range(KEYS), 20)),
                    "median": (
                        f"SELECT quantile_disc(cost, 0.5) FROM {values}",
                        partial(opened.quantile, "cost", 0.5, 0, 1_000),
                    ),
                }
                for question, (sql, call) in asked.items():
                    found = medians({"bare": partial(_run, connection, sql), "asked": call}, REPEATS)
                    ratio = f"{found['asked'] / found['bare']:.2f}"
                    table.add_row(
                        name, unit or "row", question, readable(found["bare"]), readable(found["asked"]), ratio
                    )
    return table


def _predicates(files: dict[str, Path]) -> Table:
    title = f"{PREDICATES:,} predicates on rows; separate queries: {ALONE} of them were run (aim: 5 times faster)"
    columns = ("file", "columns", "separate", "ask_many", "again", "separate / ask_many")
    table = Table(*columns, title=title, title_justify="left")
    chosen = random.Random(1)  # noqa: S311 - which predicates to time
    few = [
        f"age > {chosen.randrange(100)} AND diagnosis = '{chosen.choice(['flu', 'cold'])}' AND ward = TRUE"
        for _ in range(PREDICATES)
    ]
    many = [f"cost > {chosen.randrange(1000)} AND county = {chosen.randrange(KEYS)}" for _ in range(PREDICATES)]
    for name, file in files.items():
        for words, predicates in (("few values: a cube", few), ("many values: codes", many)):
            asked = [tc.questions.above(predicate, 10**7) for predicate in predicates]
            with _bare(file) as connection, _open(file, None) as opened:
                alone = [
                    _once(partial(_run, connection, f"SELECT count(*) FROM data WHERE {each}"))
                    for each in predicates[:ALONE]
                ]
                separate = statistics.mean(alone) * len(predicates)
                first, again = _once(partial(opened.ask_many, asked)), _once(partial(opened.ask_many, asked))
            ratio = f"{separate / first:.1f}"
            table.add_row(name, words, readable(separate), readable(first), readable(again), ratio)
    return table


def _families(file: Path) -> Table:
    """Return what it saves that questions which differ in a value share a scan."""
    title = f"questions whether the patients of a county are as many as before; one by one: {ALONE} were run"
    table = Table("counties", "one by one", "ask_many", "ratio", title=title, title_justify="left")
    for many in (2, 20, 200, PREDICATES):
        asked = [tc.questions.count(f"{WHERE} AND county = {key}", 400, 5000) for key in range(many)]
        with _open(file, "patient") as opened:
            alone = statistics.mean(_once(partial(opened.ask_many, [each])) for each in asked[:ALONE]) * many
            together = statistics.median(_once(partial(opened.ask_many, asked)) for _ in range(REPEATS))
        table.add_row(f"{many:,}", readable(alone), readable(together), f"{alone / together:.1f}")
    return table


def _once(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _noise() -> Table:
    """Return what answering costs beside the scan, against a loop over OpenDP measurements on the same counts."""
    title = f"answers to {KEYS:,} counts that are known already; OpenDP adds noise only, one count after another"
    table = Table("what", "time", "each", title=title, title_justify="left")
    counts = [1_000 + key for key in range(KEYS)]
    tests = tc.mechanisms.batch_by_key(lambda known: known, range(KEYS), 10**6, 0.01)
    with (
        tempfile.TemporaryDirectory() as folder,
        tc.Session(counts, BUDGET, 0.01) as memory,
        tc.Session(counts, BUDGET, 0.01, ledger=Path(folder) / "ledger.db") as file,
    ):
        calls: dict[str, Callable[[], object]] = {
            "watch, ledger in memory": lambda: list(memory.ask_each(tests)),
            "watch, ledger in a file": lambda: list(file.ask_each(tests)),
        }
        try:
            import opendp.prelude as dp  # noqa: PLC0415 - a peer, if it is here
        except ImportError:
            pass
        else:
            dp.enable_features("contrib")
            space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
            noisy = dp.m.make_laplace(*space, scale=100.0)
            calls["OpenDP, a loop"] = lambda: [noisy(count) for count in counts]
        found = medians(calls, REPEATS)
    for name, seconds in found.items():
        table.add_row(name, readable(seconds), readable(seconds / KEYS))
    return table


def _growth(folder: Path) -> Table:
    title = "does it stay linear? a watch of 3,000 keys on Parquet; memory after 10 and after 1,000 questions more"
    columns = ("rows", "watch", "for each million rows", "memory before", "after 1,000 questions")
    table = Table(*columns, title=title, title_justify="left")
    for rows in (ROWS // 10, ROWS, 5 * ROWS):
        file = _make(folder, rows)["Parquet"]
        output = subprocess.run(  # noqa: S603 - ourselves, for a memory of its own
            [sys.executable, "-m", "benchmarks.tables", str(file)], check=True, capture_output=True, text=True
        ).stdout
        seconds, before, after = map(float, output.split())
        each = readable(seconds / (rows / 1e6))
        table.add_row(f"{rows:,}", readable(seconds), each, f"{before:.0f} MB", f"{after:.0f} MB")
    return table


def _grown(file: Path) -> None:
    """Print the time of a watch, and the most memory used before and after many questions."""
    with _open(file, None, "memory") as opened:
        watch = partial(opened.watch, WHERE, "county", range(KEYS), 10**7)
        seconds = medians({"watch": watch}, 5)["watch"]
        for number in range(10):
            opened.above(f"age > {number}", 10**9)
        before = _peak()
        for number in range(1_000):
            opened.above(f"age = {number % 100} AND cost < {number}", 10**9)
        print(seconds, before, _peak())


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    _grown(Path(sys.argv[1]))
