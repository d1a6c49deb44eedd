"""Contests: the candidates of a selection, as separate algorithms or as one battery with a shared computation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, final

from targetcharge.mechanisms import Battery
from targetcharge.sessions.questions import most_of_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.ledger import Answer, Most
    from targetcharge.mechanisms import Algorithm
    from targetcharge.randomness import Entropy
    from targetcharge.sessions.questions import Question, Questions


class Contest(Protocol):
    """All candidates of one selection."""

    def most(self, count: int) -> Most:
        """Return the most that the release of `count` candidates could charge."""
        ...

    def draw(self, data: object, entropy: Entropy) -> Sequence[object]:
        """Run every candidate once."""
        ...

    def answer(self, index: int, outcome: object, seq: int, received: float) -> Answer:
        """Return the answer that releases a candidate."""
        ...

    def end(self, seq: int, received: float, *, broken: bool) -> Answer:
        """Return the answer that says that no more candidates reach the floor, or that the rule broke."""
        ...


def contest(candidates: Sequence[Algorithm] | Battery, questions: Questions) -> Contest:
    """Return the contest of the candidates that a caller gave."""
    if isinstance(candidates, Battery):
        return _Together(candidates, [questions.candidate(test) for test in candidates.tests])
    return _Separate([questions.candidate(algorithm) for algorithm in candidates])


@final
class _Separate:
    """Each candidate is an algorithm of its own."""

    def __init__(self, asked: Sequence[Question]) -> None:
        """Run these."""
        self._asked = asked

    def most(self, count: int) -> Most:
        """Return the most, at the dearest candidate's price."""
        return most_of_all(self._asked, count)

    def draw(self, data: object, entropy: Entropy) -> list[object]:
        """Run one after another."""
        return [each.draw(data, entropy) for each in self._asked]

    def answer(self, index: int, outcome: object, seq: int, received: float) -> Answer:
        """Return the candidate's answer."""
        return self._asked[index].answer(outcome, (True,), seq, received, candidate=index)

    def end(self, seq: int, received: float, *, broken: bool) -> Answer:
        """Return the end."""
        ended = self._asked[0].answer(None, (False,), seq, received)
        return _end(ended, f"{len(self._asked)} candidates", broken=broken)


@final
class _Together:
    """The candidates are the keys of a battery."""

    def __init__(self, battery: Battery, asked: Sequence[Question]) -> None:
        """Run a battery, whose candidates have one price."""
        self._battery = battery
        self._asked = asked

    def most(self, count: int) -> Most:
        """Return the most."""
        return replace(self._asked[0].most, count=count, answers=0)

    def draw(self, data: object, entropy: Entropy) -> list[object]:
        """Compute all scores at once."""
        return [self._battery.gauge.value(steps) for steps in self._battery.draw(data, entropy)]

    def answer(self, index: int, outcome: object, seq: int, received: float) -> Answer:
        """Return the answer of a key."""
        answer = self._asked[index].answer(outcome, (True,), seq, received, candidate=index)
        return replace(answer, key=self._battery.keys[index])

    def end(self, seq: int, received: float, *, broken: bool) -> Answer:
        """Return the end."""
        names = {test.name for test in self._battery.tests}
        name = names.pop() if len(names) == 1 else f"{len(self._asked)} candidates"
        return _end(self._asked[0].answer(None, (False,), seq, received), name, broken=broken)


def _end(ended: Answer, name: str, *, broken: bool) -> Answer:
    why = "its rule broke" if broken else "no more reach the floor"
    return replace(ended, algorithm=name, target=f"select: {why}", interval=None)
