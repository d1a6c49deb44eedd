"""Batches as ledgers keep them: answers that left together, in a byte or two each.

>>> from targetcharge.ledger import Answer
>>> first = Answer(None, True, 1.0, 8, "labels", key=0, grains=(1,))
>>> batch = BatchEntry(first, ("cat", "dog"), bytes([1, 0, 1]), hit_places=(2,))
>>> [(answer.seq, answer.key, answer.outcome, answer.price) for answer in batch.answers]
[(8, 0, 'dog', 0.0), (9, 1, 'cat', 0.0), (10, 2, 'dog', 1.0)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.ledger.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from targetcharge.ledger.answer import Interval


_ONE_BYTE: Final = 256

MOST_OUTCOMES: Final = 2**16
"""What two bytes can tell apart."""


@final
@dataclass(frozen=True, slots=True)
class BatchEntry:
    """Answers with consecutive seqs that differ in key, outcome, and whether they hit.

    Attributes:
        first: what all have in common, with the first one's seq and key and what a hit costs.
        outcomes: what could be published, or was, each once.
        codes: which of them each answer is: a byte each, or two (the low one first) if there are more than 256.
        hit_places: the places of the hits, from 0, increasing.
        keys: of each answer; None for consecutive integers from the first one's key on.
        intervals: what each of the outcomes says of the true value; none if nothing is said.
    """

    first: Answer
    outcomes: tuple[object, ...]
    codes: bytes
    hit_places: tuple[int, ...]
    keys: tuple[object, ...] | None = None
    intervals: tuple[Interval | None, ...] = ()

    @classmethod
    def of(
        cls,
        first: Answer,
        outcomes: tuple[object, ...],
        indices: NDArray[np.intp],
        hit_places: Sequence[int],
        keys: tuple[object, ...] | None = None,
        intervals: tuple[Interval | None, ...] = (),
    ) -> BatchEntry:
        """Return the entry of answers whose outcomes have these indices."""
        codes = indices.astype(_code_type(outcomes)).tobytes()
        return cls(first, outcomes, codes, tuple(map(int, hit_places)), keys, intervals if any(intervals) else ())

    @property
    def indices(self) -> NDArray[np.intp]:
        """Return which outcome each answer is."""
        return np.frombuffer(self.codes, dtype=_code_type(self.outcomes)).astype(np.intp)

    @property
    def seq(self) -> int:
        """Return the seq of the last answer."""
        return self.first.seq + len(self) - 1

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self.codes) // _code_type(self.outcomes).itemsize

    @property
    def grains(self) -> tuple[int, ...]:
        """Return what all hits charged, on each meter."""
        return tuple(grains * len(self.hit_places) for grains in self.first.grains)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Return the answers one by one."""
        return self._answers_at(range(len(self)))

    @property
    def hits(self) -> tuple[Answer, ...]:
        """Return the answers that hit."""
        return self._answers_at(self.hit_places)

    def _answers_at(self, places: Sequence[int]) -> tuple[Answer, ...]:
        """Return the answers at some places; made by hand, since `replace` takes three times as long."""
        first, free, hits = self.first, (0,) * len(self.first.grains), frozenset(self.hit_places)
        start = first.key if isinstance(first.key, int) else 0
        keys = self.keys if self.keys is not None else range(start, start + len(self))
        intervals = self.intervals or (None,) * len(self.outcomes)
        asked = (first.algorithm, first.targets, first.epsilon, first.delta, first.received)
        about = (first.prior, first.question, first.snapshot, first.call)
        codes = self.indices.tolist()
        return tuple(
            Answer(
                self.outcomes[code := codes[place]],
                hit := place in hits,
                first.price if hit else 0.0,
                first.seq + place,
                *asked,
                first.grains if hit else free,
                None,
                None,
                keys[place],
                first.scale,
                intervals[code],
                *about,
            )
            for place in places
        )


def _code_type(outcomes: tuple[object, ...]) -> np.dtype[np.unsignedinteger]:
    return np.dtype("u1" if len(outcomes) <= _ONE_BYTE else "<u2")
