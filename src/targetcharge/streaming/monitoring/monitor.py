"""Monitors: look at a table day by day, and hear of what crossed its threshold or moved.

>>> import pandas as pd
>>> import targetcharge as tc
>>> from targetcharge.streaming.monitoring import Monitor, Rule
>>> def visits(many):
...     return pd.DataFrame({"patient": range(many)})
>>> with tc.open(visits(500), "patient", tc.Budget(3.0, 1e-6), query_epsilon=0.1) as t:
...     monitor = Monitor(t, [Rule("patients", threshold=1000)])
...     looks = [monitor.look("2024-01-01"), monitor.look("2024-01-02", visits(5000)), monitor.look("2024-01-03")]
...     [[str(alert.kind) for alert in look.alerts] for look in looks], t.meter.hits
([[], ['rose'], []], 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from targetcharge.errors import BudgetSpent, InvalidParameter, NotAllowed
from targetcharge.queries.instants import as_date
from targetcharge.streaming.monitoring.alerts import Kind, Look
from targetcharge.streaming.monitoring.courses import alert_of
from targetcharge.streaming.monitoring.labels import label_of
from targetcharge.streaming.monitoring.rules import Rule, check_name
from targetcharge.streaming.monitoring.subjects import day_column, subjects_of
from targetcharge.tables import Table
from targetcharge.tables.questions import Watch

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Sequence

    from targetcharge.ledger import Answer
    from targetcharge.streaming.monitoring.alerts import Alert
    from targetcharge.streaming.monitoring.labels import Label
    from targetcharge.streaming.monitoring.subjects import Due, Name
    from targetcharge.tables.questions import Above, Value


@final
class Monitor:
    """The same rules, look after look, on a table that grows.

    All that it knows comes from the transcript of the table's ledger. Another monitor with the same name and
    rules, later or in another process, goes on where this one ended. Let only one look at a time: two that look at
    the same day at the same moment both ask, and both pay.
    """

    def __init__(
        self, table: Table, rules: Sequence[Rule], day: str | None = None, *, name: str = "monitor"
    ) -> None:
        """Check the rules against the table, and read the transcript. Nothing is asked.

        Args:
            table: that was opened by `tc.open`.
            rules: what is asked at every look, the most important first.
            day: a column of dates or times. Then a look is about the rows of its day; else about all rows.
            name: tells it from other monitors on the same ledger.
        """
        if not isinstance(table, Table):
            raise InvalidParameter("table", table, "a table, opened by tc.open")
        check_name(name, "monitor")
        if not isinstance(rules, list | tuple) or not rules or not all(isinstance(rule, Rule) for rule in rules):
            raise InvalidParameter("rules", rules, "a list of rules")
        names = [rule.name for rule in rules]
        if again := next((each for place, each in enumerate(names) if each in names[:place]), None):
            raise InvalidParameter("rules", again, "given once: every rule has a name of its own")
        self.name = name
        self._table = table
        self._subjects = tuple(subjects_of(table, rules, day_column(table, day)))
        self._courses = {name: subject.course for subject in self._subjects for name in subject.names}
        self._states = {name: course.start for name, course in self._courses.items()}
        self._alerts: list[Alert] = []
        self._former: dict[int, Alert] = {}
        self._last: dt.date | None = None
        self._appended: dt.date | None = None
        self._read = 0
        self._torn = True  # misses of this session may wait to be written: only the whole transcript has them
        self._refresh()

    def look(self, day: dt.date | str, rows: object = None) -> Look:
        """Ask every rule once about a day; what is answered in the transcript already is not asked again.

        The last day that was looked at may be looked at again, such as after a crash: that is free but for what
        was not answered. When the budget is spent on the way, what was answered is returned, with what was not.

        Args:
            day: the day, or text such as '2024-01-31'; no earlier than any that was looked at.
            rows: to append first, as `Table.append` takes them.

        Raises:
            InvalidParameter: if the day is before the last one, or the rows do not have the table's columns; then
                nothing was added and nothing asked, and the look can be repeated.
        """
        self._refresh()
        found = self.checked(day)
        if rows is not None:
            if self._appended == found:
                raise InvalidParameter("rows", rows, f"left out: rows of {found} are appended already")
            self._table.append(rows)
            self._appended = found
        return self._asked(found)

    def due(self, day: dt.date | str) -> list[Due]:
        """Return the questions that a look at a day would ask; nothing is asked."""
        self._refresh()
        return self._due(self.checked(day))

    def alerts(self, after: int = 0, *, former: bool = False) -> list[Alert]:
        """Return all alerts of these rules in the transcript with a later seq, oldest first.

        Args:
            after: a seq.
            former: whether those of rules and keys that this monitor had once, and has no more, are among them.
        """
        self._refresh()
        found = [*self._alerts, *self._former.values()] if former else self._alerts
        return sorted((alert for alert in found if alert.seq > after), key=lambda alert: alert.seq)

    def recall(self, answers: Iterable[Answer]) -> None:
        """Learn from answers of another transcript, to see what would be due on its ledger."""
        self._take(answers)

    @property
    def last(self) -> dt.date | None:
        """Return the last day that a monitor of this name has looked at; None if there is none."""
        self._refresh()
        return self._last

    def checked(self, day: dt.date | str, parameter: str = "day") -> dt.date:
        """Return a day that may be looked at.

        Args:
            day: the day, or text such as '2024-01-31'.
            parameter: what the caller calls it.

        Raises:
            InvalidParameter: if it is before the last one.
        """
        found = as_date(day)
        if found is None:
            raise InvalidParameter(parameter, day, "a date, or text such as '2024-01-31'")
        if self._last is not None and found < self._last:
            expected = f"{self._last} or later: the monitor {self.name!r} has looked at that day already"
            raise InvalidParameter(parameter, found.isoformat(), expected)
        return found

    def _due(self, day: dt.date) -> list[Due]:
        return [each for subject in self._subjects for each in subject.due(self.name, day, self._states)]

    def _asked(self, day: dt.date) -> Look:
        self._torn = True  # should it break on the way, some may have been answered
        stopped = self._put(self._due(day))
        self._torn = False
        alerts = {(alert.rule, alert.key): alert for alert in self._alerts if alert.day == day}
        told = {(rule, key): state.day == day for (rule, _, key), state in self._states.items()}
        fired = tuple(alerts[each] for each in told if each in alerts)
        quiet = tuple(each for each, answered in told.items() if answered and each not in alerts)
        return Look(day, fired, quiet, tuple(each for each, answered in told.items() if not answered), stopped)

    def _put(self, due: list[Due]) -> str:
        """Ask questions in order; return why not all were answered, empty if they were."""
        for number, run in enumerate(_runs(due)):
            try:
                answers = self._table.ask(run) if isinstance(run, Watch) else self._table.ask_many(run)
            except BudgetSpent as error:
                return str(error)
            except NotAllowed as error:
                if not number:
                    raise
                return str(error)
            self._take(answers)
            if answers.stopped:
                return answers.stopped
        return ""

    def _refresh(self) -> None:
        """Read what was written to the ledger since, here or elsewhere."""
        self._read, answers = self._table.transcript.since(self._read)
        self._take(answers)
        if self._torn:
            self._take(self._table.transcript)
            self._torn = False

    def _take(self, answers: Iterable[Answer]) -> None:
        """Learn from answers; those that are known already say nothing new."""
        for answer in answers:
            if (label := label_of(answer)) is None or label.monitor != self.name:
                continue
            if self._last is None or label.day > self._last:
                self._last = label.day
            self._learn((label.rule, label.version, label.key), answer, label)

    def _learn(self, name: Name, answer: Answer, label: Label) -> None:
        state = self._states.get(name)
        if state is None and answer.hit:
            self._former[answer.seq] = alert_of(answer, label, Kind.FORMER)
        if state is None or (state.day is not None and label.day <= state.day):
            return
        self._states[name], alert = self._courses[name].next(state, answer, label)
        if alert is not None:
            self._alerts.append(alert)

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<monitor {self.name!r}, {len(self._states):,} numbers, last look {self._last}>"


def _runs(due: Iterable[Due]) -> Iterator[Watch | list[Above | Value]]:
    """Yield watches by themselves, and questions between them together: they share scans where they can."""
    run: list[Above | Value] = []
    for each in due:
        if not isinstance(each, Watch):
            run.append(each)
            continue
        if run:
            yield run
            run = []
        yield each
    if run:
        yield run
