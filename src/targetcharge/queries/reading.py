"""From tokens to a predicate: a parser of SQL reads them, and of what it finds only a few forms are taken.

Each node must be exactly of a class listed here and have exactly the arguments listed here; anything else is
refused. So whatever the parser knows of SQL, a predicate is a tree of comparisons of columns with literals.

>>> from targetcharge.queries.columns import Column, Kind
>>> from targetcharge.queries.scanning import scan
>>> from targetcharge.queries.source import Source
>>> source = Source("NOT name = 'Ann' OR name IS NULL", {"name": Column("name", Kind.TEXT)}, "where")
>>> str(read(source, scan(source)))
"NOT name = 'Ann' OR name IS NULL"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.errors import ParseError

from targetcharge.queries.columns import Column, Kind
from targetcharge.queries.grammar import Part
from targetcharge.queries.literals import UnfitError, Written, compare, one_of, typed
from targetcharge.queries.predicates import All, Any, Compare, Like, Missing, Not, Operator, Settled, quoted
from targetcharge.queries.scanning import DEEPEST, DIALECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot.tokenizer_core import Token

    from targetcharge.queries.predicates import Predicate
    from targetcharge.queries.source import Source

_UNREADABLE: Final = "this cannot be read: write comparisons such as age > 65, joined by AND, OR and NOT"

_CONNECTIVES: Final[dict[type[exp.Expr], type[All | Any]]] = {exp.And: All, exp.Or: Any}
_OPERATORS: Final[dict[type[exp.Expr], Operator]] = {
    exp.EQ: Operator.EQ,
    exp.NEQ: Operator.NE,
    exp.LT: Operator.LT,
    exp.LTE: Operator.LE,
    exp.GT: Operator.GT,
    exp.GTE: Operator.GE,
}

_ONE: Final = frozenset({"this"})
_TWO: Final = frozenset({"this", "expression"})
_FORMS: Final[dict[type[exp.Expr], tuple[frozenset[str], ...]]] = {
    **dict.fromkeys((*_CONNECTIVES, *_OPERATORS, exp.Is), (_TWO,)),
    **dict.fromkeys((exp.Paren, exp.Not, exp.Neg, exp.Column), (_ONE,)),
    exp.Like: (_TWO, _TWO | {"negate"}),
    exp.In: (frozenset({"this", "expressions"}),),
    exp.Between: (frozenset({"this", "low", "high"}),),
    exp.Identifier: (frozenset({"this", "quoted"}),),
    exp.Literal: (_ONE, frozenset({"this", "is_string"})),
    exp.Boolean: (_ONE,),
    exp.Null: (frozenset(),),
}
"""The nodes that are taken, each with the arguments it may have."""


def read(source: Source, tokens: list[Token]) -> Predicate:
    """Return the predicate that the tokens of a text are.

    Raises:
        InvalidQuestion: if they are none, or if a literal does not fit its column.
    """
    try:
        trees = DIALECT.parser().parse(tokens, "(" + source.text)
    except ParseError as slip:
        place = (slip.errors[0].get("line"), slip.errors[0].get("col"))
        positions = [token.start - 1 for token in tokens if (token.line, token.col) == place]
        raise source.error(positions[0] if positions else 0, _UNREADABLE) from None
    except RecursionError:
        problem = f"this is nested too deep for the calls that led here; {DEEPEST} deep is the most anywhere"
        raise source.error(0, problem) from None
    if len(trees) != 1 or trees[0] is None:
        raise source.error(0, _UNREADABLE)
    return _predicate(trees[0], source)


def _predicate(node: exp.Expr, source: Source) -> Predicate:
    kind = _kind(node, source)
    if kind in _CONNECTIVES:
        return _CONNECTIVES[kind](tuple(_predicate(part, source) for part in _chain(node)))
    if kind is exp.Paren:
        return _predicate(node.this, source)
    if kind is exp.Not:
        return Not(_predicate(node.this, source))
    if kind in _OPERATORS:
        return _compare(node.this, _OPERATORS[kind], node.expression, source)
    if kind is exp.Between:
        low, high = node.args["low"], node.args["high"]
        return All((_compare(node.this, Operator.GE, low, source), _compare(node.this, Operator.LE, high, source)))
    if kind is exp.In:
        return _one_of(node, source)
    if kind is exp.Like:
        return _like(node, source)
    if kind is exp.Is and _kind(node.expression, source) is exp.Null:
        return Missing(_column(node.this, source))
    raise source.error(_position(node), _UNREADABLE)


def _kind(node: exp.Expr, source: Source) -> type[exp.Expr]:
    """Return the class of a node that is taken.

    Raises:
        InvalidQuestion: if the node is of another class, or has other arguments.
    """
    given = [
        name for name, value in node.args.items() if value is not None and (value is not False or name == "this")
    ]
    if frozenset(given) not in _FORMS.get(type(node), ()):
        raise source.error(_position(node), _UNREADABLE)
    return type(node)


def _chain(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a chain of ANDs, or of ORs, from left to right; it may be thousands long."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if type(part) is type(node):
            waiting += (part.expression, part.this)
        else:
            yield part


def _compare(node: exp.Expr, operator: Operator, literal: exp.Expr, source: Source) -> Compare | Settled:
    column, written = _column(node, source), _written(literal, source)
    try:
        return compare(column, operator, written)
    except UnfitError as problem:
        raise source.error(_position(literal, _position(node)), str(problem)) from None


def _one_of(node: exp.Expr, source: Source) -> Predicate:
    column = _column(node.this, source)
    found = []
    for each in node.expressions:
        written = _written(each, source)
        try:
            found.append((written, typed(column, written)))
        except UnfitError as problem:
            raise source.error(_position(each, _position(node)), str(problem)) from None
    if not found:
        raise source.error(_position(node), _UNREADABLE)
    return one_of(column, found)


def _like(node: exp.Expr, source: Source) -> Predicate:
    column, pattern = _column(node.this, source), _written(node.expression, source)
    if column.kind is not Kind.TEXT:
        problem = f"{quoted(column.name)} is a {column.kind}, and LIKE compares texts: write = or <>"
        raise source.error(_position(node), problem)
    if pattern.part is not Part.TEXT:
        raise source.error(_position(node), _UNREADABLE)
    like = Like(column, pattern.text)
    return Not(like) if node.args.get("negate") else like


def _column(node: exp.Expr, source: Source) -> Column:
    if _kind(node, source) is exp.Column and _kind(node.this, source) is exp.Identifier:
        column = source.schema.get(node.this.this)
        if column is not None:
            return column
    raise source.error(_position(node), _UNREADABLE)


def _written(node: exp.Expr, source: Source) -> Written:
    """Return a literal as it was written."""
    kind = _kind(node, source)
    if kind is exp.Boolean:
        return Written(Part.TRUTH, "TRUE" if node.this else "FALSE")
    if kind is exp.Literal:
        return Written(Part.TEXT if node.args["is_string"] else Part.NUMBER, node.this)
    if kind is exp.Neg and _kind(node.this, source) is exp.Literal and not node.this.args["is_string"]:
        return Written(Part.NUMBER, "-" + node.this.this)
    raise source.error(_position(node), _UNREADABLE)


def _position(node: exp.Expr, otherwise: int = 0) -> int:
    """Return where in the text a node starts: its first column or literal that knows."""
    starts = [each.meta["start"] - 1 for each in node.walk() if "start" in each.meta]
    return min(starts, default=otherwise)
