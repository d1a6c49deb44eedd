"""Noise that a test decides, and batches that need none."""

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
    """Draw the noise that is decided from now on, and no offset.

    Args:
        monkeypatch: undoes it.
        one: from the noise of a count to what is drawn of it, in steps of its lattice.
        several: the same for a number of counts; left out, one by one.
    """
    each = several or (lambda noise, count: [one(noise) for _ in range(count)])
    monkeypatch.setattr(CountNoise, "draw", lambda noise, _entropy: one(noise))
    monkeypatch.setattr(CountNoise, "draws", lambda noise, _entropy, count: each(noise, count))
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: 0)


def patterned(outcomes, *, keys=None, epsilon=0.1):
    """Return a batch whose tests hit where an outcome is true; those that miss are as far off."""
    counts = [FAR if outcome else -FAR for outcome in outcomes]
    return batch_by_key(lambda _: counts, keys or [f"k{i}" for i in range(len(counts))], 0, epsilon, name="tests")
