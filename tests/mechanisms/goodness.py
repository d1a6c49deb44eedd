"""How well draws fit a law, and quick reproducible bits for many of them."""

import os
from collections import Counter

import numpy as np
from scipy.stats import chisquare

DRAWS = int(os.environ.get("TARGETCHARGE_DRAWS", "200000"))

ENOUGH = 20
"""Outcomes with fewer expected draws are put together."""


class BufferedEntropy:
    """Reproducible words, a few thousand at a time."""

    def __init__(self, seed):
        self._generator = np.random.default_rng(seed)
        self._buffer = []

    def word(self):
        if not self._buffer:
            self._buffer = self.words(4096).tolist()
        return self._buffer.pop()

    def words(self, count):
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


def drawn(algorithm, data, count, seed=1):
    """Count the outcomes of many runs."""
    entropy = BufferedEntropy(seed)
    return Counter(algorithm.run(data, entropy) for _ in range(count))


def pvalue(counts, law):
    """Chi-square of counted outcomes against {outcome: probability}; all other outcomes are one more."""
    total = sum(counts.values())
    observed, expected = [], []
    for outcome, probability in law.items():
        if probability * total >= ENOUGH:
            observed.append(counts.get(outcome, 0))
            expected.append(probability * total)
    left = total - sum(expected)
    if left >= ENOUGH:
        observed.append(total - sum(observed))
        expected.append(left)
    elif sum(observed) < total - 10 * ENOUGH:
        return 0.0
    expected = np.array(expected) * sum(observed) / sum(expected)
    return chisquare(observed, expected).pvalue
