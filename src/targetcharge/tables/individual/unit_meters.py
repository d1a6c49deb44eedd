"""Unit meters: a meter for every unit, brought to the ledger's head before every draw.

`read_ledger` takes note of what the ledger holds; of the data it looks only at whether saved counters fit, and
tells nothing. Everything else runs where a session runs what sees the data. The counters are a function of the
ledger's entries and the table: they are only ever changed by what `read_ledger` noted, also by what this very
session published.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, cast, final

import numpy as np

from targetcharge.accounting.meter import Allowance
from targetcharge.errors import NotAllowed
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import Spent
from targetcharge.queries.measures import Histogram
from targetcharge.sessions.heart import Failure, attempt
from targetcharge.tables.individual.charges import AllUnits, ChargeReader, Contributors, Selected, newest
from targetcharge.tables.individual.contributors import Drawn
from targetcharge.tables.individual.counters import Counters
from targetcharge.tables.questions import Histogram as HistogramQuestion
from targetcharge.tables.questions import Top

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from targetcharge.accounting.meter import Prices
    from targetcharge.engines.engine import Contributions, Engine
    from targetcharge.ledger import Ledger
    from targetcharge.ledger.entries import Entry
    from targetcharge.mechanisms.picks import Distribution
    from targetcharge.tables.individual.charges import Charge
    from targetcharge.tables.individual.counters import Checkpoints, SavedCounters
    from targetcharge.tables.prepared import Prepared
    from targetcharge.tables.snapshots import Snapshots

_CHARGES_A_SCAN: Final = 64
"""Charges whose contributors are found in one scan; after so many the counters are saved."""

_FEW, _MANY = 64, 4096
"""Tests of a batch that are counted at once: few at first, since a hit may make the others count anew."""


@final
@dataclass(frozen=True)
class _Noted:
    """What was read of the ledger and is not in the counters yet.

    Attributes:
        number: of the last entry.
        head: its hash; None in memory.
        waiting: entries that may charge somebody.
    """

    number: int = 0
    head: bytes | None = None
    waiting: tuple[Entry, ...] = ()


@final
class UnitMeters:
    """A meter for every unit of a table: what its session asks. As secret as the data."""

    individual = True

    def __init__(
        self, engine: Engine, snapshots: Snapshots, ledger: Ledger, checkpoints: Checkpoints | None = None
    ) -> None:
        """Count for the units of an engine.

        Args:
            engine: the table.
            snapshots: of its data.
            ledger: what was published; its meter has the capacity of each unit.
            checkpoints: where counters are saved, if they are to be.
        """
        self.engine = engine
        self.snapshots = snapshots
        self.ledger = ledger
        self.allowance = Allowance.of(ledger.meters[0].tariff)
        self._charges = ChargeReader(engine.schema, self.allowance)
        self._checkpoints = checkpoints
        self._counters: Counters | None = None
        self._noted = _Noted()
        self._unsaved = 0
        self._last: Drawn | None = None

    @property
    def data(self) -> UnitMeters:
        """Return what algorithms get."""
        return self

    @property
    def snapshot(self) -> int:
        """Return the number of the snapshot that is asked."""
        return self.snapshots.number(self.engine)

    def read_ledger(self) -> None:
        """Take note of what is new in the ledger.

        Raises:
            NotAllowed: if it holds answers about data that was not appended here.
        """
        self._read()

    def _read(self) -> Counters:
        """Take note of what is new in the ledger; return the counters, to which what was noted is charged."""
        counters = self._started() if self._counters is None else self._counters
        noted = self._noted
        number, entries = self.ledger.since(noted.number)
        if number == noted.number:
            return counters
        if newest(entries) > self.engine.snapshot:
            msg = (
                f"the ledger has answers about snapshot {newest(entries)} of the data, and this table has"
                f" {self.engine.snapshot}: append here too what was appended there"
            )
            raise NotAllowed(msg)
        charging = [entry for entry in entries if _charges(entry)]
        if charging:
            self.engine.check_unchanged()  # who contributed is found in the data that the answers are about
        self._noted = _Noted(number, self.ledger.hash_at(number), (*noted.waiting, *charging))
        return counters

    def _started(self) -> Counters:
        """Start from the last saved counters that belong to this ledger and this table; else from nothing."""
        counters = Counters(self.allowance)
        saved = self._saved()
        if saved is not None and self.ledger.hash_at(saved.number) == saved.head:
            counters.spent, counters.base = saved.spent, saved.base
            self._noted = _Noted(saved.number, saved.head)
        else:
            self._noted = _Noted()
        self._counters = counters
        return counters

    def _saved(self) -> SavedCounters | None:
        """Return saved counters; none if they cannot be read, or the engine fails to tell whether they fit."""
        if self._checkpoints is None:
            return None
        saved = attempt(partial(self._checkpoints.load, self.engine, self.allowance))
        if isinstance(saved, Failure):
            if not isinstance(error := saved.error(), Exception):
                raise error  # somebody pressed Ctrl-C
            return None
        return saved

    def settle(self) -> Counters:
        """Charge what was noted; return the counters, which are at the ledger's head as it was read."""
        counters = self._read() if self._counters is None else self._counters
        noted = self._noted
        self._counters = None  # if this is interrupted, all is made again
        counters.grow(self.engine.units())
        charges = list(self._charges.of(noted.waiting))
        for begin in range(0, len(charges), _CHARGES_A_SCAN):
            chunk = charges[begin : begin + _CHARGES_A_SCAN]
            for charge, drawn in zip(chunk, self._contributors(chunk), strict=True):
                _pay(charge, drawn, counters)
        self._noted = _Noted(noted.number, noted.head)
        self._counters = counters
        self._unsaved += len(charges)
        if self._unsaved >= _CHARGES_A_SCAN:
            self.save()
        return counters

    def _contributors(self, charges: Sequence[Charge]) -> list[Drawn | None]:
        """Return who contributed to each: as it was drawn, or found again in as few scans as can be."""
        contributors: list[Drawn | None] = [None] * len(charges)
        scans: dict[int, list[int]] = {}
        for place, charge in enumerate(charges):
            if isinstance(charge, AllUnits):
                continue
            if self._last is not None and _is_in(charge, self._last):
                contributors[place] = self._last
            elif isinstance(charge, Selected):
                contributors[place] = self._drawn_keys(charge.prepared, charge.snapshot)
            else:
                scans.setdefault(charge.snapshot, []).append(place)
        for snapshot, places in scans.items():
            asked = [cast("Contributors", charges[place]) for place in places]
            measures = [charge.prepared.measure_of(charge.key) for charge in asked]
            contributions = self.engine.contributions(measures, snapshot)
            for index, (place, charge) in enumerate(zip(places, asked, strict=True)):
                alone = contributions.only(index)
                contributors[place] = self._drawn(alone, [charge.prepared], [charge.key], snapshot)
        return contributors

    def _drawn(
        self, contributions: Contributions, prepared: Sequence[Prepared], keys: Sequence[object], snapshot: int
    ) -> Drawn:
        for question in prepared:
            self._charges.remember(question)
        return Drawn.of(contributions, self._prices(prepared[0]), prepared, keys, snapshot)

    def _drawn_keys(self, prepared: Prepared, snapshot: int | None = None) -> Drawn:
        """Return who contributes to the keys of a question, as they are in a snapshot; the newest if left out."""
        assert prepared.keys is not None  # noqa: S101 - a watch or a selection
        at = self.engine.snapshot if snapshot is None else snapshot
        measure = prepared.additive
        if isinstance(measure, Histogram):
            measure = replace(measure, key=secrets.token_hex(8))
        contributions = self.engine.contributions_by(measure, prepared.keys, at)
        return self._drawn(contributions, [prepared], prepared.keys.published(), at)

    def _prices(self, prepared: Prepared) -> Prices:
        """Return the prices of a hit, by what a unit contributes."""
        target = prepared.target_on(self.allowance.tariff)
        return self.allowance.prices(target, prepared.epsilon, prepared.measure.sensitivity)

    def one(self, prepared: Prepared) -> int:
        """Return a number, of those who can pay for a hit."""
        counters = self.settle()
        self._last = self._drawn_alone(prepared)
        return self._last.sums(0, 1, counters)[0]

    def _drawn_alone(self, prepared: Prepared) -> Drawn:
        """Return who contributes to one number."""
        contributions = self.engine.contributions([prepared.measure_of(None)])
        return self._drawn(contributions, [prepared], [None], self.engine.snapshot)

    def totals(self, prepared: Prepared) -> tuple[int, int]:
        """Return how far the values of those who can pay are above the least, added up, and how many they are."""
        steps, units = self.distribution(prepared)
        total = sum(int(step) * int(count) for step, count in zip(steps, units, strict=True))
        return total, int(units.sum())

    def distribution(self, prepared: Prepared) -> Distribution:
        """Return how far the values of those who can pay are above the least, and how many have each."""
        counters = self.settle()
        self._last = self._drawn_alone(prepared)
        return np.unique(self._last.able_steps(counters) - 1, return_counts=True)

    def of_keys_when_due(self, prepared: Prepared) -> Callable[[int, int], Iterator[int]]:
        """Return what gives the number of each key, when it is due, of those who can then pay for a hit."""
        drawn = self._drawn_keys(prepared)

        def numbers(first: int, last: int) -> Iterator[int]:
            counters = self.settle()
            self._last, size = drawn, _FEW
            while first < last:
                upto = min(first + size, last)
                yield from drawn.sums(first, upto, counters)
                first, size = upto, min(2 * size, _MANY)

        return numbers

    def several_when_due(self, prepared: Sequence[Prepared]) -> Callable[[int, int], Iterator[int]]:
        """Return what gives several counts, each when it is due, of those who can then pay for a hit."""
        snapshot = self.engine.snapshot
        drawn: dict[int, Drawn] = {}  # one at a time: who contributes to a thousand counts may not fit into memory

        def numbers(first: int, last: int) -> Iterator[int]:
            counters = self.settle()
            for index in range(first, last):
                begin = index - index % _CHARGES_A_SCAN
                if begin not in drawn:
                    chunk = prepared[begin : begin + _CHARGES_A_SCAN]
                    drawn.clear()
                    contributions = self.engine.contributions([question.additive for question in chunk], snapshot)
                    drawn[begin] = self._drawn(contributions, chunk, [None] * len(chunk), snapshot)
                self._last = drawn[begin]
                yield self._last.sums(index - begin, index - begin + 1, counters)[0]

        return numbers

    def of_keys(self, prepared: Prepared) -> list[int]:
        """Return the number of each key, of those who can pay for all the hits that they may bring them.

        A histogram brings a unit one, a selection one for each of its keys that is published.
        """
        counters = self.settle()
        self._last = self._drawn_keys(prepared)
        return self._last.best(_most_hits(prepared), counters)[0]

    def save(self) -> None:
        """Save the counters, so that they need not be made again from what was published so far."""
        if self._checkpoints is None or self._counters is None or self._noted.waiting or not self._unsaved:
            return
        if self._noted.head is not None:
            self._checkpoints.save(self.engine, self._counters, self._noted.number, self._noted.head)
        self._unsaved = 0

    def leave(self) -> None:
        """Charge what was noted and save it."""
        self.settle()
        self.save()

    def __repr__(self) -> str:
        """Return nothing about anybody."""
        return "<a meter for every unit>"


