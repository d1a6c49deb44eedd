"""Who takes part and who is charged: the real table against the naive one, on random tables and questions."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from fractions import Fraction

import pytest
from tests.sizes import size
from tests.tables.individuals import Drawn, counters, opened
from tests.tables.naive_units import PREDICATES, Asked, random_rows, table_of
from tests.tables.noise import silence
from tests.tables.paired import KEYS, Pair, days, hours, noise_of, what_of

import targetcharge as tc
from targetcharge.tables.individual import UnitMeters, unit_meters

GAMES = size(1, 25)
STEPS = size(20, 40)

SUMS = [
    ("fee", 0, 10, "1"),
    ("fee", -2, 5, "0.25"),
    ("fee", -10, 3, "0.001"),
    ("fee", -5, -1, "1/8"),
    ("fee", 1, 4, "0.5"),
    ("fee", 0, 40.3, "0.01"),
    ("fee", Fraction(-7, 2), Fraction(7, 2), "0.3"),
    ("fee", 0, 2**20, "0.1"),
]


class Player:
    """Asks random questions."""

    def __init__(self, pair, rng, meter):
        self.pair, self.rng, self.meter = pair, rng, meter
        self.watching = []

    def step(self):
        rng, pair = self.rng, self.pair
        t = rng.choice(pair.tables)
        moves = [self.above, self.count, self.prior, self.watch, self.begin, self.go_on, self.many, self.top]
        moves += [self.release, self.revise, self.total, self.total]
        if self.meter == "renyi":
            moves += [self.between, self.side, self.total_between]
        rng.choice(moves)(t)

    def where(self):
        return self.rng.choice(list(PREDICATES))

    def epsilon(self):
        return self.rng.choice([0.1, 0.1, 0.05])

    def near(self, asked):
        """Return a threshold that may go either way."""
        return self.pair.naive.number(asked) + self.rng.randint(-8, 8) * asked.sensitivity

    def now(self, asked):
        return Asked(**{**vars(asked), "snapshot": len(self.pair.snapshots)})

    def above(self, t):
        asked = Asked(self.where(), epsilon=self.epsilon())
        limit = self.near(self.now(asked))
        self.pair.one(t, asked, lambda t, what: t.above(what, limit, epsilon=asked.epsilon))

    def count(self, t):
        asked = Asked(self.where(), epsilon=self.epsilon())
        self.pair.one(t, asked, lambda t, what: t.count(what, epsilon=asked.epsilon))

    def prior(self, t):
        asked = Asked(self.where(), self.rng.choice([None, *SUMS]))
        limit = float(self.near(self.now(asked)) * asked.grid)
        reach = float(self.rng.randint(0, 8) * asked.sensitivity * asked.grid)
        if self.rng.random() < 0.5:
            self.pair.one(t, asked, lambda t, what: t.count(what, limit, reach))
        else:
            self.pair.one(t, asked, lambda t, what: t.above(what, limit - reach, limit, reach))

    def total(self, t):
        asked = Asked(self.where(), self.rng.choice(SUMS), epsilon=self.epsilon())
        limit = float(self.near(self.now(asked)) * asked.grid)
        column, lower, upper, grid = asked.total
        self.pair.one(
            t,
            asked,
            lambda t, _: t.sum_above(column, lower, upper, limit, asked.where, grid=grid, epsilon=asked.epsilon),
        )

    def between(self, t, total=None):
        asked = Asked(self.where(), total, epsilon=self.rng.choice([0.02, 0.05]))
        low = self.near(self.now(asked)) * asked.grid
        band = (float(low), float(low + self.rng.choice([0, 1, 5, 20]) * asked.sensitivity * asked.grid))
        asked = Asked(**{**vars(asked), "target": band})
        with suppress(tc.NotAllowed, tc.BudgetSpent):  # where nobody could ever pay
            self.pair.one(t, asked, lambda t, what: t.between(what, *band, epsilon=asked.epsilon))

    def total_between(self, t):
        self.between(t, self.rng.choice(SUMS))

    def side(self, t):
        asked = Asked(self.where(), self.rng.choice([None, *SUMS]), target="near", epsilon=0.05)
        limit = float(self.near(self.now(asked)) * asked.grid)
        self.pair.one(t, asked, lambda t, what: t.side(what, limit, epsilon=0.05))

    def _watch(self, t):
        where, total, epsilon = self.where(), self.rng.choice([None, None, *SUMS[:6]]), self.epsilon()
        grain, by = self.rng.choice([None, None, None, "day", "hour"]), self.rng.choice(list(KEYS))
        keys = {None: KEYS[by], "day": days(), "hour": hours()}[grain]
        asked = Asked(where, total, by if grain is None else ("at",), grain, epsilon=epsilon)
        return self.pair.watching(t, asked, keys, float(self.rng.randint(-5, 20) * asked.sensitivity * asked.grid))

    def watch(self, t):
        self.pair.further(t, self._watch(t), 10**6)

    def begin(self, t):
        self.watching.append((t, self._watch(t)))
        self.go_on(t)

    def go_on(self, _):
        if self.watching:
            t, watching = self.rng.choice(self.watching)
            self.pair.further(t, watching, self.rng.randint(1, 3))

    def many(self, t):
        asked, questions = [], []
        for _ in range(self.rng.randint(1, 5)):
            one = Asked(
                self.where(), self.rng.choice([None, None, None, SUMS[1]]), snapshot=len(self.pair.snapshots)
            )
            limit = float(self.near(one) * one.grid)
            asked.append(one)
            questions.append(tc.questions.above(what_of(one), limit))
        if self.rng.random() < 0.3:
            asked, questions = asked + asked[:1], questions + questions[:1]
        t.ask_many(questions)
        self.pair.told(t, asked)

    def top(self, t):
        by, total = self.rng.choice(list(KEYS)), self.rng.choice([None, *SUMS[:6]])
        options = self.rng.choice([{}, {}, {"threshold": 5}, {"stop": tc.sessions.gap(3)}, {"threshold": 10**6}])
        asked = Asked(self.where(), total, by, epsilon=self.epsilon())
        self.pair.top(t, asked, KEYS[by], self.rng.randint(1, len(KEYS[by])), **options)

    def release(self, t):
        asked = Asked(self.where(), epsilon=self.epsilon())
        limit = self.near(self.now(asked))
        self.pair.one(t, asked, lambda t, what: t.release(what, lambda n: n >= limit, epsilon=asked.epsilon))

    def revise(self, t):
        waiting = [release.seq for release in t.pending]
        if waiting:
            limit = self.rng.randint(-20, 60)
            self.pair.revise(t, self.rng.choice(waiting), lambda n: n < limit)


@pytest.mark.parametrize("game", range(GAMES))
@pytest.mark.parametrize("ledger", ["memory", "file", "two"])
@pytest.mark.parametrize("meter", ["exact", "renyi"])
@pytest.mark.parametrize("unit", ["unit", tc.ROW], ids=["column", "row"])
def test_numbers_and_counters_are_the_naive_ones(monkeypatch, tmp_path, unit, meter, ledger, game):
    rng = random.Random(f"{unit} {meter} {ledger} {game}")
    noise_of(monkeypatch, rng)
    place = ":memory:" if ledger == "memory" else tmp_path / "ledger.db"
    hits = rng.choice([1, 2, 3, 5, 9, 300])

    def open_one(source):
        return opened(source, hits, unit=unit, meter=meter, ledger=place)

    rows = random_rows(rng, 30, rng.choice([0, 60, 90]))
    pair = Pair(open_one, [rows], Drawn(monkeypatch), by_row=unit is tc.ROW)
    player = Player(pair, rng, meter)
    if ledger == "two":
        pair.tables.append(pair.open())
    for _ in range(STEPS):
        player.step()
        if rng.random() < 0.4:
            pair.settled()
        if rng.random() < 0.06:
            pair.append(random_rows(rng, 20, 15, first=20))
        if ledger != "memory" and rng.random() < 0.06:
            pair.settled()
            for t in pair.tables:
                t.close()
            if rng.random() < 0.5:
                (tmp_path / "ledger.db-counters").unlink(missing_ok=True)
            pair.tables = [pair.open() for _ in pair.tables]
            pair.t, player.watching = pair.tables[0], []
            assert set(pair.t._session._ledger.pending()) == {release.seq for release in pair.t.pending}
            pair.settled()
    pair.settled()
    for t in pair.tables:
        t.close()


# Some of it, one by one.


def test_a_selection_publishes_the_best_of_those_who_can_pay_ties_by_the_order_of_keys(monkeypatch):
    silence(monkeypatch)
    rng = random.Random(3)
    rows = random_rows(rng, 40, 120)
    pair = Pair(lambda source: opened(source, 4), [rows], Drawn(monkeypatch))
    for k, limit in ((2, None), (4, None), (1, None), (3, 4), (4, 1), (2, None), (4, -3)):
        for by in (("week",), ("place",), ("place", "week")):
            keys = KEYS[by]
            numbers, _ = pair.naive.best(Asked(None, by=by), keys, k)
            order = sorted(
                range(len(keys)), key=lambda place, numbers=numbers, keys=keys: (-numbers[keys[place]], place)
            )
            expected = [keys[place] for place in order[:k] if limit is None or numbers[keys[place]] >= limit]
            found = pair.top(pair.t, Asked(None, by=by), keys, k, threshold=limit)
            assert [answer.key for answer in found] == expected
            assert [answer.outcome for answer in found] == [numbers[key] for key in expected]
        pair.settled()


def row_of(unit, week, fee=None):
    return {"unit": unit, "week": week, "place": None, "fee": fee, "at": None}


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_who_could_not_pay_for_k_keys_pays_for_none_though_fewer_were_published(monkeypatch, meter):
    silence(monkeypatch)
    regulars = [row_of(unit, week) for unit in range(4) for week in range(4)]
    rows = regulars + [row_of(unit, 0) for unit in range(10, 20)]
    pair = Pair(lambda source: opened(source, 2, meter=meter), [rows], Drawn(monkeypatch))
    (found,) = pair.top(pair.t, Asked(None, by=("week",)), KEYS["week",], 3, threshold=5)
    assert (found.key, found.outcome) == (0, 10)
    pair.settled()
    assert pair.naive.counters[:4] == [0] * 4
    assert all(pair.naive.counters[4:])


def test_in_a_selection_of_sums_a_unit_must_be_able_to_pay_for_its_dearest_keys(monkeypatch):
    """One large contribution and three small ones: the large one decides, and with k = 2 one of the small too."""
    silence(monkeypatch)
    rows = [
        row_of(unit, week, fee) for unit in range(6) for week, fee in ((0, 10.0), (1, 1.0), (3, -1.0), (9, 0.5))
    ]
    pair = Pair(lambda source: opened(source, 1, meter="renyi"), [rows], Drawn(monkeypatch))
    asked = Asked(None, ("fee", -10, 10, "0.01"), ("week",))
    assert [answer.outcome for answer in pair.top(pair.t, asked, KEYS["week",], 2)] == [0, 0]
    pair.settled()
    assert set(pair.naive.counters) == {0}
    assert [answer.outcome for answer in pair.top(pair.t, asked, KEYS["week",], 1)] == [60]
    pair.settled()


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_who_comes_after_a_broken_call_was_charged_has_paid_for_it(monkeypatch, meter):
    silence(monkeypatch)
    pair = Pair(lambda source: opened(source, 2, meter=meter), [[row_of(1, 0)]], Drawn(monkeypatch))
    for number in range(2, 5):
        with monkeypatch.context() as patch:
            patch.setattr(UnitMeters, "one", lambda *_: 1 // 0)
            with pytest.raises(tc.ComputationFailed):
                pair.t.above(None, 1)
        pair.naive.broken(pair.t._numbers.allowance.scaled(pair.t.meter.tariff.typical.grains))
        pair.settled()
        pair.append([row_of(number, 0)])
        pair.settled()


def test_what_was_drawn_on_one_snapshot_is_not_taken_for_what_was_answered_on_another(monkeypatch, tmp_path):
    """The same question, asked by another table after an append: who contributed is found anew."""
    silence(monkeypatch)
    path, rows = tmp_path / "ledger.db", [row_of(unit, 0) for unit in range(5)]
    pair = Pair(lambda source: opened(source, 3, ledger=path), [rows], Drawn(monkeypatch))
    pair.tables.append(pair.open())
    first, second = pair.tables
    pair.one(first, Asked("week = 0"), lambda t, what: t.count(what))
    pair.top(first, Asked(None, by=("week",)), KEYS["week",], 1)
    pair.append([row_of(unit, 0) for unit in range(3, 9)])
    pair.top(second, Asked(None, by=("week",)), KEYS["week",], 1)
    pair.settled()
    pair.one(first, Asked("week = 0"), lambda t, what: t.count(what))
    pair.append([row_of(unit, 0) for unit in range(8, 12)])
    pair.one(second, Asked("week = 0"), lambda t, what: t.count(what))
    pair.settled()


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_charging_that_was_interrupted_is_made_again(monkeypatch, tmp_path, nth, kind):
    """What was charged before the interrupt is not charged twice, and what was not is not lost."""
    silence(monkeypatch)
    path, rows = tmp_path / "ledger.db", [row_of(unit, unit % 3) for unit in range(9)]
    pair = Pair(lambda source: opened(source, 9, ledger=path), [rows], Drawn(monkeypatch))
    pair.tables.append(pair.open())
    pair.settled()
    for where in ("week = 0", None, "week >= 1"):
        pair.one(pair.tables[1], Asked(where), lambda t, what: t.count(what))
    left, pay = [nth], unit_meters._pay

    def interrupted(*due):
        left[0] -= 1
        if not left[0]:
            raise kind
        pay(*due)

    with monkeypatch.context() as patch:
        patch.setattr(unit_meters, "_pay", interrupted)
        with pytest.raises(kind):
            counters(pair.t)
    pair.settled()


def test_more_than_a_block_of_answers_between_two_hits(monkeypatch):
    """Tests are counted some at a time; a hit in the middle of them is paid before the next is drawn."""
    rng = random.Random(5)
    rows = [row_of(unit, week) for unit in range(25) for week in rng.sample(range(400), 12)]
    drawn = Drawn(monkeypatch)
    pair = Pair(lambda source: opened(source, 3), [rows], drawn)
    silence(monkeypatch)
    keys = list(range(400))
    for limit in (3, 2, 2, 1, 1, 1):
        pair.further(pair.t, pair.watching(pair.t, Asked(None, by=("week",)), keys, limit), 10**6)
        pair.settled()
        rng.shuffle(keys)
    assert set(pair.naive.counters) == {3}


def test_a_pending_release_is_held_across_a_reopening_and_costs_nothing_more(monkeypatch, tmp_path):
    silence(monkeypatch)
    path = tmp_path / "ledger.db"
    rows = random_rows(random.Random(8), 20, 60)
    pair = Pair(lambda source: opened(source, 3, ledger=path), [rows], Drawn(monkeypatch))
    for where in ("week = 0", "place = 'a'", None):
        pair.one(pair.t, Asked(where), lambda t, what: t.release(what, lambda _: False))
        pair.settled()
    pair.append(random_rows(random.Random(9), 20, 20, first=10))
    before = pair.naive.counters
    for _ in range(3):
        pair.t.close()
        pair.tables = [pair.open()]
        pair.t = pair.tables[0]
        pair.settled()
        (first, *_) = sorted(release.seq for release in pair.t.pending)
        pair.revise(pair.t, first, lambda _: False)
        assert pair.revise(pair.t, first, lambda _: True).released
        pair.settled()
        assert pair.naive.counters == before
    assert pair.t.pending == ()
    pair.one(pair.t, Asked(None), lambda t, what: t.count(what))
    pair.settled()


def test_the_games_reach_what_they_are_for():
    """Rows without units, missing values, signed sums, and sums of more than 4096 steps."""
    rows = random_rows(random.Random(1), 30, 90)
    assert any(row["unit"] is None for row in rows)
    assert any(row[name] is None for row in rows for name in ("week", "place", "fee", "at"))
    assert any(Asked(None, each).sensitivity > 4096 for each in SUMS)
    assert any(Asked(None, each).bounds[0] < 0 < Asked(None, each).bounds[1] for each in SUMS)
    assert table_of(rows).num_rows == 90
    assert not math.isnan(sum(row["fee"] or 0 for row in rows))
