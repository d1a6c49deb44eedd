"""A real table with budgets of individuals, asked beside the naive one: numbers and counters are compared."""

from __future__ import annotations

import importlib
from dataclasses import replace

from tests.tables.individuals import counters
from tests.tables.naive_units import naive_of, replayed, table_of
from tests.tables.noise import decide

import targetcharge as tc

KEYS = {
    ("week",): [0, tc.MISSING, 3, 1, 9],
    ("place",): ["a", "b", "", "c", "zz"],
    ("place", "week"): [("a", 0), ("b", 1), (tc.MISSING, 0), ("a", 1), ("a", tc.MISSING), ("", 2)],
    ("fee",): [0, 0.25, 2.5, -1.5, tc.MISSING, 77],
}


def days():
    return tc.days("2024-01-01", "2024-01-05")


def hours():
    return tc.hours("2024-01-01 08:00", "2024-01-01 19:00")


def noise_of(monkeypatch, rng, reach=12):
    """Let a random generator of a test decide the noise of all mechanisms that are made from now on."""
    decide(monkeypatch, lambda noise: _noise(rng, noise.rate, reach))
    wrapper = importlib.import_module("targetcharge.mechanisms.wrappers")
    monkeypatch.setattr(wrapper, "bernoulli", lambda _entropy, _chance: rng.random() < 0.5)


def _noise(rng, rate, reach):
    scale = max(1, round(0.1 * rate.denominator / rate.numerator))  # in steps, of the largest contribution
    return rng.randint(-reach, reach) * scale


def what_of(asked):
    """Return what a question is about, as a table takes it."""
    if asked.total is None:
        return asked.where
    column, lower, upper, grid = asked.total
    return tc.questions.sum(column, lower, upper, asked.where, grid=grid)


def columns_of(asked):
    return asked.by[0] if len(asked.by) == 1 else list(asked.by)


class Pair:
    """Tables on one ledger, and one naive table. Calls are made one after another."""

    def __init__(self, opened, snapshots, drawn, *, by_row=False):
        """Open the first table.

        Args:
            opened: opens one more on the same ledger, from a source; in memory there can be only one.
            snapshots: lists of rows.
            drawn: the numbers that were drawn, as they come.
            by_row: whether rows are units.
        """
        self._opened, self._drawn, self._by_row = opened, drawn, by_row
        self.snapshots = list(snapshots)
        self.t = self.open()
        self.naive = naive_of(self.t, self.snapshots, by_row=by_row)
        self.tables, self._seen = [self.t], set()

    def open(self):
        t = self._opened(table_of(self.snapshots[0]))
        for rows in self.snapshots[1:]:
            t.append(table_of(rows))
        return t

    def append(self, rows):
        self.snapshots.append(rows)
        self.naive.grow(rows)
        for t in self.tables:
            assert t.append(table_of(rows)) == len(self.snapshots)

    def settled(self):
        """Compare all counters, at the ledger's head; and with what a stranger makes of the ledger."""
        for t in self.tables:
            assert counters(t) == self.naive.counters
        assert replayed(self.t, self.snapshots, by_row=self._by_row) == self.naive.counters

    def _new(self, t):
        new = [answer for answer in t.transcript if answer.seq not in self._seen]
        self._seen |= {answer.seq for answer in new}
        return new

    def forget(self):
        """Take note of what is in the transcript already, and of what was drawn."""
        self._new(self.t)
        self._drawn.clear()

    def told(self, t, asked):
        """Compare the numbers of answers that were just published, and charge them; `asked` is of all or each."""
        new, drawn = self._new(t), list(self._drawn)
        self._drawn.clear()
        assert len(drawn) == len(new)
        for place, (answer, number) in enumerate(zip(new, drawn, strict=True)):
            one = asked[place] if isinstance(asked, list) else replace(asked, key=answer.key)
            if answer.targets[0][0] == "Everything":
                one = replace(one, target=answer.targets[0])
            assert number == self.naive.number(one), (one, answer)
            assert answer.snapshot == one.snapshot
            if answer.hit or answer.release == answer.seq:
                self.naive.hit(one)
        return new

    # Calls.

    def one(self, t, asked, act):
        """Ask a question with one answer."""
        found = act(t, what_of(asked))
        self.told(t, [replace(asked, snapshot=len(self.snapshots))])
        return found

    def watching(self, t, asked, keys, threshold):
        """Begin to watch; return an iterator, and what it asks."""
        return t.iter_watch(what_of(asked), columns_of(asked), keys, threshold, epsilon=asked.epsilon), asked

    def further(self, t, watching, count):
        """Take so many more answers of a watch."""
        answers, asked = watching
        taken = [answer for answer, _ in zip(answers, range(count), strict=False)]
        new = self._new(t)
        self._seen -= {answer.seq for answer in new}
        snapshot = new[0].snapshot if new else 0
        self.told(t, replace(asked, snapshot=snapshot))
        return taken

    def revise(self, t, seq, when):
        """Revise a release: nothing is drawn and nobody pays."""
        waiting = next(release for release in t.pending if release.seq == seq)
        found = waiting.revise(when)
        assert not self._drawn
        (answer,) = self._new(t)
        assert (answer.release, answer.hit) == (seq, found.released)
        return found

    def top(self, t, asked, keys, k, **options):
        asked = replace(asked, snapshot=len(self.snapshots))
        found = t.top(what_of(asked), columns_of(asked), keys, k, epsilon=asked.epsilon, **options)
        numbers, _ = self.naive.best(asked, keys, k)
        assert self._drawn == list(numbers.values())
        self._drawn.clear()
        assert len(self._new(t)) == len(found) + (len(found) < k)
        self.naive.selected(asked, keys, k, [answer.key for answer in found])
        return found
