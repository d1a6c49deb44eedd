"""The parser: from the text of a question to a predicate.

A predicate compares columns with literals (`= <> < <= > >=`, IN, BETWEEN, LIKE, IS NULL) and joins comparisons
with AND, OR, NOT and parentheses. There is nothing else: no functions, no arithmetic, no subqueries. A name that
the table has is its column, whatever SQL means by it, and any other name is refused.

>>> from targetcharge.queries.tree import Column, Exact, Kind
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

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, final

from targetcharge.errors import InvalidParameter, InvalidQuestion
from targetcharge.queries import grammar
from targetcharge.queries.grammar import AFTER_PREDICATE, Part
from targetcharge.queries.tree import (
    All,
    Any,
    Compare,
    Kind,
    Like,
    Missing,
    Not,
    OneOf,
    Operator,
    Settled,
    find,
    quoted,
)
from targetcharge.queries.values import NO_TEXT, UnfitError, literal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from targetcharge.queries.tree import Column, Exact, Predicate
    from targetcharge.queries.values import Literal

_PARAMETER: Final = "where"
"""What an error calls the text."""

LONGEST: Final = 10_000
"""Characters of a text."""

DEEPEST: Final = 20
"""Parentheses and NOTs inside each other."""

LONGEST_LIST: Final = 1_000
"""Literals in an IN list."""

_KEYWORDS: Final = {
    **{part.value: part for part in (Part.NOT, Part.IN, Part.LIKE, Part.BETWEEN, Part.IS, Part.NULL)},
    **dict.fromkeys(("AND", "OR"), Part.JOIN),
    **dict.fromkeys(("TRUE", "FALSE"), Part.TRUTH),
}
_OPERATORS: Final = {**{operator.value: operator for operator in Operator}, "==": Operator.EQ, "!=": Operator.NE}
_SIGNS: Final = {
    **dict.fromkeys(_OPERATORS, Part.OPERATOR),
    **dict.fromkeys(("+", "-"), Part.SIGN),
    "(": Part.OPEN,
    ")": Part.CLOSE,
    ",": Part.COMMA,
}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<comment>--|/\*)
    |(?P<text>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")*")
    |(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[^\s0-9'"()\[\]{}<>=!+*/\\%^~&|?@\#$:;,.`-][^\s'"()\[\]{}<>=!+*/\\%^~&|?@\#$:;,.`-]*)
    |(?P<sign>\$\w*\$|<=>|->>|~~\*|[<>=!]=|<>|->|::|&&|\|\||//|\*\*|~~|~\*|.))""",
    re.VERBOSE | re.DOTALL,
)


def parse(text: str, schema: Mapping[str, Column]) -> Predicate:
    """Return the predicate that a text is. No data is touched.

    Args:
        text: at most 10,000 characters, nested at most 20 deep, with lists of at most 1,000 literals.
        schema: the columns there are.

    Raises:
        InvalidQuestion: if it is not a predicate on these columns; points at the place.
        InvalidParameter: if it is not a text, empty or too long.
    """
    expected = "a text such as \"age > 65 AND diagnosis = 'flu'\""
    if not isinstance(text, str):
        raise InvalidParameter(_PARAMETER, text, expected)
    if not text.strip():
        raise InvalidParameter(_PARAMETER, text, f"{expected}, or None for all rows")
    if len(text) > LONGEST:
        raise InvalidParameter(_PARAMETER, text, f"at most {LONGEST:,} characters long, not {len(text):,}")
    try:
        return _Parser(text, schema).predicate()
    except RecursionError:
        problem = f"this is nested too deep for the calls that led here; {DEEPEST} deep is the most anywhere"
        raise InvalidQuestion(_PARAMETER, text, 0, problem) from None


class _Token(NamedTuple):
    """A text, name (in double quotes), number, word, sign or end: its kind, as it is written, and where."""

    kind: str
    raw: str
    start: int


