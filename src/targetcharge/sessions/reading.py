"""What a session shows: its meters and its transcript, always up to date. Nothing can be charged through them."""

from __future__ import annotations

import operator
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NoReturn, final, overload

from targetcharge import checks, markup
from targetcharge.errors import NotAllowed
from targetcharge.frames import Columns, Type
from targetcharge.ledger import BatchEntry, words
from targetcharge.ledger.entries import answers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.meter import Meter, Odometer, Price, Tariff, Totals
    from targetcharge.accounting.targets import Target
    from targetcharge.ledger import Answer, Ledger

_SHOWN: Final = 50
"""Answers that a notebook shows."""


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
        left = "for each unit in all" if meter.individual else "left"
        hits = f"{markup.counted(meter.hits, 'hit')}, {meter.hits_left:,} {left}"
        return f"<{meter.tariff.name} meter, {hits}{noise}>"


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
        return f"<transcript, {markup.counted(len(self), 'answer')}>"

    def _repr_html_(self) -> str:
        """Return the last answers as a table, for notebooks."""
        count, last = len(self), self.last(_SHOWN)
        rows = [
            [
                answer.seq,
                answer.algorithm,
                words.key(answer),
                words.outcome(answer),
                markup.interval(answer.interval),
                words.cost(answer.price, hit=answer.hit),
            ]
            for answer in last
        ]
        more = f", the last {len(last)} of them shown" if count > len(last) else ""
        heads = ["number", "question", "key", "outcome", "95% interval", "cost"]
        return markup.table(heads, rows, f"{markup.counted(count, 'answer')}{more}")

    def to_pandas(self) -> pd.DataFrame:
        """Return all answers as a pandas DataFrame; its types are the same whatever they are.

        An outcome that is no number is in the column `text`, and times are universal time.
        """
        answers = list(self)
        ends = [answer.interval or (None, None) for answer in answers]
        return Columns(
            {
                "seq": (Type.INTEGER, [answer.seq for answer in answers]),
                "received": (Type.TIME, [_instant(answer.received) for answer in answers]),
                "question": (Type.TEXT, [answer.algorithm for answer in answers]),
                "key": (Type.TEXT, [words.key(answer) or None for answer in answers]),
                "outcome": (Type.NUMBER, [_number(answer.outcome) for answer in answers]),
                "text": (Type.TEXT, [_text(answer.outcome) for answer in answers]),
                "hit": (Type.BOOLEAN, [answer.hit for answer in answers]),
                "price": (Type.NUMBER, [answer.price for answer in answers]),
                "low": (Type.NUMBER, [_number(low) for low, _ in ends]),
                "high": (Type.NUMBER, [_number(high) for _, high in ends]),
                "scale": (Type.NUMBER, [answer.scale for answer in answers]),
                "snapshot": (Type.INTEGER, [answer.snapshot for answer in answers]),
            }
        ).to_pandas()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: the ledger behind it also holds what is pending."""
        msg = "a transcript cannot be pickled or copied: take list(transcript), the answers"
        raise NotAllowed(msg)


def _instant(seconds: float) -> str:
    """Return a moment as ISO text, in universal time."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _number(outcome: object) -> float | None:
    """Return an outcome that is a number, as near as a double is; of others None."""
    if isinstance(outcome, bool) or not isinstance(outcome, int | float):
        return None
    try:
        return float(outcome)
    except OverflowError:
        return None


def _text(outcome: object) -> str | None:
    """Return an outcome that is no number, as text."""
    if outcome is None or _number(outcome) is not None:
        return None
    return words.line(outcome, sys.maxsize)
