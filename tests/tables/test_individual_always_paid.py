"""Who takes part in what is always paid for, and who is charged how much: the real table beside a naive one."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.sizes import size
from tests.tables import naive_paid
from tests.tables.individuals import counters, crowd, opened
from tests.tables.naive_units import PREDICATES, Asked, naive_of, random_rows, table_of
from tests.tables.noise import silence
from tests.tables.paired import KEYS, columns_of, noise_of, what_of

import targetcharge as tc
from targetcharge.accounting.curves import Gaussian
from targetcharge.tables.individual import UnitMeters

STEPS = size(25, 60)
GAMES = size(1, 12)
METERS = {"exact": {}, "gumbel": {"targets": None}, "renyi": {"meter": "renyi"}}
BOUNDS = [(0, 10, "1"), (-2, 5, "0.25"), (1, 4, "0.5"), (-5, 3, "0.01")]
SUMS = [("fee", 0, 10, "1"), ("fee", -2, 5, "0.25"), ("fee", 0, 40.3, "0.01")]


class Spy:
    """The exact numbers that were computed, by the name of the method, as they come."""

    def __init__(self, monkeypatch):
        self.seen = {}
        for name in ("one", "of_keys", "totals", "distribution"):
            self._watch(monkeypatch, name)

    def _watch(self, monkeypatch, name):
        original = getattr(UnitMeters, name)

        def watched(numbers, prepared):
            result = original(numbers, prepared)
            self.seen.setdefault(name, []).append(result)
            return result

        monkeypatch.setattr(UnitMeters, name, watched)

    def last(self, name):
        """Return the only result of a method since the last look, and forget all."""
        (result,), self.seen = self.seen[name], {}
        return result


class Game:
    """Random questions to tables on one ledger, and the naive meters beside them."""

    def __init__(self, open_one, spy, rng, *, by_row):
        self.rng, self.spy, self.by_row, self._open = rng, spy, by_row, open_one
        self.snapshots = [random_rows(rng, 25, 70)]
        self.tables = [self.open()]
        self.naive = naive_of(self.tables[0], self.snapshots, by_row=by_row)
        allowance = self.tables[0]._numbers.allowance
        self.full = allowance.prices(tc.NotPrior(None), 0.1, 1).full

    def open(self):
        t = self._open(table_of(self.snapshots[0]))
        for rows in self.snapshots[1:]:
            t.append(table_of(rows))
        return t

    def compare(self):
        assert all(counters(t) == self.naive.counters for t in self.tables)

    def step(self):
        move = self.rng.choice(
            [
                self.histogram,
                self.mean,
                self.quantiles,
                self.number,
                self.number,
                self.change,
                self.release,
                self.top,
            ]
        )
        move(self.rng.choice(self.tables))

    # Who takes part.

    def able(self):
        """Return the rows of those who can pay for a hit, by unit."""
        units = {}
        for number, rows in enumerate(self.snapshots, 1):
            for unit, own in naive_paid.rows_of_units(rows, by_row=self.by_row).items():
                units.setdefault((number, unit) if self.by_row else unit, []).extend(own)
        spent, capacity = self.naive.spent, self.naive.capacity
        return {unit: rows for unit, rows in units.items() if spent[unit] + self.full <= capacity}

    def charge(self, units):
        for unit in units:
            self.naive.spent[unit] += self.full

    def where(self):
        return self.rng.choice(list(PREDICATES))

    def asked(self, **more):
        return Asked(self.where(), snapshot=len(self.snapshots), **more)

    # Questions.

    def histogram(self, t):
        where, by, per_unit = self.where(), self.rng.choice(list(KEYS)), self.rng.randint(1, 3)
        keys = KEYS[by]
        names = by if len(by) > 1 else by[0]
        held = {unit: naive_paid.keys_of(rows, where, names, keys) for unit, rows in self.able().items()}
        held = {unit: own for unit, own in held.items() if own}
        t.histogram(where, list(by), keys, per_unit)
        cells = self.spy.last("of_keys")
        assert sum(cells) == sum(min(per_unit, len(own)) for own in held.values())
        for key, cell in zip(keys, cells, strict=True):
            most = [own for own in held.values() if key in own]
            assert sum(len(own) <= per_unit for own in most) <= cell <= len(most)
        self.charge(held)

    def _values(self, where, lower, upper, grid):
        values = {
            unit: naive_paid.value_of(rows, where, lower, upper, Fraction(grid))
            for unit, rows in self.able().items()
        }
        return {unit: value for unit, value in values.items() if value is not None}

    def mean(self, t):
        where, (lower, upper, grid) = self.where(), self.rng.choice(BOUNDS)
        values = self._values(where, lower, upper, grid)
        t.mean("fee", lower, upper, where, grid=grid)
        assert self.spy.last("totals") == naive_paid.totals(values.values(), Fraction(lower) / Fraction(grid))
        self.charge(values)

    def quantiles(self, t):
        where, (lower, upper, grid) = self.where(), self.rng.choice(BOUNDS)
        shares = self.rng.choice([[0.5], [0.1, 0.9], [0.25, 0.5, 0.75]])
        expected = []
        for _ in shares:  # one after another: who has paid for the last may be absent from the next
            values = self._values(where, lower, upper, grid)
            expected.append(naive_paid.distribution(values.values(), Fraction(lower) / Fraction(grid)))
            self.charge(values)
        t.quantiles("fee", shares, lower, upper, where, grid=grid)
        seen, self.spy.seen = self.spy.seen["distribution"], {}
        assert [(steps.tolist(), units.tolist()) for steps, units in seen] == expected

    def number(self, t):
        asked = self.asked(total=self.rng.choice([None, *SUMS]))
        self._one(asked, t.count(what_of(asked)))

    def change(self, t):
        if t.meter.tariff.at_least:
            return
        asked = self.asked(total=self.rng.choice([None, *SUMS]))
        answer = t.count(what_of(asked), prior=self.rng.choice([10**6, 20]), tolerance=3)
        self._one(asked, answer)

    def _one(self, asked, answer):
        """Compare a number that was asked for alone, and charge it."""
        if answer.targets[0][0] == "Everything":
            asked = replace(asked, target=answer.targets[0])
        assert self.spy.last("one") == self.naive.number(asked)
        if answer.hit:
            self.naive.hit(asked)

    def release(self, t):
        asked = self.asked(total=self.rng.choice([None, SUMS[0]]))
        t.release(tc.questions.count(what_of(asked)), self.rng.choice([10, 10**6]))
        assert self.spy.last("one") == self.naive.number(asked)
        self.naive.hit(asked)  # its price is held from the draw on

    def top(self, t):
        by = self.rng.choice(list(KEYS))
        asked, keys = self.asked(by=by, total=self.rng.choice([None, SUMS[0]])), KEYS[by]
        k = self.rng.randint(1, len(keys))
        answers = t.top(what_of(asked), columns_of(asked), keys, k, values=self.rng.random() < 0.5)
        numbers, _ = self.naive.best(asked, keys, k)
        assert self.spy.last("of_keys") == list(numbers.values())
        self.naive.selected(asked, keys, k, [answer.key for answer in answers])


@pytest.mark.parametrize("game", range(GAMES))
@pytest.mark.parametrize("meter", METERS)
@pytest.mark.parametrize("unit", ["unit", tc.ROW], ids=["column", "row"])
def test_numbers_and_counters_are_the_naive_ones(monkeypatch, tmp_path, unit, meter, game):
    """Through restarts without saved counters, appends, and a second table on the same ledger."""
    rng = random.Random(f"{unit} {meter} {game}")
    noise_of(monkeypatch, rng)
    ledger, hits = tmp_path / "ledger.db", rng.choice([2, 3, 5])
    played = Game(
        lambda source: opened(source, hits, unit=unit, ledger=ledger, **METERS[meter]),
        Spy(monkeypatch),
        rng,
        by_row=unit is tc.ROW,
    )
    for step in range(STEPS):
        played.step()
        if rng.random() < 0.4:
            played.compare()
        if rng.random() < 0.08:
            rows = random_rows(rng, 20, 15, first=15)
            played.snapshots.append(rows)
            played.naive.grow(rows)
            for t in played.tables:
                t.append(table_of(rows))
        if step == STEPS // 3:
            played.tables.append(played.open())
        if step == STEPS // 2:
            for t in played.tables:
                t.close()
            if rng.random() < 0.7:
                (tmp_path / "ledger.db-counters").unlink(missing_ok=True)
            played.tables = [played.open() for _ in played.tables]
            played.spy.seen = {}
    played.compare()
    assert 0 < max(played.naive.counters) <= played.naive.capacity
    for t in played.tables:
        t.close()


def test_a_unit_pays_once_for_a_histogram_whatever_its_keys(monkeypatch):
    silence(monkeypatch)
    with opened(crowd(([1, 2], 0), ([2, 3], 1)), 3) as t:
        t.histogram(None, "week", [0, 1, 2], per_unit=2)
        assert counters(t) == [1, 1, 1]  # unit 2 has two keys


def test_a_histogram_charges_who_has_rows_of_a_key_and_nobody_else(monkeypatch):
    silence(monkeypatch)
    with opened(crowd(([1, 2], 0), ([2, 3], 1), ([4], 9)), 3) as t:
        assert sum(answer.outcome for answer in t.histogram(None, "week", [0, 1])) == 3
        assert counters(t) == [1, 1, 1, 0]
        t.histogram("week = 1", "week", [0, 1], per_unit=2)
        assert counters(t) == [1, 2, 2, 0]


# Prices: what a record does not say.


def rising():
    """Return rows of ten units, of which one contributes 1, the next 2, and so on."""
    return table_of([dict.fromkeys(("week", "place", "at")) | {"unit": n, "fee": float(n)} for n in range(1, 11)])


SUM = tc.questions.sum("fee", 0, 10, grid=1)
CALLS = {
    "a sum": lambda t: t.count(SUM),
    "a change of a sum": lambda t: t.count(SUM, prior=10**6, tolerance=0),
    "a sum above a threshold": lambda t: t.above(SUM, 1),
    "a release": lambda t: t.release(tc.questions.count(SUM), 1),
    "a mean": lambda t: t.mean("fee", 0, 10, grid=1),
    "a quantile": lambda t: t.quantile("fee", 0.5, 0, 10, grid=1),
}


@pytest.mark.parametrize("asked", CALLS)
def test_after_a_restart_everybody_has_paid_what_they_had(monkeypatch, tmp_path, asked):
    """Also without the counters that were saved: all is read from the transcript."""
    silence(monkeypatch)
    ledger = tmp_path / "ledger.db"
    with opened(rising(), 3, meter="renyi", ledger=ledger) as t:
        CALLS[asked](t)
        paid = counters(t)
    (tmp_path / "ledger.db-counters").unlink()
    with opened(rising(), 3, meter="renyi", ledger=ledger) as t:
        assert counters(t) == paid
    assert min(paid) > 0


@pytest.mark.parametrize("first", CALLS)
def test_two_tables_on_one_ledger_charge_alike_whatever_each_asked_before(monkeypatch, tmp_path, first):
    """A count that is always paid and its change have the same record, and other prices."""
    silence(monkeypatch)
    one, other = (opened(rising(), 9, meter="renyi", ledger=tmp_path / "ledger.db") for _ in range(2))
    CALLS[first](one)
    for call in CALLS.values():
        call(other)
        assert counters(one) == counters(other)
    one.close()
    other.close()


def test_who_contributes_a_part_of_a_sum_pays_the_curve_of_that_part(monkeypatch):
    """Gaussian noise tells (share)² of its ρ; for a mean or a quantile everybody with a value pays in full."""
    silence(monkeypatch)
    with opened(rising(), 3, meter="renyi") as t:
        answer = t.count(SUM)
        _, kind, squared, variance = answer.targets[0]
        assert (kind, squared) == ("gaussian", 100)
        order, scale = t.meter.tariff.order, t._numbers.allowance.scale
        for steps, paid in enumerate(counters(t), 1):
            moment = order * (order - 1) * steps**2 / (2 * float(Fraction(variance)))
            assert paid == pytest.approx(moment * 2**128 * float(scale), rel=1e-9)
            assert Gaussian(100, Fraction(variance)).of_share(Fraction(steps, 10)).moment(order) >= moment * (
                1 - 1e-12
            )
        before = counters(t)
        t.mean("fee", 0, 10, grid=1)
        price = counters(t)[0] - before[0]
        assert [after - paid for after, paid in zip(counters(t), before, strict=True)] == [price] * 10
        assert price == t._numbers.allowance.prices(tc.NotPrior(None), 0.1, 1).full
        t.quantile("fee", 0.5, 0, 10, grid=1)
        assert [after - paid for after, paid in zip(counters(t), before, strict=True)] == [2 * price] * 10


def test_picks_are_made_by_noisy_numbers_where_every_unit_has_a_budget(monkeypatch):
    """A pick by the exponential mechanism would charge everybody; this charges those who are in what is named."""
    silence(monkeypatch)
    with opened(crowd(([1, 2, 3], 0), ([4, 5], 1), ([6], 2)), 3) as t:
        answers = t.top(None, "week", [0, 1, 2], 2, values=False)
        assert [answer.key for answer in answers] == [0, 1]
        assert {(answer.outcome, answer.scale, answer.interval) for answer in answers} == {(None, 0.0, None)}
        assert counters(t) == [1, 1, 1, 1, 1, 0]
        named, counted = (
            t.preview(tc.questions.top(None, "week", [0, 1, 2], 2, values=wish)) for wish in (False, True)
        )
        assert (named.margin_of, named.scale, counted.margin_of) == ("beside the best", 0.0, "number")
        assert counted.margin < named.margin < 2 * counted.margin + 1