@final
class _Parser:
    """A text that is read from left to right, by recursive descent.

    At every moment there is a token that is next, and it is known which part of the grammar it is there.
    """

    def __init__(self, text: str, schema: Mapping[str, Column]) -> None:
        self._text, self._schema = text, schema
        self._tokens = self._split()
        self._place, self._part = -1, Part.START
        self._column: Column | None = None
        self._advance()

    def predicate(self) -> Predicate:
        tree = self._any(0)
        if self._part is Part.CLOSE:
            self._refuse("this parenthesis closes nothing")
        return tree

    # Tokens

    def _split(self) -> list[_Token]:
        text = self._text
        if unfit := NO_TEXT.search(text):
            self._refuse("this character cannot be part of a text", unfit.start())
        tokens = []
        end, last = 0, len(text.rstrip())
        while match := _TOKEN.match(text, end, last):
            kind = str(match.lastgroup)
            token, end = _Token(kind, match[kind], match.start(kind)), match.end()
            if kind == "comment":
                self._refuse("there are no comments in a predicate", token.start)
            if token.raw in ("'", '"'):
                self._refuse(f"the quote {token.raw} is not closed", token.start)
            tokens.append(token)
        return [*tokens, _Token("end", "", len(text))]

    @property
    def _token(self) -> _Token:
        return self._tokens[self._place]

    def _advance(self) -> None:
        """Go to the next token, and refuse one that cannot come here."""
        before, self._place = self._part, self._place + 1
        self._part = self._part_of(self._token, before)
        problem = grammar.slip(before, self._part)
        if problem is None:
            return
        if before is Part.COLUMN and self._column is not None and self._part in AFTER_PREDICATE:
            self._refuse(grammar.slip_of_column(self._column), self._tokens[self._place - 1].start)
        self._refuse(problem)

    def _part_of(self, token: _Token, before: Part) -> Part:
        match token.kind:
            case "end":
                return Part.END
            case "text":
                return Part.TEXT
            case "number":
                if self._runs_on(token):
                    self._refuse(grammar.NOT_A_NUMBER)
                return Part.NUMBER
            case "sign":
                part = _SIGNS.get(token.raw)
                if part is None:
                    self._refuse(grammar.slip_of_sign(token.raw, self._following.raw))
                return Part.LIST if part is Part.OPEN and before is Part.IN else part
        part = _keyword(token)
        if part is Part.NOT:
            return {Part.COLUMN: Part.NOT_INSIDE, Part.IS: Part.IS_NOT}.get(before, part)
        return part or self._named(token, before)

    @property
    def _following(self) -> _Token:
        return self._tokens[self._place + 1]

    def _runs_on(self, number: _Token) -> bool:
        """Return whether a word sticks to a number: 0x1F, 10kg."""
        following = self._following
        sticks = following.kind == "word" and following.start == number.start + len(number.raw)
        return sticks and _keyword(following) is None

    def _named(self, token: _Token, before: Part) -> Part:
        name = token.raw[1:-1].replace('""', '"') if token.kind == "name" else token.raw
        following = self._following.raw
        self._column = find(name, self._schema)
        if self._column is None or grammar.is_prefix(following, before):
            self._refuse(grammar.slip_of_name(name, token.raw, following, before, self._schema))
        return Part.COLUMN

    def _refuse(self, problem: str, position: int | None = None) -> NoReturn:
        """Raise the error that points at a character: where the next token starts, if no other is named."""
        start = self._token.start if position is None else position
        raise InvalidQuestion(_PARAMETER, self._text, start, problem)

    # Predicates

    def _any(self, depth: int) -> Predicate:
        return self._chain(Any, "OR", self._all, depth)

    def _all(self, depth: int) -> Predicate:
        return self._chain(All, "AND", self._negation, depth)

    def _chain(
        self, joined: type[All | Any], word: str, read: Callable[[int], Predicate], depth: int
    ) -> Predicate:
        parts = [read(depth)]
        while self._part is Part.JOIN and self._token.raw.upper() == word:
            self._advance()
            parts.append(read(depth))
        return parts[0] if len(parts) == 1 else joined(tuple(parts))

    def _negation(self, depth: int) -> Predicate:
        if self._part is Part.NOT:
            inside = self._nested(depth)
            self._advance()
            return Not(self._negation(inside))
        if self._part is Part.OPEN:
            opening, inside = self._token, self._nested(depth)
            self._advance()
            tree = self._any(inside)
            self._close(opening)
            return tree
        return self._comparison(depth)

    def _nested(self, depth: int, levels: int = 1) -> int:
        if depth + levels > DEEPEST:
            self._refuse(f"parentheses and NOTs are nested more than {DEEPEST} deep")
        return depth + levels

    def _close(self, opening: _Token) -> None:
        if self._part is Part.END:
            self._refuse("this parenthesis is not closed", opening.start)
        self._advance()

    # Comparisons

    def _comparison(self, depth: int) -> Predicate:
        start, column = self._token.start, self._column
        assert column is not None  # noqa: S101 - nothing else can begin a predicate
        self._advance()
        negated = self._part is Part.NOT_INSIDE
        if negated:
            self._advance()
        tree = self._compared(column, start, depth)
        if self._part is Part.COMMA:
            self._refuse("a comma goes between the literals of an IN list only: join comparisons with AND or OR")
        return Not(tree) if negated else tree

    def _compared(self, column: Column, start: int, depth: int) -> Predicate:
        name, operator = quoted(column.name), _OPERATORS.get(self._token.raw)
        ordered = self._part is Part.BETWEEN or operator not in (Operator.EQ, Operator.NE, None)
        if column.kind is Kind.BOOLEAN and ordered:
            self._refuse(f"{name} is a boolean: compare it with = or <>", start)
        match self._part:
            case Part.IN:
                return self._in_list(column, depth)
            case Part.LIKE:
                if column.kind is not Kind.TEXT:
                    problem = f"{name} is a {column.kind}, and LIKE compares texts: write = or <>"
                    self._refuse(problem, start)
                self._advance()
                return Like(column, self._literal(column).text)
            case Part.BETWEEN:
                return self._between(column, depth)
            case Part.IS:
                return self._missing(column)
        self._advance()
        return compare(column, operator or Operator.EQ, self._literal(column))

    def _in_list(self, column: Column, depth: int) -> Predicate:
        self._advance()
        opening = self._token
        self._nested(depth)
        self._advance()
        literals = [self._literal(column)]
        while self._part is Part.COMMA:
            if len(literals) == LONGEST_LIST:
                self._refuse(f"the list has more than {LONGEST_LIST:,} literals")
            self._advance()
            literals.append(self._literal(column))
        if self._part is Part.JOIN:
            self._refuse("a list holds literals, with commas between them")
        self._close(opening)
        return one_of(column, literals)

    def _between(self, column: Column, depth: int) -> Predicate:
        self._nested(depth, 2)  # it is written out: NOT (x >= 1 AND x <= 2)
        self._advance()
        low = compare(column, Operator.GE, self._literal(column))
        if self._part in AFTER_PREDICATE and self._token.raw.upper() != "AND":
            self._refuse("BETWEEN needs two literals: write BETWEEN 18 AND 65")
        self._part = Part.BETWEEN_AND
        self._advance()
        return All((low, compare(column, Operator.LE, self._literal(column))))

    def _missing(self, column: Column) -> Predicate:
        self._advance()
        negated = self._part is Part.IS_NOT
        if negated:
            self._advance()
        self._advance()
        return Not(Missing(column)) if negated else Missing(column)

    def _literal(self, column: Column) -> Literal:
        """Return the next literal as a value of the column, and go past it."""
        sign = self._token.raw if self._part is Part.SIGN else ""
        if sign:
            self._advance()
        token, part = self._token, self._part
        text = {
            Part.TEXT: token.raw[1:-1].replace("''", "'"),
            Part.NUMBER: sign.replace("+", "") + token.raw,
        }.get(part, token.raw.upper())
        try:
            literal = literal_of(column, part, text)
        except UnfitError as unfit:
            raise InvalidQuestion(_PARAMETER, self._text, token.start, *unfit.args) from None
        self._advance()
        return literal


