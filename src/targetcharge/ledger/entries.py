"""Entries: the versioned plain data that a ledger keeps.

An entry holds public facts only. Its text is compact JSON.

>>> entry = Spent("abandoned", grains=(1,), count=1)
>>> entry_of(text_of(entry)) == entry
True
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, cast, final

from targetcharge.errors import LedgerError
from targetcharge.ledger import version_1
from targetcharge.ledger.answer import Answer, BatchEntry, Interval
from targetcharge.outcomes import canonical_json, from_plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = 2
"""Of the entries' format. Version 1 is read too, also in the middle of a ledger that goes on in version 2."""


@final
@dataclass(frozen=True, slots=True)
class Spent:
    """A reservation was spent without an answer.

    Attributes:
        why: "failed" (the computation broke) or "abandoned" (its session ended without closing).
        grains: what it charged on each meter.
        count: how many hits that was.
        algorithm: what was being computed, if known.
    """

    why: Literal["failed", "abandoned"]
    grains: tuple[int, ...]
    count: int
    algorithm: str = ""


@final
@dataclass(frozen=True, slots=True)
class DeltaSpent:
    """A computation with a δ of its own is about to run.

    Attributes:
        grains: its δ, in grains of 2^-128.
    """

    grains: int


@final
@dataclass(frozen=True, slots=True)
class Restored:
    """The owner vouched that a restored ledger holds everything that was ever published.

    Attributes:
        number: of the last entry at that time.
    """

    number: int


Entry = Answer | BatchEntry | Spent | DeltaSpent | Restored


_KINDS: Final = {"spent": Spent, "delta": DeltaSpent, "restored": Restored}
_ANSWER_FIELDS: Final = tuple(part.name for part in fields(Answer))
_UNSAID: Final[dict[str, object]] = {
    **dict.fromkeys(("candidate", "release", "key", "interval", "prior")),
    "scale": 0,
    "question": "",
    "snapshot": 0,
    "call": "ask",
    "repeat": False,
}
"""Fields of an answer that are written only where they say something else."""


def text_of(entry: Entry) -> str:
    """Return an entry as canonical JSON."""
    match entry:
        case Answer():
            kind, body = "answer", _plain_answer(entry)
        case BatchEntry():
            kind, body = "batch", _plain_batch(entry)
        case Spent():
            kind, body = "spent", asdict(entry)
        case DeltaSpent():
            kind, body = "delta", asdict(entry)
        case Restored():
            kind, body = "restored", asdict(entry)
    return canonical_json({"version": VERSION, "kind": kind, **body})


def entry_of(text: str) -> Entry:
    """Return the entry that a text holds.

    Raises:
        LedgerError: if it holds none.
    """
    try:
        body = json.loads(text)
        version, kind = body.pop("version"), body.pop("kind")
        if version not in (1, VERSION):
            msg = "the ledger was written by a newer version of targetcharge: upgrade to read it"
            raise LedgerError(msg)
        if version == 1:
            kind, body = version_1.entry(kind, body)
        if kind == "answer":
            return _answer_of(body)
        if kind == "batch":
            return _batch_of(body)
        if "grains" in body and kind == "spent":
            body["grains"] = tuple(body["grains"])
        return cast("Entry", _KINDS[kind](**body))
    except (ValueError, KeyError, TypeError, AttributeError):
        msg = "an entry of the ledger cannot be read: it was damaged or changed"
    raise LedgerError(msg)


def answers_in(entry: Entry) -> tuple[Answer, ...]:
    """Return the answers that an entry holds: one, several or none."""
    if isinstance(entry, Answer):
        return (entry,)
    return entry.answers if isinstance(entry, BatchEntry) else ()


def snapshot_of(entry: Entry) -> int:
    """Return the snapshot of a table that an entry's answers are about; 0 if it has none."""
    match entry:
        case Answer():
            return entry.snapshot
        case BatchEntry():
            return entry.first.snapshot
        case _:
            return 0


def count_of(entry: Entry) -> int:
    """Return how many answers an entry holds, without making them."""
    match entry:
        case Answer():
            return 1
        case BatchEntry():
            return len(entry)
        case _:
            return 0


