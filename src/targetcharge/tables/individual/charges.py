"""Charges: what the transcript says must be charged, before it is known to whom.

Who contributed to an answer is a function of the table; who took part, of the table and of the entries before it.
So counters can be made again from the transcript at any time, and are always made from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import TargetChargeError
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import Spent, snapshot_of
from targetcharge.tables.preparing import read_back
from targetcharge.tables.questions import CountQuestion, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from targetcharge.accounting.meter import Allowance
    from targetcharge.ledger.entries import Entry
    from targetcharge.queries.tree import Schema
    from targetcharge.tables.prepared import Prepared

_REMEMBERED: Final = 256
"""Questions that are known without reading their records again."""


@final
@dataclass(frozen=True)
class AllUnits:
    """All units are charged: a call broke, so who contributed is not known.

    Attributes:
        price: on the scale of the counters.
    """

    price: int


@final
@dataclass(frozen=True)
class Contributors:
    """Those who contributed to one number are charged.

    Attributes:
        prepared: what was asked.
        key: that it was about, as it is published.
        snapshot: that it was asked on.
    """

    prepared: Prepared
    key: object
    snapshot: int


@final
@dataclass(frozen=True)
class Selected:
    """Those who contributed to the keys that a selection published are charged; to any key of a histogram, once.

    Attributes:
        prepared: what was asked.
        keys: that were published.
        snapshot: that it was asked on.
    """

    prepared: Prepared
    keys: tuple[object, ...]
    snapshot: int


Charge = AllUnits | Contributors | Selected


def newest(entries: Iterable[Entry]) -> int:
    """Return the newest snapshot that some entries name; 0 if they name none."""
    return max(map(snapshot_of, entries), default=0)


@final
class ChargeReader:
    """Reads from entries what must be charged."""

    def __init__(self, schema: Schema, allowance: Allowance) -> None:
        """Read what was asked of a table with these columns."""
        self._schema = schema
        self._allowance = allowance
        self._known: dict[tuple[str, float], Prepared | None] = {}

    def of(self, entries: Iterable[Entry]) -> Iterator[Charge]:
        """Yield what must be charged, in order."""
        selected: list[Answer] = []
        for entry in entries:
            if isinstance(entry, Answer) and entry.candidate is not None:
                if entry.question:
                    yield from self._selection(selected)
                    selected = []
                selected.append(entry)
                continue
            yield from self._selection(selected)
            selected = []
            match entry:
                case Spent():
                    yield AllUnits(self._allowance.scaled(sum(entry.grains)))
                case Answer():
                    yield from self._answer(entry)
                case BatchEntry():
                    for answer in entry.hits:
                        yield from self._answer(answer)
        yield from self._selection(selected)

    def _answer(self, answer: Answer) -> Iterator[Charge]:
        """Yield what one answer charges: a hit, or a release, whose price is held from the draw on."""
        drawn = answer.release == answer.seq
        if not drawn and (answer.release is not None or not answer.hit):
            return  # a miss is free, and a revision was paid when its release was drawn
        prepared = self._prepared(answer)
        if prepared is None:
            yield self._unknown(answer)
        elif isinstance(prepared.question, Histogram) and prepared.keys is not None:
            yield Selected(prepared, prepared.keys.published(), answer.snapshot)
        else:
            yield Contributors(prepared, answer.key, answer.snapshot)

    def _selection(self, answers: list[Answer]) -> Iterator[Charge]:
        if not answers:
            return
        prepared = self._prepared(answers[0])
        if prepared is None or prepared.keys is None or not prepared.keys.values:
            yield from map(self._unknown, answers)
        else:
            yield Selected(prepared, tuple(answer.key for answer in answers), answers[0].snapshot)

    def _unknown(self, answer: Answer) -> AllUnits:
        """Return what an answer charges whose question is not known: everybody may have contributed."""
        return AllUnits(self._allowance.scaled(sum(answer.grains)) if answer.hit else self._allowance.capacity)

    def remember(self, prepared: Prepared) -> None:
        """Remember a question that is asked here: what was prepared need not be read back from its record."""
        if prepared.identity not in self._known:
            self._know(prepared.identity, prepared)

    def _prepared(self, answer: Answer) -> Prepared | None:
        """Return the question of an answer, if everybody can be told what they contribute to it.

        A record does not say whether a count was published whatever it is, which has a price of its own.
        """
        identity = answer.question, answer.epsilon
        if identity not in self._known:
            self._know(identity, read_back(*identity, self._schema) if answer.question else None)
        prepared = self._known[identity]
        if prepared is None or not isinstance(prepared.question, CountQuestion):
            return prepared
        always = self._allowance.tariff.at_least or answer.targets[0][0] == "Everything"
        conditional = answer.release is not None or not always
        return replace(prepared, question=CountQuestion(prepared.question.what), conditional=conditional)

    def _know(self, identity: tuple[str, float], prepared: Prepared | None) -> None:
        """Keep a question, if its hits have prices for everybody, and the latest others."""
        if prepared is not None:
            try:
                target = prepared.target_on(self._allowance.tariff)
                self._allowance.prices(target, prepared.epsilon, prepared.additive.sensitivity)
            except TargetChargeError:
                prepared = None
        self._known = {identity: prepared, **dict(islice(self._known.items(), _REMEMBERED - 1))}
