"""What a source is: how a table is written to it, and what is left of its rows there."""

# ruff: noqa: ARG002 - one interface, whose implementations need not use every argument

from abc import ABC, abstractmethod

from tests.engines.naive import NaiveEngine, bytes_of, is_missing, literal_of, plain_bytes
from tests.engines.rows import ARROW, NANOSECONDS, Table

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.tree import Column


class Source(ABC):
    """A way to hand over a table. `types` are those that it can hold."""

    types = ARROW

    @abstractmethod
    def given(self, table, folder):
        """Return the table as what is handed over, and the options to open it with."""

    def opened(self, table, folder, unit):
        """Return an engine over the table."""
        source, options = self.given(table, folder)
        return open_duckdb(source, unit, **options)

    def kind(self, kind, cells):
        """Return the kind and the exact numbers of a column there."""
        return kind.kind, kind.exact

    def value(self, kind, value):
        """Return what a value is there."""
        return value

    def unit(self, kind, value, cells):
        """Return what tells units apart there."""
        return None if is_missing(value) else self.value(kind, value)

    def rank(self, kind, value, cells):
        """Return what units are in the order of there."""
        return self.unit(kind, value, cells)

    def data(self, kind, value, cells):
        """Return the bytes of what tells units apart there."""
        unit = self.unit(kind, value, cells)
        if unit is None or isinstance(unit, str):
            return plain_bytes(unit)
        if kind is NANOSECONDS:
            return (1000 * int.from_bytes(plain_bytes(unit), signed=True)).to_bytes(8, "big", signed=True)
        column = Column("", *self.kind(kind, cells))
        return bytes_of(literal_of(unit, column), column)

    def ordered(self, table):
        """Return the rows in the order in which they are read."""
        return table.rows

    def fitted(self, table):
        """Return the table, or one like it that the source can hold."""
        return table

    def naive(self, table, unit):
        """Return the reference over what this source keeps of a table."""
        table = Table(table.types, tuple(self.ordered(table)))
        columns = {name: table.column(name) for name in table.types}
        schema = {name: Column(name, *self.kind(kind, columns[name])) for name, kind in table.types.items()}
        rows = []
        for number, row in enumerate(table.rows):
            seen = {
                name: None if is_missing(value) else self.value(table.types[name], value)
                for name, value in zip(table.types, row, strict=True)
            }
            if unit is not None:
                cell = table.types[unit], columns[unit][number], columns[unit]
                seen |= {UNIT: self.unit(*cell), RANK: self.rank(*cell), DATA: self.data(*cell)}
            rows.append(seen)
        name = None if unit is None else UNIT
        return NaiveEngine(rows, schema, name, lambda row: row[RANK], lambda row: row[DATA])


UNIT, RANK, DATA = "the unit, which is no column", "what units are in the order of", "what is hashed of units"
