"""The grammar of predicates, as what may follow what: for errors that name the place and the remedy.

It is weaker than the white-list that decides (see `reading`), and catches nearly every slip before it.

>>> print(slip(Part.OPERATOR, Part.NULL))
nothing is equal to NULL: write IS NULL or IS NOT NULL
>>> slip(Part.COLUMN, Part.OPERATOR) is None
True
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Part(StrEnum):
    """A part of a predicate's text, as an error calls it."""

    START = "the start"
    COLUMN = "a column"
    OPERATOR = "an operator (= <> < <= > >=)"
    NUMBER = "a number"
    TEXT = "a text in single quotes"
    TRUTH = "TRUE or FALSE"
    SIGN = "a sign"
    IN = "IN"
    LIST = "a list in parentheses"
    COMMA = "a comma"
    LIKE = "LIKE"
    BETWEEN = "BETWEEN"
    BETWEEN_AND = "the AND of BETWEEN"
    IS = "IS"
    NULL = "NULL"
    JOIN = "AND or OR"
    NOT = "NOT"
    NOT_INSIDE = "NOT after a column"
    IS_NOT = "IS NOT"
    OPEN = "an opening parenthesis"
    CLOSE = "a closing parenthesis"
    END = "the end"


LITERALS: Final = frozenset({Part.NUMBER, Part.TEXT, Part.TRUTH})
_VALUE: Final = LITERALS | {Part.SIGN}
_PREDICATE: Final = frozenset({Part.COLUMN, Part.NOT, Part.OPEN})
AFTER_PREDICATE: Final = frozenset({Part.JOIN, Part.CLOSE, Part.END})
_AFTER_LITERAL: Final = AFTER_PREDICATE | {Part.COMMA, Part.BETWEEN_AND}

FOLLOWS: Final[dict[Part, frozenset[Part]]] = {
    **dict.fromkeys((Part.START, Part.JOIN, Part.NOT, Part.OPEN), _PREDICATE),
    Part.COLUMN: frozenset({Part.OPERATOR, Part.IN, Part.LIKE, Part.BETWEEN, Part.IS, Part.NOT_INSIDE}),
    Part.NOT_INSIDE: frozenset({Part.IN, Part.LIKE, Part.BETWEEN}),
    **dict.fromkeys((Part.OPERATOR, Part.BETWEEN, Part.BETWEEN_AND, Part.LIST, Part.COMMA), _VALUE),
    Part.SIGN: frozenset({Part.NUMBER}),
    **dict.fromkeys(LITERALS, _AFTER_LITERAL),
    Part.IN: frozenset({Part.LIST}),
    Part.LIKE: frozenset({Part.TEXT}),
    Part.IS: frozenset({Part.NULL, Part.IS_NOT}),
    Part.IS_NOT: frozenset({Part.NULL}),
    **dict.fromkeys((Part.NULL, Part.CLOSE), AFTER_PREDICATE),
}
"""What may come after each part."""

_EXPECTED: Final = {
    _PREDICATE: "a column, NOT or an opening parenthesis",
    FOLLOWS[Part.COLUMN]: "an operator (= <> < <= > >=), IN, BETWEEN, LIKE or IS NULL",
    FOLLOWS[Part.NOT_INSIDE]: "IN, BETWEEN or LIKE",
    _VALUE: "a literal: a number, a text in single quotes, TRUE or FALSE",
    FOLLOWS[Part.SIGN]: "a number",
    _AFTER_LITERAL: "AND, OR or the end",
    FOLLOWS[Part.IN]: "a list of literals in parentheses",
    FOLLOWS[Part.LIKE]: "a pattern in single quotes",
    FOLLOWS[Part.IS]: "NULL or NOT NULL",
    FOLLOWS[Part.IS_NOT]: "NULL",
    AFTER_PREDICATE: "AND, OR or the end",
}

_CHAINED: Final = "comparisons are not chained: write two and join them with AND or OR"
_ARITHMETIC: Final = "there is no arithmetic: compare the column with the result"
_BARE_LITERAL: Final = "write the column first and the literal after the operator, as in age > 65"
_NO_FUNCTIONS: Final = "there are no functions, and AND or OR joins comparisons"
_TWO_COLUMNS: Final = "a column is compared with a literal, not with a column; text goes in single quotes"

_SLIPS: Final[dict[tuple[Part, Part], str]] = {
    **{
        (before, literal): _BARE_LITERAL
        for before in (Part.START, Part.JOIN, Part.NOT, Part.OPEN)
        for literal in _VALUE
    },
    **{(literal, Part.OPERATOR): _CHAINED for literal in LITERALS},
    **{(before, Part.SIGN): _ARITHMETIC for before in LITERALS | {Part.COLUMN, Part.CLOSE}},
    **{
        (before, Part.COLUMN): _TWO_COLUMNS
        for before in (Part.OPERATOR, Part.BETWEEN, Part.BETWEEN_AND, Part.LIST)
    },
    (Part.COMMA, Part.COLUMN): _TWO_COLUMNS,
    (Part.OPERATOR, Part.NULL): "nothing is equal to NULL: write IS NULL or IS NOT NULL",
    (Part.LIST, Part.NULL): "a list cannot hold NULL: add OR … IS NULL",
    (Part.COMMA, Part.NULL): "a list cannot hold NULL: add OR … IS NULL",
    (Part.NOT_INSIDE, Part.NULL): "write IS NOT NULL",
    (Part.IS, Part.TRUTH): "write = TRUE or = FALSE instead of IS TRUE or IS FALSE",
    (Part.IS_NOT, Part.TRUTH): "write = TRUE or = FALSE; IS NOT goes with NULL only",
    (Part.TEXT, Part.TEXT): "two texts side by side: write them as one",
    (Part.COLUMN, Part.OPEN): _NO_FUNCTIONS,
    (Part.OPERATOR, Part.OPEN): "write the literal without parentheses; there are no subqueries",
    (Part.LIST, Part.OPEN): "write the literals of a list without further parentheses; there are no subqueries",
    (Part.COMMA, Part.OPEN): "write the literals of a list without further parentheses; there are no subqueries",
    (Part.COLUMN, Part.CLOSE): "a column alone is not a comparison",
    (Part.LIST, Part.CLOSE): "the list is empty: write at least one literal",
    (Part.COMMA, Part.CLOSE): "a literal is missing after the comma",
    (Part.OPERATOR, Part.OPERATOR): "two operators side by side: write one of = <> < <= > >=",
    (Part.NULL, Part.OPERATOR): _CHAINED,
    (Part.CLOSE, Part.OPERATOR): _CHAINED,
}


def slip(before: Part, after: Part, shown: str | None = None) -> str | None:
    """Return what is wrong if a part comes after another, and None if nothing is.

    Args:
        before: a part that is in its place.
        after: the next one.
        shown: what to call it, if not by its part.
    """
    expected = FOLLOWS[before]
    if after in expected:
        return None
    if shown is None and (before, after) in _SLIPS:
        return _SLIPS[before, after]
    if after is Part.END:
        return f"the text ends where there should be {_EXPECTED[expected]}"
    return f"here should be {_EXPECTED[expected]}, not {shown or after}"
