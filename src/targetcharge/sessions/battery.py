"""The tests of a battery on their way out: drawn when they are due, published in runs that end with a hit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from targetcharge.ledger import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.ledger import Most
    from targetcharge.mechanisms import Battery
    from targetcharge.mechanisms.battery import Draws
    from targetcharge.randomness import Entropy
    from targetcharge.sessions.questions import Question

MOST_TOGETHER: Final = 5_000
"""Answers that leave together at most: a ledger needs one disk sync to number them."""


@final
class Tests:
    """What was drawn and not published yet. As secret as the data."""

    def __init__(self, battery: Battery, asked: Sequence[Question], received: float) -> None:
        """Draw nothing yet."""
        self._battery = battery
        self._asked = asked
        self._received = received
        self._next = 0
        self._draws: Draws | None = None
        self._snapshot = 0
        self.alike = all(each is asked[0] for each in asked)

    @property
    def most(self) -> Most:
        """Return the most that the next answers could charge: one hit."""
        return replace(self._asked[0].most, answers=min(MOST_TOGETHER, self.left))

    @property
    def left(self) -> int:
        """Return how many tests are not published."""
        return len(self._battery) - self._next

    def up_to_a_hit(self, data: object, entropy: Entropy, number: Callable[[], int]) -> list[Answer]:
        """Return the next answers: misses, and one hit at the end if there is one among them."""
        if self._draws is None:
            self._draws = self._battery.draws(data, entropy)
            self._snapshot = self._asked[0].snapshot()
        battery, answers = self._battery, list[Answer]()
        asked, missed = None, None
        last = min(self._next + MOST_TOGETHER, len(battery))
        for index, steps in enumerate(self._draws(self._next, last), self._next):
            key = battery.keys[index]
            if asked is not self._asked[index] or missed is None:
                asked = self._asked[index]
                missed = replace(asked.answer(None, (False,), 0, self._received), snapshot=self._snapshot)
            if steps >= battery.least[index]:
                hit = asked.answer(battery.gauge.value(steps), (True,), number(), self._received)
                answers.append(replace(hit, key=key, snapshot=self._snapshot))
                break
            answers.append(_about(missed, number(), key))
        return answers

    def published(self, count: int) -> None:
        """Remember that so many more tests are published."""
        self._next += count
        if not self.left:
            self._draws = None

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<{self.left} tests to publish>"


def _about(missed: Answer, seq: int, key: object) -> Answer:
    """Return a miss about a key: as `replace` would, in a third of the time."""
    return Answer(
        missed.outcome,
        missed.hit,
        missed.price,
        seq,
        missed.algorithm,
        missed.target,
        missed.epsilon,
        missed.delta,
        missed.received,
        missed.units,
        None,
        None,
        key,
        missed.scale,
        missed.interval,
        None,
        missed.question,
        missed.snapshot,
    )
