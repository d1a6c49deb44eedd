"""Cells: the declared, public places that the values of a feature fall into.

Every value has a cell, whatever it is: the last one takes what fits nowhere else, such as NaN, None or a code that
was not declared. Which cell a value gets depends on this value and the declaration alone, never on other records.

>>> age, ward = Edges(0, [18, 65]), Codes(1, ["a", "b"])
>>> rows = [[17, "b"], [18, "a"], [65.5, "z"], [float("nan"), None], ["forty"]]
>>> age.place(rows).tolist(), age.size
([0, 1, 2, 3, 3], 4)
>>> ward.place(rows).tolist(), ward.size
([1, 0, 2, 2, 2], 3)
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.outcomes import UnpublishableError, publishable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Rows = Any
"""A table: an array, a data frame or a list of rows."""

Row = Any
"""One row of a list: whatever it is."""

Column = Any
"""An array, a column of a data frame or a list of values."""

_NUMERIC: Final = "biuf"
_TIMES: Final = "Mm"
_TEXTS: Final = (str, bytes)
_NOWHERE: Final = object()
"""Stands for a value that has no cell of its own: equal to nothing that can be declared."""


@final
@dataclass(frozen=True)
class Edges:
    """A feature that is a number: cells below the first edge, from each edge up to the next, and from the last on.

    Attributes:
        column: its position in a row.
        values: the edges, finite and increasing.
    """

    column: int
    values: Sequence[float]

    def __post_init__(self) -> None:
        """Refuse what are no edges."""
        object.__setattr__(self, "column", _position(self.column))
        expected = "a list of at least one finite number, each above the one before it"
        edges = [checks.real(edge, "edges", expected) for edge in _listed("edges", self.values, expected)]
        if not all(map(math.isfinite, edges)) or any(low >= high for low, high in pairwise(edges)):
            raise InvalidParameter("edges", self.values, expected)
        object.__setattr__(self, "values", tuple(edges))

    @property
    def size(self) -> int:
        """Return how many cells there are; the last is for what is not a number."""
        return len(self.values) + 2

    def place(self, rows: Rows) -> NDArray[np.int64]:
        """Return the cell of every row."""
        floats = _as_floats(column_of(rows, self.column))
        cells = np.searchsorted(np.array(self.values), floats, side="right").astype(np.int64)
        cells[np.isnan(floats)] = self.size - 1
        return cells


@final
@dataclass(frozen=True)
class Codes:
    """A feature that is one of a few values: a cell for each of them. Numbers are compared as floats.

    Attributes:
        column: its position in a row.
        values: the codes, each once: numbers, texts, bytes, True or False.
    """

    column: int
    values: Sequence[object]

    def __post_init__(self) -> None:
        """Refuse what are no codes."""
        object.__setattr__(self, "column", _position(self.column))
        object.__setattr__(self, "values", declared("codes", self.values))

    @property
    def size(self) -> int:
        """Return how many cells there are; the last is for all that was not declared."""
        return len(self.values) + 1

    def place(self, rows: Rows) -> NDArray[np.int64]:
        """Return the cell of every row."""
        return place(column_of(rows, self.column), self.values)


Feature = Edges | Codes


def declared(name: str, values: object) -> tuple[object, ...]:
    """Return declared values in canonical form; refuse what cannot be told apart, or not be published."""
    expected = "a list of at least one value, each once: numbers, texts, bytes, True or False"
    listed = _listed(name, values, expected)
    try:
        plain = tuple(publishable(value) for value in listed)
    except UnpublishableError:
        raise InvalidParameter(name, values, expected) from None
    keys = [_key(value) for value in plain]
    if _NOWHERE in keys or len(set(keys)) < len(keys):
        raise InvalidParameter(name, values, expected)
    return plain


def place(values: Column, among: Sequence[object]) -> NDArray[np.int64]:
    """Return the index of every value among the declared ones; their number for one that is not among them."""
    values = _plain(values)
    keys, last = [_key(value) for value in among], len(among)
    kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
    if kind and kind in _NUMERIC:
        return _place_alike(values.astype(np.float64), keys, float)
    if kind == "U":
        return _place_alike(values, keys, str)
    where = {key: index for index, key in enumerate(keys)}
    return np.array([where.get(_key(value), last) for value in _one_by_one(values)], dtype=np.int64)


def _place_alike(values: NDArray[Any], keys: Sequence[Any], kind: type) -> NDArray[np.int64]:
    """Return what `place` does, of an array of numbers or of texts, without a step for each value."""
    known = sorted((key, index) for index, key in enumerate(keys) if isinstance(key, kind))
    places = np.full(values.shape, len(keys), dtype=np.int64)
    if known:
        listed, indexes = (np.array(part) for part in zip(*known, strict=True))
        nearest = np.minimum(np.searchsorted(listed, values), len(known) - 1)
        match = listed[nearest] == values
        places[match] = indexes[nearest[match]]
    return places


def column_of(rows: Rows, column: int) -> Column:
    """Return one column. A row of a list that does not have it has None there.

    A list is never made into an array first: one odd row would turn the values of all others into texts.
    """
    if not len(rows):
        return []
    if hasattr(rows, "iloc"):  # a pandas frame, whose columns may be of different types
        return rows.iloc[:, column].to_numpy()
    rows = _plain(rows)
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2:
            raise InvalidParameter("rows", rows, "a table: rows and columns, a data frame or a list of rows")
        return rows[:, column]
    return [_member(row, column) for row in rows]


def _plain(table: Rows | Column) -> Column:
    """Return a data frame, or a column of one, as an array."""
    return table.to_numpy() if hasattr(table, "to_numpy") else table


def _member(row: Row, column: int) -> object:
    try:
        value: object = row[column]
    except Exception:  # noqa: BLE001 - whatever is wrong with one row must not stop the others
        return None
    return value


def _as_floats(values: Column) -> NDArray[np.float64]:
    """Return values as floats, NaN for what is not a number."""
    if isinstance(values, np.ndarray) and values.dtype.kind in _NUMERIC:
        return values.astype(np.float64)
    return np.array([_as_float(value) for value in _one_by_one(values)], dtype=np.float64)


def _one_by_one(values: Column) -> list[object]:
    """Return the values of a column: each as it would be if the others were of another type."""
    if not isinstance(values, np.ndarray):
        return list(values)
    return [None] * len(values) if values.dtype.kind in _TIMES else values.tolist()


def _as_float(value: object) -> float:
    if type(value) is float:
        return value
    if isinstance(value, np.datetime64 | np.timedelta64):
        return math.nan  # numpy calls a duration an integer
    if isinstance(value, complex | np.complexfloating):
        return float(value.real) if value.imag == 0 else math.nan
    try:
        return float(value) if isinstance(value, numbers.Real | np.bool_) else math.nan
    except (OverflowError, TypeError, ValueError):
        return math.nan


def _key(value: object) -> object:
    """Return what a value is known by: whether a column holds 1, 1.0 or True may depend on its other rows."""
    if isinstance(value, _TEXTS):
        return value
    key = _as_float(value)
    return _NOWHERE if math.isnan(key) else key


def _position(column: object) -> int:
    if isinstance(column, bool) or not isinstance(column, numbers.Integral) or column < 0:
        raise InvalidParameter("column", column, "the position of a column, an integer of at least 0")
    return int(column)


def _listed(name: str, values: object, expected: str) -> list[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, list | tuple | range) or not len(values):
        raise InvalidParameter(name, values, expected)
    return list(values)
