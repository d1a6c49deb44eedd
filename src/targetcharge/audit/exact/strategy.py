"""Strategies: games that look at the loss so far, the hits left and the step, and that a search can change.

>>> import numpy as np
>>> from targetcharge.audit.exact import explore, opener
>>> strategy = Strategy(("test",), (0.5,), questions=6, aim=0.5, seed=1)
>>> strategy.words()
'6 questions by test at epsilon 0.5, the free outcome moving the loss towards 0.5'
>>> len(explore(opener(0.5, hits=1), strategy))
7
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.audit.exact.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.audit.exact.player import Player

State = tuple[int, int, int]
"""The loss so far in steps of the query ε, the hits left, the number of the question."""

STOP: Final = "stop"

_REFUSALS: Final = 2
"""In a row, after which a game ends: one shows that refusals say nothing."""


@final
@dataclass(frozen=True)
class Move:
    """What to do in a state.

    Attributes:
        tool: of `TOOLS`, or "stop".
        epsilon: of the computation.
        towards: where the free outcome moves the loss: 1, -1, or 0 for any.
        variant: which laws and parameters.
    """

    tool: str
    epsilon: float
    towards: int
    variant: int

    def words(self) -> str:
        """Return it in words."""
        if self.tool == STOP:
            return "stop"
        way = {1: "up", -1: "down", 0: "any way"}[self.towards]
        return f"{self.tool} {way} at epsilon {self.epsilon:g} (variant {self.variant})"


@final
@dataclass(frozen=True)
class Strategy:
    """A game: one usual way to play, and exceptions to it that a search has found.

    Attributes:
        menu: the tools of the usual way; which comes when is fixed by the seed and the step.
        epsilons: of computations.
        questions: the most to ask.
        aim: the usual free outcome moves the loss towards this.
        seed: of the usual way's choices.
        steady: whether the usual way makes the same choices in every step.
        exceptions: what to do instead in some states.
        visited: the states that were met.
    """

    menu: tuple[str, ...]
    epsilons: tuple[float, ...]
    questions: int
    aim: float
    seed: int
    exceptions: Mapping[State, Move] = field(default_factory=dict)
    visited: dict[State, None] = field(default_factory=dict, compare=False, repr=False)
    steady: bool = False

    def __call__(self, player: Player) -> None:
        """Play."""
        for step in range(self.questions):
            state = round(player.loss / max(self.epsilons)), player.hits_left, step
            self.visited[state] = None
            move = self.exceptions.get(state) or self.usual(step, player.loss)
            if move.tool == STOP or player.refused >= _REFUSALS:
                return
            TOOLS[move.tool](player, np.random.default_rng(move.variant), move.epsilon, move.towards)

    def usual(self, step: int, loss: float) -> Move:
        """Return the usual move."""
        towards = 1 if loss < self.aim - 1e-9 else -1
        turn = self.seed + step
        return Move(
            self.menu[turn % len(self.menu)],
            self.epsilons[turn // len(self.menu) % len(self.epsilons)],
            towards,
            997 * self.seed + (0 if self.steady else step),
        )

    def changed(self, rng: np.random.Generator, tools: tuple[str, ...]) -> Strategy:
        """Return a strategy that differs a little: another move in some state, another aim, other laws."""
        kind = rng.random()
        if kind < 0.15:
            return replace(
                self,
                visited={},
                aim=max(0.0, self.aim + max(self.epsilons) * float(rng.choice([-1, -0.5, 0.5, 1]))),
            )
        if kind < 0.25:
            return replace(self, visited={}, seed=int(rng.integers(1 << 20)))
        states = list(self.visited) or [(0, 1, 0)]
        exceptions = dict(self.exceptions)
        state = states[int(rng.integers(len(states)))]
        if kind < 0.4 and exceptions:
            exceptions.pop(list(exceptions)[int(rng.integers(len(exceptions)))])
        else:
            usual = self.exceptions.get(state) or self.usual(state[2], state[0] * max(self.epsilons))
            exceptions[state] = _changed_move(rng, usual, tools, self.epsilons)
        return replace(self, visited={}, exceptions=exceptions)

    def words(self) -> str:
        """Return it in words: the usual way, and the exceptions in states that are met."""
        scale = ", ".join(f"{epsilon:g}" for epsilon in self.epsilons)
        usual = (
            f"{self.questions} questions by {', '.join(self.menu)} at epsilon {scale},"
            f" the free outcome moving the loss towards {self.aim:g}"
        )
        if len(self.menu) > 1 or self.menu[0] != "test":
            usual += f" (seed {self.seed}{', steady' if self.steady else ''})"
        met = {state: move for state, move in self.exceptions.items() if state in self.visited}
        told = "".join(
            f"; at loss {loss:+d} steps, {hits} hits left, question {step + 1}: {move.words()}"
            for (loss, hits, step), move in sorted(met.items(), key=lambda item: item[0][2])
        )
        return usual + told


def _changed_move(
    rng: np.random.Generator, usual: Move, tools: tuple[str, ...], epsilons: tuple[float, ...]
) -> Move:
    kind = rng.random()
    if kind < 0.3:
        return replace(usual, towards=-usual.towards or 1)
    if kind < 0.5:
        return replace(usual, variant=int(rng.integers(1 << 20)))
    tool = str(rng.choice([*tools, STOP]))
    return Move(tool, float(rng.choice(epsilons)), int(rng.choice([1, 1, -1, 0])), int(rng.integers(1 << 20)))
