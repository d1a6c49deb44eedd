"""Alerts: what a look at a day published, and the labels by which a monitor knows its answers again.

All of it is in the transcript, so it may be kept and passed on. A label is written on every question that a
monitor asks, and kept with the answer; it holds public facts only.

>>> alert = Alert("year", "late", None, dt.date(2013, 1, 5), Kind.ROSE, 163, (126.0, 200.0), None, 7, 5, 0.0)
>>> alert.to_json()[:92]
'{"monitor": "year", "rule": "late", "key": null, "day": "2013-01-05", "kind": "rose", "value'
>>> label = Label("year", "late", "0f3a", dt.date(2013, 1, 5), "JFK")
>>> label.text()
'{"monitor":"year","rule":"late","version":"0f3a","day":"2013-01-05","key":"JFK"}'
>>> Label.read(label.text()) == label, Label.read("something else")
(True, None)
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.outcomes import canonical_json, from_plain, to_plain, with_nulls
from targetcharge.tables.records import label_of as written_on

if TYPE_CHECKING:
    from targetcharge.errors import Refused
    from targetcharge.ledger import Answer
    from targetcharge.ledger.answer import Interval

_LABEL_FIELDS: Final = {"monitor", "rule", "version", "day", "key"}


class Kind(StrEnum):
    """What happened to a number."""

    ROSE = "rose"
    MOVED = "moved"
    FELL = "fell"
    FIRST = "first"
    FORMER = "former"


@final
@dataclass(frozen=True)
class Alert:
    """A number crossed its threshold, or moved. It was published, and it cost a hit.

    Attributes:
        monitor: its name.
        rule: its name.
        key: that it is about; None if the rule has no keys.
        day: that was looked at.
        kind: "rose" to the threshold, "fell" below it, "moved" by more than the tolerance, or "first": the first
            value of a rule that has no threshold and no prior. "former": a rule that was changed or taken away
            since, or one of its keys, fired; which of the others it was, and the prior, is not known without it.
        value: the noisy number; None if it is not told, as of distinct values that fell.
        interval: that holds the true number in at least 95% of draws.
        prior: what was known before; None if that was nothing, or no more than "below the threshold".
        seq: of the answer in the transcript. The same seq is the same alert, told again.
        snapshot: of the table that it is about.
        time: when it was asked, in seconds since 1970.
        whose: whom the number is about, in words; empty for all units.
    """

    monitor: str
    rule: str
    key: object
    day: dt.date
    kind: Kind
    value: float | None
    interval: Interval | None
    prior: float | None
    seq: int
    snapshot: int
    time: float
    whose: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; days and times as ISO text, in UTC."""
        time = dt.datetime.fromtimestamp(self.time, dt.UTC).isoformat(timespec="seconds")
        day, key = self.day.isoformat(), with_nulls(self.key)
        return {**vars(self), "key": key, "day": day, "kind": self.kind.value, "time": time}

    def to_json(self) -> str:
        """Return the alert as one line of JSON."""
        return json.dumps(self.as_dict())

    def __str__(self) -> str:
        """Return the alert as a sentence."""
        key = "" if self.key is None else f" {self.key}"
        verb = {Kind.FIRST: "is", Kind.FORMER: "(as it was) fired"}.get(self.kind, f"{self.kind}")
        prior = "" if self.prior is None else f" from {self.prior:,}"
        link = {Kind.FIRST: " ", Kind.FORMER: " with "}.get(self.kind, " to ")
        value = "" if self.value is None else f"{link}{self.value:,}"
        whose = f", {self.whose}" if self.whose else ""
        return f"{self.day}: {self.rule}{key} {verb}{prior}{value}{whose}"


@final
@dataclass(frozen=True)
class Look:
    """What came of looking at a day.

    Attributes:
        day: that was looked at.
        alerts: what fired, in the order of the rules: one for each hit.
        quiet: rule and key of what was answered and did not fire.
        unanswered: rule and key of what was not answered.
        refusal: why not; None if all were.
    """

    day: dt.date
    alerts: tuple[Alert, ...]
    quiet: tuple[tuple[str, object], ...]
    unanswered: tuple[tuple[str, object], ...] = ()
    refusal: Refused | None = field(default=None, compare=False)

    @property
    def stopped(self) -> str:
        """Return why not all was answered, in a sentence; empty if all was."""
        return "" if self.refusal is None else str(self.refusal)


@final
@dataclass(frozen=True)
class Label:
    """What an answer is about.

    Attributes:
        monitor: its name.
        rule: its name.
        version: of the rule's text: a rule that was changed is another one.
        day: that was looked at.
        key: as it is published; None if the rule has no keys, and on a watch, each of whose answers has a key.
    """

    monitor: str
    rule: str
    version: str
    day: dt.date
    key: object = None

    def text(self) -> str:
        """Return the label as canonical JSON."""
        return canonical_json({**vars(self), "day": self.day.isoformat(), "key": to_plain(self.key)})

    @property
    def words(self) -> str:
        """Return whose rule asked."""
        return f"rule {self.rule} of the monitor {self.monitor}"

    @classmethod
    def read(cls, text: str) -> Label | None:
        """Return the label that a text holds, or None if it holds none."""
        try:
            body = json.loads(text)
            if set(body) != _LABEL_FIELDS:
                return None
            day, key = dt.date.fromisoformat(body["day"]), from_plain(body["key"])
            return cls(str(body["monitor"]), str(body["rule"]), str(body["version"]), day, key)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def label_of(answer: Answer) -> Label | None:
    """Return the label of an answer, or None if a monitor did not ask for it.

    Answers of a watch share a label, and each has its key.
    """
    label, watched = _read_label(answer.question)
    return replace(label, key=answer.key) if label is not None and watched else label


def asked_by(answer: Answer) -> str:
    """Return whose rule asked for an answer, or what else was written on its question; empty if nothing was."""
    label = label_of(answer)
    return label.words if label is not None else written_on(answer.question)[0]


@lru_cache(maxsize=16)  # answers of a watch come one after another, with the same text
def _read_label(question: str) -> tuple[Label | None, bool]:
    """Return what a question's text has for a label, and whether it is one of a watch."""
    text, by_key = written_on(question)
    return Label.read(text) if text else None, by_key


def alert_of(answer: Answer, label: Label, kind: Kind, prior: float | None = None) -> Alert:
    """Return what an answer that is a hit reports."""
    about = (label.monitor, label.rule, label.key, label.day)
    return Alert(
        *about, kind, value_of(answer), answer.interval, prior, answer.seq, answer.snapshot, answer.received
    )


def value_of(answer: Answer) -> float | None:
    """Return the number that an answer published; None if it is no number."""
    return answer.outcome if isinstance(answer.outcome, int | float) else None
