"""Every source that a DuckDB engine reads: how a table is written to it, and what is left of its rows there."""

import gzip
import math
from abc import ABC, abstractmethod
from urllib.parse import quote

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from engines.naive import NaiveEngine, is_missing
from engines.rows import (
    ALL,
    ARROW,
    BOOLEAN,
    DATE,
    DECIMALS,
    DOUBLE,
    ENUM,
    FLOAT,
    TEXT,
    TIME,
    WHOLE,
    ZONED,
    Table,
    to_arrow,
)
from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.columns import Column, Exact, Kind

FOLDER = "it's [1] é*"
"""The folder that files are put in: a name that would end a quotation, and looks like a pattern."""


class Source(ABC):
    """A way to hand over a table. `types` are those that it can hold."""

    types = ARROW

    @abstractmethod
    def opened(self, table, folder, unit):
        """Return an engine over the table."""

    def kind(self, kind, cells):
        """Return the kind and the exact numbers of a column there."""
        return kind.kind, kind.exact

    def value(self, kind, value):
        """Return what a value is there."""
        return value

    def unit(self, kind, value, cells):
        """Return what tells units apart there."""
        return None if is_missing(value) else self.value(kind, value)

    def fitted(self, table):
        """Return the table, or one like it that the source can hold."""
        return table

    def naive(self, table, unit):
        """Return the reference over what this source keeps of a table."""
        columns = {name: table.column(name) for name in table.types}
        schema = {name: Column(name, *self.kind(kind, columns[name])) for name, kind in table.types.items()}
        rows = []
        for number, row in enumerate(table.rows):
            seen = {
                name: None if is_missing(value) else self.value(table.types[name], value)
                for name, value in zip(table.types, row, strict=True)
            }
            if unit is not None:
                seen[UNIT] = self.unit(table.types[unit], columns[unit][number], columns[unit])
            rows.append(seen)
        return NaiveEngine(rows, schema, None if unit is None else UNIT)


UNIT = "the unit, which is no column"


class Arrow(Source):
    def opened(self, table, folder, unit):
        return open_duckdb(to_arrow(table), unit)


class ArrowBatch(Source):
    def opened(self, table, folder, unit):
        batches = to_arrow(table).combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], to_arrow(table).schema)
        return open_duckdb(batch, unit)


class Polars(Source):
    def opened(self, table, folder, unit):
        return open_duckdb(pl.from_arrow(to_arrow(table)), unit)


class Parquet(Source):
    def opened(self, table, folder, unit):
        pq.write_table(to_arrow(table), folder / "data.parquet")
        return open_duckdb(folder / "data.parquet", unit)


class ParquetFolder(Source):
    """Three files, one of them without rows; and files of another kind beside them."""

    def opened(self, table, folder, unit):
        self.write(table, folder)
        return open_duckdb(str(folder), unit)

    @staticmethod
    def write(table, folder):
        (folder / "deeper").mkdir()
        half = len(table.rows) // 2
        pieces = {"a.parquet": table.rows[:half], "b.parquet": (), "deeper/c.pq": table.rows[half:]}
        for name, rows in pieces.items():
            pq.write_table(to_arrow(Table(table.types, rows)), folder / name)
        (folder / "_SUCCESS").touch()
        (folder / "notes.txt").write_text("not a table")


class ParquetPattern(Source):
    """Files that match, and one that does not."""

    def opened(self, table, folder, unit):
        ParquetFolder.write(table, folder)
        (folder / "deeper" / "other.parquet").write_text("does not match, and is no table")
        plain = folder.parent / "plain"
        folder.rename(plain)
        return open_duckdb(str(plain / "**" / "[abc].p*q*"), unit)


class ParquetPartitioned(Source):
    """A folder for each value of the first column, which is text."""

    _EMPTY = "__HIVE_DEFAULT_PARTITION__"

    def fitted(self, table):
        _, *others = table.types
        types = {"part": TEXT, **{name: table.types[name] for name in others}}
        return Table(types, tuple((None if row[0] is None else f"={row[0]}", *row[1:]) for row in table.rows))

    def opened(self, table, folder, unit):
        first, *others = table.types
        types = {name: table.types[name] for name in others}
        by_value = {value: [] for value in [None, *table.column(first)]}  # None has a folder even without rows
        for row in table.rows:
            by_value[row[0]].append(row[1:])
        for value, rows in by_value.items():
            inside = folder / f"{quote(first, safe='')}={self._EMPTY if value is None else quote(value, safe='')}"
            inside.mkdir()
            pq.write_table(to_arrow(Table(types, tuple(rows))), inside / "part.parquet")
        return open_duckdb(folder, unit)


