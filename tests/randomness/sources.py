"""Sources of bits for tests: seeded, and one that walks through every value a sampler could draw."""

from fractions import Fraction

import numpy as np


class SeededEntropy:
    """Reproducible words."""

    def __init__(self, seed):
        self._generator = np.random.default_rng(seed)

    def word(self):
        return int(self._generator.integers(0, 2**64, dtype=np.uint64))

    def words(self, count):
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


class UnfinishedError(Exception):
    """The sampler wanted more draws than this walk allows."""


def exact_law(sampler, draws):
    """Return {outcome: probability} of a sampler, exactly, over all paths with at most `draws` uniform draws.

    `sampler(choose)` draws with `choose(bound)`. The second result is the mass of the unfinished paths.
    """
    law, unfinished = {}, Fraction(0)
    todo = [[]]
    while todo:
        path = todo.pop()
        bounds = []

        def choose(bound, path=path, bounds=bounds):
            bounds.append(bound)
            if len(bounds) > len(path):
                raise UnfinishedError
            return path[len(bounds) - 1]

        try:
            outcome = sampler(choose)
        except UnfinishedError:
            if len(path) < draws:
                todo += [[*path, value] for value in range(bounds[-1])]
            else:
                unfinished += _weight(bounds[:-1])
        else:
            law[outcome] = law.get(outcome, 0) + _weight(bounds)
    return law, unfinished


def _weight(bounds):
    weight = Fraction(1)
    for bound in bounds:
        weight /= bound
    return weight
