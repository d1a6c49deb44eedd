"""What an error says of a name or a sign that is none of a predicate's, and what to write instead.

>>> from targetcharge.queries.columns import Column, Kind
>>> of_bare_column(Column("smoker", Kind.BOOLEAN))
'smoker alone is not a comparison: write smoker = TRUE'
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from sqlglot.tokenizer_core import Token, TokenType

from targetcharge.queries.columns import Kind, listed
from targetcharge.queries.grammar import FOLLOWS, Part, slip
from targetcharge.queries.predicates import quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.queries.columns import Column

EXAMPLES: Final = {
    Kind.NUMBER: "> 65",
    Kind.TEXT: "= 'flu'",
    Kind.DATE: ">= '2024-01-31'",
    Kind.TIME: ">= '2024-01-31 08:00'",
    Kind.BOOLEAN: "= TRUE",
}
NOT_A_NUMBER: Final = "write numbers in decimal digits, such as 1000, -0.5 or 1e6"

_MOST_SHOWN: Final = 40
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
_NO_ARITHMETIC: Final = "there is no arithmetic: compare the column with the result"
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


def of_bare_column(column: Column) -> str:
    """Return what to write instead of a column alone."""
    name = quoted(column.name)
    return f"{name} alone is not a comparison: write {name} {EXAMPLES[column.kind]}"


def of_symbol(raw: str, following: Token | None) -> str:
    """Return what to write instead of a sign."""
    if raw[-1] in "'$" and len(raw) > 1:
        return _NO_PREFIX
    if raw == ".":
        digits = following is not None and following.text[:1].isdigit()
        return "write 0 before the point" if digits else _NO_TABLE
    return _SYMBOLS.get(raw, f"{clipped(raw)} has no meaning in a predicate")


def of_name(raw: str, following: Token | None, before: Part, schema: Mapping[str, Column]) -> str:
    """Return what is wrong with a name that is no column's here."""
    word = raw.partition(" ")[0].upper()
    value_expected = Part.TEXT in FOLLOWS[before]
    if is_prefix(following, before):
        return _WORDS.get(word, _NO_PREFIX)
    if following is not None and following.text == ".":
        return _NO_TABLE
    if following is not None and following.text == "(" and word not in _WORDS:
        return f"there are no functions: {clipped(raw)}(…) cannot be asked"
    if word in _WORDS:
        return _WORDS[word]
    if Part.COLUMN not in FOLLOWS[before] and not value_expected:
        return slip(before, Part.COLUMN, clipped(raw)) or ""
    return _unknown_column(raw, schema, value_expected=value_expected)


def is_prefix(following: Token | None, before: Part) -> bool:
    """Return whether a name stands where a literal should, and a text follows: DATE '2024-01-31', x'00'."""
    return following is not None and following.token_type is TokenType.STRING and Part.TEXT in FOLLOWS[before]


def _unknown_column(raw: str, schema: Mapping[str, Column], *, value_expected: bool) -> str:
    name = raw[1:-1].replace('""', '"') if raw[0] == '"' else raw
    alike = [column for column in schema if column.lower() == name.lower()]
    if alike:
        return f"more than one column is spelled like this: write {' or '.join(map(quoted, alike))} exactly"
    sentence = f"there is no column {clipped(raw)}"
    if value_expected:
        sentence += f"; a text goes in single quotes: {text_literal(clipped(name))}"
    else:
        spelled = {column.lower(): column for column in schema}
        close = difflib.get_close_matches(name.lower(), spelled, 1)
        sentence += "".join(f"; did you mean {quoted(spelled[each])}?" for each in close)
    return f"{sentence}{'' if sentence[-1] == '?' else '.'} The columns are {listed(schema)}"


def clipped(text: str) -> str:
    """Return a piece of the caller's text, short enough for a sentence."""
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"