class Csv(Source):
    """Declared types: whole numbers have 64 bits, decimals are numbers, and an empty text is missing."""

    types = (*WHOLE, *DECIMALS, FLOAT, DOUBLE, TEXT, ENUM, DATE, TIME, BOOLEAN)
    ending = ".csv"
    separator = ","

    def opened(self, table, folder, unit):
        path = folder / f"data{self.ending}"
        self.write(table, path)
        names = {Kind.TEXT: "text", Kind.DATE: "date", Kind.TIME: "time", Kind.BOOLEAN: "boolean"}
        declared = {
            name: names.get(kind.kind, "integer" if kind in WHOLE else "number")
            for name, kind in table.types.items()
            if kind is not TEXT
        }
        return open_duckdb(path, unit, types=declared)

    def write(self, table, path):
        lines = [self.separator.join(map(_quoted, table.types))]
        for row in table.rows:
            cells = zip(table.types.values(), row, strict=True)
            lines.append(
                self.separator.join("" if value is None else _written(kind, value) for kind, value in cells)
            )
        text = "".join(line + "\n" for line in lines).encode()
        path.write_bytes(gzip.compress(text) if self.ending.endswith(".gz") else text)

    def kind(self, kind, cells):
        return kind.kind, Exact(0, -(2**63), 2**63 - 1) if kind in WHOLE else None

    def value(self, kind, value):
        if kind in WHOLE:
            return value if value < 2**63 else None
        if kind.kind is Kind.TEXT:
            return _ended(value) or None
        return float(value) if kind in DECIMALS else value

    def unit(self, kind, value, cells):
        """Units are told apart as they are written."""
        if value is None:
            return None
        return self.value(kind, value) if kind.kind is Kind.TEXT else _written(kind, value)


def _ended(text):
    """Return a text as it is read from a file whose lines end with a line feed."""
    return text.replace("\r\n", "\n").replace("\r", " ")


class CsvZipped(Csv):
    ending = ".csv.gz"


class Tsv(Csv):
    ending = ".tsv"
    separator = "\t"


def _quoted(text):
    return '"' + text.replace('"', '""') + '"'


def _written(kind, value):
    if kind.kind is Kind.TEXT:
        return _quoted(value)
    return value.isoformat() if kind.kind in (Kind.DATE, Kind.TIME) else str(value)


class DuckDBFile(Source):
    """One table in a file, which needs no name."""

    types = ALL

    def opened(self, table, folder, unit):
        path = folder / "data.duckdb"
        self.write(table, path, '"only one"')
        return open_duckdb(path, unit)

    @staticmethod
    def write(table, path, name):
        with duckdb.connect(str(path)) as connection:
            written = {each: [_text(cell) for cell in table.column(each)] for each in table.types}
            columns = []
            for each, kind in table.types.items():
                quoted = _quoted(each)
                if kind is ENUM:
                    names = ", ".join("'" + text.replace("'", "''") + "'" for text in _names(written[each]))
                    connection.execute(f"CREATE TYPE {_quoted('of ' + each)} AS ENUM ({names})")
                    columns.append(f"CAST({quoted} AS {_quoted('of ' + each)}) AS {quoted}")
                elif kind is ZONED:  # without the zone of this machine
                    columns.append(f"make_timestamptz(epoch_us(CAST({quoted} AS TIMESTAMP))) AS {quoted}")
                else:
                    columns.append(f"CAST({quoted} AS {kind.duck}) AS {quoted}")
            texts = pa.table({each: pa.array(cells, pa.string()) for each, cells in written.items()})
            connection.register("written in Arrow", texts)
            listed = ", ".join(columns)
            connection.execute(f'CREATE TABLE {name} AS SELECT {listed} FROM "written in Arrow"')


class DuckDBTables(DuckDBFile):
    """Several tables, in two schemas, and a view."""

    def opened(self, table, folder, unit):
        path = folder / "data.db"
        with duckdb.connect(str(path)) as connection:
            connection.execute('CREATE SCHEMA "the other"; CREATE TABLE one AS SELECT 1 AS x')
            connection.execute("CREATE VIEW view AS SELECT 2 AS x")
        self.write(table, path, '"the other"."ta""ble"')
        return open_duckdb(path, unit, table='the other.ta"ble')


