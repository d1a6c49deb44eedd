"""The recursion of exact accounting, computed the slow and obvious way: value iteration from below.

It approaches the truth from below, so the certified result must lie above it, and only just.
"""

import math

import numpy as np

REACH = 2


def moves(epsilon, *, q=None, disagreement=False):
    """List (miss, hit) dictionaries step -> probability, written down from the theory independently."""
    x = math.exp(epsilon) / (1 + math.exp(epsilon))
    y = 1 - x
    if q is None:
        found = [({1: x}, {-1: y}), ({-1: y}, {1: x}), ({}, {1: x, -1: y})]
    else:
        corners = [(0, q / y), (q, q), (q / y, 0)] if q <= y else [((q - y) / x, 1), (q, q), (1, (q - y) / x)]
        found = [({1: x * (1 - p), -1: y * (1 - m)}, {1: x * p, -1: y * m}) for p, m in corners]
    if disagreement:
        found += moves(epsilon) if q is not None else []
        found.append(({2: x * x, -2: y * y}, {0: 2 * x * y}))
    return found


def lower_delta(epsilon, hits, whole_epsilon, *, width=120, sweeps=4000, **kind):
    """Return a lower bound of δ' that converges to it: zero below the lattice, the payoff above."""
    losses = np.arange(-width, width + 1) - (whole_epsilon / epsilon - math.floor(whole_epsilon / epsilon))
    start = width - math.floor(whole_epsilon / epsilon)
    payoff = np.maximum(0.0, -np.expm1(-np.maximum(losses, 0.0) * epsilon))
    above = -np.expm1(-(losses[-1] + np.arange(1, REACH + 1)) * epsilon)

    def expect(steps, level):
        ghosted = np.concatenate((np.zeros(REACH), level, above))
        return sum(
            (p * ghosted[REACH + s : REACH + s + len(level)] for s, p in steps.items()), np.zeros(len(level))
        )

    below = payoff
    for _ in range(hits):
        level = below
        worth = [expect(hit, below) for _, hit in moves(epsilon, **kind)]
        for _ in range(sweeps):
            options = [expect(miss, level) + w for (miss, _), w in zip(moves(epsilon, **kind), worth, strict=True)]
            better = np.maximum.reduce([level, *options])
            done = np.array_equal(better, level)
            level = better
            if done:
                break
        below = level
    return float(below[start])
