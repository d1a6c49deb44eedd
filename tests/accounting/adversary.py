"""An explicit adversary against a NotPrior session, played forwards: what it attains is a lower bound."""

import math

import numpy as np


def attained_delta(epsilon, hits, whole_epsilon, *, steps, width):
    """Return δ' attained by "A below ε', B above" within `steps` computations.

    A: ask a test whose "-" response hits. B: ask one whose "+" response hits. The law of (hits, loss) is
    propagated under one dataset; the other's is e^{-loss} times it. Mass that leaves the window is dropped,
    which only lowers the result.
    """
    up, down = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    place = np.arange(-width, width + 1)
    low = place * epsilon < whole_epsilon
    mass = np.zeros((hits + 1, len(place)))
    mass[hits, width] = 1.0
    for _ in range(steps):
        after = np.zeros_like(mass)
        after[0] = mass[0]
        a, b = mass[1:] * low, mass[1:] * ~low
        after[1:, 1:] += up * a[:, :-1]
        after[:-1, :-1] += down * a[:, 1:]
        after[1:, :-1] += down * b[:, 1:]
        after[:-1, 1:] += up * b[:, :-1]
        mass = after
    return float((mass.sum(axis=0) * np.maximum(0.0, -np.expm1(whole_epsilon - place * epsilon))).sum())
