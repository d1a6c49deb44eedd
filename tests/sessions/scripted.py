"""Algorithms whose outcomes are written down beforehand, and sessions with a known number of hits."""

from __future__ import annotations

from collections import deque

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, renyi_epsilon
from targetcharge.mechanisms import Algorithm

EPSILON = 0.1
DELTA = 1e-6


def gives(*outcomes, epsilon=EPSILON, delta=0.0, name="scripted", **parts):
    """Return an algorithm that gives these outcomes, run by run, the last one for ever; exceptions are raised."""
    waiting = deque(outcomes)

    def run(_data, _entropy):
        outcome = waiting.popleft() if len(waiting) > 1 else waiting[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return Algorithm(name, epsilon, delta, run, **parts)


def computes(function, epsilon=EPSILON, delta=0.0, name="computed", **parts):
    """Return an algorithm that is a function of the data."""
    return Algorithm(name, epsilon, delta, lambda data, _: function(data), **parts)


def budget_of(hits, epsilon=EPSILON, delta=DELTA, kept=0.0, *, meter="exact", target=None):
    """Return the smallest budget that has this many hits of tests, and a δ kept for computations."""
    target = target or tc.NotPrior(prior=False)
    whole = (
        exact_epsilon(epsilon, hits, delta) if meter == "exact" else renyi_epsilon(target, epsilon, hits, delta)
    )
    return tc.Budget(whole * (1 + 1e-6), delta + kept * (1 + 1e-9))


def opened(hits=5, data=None, *, epsilon=EPSILON, meter="exact", computation_delta=0.0, **options):
    """Open a session with this many hits of tests."""
    budget = budget_of(hits, epsilon, kept=computation_delta, meter=meter)
    return tc.Session(data, budget, epsilon, meter=meter, computation_delta=computation_delta, **options)
