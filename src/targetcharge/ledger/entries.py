"""Entries: the versioned plain data that a ledger keeps, chained by hashes.

An entry holds public facts only. Its text is compact JSON; its hash covers the text and the hash before it, so
that no entry can be changed, dropped or put in without breaking the chain. The totals of a ledger are the sum of
its entries.

>>> entry = Spent("abandoned", units=(1,), count=1)
>>> entry_of(text_of(entry)) == entry
True
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, cast, final

from targetcharge.errors import LedgerError
from targetcharge.ledger.answer import Answer, Interval
from targetcharge.ledger.sheet import Sheet
from targetcharge.outcomes import Mark, Side

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = 1
"""Of the entries' format."""


@final
@dataclass(frozen=True, slots=True)
class Run:
    """Answers of a batch that left together: misses that differ in seq and key only, and perhaps a hit at the end.

    Attributes:
        answers: in order, with consecutive seqs.
    """

    answers: tuple[Answer, ...]

    @property
    def seq(self) -> int:
        """Return the seq of the last answer."""
        return self.answers[-1].seq


@final
@dataclass(frozen=True, slots=True)
class Spent:
    """A reservation was spent without an answer.

    Attributes:
        why: "failed" (the computation broke) or "abandoned" (its session ended without closing).
        units: what it charged on each meter.
        count: how many hits that was.
        algorithm: what was being computed, if known.
    """

    why: Literal["failed", "abandoned"]
    units: tuple[int, ...]
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


Entry = Answer | Run | Sheet | Spent | DeltaSpent | Restored


@dataclass(frozen=True)
class Sums:
    """What entries add up to, on every meter.

    Attributes:
        spent: units charged, for each meter.
        hits: hits charged, for each meter.
        delta: grains of the computations' own δ spent.
    """

    spent: tuple[int, ...]
    hits: tuple[int, ...]
    delta: int = 0

    @classmethod
    def zero(cls, meters: int) -> Sums:
        """Return the sums of no entries."""
        return cls((0,) * meters, (0,) * meters)

    def plus(self, entry: Entry) -> Sums:
        """Return the sums with one more entry."""
        match entry:
            case Answer():
                return self._charged(entry.units, tuple(map(int, entry.hits))) if entry.hit else self
            case Run(answers):
                return self.plus(answers[-1])
            case Sheet():
                hits = (len(entry.hits) if unit else 0 for unit in entry.first.units)
                return self._charged(entry.units, tuple(hits))
            case Spent(_, units, count):
                return self._charged(units, tuple(count if unit else 0 for unit in units))
            case DeltaSpent(grains):
                return Sums(self.spent, self.hits, self.delta + grains)
            case Restored():
                return self

    def _charged(self, units: tuple[int, ...], hits: tuple[int, ...]) -> Sums:
        return Sums(
            tuple(total + unit for total, unit in zip(self.spent, units, strict=True)),
            tuple(total + hit for total, hit in zip(self.hits, hits, strict=True)),
            self.delta,
        )


_KINDS: Final = {"spent": Spent, "delta": DeltaSpent, "restored": Restored}
_ANSWER_FIELDS: Final = tuple(part.name for part in fields(Answer))
_IF_ANY: Final = ("key", "scale", "interval", "prior", "question", "snapshot")
"""Fields of an answer that are written only where they say something."""
_NOTHING: Final[dict[str, object]] = {"scale": 0, "question": "", "snapshot": 0}
"""What some of them say otherwise; None the others."""

_PLAIN_BITS: Final = 1024
"""Integers of more bits are written in hexadecimal: Python refuses to write very long ones in decimal."""

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
"""Halves of characters: in JSON two of them become one character, and the outcome another."""


def text_of(entry: Entry) -> str:
    """Return an entry as canonical JSON."""
    match entry:
        case Answer():
            kind, body = "answer", _plain_answer(entry)
        case Run(answers):
            kind, body = "run", _plain_run(answers)
        case Sheet():
            kind, body = "sheet", _plain_sheet(entry)
        case Spent():
            kind, body = "spent", asdict(entry)
        case DeltaSpent():
            kind, body = "delta", asdict(entry)
        case Restored():
            kind, body = "restored", asdict(entry)
    return canonical({"version": VERSION, "kind": kind, **body})


def entry_of(text: str) -> Entry:
    """Return the entry that a text holds.

    Raises:
        LedgerError: if it holds none.
    """
    try:
        body = json.loads(text)
        if body.pop("version") != VERSION:
            msg = "the ledger was written by a newer version of targetcharge: upgrade to read it"
            raise LedgerError(msg)
        kind = body.pop("kind")
        if kind == "answer":
            return _answer_of(body)
        if kind == "run":
            return _run_of(body)
        if kind == "sheet":
            return _sheet_of(body)
        if "units" in body:
            body["units"] = tuple(body["units"])
        return cast("Entry", _KINDS[kind](**body))
    except (ValueError, KeyError, TypeError, AttributeError):
        msg = "an entry of the ledger cannot be read: it was damaged or changed"
    raise LedgerError(msg)


