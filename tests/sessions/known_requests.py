"""Batches of requests whose outcomes are written down beforehand, and what a session made of them."""

from __future__ import annotations

import numpy as np

import targetcharge as tc
from targetcharge.ledger import BatchEntry
from targetcharge.ledger.entries import Spent
from targetcharge.mechanisms import Batch
from targetcharge.mechanisms.algorithm import batch_algorithm
from targetcharge.mechanisms.batch import MOST_HITS, Requests

OUTCOMES = ("cat", "dog", tc.BOUNDARY)
EPSILON = 0.1


def requests_of(
    codes, hit=None, *, outcomes=OUTCOMES, epsilon=EPSILON, target=None, name="requests", before=None, told=None
):
    """Return a batch that draws these codes; the code of the last outcome is a hit, unless hits are given.

    `before(data, first, last)` is called when it draws.
    """
    codes = np.asarray(codes, dtype=np.intp)
    hit = codes == len(outcomes) - 1 if hit is None else np.asarray(hit, dtype=np.bool_)

    def draw(data, _entropy, first, last):
        if before is not None:
            before(data, first, last)
        return codes[first:last].copy(), hit[first:last].copy()

    algorithm = batch_algorithm(name, epsilon, target or tc.NotPrior(prior=None))
    return requests_batch(algorithm, outcomes, len(codes), draw, told)


def drawing(draw, count=100, **more):
    """Return a batch that draws with a function of the data and the number of requests."""
    base = requests_of(np.zeros(count), **more)
    return requests_batch(
        base.algorithms[0], base.drawing.outcomes, count, lambda data, _, first, last: draw(data, last - first)
    )


def requests_batch(algorithm, outcomes, count, draw, plain_target=None):
    """Return a batch of public requests as tc.learning makes it."""
    return Batch((algorithm,), range(count), Requests(outcomes, draw), plain_target, MOST_HITS, durable=True)


def codes_of(pattern):
    """Return codes from a text: "." and ":" are misses of two kinds, "x" is a hit."""
    return [".:x".index(each) for each in pattern]


def asked(session, requests, start=0):
    """Ask a batch to its end, or to that of the budget; return the entries, and whether the budget ended it."""
    entries = []
    try:
        entries.extend(session.ask_batch(requests, start))
    except tc.BudgetSpent:
        return entries, True
    return entries, False


def pattern_of(entries):
    """Return the text that `codes_of` takes, of all entries together."""
    return "".join(".:x"[code] for entry in entries for code in entry.indices.tolist())


def entries_of(session):
    return [entry for entry in session._ledger.entries() if isinstance(entry, BatchEntry)]


def spent(session):
    """Return how many hits broken calls spent."""
    return sum(entry.count for entry in session._ledger.entries() if isinstance(entry, Spent))
