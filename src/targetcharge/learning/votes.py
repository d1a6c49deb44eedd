"""Votes: how many teachers chose each class, for many public requests. As secret as the data.

The private data is split among the teachers, so a changed record changes one teacher: on every request that
teacher may vote for another class, which moves two counts of the row by one.

>>> Votes([[3, 1, 0], [0, 0, 4]], teachers=4)
<votes of 4 teachers on 2 requests, 3 classes>
>>> Votes([[3, 1, 0], [0, 0, 5]], teachers=4)
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: votes is <list>; it must be rows that sum to teachers=4: row 1 does not
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.ledger.batch import MOST_OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MOST_TEACHERS: Final = 10**6

_CELLS: Final = 2**20
"""Counts that are checked at a time."""

_MARKS: Final = 2
"""Outcomes that are no class: too close to call, too few agree."""


@final
class Votes:
    """A table of counts: a row for each request, a column for each class, every row with all teachers.

    A table for NumPy, which no traceback or log shows.

    Attributes:
        teachers: how many there are; declared, so public.
    """

    def __init__(self, votes: ArrayLike, teachers: int) -> None:
        """Check a table of counts.

        The checks are for the curator, who has the votes: they name a row that no honest vote can give, and no
        count.

        Raises:
            InvalidParameter: if it is not one.
        """
        if checks.positive_integer("teachers", teachers) > MOST_TEACHERS:
            raise InvalidParameter("teachers", teachers, f"an integer from 1 to {MOST_TEACHERS:,}")
        self.teachers = int(teachers)
        self._counts = _table(votes)
        rows = max(1, _CELLS // self.classes)
        for first in range(0, len(self), rows):
            _check(votes, self._counts[first : first + rows], self.teachers, first)

    def __array__(self, dtype: np.dtype | None = None, *, copy: bool | None = None) -> NDArray[np.generic]:
        """Return the counts."""
        return np.array(self._counts, dtype=dtype, copy=copy)

    def __getitem__(self, requests: slice) -> Votes:
        """Return the votes on some requests."""
        return Votes(self._counts[requests], self.teachers)

    def rows(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the counts of some requests."""
        return self._counts[first:last].astype(np.int64)

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return int(self._counts.shape[1])

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self._counts)

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<votes of {self.teachers} teachers on {len(self)} requests, {self.classes} classes>"


def _table(votes: ArrayLike) -> NDArray[np.generic]:
    try:
        counts = np.asarray(votes)
    except ValueError:  # rows of different lengths; its text is not shown
        counts = np.empty(0)
    if counts.ndim != 2 or counts.dtype.kind not in "iuf":
        raise InvalidParameter(
            "votes", votes, "a table of counts: a row for each request, a column for each class"
        )
    if not 2 <= counts.shape[1] <= MOST_OUTCOMES - _MARKS:
        columns = f"a table with 2 to {MOST_OUTCOMES - _MARKS:,} columns, one for each class, and this has"
        raise InvalidParameter("votes", votes, f"{columns} {counts.shape[1]}")
    return counts


def _check(votes: ArrayLike, block: NDArray[np.generic], teachers: int, start: int) -> None:
    with np.errstate(invalid="ignore", over="ignore"):  # infinite ones, which do not sum to it
        numbers = block.astype(np.float64)  # exact for whole numbers up to 2^53; larger ones are wrong anyway
        wrong = {
            "whole numbers: row {} has one that is not": ~(numbers == np.floor(numbers)).all(axis=1),
            "at least 0: row {} has a negative count": (numbers < 0).any(axis=1),
            f"rows that sum to teachers={teachers}: row {{}} does not": numbers.sum(axis=1) != teachers,
        }
    for expected, rows in wrong.items():
        if rows.any():
            raise InvalidParameter("votes", votes, expected.format(start + int(rows.argmax())))
