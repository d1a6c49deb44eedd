"""The history of a ledger: read once from its first entry to its last. Pending outcomes are never read.

>>> from targetcharge.ledger import Answer
>>> contents = Contents()
>>> contents.add(Answer(None, False, 0.0, 1, "count(*) >= 50", (("NotPrior", None),), received=0.0, key="Kent"))
>>> contents.add(Answer(57, True, 1.0, 2, "count(*) >= 50", (("NotPrior", None),), received=600.0))
>>> [(tally.question, tally.costs, tally.asked, tally.hits) for tally in contents.tallies.values()]
[('count(*) >= 50', 'a value is published', 2, 1)]
>>> contents.timed, contents.positions().tolist()
(True, [0.0, 1.0])
"""

from __future__ import annotations

import json
import math
import sqlite3
from array import array
from collections import Counter, deque
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

from targetcharge import markup
from targetcharge.accounting.targets import Everything
from targetcharge.accounting.targets.plain import costs_in_words, priced_like
from targetcharge.errors import LedgerError, shown
from targetcharge.ledger.entries import Restored, Spent, answers_in, entry_of
from targetcharge.ledger.sqlite import Inspection, RestoredCopyError, inspect, verify
from targetcharge.ledger.sqlite.database import Database
from targetcharge.ledger.words import key
from targetcharge.mechanisms.noise import CONFIDENCE, NoiseLaw
from targetcharge.outcomes import UNCHANGED
from targetcharge.tables.individual.departures import Departures
from targetcharge.tables.monitor.alerts import asked_by, label_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from targetcharge.accounting.targets.plain import PlainTarget
    from targetcharge.ledger import Answer, Entry

_MOST_HITS: Final = 300  # so many are listed, the last ones
_AT_ONCE: Final = 60.0  # seconds within which everything happened at once
_COSTS: Final = {
    "Everything": "always",
    "Boundary": "it is too close to call",
    "Disagreement": "two runs differ",
    "Between": "it lies in the band",
    "QTarget": "it is in the target",
}
"""When a question costs, by its target."""


@final
@dataclass
class Tally:
    """The answers to one question, about one key or many.

    Attributes:
        number: of the question, in the order in which they were first asked.
        sketched: whether it counts distinct values, which a sketch estimates.
        ranges: the least and the largest price, scale, and margin (how far a published value may be off, in 95%
            of answers).
        misses: what a miss says of the true value, in words; two at most.
    """

    number: int
    question: str
    costs: str
    sketched: bool
    asked: int = 0
    hits: int = 0
    keys: set[object] = field(default_factory=set)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    misses: set[str] = field(default_factory=set)

    def add(self, answer: Answer) -> None:
        """Count an answer."""
        self.asked += 1
        self.hits += bool(answer.hit)
        if answer.key is not None:
            self.keys.add(answer.key)
        if answer.scale:
            self._widen("scale", answer.scale)
        if answer.hit:
            self._widen("price", float(f"{answer.price:.4g}"))
        low, high = answer.interval or (None, None)
        number = isinstance(answer.outcome, int | float) and not isinstance(answer.outcome, bool)
        if answer.hit and number and low is not None and high is not None:
            self._widen("margin", (high - low) / 2)
        elif not answer.hit and answer.interval and len(self.misses) < 2:
            self.misses.add(markup.interval(answer.interval))

    def _widen(self, name: str, value: float) -> None:
        low, high = self.ranges.get(name, (value, value))
        self.ranges[name] = min(low, value), max(high, value)


def _costs(answer: Answer) -> str:
    """Return when the question of an answer costs."""
    if answer.call != "ask":
        return "it is released" if answer.call in ("release", "revise") else "it is among the largest"
    match answer.targets:
        case [*_, (str(name), *_)] if name in _COSTS and {known[0] for known in answer.targets} == {name}:
            return _COSTS[name]
        case [("NotPrior", None)]:
            return "always" if _has(answer.question, "count") else "a value is published"
        case [("NotPrior", bool(prior))]:
            return f"it is not “{'yes' if prior else 'no'}”"
        case [("NotPrior", prior)]:
            return "it has changed" if prior is UNCHANGED else f"it is not {shown(prior)}"
        case [("NotPrior",)]:
            return "it is not what is expected of it"
        case _:
            return f"it is {costs_in_words(*answer.targets)}"


