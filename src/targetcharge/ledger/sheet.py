"""Sheets: the answers of one question that was asked of many requests, in a byte or two each.

>>> from targetcharge.ledger import Answer
>>> first = Answer(None, True, 1.0, 8, "labels", key=0, units=(1,))
>>> sheet = Sheet(first, ("cat", "dog"), bytes([1, 0, 1]), hits=(2,))
>>> [(answer.seq, answer.key, answer.outcome, answer.price) for answer in sheet.answers]
[(8, 0, 'dog', 0.0), (9, 1, 'cat', 0.0), (10, 2, 'dog', 1.0)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.ledger.answer import Answer

if TYPE_CHECKING:
    from numpy.typing import NDArray


_ONE_BYTE: Final = 256

MOST_OUTCOMES: Final = 2**16
"""What two bytes can tell apart."""


@final
@dataclass(frozen=True, slots=True)
class Sheet:
    """Answers with consecutive seqs and keys.

    Attributes:
        first: what all have in common, with the first one's seq and key and what a hit costs.
        outcomes: all that could be published, each once.
        codes: which of them each answer is: a byte each, or two (the low one first) if there are more than 256.
        hits: the places of the hits, from 0, increasing.
    """

    first: Answer
    outcomes: tuple[object, ...]
    codes: bytes
    hits: tuple[int, ...]

    @classmethod
    def of(
        cls, first: Answer, outcomes: tuple[object, ...], codes: NDArray[np.intp], hits: NDArray[np.intp]
    ) -> Sheet:
        """Return the sheet of these codes, with hits at these places."""
        return cls(first, outcomes, codes.astype(_kind(outcomes)).tobytes(), tuple(hits.tolist()))

    @property
    def indices(self) -> NDArray[np.intp]:
        """Return which outcome each answer is."""
        return np.frombuffer(self.codes, dtype=_kind(self.outcomes)).astype(np.intp)

    @property
    def seq(self) -> int:
        """Return the seq of the last answer."""
        return self.first.seq + len(self) - 1

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self.codes) // _kind(self.outcomes).itemsize

    @property
    def units(self) -> tuple[int, ...]:
        """Return what all hits charged, on each meter."""
        return tuple(unit * len(self.hits) for unit in self.first.units)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Return the answers one by one; made by hand, since `replace` takes three times as long."""
        first, nothing, hits = self.first, (0,) * len(self.first.units), frozenset(self.hits)
        start = first.key if isinstance(first.key, int) else None
        named = (first.algorithm, first.target, first.epsilon, first.delta, first.received)
        told = (first.scale, first.interval, first.prior, first.question, first.snapshot)
        return tuple(
            Answer(
                self.outcomes[code],
                hit := place in hits,
                first.price if hit else 0.0,
                first.seq + place,
                *named,
                first.units if hit else nothing,
                first.candidate,
                first.release,
                first.key if start is None else start + place,
                *told,
            )
            for place, code in enumerate(self.indices.tolist())
        )


def _kind(outcomes: tuple[object, ...]) -> np.dtype[np.unsignedinteger]:
    return np.dtype("u1" if len(outcomes) <= _ONE_BYTE else "<u2")
