"""Games that an analyst may play against a session: each is a function of what was seen so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

import targetcharge as tc
from sessions.explorer import Pair, Player, Twin
from targetcharge.accounting import best_q
from targetcharge.mechanisms.algorithm import ANY_PRIOR
from targetcharge.mechanisms.between import side_law
from targetcharge.mechanisms.boundary_wrapper import mark_probability
from targetcharge.mechanisms.noise import NoiseLaw, rate_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PLAIN = ("test", "prior", "twins", "release", "revise", "revise", "select", "everything", "failing")
WITH_TWICE = (*PLAIN, "twice", "twice", "agreement")
ALL = (*WITH_TWICE, "declared", "declared", "between", "between", "boundary", "boundary")


def response(epsilon: float, plus: object, minus: object) -> Pair:
    """Return randomised response: `plus` speaks for the first dataset."""
    up, down = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return {plus: (up, down), minus: (down, up)}


def saturated(rng: np.random.Generator, epsilon: float, outcomes: Sequence[object]) -> Pair:
    """Return a pair whose likelihood ratio is e^ε or e^{-ε} at every outcome."""
    cut = int(rng.integers(1, len(outcomes)))
    shares = [*rng.dirichlet(np.ones(cut)), *rng.dirichlet(np.ones(len(outcomes) - cut))]
    signs = list(response(epsilon, "+", "-").values())
    return {
        outcome: tuple(float(share) * p for p in signs[place >= cut])
        for place, (outcome, share) in enumerate(zip(outcomes, shares, strict=True))
    }


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
            getattr(self, f"_{rng.choice(self.menu)}")(player, rng, epsilon)

    def _free(self, player: Player, rng: np.random.Generator, pair: Pair) -> object:
        """Return the outcome that is to be free: one that moves the loss towards the aim, or any."""
        sign = 1 if player.loss < self.aim - 1e-9 else -1
        clever = [y for y, (p0, p1) in pair.items() if sign * (p0 - p1) > 0]
        choices = clever if clever and rng.random() < self.skill else list(pair)
        return choices[rng.integers(len(choices))]

    def _pair(self, rng: np.random.Generator, epsilon: float, outcomes: Sequence[object]) -> Pair:
        shuffled = [outcomes[i] for i in rng.permutation(len(outcomes))]
        if rng.random() < self.skill:
            return response(epsilon, *shuffled[:2])
        return saturated(rng, epsilon, shuffled[: rng.integers(2, len(outcomes) + 1)])

    def _test(self, player, rng, epsilon):
        pair = response(epsilon, True, False)
        if self._free(player, rng, pair):
            pair = response(epsilon, False, True)
        algorithm = player.algorithm(pair, epsilon)
        player.ask(lambda: player.session.test(algorithm), lambda seen: {0: pair[seen.outcome]})

    def _prior(self, player, rng, epsilon):
        pair = self._pair(rng, epsilon, (0, 1, "a"))
        prior = self._free(player, rng, pair)
        algorithm = player.algorithm(pair, epsilon)
        player.ask(lambda: player.session.ask_prior(algorithm, prior), lambda seen: {0: pair[seen.outcome]})

    def _twins(self, player, rng, epsilon):
        """The free outcome has two looks, one for either dataset."""
        looks = [(1, True), (0.0, False), ((1, 2), (True, 2.0)), (tc.Side.BELOW, "below")][rng.integers(4)]
        pair = response(epsilon, *(Twin(look) for look in looks))
        algorithm = player.algorithm(pair, epsilon)
        player.ask(lambda: player.session.ask_prior(algorithm, looks[rng.integers(2)]))

    def _release(self, player, rng, epsilon):
        pair = self._pair(rng, epsilon, (0, 1, 2))
        when = set(pair) - {self._free(player, rng, pair)}
        when = when if rng.random() < 0.6 else set()
        player.release(player.algorithm(pair, epsilon), pair, when)

    def _revise(self, player, rng, epsilon):
        if not player.pending:
            self._release(player, rng, epsilon)
            return
        which = int(rng.integers(len(player.pending)))
        rest = player.pending[which][1]
        when = set(rest) - {self._free(player, rng, rest)} if rest else {0}
        player.revise(which, when if rng.random() < 0.8 else set(rest))

    def _select(self, player, rng, _epsilon):
        sizes = rng.choice(self.epsilons, int(rng.integers(2, 4)))
        pairs = [self._pair(rng, float(size), (0, 1, 2)) for size in sizes]
        algorithms = [player.algorithm(pair, float(size)) for pair, size in zip(pairs, sizes, strict=True)]
        k = int(rng.integers(1, len(pairs) + 1))
        threshold = None if rng.random() < 0.5 else float(rng.integers(0, 3))
        floors = rng.integers(-1, 3, 10)
        stop = None if rng.random() < 0.3 else lambda seen: _floor(floors, seen)
        player.ask(lambda: player.session.select(algorithms, k, stop, threshold))

    def _everything(self, player, rng, epsilon):
        pair = self._pair(rng, epsilon, (0, 1, 2))
        algorithm = player.algorithm(pair, epsilon)
        player.ask(lambda: player.session.ask(algorithm, tc.Everything()), lambda seen: {0: pair[seen.outcome]})

    def _failing(self, player, rng, epsilon):
        broken = (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit)[rng.integers(4)]
        pair = self._pair(rng, epsilon, (0, 1, broken))
        if rng.random() < 0.3:
            player.release(player.algorithm(pair, epsilon), pair, {0})
        elif rng.random() < 0.3:
            algorithms = [player.algorithm(pair, epsilon), player.algorithm(response(epsilon, 1, 0), epsilon)]
            player.ask(lambda: player.session.select(algorithms, threshold=1))
        else:
            algorithm = player.algorithm(pair, epsilon)
            player.ask(
                lambda: player.session.ask_prior(algorithm, self._free(player, rng, {0: (1, 1), 1: (1, 1)}))
            )

    def _twice(self, player, rng, epsilon):
        pair = self._pair(rng, epsilon, (0, 1, 2))
        algorithm = tc.twice(player.algorithm(pair, epsilon))
        player.ask(lambda: player.session.ask(algorithm), lambda seen: _square(pair, seen))

    def _agreement(self, player, rng, epsilon):
        pair = self._pair(rng, epsilon, (0, 1, 2))
        algorithm = tc.agreement(player.algorithm(pair, epsilon))
        player.ask(lambda: player.session.ask(algorithm))

    def _declared(self, player, rng, epsilon):
        pair = self._pair(rng, epsilon, (0, 1, 2))
        members = frozenset(pair) - {self._free(player, rng, pair)}
        laws = zip(*pair.values(), strict=True)
        q = best_q(*laws, [outcome in members for outcome in pair], epsilon)
        target = tc.QTarget(math.floor(q * 1e9) / 1e9, members) if q > 1e-6 else tc.Everything()
        algorithm = player.algorithm(pair, epsilon, targets=(*ANY_PRIOR, target))
        player.ask(lambda: player.session.ask(algorithm, target), lambda seen: {0: pair[seen.outcome]})

    def _between(self, player, rng, epsilon):
        """The true laws of a noisy count on either side of the band's lower end."""
        band = tc.Between(0, int(rng.integers(0, 4)))
        count, noise = int(rng.integers(-2, 3)), NoiseLaw.of(rate_for(epsilon, 1))
        laws = [side_law(count + shift, 0, int(band.high), noise) for shift in (0, 1)]
        laws = laws if rng.random() < 0.5 else laws[::-1]
        pair = dict(zip((tc.Side.BELOW, tc.Side.BETWEEN, tc.Side.ABOVE), zip(*laws, strict=True), strict=True))
        algorithm = player.algorithm(pair, epsilon, targets=(*ANY_PRIOR, band), default_target=band)
        player.ask(lambda: player.session.ask(algorithm), lambda seen: {0: pair[seen.outcome]})

    def _boundary(self, player, rng, epsilon):
        """The wrapper's true laws around a pair."""
        inner = self._pair(rng, epsilon, (0, 1, 2))
        laws = [boundary_law(law) for law in zip(*inner.values(), strict=True)]
        pair = dict(zip((*inner, tc.BOUNDARY), zip(*laws, strict=True), strict=True))
        algorithm = player.algorithm(pair, epsilon, targets=(tc.Boundary(),), default_target=tc.Boundary())
        player.ask(lambda: player.session.ask(algorithm), lambda seen: {0: pair[seen.outcome]})


def boundary_law(law: Sequence[float]) -> list[float]:
    """Return the law of the boundary wrapper around a law, the mark last."""
    mark = mark_probability(1 - max(law))
    return [*((1 - mark) * p for p in law), mark]


def _floor(floors: np.ndarray, seen: Sequence[tc.Answer]) -> float | None:
    """Return a random function of what was released: a floor, or None."""
    level = int(floors[sum((place + 1) * (1 + answer.outcome) for place, answer in enumerate(seen)) % 10])
    return None if level < 0 else level


def _square(pair: Pair, seen: tc.Answer) -> Pair:
    first, second = (pair[outcome] for outcome in seen.outcome)
    return {0: (first[0] * second[0], first[1] * second[1])}


def climber(epsilon: float, aim: float, questions: int) -> Callable[[Player], None]:
    """Return the best game of tests: the response that moves the loss towards the aim is free."""

    def game(player: Player) -> None:
        for _ in range(questions):
            pair = response(epsilon, *((False, True) if player.loss < aim - 1e-9 else (True, False)))
            algorithm = player.algorithm(pair, epsilon)
            player.ask(lambda: player.session.test(algorithm), lambda seen: {0: pair[seen.outcome]})  # noqa: B023

    return game