def last_of(newest_first: Iterable[Entry], count: int) -> list[Answer]:
    """Return the last few answers of entries that come newest first, the oldest answer first."""
    groups: list[tuple[Answer, ...]] = []
    missing = count
    for entry in newest_first:
        if missing <= 0:
            break
        groups.append(answers_in(entry)[-missing:])
        missing -= len(groups[-1])
    return [answer for answers in reversed(groups) for answer in answers]


def charges(entry: Entry) -> bool:
    """Return whether an entry adds to the totals: not if all its answers are misses."""
    match entry:
        case Answer():
            return entry.hit
        case BatchEntry():
            return bool(entry.hit_places)
        case _:
            return True


def _plain_answer(answer: Answer) -> dict[str, object]:
    body = {name: getattr(answer, name) for name in _ANSWER_FIELDS}
    for name, unsaid in _UNSAID.items():
        if body[name] is unsaid or (unsaid is not None and body[name] == unsaid):
            del body[name]
    for name in ("outcome", "targets", "key"):
        if name in body:
            body[name] = to_plain(body[name])
    return body


def _answer_of(body: dict[str, Any]) -> Answer:
    for name in ("outcome", "targets", "key"):
        if name in body:
            body[name] = from_plain(body[name])
    body["grains"] = tuple(body["grains"])
    if "interval" in body:
        body["interval"] = _interval_of(body["interval"])
    return Answer(**body)


def _interval_of(ends: list[float | None]) -> Interval:
    low, high = ends
    return low, high


def _plain_batch(batch: BatchEntry) -> dict[str, object]:
    body = {
        "first": _plain_answer(batch.first),
        "outcomes": to_plain(batch.outcomes),
        "codes": base64.b64encode(batch.codes).decode("ascii"),
        "hit_places": batch.hit_places,
    }
    if batch.keys is not None:
        body["keys"] = to_plain(batch.keys)
    if batch.intervals:
        body["intervals"] = batch.intervals
    return body


def _batch_of(body: dict[str, Any]) -> BatchEntry:
    outcomes = tuple(map(from_plain, body["outcomes"]))
    keys = tuple(map(from_plain, body["keys"])) if "keys" in body else None
    intervals = tuple(ends and _interval_of(ends) for ends in body.get("intervals", ()))
    codes = base64.b64decode(body["codes"], validate=True)
    batch = BatchEntry(_answer_of(body["first"]), outcomes, codes, tuple(body["hit_places"]), keys, intervals)
    in_order = all(before < after for before, after in pairwise((-1, *batch.hit_places, len(batch))))
    complete = len(keys or codes) >= len(batch) and len(intervals or outcomes) == len(outcomes)
    if not len(batch) or not in_order or not complete or batch.indices.max() >= len(outcomes):
        msg = "not a batch"
        raise ValueError(msg)
    return batch


@final
@dataclass(frozen=True)
class Pending:
    """A drawn outcome that was not published yet. As secret as the data: it never leaves the curator.

    Attributes:
        release: the seq of its release.
        outcome: what was drawn.
        algorithm: the algorithm's name.
        epsilon: the computation's ε, which prices a hit.
        delta: the computation's δ, already spent.
        scale: of the noise.
        interval: what the outcome says of the true value.
        snapshot: of the table that it was drawn from.
    """

    release: int
    outcome: object = field(repr=False)
    algorithm: str
    epsilon: float
    delta: float
    scale: float = 0.0
    interval: Interval | None = field(default=None, repr=False)
    snapshot: int = 0

    def text(self) -> str:
        """Return the pending outcome as JSON, for the private table."""
        return canonical_json({**asdict(self), "outcome": to_plain(self.outcome)})

    @classmethod
    def of(cls, text: str) -> Pending:
        """Return what the private table holds.

        Raises:
            LedgerError: if it holds something else; nothing of that is told.
        """
        try:
            body = json.loads(text)
            interval = _interval_of(body["interval"]) if body.get("interval") else None
            return cls(**{**body, "outcome": from_plain(body["outcome"]), "interval": interval})
        except (ValueError, KeyError, TypeError, AttributeError):
            msg = "a pending release of the ledger cannot be read: it was damaged or changed"
        raise LedgerError(msg)
