"""What the processes of the tests of batches do. Each gets its end of a pipe first."""

import os
import time
from contextlib import suppress

from tests.ledger.asking import opened
from tests.ledger.children import POINTS, _dying, die
from tests.sessions.known_requests import OUTCOMES, codes_of, requests_of

import targetcharge as tc
from targetcharge.ledger.entries import text_of

CLASSES = OUTCOMES
HITS = 45 // 8
"""What the first batch of a session with 45 hits holds back."""


def requests(pattern, name="labels", before=None):
    """Return a batch of cats, dogs and hits, at the price of the tests of ledgers."""
    return requests_of(codes_of(pattern), epsilon=0.01, name=name, before=before)


def dies_in_a_batch(pipe, path, point):
    """Ask for a batch and die at a named point of it."""
    session = opened(path, 45)

    def prepare(*_):
        if point == "after drawing":
            die()
        owner, name, before = POINTS[point]
        _dying(owner, name, before=before)

    if point in {"before reserving", "after reserving"}:
        prepare()
    for batch in session.ask_batch(requests(".x:x.", before=prepare)):
        pipe.send(text_of(batch))


def publishes_until_killed(pipe, path):
    """Tell every batch right after it was published."""
    session = opened(path, 229)
    with suppress(tc.BudgetSpent):
        for batch in session.ask_batch(requests("..x" * 1000)):
            pipe.send(text_of(batch))
            time.sleep(0.01)


def asks_a_batch(pipe, path, name):
    """Ask a batch at once with others, until the budget is spent; tell its batches."""
    session, texts = opened(path, 45), []
    pipe.send("opened")
    pipe.recv()
    with suppress(tc.BudgetSpent):
        for batch in session.ask_batch(requests(".:x" * 100, name)):
            texts.append(text_of(batch))  # noqa: PERF401 - what came before the budget ended counts
    pipe.send(texts)
    session.close()
    pipe.send("closed")


def forks_in_a_batch(pipe, place):
    """Fork between two batches, with some drawn and not published; the child tries to go on, and to begin anew."""
    session = opened(place, 45)
    found = session.ask_batch(requests("x" * 20))
    published = [next(found)]
    read, write = os.pipe()
    if os.fork() == 0:
        tried = []
        for attempt in (found, session.ask_batch(requests("x" * 20))):
            try:
                tried.append(next(attempt).first.algorithm)
            except tc.TargetChargeError as error:
                tried.append(type(error).__name__)
        os.write(write, ",".join(tried).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        pipe.send(file.read().split(","))
    os.wait()
    published += found
    pipe.send("".join("x" * len(batch.hit_places) for batch in published))
    session.close()
