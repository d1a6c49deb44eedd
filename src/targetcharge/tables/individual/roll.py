"""The roll: a meter for every unit, brought to the ledger's head before every draw.

`read` takes note of what the ledger holds; of the data it looks only at whether saved counters fit, and tells
nothing. Everything else runs where a session runs what sees the data. The counters are a function of the ledger's
entries and the table: they are only ever changed by what `read` noted, also by what this very session published.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final

from targetcharge.accounting.meter import Allowance
from targetcharge.errors import NotAllowed
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import Spent
from targetcharge.sessions.attempt import Failure, attempt
from targetcharge.tables.individual.counters import Counters
from targetcharge.tables.individual.draws import Draw
from targetcharge.tables.individual.dues import Contributors, Dues, Everybody, Selected, newest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from targetcharge.accounting.meter import Tariff
    from targetcharge.engines.engine import Engine
    from targetcharge.ledger import Ledger
    from targetcharge.ledger.entries import Entry
    from targetcharge.queries.keys import Keys
    from targetcharge.tables.individual.charges import Charge
    from targetcharge.tables.individual.checkpoints import Checkpoints, Saved
    from targetcharge.tables.individual.dues import Due

_TOGETHER: Final = 64
"""Dues whose contributors are found in one scan, and after so many the counters are saved."""

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
class UnitRoll:
    """A meter for every unit of a table. As secret as the data."""

    def __init__(self, engine: Engine, tariff: Tariff, checkpoints: Checkpoints | None = None) -> None:
        """Count for the units of an engine.

        Args:
            engine: the table.
            tariff: how the session prices, with the capacity of each unit.
            checkpoints: where counters are saved, if they are to be.
        """
        self._engine = engine
        self.allowance = Allowance.of(tariff)
        self._dues = Dues(engine.schema, self.allowance)
        self._checkpoints = checkpoints
        self._counters: Counters | None = None
        self._noted = _Noted()
        self._unsaved = 0
        self._last: Draw | None = None

    def read(self, ledger: Ledger) -> None:
        """Take note of what is new in the ledger.

        Raises:
            NotAllowed: if it holds answers about data that was not appended here.
        """
        if self._counters is None:
            self._start(ledger)
        noted = self._noted
        number, entries = ledger.since(noted.number)
        if number == noted.number:
            return
        if newest(entries) > self._engine.snapshot:
            msg = (
                f"the ledger has answers about snapshot {newest(entries)} of the data, and this table has"
                f" {self._engine.snapshot}: append here too what was appended there"
            )
            raise NotAllowed(msg)
        charging = [entry for entry in entries if _charges(entry)]
        if charging:
            self._engine.check_unchanged()  # who contributed is found in the data that the answers are about
        self._noted = _Noted(number, ledger.hash_at(number), (*noted.waiting, *charging))

    def _start(self, ledger: Ledger) -> None:
        """Start from the last saved counters that belong to this ledger and this table; else from nothing."""
        counters = Counters(self.allowance)
        saved = self._saved()
        if saved is not None and ledger.hash_at(saved.number) == saved.head:
            counters.spent, counters.base = saved.spent, saved.base
            self._noted = _Noted(saved.number, saved.head)
        else:
            self._noted = _Noted()
        self._counters = counters

    def _saved(self) -> Saved | None:
        """Return saved counters; none if they cannot be read, or the engine fails to tell whether they fit."""
        if self._checkpoints is None:
            return None
        found = attempt(partial(self._checkpoints.load, self._engine, self.allowance))
        if isinstance(found, Failure):
            if not isinstance(error := found.error(), Exception):
                raise error  # somebody pressed Ctrl-C
            return None
        return found

    def settle(self) -> Counters:
        """Charge what was noted; return the counters, which are at the ledger's head as it was read."""
        counters, noted = self._counters, self._noted
        if counters is None:
            msg = "the ledger was not read"
            raise RuntimeError(msg)
        self._counters = None  # if this is interrupted, all is made again
        counters.grow(self._engine.units())
        due = list(self._dues.of(noted.waiting))
        for begin in range(0, len(due), _TOGETHER):
            some = due[begin : begin + _TOGETHER]
            found = self._found(some)
            for each in some:
                _pay(each, found, counters)
        self._noted = _Noted(noted.number, noted.head)
        self._counters = counters
        self._unsaved += len(due)
        if self._unsaved >= _TOGETHER:
            self.save()
        return counters

    def _found(self, due: Sequence[Due]) -> dict[int, Draw]:
        """Return who contributed to what is due: as it was drawn, or found again in as few scans as can be."""
        found: dict[int, Draw] = {}
        scans: dict[int, list[Contributors]] = {}
        for each in due:
            if isinstance(each, Everybody):
                continue
            if self._last is not None and _is_in(each, self._last):
                found[id(each)] = self._last
            elif isinstance(each, Selected):
                found[id(each)] = self._again(each)
            else:
                scans.setdefault(each.snapshot, []).append(each)
        for snapshot, some in scans.items():
            measures = [each.charge.about(each.key, self._engine.schema) for each in some]
            contributions = self._engine.contributions(measures, snapshot)
            for index, each in enumerate(some):
                alone = contributions.only(index)
                found[id(each)] = Draw.of(alone, [each.charge], [each.key], snapshot)
        return found

    def _again(self, selected: Selected) -> Draw:
        charge, keys = selected.charge, selected.charge.record.keys
        groups = charge.groups(keys, self._engine.schema)
        contributions = self._engine.contributions_by(charge.measure, groups, selected.snapshot)
        return Draw.of(contributions, [charge], keys, selected.snapshot)

    def number(self, charge: Charge) -> int:
        """Return a number, of those who can pay for a hit."""
        counters = self.settle()
        self._last = draw = Draw.of(
            self._engine.contributions([charge.measure]), [charge], [None], self._engine.snapshot
        )
        return draw.sums(0, 1, counters)[0]

    def by(self, charge: Charge, groups: Keys, keys: Sequence[object]) -> Callable[[int, int], Iterator[int]]:
        """Return what gives the number of each key, when it is due, of those who can then pay for a hit."""
        found = self._engine.contributions_by(charge.measure, groups)
        draw = Draw.of(found, [charge], keys, self._engine.snapshot)

        def numbers(first: int, last: int) -> Iterator[int]:
            counters = self.settle()
            self._last, size = draw, _FEW
            while first < last:
                upto = min(first + size, last)
                yield from draw.sums(first, upto, counters)
                first, size = upto, min(2 * size, _MANY)

        return numbers

    def together(self, charges: Sequence[Charge]) -> Callable[[int, int], Iterator[int]]:
        """Return what gives several counts, each when it is due, of those who can then pay for a hit."""
        snapshot = self._engine.snapshot
        draws: dict[int, Draw] = {}  # one at a time: who contributes to a thousand counts may not fit into memory

        def numbers(first: int, last: int) -> Iterator[int]:
            counters = self.settle()
            for index in range(first, last):
                begin = index - index % _TOGETHER
                if begin not in draws:
                    some = charges[begin : begin + _TOGETHER]
                    draws.clear()
                    found = self._engine.contributions([charge.measure for charge in some], snapshot)
                    draws[begin] = Draw.of(found, some, [None] * len(some), snapshot)
                self._last = draws[begin]
                yield self._last.sums(index - begin, index - begin + 1, counters)[0]

        return numbers

    def best(self, charge: Charge, groups: Keys, keys: Sequence[object]) -> list[int]:
        """Return the number of each key, of those who can pay for all the hits that a selection may bring them."""
        counters = self.settle()
        found = self._engine.contributions_by(charge.measure, groups)
        self._last = draw = Draw.of(found, [charge], keys, self._engine.snapshot)
        return draw.best(charge.record.k, counters)[0]

    def save(self) -> None:
        """Save the counters, so that they need not be made again from what was published so far."""
        if self._checkpoints is None or self._counters is None or self._noted.waiting or not self._unsaved:
            return
        if self._noted.head is not None:
            self._checkpoints.save(self._engine, self._counters, self._noted.number, self._noted.head)
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


def _is_in(due: Contributors | Selected, draw: Draw) -> bool:
    keys = due.keys if isinstance(due, Selected) else (due.key,)
    return due.snapshot == draw.snapshot and all((due.charge.name, key) in draw.named for key in keys)


def _pay(due: Due, found: dict[int, Draw], counters: Counters) -> None:
    match due:
        case Everybody(price):
            counters.charge_all(price)
        case Contributors(charge, key, _):
            draw = found[id(due)]
            draw.charge(draw.named[charge.name, key], counters)
        case Selected(charge, keys, _):
            draw = found[id(due)]
            _, able = draw.best(charge.record.k, counters)
            for key in keys:
                draw.charge(draw.named[charge.name, key], counters, able)