@lru_cache(maxsize=1000)
def _has(question: str, name: str, within: str = "") -> bool:
    """Return whether the record of a question has a field, or a field of it has; False if it is of no table."""
    with suppress(ValueError, LookupError, TypeError):
        record = json.loads(question)
        return name in (record[within] if within else record)
    return False


@final
@dataclass
class Noise:
    """The noise of one scale, how many answers had it, and whether all that they published are whole numbers."""

    scale: float
    answers: int = 0
    whole: bool = True

    def add(self, answer: Answer) -> None:
        """Count an answer."""
        self.answers += 1
        numbers = answer.outcome, *(answer.interval or ())
        self.whole = self.whole and not any(isinstance(end, float) and end % 1 for end in numbers)

    def distance(self, times: int) -> float:
        """Return so many times the scale; a whole number where all numbers are."""
        return max(1, round(times * self.scale)) if self.whole else times * self.scale

    def at_least(self, distance: float) -> float:
        """Return the chance that a number so far above the threshold (below if negative) is said to reach it."""
        tail = math.exp(-abs(distance) / self.scale) / 2
        smooth = tail if distance < 0 else 1 - tail
        return NoiseLaw(1 / self.scale).at_least(-round(distance)) if self.whole else smooth

    def margin(self) -> float:
        """Return within which distance 95% of draws are; about that where numbers are not whole."""
        return NoiseLaw(1 / self.scale).margin() if self.whole else self.scale * -math.log(1 - CONFIDENCE)


class Charge(NamedTuple):
    """The hits of an entry, or a reservation that was spent without an answer: where, and on which meters."""

    entry: int
    grains: tuple[int, ...]
    hits: int


@final
@dataclass(frozen=True)
class Contents:
    """What the entries of a ledger say, counted; and when, as positions from 0 to 1 on a line.

    The line is time; or the seqs, where all was asked more or less at once.

    Attributes:
        tallies: of each question, by its name and when it costs; of a monitor's rule one for all days.
        alone: how many answers had each ε and ρ, as they were published.
        last_hits: those that are listed, with the number of their question.
        lost: reservations that were spent without an answer.
        vouched: entries at which the owner vouched for a restored copy.
        times: when each entry with answers was asked for; its last seq and its number of answers are beside it.
        charges: in the order of the ledger; those without hits have no answer.
        snapshots: the first entry about each snapshot of the data, by the snapshot.
    """

    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    noises: dict[float, Noise] = field(default_factory=dict)
    alone: Counter[tuple[float, float]] = field(default_factory=Counter)
    last_hits: deque[tuple[int, Answer]] = field(default_factory=lambda: deque(maxlen=_MOST_HITS))
    lost: list[Spent] = field(default_factory=list)
    vouched: list[int] = field(default_factory=list)
    times: array[float] = field(default_factory=lambda: array("d"))
    seqs: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))
    charges: list[Charge] = field(default_factory=list)
    snapshots: dict[int, int] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        match entry:
            case Spent():
                self.lost.append(entry)  # it is as old as what was answered before it
                self.charges.append(Charge(max(0, len(self.times) - 1), entry.grains, 0))
            case Restored(number):
                self.vouched.append(number)
            case _ if answers := answers_in(entry):
                self._add(answers)

    def _add(self, answers: tuple[Answer, ...]) -> None:
        last = answers[-1]
        if last.snapshot:
            self.snapshots.setdefault(last.snapshot, len(self.times))
        charged = [answer.grains for answer in answers if answer.hit]
        if charged:
            grains = tuple(map(sum, zip(*charged, strict=True)))
            self.charges.append(Charge(len(self.times), grains, len(charged)))
        self.times.append(last.received)
        self.seqs.append(last.seq)
        self.counts.append(len(answers))
        for answer in answers:
            self._count(answer)

    def _count(self, answer: Answer) -> None:
        label, costs = label_of(answer), _costs(answer)
        name = label.words if label is not None else answer.algorithm, costs
        tally = self.tallies.get(name)
        if tally is None:
            question = ": ".join(filter(None, (asked_by(answer), answer.algorithm)))
            sketched = _has(answer.question, "distinct", "what")
            tally = self.tallies[name] = Tally(len(self.tallies) + 1, question, costs, sketched)
        tally.add(answer)
        if answer.hit:
            self.last_hits.append((tally.number, answer))
        if answer.release is None or answer.release == answer.seq:  # a revision is of an outcome drawn before
            self.alone[_published_alone(answer.targets, answer.epsilon)] += 1
        if answer.scale:
            self.noises.setdefault(answer.scale, Noise(answer.scale)).add(answer)

    @property
    def answers(self) -> int:
        """Return how many answers there are."""
        return sum(self.counts)

    @property
    def hits(self) -> int:
        """Return how many of them cost."""
        return sum(charge.hits for charge in self.charges)

    @property
    def timed(self) -> bool:
        """Return whether the line is time."""
        return bool(self.times) and max(self.times) - min(self.times) >= _AT_ONCE

    @property
    def ends(self) -> tuple[float, float]:
        """Return where the line begins and ends: moments, or numbers of answers."""
        if not self.times:
            return 0.0, 0.0
        if self.timed:
            return min(self.times), max(self.times)
        first = min(seq - count + 1 for seq, count in zip(self.seqs, self.counts, strict=True))
        return float(first), float(max(self.seqs))

    def positions(self) -> NDArray[np.float64]:
        """Return where each entry is on the line."""
        start, end = self.ends
        values = np.array(self.times if self.timed else self.seqs, dtype=np.float64)
        return (values - start) / (end - start) if end > start else np.full(len(values), 0.5)


