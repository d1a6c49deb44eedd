"""Published questions: how a ledger finds again what a question of a table published when it last hit.

An index leads from a question (and, of a watch, a key) to the entry; it is written with the entry, and what it
leads to is compared with what was asked. So an index that was changed can at worst find nothing.

>>> asked = QuestionId('{"what":{"count":null},"above":100}', 0.1, snapshot=1)
>>> answer = Answer(120, True, 1.0, 7, question=asked.question, epsilon=0.1, snapshot=1, grains=(1,))
>>> places_of([(3, answer)])[asked, WHOLE]
(3, 0)
>>> (repeat,) = repeats_of([answer], asked, most=1)
>>> repeat.outcome, repeat.seq, repeat.price, repeat.repeat
(120, 7, 0.0, True)
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from targetcharge.ledger.answer import Answer, BatchEntry
from targetcharge.outcomes import canonical_json, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from targetcharge.ledger.entries import Entry

WHOLE: Final = ""
"""Stands for the key of a question that is answered as a whole; no key's text is empty."""


class QuestionId(NamedTuple):
    """What tells a question of a table apart from all others.

    Attributes:
        question: its record, with the label: canonical JSON.
        epsilon: of one computation.
        prior: the earlier value that it compares with.
        snapshot: of the table that it is about.
    """

    question: str
    epsilon: float
    prior: float | None = None
    snapshot: int = 0

    @property
    def digest(self) -> bytes:
        """Return a hash of it."""
        figures = (self.epsilon, None if self.prior is None else float(self.prior), self.snapshot)
        return hashlib.sha256(
            f"{self.question}\n{canonical_json(figures)}".encode(errors="surrogatepass")
        ).digest()


Place = tuple[int, int]
"""The number of an entry, and the place of an answer in it."""


def key_text(key: object) -> str:
    """Return a key, as answers carry it, as text."""
    return canonical_json(to_plain(key))


def places_of(entries: Iterable[tuple[int, Entry]]) -> dict[tuple[QuestionId, str], Place]:
    """Return where numbered entries publish the hits of questions: the first answer of the last call of each.

    Releases are none: each is drawn once, for a condition of its own.
    """
    places: dict[tuple[QuestionId, str], Place] = {}
    received: dict[tuple[QuestionId, str], float] = {}
    for number, entry in entries:
        first = entry.first if isinstance(entry, BatchEntry) else entry
        if not isinstance(first, Answer) or not first.question or not _is_asked(first):
            continue
        asked, found = _id_of(first), [(WHOLE, 0)] if first.hit else []
        if isinstance(entry, BatchEntry):
            found = [(key_text(entry.answer_at(place).key), place) for place in entry.hit_places]
        elif first.hit and first.key is not None:  # of a watch, in the first format
            found.append((key_text(first.key), 0))
        for key, place in found:
            if received.get((asked, key)) != first.received:  # else it is a later answer of the same call
                received[asked, key], places[asked, key] = first.received, (number, place)
    return places


def repeats_of(entries: Sequence[Entry], asked: QuestionId, most: int) -> tuple[Answer, ...]:
    """Return what a question published by one call, whose first answer is the first of these entries.

    None if that is another question's.

    Args:
        entries: in a row.
        asked: the question.
        most: how many answers it has at most.
    """
    answers: list[Answer] = []
    for entry in entries[:most]:
        if not isinstance(entry, Answer) or not entry.hit or not _is_asked(entry):
            break
        # Later answers of a selection do not say the question again.
        same_call = bool(answers) and entry.received == answers[0].received and not entry.question
        if not same_call and _id_of(entry) != asked:
            break
        answers.append(_repeat(entry))
    return tuple(answers)


def repeat_at(entry: Entry, place: int, asked: QuestionId, key: str) -> Answer | None:
    """Return what a question about keys published for a key at a place of an entry; None if it is another."""
    answer: Entry = entry
    if isinstance(entry, BatchEntry) and place in entry.hit_places:
        answer = entry.answer_at(place)
    if not isinstance(answer, Answer) or not answer.hit or not _is_asked(answer):
        return None
    return _repeat(answer) if _id_of(answer) == asked and key_text(answer.key) == key else None


def _is_asked(answer: Answer) -> bool:
    return answer.call in ("ask", "select")


def _id_of(answer: Answer) -> QuestionId:
    return QuestionId(answer.question, answer.epsilon, answer.prior, answer.snapshot)


def _repeat(answer: Answer) -> Answer:
    return replace(answer, price=0.0, grains=(0,) * len(answer.grains), repeat=True)
