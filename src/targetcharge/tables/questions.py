"""Questions about a table, as values: made without data, checked against a schema, asked or previewed later.

A question is about a number: how many units have a row that counts (a predicate as text, or `count`), what their
contributions add up to (`sum`), or how many distinct values a column has (`distinct`). A `count` by itself is a
question too: the number is published, and always paid for. A label is public, and kept with the answers.

>>> above("age > 65 AND diagnosis = 'flu'", threshold=1200)
Above(what=Count(where="age > 65 AND diagnosis = 'flu'"), threshold=1200, prior=None, tolerance=None)
>>> between(sum("fare", lower=0, upper=100, where="rain = TRUE"), 5_000, 10_000).what.upper
100

A ledger keeps a question as a record: enough to tell, from the table and an answer's key, who contributed to the
answer and how much.

>>> from targetcharge.queries.measures import Count as Measure
>>> record = record_of(above("age > 65", threshold=100), Measure(None), None)
>>> record, recorded(record).question.what
('{"what":{"count":"age > 65"},"above":100}', Count(where='age > 65'))
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, NamedTuple, cast, final

from targetcharge.errors import InvalidParameter
from targetcharge.outcomes import canonical_json, from_plain, to_plain
from targetcharge.queries.keys import Period
from targetcharge.queries.measures import Total

if TYPE_CHECKING:
    from decimal import Decimal

    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure
    from targetcharge.queries.tree import Predicate

    Grid = int | float | str | Decimal | Fraction
    By = str | Sequence[str]
    """One or two columns."""
    Where = str | Predicate | None
    """Which rows count: a predicate as text, or as the tree that was parsed from one; None for all rows."""


@final
@dataclass(frozen=True)
class Count:
    """How many units have a row that counts; all rows count if there is no predicate."""

    where: Where = None


@final
@dataclass(frozen=True)
class Sum:
    """What units contribute, added up; each unit's contribution lies between the bounds."""

    column: str
    lower: float
    upper: float
    where: Where = None
    grid: Grid | None = None


@final
@dataclass(frozen=True)
class Distinct:
    """How many distinct values a column has, of each unit at most `per_unit`."""

    column: str
    where: Where = None
    per_unit: int = 1


What = Count | Sum | Distinct


@final
@dataclass(frozen=True)
class Above:
    """The noisy number if it is at least the threshold; with a prior, if it has changed."""

    what: What
    threshold: float
    prior: object = None
    tolerance: float | None = None
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class CountQuestion:
    """The noisy number, always paid for; with a prior, if it has changed."""

    what: What
    prior: object = None
    tolerance: float | None = None
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class BetweenQuestion:
    """On which side of a band the noisy number lies; inside costs."""

    what: What
    low: float
    high: float
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class SideQuestion:
    """On which side of a threshold the number lies; free unless it is too close to call."""

    what: What
    threshold: float
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class Watch:
    """`Above` for every declared key."""

    what: What
    by: str | tuple[str, ...]
    keys: Any
    threshold: float
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class Top:
    """The k keys with the largest noisy numbers."""

    what: What
    by: str | tuple[str, ...]
    keys: Any
    k: int
    threshold: float | None = None
    label: str = field(default="", repr=False)


Single = Above | CountQuestion | BetweenQuestion | SideQuestion
"""Questions with one answer."""

Question = Single | Watch | Top
"""Everything a table can be asked."""

Asked = str | What | CountQuestion | None
"""What a question is about: a predicate, None for all units, or made by `count`, `sum` or `distinct`."""


def count(
    where: Asked = None, prior: object = None, tolerance: float | None = None, *, label: str = ""
) -> CountQuestion:
    """Return the question of `Table.count`.

    It can also be what another question is about: `above(count("age > 65"), 1200)` is `above("age > 65", 1200)`.
    """
    return CountQuestion(what_of(where), prior, tolerance, label)


def sum(  # noqa: A001 - the word for it everywhere
    column: str, lower: float, upper: float, where: str | None = None, *, grid: Grid | None = None
) -> Sum:
    """Return the sum of what units contribute.

    Args:
        column: a number.
        lower: the least a unit contributes; what is less counts as this.
        upper: the most a unit contributes.
        where: which rows count.
        grid: values are rounded to multiples of it, such as 0.01 or "0.01"; left out for one that fits the bounds.
    """
    return Sum(column, lower, upper, where, grid)


def distinct(column: str, where: str | None = None, *, per_unit: int = 1) -> Distinct:
    """Return the number of distinct values of a column, by a sketch of bounded size.

    Args:
        column: any column.
        where: which rows count.
        per_unit: the most values of one unit that are counted; noise grows with it.
    """
    return Distinct(column, where, per_unit)


def above(
    where: Asked, threshold: float, prior: object = None, tolerance: float | None = None, *, label: str = ""
) -> Above:
    """Return the question of `Table.above`."""
    return Above(what_of(where), threshold, prior, tolerance, label)


def between(where: Asked, low: float, high: float, *, label: str = "") -> BetweenQuestion:
    """Return the question of `Table.between`."""
    return BetweenQuestion(what_of(where), low, high, label)


def side(where: Asked, threshold: float, *, label: str = "") -> SideQuestion:
    """Return the question of `Table.side`."""
    return SideQuestion(what_of(where), threshold, label)