def _charges(entry: Entry) -> bool:
    """Return whether an entry may charge somebody: a broken call, a hit, or a release that was drawn."""
    match entry:
        case Answer():
            return entry.hit or entry.release == entry.seq
        case BatchEntry():
            return bool(entry.hit_places)
        case _:
            return isinstance(entry, Spent)


def _most_hits(prepared: Prepared) -> int:
    """Return how many hits a question about keys may bring a unit."""
    return prepared.question.k if isinstance(prepared.question, Top) else 1


def _is_in(charge: Contributors | Selected, drawn: Drawn) -> bool:
    keys = charge.keys if isinstance(charge, Selected) else (charge.key,)
    asked = charge.prepared.charged_as
    return charge.snapshot == drawn.snapshot and all((asked, key) in drawn.named for key in keys)


def _pay(charge: Charge, drawn: Drawn | None, counters: Counters) -> None:
    if isinstance(charge, AllUnits) or drawn is None:
        counters.charge_all(cast("AllUnits", charge).price)
        return
    asked = charge.prepared.charged_as
    if isinstance(charge, Contributors):
        drawn.charge(drawn.named[asked, charge.key], counters)
        return
    if isinstance(charge.prepared.question, HistogramQuestion):
        drawn.charge_once(counters)
        return
    _, able = drawn.best(_most_hits(charge.prepared), counters)
    for key in charge.keys:
        drawn.charge(drawn.named[asked, key], counters, able)
