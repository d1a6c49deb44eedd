"""Subjects: the numbers that the rules of a monitor are about, checked against the table before any is asked."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.queries.columns import Kind as ColumnKind
from targetcharge.queries.columns import column_of
from targetcharge.queries.declared_keys import declared
from targetcharge.queries.predicates import Compare, Operator
from targetcharge.streaming.monitoring.courses import Course
from targetcharge.streaming.monitoring.labels import Label, version_of
from targetcharge.tables import questions
from targetcharge.tables.keys import published
from targetcharge.tables.questions import Above, Distinct, Sum, Value, Watch, what_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from targetcharge.queries.columns import Column
    from targetcharge.queries.keys import Keys
    from targetcharge.streaming.monitoring.courses import State
    from targetcharge.streaming.monitoring.rules import Rule
    from targetcharge.tables import Table
    from targetcharge.tables.questions import What

_SCALES: Final = 4
"""Of the noise, between the threshold and where a number that has risen has fallen."""

Name = tuple[str, str, object]
"""A rule's name, the version of its text, and a key: what the answers about a number are known by."""

Due = Above | Value | Watch
"""What a monitor asks."""


@final
@dataclass(frozen=True)
class Subject:
    """What a rule is about: a number, or one for each of its keys.

    Attributes:
        course: of each number.
        version: of the rule's text.
        day: the column of days, if there is one.
        keys: the rows of each key; None if the rule has none.
        told: the keys as they are published; only None if the rule has none.
        watch: of all keys, to ask those that are low in one scan; None if each is asked by itself.
    """

    course: Course
    version: str
    day: Column | None
    keys: Keys | None
    told: tuple[object, ...]
    watch: Watch | None

    @property
    def names(self) -> list[Name]:
        """Return what the answers about its numbers are known by."""
        return [(self.course.rule.name, self.version, key) for key in self.told]

    def due(self, monitor: str, day: dt.date, states: Mapping[Name, State]) -> Iterator[Due]:
        """Yield what is asked about a day: what is low together, then all others one by one.

        Args:
            monitor: its name.
            day: that is looked at.
            states: what is known of the numbers; those that are answered about the day are not asked.
        """
        left = [(place, states[name]) for place, name in enumerate(self.names) if states[name].day != day]
        label = Label(monitor, self.course.rule.name, self.version, day)
        if self.watch is not None:
            low = [place for place, state in left if not state.high]
            left = [(place, state) for place, state in left if state.high]
            if low:
                some = self.watch.keys.some(low)
                yield replace(self.watch, what=self._about(day), keys=some, label=label.text())
        for place, state in left:
            named = replace(label, key=self.told[place])
            yield self.course.question(state, self._about(day, place), named.text())

    def _about(self, day: dt.date, place: int | None = None) -> What:
        """Return the number of a day: of one key, or of none."""
        what = what_of(self.course.rule.what)
        parts = [] if what.where is None else [f"({what.where})"]
        if self.keys is not None and place is not None:
            parts.append(str(self.keys.where(place)))
        if self.day is not None:
            parts.append(_until(self.day, day) if self.course.rule.so_far else _on(self.day, day))
        return replace(what, where=" AND ".join(parts)) if parts else what


def _on(column: Column, day: dt.date) -> str:
    return str(declared(column.name, [day], {column.name: column}).where(0))


def _until(column: Column, day: dt.date) -> str:
    last = day if column.kind is ColumnKind.DATE else dt.datetime.combine(day, dt.time.max)
    return str(Compare(column, Operator.LE, last))


def day_column(table: Table, name: str | None) -> Column | None:
    """Return the column of days.

    Raises:
        InvalidParameter: if it is not one of dates or times.
    """
    if name is None:
        return None
    column = column_of(name, table.schema, "day")
    if column.kind not in (ColumnKind.DATE, ColumnKind.TIME):
        raise InvalidParameter("day", name, f"a column of dates or times, and it is {column.kind}")
    return column


def subjects_of(table: Table, rules: Sequence[Rule], day: Column | None) -> Iterator[Subject]:
    """Yield what each rule is about, in order; refuse what cannot be asked of this table.

    Raises:
        InvalidParameter: if a rule makes no sense on these columns.
        NotAllowed: if the table cannot price it.
    """
    for rule in rules:
        if rule.so_far and day is None:
            raise InvalidParameter("so_far", rule.so_far, "left out where no day column is given: it is always so")
        course, named = _course(table, rule), None if day is None else day.name
        if rule.by is None:
            yield Subject(course, version_of(rule, named, ()), day, None, (None,), None)
        else:
            keys = declared(rule.by, rule.keys, table.schema)
            version = version_of(rule, named, [column.name for column in keys.columns], keys.grain)
            yield Subject(course, version, day, keys, published(keys), _watch(table, rule, keys))


def _watch(table: Table, rule: Rule, keys: Keys) -> Watch | None:
    """Return the question about all keys, if there is one: not of distinct values, nor on several meters."""
    what = what_of(rule.what)
    if rule.threshold is None or isinstance(what, Distinct) or len(table.meters) > 1:
        return None
    return questions.watch(what, [column.name for column in keys.columns], keys, rule.threshold)


def _course(table: Table, rule: Rule) -> Course:
    """Return the course of a rule's numbers. Its text is read by itself, before others are put beside it."""
    what, threshold = what_of(rule.what), rule.threshold
    asked = questions.value(what) if threshold is None else questions.above(what, threshold)
    scale = table.preview(asked).scale
    if threshold is None:
        return Course(rule, None, scale)
    margin = rule.margin
    if margin is None:
        margin = _SCALES * scale if isinstance(what, Sum) else round(_SCALES * scale)
    least = 1 if isinstance(what, Distinct) else -checks.MAX_THRESHOLD
    return Course(rule, max(least, threshold - margin), scale)