def watch(where: Asked, by: By, keys: object, threshold: float, *, label: str = "") -> Watch:
    """Return the question of `Table.watch`."""
    return Watch(what_of(where), _columns(by), keys, threshold, label)


def top(
    where: Asked,
    by: By,
    keys: object,
    k: int = 1,
    *,
    threshold: float | None = None,
    label: str = "",
) -> Top:
    """Return the question of `Table.top`."""
    return Top(what_of(where), _columns(by), keys, k, threshold, label)


def what_of(where: Asked) -> What:
    """Return what a question is about.

    Raises:
        InvalidParameter: if it is none.
    """
    if where is None or isinstance(where, str):
        return Count(where)
    if isinstance(where, Count | Sum | Distinct):
        return where
    if isinstance(where, CountQuestion):
        if where != CountQuestion(where.what):
            raise InvalidParameter("where", where, "a count without prior, tolerance and label of its own")
        return where.what
    raise InvalidParameter("where", where, "a predicate such as 'age > 65', or made by count, sum or distinct")


def _columns(by: By) -> str | tuple[str, ...]:
    return by if isinstance(by, str) or not isinstance(by, Sequence) else tuple(by)


# As a ledger keeps them.


class Recorded(NamedTuple):
    """A question that was read back. Of a watch the keys are not kept, nor are priors.

    Attributes:
        question: what was asked.
        period: how much of a time is one of its keys.
    """

    question: Question
    period: Period | None


def record_of(question: Question, measure: Measure, keys: Keys | None, *, candidates: bool = False) -> str:
    """Return a question as canonical JSON.

    Args:
        question: what was asked.
        measure: what is computed for it: the grid that was chosen for it is recorded.
        keys: of a batch.
        candidates: whether the keys are recorded too, as they are published.
    """
    kind, figures = _asked(question)
    body: dict[str, object] = {"what": _plain_what(question.what, measure), kind: figures}
    if keys is not None:
        body["by"] = [column.name for column in keys.columns]
        if keys.period is not None:
            body["period"] = keys.period.value
        if candidates:
            body["keys"] = to_plain(keys.published())
    if not isinstance(question.label, str):
        raise InvalidParameter("label", question.label, "text")
    return canonical_json({**body, "label": question.label} if question.label else body)


def recorded(record: str) -> Recorded | None:
    """Return the question of a record; None if this version reads none in it."""
    try:
        body = json.loads(record)
        period = body.get("period", body.get("grain"))  # "grain" in the first format
        return Recorded(_question(body), None if period is None else Period(period))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def label_of(record: str) -> tuple[str, bool]:
    """Return what the caller wrote on a question that a ledger keeps, and whether it is about keys."""
    if '"label":' not in record:  # most have none, and reading them would take a while
        return "", False
    try:
        body = json.loads(record)
        return str(body.get("label", "")), bool(body.get("by"))
    except (ValueError, AttributeError):
        return "", False


def _asked(question: Question) -> tuple[str, object]:
    match question:
        case Above(threshold=threshold) | Watch(threshold=threshold):
            return "above", figure(threshold)
        case CountQuestion():
            return "count", None
        case BetweenQuestion(_, low, high):
            return "between", [figure(low), figure(high)]
        case SideQuestion(_, threshold):
            return "side", figure(threshold)
        case Top(k=k):
            return "top", int(k)


def _question(body: dict[str, Any]) -> Question:
    what, by = _what(body["what"]), tuple(body.get("by", ()))
    match body:
        case {"above": threshold}:
            return Watch(what, by, (), _number(threshold)) if by else Above(what, _number(threshold))
        case {"count": _} | {"value": _}:  # "value" in the first format
            return CountQuestion(what)
        case {"between": [low, high]}:
            return BetweenQuestion(what, _number(low), _number(high))
        case {"side": threshold} | {"near": threshold}:  # "near" in the first format
            return SideQuestion(what, _number(threshold))
        case {"top": int(k)}:
            return Top(what, by, tuple(from_plain(key) for key in body.get("keys", ())), k)
    raise ValueError


def _plain_what(what: What, measure: Measure) -> dict[str, object]:
    match what:
        case Sum(column, lower, upper, where):
            grid = str(measure.grid) if isinstance(measure, Total) else ""  # the one that was chosen
            return {"sum": column, "bounds": [figure(lower), figure(upper)], "grid": grid, "where": _text(where)}
        case Distinct(column, where, per_unit):
            return {"distinct": column, "per_unit": int(per_unit), "where": _text(where)}
        case _:
            return {"count": _text(what.where)}


def _text(where: Where) -> str | None:
    return None if where is None else str(where)


def _what(body: dict[str, Any]) -> What:
    if "count" in body:
        return Count(body["count"])
    if "sum" in body:
        lower, upper = map(_number, body["bounds"])
        return Sum(body["sum"], lower, upper, body["where"], body["grid"])
    return Distinct(body["distinct"], body["where"], body["per_unit"])


def figure(value: float) -> int | float | str:
    """Return a number that was checked as JSON and names have it: one of Python's own, or a fraction as text."""
    if isinstance(value, float) or not isinstance(value, Rational):
        return float(value)
    return int(value) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def _number(figure: float | str) -> float:
    return cast("float", Fraction(figure)) if isinstance(figure, str) else figure
