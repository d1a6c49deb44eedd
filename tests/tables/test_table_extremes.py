"""No value that a column can hold makes a question fail: whether one does would tell that the value is there."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.refusals import every
from tests.sizes import size

import targetcharge as tc
from targetcharge.queries.tree import Kind
from targetcharge.tables import questions as q

TYPES = {
    "TINYINT": ["-128", "127", "0"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807", "0"],
    "HUGEINT": ["-170141183460469231731687303715884105728", "170141183460469231731687303715884105727", "1"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["0", "65535"],
    "UINTEGER": ["0", "4294967295"],
    "UBIGINT": ["0", "18446744073709551615"],
    "UHUGEINT": ["0", "340282366920938463463374607431768211455"],
    "FLOAT": ["nan", "inf", "-inf", "3.4028235e38", "1e-45", "-0.0"],
    "DOUBLE": ["nan", "inf", "-inf", "1.7976931348623157e308", "5e-324", "-0.0", "0.1"],
    "DECIMAL(4,2)": ["-99.99", "99.99", "0.01"],
    "DECIMAL(18,0)": ["999999999999999999", "-999999999999999999"],
    "DECIMAL(38,10)": ["9999999999999999999999999999.9999999999", "-0.0000000001"],
    "DECIMAL(38,38)": ["0." + "9" * 38, "-0." + "9" * 38],
    "VARCHAR": ["", "\\x", "é", "\U0001f600", "'; DROP TABLE data; --", "NaN", "x" * 10_000, "%_\\"],
    "DATE": [
        "infinity",
        "-infinity",
        "0001-01-01",
        "9999-12-31",
        "5877642-06-25 (BC)",
        "5881580-07-10",
        "2024-02-29",
    ],
    "TIMESTAMP": [
        "infinity",
        "-infinity",
        "294247-01-10 04:00:54.775806",
        "290309-12-22 (BC) 00:00:00",
        "2024-01-01",
    ],
    "TIMESTAMP_S": ["infinity", "-infinity", "2024-01-01 00:00:00", "290309-12-22 (BC) 00:00:00"],
    "TIMESTAMP_MS": ["infinity", "-infinity", "2024-01-01 00:00:00.123", "290309-12-22 (BC) 00:00:00"],
    "TIMESTAMP_NS": ["infinity", "-infinity", "2262-04-11 23:47:16.854775806", "1677-09-22 00:00:00"],
    "TIMESTAMP WITH TIME ZONE": [
        "infinity",
        "-infinity",
        "294247-01-10 04:00:54.775806+00",
        "2024-01-01 00:00:00+14",
    ],
    "BOOLEAN": ["true", "false"],
    "UUID": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "ENUM('a', '<b>', '')": ["a", "<b>", ""],
}
"""DuckDB's types, and the ends of what they hold."""


