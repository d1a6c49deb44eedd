"""The transcript: all that a session's ledger published, in order."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NoReturn, final, overload

from targetcharge import checks
from targetcharge.errors import NotAllowed
from targetcharge.ledger import BatchEntry
from targetcharge.ledger.entries import answers_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from targetcharge.ledger import Answer, Ledger


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
        last, entries = self._ledger.since(number)
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
