"""Subjects: the numbers that the rules of a monitor are about, checked against the table before any is asked."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import InvalidParameter
from targetcharge.queries.columns import Column, column_of
from targetcharge.queries.columns import Kind as ColumnKind
from targetcharge.queries.declared_keys import declared
from targetcharge.queries.predicates import Compare, Operator
from targetcharge.streaming.monitoring.courses import Course
from targetcharge.streaming.monitoring.labels import Label, version_of
from targetcharge.tables import questions
from targetcharge.tables.keys import published
from targetcharge.tables.questions import Distinct, Sum, what_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from targetcharge.queries.predicates import Predicate
    from targetcharge.streaming.monitoring.rules import Rule
    from targetcharge.tables import Table
    from targetcharge.tables.questions import What

_SCALES: Final = 4
"""Of the noise, between the threshold and where a number that has risen has fallen."""

Name = tuple[str, str, object]
"""A rule's name, the version of its text, and a key."""


@final
@dataclass(frozen=True)
class Subject:
    """A number that is asked about at every look.

    Attributes:
        course: of the number.
        version: of the rule's text.
        key: as it is published; None if the rule has none.
        where: the rows of the key.
        day: the column of days, if there is one.
    """

    course: Course
    version: str
    key: object
    where: Predicate | None
    day: Column | None

    @property
    def name(self) -> Name:
        """Return what its answers are known by."""
        return self.course.rule.name, self.version, self.key

    @property
    def told(self) -> tuple[str, object]:
        """Return what its owner calls it."""
        return self.course.rule.name, self.key

    def label(self, monitor: str, day: dt.date) -> Label:
        """Return what is written on its question about a day."""
        return Label(monitor, self.course.rule.name, self.version, day, self.key)

    def about(self, day: dt.date) -> What:
        """Return the number of a day."""
        what = what_of(self.course.rule.what)
        parts = [] if what.where is None else [f"({what.where})"]
        if self.where is not None:
            parts.append(str(self.where))
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
    column = column_of(name, _schema(table), "day")
    if column.kind not in (ColumnKind.DATE, ColumnKind.TIME):
        raise InvalidParameter("day", name, f"a column of dates or times, and it is {column.kind}")
    return column


def subjects_of(table: Table, rules: Sequence[Rule], day: Column | None) -> Iterator[Subject]:
    """Yield the numbers of all rules, in order; refuse what cannot be asked of this table.

    Raises:
        InvalidParameter: if a rule makes no sense on these columns.
        NotAllowed: if the table cannot price it.
    """
    schema = _schema(table)
    for rule in rules:
        if rule.so_far and day is None:
            raise InvalidParameter("so_far", rule.so_far, "left out where no day column is given: it is always so")
        course = _course(table, rule)
        version = version_of(rule, None if day is None else day.name, _names(rule))
        if rule.by is None:
            yield Subject(course, version, None, None, day)
            continue
        keys = declared(rule.by, rule.keys, schema)
        for index, key in enumerate(published(keys)):
            yield Subject(course, version, key, keys.where(index), day)


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
    floor = threshold - margin
    return Course(rule, max(1, floor) if isinstance(what, Distinct) else floor, scale)


def _names(rule: Rule) -> tuple[str, ...]:
    by = rule.by
    return () if by is None else (by,) if isinstance(by, str) else tuple(by)


def _schema(table: Table) -> Mapping[str, Column]:
    return {name: Column(name, ColumnKind(kind)) for name, kind in table.describe().columns}