def answers_in(entry: Entry) -> tuple[Answer, ...]:
    """Return the answers that an entry holds: one, several or none."""
    if isinstance(entry, Answer):
        return (entry,)
    return entry.answers if isinstance(entry, Run | Sheet) else ()


def count_of(entry: Entry) -> int:
    """Return how many answers an entry holds, without making them."""
    match entry:
        case Answer():
            return 1
        case Run(answers):
            return len(answers)
        case Sheet():
            return len(entry)
        case _:
            return 0


def last_of(newest_first: Iterable[Entry], count: int) -> list[Answer]:
    """Return the last few answers of entries that come newest first, the oldest answer first."""
    found: list[tuple[Answer, ...]] = []
    missing = count
    for entry in newest_first:
        if missing <= 0:
            break
        found.append(answers_in(entry)[-missing:])
        missing -= len(found[-1])
    return [answer for answers in reversed(found) for answer in answers]


def charges(entry: Entry) -> bool:
    """Return whether an entry adds to the totals: not if all its answers are misses."""
    match entry:
        case Answer():
            return entry.hit
        case Run(answers):
            return answers[-1].hit
        case Sheet():
            return bool(entry.hits)
        case _:
            return True


def _plain_answer(answer: Answer) -> dict[str, object]:
    body = {name: getattr(answer, name) for name in _ANSWER_FIELDS}
    body["outcome"] = to_plain(answer.outcome)
    for name in _IF_ANY:
        if body[name] is None or (name in _NOTHING and body[name] == _NOTHING[name]):
            del body[name]
    if "key" in body:
        body["key"] = to_plain(body["key"])
    return body


def _plain_run(answers: tuple[Answer, ...]) -> dict[str, object]:
    """Return the last answer, the misses' keys, and what all the misses have in common."""
    *missed, last = answers
    keys = [to_plain(answer.key) for answer in missed]
    return {"last": _plain_answer(last), "keys": keys, "missed": _plain_answer(missed[0])}


def _answer_of(body: dict[str, Any]) -> Answer:
    body["outcome"], body["units"] = from_plain(body["outcome"]), tuple(body["units"])
    if "key" in body:
        body["key"] = from_plain(body["key"])
    if "interval" in body:
        body["interval"] = _interval_of(body["interval"])
    return Answer(**body)


def _interval_of(ends: list[float | None]) -> Interval:
    low, high = ends
    return low, high


def _run_of(body: dict[str, Any]) -> Run:
    missed, last = _answer_of(body["missed"]), _answer_of(body["last"])
    keys = enumerate(map(from_plain, body["keys"]), missed.seq)
    return Run((*(replace(missed, seq=seq, key=key) for seq, key in keys), last))


def _plain_sheet(sheet: Sheet) -> dict[str, object]:
    return {
        "first": _plain_answer(sheet.first),
        "outcomes": [to_plain(outcome) for outcome in sheet.outcomes],
        "codes": base64.b64encode(sheet.codes).decode("ascii"),
        "hits": sheet.hits,
    }


def _sheet_of(body: dict[str, Any]) -> Sheet:
    outcomes = tuple(map(from_plain, body["outcomes"]))
    codes = base64.b64decode(body["codes"], validate=True)
    sheet = Sheet(_answer_of(body["first"]), outcomes, codes, tuple(body["hits"]))
    in_order = all(before < after for before, after in pairwise((-1, *sheet.hits, len(sheet))))
    if not len(sheet) or not in_order or sheet.indices.max() >= len(outcomes):
        msg = "not a sheet"
        raise ValueError(msg)
    return sheet


def to_plain(outcome: object) -> object:
    """Return a canonical outcome as JSON data, so that `from_plain` gives back the same value and type."""
    match outcome:
        case Side():
            return {"side": outcome.value}
        case Mark():
            return {"mark": outcome.value}
        case float():
            return {"float": outcome.hex()}
        case bytes():
            return {"bytes": outcome.hex()}
        case tuple():
            return [to_plain(member) for member in outcome]
        case str() if not outcome.isascii() and _SURROGATES.search(outcome):
            return {"text": outcome.encode("utf-8", "surrogatepass").hex()}
        case int() if outcome.bit_length() > _PLAIN_BITS:
            return {"int": hex(outcome)}
        case _:
            return outcome


def from_plain(plain: object) -> object:
    """Return the outcome."""
    match plain:
        case {"side": str(value)}:
            return Side(value)
        case {"mark": str(value)}:
            return Mark(value)
        case {"float": str(value)}:
            return float.fromhex(value)
        case {"bytes": str(value)}:
            return bytes.fromhex(value)
        case {"text": str(value)}:
            return bytes.fromhex(value).decode("utf-8", "surrogatepass")
        case {"int": str(value)}:
            return int(value, 16)
        case list():
            return tuple(from_plain(member) for member in plain)
        case _:
            return plain


_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def canonical(body: object) -> str:
    """Return plain data as compact JSON in ASCII."""
    return _encode(body)


def link(head: bytes, text: str) -> bytes:
    """Return the hash of an entry after the entries that end in `head`."""
    return hashlib.sha256(head + text.encode("ascii")).digest()


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
        """Return it as JSON, for the private table."""
        return canonical({**asdict(self), "outcome": to_plain(self.outcome)})

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
