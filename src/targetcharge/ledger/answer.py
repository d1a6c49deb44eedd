"""Answers: what a session published, one by one.

>>> answer = Answer(outcome=57, hit=True, price=1.0, seq=3, algorithm="above_threshold(len, 50)")
>>> answer.outcome, answer.hit
(57, True)
>>> bool(answer)
Traceback (most recent call last):
TypeError: an Answer is neither true nor false: say .hit, or look at .outcome
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn, final

from targetcharge import markup

if TYPE_CHECKING:
    from targetcharge.accounting.targets.plain import PlainTarget

Interval = tuple[float | None, float | None]
"""From the lowest to the highest value; None where it has no end."""

Call = Literal["ask", "release", "revise", "select", "select ended", "select broke"]
"""What was called. The last two end a selection: no more candidates reach the floor, or its rule broke."""


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
        targets: the target it was asked with on each of the session's meters, as plain data.
        epsilon: the ε of the computation.
        delta: the δ of the computation, spent hit or miss.
        received: when the question was received, in seconds since 1970.
        grains: what it charged on each of the session's meters, in the meter's grains.
        candidate: the index of the candidate, in a selection.
        release: the seq of the release that it belongs to.
        key: the key that it is about, in a batch; dates and times as ISO text.
        scale: of the noise (1/rate), in the outcome's own unit; 0 if there is no such figure.
        interval: where the true value lies: for at least 95% of all answers, published or not.
        prior: the earlier value that "unchanged" stands for.
        question: what was asked of a table, as canonical JSON; empty elsewhere, and after the first answer of a
            selection.
        snapshot: of the table that it is about: 1 for what was opened, one more for everything that was appended;
            0 where there is no table.
        call: what was called.
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

    @property
    def meters_hit(self) -> tuple[bool, ...]:
        """Return which of the session's meters it hit: one, unless there are alternatives."""
        return tuple(grains > 0 for grains in self.grains)

    def _repr_html_(self) -> str:
        """Return it as HTML, for notebooks."""
        facts = {
            "question": self.algorithm,
            "key": self.key,
            "outcome": markup.number(self.outcome) if self.outcome is not None else "nothing",
            "95% interval": markup.interval(self.interval),
            "hit": f"yes, price {self.price:.4g}" if self.hit else "no, free",
            "number": self.seq,
        }
        return markup.table([], [(name, value) for name, value in facts.items() if value not in (None, "")])

    def __bool__(self) -> NoReturn:
        """Refuse: an answer may be a hit with outcome False, or a miss with outcome True."""
        msg = "an Answer is neither true nor false: say .hit, or look at .outcome"
        raise TypeError(msg)
