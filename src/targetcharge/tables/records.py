"""Records: how a ledger keeps a question.

That is enough to tell, from the table and an answer's key, who contributed to the answer and how much.

>>> from targetcharge.queries.measures import Count as Measure
>>> from targetcharge.queries.tree import Column, Compare, Kind, Operator
>>> from targetcharge.tables.questions import above
>>> age = Column("age", Kind.NUMBER)
>>> record = record_of(above("age>65", threshold=100.0), Measure(Compare(age, Operator.GT, 65)), None)
>>> record, recorded(record).question.what
('{"what":{"count":"age > 65"},"above":100}', Count(where='age > 65'))
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from targetcharge.errors import InvalidParameter
from targetcharge.outcomes import canonical_json, from_plain, to_plain
from targetcharge.queries.keys import Period
from targetcharge.queries.measures import Total
from targetcharge.tables.questions import (
    Above,
    BetweenQuestion,
    Count,
    CountQuestion,
    Distinct,
    Histogram,
    Mean,
    Quantiles,
    SideQuestion,
    Sum,
    Top,
    Value,
    Watch,
    figure,
)

if TYPE_CHECKING:
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure
    from targetcharge.tables.questions import Question, What


class Recorded(NamedTuple):
    """A question that was read back. Of a watch the keys are not kept, nor are priors.

    Attributes:
        question: what was asked.
        period: how much of a time is one of its keys.
    """

    question: Question
    period: Period | None


def record_of(question: Question, measure: Measure, keys: Keys | None, *, candidates: bool = False) -> str:
    """Return a question as canonical JSON: the same for the same question, however it was written.

    Args:
        question: what was asked.
        measure: what is computed for it: its predicate, and the grid that was chosen for it, are recorded.
        keys: of a batch.
        candidates: whether the keys are recorded too, as they are published; of a selection else a hash of them.
    """
    kind, figures = _asked(question)
    body: dict[str, object] = {"what": _plain_what(question.what, measure), kind: figures}
    if isinstance(question, Above | CountQuestion) and question.prior is not None:
        tolerance = question.tolerance or 0
        body["tolerance"] = tolerance if isinstance(tolerance, str) else figure(tolerance)
    if isinstance(question, Top):
        body["threshold"] = None if question.threshold is None else figure(question.threshold)
    if keys is not None:
        body["by"] = [column.name for column in keys.columns]
        if keys.period is not None:
            body["period"] = keys.period.value
        if candidates:
            body["keys"] = to_plain(keys.published())
        elif isinstance(question, Top):
            published = canonical_json(to_plain(keys.published()))
            body["keys_hash"] = hashlib.sha256(published.encode("ascii")).hexdigest()
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
        case Top(k=k, values=values):
            return "top" if values else "picks", int(k)
        case Mean():
            return "mean", None
        case Quantiles(shares=shares):
            return "quantiles", [figure(cast("float", share)) for share in shares]
        case Histogram(per_unit=per_unit):
            return "histogram", int(per_unit)


def _question(body: dict[str, Any]) -> Question:
    match body:
        case {"mean": _}:
            return Mean(_value(body["what"]))
        case {"quantiles": [*shares]}:
            return Quantiles(_value(body["what"]), tuple(map(Fraction, shares)))
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
        case {"top": int(k)} | {"picks": int(k)}:
            return Top(what, by, _keys(body), k, values="top" in body)
        case {"histogram": int(per_unit)}:
            return Histogram(what, by, _keys(body), per_unit)
    raise ValueError


def _keys(body: dict[str, Any]) -> tuple[object, ...]:
    return tuple(from_plain(key) for key in body.get("keys", ()))


def _plain_what(what: What | Value, measure: Measure) -> dict[str, object]:
    where = None if measure.where is None else str(measure.where)
    match what:
        case Sum(column, lower, upper):
            grid = str(measure.grid) if isinstance(measure, Total) else ""  # the one that was chosen
            return {"sum": column, "bounds": [figure(lower), figure(upper)], "grid": grid, "where": where}
        case Value(column, lower, upper):
            bounds, step = [figure(lower), figure(upper)], str(getattr(measure, "grid", ""))
            return {"value": column, "bounds": bounds, "grid": step, "where": where}
        case Distinct(column, _, per_unit):
            return {"distinct": column, "per_unit": int(per_unit), "where": where}
        case _:
            return {"count": where}


def _what(body: dict[str, Any]) -> What:
    if "count" in body:
        return Count(body["count"])
    if "sum" in body:
        lower, upper = map(_number, body["bounds"])
        return Sum(body["sum"], lower, upper, body["where"], body["grid"])
    return Distinct(body["distinct"], body["where"], body["per_unit"])


def _value(body: dict[str, Any]) -> Value:
    lower, upper = map(_number, body["bounds"])
    return Value(body["value"], lower, upper, body["where"], body["grid"])


def _number(figure: float | str) -> float:
    return cast("float", Fraction(figure)) if isinstance(figure, str) else figure
