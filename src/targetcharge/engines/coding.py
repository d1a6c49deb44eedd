"""Coding: what many predicates need to know of a column's value is a small integer, its code.

All that predicates ask of a value is where it lies among the constants that they compare it with. Its code is 2r
at the r-th smallest of them, 2r + 1 between that and the next, 1 below all of them, and 0 if it is missing. So
what is true of a value is known from its code. A predicate over several columns is a few terms: it is true of a
row if in one of them the parts of all columns are.

>>> from targetcharge.queries.tree import Column, Exact, Kind, Operator
>>> age, name = Column("age", Kind.NUMBER, Exact(0, 0, 255)), Column("name", Kind.TEXT)
>>> old, rare = Compare(age, Operator.GT, 65), OneOf(age, (7, 65))
>>> constants = Constants.of([old, rare])
>>> constants.codes, constants.true_of(old).tolist(), constants.true_of(rare).nonzero()[0].tolist()
({7: 2, 65: 4}, [False, False, False, False, False, True], [2, 4])
>>> for term in terms(Not(All((old, Any((rare, Missing(name))))))) or ():
...     print({column: str(part) for column, part in term.items()})
{'age': 'age NOT IN (7, 65)', 'name': 'name IS NOT NULL'}
{'age': 'NOT age > 65'}
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Final, cast, final

import numpy as np

from targetcharge.queries.tree import (
    All,
    Any,
    Compare,
    Like,
    Missing,
    Not,
    OneOf,
    Operator,
    Settled,
    columns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from targetcharge.queries.tree import Predicate, Value

    Truths = NDArray[np.bool_]
    Term = Mapping[str, Predicate]
    """From a column's name to what must be true of it."""

MOST_TERMS: Final = 4
"""Of one predicate: every one takes as long as the first."""

_COMPARED: Final[dict[Operator, Callable[[NDArray[np.int64], int], Truths]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


# Codes


@final
@dataclass(frozen=True)
class Constants:
    """The constants that some predicates compare a column with.

    Attributes:
        codes: of the constants, which are ascending.
    """

    codes: Mapping[Value, int]

    @classmethod
    def of(cls, predicates: Iterable[Predicate]) -> Constants:
        """Return the constants of predicates over one column, without patterns."""
        different = {value for predicate in predicates for value in constants_of(predicate)}
        ascending = sorted(cast("set[float]", different))  # of one kind, so that they have an order
        return cls({value: 2 * rank for rank, value in enumerate(ascending, 1)})

    @property
    def most(self) -> int:
        """Return the largest code: of values above all constants."""
        return 2 * len(self.codes) + 1

    def true_of(self, predicate: Predicate) -> Truths:
        """Return for every code from 0 on whether a predicate over the column is true of its values."""
        return _truths(predicate, np.arange(self.most + 1), self.codes)[0]


def _truths(predicate: Predicate, codes: NDArray[np.int64], code_of: Mapping[Value, int]) -> tuple[Truths, Truths]:
    """Return for which codes a predicate is true, and for which it is false."""
    known = codes > 0
    match predicate:
        case Not(part):
            true, false = _truths(part, codes, code_of)
            return false, true
        case All(parts) | Any(parts):
            trues, falses = zip(*(_truths(part, codes, code_of) for part in parts), strict=True)
            if isinstance(predicate, All):
                return reduce(operator.and_, trues), reduce(operator.or_, falses)
            return reduce(operator.or_, trues), reduce(operator.and_, falses)
        case Missing():
            return ~known, known
        case Compare(_, comparison, value):
            true = _COMPARED[comparison](codes, code_of[value])
        case OneOf(_, values):
            true = np.isin(codes, [code_of[value] for value in values])
        case Settled(_, holds):
            true = np.full(len(codes), holds)
        case Like():
            msg = "a pattern is no constant"
            raise TypeError(msg)
    return known & true, known & ~true


def constants_of(predicate: Predicate) -> Iterator[Value]:
    """Yield the constants that a predicate compares columns with, some of them more than once."""
    match predicate:
        case Compare(_, _, value):
            yield value
        case OneOf(_, values):
            yield from values
        case All(parts) | Any(parts):
            for part in parts:
                yield from constants_of(part)
        case Not(part):
            yield from constants_of(part)


def has_pattern(predicate: Predicate) -> bool:
    """Return whether a predicate matches a text with a pattern: then constants do not tell where it is true."""
    match predicate:
        case All(parts) | Any(parts):
            return any(has_pattern(part) for part in parts)
        case Not(part):
            return has_pattern(part)
    return isinstance(predicate, Like)


# Terms


def terms(predicate: Predicate) -> list[Term] | None:
    """Return terms of which one is true of a row if and only if a predicate is; None if they would be too many."""
    return _terms(predicate, holds=True)


def _terms(predicate: Predicate, *, holds: bool) -> list[Term] | None:
    """Return terms of which one is true if and only if a predicate is true, or else false."""
    names = {column.name for column in columns(predicate)}
    if len(names) == 1:
        return [{names.pop(): predicate if holds else Not(predicate)}]
    if isinstance(predicate, Not):
        return _terms(predicate.part, holds=not holds)
    if not isinstance(predicate, All | Any):
        return None
    joined: list[Term] | None = None
    for part in predicate.parts:
        others = _terms(part, holds=holds)
        if others is None:
            return None
        if joined is None:
            joined = others
        else:
            joined = _both(joined, others) if isinstance(predicate, All) is holds else _either(joined, others)
        if len(joined) > MOST_TERMS:
            return None
    return joined


def _both(first: Sequence[Term], second: Sequence[Term]) -> list[Term]:
    """Return terms of which one is true if one of the first and one of the second is."""
    joined: list[Term] = []
    for one, other in product(first, second):
        shared = {name: All((one[name], other[name])) for name in one.keys() & other.keys()}
        joined.append({**one, **other, **shared})
    return joined


def _either(first: Sequence[Term], second: Sequence[Term]) -> list[Term]:
    """Return terms of which one is true if one of the first or of the second is: one for each column alone."""
    alone: dict[str, Predicate] = {}
    joined: list[Term] = []
    for term in (*first, *second):
        if len(term) > 1:
            joined.append(term)
            continue
        ((name, part),) = term.items()
        alone[name] = Any((alone[name], part)) if name in alone else part
    return [*joined, *({name: part} for name, part in alone.items())]
