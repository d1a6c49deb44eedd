"""Histograms of units that count for a few keys each, and values of units: what one unit changes, and by what law.

The reference agrees key by key in the conformance suite; here is what is claimed of both.
"""

import random
from collections import Counter
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.rows import DOUBLE, TEXT, WHOLE, Table
from tests.engines.sources import FOLDER, SOURCES
from tests.goodness import DRAWS, assert_only, draws_to_tell
from tests.sizes import size

from targetcharge.engines.duckdb import open_duckdb
from targetcharge.queries.keys import Keys
from targetcharge.queries.measures import RANKS, Count, Histogram, UnitValue
from targetcharge.queries.tree import All, Compare, Missing, Not, OneOf, Operator

KEYS = 6
TABLES = size(2, 10)
"""Random tables of each source."""

GRID = Fraction(1, 4)
TYPES = {"id": TEXT, "ward": WHOLE[2], "fare": DOUBLE}


def wards(engine, number=KEYS):
    return Keys((engine.schema["ward"],), tuple((ward,) for ward in range(number)))


def chosen_by(engine, histogram, keys, snapshot=None):
    """Return for which keys each unit counts, by the ids of units."""
    found, of_units = engine.contributions_by(histogram, keys, snapshot), {}
    assert found.steps is None
    for place in range(len(keys.values)):
        for unit in found.of(place)[0].tolist():
            of_units.setdefault(unit, []).append(place)
    return of_units


# What one unit changes


def random_rows(chance):
    """Return rows of twelve people, most of whom were in several wards, some of them not declared."""
    fares = (None, float("nan"), -3.0, 0.0, 0.1, 0.125, 2.5, 1e300, float("inf"), float("-inf"))
    return [
        (chance.choice(["ann", "bob", None, *map(str, range(10))]), chance.randrange(8), chance.choice(fares))
        for _ in range(60)
    ]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("seed", range(TABLES))
def test_without_a_unit_only_its_own_contributions_are_gone(name, seed, tmp_path):
    chance = random.Random(seed)
    rows = random_rows(chance)
    gone = chance.choice([row[0] for row in rows if row[0] is not None])
    parts = rows, [row for row in rows if row[0] != gone], [row for row in rows if row[0] == gone]
    engines = []
    for number, part in enumerate(parts):
        folder = tmp_path / str(number) / FOLDER
        folder.mkdir(parents=True)
        table = SOURCES[name].fitted(Table(TYPES, tuple(part)))
        engines.append(SOURCES[name].opened(table, folder, next(iter(table.types))))
    compare_neighbours(engines, chance)
    for engine in engines:
        engine.close()


def compare_neighbours(engines, chance):
    keys = wards(engines[0])
    for per_unit in (1, 2, 3, KEYS):
        histogram = Histogram(None, per_unit, str(chance.random()))
        whole, without, own = (engine.measure_by(histogram, keys) for engine in engines)
        assert [a - b for a, b in zip(whole, without, strict=True)] == own
        assert max(own) <= 1
        assert sum(own) <= per_unit == histogram.sensitivity
    value = UnitValue(engines[0].schema["fare"], -7, 9, GRID, None)
    whole, without, own = (Counter(dict(by_steps(engine.distribution(value)))) for engine in engines)
    assert whole - without == own
    assert own.total() <= 1
    assert all(1 <= step <= value.sensitivity == 17 for step in whole)
    assert sum(step * units for step, units in whole.items()) == engines[0].measure([value])[0]


def by_steps(distribution):
    return zip(distribution.steps.tolist(), distribution.units.tolist(), strict=True)


