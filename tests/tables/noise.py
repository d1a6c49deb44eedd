"""Noise that a test decides, and batches that need none."""

import importlib

import numpy as np

from targetcharge.mechanisms import batch_by_key

FAR = 10**6
"""From the threshold, in both directions: no noise of ε 0.1 comes so far."""


def silence(monkeypatch, noise=None):
    """Drawn no noise in algorithms that are made from now on; or, in batches, the noise that is given."""
    counts = importlib.import_module("targetcharge.mechanisms.counts")
    monkeypatch.setattr(counts, "discrete_laplace", lambda _entropy, _rate: 0)

    def draw(_entropy, _rate, count):
        return np.zeros(count, dtype=np.int64) if noise is None else np.array(noise)

    monkeypatch.setattr(importlib.import_module("targetcharge.mechanisms.noise"), "discrete_laplace_array", draw)


def patterned(outcomes, *, keys=None, epsilon=0.1):
    """Return a batch whose tests hit where an outcome is true; those that miss are as far off."""
    counts = [FAR if outcome else -FAR for outcome in outcomes]
    return batch_by_key(lambda _: counts, keys or [f"k{i}" for i in range(len(counts))], 0, epsilon, name="tests")
