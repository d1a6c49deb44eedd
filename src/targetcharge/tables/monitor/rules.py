"""Rules: what a monitor asks at every look, and what it reports.

What is known of a number is a function of the rule and of the transcript, so every process knows the same, and a
crash loses nothing.

>>> Rule("late", "delay > 60", threshold=150)
Rule(name='late', where='delay > 60', threshold=150)
>>> Rule("flying", tolerance="15%").reach(3000)
450
>>> Rule("late", threshold=150, margin=-1)
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: margin is -1; it must be a number of at least 0
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from dataclasses import KW_ONLY, dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.outcomes import canonical_json
from targetcharge.queries.keys import declare
from targetcharge.queries.tree import Compare, Operator, all_of, column_of, parts_of
from targetcharge.queries.tree import Kind as ColumnKind
from targetcharge.tables import questions
from targetcharge.tables.monitor.alerts import Kind, Label, alert_of, value_of
from targetcharge.tables.questions import Above, Count, CountQuestion, Distinct, Sum, Watch, what_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from targetcharge.ledger import Answer
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.tree import Column, Predicate
    from targetcharge.tables.monitor.alerts import Alert
    from targetcharge.tables.prepared import Prepared
    from targetcharge.tables.questions import Asked, What
    from targetcharge.tables.table import Table

_TOLERANCE: Final = 'a number of at least 0, or a share of the last value such as "15%"'

_MARGIN_SCALES: Final = 4
"""Of the noise, between the threshold and where a number that has risen has fallen."""

_BAND_SCALES: Final = 2.0**40
"""Of the noise, above a threshold: no number reaches that, and the ends of the band stay sharp."""

_VERSION_DIGITS: Final = 16

NumberId = tuple[str, str, object]
"""A rule's name, the version of its text, and a key: what the answers about a number are known by."""

DueQuestion = Above | CountQuestion | Watch
"""What a monitor asks."""


