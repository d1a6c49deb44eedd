"""Parsing: from the text of a question to a predicate.

A predicate compares columns with literals (`= <> < <= > >=`, IN, BETWEEN, LIKE, IS NULL) and joins comparisons
with AND, OR, NOT and parentheses. There is nothing else: no functions, no arithmetic, no subqueries.

>>> from targetcharge.queries.columns import Column, Exact, Kind
>>> age = Column("age", Kind.NUMBER, Exact(scale=0, low=0, high=255))
>>> predicate = parse("age > 65.5 AND age NOT IN (70, 80)", {"age": age})
>>> str(predicate)
'age >= 66 AND age NOT IN (70, 80)'
>>> parse("length(age) > 3", {"age": age})
Traceback (most recent call last):
targetcharge.errors.InvalidQuestion: where, character 1: there are no functions: length(…) cannot be asked
    length(age) > 3
    ^
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from targetcharge.errors import InvalidParameter
from targetcharge.queries.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.queries.columns import Column
    from targetcharge.queries.predicates import Predicate

LONGEST: Final = 10_000
"""Characters of a text."""

NO_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
"""Characters that a text cannot hold: NUL, and halves of characters."""


def parse(text: str, schema: Mapping[str, Column], parameter: str = "where") -> Predicate:
    """Return the predicate that a text is. No data is touched.

    Args:
        text: at most 10,000 characters, nested at most 20 deep, with lists of at most 1,000 literals.
        schema: the columns there are.
        parameter: what an error calls the text.

    Raises:
        InvalidQuestion: if it is not a predicate on these columns; points at the place.
        InvalidParameter: if it is not a text, empty or too long.
    """
    expected = "a text such as \"age > 65 AND diagnosis = 'flu'\""
    if not isinstance(text, str):
        raise InvalidParameter(parameter, text, expected)
    if not text.strip():
        raise InvalidParameter(parameter, text, f"{expected}, or None for all rows")
    if len(text) > LONGEST:
        raise InvalidParameter(parameter, text, f"at most {LONGEST:,} characters long, not {len(text):,}")
    source = Source(text, schema, parameter)
    if unfit := NO_TEXT.search(text):
        raise source.error(unfit.start(), "this character cannot be part of a text")
    from targetcharge.queries import reading, scanning  # noqa: PLC0415 - the parser of SQL takes 0.2 s to import

    return reading.read(source, scanning.scan(source))
