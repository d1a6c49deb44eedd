"""From text to tokens: every token is a column's name, a literal or one of a few words and signs.

SQL has many more words, but here a name that the table has is its column, whatever SQL means by it, and any other
name is refused. So the parser that comes next sees no function, no table, no statement.

>>> from targetcharge.queries.columns import Column, Kind
>>> from targetcharge.queries.source import Source
>>> [token.text for token in scan(Source("Date >= '2024-01-31'", {"date": Column("date", Kind.DATE)}, "where"))]
['date', '>=', '2024-01-31']
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from targetcharge.queries import refusals
from targetcharge.queries.columns import find
from targetcharge.queries.grammar import AFTER_PREDICATE, Part, slip

if TYPE_CHECKING:
    from targetcharge.queries.columns import Column
    from targetcharge.queries.source import Source

DIALECT: Final = DuckDB()

DEEPEST: Final = 20
"""Parentheses and NOTs inside each other. The parser takes 23 stack frames for each of Python's 1,000."""

LONGEST_LIST: Final = 1_000
"""Literals in an IN list."""

_KEYWORDS: Final = {
    "AND": Part.JOIN,
    "OR": Part.JOIN,
    "NOT": Part.NOT,
    "IN": Part.IN,
    "LIKE": Part.LIKE,
    "BETWEEN": Part.BETWEEN,
    "IS": Part.IS,
    "NULL": Part.NULL,
    "TRUE": Part.TRUTH,
    "FALSE": Part.TRUTH,
}
_SIGNS: Final = {
    **dict.fromkeys(("=", "==", "<>", "!=", "<", "<=", ">", ">="), Part.OPERATOR),
    **dict.fromkeys(("+", "-"), Part.SIGN),
    "(": Part.OPEN,
    ")": Part.CLOSE,
    ",": Part.COMMA,
}
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"[^\W\d]\w*( +\w+)*")
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*"|['"]""")


def scan(source: Source) -> list[Token]:
    """Return the tokens, in which columns are quoted identifiers as the table spells them.

    The positions in the tokens are one more than those in the text.

    Raises:
        InvalidQuestion: if a token is not one of a predicate's, or cannot stand where it stands.
    """
    tokens = _tokens(source)
    scanner = _Scanner(source)
    found = [scanner.take(token, following) for token, following in zip(tokens, [*tokens[1:], None], strict=True)]
    scanner.finish()
    return found


def _tokens(source: Source) -> list[Token]:
    """Return the tokens of a text in which there is nothing else but spaces."""
    try:
        # After an opening parenthesis a leading SHOW or CALL is a name, and does not swallow the rest as its text.
        tokens = DIALECT.tokenize("(" + source.text)[1:]
    except TokenError:
        raise _unclosed(source) from None
    end = 0
    for start, following in [(token.start - 1, token.end) for token in tokens] + [(len(source.text), 0)]:
        gap = source.text[end:start]
        if gap.strip():
            raise source.error(end + len(gap) - len(gap.lstrip()), "there are no comments in a predicate")
        end = following
    return tokens


def _unclosed(source: Source) -> Exception:
    for quote in _QUOTED.finditer(source.text):
        if len(quote[0]) == 1:
            return source.error(quote.start(), f"the quote {quote[0]} is not closed")
    problem = "a quote or a comment is not closed; there are no comments in a predicate"
    return source.error(max(source.text.find("/*"), 0), problem)


@final
@dataclass(slots=True)
class _Group:
    """What is known of the text between two parentheses so far.

    Attributes:
        part: START for the whole text, OPEN or LIST.
        position: of the opening parenthesis.
        nots: how many NOTs wait for what they negate.
        between: whether a BETWEEN waits for its AND.
        literals: of a list.
    """

    part: Part
    position: int
    nots: int = 0
    between: bool = False
    literals: int = 1


@final
@dataclass(slots=True)
class _Scanner:
    """What is known of the text so far."""

    source: Source
    before: Part = Part.START
    column: tuple[Column, int] | None = None
    groups: list[_Group] = field(default_factory=lambda: [_Group(Part.START, 0)])

    def take(self, token: Token, following: Token | None) -> Token:
        """Return the token as the parser is to see it."""
        position = token.start - 1
        part, taken = self._classified(token, self.source.text[position : token.end], following)
        self._check(part, position)
        self._nest(part, position)
        self.before = part
        return taken

    def finish(self) -> None:
        """Refuse a text that ends too early."""
        self._check(Part.END, len(self.source.text))
        if len(self.groups) > 1:
            raise self.source.error(self.groups[-1].position, "this parenthesis is not closed")

    def _classified(self, token: Token, raw: str, following: Token | None) -> tuple[Part, Token]:
        part = self._keyword(raw)
        if part is not None:
            return part, token
        kind = token.token_type
        if kind is TokenType.STRING and raw[0] == "'":
            return Part.TEXT, token
        if kind is TokenType.NUMBER:
            if not _NUMBER.fullmatch(raw) or _runs_on(token, following):
                raise self.source.error(token.start - 1, refusals.NOT_A_NUMBER)
            return Part.NUMBER, token
        if kind in (TokenType.IDENTIFIER, TokenType.VAR) or _WORD.fullmatch(raw):
            return Part.COLUMN, self._named(token, raw, following)
        raise self.source.error(token.start - 1, refusals.of_symbol(raw, following))

    def _keyword(self, raw: str) -> Part | None:
        """Return which word or sign of the grammar this is, here."""
        part = _SIGNS.get(raw) or (_KEYWORDS.get(raw.upper()) if raw.isascii() else None)
        if part is Part.NOT:
            return {Part.COLUMN: Part.NOT_INSIDE, Part.IS: Part.IS_NOT}.get(self.before, part)
        if part is Part.OPEN and self.before is Part.IN:
            return Part.LIST
        if part is Part.JOIN and self.groups[-1].between and raw.upper() == "AND":
            return Part.BETWEEN_AND
        return part

    def _named(self, token: Token, raw: str, following: Token | None) -> Token:
        """Return the token of a column."""
        column = find(token.text, self.source.schema)
        if column is None or refusals.is_prefix(following, self.before):
            problem = refusals.of_name(raw, following, self.before, self.source.schema)
            raise self.source.error(token.start - 1, problem)
        self.column = column, token.start - 1
        return Token(TokenType.IDENTIFIER, column.name, token.line, token.col, token.start, token.end)

    def _check(self, part: Part, position: int) -> None:
        """Refuse a part that cannot come here."""
        problem = slip(self.before, part)
        group = self.groups[-1]
        if problem is not None:
            if self.before is Part.COLUMN and self.column is not None and part in AFTER_PREDICATE:
                column, position = self.column
                problem = refusals.of_bare_column(column)
        elif group.between and part in AFTER_PREDICATE:
            problem = "BETWEEN needs two literals: write BETWEEN 18 AND 65"
        elif part is Part.COMMA and group.part is not Part.LIST:
            problem = "a comma goes between the literals of an IN list only: join comparisons with AND or OR"
        elif part is Part.CLOSE and group.part is Part.START:
            problem = "this parenthesis closes nothing"
        elif part is Part.JOIN and group.part is Part.LIST:
            problem = "a list holds literals, with commas between them"
        if problem is not None:
            raise self.source.error(position, problem)

    def _nest(self, part: Part, position: int) -> None:
        """Keep count of parentheses and NOTs."""
        group = self.groups[-1]
        if part in (Part.OPEN, Part.LIST):
            self.groups.append(_Group(part, position))
        elif part is Part.CLOSE:
            self.groups.pop()
        elif part is Part.NOT:
            group.nots += 1
        elif part is Part.JOIN:
            group.nots = 0
        elif part is Part.COMMA:
            group.literals += 1
        else:
            group.between = part is Part.BETWEEN or (group.between and part is not Part.BETWEEN_AND)
        written_out = 2 if part is Part.BETWEEN else 0  # NOT (x >= 1 AND x <= 2)
        if len(self.groups) - 1 + sum(each.nots for each in self.groups) + written_out > DEEPEST:
            raise self.source.error(position, f"parentheses and NOTs are nested more than {DEEPEST} deep")
        if group.literals > LONGEST_LIST:
            raise self.source.error(position, f"the list has more than {LONGEST_LIST:,} literals")


def _runs_on(number: Token, following: Token | None) -> bool:
    """Return whether a word sticks to a number: 0x1F, 10kg."""
    if following is None or following.start != number.end + 1 or following.text.upper() in _KEYWORDS:
        return False
    return following.token_type is TokenType.VAR or _WORD.fullmatch(following.text) is not None