@pytest.mark.parametrize("unit", ["id", None])
def test_a_bound_that_binds_nobody_leaves_the_counts(unit):
    rows = Table(TYPES, tuple(random_rows(random.Random(1))))
    with closing(SOURCES["arrow-table"].opened(rows, None, unit)) as engine:
        for where in (None, Compare(engine.schema["ward"], Operator.GE, 2)):
            counts = engine.measure_by(Count(where), wards(engine))
            assert engine.measure_by(Histogram(where, KEYS, "key"), wards(engine)) == counts
            bounded = engine.measure_by(Histogram(where, 1, "key"), wards(engine))
            assert (bounded == counts) is (unit is None)  # a row has one key
            assert engine.measure([Histogram(where, 1, "key")]) == engine.measure([Count(where)])


def test_what_is_kept_of_a_unit_depends_on_nothing_but_its_declared_keys(tmp_path):
    rows = random_rows(random.Random(2))
    turned = [*(("new", ward, None) for ward in range(8)), *reversed(rows)]
    more = [(name, ward + 100, fare) for name, ward, fare in rows]
    kept = []
    for number, part in enumerate((rows, rows * 2, turned, rows + more)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with closing(SOURCES["parquet-folder"].opened(Table(TYPES, tuple(part)), folder, "id")) as engine:
            kept.append({})
            for unit, places in chosen_by(engine, Histogram(None, 2, "key"), wards(engine)).items():
                name = engine._table.link.rows(f"SELECT u FROM units_1 WHERE id = {unit}")[0][0]
                kept[-1][name] = places
    assert len(kept[2].pop("new")) == 2
    assert kept[0] == kept[1] == kept[2] == kept[3]
    assert max(len(places) for places in kept[0].values()) == 2


@pytest.mark.parametrize("first", ["arrow-table", "parquet-file", "csv", "pandas-numpy"])
def test_a_unit_keeps_its_keys_when_others_are_appended(first, tmp_path):
    rows = random_rows(random.Random(3))
    with closing(SOURCES[first].opened(Table(TYPES, tuple(rows[:30])), tmp_path, "id")) as engine:
        keys = Keys(
            (engine.schema["ward"],), tuple((float(n) if first == "pandas-numpy" else n,) for n in range(KEYS))
        )
        histogram = Histogram(None, 2, "key")
        before = chosen_by(engine, histogram, keys)
        (tmp_path / "second").mkdir()
        known = {row[0] for row in rows[:30]}
        others = [row for row in rows[30:] if row[0] not in known] + [("zoe", ward, 1.0) for ward in range(KEYS)]
        later, _ = SOURCES[first].given(Table(TYPES, tuple(others)), tmp_path / "second")
        engine.append(later)
        after = chosen_by(engine, histogram, keys)
        assert before == {unit: places for unit, places in after.items() if unit in before}
        assert chosen_by(engine, histogram, keys, 1) == before
        assert len(after) > len(before)


# By what law


def tilted(law):
    """Return a law whose first half of outcomes is 5% more likely."""
    half = len(law) // 2
    masses = {outcome: 1.05 if place < half else 1.0 for place, outcome in enumerate(law)}
    return {outcome: mass / sum(masses.values()) for outcome, mass in masses.items()}


def uniform(outcomes):
    outcomes = list(outcomes)
    return dict.fromkeys(outcomes, 1 / len(outcomes))


AGREEING = {True: 1 / KEYS, False: 1 - 1 / KEYS}
MORE_AGREEING = {True: 1.05 / KEYS, False: 1 - 1.05 / KEYS}
UNITS = 2 * max(DRAWS, draws_to_tell(AGREEING, MORE_AGREEING))


@pytest.fixture(scope="module", params=["whole", "text"])
def everywhere(request):
    """Units that were in every ward: their ids are numbers that follow each other, or texts."""
    ids = np.repeat(np.arange(UNITS), KEYS)
    column = pa.array(ids) if request.param == "whole" else pa.array([f"patient {number}" for number in ids])
    with closing(open_duckdb(pa.table({"id": column, "ward": np.tile(np.arange(KEYS), UNITS)}), "id")) as engine:
        yield engine


def chosen_sets(engine, per_unit, key):
    """Return for each unit which keys it counts for, as an array."""
    found = engine.contributions_by(Histogram(None, per_unit, key), wards(engine))
    kept = np.zeros(engine.units(), np.int64)
    for place in range(KEYS):
        kept[found.of(place)[0]] |= 1 << place
    return kept


def test_every_key_of_a_unit_is_as_likely_as_the_others(everywhere):
    law = uniform(1 << place for place in range(KEYS))
    counts = Counter(chosen_sets(everywhere, 1, "one key").tolist())
    assert_only(counts, law, tilted(law))


def test_every_set_of_keys_is_as_likely_as_the_others(everywhere):
    law = uniform((1 << a) | (1 << b) for a, b in combinations(range(KEYS), 2))
    assert_only(Counter(chosen_sets(everywhere, 2, "another").tolist()), law, tilted(law))


@pytest.mark.parametrize("keys", [("a", "a"), ("a", "b")], ids=["two-units", "two-computations"])
def test_choices_are_unrelated(everywhere, keys):
    """Those of neighbouring units in one computation, and those of one unit in two."""
    first, second = (chosen_sets(everywhere, 1, key) for key in keys)
    pairs = list(zip(first[::2].tolist(), second[keys[0] == keys[1] :: 2].tolist(), strict=True))
    law = uniform(product((1 << place for place in range(KEYS)), repeat=2))
    assert_only(Counter(pairs), law, tilted(law))
    assert_only(Counter(one == other for one, other in pairs), AGREEING, MORE_AGREEING)


def test_over_fresh_keys_one_unit_chooses_every_key_alike():
    """The ranks of one unit, which has a number of its own, by the lines of many keys."""
    draws, counts = DRAWS // 5, Counter()
    for key in range(draws):
        s, t = Histogram(None, 1, str(key)).lines(3)
        assert min(s) > 0
        assert max(*s, *t) < RANKS
        counts[min(range(3), key=lambda place: (123_456_789 * s[place] + t[place]) % RANKS)] += 1
    law = uniform(range(3))
    assert_only(counts, law, {0: 0.37, 1: 0.315, 2: 0.315})


# Values of units


def test_as_many_units_have_a_value_as_have_a_row_that_is_not_missing(tmp_path):
    rows = Table(TYPES, tuple(random_rows(random.Random(4))))
    for unit in ("id", None):
        with closing(SOURCES["parquet-file"].opened(rows, tmp_path, unit)) as engine:
            fare, ward = engine.schema["fare"], engine.schema["ward"]
            where = OneOf(ward, (0, 1, 2))
            value = UnitValue(fare, -10, 10, GRID, where)
            known = Count(All((where, Not(Missing(fare)))))
            assert [int(engine.distribution(value).units.sum())] == engine.measure([known])
            assert engine.contributions([value]).units.tolist() == engine.contributions([known]).units.tolist()
            assert int(engine.distribution(replace(value, where=Missing(fare))).units.sum()) == 0
            assert "distribution of" in repr(engine.distribution(value))


def test_sums_beyond_64_bits_are_exact(tmp_path):
    number = size(3_000, 300_000)
    steps = np.where(np.arange(number) % 3 == 0, 2**53, 2**53 - 2)
    table = pa.table({"id": np.zeros(number, np.int64), "x": steps})
    pq.write_table(table, tmp_path / "t.parquet")
    with closing(open_duckdb(tmp_path / "t.parquet", "id")) as engine:
        value = UnitValue(engine.schema["x"], -(2**62), 2**62, Fraction(1), None)
        total = int(steps.astype(object).sum())
        mean = Fraction(total, number)
        expected = 1 + (mean + Fraction(1, 2)).__floor__() + 2**62
        assert engine.measure([value]) == [expected]
        assert list(by_steps(engine.distribution(value))) == [(expected, 1)]
        assert engine.contributions([value, Count(None)]).steps.tolist() == [expected, 1]
