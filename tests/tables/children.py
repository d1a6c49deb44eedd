"""What the processes of these tests do. Each gets its end of a pipe first."""

from contextlib import suppress

import pytest
from tests.tables import people
from tests.tables.noise import only_offset

import targetcharge as tc
from targetcharge.mechanisms import batch_by_key

FAR = 10**6


def asks_a_batch(pipe, path, budget, size):
    """Ask a batch of hits and misses to its end, or the budget's; tell the seqs and which of them hit."""
    tests = batch_by_key(lambda _: [FAR, -FAR] * size, range(2 * size), 0, 0.1)
    with tc.Session(None, budget, 0.1, ledger=path) as session:
        pipe.send("opened")
        pipe.recv()
        found = []
        with suppress(tc.BudgetSpent):
            found.extend(session.ask_each(tests))
    pipe.send([(answer.seq, answer.hit) for answer in found])


def watches(pipe, path, hits):
    """Watch a table of keys that all hit, telling each answer as soon as it is there; then wait to be killed."""
    with people.opened(path, hits) as t:
        pipe.send("opened")
        pipe.recv()
        with suppress(tc.BudgetSpent):
            for answer in t.iter_watch(None, "doctor", range(3000), -FAR):
                pipe.send((answer.seq, answer.key, answer.outcome))
        pipe.send("spent")
        pipe.recv()


def counts_without_fresh_noise(pipe, path, budget, meter, where):
    """Tell a number of a table that is off by the ledger's offset alone, for every word that comes."""
    only_offset(pytest.MonkeyPatch())
    with tc.open(path, "u", budget, meter=meter) as t:
        pipe.send("opened")
        while pipe.recv():
            pipe.send(t.above(where, -(10**9)).outcome)


def asks_a_table(pipe, path, hits):
    """Ask for hits, one for every word that comes, until there are none left."""
    with people.opened(path, hits) as t:
        pipe.send("opened")
        while pipe.recv():
            try:
                pipe.send(t.above("kind = 'a'", 3000).seq)
            except tc.BudgetSpent:
                pipe.send("refused")