def write(kind, folder):
    """Make a DuckDB file and a Parquet file with one column of a type, a unit for each value, and missing ones."""
    values = [None, *TYPES[kind]]
    with duckdb.connect(folder / "all.duckdb") as connection:
        connection.execute(f"CREATE TABLE data (u INTEGER, v {kind}, w BOOLEAN)")
        for place, value in enumerate(values * 2):
            connection.execute(
                f"INSERT INTO data VALUES (?, CAST(? AS {kind}), ?)", [place // 2, value, place % 2 == 0]
            )
        connection.execute(f"COPY data TO '{folder / 'all.parquet'}'")


def asked(column):
    """Yield questions about a column of a kind; none of them hits."""
    far = 10**13
    literals = {
        Kind.NUMBER: ["0", "1e30", "-0.5", "99"],
        Kind.TEXT: ["''", "'a'", "'é'"],
        Kind.DATE: ["'0001-01-01'", "'9999-12-31'", "'2024-02-29'"],
        Kind.TIME: ["'0001-01-01 00:00'", "'9999-12-31 23:59:59.999999'", "'2024-01-01 12:00'"],
        Kind.BOOLEAN: ["TRUE", "FALSE"],
    }[column.kind]
    for literal in literals:
        for operator in ("=", "<>", *(("<", ">=") if column.kind is not Kind.BOOLEAN else ())):
            yield q.above(f"v {operator} {literal}", far)
            yield q.above(f"NOT (v {operator} {literal}) OR v IS NULL", far)
    yield q.above(f"v IN ({', '.join(literals)})", far)
    if column.kind is Kind.TEXT:
        yield q.above("v LIKE '%\\%' OR v LIKE '_'", far)
    for most in (1, 3):
        yield q.above(q.distinct("v", per_unit=most), 10**6)
    if column.kind is Kind.NUMBER:
        for bounds, grid in (
            ((0, 1), "0.001"),
            ((-1000, 1000), 1),
            ((5, 10), 1),
            ((-(10**9), 10**9), 1000),
            ((-3, -1), None),
        ):
            yield q.above(q.sum("v", *bounds, grid=grid), far)
            yield q.watch(q.sum("v", *bounds, grid=grid), "w", [True, False], far)
    keys = {
        Kind.NUMBER: [0, 1],
        Kind.TEXT: ["", "a", "é"],
        Kind.DATE: ["0001-01-01", "9999-12-31"],
        Kind.TIME: ["0001-01-01 00:00:00", "9999-12-31 23:59:59"],
        Kind.BOOLEAN: [True, False],
    }[column.kind]
    fitting = [key for key in keys if column.exact is None or key * 10**column.exact.scale <= column.exact.high]
    yield q.watch(None, "v", fitting, far)
    yield q.watch(None, ["v", "w"], [(key, True) for key in fitting], far)
    if column.kind in (Kind.DATE, Kind.TIME):
        yield q.watch(None, "v", tc.days("0001-01-01", "0001-01-05"), far)
        yield q.watch(None, "v", tc.days("9999-12-28", "9999-12-31"), far)
    if column.kind is Kind.TIME:
        yield q.watch(None, "v", tc.hours("9999-12-31 00:00", "9999-12-31 23:00"), far)
        yield q.watch(None, "v", tc.days("2024-01-01", "2024-01-02"), far)
    yield q.top(None, "v", fitting, 1, threshold=far)


def possible(t, question):
    """Return whether a question can be asked of columns of these types, whatever they hold."""
    try:
        t.preview(question)
    except tc.InvalidParameter:
        return False
    return True


FORMS = {
    "duckdb": lambda folder: folder / "all.duckdb",
    "parquet": lambda folder: folder / "all.parquet",
    "arrow": lambda folder: pq.read_table(folder / "all.parquet"),
    "polars": lambda folder: pl.from_arrow(pq.read_table(folder / "all.parquet")).with_columns(
        pl.col(pl.Binary).bin.encode("hex")  # of UUIDs, which it has as bytes
    ),
    "pandas": lambda folder: pq.read_table(folder / "all.parquet").to_pandas(types_mapper=pd.ArrowDtype),
}


ASKED = [
    (form, unit) for form in FORMS for unit in ("u", "v", tc.ROW) if unit == "v" or form in ("duckdb", "parquet")
]


@pytest.mark.parametrize("kind", TYPES)
def test_no_value_makes_a_question_fail(kind, tmp_path):
    """In a quick run, in a third of the forms."""
    write(kind, tmp_path)
    first, step = size(list(TYPES).index(kind) % 3, 0), size(3, 1)
    every([(tmp_path, form, unit) for form, unit in ASKED[first::step]], goes_on)


def goes_on(file, form, unit):
    with tc.open(FORMS[form](file), unit=unit, budget=tc.Budget(3.0, 1e-6), ledger=":memory:", meter="exact") as t:
        questions = [question for question in asked(t._engine.schema["v"]) if possible(t, question)]
        assert len(questions) > 8
        broken = []
        for question in questions:
            try:
                t.ask(question)
            except tc.TargetChargeError as error:
                broken.append((question, type(error).__name__))
        assert broken == []
        t.ask_many([question for question in questions if isinstance(question, q.Above)])
        assert t.meter.hits == 0
