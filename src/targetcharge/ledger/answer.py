"""Answers: what a session published, one by one or many in one piece, in a byte or two each.

>>> answer = Answer(outcome=57, hit=True, price=1.0, seq=3, algorithm="above_threshold(len, 50)")
>>> answer.outcome, answer.hit
(57, True)
>>> bool(answer)
Traceback (most recent call last):
TypeError: an Answer is neither true nor false: say .hit, or look at .outcome
>>> first = Answer(None, True, 1.0, 8, "labels", key=0, grains=(1,))
>>> batch = BatchEntry(first, ("cat", "dog"), bytes([1, 0, 1]), hit_places=(2,))
>>> [(answer.seq, answer.key, answer.outcome, answer.price) for answer in batch.answers]
[(8, 0, 'dog', 0.0), (9, 1, 'cat', 0.0), (10, 2, 'dog', 1.0)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NoReturn, final

import numpy as np

from targetcharge import markup
from targetcharge.ledger import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from targetcharge.accounting.targets.plain import PlainTarget

Interval = tuple[float | None, float | None]
"""From the lowest to the highest value; None where it has no end."""

Call = Literal["ask", "release", "revise", "select", "select ended", "select broke"]
"""What was called. The last two end a selection: no more candidates reach the floor, or its rule broke."""

_ONE_BYTE: Final = 256

MOST_OUTCOMES: Final = 2**16
"""What two bytes can tell apart."""


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """One published outcome and what it cost.

    Attributes:
        outcome: what was published; for a miss the free outcome (None if there is nothing to say).
        hit: whether it was in the target (of any meter, in a session with alternatives).
        price: what it cost on the session's meter: 0 for a miss.
        seq: its number, unique on the ledger and increasing within a session.
        algorithm: the algorithm's name.
        targets: the target it was asked with on each of the session's meters, as plain data; where every outcome
            is paid for what it may tell, of a pick and then of its number.
        epsilon: the ε of the computation, or that of the tests that cost as much where every outcome is paid for:
            what that may tell is in its targets. 0 if there is none.
        delta: the δ of the computation, spent hit or miss.
        received: when the question was received, in seconds since 1970.
        grains: what it charged on each of the session's meters, in the meter's grains.
        candidate: the index of the candidate, in a selection.
        release: the seq of the release that it belongs to.
        key: the key that it is about, in a batch; dates and times as ISO text.
        scale: of the noise (1/rate), on the outcome's own scale; 0 if there is no such figure.
        interval: where the true value lies: for at least 95% of all answers, published or not.
        prior: the earlier value that "unchanged" stands for.
        question: what was asked of a table, as canonical JSON; empty elsewhere, and after the first answer of a
            selection.
        snapshot: of the table that it is about: 1 for what was opened, one more for everything that was appended;
            0 where there is no table.
        call: what was called.
        repeat: whether it was published before, when the same question was asked: then it is free.
    """

    outcome: object
    hit: bool
    price: float
    seq: int
    algorithm: str = ""
    targets: tuple[PlainTarget, ...] = ()
    epsilon: float = 0.0
    delta: float = 0.0
    received: float = 0.0
    grains: tuple[int, ...] = (0,)
    candidate: int | None = None
    release: int | None = None
    key: object = None
    scale: float = 0.0
    interval: Interval | None = None
    prior: float | None = None
    question: str = ""
    snapshot: int = 0
    call: Call = "ask"
    repeat: bool = False

    @property
    def meters_hit(self) -> tuple[bool, ...]:
        """Return which of the session's meters it hit: one, unless there are alternatives."""
        return tuple(grains > 0 for grains in self.grains)

    def __str__(self) -> str:
        """Return question, key, outcome, 95% interval and cost, in a line."""
        return words.sentence(self)

    def _repr_html_(self) -> str:
        """Return the answer as HTML, for notebooks."""
        facts = {
            "question": self.algorithm,
            "key": words.key(self),
            "outcome": words.outcome(self),
            "95% interval": markup.interval(self.interval),
            "cost": words.cost(self.price, hit=self.hit, repeat=self.repeat),
            "number": self.seq,
        }
        return markup.table([], [(name, value) for name, value in facts.items() if value not in (None, "")])

    def __bool__(self) -> NoReturn:
        """Refuse: an answer may be a hit with outcome False, or a miss with outcome True."""
        msg = "an Answer is neither true nor false: say .hit, or look at .outcome"
        raise TypeError(msg)


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

    def answer_at(self, place: int) -> Answer:
        """Return the answer at a place."""
        return self._answers_at((place,))[0]

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
