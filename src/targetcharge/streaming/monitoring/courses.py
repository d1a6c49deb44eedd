"""Courses: what a rule knows of one number from its published answers, and what it asks next.

The course of a number is a function of the rule and of the transcript, so every process sees the same one, and a
crash loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from targetcharge import checks
from targetcharge.streaming.monitoring.alerts import Alert, Kind
from targetcharge.tables import questions
from targetcharge.tables.questions import Distinct

if TYPE_CHECKING:
    import datetime as dt

    from targetcharge.ledger import Answer
    from targetcharge.streaming.monitoring.labels import Label
    from targetcharge.streaming.monitoring.rules import Rule
    from targetcharge.tables.questions import Above, Value, What

_UNITS: Final = 2.0**40
"""Noise scales above a threshold that no number reaches; few enough that the ends of the band stay sharp."""


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
class Course:
    """A rule about one number.

    Attributes:
        rule: what is asked, and what is reported.
        floor: below which a number that has risen has fallen; None without a threshold.
        scale: of the noise.
    """

    rule: Rule
    floor: float | None
    scale: float

    @property
    def start(self) -> State:
        """Return what is known before the first look."""
        prior, threshold = self.rule.prior, self.rule.threshold
        return State(prior is not None and threshold is not None and prior >= threshold, prior)

    def question(self, state: State, what: What, label: str) -> Above | Value:
        """Return what is asked about a number of which this is known: free unless that has changed."""
        threshold = self.rule.threshold
        if threshold is not None and not state.high:
            return questions.above(what, threshold, label=label)
        if state.value is None:
            return questions.value(what, label=label)
        middle, reach = self._band(state.value)
        if self.floor is not None and isinstance(what, Distinct):
            return questions.above(what, self.floor, middle, reach, label=label)
        return questions.value(what, middle, reach, label=label)

    def _band(self, value: float) -> tuple[float, float]:
        """Return the middle and the half of what is free: close to the last value, and not below the floor."""
        reach = self.rule.reach(value)
        if self.floor is None or value - reach >= self.floor:
            return value, min(reach, checks.MAX_THRESHOLD)
        most = min(value + reach, max(value, self.floor) + _UNITS * self.scale, checks.MAX_THRESHOLD)
        middle = (self.floor + most) / 2
        return middle, most - middle

    def next(self, state: State, answer: Answer, label: Label) -> tuple[State, Alert | None]:
        """Return what is known after an answer, and what it reports."""
        after = replace(state, day=label.day)
        if not answer.hit:
            return after, None
        value = _value(answer)
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


def alert_of(answer: Answer, label: Label, kind: Kind, prior: float | None = None) -> Alert:
    """Return what an answer that is a hit reports."""
    return Alert(
        label.monitor,
        label.rule,
        label.key,
        label.day,
        kind,
        _value(answer),
        answer.interval,
        prior,
        answer.seq,
        answer.snapshot,
        answer.received,
    )


def _value(answer: Answer) -> float | None:
    return answer.outcome if isinstance(answer.outcome, int | float) else None
