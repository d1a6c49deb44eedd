"""All votes of a few teachers, their neighbours, and the laws of aggregators computed the long way."""

import itertools
import math
from functools import cache

import numpy as np


def tables(teachers, classes):
    """Return every way in which so many teachers can vote."""
    return [row for row in itertools.product(range(teachers + 1), repeat=classes) if sum(row) == teachers]


def neighbours(row):
    """Yield what becomes of a row when one teacher votes for another class: two counts move by one."""
    for left, joined in itertools.permutations(range(len(row)), 2):
        if row[left]:
            moved = list(row)
            moved[left] -= 1
            moved[joined] += 1
            yield tuple(moved)


def pairs(teachers, classes):
    """Return all ordered pairs of neighbours."""
    return [(row, other) for row in tables(teachers, classes) for other in neighbours(row)]


def exponential(row, epsilon):
    """Return the law of the exponential mechanism."""
    weights = [math.exp(epsilon * count / 2) for count in row]
    return [weight / math.fsum(weights) for weight in weights]


def permute_and_flip(row, epsilon):
    """Return the law of permute-and-flip, order by order."""
    taken = [math.exp(-epsilon * (max(row) - count) / 2) for count in row]
    law = [0.0] * len(row)
    orders = list(itertools.permutations(range(len(row))))
    for order in orders:
        left = 1 / len(orders)
        for index in order:
            law[index] += left * taken[index]
            left *= 1 - taken[index]
    return law


@cache
def noise(rate):
    """Return discrete Laplace masses by value."""
    reach = math.ceil(40 / rate)
    return {value: math.tanh(rate / 2) * math.exp(-rate * abs(value)) for value in range(-reach, reach + 1)}


@cache
def noisy_max(row, epsilon):
    """Return the law of report noisy max, for two classes: by all pairs of noise."""
    masses = noise(epsilon / 2)
    first = np.array(list(masses))[:, None] + row[0]
    second = np.array(list(masses))[None, :] + row[1]
    weights = np.outer(list(masses.values()), list(masses.values()))
    return [float(weights[first >= second].sum()), float(weights[first < second].sum())]


def with_test(law, row, threshold, epsilon):
    """Return the law with a test of agreement before it; the last outcome is "low"."""
    passed = math.fsum(mass for value, mass in noise(epsilon).items() if max(row) + value >= threshold)
    return [passed * mass for mass in law] + [1 - passed]


LAWS = {"exponential": exponential, "permute_and_flip": permute_and_flip, "noisy_max": noisy_max}


def published(law, mode, prior=0, caution=2.0):
    """Return what a mode publishes: (probability, whether it is a hit) for each outcome."""
    if mode == "plain":
        return [(mass, True) for mass in law]
    if mode == "prior":
        return [(mass, index != prior) for index, mass in enumerate(law)]
    if mode == "twice":
        return [(mass**2, False) for mass in law] + [(1 - math.fsum(mass**2 for mass in law), True)]
    doubt = caution * min(1 - max(law), 0.5)
    mark = doubt / (1 + doubt)
    return [((1 - mark) * mass, False) for mass in law] + [(mark, True)]
