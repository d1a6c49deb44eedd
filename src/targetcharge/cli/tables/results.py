"""Results: what was asked, what came of it and how the meter stands; as plain data, and as rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import TargetChargeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import targetcharge as tc
    from targetcharge.cli.tables.gathering import Outcome
    from targetcharge.tables.describing import Description

COLUMNS: Final = ("outcome", "hit", "price", "low", "high", "scale", "seq")


@final
@dataclass(frozen=True)
class Results:
    """What a command prints.

    Attributes:
        outcome: what came of asking.
        heads: what tells questions apart: ("question",), ("name", "question"), or the columns of the keys.
        unanswered: of each question without an answer, a value for each head.
        names: of the questions, if they have any.
        standing: of the meter, as plain data.
        ledger: the file that keeps the budget.
    """

    outcome: Outcome
    heads: tuple[str, ...]
    unanswered: Sequence[tuple[object, ...]]
    names: Sequence[str]
    standing: dict[str, object]
    ledger: str

    @property
    def by_key(self) -> bool:
        """Return whether answers are told apart by keys."""
        return self.heads[-1:] != ("question",)

    def label(self, index: int) -> tuple[object, ...]:
        """Return what tells an answer from the others, a value for each head."""
        answer = self.outcome.answers[index]
        if self.by_key:
            return answer.key if isinstance(answer.key, tuple) else (answer.key,)
        return (self.names[index], answer.algorithm) if self.names else (answer.algorithm,)

    def ended(self, error: TargetChargeError) -> Results:
        """Return the results with an error at their end, unless there was one before."""
        return replace(self, outcome=replace(self.outcome, error=self.outcome.error or error))

    def rows(self) -> list[list[object]]:
        """Return all answers and then what was not answered, by `heads` and COLUMNS; without a seq: no answer."""
        answers = self.outcome.answers
        found = [[*self.label(index), *_cells(answer)] for index, answer in enumerate(answers)]
        return found + [[*label, *[None] * len(COLUMNS)] for label in self.unanswered]

    def plain(self) -> dict[str, object]:
        """Return plain data."""
        answers = self.outcome.answers
        by = {"by": list(self.heads)} if self.by_key else {}
        return {
            **by,
            "answers": [self._plain(index) for index in range(len(answers))],
            "unanswered": [label[0] if len(label) == 1 else list(label) for label in self.unanswered],
            "stopped": self.outcome.stopped or None,
            "meter": self.standing,
            "ledger": self.ledger,
        }

    def _plain(self, index: int) -> dict[str, object]:
        answer = self.outcome.answers[index]
        name = {"name": self.names[index]} if self.names else {}
        return {
            **name,
            "question": answer.algorithm,
            "key": answer.key,
            "outcome": said(answer.outcome),
            "hit": answer.hit,
            "price": answer.price,
            "interval": answer.interval,
            "scale": answer.scale,
            "seq": answer.seq,
        }


def said(outcome: object) -> object:
    """Return an outcome as plain data: marks and sides as words."""
    return outcome.value if isinstance(outcome, Enum) else outcome


def standing(table: tc.Table, described: Description) -> dict[str, object]:
    """Return how the meter stands, as plain data; without hits if the ledger cannot be read any more."""
    try:
        hits: tuple[int | None, int | None] = table.meter.hits, table.meter.hits_left
    except TargetChargeError:
        hits = None, None
    return {
        "unit": described.unit,
        "meter": described.meter,
        "charging": described.charging,
        "query_epsilon": described.query_epsilon,
        "guarantee": {"epsilon": described.budget.epsilon, "delta": described.budget.delta},
        "hits": hits[0],
        "hits_left": hits[1],
    }


def _cells(answer: tc.Answer) -> list[object]:
    low, high = answer.interval or (None, None)
    return [said(answer.outcome), answer.hit, answer.price, low, high, answer.scale, answer.seq]
