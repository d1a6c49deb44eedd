"""A ledger in memory: for trying things out, and the model that the others are tested against.

It lives and dies with the process: a budget that must hold across restarts needs a file.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING, final
from uuid import uuid4

from targetcharge.errors import LedgerError
from targetcharge.ledger.entries import DeltaSpent, Entry, Spent, answers_in, charges, count_of, last_of
from targetcharge.ledger.ledger import Ledger, Most, Settlement, already_published, check_room, show_sums
from targetcharge.ledger.published import WHOLE, key_text, places_of, repeat_at, repeats_of
from targetcharge.ledger.state import Sums
from targetcharge.numerics.rounding import grains_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from targetcharge.accounting.meter import Meter
    from targetcharge.ledger.answer import Answer
    from targetcharge.ledger.entries import Pending
    from targetcharge.ledger.ledger import Tail
    from targetcharge.ledger.published import QuestionId


@final
class MemoryLedger(Ledger):
    """Entries in a list, totals in the meters."""

    def __init__(
        self, meters: tuple[Meter, ...], keep: int | None = None, fresh_offset: int | None = None
    ) -> None:
        """Open an empty ledger.

        Args:
            meters: one, or one for each alternative.
            keep: how many entries to remember; None for all. The totals never forget.
            fresh_offset: the secret offset, just drawn; None for a session without one.
        """
        self._id = uuid4().hex
        self._meters = meters
        self._offset = fresh_offset
        self._entries: deque[Entry] = deque(maxlen=keep)
        self._pending: dict[int, Pending] = {}
        self._sums = Sums.zero(len(meters))
        self._reserved: Most | None = None
        self._covered: Most | None = None  # checked since the last charge
        self._seq = 0
        self._added = 0
        self._keep = keep
        self._published: dict[QuestionId, dict[str, tuple[Sequence[Entry], int]]] = {}

    @property
    def id(self) -> str:
        """Return what tells the ledger from all others."""
        return self._id

    @property
    def meters(self) -> tuple[Meter, ...]:
        """Return the meters."""
        return self._meters

    @property
    def offset(self) -> int | None:
        """Return the secret offset."""
        return self._offset

    def reserve(self, most: Most) -> None:
        """Remember what is held back until the call settles."""
        self.forfeit("interrupted")
        if most is not self._covered:
            check_room(self._meters, most)
            if most.delta:
                self._add(DeltaSpent(grains_up(most.delta)))
            else:
                self._covered = most
        self._reserved = most

    def next_seq(self, count: int = 1) -> int:
        """Return the next seq."""
        self._seq += count
        return self._seq - count + 1

    def settle(self, settlement: Settlement) -> None:
        """Record and charge."""
        if settlement.closes is not None and self._pending.pop(settlement.closes, None) is None:
            self._reserved = None
            raise already_published(settlement.closes)
        for entry in settlement.entries:
            self._add(entry)
        if self._covered is None:  # something was charged since it was checked
            self._publish(settlement.entries)
        if settlement.pending is not None:
            self._pending[settlement.pending.release] = settlement.pending
        self._reserved = None

    def forfeit(self, algorithm: str) -> None:
        """Charge all that was held back."""
        if self._reserved is not None:
            self._add(Spent("failed", self._reserved.grains, self._reserved.count, algorithm))
            self._reserved = None

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._added += 1
        if not charges(entry):
            return
        self._covered = None
        self._sums = self._sums.plus(entry)
        show_sums(self._meters, self._sums)

    def _publish(self, entries: Sequence[Entry]) -> None:
        """Remember what questions published; no more than entries: what hit first is forgotten."""
        for (asked, key), (at, place) in places_of(enumerate(entries)).items():
            self._published.setdefault(asked, {})[key] = entries[at:], place
        while self._keep is not None and sum(map(len, self._published.values())) > self._keep:
            del self._published[next(iter(self._published))]

    def published(self, asked: Sequence[QuestionId], most: int = 1) -> list[tuple[Answer, ...]]:
        """Return what each question published when it last hit."""
        entries = [self._published.get(one, {}).get(WHOLE, ((), 0))[0] for one in asked]
        return [repeats_of(found, one, most) for one, found in zip(asked, entries, strict=True)]

    def published_keys(self, asked: QuestionId, keys: Sequence[object]) -> dict[int, Answer]:
        """Return what a question about keys published for those that hit."""
        repeats: dict[int, Answer] = {}
        if known := self._published.get(asked):
            for index, key in enumerate(map(key_text, keys)):
                entries, place = known.get(key, ((), 0))
                if entries and (repeat := repeat_at(entries[0], place, asked, key)) is not None:
                    repeats[index] = repeat
        return repeats

    def end_call(self) -> None:
        """Do nothing: nobody waits."""

    def pending(self) -> list[int]:
        """Return which releases wait for a revision."""
        return list(self._pending)

    def pending_outcome(self, release: int) -> Pending | None:
        """Return what waits for a revision."""
        return self._pending.get(release)

    def answers(self, last: int | None = None) -> Iterator[Answer]:
        """Yield the answers that are remembered."""
        entries = list(self._entries)
        if last is not None:
            return iter(last_of(reversed(entries), last))
        return chain.from_iterable(map(answers_in, entries))

    def count(self) -> int:
        """Return how many answers are remembered."""
        return sum(map(count_of, list(self._entries)))

    def entries(self) -> Iterator[Entry]:
        """Yield the entries that are remembered."""
        return iter(list(self._entries))

    def since(self, number: int) -> Tail:
        """Return the entries after a number.

        Raises:
            LedgerError: if not all of them are remembered.
        """
        if self._added - number > len(self._entries):
            msg = "this ledger in memory has forgotten some of its entries"
            raise LedgerError(msg)
        return self._added, [self._entries[place] for place in range(number - self._added, 0)]

    def hash_at(self, number: int) -> None:
        """Return nothing: entries in memory are not chained."""

    def exclusive(self) -> AbstractContextManager[object]:
        """Charge what an interrupted call left behind: there is only one session."""
        self.forfeit("interrupted")
        return nullcontext()

    def close(self, patience: float | None = None) -> None:  # noqa: ARG002 - there are no others
        """Charge what an interrupted call left behind."""
        self.forfeit("interrupted")
