"""Alerts: what a look published. All of it is in the transcript, so it may be kept and passed on.

>>> alert = Alert("year", "late", None, dt.date(2013, 1, 5), Kind.ROSE, 163, (126.0, 200.0), None, 7, 5, 0.0)
>>> alert.to_json()[:92]
'{"monitor": "year", "rule": "late", "key": null, "day": "2013-01-05", "kind": "rose", "value'
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from targetcharge.ledger.answer import Interval


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

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; days and times as ISO text, in UTC."""
        time = dt.datetime.fromtimestamp(self.time, dt.UTC).isoformat(timespec="seconds")
        return {**vars(self), "day": self.day.isoformat(), "kind": self.kind.value, "time": time}

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(self.as_dict())

    def __str__(self) -> str:
        """Return it as a sentence."""
        key = "" if self.key is None else f" {self.key}"
        verb = {Kind.FIRST: "is", Kind.FORMER: "(as it was) fired"}.get(self.kind, f"{self.kind}")
        prior = "" if self.prior is None else f" from {self.prior:,}"
        link = {Kind.FIRST: " ", Kind.FORMER: " with "}.get(self.kind, " to ")
        value = "" if self.value is None else f"{link}{self.value:,}"
        return f"{self.day}: {self.rule}{key} {verb}{prior}{value}"


@final
@dataclass(frozen=True)
class Look:
    """What came of looking at a day.

    Attributes:
        day: that was looked at.
        alerts: what fired, in the order of the rules.
        quiet: rule and key of what was answered and did not fire.
        unanswered: rule and key of what was not answered.
        stopped: why not, in a sentence; empty if all were.
    """

    day: dt.date
    alerts: tuple[Alert, ...]
    quiet: tuple[tuple[str, object], ...]
    unanswered: tuple[tuple[str, object], ...] = ()
    stopped: str = ""