@lru_cache(maxsize=1000)
def _published_alone(targets: tuple[PlainTarget, ...], epsilon: float) -> tuple[float, float]:
    """Return the ε and the ρ under which an answer alone is private: twice the ε of a run for two runs, say."""
    known = list(map(priced_like, targets))
    curves = [target.curve for target in known if isinstance(target, Everything) and target.curve is not None]
    if curves and len(curves) == len(known):  # several if it is a pick and a number
        return sum(curve.pure_epsilon for curve in curves), sum(curve.concentrated for curve in curves)
    target = known[0] if len(known) == 1 else None
    published = target.published_epsilon(epsilon) if target else epsilon
    return published, published**2 / 2


class History(NamedTuple):
    """What a ledger tells: the name of its file, its terms and where it stands, what its entries say.

    Attributes:
        problem: why it cannot be relied on, as verification said; empty if it can.
        copied: whether that is because it looks like a restored copy, and nothing in it was changed.
        unread: what could not be read, in words; empty if everything could.
        departures: at most how many units take no part any more, where each has a meter of its own; else None.
    """

    name: str
    inspection: Inspection
    contents: Contents
    problem: str
    copied: bool
    unread: str
    departures: Departures | None


def about(answer: Answer) -> str:
    """Return the day of a monitor's answer, and the key of any; empty if there is neither."""
    label = label_of(answer)
    return " · ".join(filter(None, ("" if label is None else label.day.isoformat(), key(answer))))


def read_history(path: Path) -> History:
    """Read a ledger, whose terms at least must be readable."""
    inspection = inspect(path, unchecked=True)
    problem, copied = "", False
    try:
        verify(path, path.name)  # after the reading: it covers at least what is told
    except LedgerError as error:
        problem, copied = str(error), isinstance(error, RestoredCopyError)
    contents, number, unread, departures = Contents(), 0, "", None
    if inspection.individual:
        departures = Departures.of_terms(inspection.terms)
    try:
        with closing(Database(path, read_only=True)) as database:
            for number, _, body, _ in database.rows():
                if number > inspection.state.last_entry:
                    break  # written since
                entry = entry_of(body)
                contents.add(entry)
                if departures is not None:
                    departures.add(entry)
    except (LedgerError, sqlite3.Error, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        if not problem:
            msg = f"the ledger {path} cannot be read: {error}"
            raise LedgerError(msg) from None
        unread = f"entry {number} and what follows: {error}"
    return History(path.name, inspection, contents, problem, copied, unread, departures)
