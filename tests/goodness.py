"""How well draws fit a law, how many of them tell it from another, and quick reproducible bits for them."""

import math
from collections import Counter

import numpy as np
from scipy.stats import chisquare, norm
from tests.sizes import size

DRAWS = size(100_000, 500_000)

FAR = 1e-9
"""The line: a right law fits worse than this once in 10^9 runs."""

APART = size(12, 24)
"""As many standard deviations are a right law and a wrong one from each other, in the sum that `towards` looks at.

The line is at 6 of them, so that a wrong law is taken for the right one once in 10^9 runs, too.
"""

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


def _log_ratios(law, other):
    """Return the outcomes that both laws have, the law of them, and ln(other/law) of each."""
    both = {outcome: mass for outcome, mass in law.items() if mass > 1e-12 and other.get(outcome, 0) > 1e-12}
    masses = np.array([*both.values()])
    return list(both), masses, np.log(np.array([other[outcome] for outcome in both]) / masses)


def draws_to_tell(law, *others):
    """Return how many draws of a law stand APART standard deviations from what each of the others would give."""
    most = 1000
    for other in others:
        _, masses, ratios = _log_ratios(other, law)
        _, ours, backward = _log_ratios(law, other)
        deviation = math.sqrt(np.average(ratios**2, weights=masses) - np.average(ratios, weights=masses) ** 2)
        between = -np.average(backward, weights=ours) - np.average(ratios, weights=masses)
        most = max(most, math.ceil((APART * deviation / between) ** 2))
    return most


def towards(counts, law, other):
    """Return the p-value of counted outcomes against a law, in the direction of another (Neyman and Pearson).

    The mean of ln(other/law) is compared with what it is under the law. Outcomes that either law all but excludes
    are left out.
    """
    outcomes, masses, ratios = _log_ratios(law, other)
    seen = np.array([counts.get(outcome, 0) for outcome in outcomes])
    mean = np.average(ratios, weights=masses)
    deviation = math.sqrt(np.average(ratios**2, weights=masses) - mean**2)
    return float(norm.sf((np.average(ratios, weights=seen) - mean) / deviation * math.sqrt(seen.sum())))


def assert_only(counts, law, *others):
    """Check that draws fit their law, also in the direction of each other law, and that no other law fits them."""
    assert pvalue(counts, law) > FAR
    for other in others:
        assert towards(counts, law, other) > FAR
        assert towards(counts, other, law) < FAR
