"""No unit changes more than is paid for: real tables with it and without it, and all that they publish."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from tests.sizes import size
from tests.tables.always_paid import EACH, answers_of, opened, sure_picks
from tests.tables.naive_units import random_rows, table_of
from tests.tables.noise import decide
from tests.tables.paired import KEYS

import targetcharge as tc
from targetcharge.engines import sql
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.queries.measures import without_bound
from targetcharge.tables import questions as q
from targetcharge.tables.numbers import SharedNumbers

BOUNDS = [(0, 10, "1"), (-2, 5, "0.25"), (1, 4, "0.5"), (-5, 3, "0.01"), (-8, -3, "0.5")]
SUMS = [("fee", 0, 10, "1"), ("fee", -2, 5, "0.25"), ("fee", 0, 40.3, "0.01"), ("fee", -7, -1, "0.5")]

NEIGHBOURS = size(12, 200)


class Neighbours:
    """Two real tables that differ by the rows of one unit, and what they give to noise and picks."""

    def __init__(self, monkeypatch, meter, rows, gone, *, unit="unit"):
        self._noises, self._totals = [], []
        decide(monkeypatch, lambda noise: self._noises.append(noise) or 0)
        self._picks = sure_picks(monkeypatch)
        monkeypatch.setattr("targetcharge.tables.numbers.secrets.token_hex", lambda _: "key")
        monkeypatch.setattr(SharedNumbers, "totals", self._kept(SharedNumbers.totals))
        whole, less = table_of(rows), table_of([row for row in rows if row["unit"] != gone])
        self.tables = [opened(source, meter, unit=unit) for source in (whole, less)]

    def _kept(self, original):
        def totals(numbers, prepared):
            above, units = original(numbers, prepared)
            self._totals += [above, (prepared.measure.upper - prepared.measure.lower) * units - above]
            return above, units

        return totals

    def ask(self, call):
        """Return the exact vectors that get noise or are picked from, the noise or the rate, and what is paid."""
        seen = []
        for t in self.tables:
            self._noises.clear(), self._totals.clear(), self._picks.clear()
            answers = answers_of(call(t))
            vector = list(self._totals) or [answer.outcome for answer in answers]
            law = self._noises[0] if self._noises else None
            if self._picks:
                vector, law = self._picks[0]
            seen.append((vector, law, answers[0].targets[0]))
        (first, law, paid), (second, other_law, other_paid) = seen
        assert (law, paid) == (other_law, other_paid)
        return [Fraction(one) - Fraction(other) for one, other in zip(first, second, strict=True)], law, paid

    def share_of_noise(self, call):
        """Return how much of what is paid for noise is used: at most 1."""
        moved, noise, (_, kind, *figures) = self.ask(call)
        rate = Fraction(noise.rate.numerator, noise.rate.denominator)
        if kind == "pure":
            return float(rate * sum(map(abs, moved)) / Fraction(figures[0]))
        squared, variance = figures
        assert Fraction(variance) == 1 / rate**2
        return float(sum(step**2 for step in moved) / squared)

    def share_of_range(self, call):
        """Return how much of the range that is paid for the first pick is used: at most 1."""
        moved, rate, (_, kind, most) = self.ask(call)
        assert kind == "bounded range"
        return float((max(moved) - min(moved)) * rate / Fraction(most))


def changes(monkeypatch, meter, game, only=None, **options):
    """Yield the name of each question, and which share of what is paid for it a unit uses, on a random table."""
    rng = random.Random(f"neighbours {meter} {game}")
    rows = random_rows(rng, 12, 60)
    gone = rng.choice([row["unit"] for row in rows if row["unit"] is not None])
    where, by, per_unit = (
        rng.choice([None, "week >= 1", "fee < 0"]),
        rng.choice(list(KEYS)),
        rng.choice([1, 2, 3, 9]),
    )
    lower, upper, grid = rng.choice(BOUNDS)
    share, bounds, keys = rng.choice([0.5, 0.1, 0.9]), rng.choice([(-2, 5), (-6, -1)]), KEYS[by]
    total = q.sum("fee", -2, 5, where, grid="0.25")
    of_noise = {
        "histogram": lambda t: t.histogram(where, list(by), keys, per_unit),
        "mean": lambda t: t.mean("fee", lower, upper, where, grid=grid),
        "sum": lambda t: t.sum("fee", *bounds, where, grid=1),
    }
    of_range = {
        "quantile": lambda t: t.quantile("fee", share, lower, upper, where, grid=grid),
        "picks": lambda t: t.top(where, list(by), keys, 2, values=False),
        "picks of a sum": lambda t: t.top(total, list(by), keys, 2, values=False),
    }
    two = Neighbours(monkeypatch, meter, rows, gone, **options)
    for name, call in of_noise.items():
        if only in (None, name):
            yield name, two.share_of_noise(call)
    for name, call in of_range.items():
        if only in (None, name):
            yield name, two.share_of_range(call)
    if only is None:
        moved, _, _ = two.ask(of_noise["histogram"])
        yield "cell", float(max(map(abs, moved)))
        yield "direction", float(max(moved) * -min(moved) + 1)  # all cells move the same way
    for t in two.tables:
        t.close()


def most_of(monkeypatch, meter, **options):
    most = {}
    for game in range(NEIGHBOURS):
        for name, share in changes(monkeypatch, meter, game, **options):
            most[name] = max(most.get(name, 0), share)
    return most


@EACH
def test_no_unit_changes_more_than_is_paid_for_and_some_change_all_of_it(monkeypatch, meter):
    most = most_of(monkeypatch, meter)
    assert max(most.values()) <= 1
    assert most.pop("picks of a sum") > 0.7  # all of it only if a unit has both ends, in two keys
    assert min(most.values()) > 1 - 1e-6


@pytest.mark.parametrize("meter", ["exact", "sparse"])
def test_the_search_would_find_units_that_are_taken_for_rows(monkeypatch, meter):
    most = most_of(monkeypatch, meter, unit=tc.ROW)
    assert most.pop("direction") == 1
    assert min(most.values()) > 1


def test_the_search_would_find_units_that_count_for_all_their_keys(monkeypatch):
    right = DuckDBEngine.measure_by
    monkeypatch.setattr(
        DuckDBEngine, "measure_by", lambda engine, measure, keys: right(engine, without_bound(measure), keys)
    )
    assert most_of(monkeypatch, "exact", only="histogram")["histogram"] > 1


def test_the_search_would_find_contributions_that_are_not_within_their_bounds(monkeypatch):
    monkeypatch.setattr(sql, "clamped", lambda contribution, _total: contribution)
    assert most_of(monkeypatch, "exact", only="sum")["sum"] > 1


def test_the_search_would_find_picks_with_twice_the_rate(monkeypatch):
    monkeypatch.setattr(
        "targetcharge.mechanisms.picks._rate", lambda noise, width: Fraction(2 * noise.rates.bounded_range) / width
    )
    for name in ("quantile", "picks"):
        assert most_of(monkeypatch, "exact", only=name)[name] > 1.9
