"""The grammar of predicates: what may follow what, and for everything else what to write instead.

>>> print(slip(Part.OPERATOR, Part.NULL))
nothing is equal to NULL: write IS NULL or IS NOT NULL
>>> slip(Part.COLUMN, Part.OPERATOR) is None
True
>>> slip_of_sign("&&", "age")
'write AND'
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from targetcharge.errors import did_you_mean
from targetcharge.queries.tree import Kind, listed, quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from targetcharge.queries.tree import Column


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
AFTER_PREDICATE: Final = frozenset({Part.JOIN, Part.CLOSE, Part.END})
_VALUE: Final = LITERALS | {Part.SIGN}
_PREDICATE: Final = frozenset({Part.COLUMN, Part.NOT, Part.OPEN})
_AFTER_LITERAL: Final = AFTER_PREDICATE | {Part.COMMA}
_BEFORE_PREDICATE: Final = frozenset({Part.START, Part.JOIN, Part.NOT, Part.OPEN})
_BEFORE_VALUE: Final = frozenset({Part.OPERATOR, Part.BETWEEN, Part.BETWEEN_AND, Part.LIST, Part.COMMA})

FOLLOWS: Final[dict[Part, frozenset[Part]]] = {
    **dict.fromkeys(_BEFORE_PREDICATE, _PREDICATE),
    Part.COLUMN: frozenset({Part.OPERATOR, Part.IN, Part.LIKE, Part.BETWEEN, Part.IS, Part.NOT_INSIDE}),
    Part.NOT_INSIDE: frozenset({Part.IN, Part.LIKE, Part.BETWEEN}),
    **dict.fromkeys(_BEFORE_VALUE, _VALUE),
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

_NO_ARITHMETIC: Final = "there is no arithmetic: compare the column with the result"
_NO_DEEPER: Final = "write the literals of a list without further parentheses; there are no subqueries"
_TWO_COLUMNS: Final = "a column is compared with a literal, not with a column; text goes in single quotes"
_REMEDIES: Final[dict[str, tuple[AbstractSet[Part], AbstractSet[Part]]]] = {
    "write the column first and the literal after the operator, as in age > 65": (_BEFORE_PREDICATE, _VALUE),
    "comparisons are not chained: write two and join them with AND or OR": (
        LITERALS | {Part.NULL, Part.CLOSE},
        {Part.OPERATOR},
    ),
    _NO_ARITHMETIC: (LITERALS | {Part.COLUMN, Part.CLOSE}, {Part.SIGN}),
    _TWO_COLUMNS: (_BEFORE_VALUE, {Part.COLUMN}),
    "nothing is equal to NULL: write IS NULL or IS NOT NULL": ({Part.OPERATOR}, {Part.NULL}),
    "a list cannot hold NULL: add OR … IS NULL": ({Part.LIST, Part.COMMA}, {Part.NULL}),
    "write IS NOT NULL": ({Part.NOT_INSIDE}, {Part.NULL}),
    "write = TRUE or = FALSE instead of IS TRUE or IS FALSE": ({Part.IS}, {Part.TRUTH}),
    "write = TRUE or = FALSE; IS NOT goes with NULL only": ({Part.IS_NOT}, {Part.TRUTH}),
    "two texts side by side: write them as one": ({Part.TEXT}, {Part.TEXT}),
    "there are no functions, and AND or OR joins comparisons": ({Part.COLUMN}, {Part.OPEN}),
    "write the literal without parentheses; there are no subqueries": ({Part.OPERATOR}, {Part.OPEN}),
    _NO_DEEPER: ({Part.LIST, Part.COMMA}, {Part.OPEN}),
    "the list is empty: write at least one literal": ({Part.LIST}, {Part.CLOSE}),
    "a literal is missing after the comma": ({Part.COMMA}, {Part.CLOSE}),
    "two operators side by side: write one of = <> < <= > >=": ({Part.OPERATOR}, {Part.OPERATOR}),
}
_SLIPS: Final = {
    (before, after): remedy
    for remedy, (befores, afters) in _REMEDIES.items()
    for before in befores
    for after in afters
}


def slip(before: Part, after: Part, shown: str | None = None) -> str | None:
    """Return what is wrong if a part comes after another, which may be shown by a name; None if nothing is."""
    expected = FOLLOWS[before]
    if after in expected:
        return None
    if shown is None and (before, after) in _SLIPS:
        return _SLIPS[before, after]
    if after is Part.END:
        return f"the text ends where there should be {_EXPECTED[expected]}"
    return f"here should be {_EXPECTED[expected]}, not {shown or after}"


# Names and signs that are none of a predicate's

_EXAMPLES: Final = dict(
    zip(Kind, ("> 65", "= 'flu'", ">= '2024-01-31'", ">= '2024-01-31 08:00'", "= TRUE"), strict=True)
)
NOT_A_NUMBER: Final = "write numbers in decimal digits, such as 1000, -0.5 or 1e6"

MOST_SHOWN: Final = 40
"""Characters of the caller's text in a sentence."""
_NO_PREFIX: Final = "write text in single quotes, with nothing before them"
_PLAIN_TEXT: Final = "write dates and times as plain text, such as '2024-01-31', with nothing before it"
_NO_TABLE: Final = "write the column's name alone, without the table's; one with a dot goes in double quotes"
_ONLY_THE_TABLE: Final = (
    "a predicate looks at the table's own columns: there are no subqueries and no other tables"
)
_WORDS: Final = {
    **dict.fromkeys(("ILIKE", "GLOB", "SIMILAR", "REGEXP", "RLIKE"), "there is only LIKE, with % and _"),
    **dict.fromkeys(("SELECT", "FROM", "WITH", "EXISTS", "UNION", "TABLE", "VALUES"), _ONLY_THE_TABLE),
    **dict.fromkeys(("ANY", "ALL", "SOME"), "write a list with IN; there are no subqueries"),
    **dict.fromkeys(("DATE", "TIME", "TIMESTAMP", "DATETIME", "TIMESTAMPTZ"), _PLAIN_TEXT),
    **dict.fromkeys(
        ("NAN", "INFINITY", "INF"), "there is no literal for it; NaN counts as missing: write IS NULL"
    ),
    "CASE": "there is no CASE: join comparisons with AND and OR",
    "COLLATE": "there is no COLLATE: texts are compared as they are",
    "ESCAPE": "there is no ESCAPE: in a pattern % is any text and _ any character",
    "DISTINCT": "there is no IS DISTINCT FROM: write <> and IS NULL",
    "SYMMETRIC": "write BETWEEN with the smaller literal first",
    "ISNULL": "write IS NULL",
    "NOTNULL": "write IS NOT NULL",
    "XOR": "there is no XOR: write it with AND, OR and NOT",
    "AS": "there are no aliases: end the text before AS",
    "INTERVAL": "there is no arithmetic: compare with the date itself, such as '2024-01-31'",
}
_NO_PLACEHOLDERS: Final = "write the value itself: placeholders are not filled in"
_SYMBOLS: Final = {
    **dict.fromkeys(("?", "$", ":", "@", "#"), _NO_PLACEHOLDERS),
    **dict.fromkeys(("*", "/", "//", "%", "^", "**", "||", "&", "|"), _NO_ARITHMETIC),
    **dict.fromkeys(("[", "]", "{", "}"), "write a list with IN and parentheses, such as IN (1, 2)"),
    **dict.fromkeys(("~", "~*", "~~", "~~*"), "there is only LIKE, with % and _"),
    ";": "a predicate is one condition: there are no statements and no semicolons",
    "::": "there are no casts: a literal is taken as the column's kind",
    "!": "write NOT",
    "&&": "write AND",
    "<=>": "write = and IS NULL",
    "`": "write a column's name in double quotes",
}


