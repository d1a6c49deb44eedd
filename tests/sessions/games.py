"""Games that an analyst may play against a session: each is a function of what was seen so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from targetcharge.audit.exact import response
from targetcharge.audit.exact.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.audit.exact import Player

PLAIN = ("test", "prior", "twins", "release", "revise", "revise", "select", "everything", "failing")
WITH_TWICE = (*PLAIN, "twice", "twice", "agreement")
ALL = (*WITH_TWICE, "declared", "declared", "between", "between", "boundary", "boundary")


@dataclass(frozen=True)
class Wanderer:
    """A random game: what comes next is drawn anew from all that was seen.

    Attributes:
        seed: of the game.
        epsilons: of the computations.
        menu: what it may ask.
        questions: how many it asks.
        aim: with probability `skill` the free outcome is the one that moves the loss towards this.
        skill: the probability of a clever choice.
    """

    seed: int
    epsilons: tuple[float, ...]
    menu: tuple[str, ...]
    questions: int
    aim: float
    skill: float

    @classmethod
    def drawn(cls, seed: int, epsilons: tuple[float, ...], menu: tuple[str, ...]) -> Wanderer:
        rng = np.random.default_rng(seed)
        some = tuple(str(word) for word in rng.choice(menu, rng.integers(1, 4)))
        aim = max(epsilons) * float(rng.integers(0, 3))
        return cls(seed, epsilons, some, int(rng.integers(4, 7)), aim, float(rng.choice([0.3, 0.95])))

    def __call__(self, player: Player) -> None:
        for step in range(self.questions):
            rng = np.random.default_rng([self.seed, step, crc32(repr(player.view).encode())])
            epsilon = float(rng.choice(self.epsilons))
            clever = 1 if player.loss < self.aim - 1e-9 else -1
            TOOLS[str(rng.choice(self.menu))](player, rng, epsilon, clever if rng.random() < self.skill else 0)


def climber(epsilon: float, aim: float, questions: int) -> Callable[[Player], None]:
    """Return the best game of tests: the response that moves the loss towards the aim is free."""

    def game(player: Player) -> None:
        for _ in range(questions):
            pair = response(epsilon, *((False, True) if player.loss < aim - 1e-9 else (True, False)))
            player.test(player.algorithm(pair, epsilon))

    return game
