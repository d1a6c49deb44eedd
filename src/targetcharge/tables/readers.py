"""Readers: how a question's number is read, of all units or of those who take part in it."""

from __future__ import annotations

import secrets
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, final

from targetcharge.queries.families import families
from targetcharge.queries.measures import Sketch
from targetcharge.tables.individual.charges import additive, charge_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from targetcharge.engines.engine import Engine
    from targetcharge.queries.columns import Schema
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure
    from targetcharge.tables.individual import UnitRoll
    from targetcharge.tables.individual.charges import Charge
    from targetcharge.tables.numbers import Number
    from targetcharge.tables.records import Record

    Read = Callable[[Any], int]
    """From the data to a number, in steps: reads an engine, or takes a hypothetical number as it is."""


@final
@dataclass(frozen=True)
class Inquiry:
    """What is asked of a number.

    Attributes:
        number: what it is about.
        record: what was asked.
        epsilon: of one computation.
    """

    number: Number
    record: Record
    epsilon: float


@final
@dataclass(frozen=True)
class Numbers:
    """How the numbers of a batch are read, as a battery takes it.

    Attributes:
        counts: all at once.
        later: each when it is due; None if they do not depend on what was published.
    """

    counts: Callable[[Any], Iterable[int]]
    later: Callable[[Any], Callable[[int, int], Iterable[int]]] | None = None


class Reader(Protocol):
    """Reads what a question is about."""

    @property
    def individual(self) -> bool:
        """Return whether each unit has a meter of its own."""
        ...

    def one(self, asked: Inquiry) -> Read:
        """Return how one number is read."""
        ...

    def by(self, asked: Inquiry, groups: Keys) -> Numbers:
        """Return how the numbers of several keys are read."""
        ...

    def together(self, asked: Sequence[Inquiry]) -> Numbers:
        """Return how several counts are read."""
        ...

    def sharing(self) -> AbstractContextManager[Callable[[Inquiry], Read]]:
        """Return how the single numbers of one batch are read, with as few scans as can be."""
        ...


@final
class OfAll:
    """Reads the numbers of all units: they share a budget."""

    individual = False

    def one(self, asked: Inquiry) -> Read:
        """Return how an engine tells a measure; a sketch gets a fresh key each time."""
        measure = asked.number.measure

        def read(engine: Engine) -> int:
            if isinstance(measure, Sketch):
                return engine.measure([replace(measure, key=secrets.token_hex(8))])[0]
            return engine.measure([measure])[0]

        return read

    def by(self, asked: Inquiry, groups: Keys) -> Numbers:
        """Return how an engine tells a measure of each key."""
        measure = additive(asked.number.measure)
        return Numbers(lambda engine: engine.measure_by(measure, groups))

    def together(self, asked: Sequence[Inquiry]) -> Numbers:
        """Return how an engine tells several measures."""
        measures = [each.number.measure for each in asked]
        return Numbers(lambda engine: engine.measure(measures))

    @contextmanager
    def sharing(self) -> Iterator[Callable[[Inquiry], Read]]:
        """Read the numbers of a family in one scan; when the batch ends, however it does, all are forgotten."""
        batch = _Batch(self)
        try:
            yield batch.one
        finally:
            batch.forget()


@final
class _Batch:
    """The numbers of a batch of questions. As secret as the data."""

    def __init__(self, reader: OfAll) -> None:
        """Start with none."""
        self._alone = reader.one
        self._measures: dict[int, Measure] = {}
        self._relatives: dict[int, Sequence[int]] | None = None
        self._known: dict[int, int] = {}
        self._snapshot = 0

    def one(self, asked: Inquiry) -> Read:
        """Return how a number is read: with its relatives, when the first of them is due."""
        measure, name = asked.number.measure, len(self._measures)
        if isinstance(measure, Sketch):
            return self._alone(asked)
        self._measures[name] = measure

        def read(engine: Engine) -> int:
            if self._snapshot != engine.snapshot:  # rows were appended since
                self._snapshot, self._known = engine.snapshot, {}
            if name not in self._known:
                some = {each: self._measures[each] for each in self._family(name)}
                self._known |= zip(some, engine.measure([*some.values()]), strict=True)
            return self._known.pop(name)

        return read

    def _family(self, name: int) -> Sequence[int]:
        if self._relatives is None:
            members = [tuple(family.members) for family in families(self._measures)]
            self._relatives = {each: family for family in members for each in family}
        return self._relatives.get(name, (name,))

    def forget(self) -> None:
        """Forget all numbers; who reads one after that reads it alone."""
        self._known, self._relatives = {}, {}


@final
class OfThosePaying:
    """Reads the numbers of the units that can pay: each has a budget of its own."""

    individual = True

    def __init__(self, roll: UnitRoll, schema: Schema) -> None:
        """Ask a roll."""
        self._roll = roll
        self._schema = schema

    def one(self, asked: Inquiry) -> Read:
        """Return how one number is read."""
        charge = self._charge(asked)
        return lambda _: self._roll.number(charge)

    def by(self, asked: Inquiry, groups: Keys) -> Numbers:
        """Return how keys are read: for a selection all at once, for tests each when it is due."""
        charge, keys = self._charge(asked), groups.published()
        if asked.record.k:
            return Numbers(lambda _: self._roll.best(charge, groups, keys))
        return Numbers(_never, lambda _: self._roll.by(charge, groups, keys))

    def together(self, asked: Sequence[Inquiry]) -> Numbers:
        """Return how several counts are read, each when it is due."""
        charges = [self._charge(each) for each in asked]
        return Numbers(_never, lambda _: self._roll.together(charges))

    def sharing(self) -> AbstractContextManager[Callable[[Inquiry], Read]]:
        """Read each when it is due: what a unit can pay depends on what was published before."""
        return nullcontext(self.one)

    def _charge(self, asked: Inquiry) -> Charge:
        return charge_of(asked.record, asked.epsilon, self._schema, self._roll.allowance)


def _never(_: object) -> Iterable[int]:
    msg = "these numbers are read when they are due"
    raise AssertionError(msg)
