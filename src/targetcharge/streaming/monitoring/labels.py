"""Labels: how the answers of a rule are known again in the transcript.

A label is written on every question that a monitor asks, and kept with the answer. It holds public facts only.

>>> label = Label("year", "late", "0f3a", dt.date(2013, 1, 5), "JFK")
>>> label.text()
'{"monitor":"year","rule":"late","version":"0f3a","day":"2013-01-05","key":"JFK"}'
>>> Label.read(label.text()) == label, Label.read("something else")
(True, None)
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

from targetcharge.ledger.entries import canonical, from_plain, to_plain
from targetcharge.tables.questions import what_of
from targetcharge.tables.records import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.ledger import Answer
    from targetcharge.streaming.monitoring.rules import Rule

_FIELDS: Final = {"monitor", "rule", "version", "day", "key"}
_DIGITS: Final = 16


@final
@dataclass(frozen=True)
class Label:
    """What an answer is about.

    Attributes:
        monitor: its name.
        rule: its name.
        version: of the rule's text: a rule that was changed is another one.
        day: that was looked at.
        key: as it is published; None if the rule has no keys, and on a watch, whose answers have each their own.
    """

    monitor: str
    rule: str
    version: str
    day: dt.date
    key: object = None

    def text(self) -> str:
        """Return it as canonical JSON."""
        return canonical({**vars(self), "day": self.day.isoformat(), "key": to_plain(self.key)})

    @classmethod
    def read(cls, text: str) -> Label | None:
        """Return the label that a text holds, or None if it holds none."""
        try:
            body = json.loads(text)
            if set(body) != _FIELDS:
                return None
            day, key = dt.date.fromisoformat(body["day"]), from_plain(body["key"])
            return cls(str(body["monitor"]), str(body["rule"]), str(body["version"]), day, key)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def label_of(answer: Answer) -> Label | None:
    """Return the label of an answer, or None if a monitor did not ask for it.

    Answers of a watch share a label, and each has its key.
    """
    label, watched = _read(answer.question)
    return replace(label, key=answer.key) if label is not None and watched else label


@lru_cache(maxsize=16)  # answers of a watch come one after another, with the same text
def _read(question: str) -> tuple[Label | None, bool]:
    """Return what a question's text has for a label, and whether it is one of a watch."""
    if '"label":' not in question:  # most have none, and reading them would take a while
        return None, False
    record = Record.read(question)
    return (None, False) if record is None else (Label.read(record.label), bool(record.by))


def version_of(rule: Rule, day: str | None, by: Sequence[str], grain: str | None = None) -> str:
    """Return what tells a rule's text from any other; its keys are not part of it, so that some may be added.

    Args:
        rule: whose text it is.
        day: the column of days, if there is one.
        by: the columns of the keys.
        grain: what a key of times stands for: a day or an hour; None for the time itself.
    """
    said = {name: _figure(getattr(rule, name)) for name in ("threshold", "tolerance", "margin", "prior")}
    flags = {"so_far": rule.so_far, "anew": rule.anew, "day": day, "by": list(by), "grain": grain}
    body = canonical({"what": repr(what_of(rule.what)), **said, **flags})
    return hashlib.sha256(body.encode("ascii")).hexdigest()[:_DIGITS]


def _figure(value: float | str | None) -> str | None:
    """Return a number exactly, the same for 150 and 150.0."""
    return value if value is None or isinstance(value, str) else str(Fraction(value))
