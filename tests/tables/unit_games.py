"""Games that an analyst may play against a table with a budget for every individual: functions of `Twins`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from tests.tables.tiny import Z, frames, opener

import targetcharge as tc

GROUPS = (1, 2, 3)
MENU = (
    "above",
    "below",
    "count",
    "watch",
    "many",
    "top",
    "sum",
    "release",
    "revise",
    "revise",
    "break",
    "break again",
)
RENYI = (*MENU, "sum", "between", "side", "sum between", "sum side", "other epsilon")


def until(ask, hits, questions):
    """Return the game that asks the same until it has hit so often; a call that breaks is a hit."""

    def game(twins):
        found = 0
        for _ in range(questions):
            answer = ask(twins)
            found += answer is None or answer.hit
            if found == hits:
                return

    return game


def climber(hits, aim, questions, group=lambda _: "g = 1", threshold=1):
    """Return the best game of tests at ε' = aim·ε: a miss moves the loss up below the aim, and down above it.

    Args:
        hits: after so many the unit takes no part.
        aim: of the loss, in ε.
        questions: the most it asks.
        group: whom to ask about, by the hits so far; it has one unit fewer than the threshold, or with z as many.
        threshold: of the tests.
    """

    def game(twins):
        loss, found = 0, 0
        for _ in range(questions):
            upwards = loss < max(aim, 1)
            answer = (twins.above if upwards else twins.below)(group(found), threshold)
            loss += 1 if answer.hit != upwards else -1
            found += answer.hit
            if found == hits:
                return

    return game


@dataclass(frozen=True)
class Wanderer:
    """A random game on a random table: what comes next is drawn anew from all that was seen.

    Attributes:
        seed: of the game.
        menu: what it may ask.
        epsilon: of a question.
        draws: it ends after so many, or as many questions.
    """

    seed: int
    menu: tuple[str, ...]
    epsilon: float
    draws: int

    def __call__(self, twins):
        waiting = []
        step = 0
        while twins.draws < self.draws and step < self.draws:
            step += 1
            rng = np.random.default_rng([self.seed, step, crc32(repr(twins.events).encode())])
            what = str(rng.choice(self.menu))
            if what in ("revise", "break again") and not waiting:
                what = "release"
            _ASK[what](twins, rng, waiting, self.epsilon)


def wandering(seed, meter):
    """Return a random game and what opens its tables."""
    rng = np.random.default_rng([7, seed])
    units = {name: _rows(rng) for name in "abc"[: int(rng.integers(0, 4))]}
    units[Z] = _rows(rng) or {1: 1}
    epsilon = float(rng.choice([0.5, 1.0]))
    hits = int(rng.integers(1, 4))
    menu = RENYI if meter == "renyi" else MENU
    some = tuple(str(word) for word in rng.choice(menu, int(rng.integers(1, 4))))
    delta = float(rng.choice([0.02, 0.3]))
    opened = opener(frames(**units), epsilon, hits, meter, delta, repeats=True)
    return Wanderer(seed, some, epsilon, int(rng.integers(3, 6))), opened


def _rows(rng):
    return {group: int(rng.choice([-2, -1, 1, 2])) for group in GROUPS if rng.random() < 0.6}


def _group(rng):
    return f"g = {rng.integers(1, 4)}" if rng.random() < 0.8 else None


def _total(rng):
    return tc.questions.sum("w", -2, 2, _group(rng), grid=1)


def _either(rng):
    return _total(rng) if rng.random() < 0.5 else _group(rng)


def _least(rng):
    return int(rng.integers(0, 3))


def _low(rng):
    return int(rng.integers(-1, 3))


def _band(rng):
    low = _low(rng)
    return low, low + int(rng.integers(0, 3))


def _many(twins, rng, _waiting, _epsilon):
    twins.many([tc.questions.above(_group(rng), _least(rng)) for _ in range(2)])


def _top(twins, rng, _waiting, _epsilon):
    keys = [int(key) for key in rng.permutation(GROUPS)[: int(rng.integers(2, 4))]]
    least, options = _least(rng), {}
    if rng.random() < 0.5:
        options["threshold"] = least
    if rng.random() < 0.3:
        options["stop"] = tc.sessions.gap(1)
    cuts = {0, 1, 2, 3} if rng.random() < 0.3 else {least}
    twins.top("g", keys, int(rng.integers(1, 3)), cuts, **options)


def _release(twins, rng, waiting, _epsilon):
    found = twins.release(_either(rng), {0, 1, 2}, _least(rng) + 1)
    if not found.released:
        waiting.append(found.seq)


def _revise(twins, rng, waiting, _epsilon):
    place = int(rng.integers(len(waiting)))
    least = _least(rng)
    ends = (least, math.inf) if rng.random() < 0.5 else (-math.inf, least - 1)
    if twins.revise(waiting[place], *ends).released:
        del waiting[place]


_ASK = {
    "above": lambda twins, rng, _waiting, _epsilon: twins.above(_group(rng), _least(rng)),
    "below": lambda twins, rng, _waiting, _epsilon: twins.below(_either(rng), _least(rng)),
    "count": lambda twins, rng, _waiting, _epsilon: twins.count(_group(rng)),
    "watch": lambda twins, rng, _waiting, _epsilon: twins.watch(None, "g", list(GROUPS), _least(rng)),
    "many": _many,
    "top": _top,
    "sum": lambda twins, rng, _waiting, _epsilon: twins.above(_total(rng), _low(rng)),
    "release": _release,
    "revise": _revise,
    "break": lambda twins, rng, _waiting, _epsilon: twins.breaking(_either(rng), _least(rng)),
    "break again": lambda twins, rng, waiting, _epsilon: twins.breaking_revision(waiting[0], _least(rng)),
    "between": lambda twins, rng, _waiting, _epsilon: twins.between(_group(rng), *_band(rng)),
    "side": lambda twins, rng, _waiting, _epsilon: twins.side(_group(rng), _least(rng)),
    "sum between": lambda twins, rng, _waiting, _epsilon: twins.between(_total(rng), *_band(rng)),
    "sum side": lambda twins, rng, _waiting, _epsilon: twins.side(_total(rng), _low(rng)),
    "other epsilon": lambda twins, rng, _waiting, epsilon: twins.above(
        _either(rng), _low(rng), epsilon=epsilon / 2
    ),
}
