"""A table with columns of every kind: its schema, and a few rows that meet the literals of the tests."""

import datetime as dt
from decimal import Decimal

import duckdb

from targetcharge.queries.tree import Column, Exact, Kind

TYPES = {
    "age": ("TINYINT", Column("age", Kind.NUMBER, Exact(0, -128, 127))),
    "visits": ("BIGINT", Column("visits", Kind.NUMBER, Exact(0, -(2**63), 2**63 - 1))),
    "price": ("DECIMAL(9, 2)", Column("price", Kind.NUMBER, Exact(2, -999_999_999, 999_999_999))),
    "bmi": ("DOUBLE", Column("bmi", Kind.NUMBER)),
    "diagnosis": ("VARCHAR", Column("diagnosis", Kind.TEXT)),
    "Home Town": ("VARCHAR", Column("Home Town", Kind.TEXT)),
    "born": ("DATE", Column("born", Kind.DATE)),
    "date": ("DATE", Column("date", Kind.DATE)),
    "seen": ("TIMESTAMP", Column("seen", Kind.TIME)),
    "smoker": ("BOOLEAN", Column("smoker", Kind.BOOLEAN)),
}
SCHEMA = {name: column for name, (_, column) in TYPES.items()}

NUMBERS = [0, 1, -1, 2, 65, 127, -128]
TEXTS = ["", "flu", "it's", "Flu", "cold", "é", "%", "a_b", "\\", "日本", "\U0001f600", "flu\n"]
DATES = [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
TIMES = [dt.datetime(2024, 1, 31), dt.datetime(2024, 1, 31, 8, 30), dt.datetime(2024, 1, 31, 8, 30, 15, 500000)]
VALUES = {
    "age": NUMBERS,
    "visits": [*NUMBERS, 2**53 + 1, 2**63 - 1, -(2**63)],
    "price": [Decimal(units).scaleb(-2) for units in (0, 1, -1, 100, 150, -999_999_999, 999_999_999)],
    "bmi": [0.0, 0.1, -0.1, 1.5, 65.0, 1e22, -1e300, 5e-324],
    "diagnosis": TEXTS,
    "Home Town": TEXTS,
    "born": DATES,
    "date": DATES,
    "seen": TIMES,
    "smoker": [True, False],
}
ROWS = [
    {
        name: ([None, *values])[(index * step) % (len(values) + 1)]
        for step, (name, values) in enumerate(VALUES.items(), 1)
    }
    for index in range(60)
]


def write(path):
    """Write the rows into a DuckDB file."""
    with duckdb.connect(str(path)) as connection:
        fill(connection)


def fill(connection):
    """Make the table."""
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in TYPES.items())
    connection.execute(f"CREATE TABLE patients ({columns})")
    rows = [tuple(row.values()) for row in ROWS]
    connection.executemany(f"INSERT INTO patients VALUES ({', '.join('?' * len(TYPES))})", rows)
