"""Random tables: every type of column, and the values that engines trip over."""

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from targetcharge.queries.tree import Exact, Kind

NAMES = (
    *("k1", "k2", "n", "i", "u", "v", "h", "d", "c0", "c1", "step", "contribution", "place", "data", "source"),
    *("frame", "unit", "select", "Größe", "a b", 'say "x"', "it's", "x.y", "%s", "$1", "-- x", "count(*)", "ID"),
)
"""Names of columns: those that the SQL uses itself, those that would end a quotation, and plain ones."""


@dataclass(frozen=True)
class Type:
    """A type of columns, as DuckDB spells it; `arrow` is None where Arrow has none like it."""

    duck: str
    kind: Kind
    arrow: pa.DataType | None
    exact: Exact | None = None

    def __repr__(self):
        return self.duck


def _whole(name, low, high, arrow):
    return Type(name, Kind.NUMBER, arrow, Exact(0, low, high))


def _decimal(width, scale):
    exact = Exact(scale, 1 - 10**width, 10**width - 1)
    return Type(f"DECIMAL({width},{scale})", Kind.NUMBER, pa.decimal128(width, scale), exact)


WHOLE = (
    _whole("TINYINT", -(2**7), 2**7 - 1, pa.int8()),
    _whole("SMALLINT", -(2**15), 2**15 - 1, pa.int16()),
    _whole("INTEGER", -(2**31), 2**31 - 1, pa.int32()),
    _whole("BIGINT", -(2**63), 2**63 - 1, pa.int64()),
    _whole("UTINYINT", 0, 2**8 - 1, pa.uint8()),
    _whole("USMALLINT", 0, 2**16 - 1, pa.uint16()),
    _whole("UINTEGER", 0, 2**32 - 1, pa.uint32()),
    _whole("UBIGINT", 0, 2**64 - 1, pa.uint64()),
)
HUGE = (_whole("HUGEINT", -(2**127), 2**127 - 1, None), _whole("UHUGEINT", 0, 2**128 - 1, None))
DECIMALS = (_decimal(2, 2), _decimal(4, 1), _decimal(9, 2), _decimal(15, 6), _decimal(38, 10), _decimal(38, 0))
FLOAT = Type("FLOAT", Kind.NUMBER, pa.float32())
DOUBLE = Type("DOUBLE", Kind.NUMBER, pa.float64())
TEXT = Type("VARCHAR", Kind.TEXT, pa.string())
ENUM = Type("ENUM", Kind.TEXT, pa.dictionary(pa.int32(), pa.string()))
DATE = Type("DATE", Kind.DATE, pa.date32())
TIME = Type("TIMESTAMP", Kind.TIME, pa.timestamp("us"))
SECONDS = Type("TIMESTAMP_S", Kind.TIME, pa.timestamp("s"))
MILLISECONDS = Type("TIMESTAMP_MS", Kind.TIME, pa.timestamp("ms"))
NANOSECONDS = Type("TIMESTAMP_NS", Kind.TIME, pa.timestamp("ns"))
ZONED = Type("TIMESTAMP WITH TIME ZONE", Kind.TIME, pa.timestamp("us", "UTC"))
BOOLEAN = Type("BOOLEAN", Kind.BOOLEAN, pa.bool_())

ARROW = (
    *(*WHOLE, *DECIMALS, FLOAT, DOUBLE, TEXT, ENUM, DATE),
    *(TIME, SECONDS, MILLISECONDS, NANOSECONDS, ZONED, BOOLEAN),
)
ALL = (*ARROW, *HUGE)
_TIMES = (TIME, SECONDS, MILLISECONDS, NANOSECONDS, ZONED)

_TEXTS = (
    *("", "a", "A", "ab", "b", "aé", "a b", "%", "_", "\\", "\\%", "a\\", "'", "''", '"', "é", "e\u0301", "😀"),
    *("👩\u200d🚀", "ﬀ", "ß", "NULL", "nan", "0", "a\nb", "\t", " a ", "\u00a0", "ａ", "\U0010ffff", "\ue000"),
)
_LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.sampled_from(_TEXTS) | st.text(st.sampled_from("ab%_\\'\"é😀") | _LETTERS, max_size=5)