@final
@dataclass(frozen=True, repr=False)
class Rule:
    """A question that is asked at every look.

    Attributes:
        name: of the rule; alerts carry it.
        where: a predicate, None for all units, or made by `tc.questions.sum` or `tc.questions.distinct`.
        threshold: reaching it is reported, and so is falling below it again.
        tolerance: a number that is further from the last published one has moved: as far as this, or by a
            share such as "15%". Left out, only the threshold counts.
        margin: a number that has risen falls only below threshold - margin. Left out for four times the scale of
            the noise: so one that stays at the threshold falls by noise alone in less than 1% of looks.
        prior: what is known before the first look, such as last year's number.
        so_far: whether it is about all rows up to the day, and not only about those of the day.
        anew: whether every day stands for itself: each that reaches the threshold is reported, and no fall.
        by: a column, or two: then the rule is about each of the keys by itself.
        keys: their declared values. Those below the threshold are asked in one scan, and all others in another.
            Of distinct values each takes one; with a budget for every individual, each of the others.
    """

    name: str
    where: Asked = None
    _: KW_ONLY
    threshold: float | None = None
    tolerance: float | str | None = None
    margin: float | None = None
    prior: float | None = None
    so_far: bool = False
    anew: bool = False
    by: str | Sequence[str] | None = None
    keys: object = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense, whatever the table."""
        check_name(self.name, "rule")
        what = what_of(self.where)
        checks.flag(self.so_far, "so_far")
        checks.flag(self.anew, "anew")
        self._check_figures()
        if self.threshold is None and isinstance(what, Distinct):
            raise InvalidParameter("threshold", None, "given for distinct values")
        if self.threshold is None and self.tolerance is None:
            raise InvalidParameter("threshold", None, "given, or a tolerance: else every look would cost")
        if self.threshold is None and self.anew:
            raise InvalidParameter("anew", self.anew, "left out where there is no threshold")
        if self.threshold is None and self.margin is not None:
            raise InvalidParameter("margin", self.margin, "left out where there is no threshold")
        for name in ("tolerance", "margin", "prior"):
            if self.anew and (value := getattr(self, name)) is not None:
                raise InvalidParameter(name, value, "left out where every day is looked at anew")
        if (self.by is None) != (self.keys is None):
            name, other = ("by", "keys") if self.by is None else ("keys", "by")
            raise InvalidParameter(name, None, f"given with {other}")

    def _check_figures(self) -> None:
        for name in ("threshold", "prior"):
            if (value := getattr(self, name)) is not None:
                checks.threshold(value, name)
        if self.margin is not None and checks.threshold(self.margin, "margin") < 0:
            raise InvalidParameter("margin", self.margin, "a number of at least 0")
        if self.threshold is not None and self.margin is not None:
            checks.threshold(self.threshold - self.margin, "threshold - margin")
        if isinstance(self.tolerance, str):
            checks.percent_of(self.tolerance, 0, "tolerance", _TOLERANCE)
        elif self.tolerance is not None and (
            not 0 <= checks.real(self.tolerance, "tolerance", _TOLERANCE) <= checks.MAX_THRESHOLD
        ):
            raise InvalidParameter("tolerance", self.tolerance, _TOLERANCE)

    @property
    def at_least(self) -> bool:
        """Return whether it only asks whether a number is at least something: not whether it fell or moved."""
        what = what_of(self.where)
        return self.anew and not (isinstance(what, Sum) and what.lower < 0)

    def reach(self, value: float) -> float:
        """Return how far from a published value is not moved; as far as one likes without a tolerance."""
        if not isinstance(self.tolerance, str):
            return math.inf if self.tolerance is None else self.tolerance
        return checks.percent_of(self.tolerance, value, "tolerance", _TOLERANCE)

    def __repr__(self) -> str:
        """Return the parameters that were given."""
        values = ((field, getattr(self, field.name)) for field in fields(self))
        given = (f"{field.name}={value!r}" for field, value in values if value is not field.default)
        return f"Rule({', '.join(given)})"


@final
@dataclass(frozen=True)
class State:
    """What is known of a number.

    Attributes:
        high: whether it has reached the threshold, and not fallen since.
        value: that was published last; None if none was.
        day: that was answered last; None if none was.
    """

    high: bool = False
    value: float | None = None
    day: dt.date | None = None


@final
@dataclass(frozen=True)
class CheckedRule:
    """A rule that can be asked of a table: about one number, or one for each of its keys.

    Attributes:
        rule: what is asked, and what is reported.
        prepared: the question whether it has reached its threshold, on all days; without one, for its number.
        floor: below which a number that has risen has fallen; None without a threshold.
        scale: of the noise.
        version: of the rule's text.
        day: the column of days, if there is one.
        keys: the rows of each key; None if the rule has none.
        published_keys: the keys as answers carry them; only None if the rule has none.
        watch: of all keys, to ask those that are low in one scan; None if each is asked by itself.
    """

    rule: Rule
    prepared: Prepared
    floor: float | None
    scale: float
    version: str
    day: Column | None
    keys: Keys | None = None
    published_keys: tuple[object, ...] = (None,)
    watch: Watch | None = None

    @property
    def number_ids(self) -> list[NumberId]:
        """Return what the answers about its numbers are known by."""
        return [(self.rule.name, self.version, key) for key in self.published_keys]

    @property
    def start(self) -> State:
        """Return what is known of a number before the first look."""
        prior, threshold = self.rule.prior, self.rule.threshold
        return State(prior is not None and threshold is not None and prior >= threshold, prior)

    def due(self, monitor: str, day: dt.date, states: Mapping[NumberId, State]) -> Iterator[DueQuestion]:
        """Yield what is asked about a day: numbers that are low in a watch, then all others one by one.

        Numbers that are answered about the day, by what is known of them, are not asked.
        """
        known = [states[number_id] for number_id in self.number_ids]
        left = [(place, state) for place, state in enumerate(known) if state.day != day]
        label = Label(monitor, self.rule.name, self.version, day)
        if self.watch is not None:
            low = [place for place, state in left if not state.high]
            left = [(place, state) for place, state in left if state.high]
            if low:
                keys = self.watch.keys.at(low)
                yield replace(self.watch, what=self._number(day), keys=keys, label=label.text())
        for place, state in left:
            text = replace(label, key=self.published_keys[place]).text()
            yield self._question(state, self._number(day, place), text)

    def _number(self, day: dt.date, place: int | None = None) -> What:
        """Return the number of a day: of one key, or of none."""
        where = self.prepared.measure.where
        parts = [] if where is None else [where]
        if self.keys is not None and place is not None:
            parts += parts_of(self.keys.where(place))
        if self.day is not None:
            parts += [_until(self.day, day)] if self.rule.so_far else parts_of(_on(self.day, day))
        return replace(what_of(self.rule.where), where=all_of(parts))

    def _question(self, state: State, what: What, label: str) -> Above | CountQuestion:
        """Return what is asked about a number of which this is known: free unless that has changed."""
        threshold = self.rule.threshold
        if threshold is not None and not state.high:
            return questions.above(what, threshold, label=label)
        if state.value is None:
            return questions.count(what, label=label)
        middle, reach = self._free_band(state.value)
        if self.floor is not None and isinstance(what, Distinct):
            return questions.above(what, self.floor, middle, reach, label=label)
        return questions.count(what, middle, reach, label=label)

    def _free_band(self, value: float) -> tuple[float, float]:
        """Return the middle and the half of what is free: close to the last value, and not below the floor."""
        reach = self.rule.reach(value)
        if self.floor is None or value - reach >= self.floor:
            return value, min(reach, checks.MAX_THRESHOLD)
        most = min(value + reach, max(value, self.floor) + _BAND_SCALES * self.scale, checks.MAX_THRESHOLD)
        middle = (self.floor + most) / 2
        return middle, most - middle

    def next(self, state: State, answer: Answer, label: Label) -> tuple[State, Alert | None]:
        """Return what is known of a number after an answer, and what the answer reports."""
        after = replace(state, day=label.day)
        if not answer.hit:
            return after, None
        value = value_of(answer)
        kind = self._kind(state, value)
        high = self.rule.threshold is not None and kind is not Kind.FELL and not self.rule.anew
        alert = alert_of(answer, label, kind, None if self.rule.anew else state.value)
        return replace(after, high=high, value=value), alert

    def _kind(self, state: State, value: float | None) -> Kind:
        if self.floor is not None and not state.high:
            return Kind.ROSE
        if self.floor is not None and (value is None or value < self.floor):
            return Kind.FELL
        return Kind.FIRST if state.value is None else Kind.MOVED


def check_name(name: object, what: str) -> None:
    """Refuse what is no text, or blank."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidParameter("name", name, f"text that says which {what} it is")