def _names(texts):
    return list(dict.fromkeys(text for text in texts if text is not None)) or ["no value"]


def _text(cell):
    if cell is None or isinstance(cell, str):
        return cell
    return cell.isoformat(*(" ",) if hasattr(cell, "hour") else ()) if hasattr(cell, "isoformat") else str(cell)


class Pandas(Source):
    """NumPy's types: whole numbers turn into floating point, and booleans into objects, if one is missing."""

    types = (*WHOLE, FLOAT, DOUBLE, TEXT, ENUM, DATE, TIME, ZONED, BOOLEAN)

    def opened(self, table, folder, unit):
        declared = {name: "boolean" for name, kind in table.types.items() if kind is BOOLEAN}
        declared |= {name: "date" for name, kind in table.types.items() if kind is DATE}
        frame = pd.DataFrame({name: self.series(table.column(name), kind) for name, kind in table.types.items()})
        return open_duckdb(frame, unit, types=declared)

    def series(self, cells, kind):
        if kind in WHOLE:
            if None in cells:
                return pd.Series([math.nan if cell is None else float(cell) for cell in cells], dtype="float64")
            return pd.Series(cells, dtype=str(kind.arrow))
        if kind in (FLOAT, DOUBLE):
            return pd.Series(cells, dtype="float32" if kind is FLOAT else "float64")
        if kind is BOOLEAN:
            return pd.Series(cells, dtype="object" if None in cells else "bool")
        if kind in (TIME, ZONED):
            times = pd.Series(cells, dtype="datetime64[us]")
            return times.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin") if kind is ZONED else times
        return pd.Series(cells, dtype="category" if kind is ENUM else "object")

    def kind(self, kind, cells):
        return kind.kind, None

    def value(self, kind, value):
        return float(value) if kind.kind is Kind.NUMBER else value

    def unit(self, kind, value, cells):
        """Units are told apart by what a column holds, and not by what of it can be asked about."""
        return None if is_missing(value) else float(value) if kind in WHOLE and None in cells else value


class PandasNullable(Pandas):
    """Types of pandas itself, and dates as objects that nobody declared: text."""

    def series(self, cells, kind):
        if kind in WHOLE:
            name = str(kind.arrow)
            return pd.Series(cells, dtype=name.replace("uint", "UInt") if name[0] == "u" else name.capitalize())
        if kind in (FLOAT, DOUBLE):
            return pd.Series(cells, dtype="Float32" if kind is FLOAT else "Float64")
        if kind in (BOOLEAN, TEXT):
            return pd.Series(cells, dtype="boolean" if kind is BOOLEAN else "str")
        return super().series(cells, kind)

    def opened(self, table, folder, unit):
        frame = pd.DataFrame({name: self.series(table.column(name), kind) for name, kind in table.types.items()})
        return open_duckdb(frame, unit)

    def kind(self, kind, cells):
        return Kind.TEXT if kind is DATE else kind.kind, None

    def value(self, kind, value):
        return value.isoformat() if kind is DATE else super().value(kind, value)

    def unit(self, kind, value, cells):
        return None if is_missing(value) else value


class PandasArrow(Pandas):
    """Arrow's types inside pandas."""

    types = ARROW

    def opened(self, table, folder, unit):
        return open_duckdb(to_arrow(table).to_pandas(types_mapper=pd.ArrowDtype), unit)

    def unit(self, kind, value, cells):
        return None if is_missing(value) else value


SOURCES = {
    "parquet-file": Parquet(),
    "parquet-folder": ParquetFolder(),
    "parquet-pattern": ParquetPattern(),
    "parquet-partitioned": ParquetPartitioned(),
    "csv": Csv(),
    "csv-zipped": CsvZipped(),
    "tsv": Tsv(),
    "duckdb-file": DuckDBFile(),
    "duckdb-tables": DuckDBTables(),
    "arrow-table": Arrow(),
    "arrow-batch": ArrowBatch(),
    "polars": Polars(),
    "pandas-numpy": Pandas(),
    "pandas-nullable": PandasNullable(),
    "pandas-arrow": PandasArrow(),
}