def slip_of_column(column: Column) -> str:
    """Return what to write instead of a column alone."""
    name = quoted(column.name)
    return f"{name} alone is not a comparison: write {name} {_EXAMPLES[column.kind]}"


def slip_of_sign(raw: str, following: str) -> str:
    """Return what to write instead of a sign."""
    if raw[-1] == "$" and len(raw) > 1:
        return _NO_PREFIX
    if raw == ".":
        return "write 0 before the point" if following[:1].isdigit() else _NO_TABLE
    return _SYMBOLS.get(raw, f"{clipped(raw)} has no meaning in a predicate")


def slip_of_name(name: str, raw: str, following: str, before: Part, schema: Mapping[str, Column]) -> str:
    """Return what is wrong with a name that is no column's here, between the part before and the token following.

    Its raw form has the quotes, if it has any.
    """
    word, value_expected = raw.upper(), Part.TEXT in FOLLOWS[before]
    if is_prefix(following, before):
        return _WORDS.get(word, _NO_PREFIX)
    if following == ".":
        return _NO_TABLE
    if following == "(" and word not in _WORDS:
        return f"there are no functions: {clipped(raw)}(…) cannot be asked"
    if word in _WORDS:
        return _WORDS[word]
    if Part.COLUMN not in FOLLOWS[before] and not value_expected:
        return slip(before, Part.COLUMN, clipped(raw)) or ""
    alike = [column for column in schema if column.lower() == name.lower()]
    if alike:
        return f"more than one column is spelled like this: write {' or '.join(map(quoted, alike))} exactly"
    sentence = f"there is no column {clipped(raw)}"
    if value_expected:
        sentence += f"; a text goes in single quotes: {text_literal(clipped(name))}"
    else:
        sentence += did_you_mean(name, schema, quoted)
    return f"{sentence}{'' if sentence[-1] == '?' else '.'} The columns are {listed(schema)}"


def is_prefix(following: str, before: Part) -> bool:
    """Return whether a name stands where a literal should, and a text follows: DATE '2024-01-31', x'00'."""
    return following.startswith("'") and Part.TEXT in FOLLOWS[before]


def clipped(text: str) -> str:
    """Return a piece of the caller's text, short enough for a sentence."""
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
