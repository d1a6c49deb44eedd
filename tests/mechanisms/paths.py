"""The law of an algorithm, exactly: every path through what it draws, each with its probability.

What is drawn (uniform indices, coins, discrete Laplace noise) has the law that it is defined to have: that the
samplers keep it is what tests/randomness is for. Here the algorithm decides what to draw and what to make of it.
"""

import math
from collections import Counter
from contextlib import ExitStack
from unittest.mock import patch

from tests.discrete_laplace import DiscreteLaplace

LEAST = 1e-14
"""Paths less likely than this are not followed."""


class EndOfPath(Exception):  # noqa: N818 - no error: the walk goes on from here
    """The algorithm draws once more; these are the values it could see, and their probabilities."""

    def __init__(self, choices):
        self.choices = choices


class Path:
    """In place of entropy: values that were drawn before, and then the end."""

    def __init__(self, values):
        self._left = iter(values)

    def draw(self, choices):
        for value in self._left:
            return value
        raise EndOfPath(choices())


def _below(path, bound):
    return path.draw(lambda: [(value, 1 / bound) for value in range(bound)])


def _bernoulli(path, probability):
    return path.draw(lambda: [(True, float(probability)), (False, 1 - float(probability))])


def _bernoulli_exp(path, numerator, denominator):
    exponent = numerator / denominator
    return path.draw(lambda: [(True, math.exp(-exponent)), (False, -math.expm1(-exponent))])


def _discrete_laplace(path, rate):
    law = DiscreteLaplace.of(rate)
    reach = math.ceil(32 / law.rate)
    return path.draw(lambda: [(value, law.mass(value)) for value in range(-reach, reach + 1)])


DRAWN = {
    "noise": {"discrete_laplace": _discrete_laplace},
    "choice": {"below": _below, "bernoulli_exp": _bernoulli_exp, "discrete_laplace": _discrete_laplace},
    "wrappers": {"bernoulli": _bernoulli},
}


def law_of_paths(algorithm, data, draws=math.inf):
    """Return {outcome: probability}; what is missing to 1 is the mass of paths with more draws than these."""
    law, todo = Counter(), [((), 1.0)]
    with ExitStack() as stack:
        for module, samplers in DRAWN.items():
            stack.enter_context(patch.multiple(f"targetcharge.mechanisms.{module}", **samplers))
        while todo:
            values, chance = todo.pop()
            try:
                law[algorithm.run(data, Path(values))] += chance
            except EndOfPath as end:
                if len(values) == draws:
                    continue
                todo += [
                    ((*values, value), chance * more) for value, more in end.choices if chance * more >= LEAST
                ]
    return dict(law)
