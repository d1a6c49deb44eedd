"""Records: what was asked of a table, as the transcript keeps it.

A record says enough to tell, from the table and an answer's key, who contributed to the answer and how much.

>>> from targetcharge.queries.columns import Column, Kind
>>> from targetcharge.tables.numbers import number_of
>>> from targetcharge.tables.questions import above
>>> question = above("age > 65", threshold=100)
>>> text = Record.of(question, number_of(question.what, {"age": Column("age", Kind.NUMBER)})).text()
>>> text
'{"what":{"count":"age > 65"},"above":100}'
>>> Record.read(text).what
Units(where='age > 65')
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, cast, final

from targetcharge.errors import InvalidParameter
from targetcharge.ledger.plain import canonical, from_plain, to_plain
from targetcharge.queries.keys import Period
from targetcharge.queries.measures import Total
from targetcharge.tables.questions import Above, Between, Distinct, Question, Side, Sum, Top, Units, Value, Watch

if TYPE_CHECKING:
    from targetcharge.queries.keys import Keys
    from targetcharge.tables.numbers import Number
    from targetcharge.tables.questions import What


@final
@dataclass(frozen=True)
class Record:
    """What was asked, as plain data.

    Attributes:
        what: the number that was asked about.
        asked: what was asked of it: one of above, value, between, near and top, with its figures.
        by: the columns of the keys, in a batch.
        grain: how much of a time is one key.
        keys: of a selection, all that were declared, as they are published; empty if nobody needs them.
        label: what the caller wrote on the question.
    """

    what: What
    asked: tuple[str, object]
    by: tuple[str, ...] = ()
    grain: str | None = None
    keys: tuple[object, ...] = ()
    label: str = ""

    @classmethod
    def of(
        cls, question: Question, number: Number, groups: Keys | None = None, keys: tuple[object, ...] = ()
    ) -> Record:
        """Return the record of a question.

        Args:
            question: what was asked.
            number: what it is about: the grid that was chosen for it is recorded.
            groups: of a batch.
            keys: of a selection, as they are published.
        """
        what = question.what
        if isinstance(what, Sum) and isinstance(number.measure, Total):
            what = Sum(what.column, what.lower, what.upper, what.where, str(number.measure.grid))
        by = () if groups is None else tuple(column.name for column in groups.columns)
        grain = None if groups is None or groups.period is None else groups.period.value
        label = question.label if isinstance(question, Above | Value | Watch) else ""
        if not isinstance(label, str):
            raise InvalidParameter("label", label, "text")
        return cls(what, _asked(question), by, grain, keys, label)

    @property
    def band(self) -> tuple[float, float] | None:
        """Return the band of a question with one."""
        kind, figures = self.asked
        if kind != "between" or not isinstance(figures, list):
            return None
        low, high = map(_number, figures)
        return low, high

    @property
    def near(self) -> bool:
        """Return whether it asked for the side of a threshold."""
        return self.asked[0] == "near"

    @property
    def k(self) -> int:
        """Return how many keys a selection could publish; 0 if it is none."""
        kind, figures = self.asked
        return figures if kind == "top" and isinstance(figures, int) else 0

    def text(self) -> str:
        """Return it as canonical JSON."""
        kind, figures = self.asked
        body: dict[str, object] = {"what": _plain_what(self.what), kind: figures}
        if self.by:
            body["by"] = self.by
        if self.grain:
            body["grain"] = self.grain
        if self.keys:
            body["keys"] = [to_plain(key) for key in self.keys]
        if self.label:
            body["label"] = self.label
        return canonical(body)

    @classmethod
    def read(cls, text: str) -> Record | None:
        """Return the record that a text holds, or None if it holds none that this version reads."""
        try:
            body = json.loads(text)
            (kind,) = set(body) - {"what", "by", "grain", "keys", "label"}
            grain = None if "grain" not in body else Period(body["grain"]).value
            keys = tuple(from_plain(key) for key in body.get("keys", ()))
            by, label = tuple(body.get("by", ())), str(body.get("label", ""))
            return cls(_what_of(body["what"]), (kind, body[kind]), by, grain, keys, label)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def _asked(question: Question) -> tuple[str, object]:
    match question:
        case Above() | Watch():
            return "above", _figure(question.threshold)
        case Value():
            return "value", None
        case Between():
            return "between", [_figure(question.low), _figure(question.high)]
        case Side():
            return "near", _figure(question.threshold)
        case Top():
            return "top", int(question.k)


def _figure(value: float) -> int | float | str:
    """Return a number that was checked as JSON has it; fractions as text, to be the same when they are read."""
    if isinstance(value, float) or not isinstance(value, Rational):
        return float(value)
    return int(value) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def _number(figure: float | str) -> float:
    return cast("float", Fraction(figure)) if isinstance(figure, str) else figure


def _plain_what(what: What) -> dict[str, object]:
    match what:
        case Units(where):
            return {"count": where}
        case Sum(column, lower, upper, where, grid):
            return {"sum": column, "bounds": [_figure(lower), _figure(upper)], "grid": str(grid), "where": where}
        case Distinct(column, where, per_unit):
            return {"distinct": column, "per_unit": per_unit, "where": where}


def _what_of(body: dict[str, Any]) -> What:
    if "count" in body:
        return Units(body["count"])
    if "sum" in body:
        lower, upper = map(_number, body["bounds"])
        return Sum(body["sum"], lower, upper, body["where"], body["grid"])
    return Distinct(body["distinct"], body["where"], body["per_unit"])
