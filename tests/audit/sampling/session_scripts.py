"""Sessions to audit: small budgets at a large δ, so that a few thousand runs come near the claim."""

from __future__ import annotations

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, renyi_epsilon
from targetcharge.audit import interaction
from targetcharge.mechanisms import above_threshold, between_thresholds, noisy_count

EPSILON = 0.3
DELTA = 0.1
ASKED = 8


def budget_of(hits, meter="exact", target=None):
    """Return the budget of so many hits."""
    target = target or tc.NotPrior(prior=False)
    found = (
        exact_epsilon(EPSILON, hits, DELTA) if meter == "exact" else renyi_epsilon(target, EPSILON, hits, DELTA)
    )
    return tc.Budget(found * (1 + 1e-6), DELTA)


def until_hits(hits, budget, meter="exact"):
    """Test the count of 9 or 10 rows against 10, which is randomised response, until the hits are used up."""
    test = above_threshold(len, 10, EPSILON)

    def script(session):
        used = 0
        for _ in range(4 * hits):
            used += session.test(test).hit
            if used == hits:
                break

    return interaction(lambda rows: tc.Session(rows, budget, EPSILON, meter=meter), script)


TEST = above_threshold(len, 10, EPSILON)
COUNT = noisy_count(len, EPSILON)
CANDIDATES = [noisy_count(lambda rows, times=times: len(rows) * times, EPSILON) for times in (0, 1, 1)]
NEAR = tc.boundary(TEST)
BAND = between_thresholds(len, 10, 14, EPSILON)
PAIR = tc.twice(noisy_count(lambda rows: len(rows) - 9, EPSILON))


def repeated(call, times=ASKED):
    """Return the script that makes the same call again and again."""

    def script(session):
        for _ in range(times):
            call(session)

    return script


tests = repeated(lambda session: session.test(TEST))
values = repeated(lambda session: session.ask(TEST))
boundaries = repeated(lambda session: session.ask(NEAR))
betweens = repeated(lambda session: session.ask(BAND))
twices = repeated(lambda session: session.ask(PAIR), times=4)


def releases(session):
    for _ in range(4):
        release = session.release(COUNT, when=lambda count: count > 12)
        for least in (11, 10, 9):
            if not release.released:
                release = release.revise(lambda count, least=least: count > least)


def selections(session):
    session.select(CANDIDATES, k=2)
