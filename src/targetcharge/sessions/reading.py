"""What a session shows: its meters and its transcript, always up to date. Nothing can be charged through them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NoReturn, final, overload

from targetcharge import checks, markup
from targetcharge.errors import NotAllowed
from targetcharge.ledger import BatchEntry
from targetcharge.ledger.entries import answers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.meter import Meter, Odometer, Price, Tariff, Totals
    from targetcharge.accounting.targets import Target
    from targetcharge.ledger import Answer, Ledger


@final
class Reading:
    """A meter, to look at."""

    def __init__(self, find: Callable[[], Meter], standard_deviation: float | None = None) -> None:
        """Look at the meter that is found each time; of a table also at the noise of a count."""
        self._find = find
        self.standard_deviation = standard_deviation

    def with_noise(self, standard_deviation: float) -> Reading:
        """Return the same meter, of a session that draws counts with this noise."""
        return Reading(self._find, standard_deviation)

    @property
    def guarantee(self) -> Budget:
        """Return the (ε, δ) of the whole session, however it ends."""
        return self._find().guarantee

    @property
    def hits(self) -> int:
        """Return the number of hits charged."""
        return self._find().hits

    @property
    def individual(self) -> bool:
        """Return whether each unit has a meter of its own."""
        return self._find().individual

    @property
    def hits_left(self) -> int:
        """Return how many more hits of the declared kind are covered; in all, where each unit has a meter."""
        return self._find().hits_left

    @property
    def delta_left(self) -> float:
        """Return what is left of the δ reserved for computations."""
        return self._find().delta_left

    @property
    def totals(self) -> Totals:
        """Return the running totals, in whole grains."""
        return self._find().totals

    @property
    def tariff(self) -> Tariff:
        """Return how the meter prices."""
        return self._find().tariff

    def quote(self, target: Target, epsilon: float, *, carried: bool = False) -> Price:
        """Return the price of one hit of this target for an ε-DP computation; NotAllowed if it has none."""
        return self._find().quote(target, epsilon, carried=carried)

    def odometer(self) -> Odometer:
        """Return the running figure, true at all times at once."""
        return self._find().odometer()

    def _repr_html_(self) -> str:
        """Return how it stands as HTML, for notebooks."""
        meter = self._find()
        budget = meter.guarantee
        facts = [
            ("budget", f"({budget.epsilon:g}, {budget.delta:g}), holds however it ends"),
            ("meter", meter.tariff.name),
            ("hits", _hits_in_words(meter)),
        ]
        if self.standard_deviation is not None:
            facts.append(("noise of a count", f"standard deviation {self.standard_deviation:.4g}"))
        return markup.table([], facts)

    def __repr__(self) -> str:
        """Return how it stands; public."""
        meter, noise = self._find(), ""
        if self.standard_deviation is not None:
            noise = f", standard deviation of a count {self.standard_deviation:.4g}"
        if meter.individual:
            return f"<{meter.tariff.name} meter, {meter.hits} hits, {meter.hits_left} for each unit in all{noise}>"
        return f"<{meter.tariff.name} meter, {meter.hits} hits, {meter.hits_left} left{noise}>"


def _hits_in_words(meter: Meter) -> str:
    if meter.individual:
        return f"{meter.hits:,} published; each unit takes part in {meter.hits_left:,} at most"
    return f"{meter.hits:,} used, {meter.hits_left:,} left"


@final
class Transcript:
    """A view of the ledger's answers: it holds nothing itself, so it costs no memory."""

    def __init__(self, ledger: Ledger) -> None:
        """Look at a ledger."""
        self._ledger = ledger

    def __iter__(self) -> Iterator[Answer]:
        """Iterate over all answers, oldest first."""
        return self._ledger.answers()

    def __len__(self) -> int:
        """Return how many answers there are."""
        return self._ledger.count()

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> list[Answer]: ...

    def __getitem__(self, index: int | slice) -> Answer | list[Answer]:
        """Return one answer, or a list of some; negative indices count from the end."""
        if isinstance(index, slice):
            return list(self)[index]
        index = operator.index(index)
        answers = list(self._ledger.answers(-index)) if index < 0 else list(self)[: index + 1]
        if len(answers) < (-index if index < 0 else index + 1):
            msg = f"the transcript has no answer {index}"
            raise IndexError(msg)
        return answers[0] if index < 0 else answers[index]

    def last(self, count: int) -> list[Answer]:
        """Return the last few answers, oldest first."""
        none = count == 0 and not isinstance(count, bool)
        return [] if none else list(self._ledger.answers(checks.hits(count, "count")))

    def since(self, number: int) -> tuple[int, list[Answer]]:
        """Return the answers that were written after an entry, and the number of the last entry; 0 is the start.

        Misses of this session that wait to be written are not among them yet.
        """
        last, entries = self._ledger.since(checks.integer(number, "number", 0, checks.MAX_HITS))
        return last, [answer for entry in entries for answer in answers_in(entry)]

    def batches(self) -> Iterator[BatchEntry]:
        """Iterate over the answers that left together, thousands in one piece."""
        return (entry for entry in self._ledger.entries() if isinstance(entry, BatchEntry))

    def __repr__(self) -> str:
        """Return a hint of what it is."""
        return f"<transcript, {len(self)} answers>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: the ledger behind it also holds what is pending."""
        msg = "a transcript cannot be pickled or copied: take list(transcript), the answers"
        raise NotAllowed(msg)
