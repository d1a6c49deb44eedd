"""Tallies: many answers as a few numbers, question by question and noise by noise.

>>> from targetcharge.ledger import Answer
>>> tally = Tally("count(*) >= 50", "a value is published")
>>> tally.add(Answer(None, False, 0.0, 1, key="Kent"))
>>> tally.add(Answer(57, True, 1.0, 2, key="Devon", interval=(27, 87)))
>>> tally.asked, tally.hits, len(tally.keys), tally.margins
(2, 1, 2, {30.0})
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar, final

from targetcharge import markup

if TYPE_CHECKING:
    from targetcharge.ledger import Answer

_Value = TypeVar("_Value")

_FEW: Final = 8
"""More different prices, scales or intervals of one question than this are not told apart."""


@final
@dataclass
class Tally:
    """The answers to one question, about one key or many.

    Attributes:
        question: as the transcript calls it.
        costs: when it costs.
        asked: how many answers there are.
        hits: how many of them cost.
        keys: that it was asked about.
        prices: that hits had.
        scales: of the noise.
        margins: how far a published value may be off, in 95% of answers.
        misses: what a miss says of the true value, in words.
    """

    question: str
    costs: str
    asked: int = 0
    hits: int = 0
    keys: set[object] = field(default_factory=set)
    prices: set[float] = field(default_factory=set)
    scales: set[float] = field(default_factory=set)
    margins: set[float] = field(default_factory=set)
    misses: set[str] = field(default_factory=set)

    def add(self, answer: Answer) -> None:
        """Count an answer."""
        self.asked += 1
        if answer.key is not None:
            self.keys.add(answer.key)
        if answer.scale:
            _note(self.scales, answer.scale)
        if answer.hit:
            self.hits += 1
            _note(self.prices, answer.price)
        low, high = answer.interval or (None, None)
        if answer.hit and low is not None and high is not None and _number(answer.outcome):
            _note(self.margins, (high - low) / 2)
        elif not answer.hit and answer.interval:
            _note(self.misses, markup.interval(answer.interval))


@final
@dataclass
class Noise:
    """The noise of one scale.

    Attributes:
        scale: of the noise, in the outcome's own unit.
        answers: how many answers had it.
        whole: whether all that was published with it are whole numbers.
    """

    scale: float
    answers: int = 0
    whole: bool = True

    def add(self, answer: Answer) -> None:
        """Count an answer."""
        self.answers += 1
        ends = answer.interval or ()
        self.whole = self.whole and not any(isinstance(end, float) and end % 1 for end in (answer.outcome, *ends))


def _note(seen: set[_Value], value: _Value) -> None:
    if len(seen) <= _FEW:
        seen.add(value)


def _number(outcome: object) -> bool:
    return isinstance(outcome, int | float) and not isinstance(outcome, bool)
