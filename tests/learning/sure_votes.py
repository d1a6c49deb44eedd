"""Votes whose labels are certain, or a coin's, and sessions for each mode of labelling."""

from __future__ import annotations

import numpy as np

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, renyi_epsilon
from targetcharge.learning import LOW, label

TEACHERS = 10**6
"""So many that a unanimous vote is never overruled by noise: the probability is below 1e-20000."""

EPSILON = 0.1
DELTA = 1e-5

TARGETS = {
    "boundary": tc.Boundary(2),
    "prior": tc.NotPrior(prior=None),
    "twice": tc.Disagreement(),
    "plain": tc.Everything(),
}


MODES = list(TARGETS)


def unanimous(labels, classes=3):
    """Return votes of all teachers for these classes."""
    labels = np.asarray(labels, dtype=np.intp)
    votes = np.zeros((len(labels), classes), dtype=np.int64)
    votes[np.arange(len(labels)), labels] = TEACHERS
    return votes


def tied(requests, classes=2):
    """Return votes that are split evenly: too close to call as often as can be."""
    assert TEACHERS % classes == 0
    return np.full((requests, classes), TEACHERS // classes, dtype=np.int64)


def session_for(mode, hits, *, meter="renyi", ledger=":memory:", epsilon=EPSILON):
    """Return a session with the smallest budget for so many hits of a mode."""
    target = TARGETS[mode]
    if meter == "exact":
        whole = exact_epsilon(epsilon, hits, DELTA)
        return tc.Session(None, tc.Budget(whole * (1 + 1e-6), DELTA), epsilon, ledger=ledger)
    whole = renyi_epsilon(target, epsilon, hits, DELTA)
    budget = tc.Budget(whole * (1 + 1e-6), DELTA)
    return tc.Session(None, budget, epsilon, meter="renyi", targets=[target], ledger=ledger)


def untouched(session):
    """Return whether nothing was asked and nothing charged."""
    return session.meter.hits == 0 and list(session._ledger.entries()) == []


def labelled(votes, session, **more):
    return label(votes, session, **{"teachers": TEACHERS, "epsilon": EPSILON, **more})


def charged(session):
    """Return how many hits the ledger has: by its meter, by its entries, and by its answers."""
    entries = list(session.transcript.batches())
    return (
        session.meter.hits,
        sum(len(entry.hit_places) for entry in entries),
        sum(answer.hit for answer in session.transcript),
    )


def check_against_the_ledger(labels, session, first=0):
    """Compare every array of labels with the answers in the transcript."""
    answers = list(session.transcript)
    assert [answer.key for answer in answers] == list(range(first, labels.asked))
    outcomes = [answer.outcome for answer in answers]
    values = iter(labels.values.tolist())
    for place, outcome in enumerate(outcomes, first):
        assert labels.boundary[place] == (outcome is tc.BOUNDARY)
        assert labels.low[place] == (outcome is LOW)
        assert not labels.unanswered[place]
        if outcome not in (tc.BOUNDARY, LOW):
            assert next(values) == outcome
    assert list(values) == []
    assert labels.unanswered[labels.asked :].all()
    assert labels.hit[first : labels.asked].tolist() == [answer.hit for answer in answers]
    assert labels.complete == (labels.asked == len(labels))
