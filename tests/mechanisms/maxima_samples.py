"""Sketches of maxima, drawn from their law by other means than the code's: no words, no hash."""

import numpy as np


def sample(law, buckets, elements, generator):
    """Return a sketch of so many elements: the smallest of N uniform numbers is 1 - U^(1/N)."""
    inside = generator.multinomial(elements, np.full(buckets, 1 / buckets)) + law.phantoms
    smallest = -np.expm1(np.log(generator.random(buckets)) / inside)
    tails = np.array(law.tails) / 2.0**64
    return (smallest[:, None] < tails).sum(axis=1).astype(np.uint8)


def marginal(law, buckets, elements, phantoms=None):
    """Return the law of one bucket's maximum, as {level: probability}."""
    tails = np.array([*law.tails, 0]) / 2.0**64
    inside = law.phantoms if phantoms is None else phantoms
    up_to = (1 - tails) ** inside * (1 - tails / buckets) ** elements
    return dict(enumerate(np.diff(up_to, prepend=0.0).tolist()))
