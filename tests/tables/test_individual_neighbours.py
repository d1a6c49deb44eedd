"""Two tables that differ by one unit and publish the same: nobody else's meter, or part in it, may differ.

That is the step of the proof (docs/theory/tables.md#individual-charging) from which all else follows. The noise of
the second table is what makes it publish what the first one did.
"""

from __future__ import annotations

import dataclasses
import importlib
import random
from collections import deque

import pytest
from tests.sizes import size
from tests.tables.individuals import Drawn, counters, opened
from tests.tables.naive_units import random_rows, table_of
from tests.tables.noise import decide
from tests.tables.paired import Pair
from tests.tables.test_individual_simulation import Player

import targetcharge as tc

GAMES = size(3, 25)
STEPS = size(20, 40)


class Script:
    """What is drawn: chosen by chance for the first table, and the same for the second."""

    def __init__(self, monkeypatch, rng):
        self._rng, self._waiting = rng, deque()
        self.again = False
        decide(monkeypatch, lambda noise: _Noise(self, noise.rate))
        wrapper = importlib.import_module("targetcharge.mechanisms.wrappers")
        monkeypatch.setattr(wrapper, "bernoulli", lambda *_: self.next(lambda: rng.random() < 0.5))

    def next(self, chosen):
        if self.again:
            return self._waiting.popleft()
        self._waiting.append(chosen())
        return self._waiting[-1]

    def noisy(self, count, rate):
        scale = max(1, round(0.1 * rate.denominator / rate.numerator))
        return self.next(lambda: count + self._rng.randint(-12, 12) * scale)

    @property
    def done(self):
        return not self._waiting


class _Noise:
    def __init__(self, script, rate):
        self._script, self._rate = script, rate

    def __radd__(self, count):
        return self._script.noisy(count, self._rate)


def facts(found):
    if isinstance(found, tc.Answer):
        return repr(dataclasses.replace(found, received=0.0))
    if isinstance(found, tc.sessions.Release):
        return repr((found.released, found.outcome, found.price, found.seq, found.scale, found.interval))
    return [facts(each) for each in found]


def _tried(act):
    try:
        return act(), None
    except (tc.BudgetSpent, tc.NotAllowed) as error:
        return (), error


class Both:
    """The table with the unit, which is what a player sees, and the one without it, which follows."""

    def __init__(self, whole, less, script, drawn):
        self._whole, self._less, self._script, self._drawn = whole, less, script, drawn
        self.numbers = []

    def __getattr__(self, name):
        if name not in {"above", "count", "between", "side", "sum_above", "ask_many", "top", "release"}:
            return getattr(self._whole, name)
        return lambda *asked, **options: self._do(lambda t: getattr(t, name)(*asked, **options))

    def _do(self, act):
        return self._follow(lambda: act(self._whole), lambda: act(self._less))

    def _follow(self, first, second):
        before = list(self._drawn)
        self._drawn.clear()
        found, refused = _tried(first)
        seen = list(self._drawn)
        self._drawn.clear()
        self._script.again = True
        follows, refused_too = _tried(second)
        self._script.again = False
        assert (repr(refused_too), facts(follows)) == (repr(refused), facts(found))
        assert self._script.done
        self.numbers += zip(seen, self._drawn, strict=True)
        self._drawn[:] = before + seen
        if refused is not None:
            raise refused
        return found

    def iter_watch(self, *asked, **options):
        first, second = (t.iter_watch(*asked, **options) for t in (self._whole, self._less))
        nothing = ()
        while (found := self._follow(lambda: next(first, nothing), lambda: next(second, nothing))) != nothing:
            yield found

    @property
    def pending(self):
        others = {release.seq: release for release in self._less.pending}
        return [_Two(self, release, others[release.seq]) for release in self._whole.pending]


class _Two:
    def __init__(self, both, first, second):
        self.seq = first.seq
        self.revise = lambda when: both._follow(lambda: first.revise(when), lambda: second.revise(when))


@pytest.mark.parametrize("game", range(GAMES))
@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_nobody_else_is_charged_otherwise_if_the_same_is_published(monkeypatch, meter, game):
    rng = random.Random(f"neighbours {meter} {game}")
    script, drawn = Script(monkeypatch, rng), Drawn(monkeypatch)
    hits = rng.choice([1, 2, 3, 5])
    snapshots = [random_rows(rng, 25, 70), random_rows(rng, 20, 15, first=15)]
    one = rng.choice([unit for unit in {row["unit"] for row in snapshots[0]} if unit is not None])
    without = [[row for row in rows if row["unit"] != one] for rows in snapshots]

    less = opened(table_of(without[0]), hits, meter=meter)
    pair = Pair(lambda source: opened(source, hits, meter=meter), snapshots[:1], drawn)
    both = Both(pair.t, less, script, drawn)
    pair.tables = [both]
    player = Player(pair, rng, meter)
    for number in range(STEPS):
        player.step()
        if number == STEPS // 2:
            pair.append(snapshots[1])
            less.append(table_of(without[1]))
    pair.settled()
    ids = {unit: place for place, unit in enumerate(pair.naive.spent)}
    whole, rest = counters(pair.t), counters(less)
    assert rest == [whole[place] for unit, place in ids.items() if unit != one]
    steps = [more - fewer for more, fewer in both.numbers]
    assert any(steps) or not whole[ids[one]]
    assert [facts(answer) for answer in pair.t.transcript] == [facts(answer) for answer in less.transcript]
    assert repr(pair.t.meter.odometer()) == repr(less.meter.odometer())