def day_column(table: Table, name: str | None) -> Column | None:
    """Return the column of days; refuse one that is not of dates or times."""
    if name is None:
        return None
    column = column_of(name, table.schema, "day")
    if column.kind not in (ColumnKind.DATE, ColumnKind.TIME):
        raise InvalidParameter("day", name, f"a column of dates or times, and it is {column.kind}")
    return column


def check_rule(rule: Rule | CheckedRule, table: Table, day: Column | None) -> CheckedRule:
    """Return a rule that can be asked of this table; its predicate is parsed here, and nowhere else.

    One that was checked before is returned as it is, if that was on a table like this one.

    Raises:
        InvalidParameter: if it makes no sense on these columns.
        NotAllowed: if the table cannot price it.
    """
    if isinstance(rule, CheckedRule):
        if rule.day != day or rule.prepared.epsilon != table.describe().query_epsilon:
            raise InvalidParameter("rules", rule.rule, "checked on a table with the same day column and query ε")
        table.prepare(rule.prepared)  # refused if its columns are others
        return rule
    if rule.so_far and day is None:
        raise InvalidParameter("so_far", rule.so_far, "left out where no day column is given: it is always so")
    what, threshold = what_of(rule.where), rule.threshold
    prepared = table.prepare(questions.count(what) if threshold is None else questions.above(what, threshold))
    scale = table.preview(prepared).scale
    floor = None if threshold is None else _floor(threshold, rule.margin, scale, what)
    day_name = None if day is None else day.name
    if rule.by is None:
        return CheckedRule(rule, prepared, floor, scale, version_of(rule, day_name, ()), day)
    keys = declare(rule.by, rule.keys, table.schema)
    by, watch = [column.name for column in keys.columns], None
    if threshold is not None and not isinstance(what, Distinct) and len(table.meters) == 1:
        watch = questions.watch(what, by, keys, threshold)
    version = version_of(rule, day_name, by, keys.period)
    return CheckedRule(rule, prepared, floor, scale, version, day, keys, keys.published(), watch)


def _floor(threshold: float, margin: float | None, scale: float, what: What) -> float:
    if margin is None:
        margin = _MARGIN_SCALES * scale if isinstance(what, Sum) else round(_MARGIN_SCALES * scale)
    return max(1 if isinstance(what, Distinct) else -checks.MAX_THRESHOLD, threshold - margin)


def version_of(rule: Rule, day: str | None, by: Sequence[str], period: str | None = None) -> str:
    """Return what tells a rule's text from any other, on these columns of days and of keys with this period.

    Its keys are not part of it, so that some may be added.
    """
    figures = {name: _exact(getattr(rule, name)) for name in ("threshold", "tolerance", "margin", "prior")}
    # The words that ledgers of the first format were versioned by: others would start every rule anew.
    flags = {"so_far": rule.so_far, "anew": rule.anew, "day": day, "by": list(by), "grain": period}
    body = canonical_json({"what": _versioned(what_of(rule.where)), **figures, **flags})
    return hashlib.sha256(body.encode("ascii")).hexdigest()[:_VERSION_DIGITS]


def _versioned(what: What) -> str:
    """Return what a rule is about, in the text that versions are made of: never to be reworded."""
    match what:
        case Count(where):
            return f"Units(where={where!r})"
        case Sum(column, lower, upper, where, grid):
            return f"Sum(column={column!r}, lower={lower!r}, upper={upper!r}, where={where!r}, grid={grid!r})"
        case Distinct(column, where, per_unit):
            return f"Distinct(column={column!r}, where={where!r}, per_unit={per_unit!r})"


def _exact(value: float | str | None) -> str | None:
    """Return a number exactly, the same for 150 and 150.0."""
    return value if value is None or isinstance(value, str) else str(Fraction(value))


def _on(column: Column, day: dt.date) -> Predicate:
    return declare(column.name, [day], {column.name: column}).where(0)


def _until(column: Column, day: dt.date) -> Predicate:
    last = day if column.kind is ColumnKind.DATE else dt.datetime.combine(day, dt.time.max)
    return Compare(column, Operator.LE, last)
