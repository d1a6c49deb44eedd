"""Sketches of their own seed, whole and broken, as a caller might write them."""

from __future__ import annotations

import random


class MorrisCounter:
    """Counts updates roughly: one random exponent."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._exponent = 0

    def update(self, _item):
        if self._random.random() < 2.0**-self._exponent:
            self._exponent += 1

    def estimate(self):
        return 2.0**self._exponent - 1


class SamplingCounter:
    """Counts one in a thousand updates."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._count = 0

    def update(self, _item):
        self._count += self._random.random() < 0.001

    def estimate(self):
        return self._count * 1000


class NoisyCounter:
    """Counts updates; the estimate is off by a share that the seed decides. What its updates get is kept."""

    def __init__(self, seed):
        self.seed = seed
        self.share = random.Random(seed).uniform(-0.01, 0.01)
        self.items = []

    def update(self, item, weight=1):
        self.items.append((item, weight))

    def estimate(self):
        return len(self.items) * (1 + self.share)


def failing(act, after, share=0.2):
    """Return a kind of counter of which a share, by the seed, acts when it is asked after so many items.

    `act(self)` returns an estimate or raises.
    """

    class Failing(NoisyCounter):
        def estimate(self):
            if len(self.items) > after and self.seed % 100 < 100 * share:
                return act(self)
            return super().estimate()

    return Failing


def counters(stream):
    """Return the copies that are left."""
    return [sketch for sketch in stream._copies._copies if sketch is not None]
