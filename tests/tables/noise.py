"""Noise that a test decides, batches that need none, and the noise of what is always paid for."""

import math

from tests.discrete_gaussian import DiscreteGaussian

import targetcharge as tc
from targetcharge.mechanisms import batch_by_key
from targetcharge.mechanisms.noise import CountNoise, draw_offset

FAR = 10**6
"""From the threshold, in both directions: no noise of ε 0.1 comes so far."""


def silence(monkeypatch, noise=None):
    """Draw no noise and no offset from now on; or, in batches, the noise that is given."""
    decide(monkeypatch, lambda _: 0, lambda _, count: [0] * count if noise is None else list(noise))


def only_offset(monkeypatch, drawn=None):
    """Draw no fresh noise from now on, so that answers are off by the offset alone: drawn, or the one given."""
    silence(monkeypatch)
    drawing = draw_offset if drawn is None else lambda *_: drawn
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", drawing)


def decide(monkeypatch, one, several=None):
    """Draw the noise that is decided from now on, and no offset; pick the first of the best.

    Args:
        monkeypatch: undoes it.
        one: from the noise of a count to what is drawn of it, in steps of its lattice.
        several: the same for a number of counts; left out, one by one.
    """
    each = several or (lambda noise, count: [one(noise) for _ in range(count)])
    monkeypatch.setattr(CountNoise, "draw", lambda noise, _entropy: one(noise))
    monkeypatch.setattr(CountNoise, "draws", lambda noise, _entropy, count: each(noise, count))
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: 0)
    monkeypatch.setattr(
        "targetcharge.mechanisms.picks.exponential_choice", lambda _entropy, gaps, _rate: gaps.argmin()
    )


def patterned(outcomes, *, keys=None, epsilon=0.1):
    """Return a batch whose tests hit where an outcome is true; those that miss are as far off."""
    counts = [FAR if outcome else -FAR for outcome in outcomes]
    return batch_by_key(lambda _: counts, keys or [f"k{i}" for i in range(len(counts))], 0, epsilon, name="tests")


SHIFT = 0.13532
"""Of Gaussian noise that one hit of an exact meter pays for at query ε 0.1, in standard deviations
(docs/theory/exchange.md#gaussian); 5/2 is added to its variance because it is discrete."""


def paid_law(t, sensitivity=1, epsilon=0.1):
    """Return the noise of a number that is always paid for, at one hit of a table without a sparse meter."""
    tariff = t.meter.tariff
    if tariff.name == "exact":
        assert epsilon == 0.1
        return DiscreteGaussian((sensitivity / SHIFT) ** 2 + 5 / 2)
    order = tariff.order  # at which ρ-zCDP, ρ = Δ²/(2σ²), has the price a(a-1)ρ
    price = tc.NotPrior(None).price(order, epsilon)
    return DiscreteGaussian(order * (order - 1) * sensitivity**2 / (2 * price))


def paid_scale(t, sensitivity=1, epsilon=0.1):
    """Return the scale of Laplace noise with its standard deviation, as answers tell it."""
    return math.sqrt(paid_law(t, sensitivity, epsilon).parameter / 2)
