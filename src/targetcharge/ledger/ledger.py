"""What every ledger does: hold back what a call may cost, then record what it did.

A call goes `reserve` → (the data is touched) → `settle` or `forfeit`. What is reserved counts as spent until the
call settles, also when the process dies in between. `settle` returns only once a hit is durable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, final

from targetcharge.accounting.meter import Totals
from targetcharge.errors import BudgetSpent, NotAllowed
from targetcharge.ledger.entries import charges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from targetcharge.accounting.meter import Meter, Price
    from targetcharge.ledger.answer import Answer
    from targetcharge.ledger.entries import Entry, Pending
    from targetcharge.ledger.published import QuestionId
    from targetcharge.ledger.state import Sums


@final
@dataclass(frozen=True, slots=True)
class Most:
    """The most a call could charge; public knowledge only.

    Attributes:
        prices: of one hit, on each meter.
        count: how many hits there could be.
        delta: the δ of all computations it runs, spent hit or miss.
        answers: how many answers there could be, if more than one for each hit and one for the end.
        grains: of all hits together, on each meter.
    """

    prices: tuple[Price, ...]
    count: int = 1
    delta: float = 0.0
    answers: int = 0
    grains: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Multiply once: the same question is asked again and again."""
        object.__setattr__(self, "grains", tuple(price.grains * self.count for price in self.prices))
        object.__setattr__(self, "answers", max(self.answers, self.count + 1))


Tail = tuple[int, "Sequence[Entry]"]
"""The number of the last entry, and the entries after some earlier one."""


class Settlement(NamedTuple):
    """What a call did.

    Attributes:
        entries: what it publishes, in order.
        pending: an outcome to keep for later revisions.
        closes: the release whose pending outcome it publishes.
        durable: whether misses too are made durable before they leave.
    """

    entries: Sequence[Entry]
    pending: Pending | None = None
    closes: int | None = None
    durable: bool = False

    @property
    def waits(self) -> bool:
        """Return whether a loss of it would lose nothing but a few misses."""
        if self.durable or self.pending is not None or self.closes is not None:
            return False
        return not any(map(charges, self.entries))


class Ledger(ABC):
    """The meters' record. One call at a time: a session takes turns."""

    @property
    @abstractmethod
    def id(self) -> str:
        """Return what tells the ledger from all others, also after it was moved: drawn when it was made."""

    @property
    @abstractmethod
    def meters(self) -> tuple[Meter, ...]:
        """Return the meters, up to date: one, or one for each alternative."""

    @property
    @abstractmethod
    def offset(self) -> int | None:
        """Return the session's secret offset, in steps of its lattice: as secret as the data.

        None where the terms have no offset, and where it is gone or was altered: then nothing can be reserved.
        """

    @abstractmethod
    def reserve(self, most: Most) -> None:
        """Hold back what a call could charge, durably, and spend its δ.

        With several meters the call may go ahead if at least one of them has room; it is held back on all.

        Raises:
            BudgetSpent: if it is not covered; nothing was held back or spent.
            LedgerError: if the ledger cannot be written.
        """

    @abstractmethod
    def next_seq(self, count: int = 1) -> int:
        """Return the next answer's seq, the first of `count` in a row. Only between `reserve` and `settle`."""

    @abstractmethod
    def settle(self, settlement: Settlement) -> None:
        """Record what the call did, charge its hits, and let go of the rest of the reservation.

        Raises:
            LedgerError: if it could not be made durable: nothing may be published.
            NotAllowed: if it closes a release that another session has published; nothing was charged.
        """

    @abstractmethod
    def forfeit(self, algorithm: str) -> None:
        """Spend the whole reservation of a call that broke."""

    @abstractmethod
    def end_call(self) -> None:
        """End a call, however it ended: others that wait for it may go on."""

    @abstractmethod
    def pending(self) -> list[int]:
        """Return the seqs of the releases that wait for a revision, oldest first."""

    @abstractmethod
    def pending_outcome(self, release: int) -> Pending | None:
        """Return the outcome of a release that waits for a revision, if it does. Private to the curator."""

    @abstractmethod
    def answers(self, last: int | None = None) -> Iterator[Answer]:
        """Yield what was published, oldest first; only the last few if a number is given."""

    @abstractmethod
    def published(self, asked: Sequence[QuestionId], most: int = 1) -> list[tuple[Answer, ...]]:
        """Return what each question published when it last hit, marked as a repeat; nothing if it never did.

        Args:
            asked: the questions.
            most: how many answers of one call each has at most.
        """

    @abstractmethod
    def published_keys(self, asked: QuestionId, keys: Sequence[object]) -> dict[int, Answer]:
        """Return what a question about keys published for those that hit, by place among the keys, as repeats."""

    @abstractmethod
    def count(self) -> int:
        """Return how many answers were published."""

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """Yield all entries."""

    @abstractmethod
    def since(self, number: int) -> Tail:
        """Return the entries after a number, in order, and the number of the last of all."""

    @abstractmethod
    def hash_at(self, number: int) -> bytes | None:
        """Return the hash of an entry (of the header, for 0); None if there is none, or the ledger keeps none."""

    @abstractmethod
    def exclusive(self) -> AbstractContextManager[object]:
        """Return a context in which no other session on this ledger makes a call: they wait.

        What calls that broke, here or elsewhere, have yet to pay is charged on the way in: inside, only the caller
        charges.

        Raises:
            NotAllowed: if this thread is in it already.
        """

    @abstractmethod
    def close(self, patience: float | None = None) -> None:
        """Release what is held back and not in use, and close. A ledger that is not closed spends it.

        Args:
            patience: how many seconds to wait for others, if not as long as a call would.
        """


def check_room(meters: tuple[Meter, ...], most: Most, held: tuple[int, ...] | None = None) -> None:
    """Refuse a call that no meter has room for, or whose δ is not covered."""
    if most.delta:
        meters[0].check_delta(most.delta)
    refusals = []
    for index, (meter, price) in enumerate(zip(meters, most.prices, strict=True)):
        try:
            meter.check(price, most.count, held=held[index] if held else 0)
        except BudgetSpent as refusal:
            refusals.append(refusal)
        else:
            return
    raise refusals[0].with_traceback(None)


def show_sums(meters: tuple[Meter, ...], sums: Sums) -> None:
    """Let the meters show these sums."""
    for meter, spent, hits in zip(meters, sums.spent, sums.hits, strict=True):
        meter.load(Totals(spent, hits, sums.delta))


def already_published(release: int) -> NotAllowed:
    """Return the error of a revision that comes too late."""
    return NotAllowed(f"release {release} was published: there is nothing left to revise")
