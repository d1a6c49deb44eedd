"""Every source that a DuckDB engine reads: how a table is written to it, and what is left of its rows there."""

import gzip
from urllib.parse import quote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.engines.identities import in_order, instant, read_number
from tests.engines.naive import is_missing
from tests.engines.one_source import Source
from tests.engines.pandas_sources import Pandas, PandasArrow, PandasNullable
from tests.engines.rows import (
    ALL,
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

from targetcharge.queries.tree import Exact, Kind

FOLDER = "it's [1] é*"
"""The folder that files are put in: a name that would end a quotation, and looks like a pattern."""


class Arrow(Source):
    def given(self, table, folder):
        return to_arrow(table), {}


class ArrowBatch(Source):
    def given(self, table, folder):
        batches = to_arrow(table).combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], to_arrow(table).schema)
        return batch, {}


class Polars(Source):
    def given(self, table, folder):
        return pl.from_arrow(to_arrow(table)), {}


class Parquet(Source):
    def given(self, table, folder):
        pq.write_table(to_arrow(table), folder / "data.parquet")
        return folder / "data.parquet", {}


class ParquetFolder(Source):
    """Three files, one of them without rows; and files of another kind beside them."""

    def given(self, table, folder):
        self.write(table, folder)
        return str(folder), {}

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

    def given(self, table, folder):
        ParquetFolder.write(table, folder)
        (folder / "deeper" / "other.parquet").write_text("does not match, and is no table")
        plain = folder.parent / "plain"
        folder.rename(plain)
        return str(plain / "**" / "[abc].p*q*"), {}


class ParquetPartitioned(Source):
    """A folder for each value of the first column, which is text."""

    _EMPTY = "__HIVE_DEFAULT_PARTITION__"

    def fitted(self, table):
        _, *others = table.types
        types = {"part": TEXT, **{name: table.types[name] for name in others}}
        return Table(types, tuple((None if row[0] is None else f"={row[0]}", *row[1:]) for row in table.rows))

    def ordered(self, table):
        first, *_ = table.types
        return sorted(table.rows, key=lambda row: self._folder(first, row[0]))

    def _folder(self, name, value):
        return f"{quote(name, safe='')}={self._EMPTY if value is None else quote(value, safe='')}"

    def given(self, table, folder):
        first, *others = table.types
        types = {name: table.types[name] for name in others}
        by_value = {value: [] for value in [None, *table.column(first)]}  # None has a folder even without rows
        for row in table.rows:
            by_value[row[0]].append(row[1:])
        for value, rows in by_value.items():
            inside = folder / self._folder(first, value)
            inside.mkdir()
            pq.write_table(to_arrow(Table(types, tuple(rows))), inside / "part.parquet")
        return folder, {}


class Csv(Source):
    """Declared types: whole numbers have 64 bits, decimals are numbers, and an empty text is missing."""

    types = (*WHOLE, *DECIMALS, FLOAT, DOUBLE, TEXT, ENUM, DATE, TIME, BOOLEAN)
    ending = ".csv"
    separator = ","

    def given(self, table, folder):
        path = folder / f"data{self.ending}"
        self.write(table, path)
        names = {Kind.TEXT: "text", Kind.DATE: "date", Kind.TIME: "time", Kind.BOOLEAN: "boolean"}
        declared = {
            name: names.get(kind.kind, "integer" if kind in WHOLE else "number")
            for name, kind in table.types.items()
            if kind is not TEXT
        }
        return path, {"types": declared}

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
        """Units are told apart by what they are declared to be, or else as they are written."""
        if value is None:
            return None
        if kind.kind is Kind.TEXT:
            return self.value(kind, value)
        if kind.kind is Kind.BOOLEAN:
            return str(value).lower()
        if kind.kind in (Kind.DATE, Kind.TIME):
            return instant(value)
        return str(value) if is_missing(value) else read_number(value)

    def rank(self, kind, value, cells):
        unit = self.unit(kind, value, cells)
        return unit if kind.kind is Kind.TEXT else in_order(unit)


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

    def given(self, table, folder):
        path = folder / "data.duckdb"
        self.write(table, path, '"only one"')
        return path, {}

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

    def given(self, table, folder):
        path = folder / "data.db"
        with duckdb.connect(str(path)) as connection:
            connection.execute('CREATE SCHEMA "the other"; CREATE TABLE one AS SELECT 1 AS x')
            connection.execute("CREATE VIEW view AS SELECT 2 AS x")
        self.write(table, path, '"the other"."ta""ble"')
        return path, {"table": 'the other.ta"ble'}


def _names(texts):
    return list(dict.fromkeys(text for text in texts if text is not None)) or ["no value"]


def _text(cell):
    if cell is None or isinstance(cell, str):
        return cell
    return cell.isoformat(*(" ",) if hasattr(cell, "hour") else ()) if hasattr(cell, "isoformat") else str(cell)


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