_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.1, 0.5, -0.5, 1.5, 2.5, 0.049999999999999996, 1e22, 2.0**53, -(2.0**53) - 2),
    *(math.inf, -math.inf, math.nan, math.nan, math.nan, math.nan, 5e-324, 1.7976931348623157e308, -1e300),
)
_SINGLES = tuple(float(np.float32(each)) for each in _FLOATS if not 1e22 < abs(each) < math.inf)


@cache
def values(kind):
    """Return the values of a type, NaN among them."""
    if kind.exact:
        return _units(kind.exact).map(
            lambda units: units if not kind.exact.scale else decimal(units, kind.exact.scale)
        )
    if kind.kind is Kind.NUMBER:
        return (
            st.sampled_from(_SINGLES) | st.floats(width=32)
            if kind is FLOAT
            else st.sampled_from(_FLOATS) | st.floats()
        )
    if kind.kind is Kind.TEXT:
        return texts
    if kind.kind is Kind.DATE:
        return st.sampled_from((dt.date.min, dt.date.max, dt.date(2024, 2, 29))) | st.dates()
    return _instants(kind) if kind.kind is Kind.TIME else st.booleans()


def _units(exact):
    edges = (exact.low, exact.low + 1, -6, -5, -1, 0, 1, 5, 50, exact.high - 1, exact.high)
    inside = [each for each in edges if exact.low <= each <= exact.high]
    # Between 2^53 units and the ends of its type a decimal in double precision is not the same on every engine.
    most = 2**53 if exact.scale else exact.high
    return st.sampled_from(inside) | st.integers(max(exact.low, -most), min(exact.high, most))


def decimal(units, scale):
    return Decimal(f"{units}e-{scale}")


def _instants(kind):
    first, last = dt.datetime.min, dt.datetime.max
    if kind is NANOSECONDS:
        first, last = dt.datetime(1678, 1, 1), dt.datetime(2261, 12, 31)
    near = st.sampled_from((0, 1, 59, 60, 3599, 3600, 7200, 86399, 86400, 90000)).map(
        lambda seconds: (
            dt.datetime(2024, 2, 28) + dt.timedelta(seconds=seconds, microseconds=seconds % 7 * 100_000)
        )
    )
    step = {SECONDS: 1_000_000, MILLISECONDS: 1000}.get(kind, 1)
    every = st.sampled_from((first, last)) | near | st.datetimes(first, last)
    return every.map(lambda time: time.replace(microsecond=time.microsecond // step * step))


@dataclass(frozen=True)
class Table:
    """Columns with their types, and rows as tuples."""

    types: dict[str, Type]
    rows: tuple[tuple[object, ...], ...]

    def column(self, name):
        place = list(self.types).index(name)
        return [row[place] for row in self.rows]


@cache
def _pools(kind):
    """Return a few values of a type, mostly with None: without it a file promises that nothing is missing."""
    return st.tuples(st.sampled_from(([], [None], [None])), st.lists(values(kind), min_size=1, max_size=5)).map(
        lambda pair: pair[0] + pair[1]
    )


_SORTS = (WHOLE, HUGE, DECIMALS, (FLOAT, DOUBLE), (TEXT, ENUM), (DATE, BOOLEAN), _TIMES)
"""As many columns of each sort, however many types it has."""


@st.composite
def tables(draw, types, most_rows=14):
    """Draw a table of two to five columns, each with few different values, so that units and keys repeat."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True))
    sorts = [[each for each in types if each in sort] for sort in _SORTS]
    kinds = [draw(st.sampled_from(draw(st.sampled_from([sort for sort in sorts if sort])))) for _ in names]
    cells = [st.sampled_from(draw(_pools(kind))) for kind in kinds]
    rows = draw(st.lists(st.tuples(*cells), max_size=most_rows))
    return Table(dict(zip(names, kinds, strict=True)), tuple(rows))


def to_arrow(table):
    """Return a table in Arrow's types; NaN stays NaN."""
    return pa.table(
        {
            name: pa.array(_plain(table.column(name), kind), kind.arrow, from_pandas=False)
            for name, kind in table.types.items()
        }
    )


def _plain(cells, kind):
    if kind is ZONED:
        return [cell and cell.replace(tzinfo=dt.UTC) for cell in cells]
    return cells
