"""Every way a session can go, on two neighbouring datasets at once.

A computation is a pair of laws over a few outcomes; its algorithm's outcome is a choice. `explore` plays the same
game against a fresh `tc.Session` for every sequence of choices, and adds up the probabilities, under either
dataset, of everything the analyst got to see. Nothing here knows how sessions charge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

import targetcharge as tc
from targetcharge.mechanisms import Algorithm

Pair = Mapping[object, tuple[float, float]]
"""Outcome -> its probability on either dataset. A type of exception is raised, a `Twin` stands for its value."""

Views = dict[tuple[object, ...], tuple[float, float]]
"""What was seen -> its probability on either dataset."""


class Twin:
    """An outcome that equals another one and looks different: `Twin(1)` beside `Twin(True)`."""

    def __init__(self, value: object) -> None:
        self.value = value


@dataclass
class Chance:
    """The choices of one run: the first ones are given, further ones take the first outcome."""

    given: list[int]
    taken: list[tuple[int, int]] = field(default_factory=list)
    weights: tuple[float, float] = (1.0, 1.0)

    def draw(self, pair: Pair) -> object:
        place = len(self.taken)
        index = self.given[place] if place < len(self.given) else 0
        self.taken.append((index, len(pair)))
        outcome, chances = list(pair.items())[index]
        self.weights = (self.weights[0] * chances[0], self.weights[1] * chances[1])
        if isinstance(outcome, type):
            raise outcome
        return outcome.value if isinstance(outcome, Twin) else outcome

    def following(self) -> list[int] | None:
        taken = list(self.taken)
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        return [index for index, _ in taken[:-1]] + [taken[-1][0] + 1] if taken else None


class Player:
    """Asks a session, and keeps all that comes back: answers, refusals, failures, meters, the transcript.

    Attributes:
        session: the real one.
        view: everything seen so far.
        loss: a guess of the privacy loss so far: exact as long as nothing is pending.
        pending: releases that can be revised.
    """

    def __init__(self, session: tc.Session, chance: Chance) -> None:
        self.session = session
        self.view: tuple[object, ...] = ()
        self.loss = 0.0
        self.pending: list[tuple[tc.Release, Pair]] = []
        self._chance = chance

    def algorithm(self, pair: Pair, epsilon: float, **parts: object) -> Algorithm:
        """Return an algorithm that draws from a pair."""
        declared = {"name": "scripted", "delta": 0.0, **parts}
        return Algorithm(epsilon=epsilon, run=lambda _data, _entropy: self._chance.draw(pair), **declared)

    def ask(self, call: Callable[[], object], event: Callable[[object], Pair] = lambda _: {}) -> object:
        """Make a call and look at all there is to see; `event` tells which outcomes would have looked the same."""
        try:
            found = call()
        except (tc.TargetChargeError, KeyboardInterrupt, SystemExit) as error:
            self._see(type(error).__name__, str(error))
            return None
        match found:
            case tc.Answer():
                self._see(*_facts(found))
            case tc.Release():
                self._see(found.released, found.outcome, found.price, found.seq)
            case list():
                self._see(*(_facts(answer) for answer in found))
        self._learn(event(found))
        return found

    def release(self, algorithm: Algorithm, pair: Pair, when: object) -> None:
        found = self.ask(lambda: self.session.release(algorithm, when), lambda seen: _matching(pair, seen, when))
        if isinstance(found, tc.Release) and not found.released:
            rest = {outcome: chances for outcome, chances in pair.items() if outcome not in when}
            self.pending.append((found, rest))

    def revise(self, which: int, when: object) -> None:
        release, _ = self.pending[which]
        found = self.ask(lambda: release.revise(when))
        if isinstance(found, tc.Release) and found.released:
            del self.pending[which]

    def _see(self, *facts: object) -> None:
        meters = [(meter.totals, meter.hits_left, meter.odometer()) for meter in self.session.meters]
        self.view = (*self.view, facts, *meters)

    def _learn(self, event: Pair) -> None:
        chances = [sum(p) for p in zip(*event.values(), strict=True)]
        if chances and min(chances) > 0:
            self.loss += math.log(chances[0] / chances[1])


def _facts(answer: tc.Answer) -> tuple[object, ...]:
    kind = type(answer.outcome).__name__
    return kind, answer.outcome, answer.hit, answer.price, answer.units, answer.seq, answer.candidate


def _matching(pair: Pair, seen: object, when: object) -> Pair:
    if isinstance(seen, tc.Release) and seen.released:
        return {seen.outcome: pair[seen.outcome]}
    return {outcome: chances for outcome, chances in pair.items() if outcome not in when}


def explore(opened: Callable[[], tc.Session], game: Callable[[Player], None]) -> Views:
    """Return all that could be seen in a game, with its probabilities."""
    views: Views = {}
    given: list[int] | None = []
    while given is not None:
        chance = Chance(given)
        with opened() as session:
            player = Player(session, chance)
            game(player)
            view = (*player.view, *(_facts(answer) for answer in session.transcript))
        before = views.get(view, (0.0, 0.0))
        views[view] = (before[0] + chance.weights[0], before[1] + chance.weights[1])
        given = chance.following()
    totals = [sum(weights) for weights in zip(*views.values(), strict=True)]
    assert np.allclose(totals, 1, atol=1e-12), f"the game does not follow from what was seen: {totals}"
    return views


def hockey_stick(views: Views, epsilons: list[float]) -> np.ndarray:
    """Return, for each ε, the smallest δ with which what is seen is (ε, δ)-indistinguishable."""
    weights = np.array(list(views.values()))
    factors = np.exp(np.asarray(epsilons))[:, None]
    forward = np.maximum(0.0, weights[:, 0] - factors * weights[:, 1]).sum(axis=1)
    backward = np.maximum(0.0, weights[:, 1] - factors * weights[:, 0]).sum(axis=1)
    return np.maximum(forward, backward)


def moment(views: Views, order: float) -> float:
    """Return ln E[e^{(order-1)·loss}], the worse direction."""
    weights = np.array(list(views.values()))
    ends = [np.sum(first**order * second ** (1 - order)) for first, second in (weights.T, weights.T[::-1])]
    return math.log(max(ends))