def _keyword(token: _Token) -> Part | None:
    return _KEYWORDS.get(token.raw.upper()) if token.kind == "word" and token.raw.isascii() else None


def compare(column: Column, operator: Operator, literal: Literal) -> Compare | Settled:
    """Return the comparison of a column with a literal, as one with a value that the column can have."""
    value = literal.value
    if not isinstance(value, Fraction):
        return Compare(column, operator, value)
    text = f"{quoted(column.name)} {operator} {literal.text}"
    if operator in (Operator.EQ, Operator.NE):
        if _occurs(value, column.exact):
            return Compare(column, operator, int(value))
        return Settled(column, operator is Operator.NE, text)
    upwards = operator in (Operator.GT, Operator.GE)
    nearest = math.ceil(value) if upwards else math.floor(value)  # the nearest value that decides the same
    if nearest != value:
        operator = Operator.GE if upwards else Operator.LE
    exact = column.exact
    if exact is None or exact.low <= nearest <= exact.high:
        return Compare(column, operator, nearest)
    return Settled(column, upwards == (nearest < exact.low), text)


def one_of(column: Column, literals: Sequence[Literal]) -> OneOf | Settled:
    """Return the comparison of a column with a list of literals: each once, and only those that can occur."""
    values = [
        int(literal.value) if isinstance(literal.value, Fraction) else literal.value
        for literal in literals
        if not isinstance(literal.value, Fraction) or _occurs(literal.value, column.exact)
    ]
    if values:
        return OneOf(column, tuple(dict.fromkeys(values)))
    listed = ", ".join(literal.text for literal in literals)  # numbers: no other literal is settled
    return Settled(column, holds=False, text=f"{quoted(column.name)} IN ({listed})")


def _occurs(value: Fraction, exact: Exact | None) -> bool:
    """Return whether a column has such a value."""
    return value.denominator == 1 and exact is not None and exact.low <= value <= exact.high
