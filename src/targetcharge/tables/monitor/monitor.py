"""Monitors: look at a table day by day, and hear of what crossed its threshold or moved.

>>> import pandas as pd
>>> import targetcharge as tc
>>> from targetcharge.tables import Monitor, Rule
>>> def visits(many):
...     return pd.DataFrame({"patient": range(many)})
>>> rules = [Rule("patients", threshold=1000)]
>>> with Monitor.open(visits(500), rules, unit="patient", budget=tc.Budget(3.0, 1e-6)) as monitor:
...     looks = [monitor.look("2024-01-01"), monitor.look("2024-01-02", visits(5000)), monitor.look("2024-01-03")]
...     [[str(alert.kind) for alert in look.alerts] for look in looks], monitor.table.meter.hits
([[], ['rose'], []], 1)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, final

from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import InvalidParameter, NotAllowed, Setting
from targetcharge.ledger import Answer
from targetcharge.queries.values import as_date
from targetcharge.tables.monitor.alerts import Kind, Look, alert_of, label_of
from targetcharge.tables.monitor.rules import CheckedRule, Rule, check_name, check_rule, day_column
from targetcharge.tables.opening import TableOpening
from targetcharge.tables.prepared import TAKING_PART
from targetcharge.tables.questions import Watch
from targetcharge.tables.table import Table

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence

    from targetcharge.errors import Refused
    from targetcharge.tables.monitor.alerts import Alert, Label
    from targetcharge.tables.monitor.rules import DueQuestion


@final
class Monitor:
    """The same rules, look after look, on a table that grows.

    All that it knows comes from the transcript of the table's ledger. Another monitor with the same name and
    rules, later or in another process, goes on where this one ended. Let only one look at a time: two that look at
    the same day at the same moment both ask, and both pay.
    """

    def __init__(
        self,
        table: Table,
        rules: Sequence[Rule | CheckedRule],
        day: str | None = None,
        *,
        name: str = "monitor",
    ) -> None:
        """Check the rules against the table, and read the transcript. Nothing is asked.

        Args:
            table: that was opened by `tc.open`.
            rules: what is asked at every look, the most important first; `check_rule` may have checked them.
            day: a column of dates or times. Then a look is about the rows of its day; else about all rows.
            name: tells it from other monitors on the same ledger.
        """
        if not isinstance(table, Table):
            raise InvalidParameter("table", table, "a table, opened by tc.open")
        check_name(name, "monitor")
        if not isinstance(rules, list | tuple) or not rules:
            raise InvalidParameter("rules", rules, "a list of rules")
        if not all(isinstance(rule, Rule | CheckedRule) for rule in rules):
            raise InvalidParameter("rules", rules, "a list of rules")
        asked = [rule.rule if isinstance(rule, CheckedRule) else rule for rule in rules]
        names = [rule.name for rule in asked]
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
            raise InvalidParameter("rules", twice, "given once: every rule has a name of its own")
        other = next((rule.name for rule in asked if not rule.at_least), None)
        if other is not None and table.meter.tariff.at_least:
            sentence = f"the rule {other!r} also asks whether a number has fallen or changed: open its table with "
            raise NotAllowed(sentence, Setting("meter", "renyi" if table.meter.individual else "exact"))
        column = day_column(table, day)
        self.name = name
        self._table = table
        self._whose = TAKING_PART if table.meter.individual else ""
        self._rules = tuple(check_rule(rule, table, column) for rule in rules)
        self._rule_of = {number_id: rule for rule in self._rules for number_id in rule.number_ids}
        self._states = {number_id: rule.start for number_id, rule in self._rule_of.items()}
        self._alerts: list[Alert] = []
        self._former: dict[int, Alert] = {}
        self._last: dt.date | None = None
        self._appended: dt.date | None = None
        self._seen = 0
        self._behind = True  # misses of this session may wait to be written: only the whole transcript has them
        self._refresh()

    @classmethod
    def open(
        cls,
        source: object,
        rules: Sequence[Rule],
        day: str | None = None,
        *,
        name: str = "monitor",
        **opening: Any,  # noqa: ANN401 - as tc.open has them
    ) -> Monitor:
        """Open a table for rules, and a monitor on it: with a sparse meter if they only ask for thresholds anew.

        Args (others as in `Monitor`):
            source: as `tc.open` takes it.
            opening: unit, budget and all else that `tc.open` takes.
        """
        opened = opening_for(rules, TableOpening(source, **opening))
        table = opened.open(opened.engine())
        try:
            return cls(table, rules, day, name=name)
        except BaseException:
            table.close()
            raise

    @property
    def table(self) -> Table:
        """Return the table that is looked at."""
        return self._table

    def close(self) -> None:
        """Close the table."""
        self._table.close()

    def __enter__(self) -> Monitor:
        """Return the monitor; its table is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the table."""
        self.close()

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
        date = self.check_day(day)
        if rows is not None:
            if self._appended == date:
                raise InvalidParameter("rows", rows, f"left out: rows of {date} are appended already")
            self._table.append(rows)
            self._appended = date
        self._behind = True  # should it break on the way, some may have been answered
        refusal = self._ask(self._due(date))
        self._behind = False
        alerts = {(alert.rule, alert.key): alert for alert in self._alerts if alert.day == date}
        answered = {(rule, key): state.day == date for (rule, _, key), state in self._states.items()}
        return Look(
            date,
            tuple(alerts[name] for name in answered if name in alerts),
            tuple(name for name, known in answered.items() if known and name not in alerts),
            tuple(name for name, known in answered.items() if not known),
            refusal,
        )

    def due(self, day: dt.date | str) -> list[DueQuestion]:
        """Return the questions that a look at a day would ask; nothing is asked."""
        self._refresh()
        return self._due(self.check_day(day))

    def alerts(self, after: int = 0, *, former: bool = False) -> list[Alert]:
        """Return all alerts of these rules in the transcript with a later seq, oldest first.

        Args:
            after: a seq.
            former: whether those of rules and keys that this monitor had once, and has no more, are among them.
        """
        self._refresh()
        alerts = [*self._alerts, *self._former.values()] if former else self._alerts
        return sorted((alert for alert in alerts if alert.seq > after), key=lambda alert: alert.seq)

    @property
    def last(self) -> dt.date | None:
        """Return the last day that a monitor of this name has looked at; None if there is none."""
        self._refresh()
        return self._last

    def check_day(self, day: dt.date | str, parameter: str = "day") -> dt.date:
        """Return a day that may be looked at; refuse one before the last. The caller calls it `parameter`."""
        date = as_date(day)
        if date is None:
            raise InvalidParameter(parameter, day, "a date, or text such as '2024-01-31'")
        if self._last is not None and date < self._last:
            expected = f"{self._last} or later: the monitor {self.name!r} has looked at that day already"
            raise InvalidParameter(parameter, date.isoformat(), expected)
        return date

    def learn(self, answers: Iterable[Answer]) -> None:
        """Learn from answers, also of another transcript; those that are known already say nothing new."""
        expected = "answers, such as a transcript"
        if not isinstance(answers, Iterable):
            raise InvalidParameter("answers", answers, expected)
        for answer in answers:
            if not isinstance(answer, Answer):
                raise InvalidParameter("answers", answer, expected)
            label = label_of(answer)
            if label is not None and label.monitor == self.name:
                if self._last is None or label.day > self._last:
                    self._last = label.day
                self._learn(answer, label)

    def _learn(self, answer: Answer, label: Label) -> None:
        number_id = (label.rule, label.version, label.key)
        state = self._states.get(number_id)
        if state is None and answer.hit:
            self._former[answer.seq] = replace(alert_of(answer, label, Kind.FORMER), whose=self._whose)
        if state is None or (state.day is not None and label.day <= state.day):
            return
        self._states[number_id], alert = self._rule_of[number_id].next(state, answer, label)
        if alert is not None:
            self._alerts.append(replace(alert, whose=self._whose))

    def _refresh(self) -> None:
        """Read what was written to the ledger since, here or elsewhere."""
        self._seen, answers = self._table.transcript.since(self._seen)
        self.learn(answers)
        if self._behind:
            self.learn(self._table.transcript)
            self._behind = False

    def _due(self, day: dt.date) -> list[DueQuestion]:
        return [question for rule in self._rules for question in rule.due(self.name, day, self._states)]

    def _ask(self, due: list[DueQuestion]) -> Refused | None:
        """Ask questions in order; return why not all were answered, None if they were."""
        for place, questions in enumerate(_calls(due)):
            first = questions[0]
            try:
                answers = self._table.ask(first) if isinstance(first, Watch) else self._table.ask_many(questions)
            except NotAllowed as error:
                if not place:
                    raise
                return error.with_traceback(None)
            self.learn(answers)
            if answers.refusal is not None:
                return answers.refusal
        return None

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<monitor {self.name!r}, {len(self._states):,} numbers, last look {self._last}>"


def opening_for(rules: Sequence[Rule], opening: TableOpening) -> TableOpening:
    """Return how to open a table for rules: a new ledger gets the best meter that takes what they ask."""
    at_least = all(rule.at_least for rule in rules)
    if at_least or opening.exists or opening.meter not in ("auto", "exact") or opening.targets is not None:
        return opening
    return replace(opening, targets=(NotPrior(None),))


def _calls(due: Iterable[DueQuestion]) -> Iterator[list[DueQuestion]]:
    """Yield watches by themselves, and the questions between them together: they share scans where they can."""
    for watches, group in groupby(due, lambda question: isinstance(question, Watch)):
        questions = list(group)
        yield from [[question] for question in questions] if watches else [questions]
