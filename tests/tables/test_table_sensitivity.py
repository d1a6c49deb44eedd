"""No unit changes a measure by more than its declared sensitivity: its rows added or removed, by brute force."""

from __future__ import annotations

import math
import random
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from tests.sizes import size
from tests.tables.measured import BOUNDS, BY, GRIDS, WHERE
from tests.tables.worlds import COLUMNS, SOURCES, UNITS, World

import targetcharge as tc
from targetcharge.engines import sql
from targetcharge.engines.duckdb import open_duckdb
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.noise import rate_for
from targetcharge.queries.keys import declare
from targetcharge.queries.measures import Count, Sketch, Total
from targetcharge.tables import questions
from targetcharge.tables.measured import measured
from targetcharge.tables.preparing import prepare

TABLES = size(60, 800)
KINDS = (*UNITS, "row")
KEYS = {**BY, ("t", "b"): [(t, b) for t in ("a", "b", "") for b in (True, False)]}
TIMES = {"days": tc.days("2024-01-01", "2024-01-03"), "hours": tc.hours("2024-01-01", "2024-01-02 03:00")}


def measures(schema, rng, many=14):
    """Drawn counts, sums with all kinds of bounds, and sketches with a fixed key."""
    found = []
    while len(found) < many:
        where, form = rng.choice(list(WHERE)), rng.random()
        try:
            if form < 0.2:
                measure, _, _ = measured(questions.Count(where), schema)
            elif form < 0.65:
                column, bounds, grid = rng.choice(["x", "n", "m"]), rng.choice(BOUNDS), rng.choice(GRIDS)
                measure, _, _ = measured(questions.sum(column, *bounds, where, grid=grid), schema)
            else:
                column, most = rng.choice([*COLUMNS, "u"]), rng.choice([1, 1, 2, 5])
                measure, _, _ = measured(questions.distinct(column, where, per_unit=most), schema, 100)
        except InvalidParameter:  # a grid that does not fit the bounds
            continue
        found.append(replace(measure, key="key") if isinstance(measure, Sketch) else measure)
    return found


def groups(schema, rng):
    """Drawn keys, and a count or a sum to be taken of each."""
    by = rng.choice([*KEYS, *TIMES])
    keys = declare("s", TIMES[by], schema) if by in TIMES else declare(by, KEYS[by], schema)
    plain = [measure for measure in measures(schema, rng) if isinstance(measure, Count | Total)]
    return [(measure, keys) for measure in plain[:2]]


def changes(world, place, source, folder, seed):
    """Yield measures, and how much each changes when a unit leaves: of those by keys, the largest change."""
    with ExitStack() as stack:
        engines = [
            stack.enter_context(
                closing(open_duckdb(each.source(source, folder, 7 + seed // 4 % 2 * 99), each.unit))
            )
            for each in (world, world.without(place))
        ]
        rng = random.Random(seed)
        asked = measures(engines[0].schema, rng)
        first, second = (engine.measure(asked) for engine in engines)
        for measure, before, after in zip(asked, first, second, strict=True):
            yield measure, abs(before - after)
        for measure, keys in groups(engines[0].schema, rng) + groups(engines[0].schema, rng):
            values = [engine.measure_by(measure, keys) for engine in engines]
            yield measure, max(abs(before - after) for before, after in zip(*values, strict=True))


def tried(kind, tables, folder):
    """Yield the changes of random tables, from all sources."""
    for seed in range(tables):
        world = World.drawn(seed, kind)
        count = len(world.units())
        if count:
            place = random.Random(seed).randrange(count)
            yield from changes(world, place, SOURCES[seed % len(SOURCES)], folder, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_no_unit_changes_a_measure_by_more_than_its_sensitivity(kind, tmp_path):
    reached = set()
    for measure, change in tried(kind, TABLES // len(KINDS), tmp_path):
        assert change <= measure.sensitivity, measure
        if change == measure.sensitivity:
            reached.add(type(measure))
    assert reached == {Count, Total, Sketch}  # as strong as can be: each bound is reached by some unit


@pytest.mark.parametrize("kind", ["text", "integer", "floating"])
def test_the_search_would_find_sums_that_are_not_within_their_bounds(monkeypatch, kind, tmp_path):
    monkeypatch.setattr(sql, "clamped", lambda contribution, _total: contribution)
    assert any(change > measure.sensitivity for measure, change in tried(kind, 8, tmp_path))


@pytest.mark.parametrize("kind", ["text", "floating"])
def test_the_search_would_find_units_that_are_taken_for_rows(monkeypatch, kind, tmp_path):
    monkeypatch.setattr(World, "unit", None)
    found = {type(measure) for measure, change in tried(kind, 12, tmp_path) if change > measure.sensitivity}
    assert found == {Count, Total, Sketch}


NAN = [
    "x > 1",
    "x <= 1",
    "NOT (x <= 1)",
    "x IS NULL",
    "x IS NOT NULL",
    "x <> 5",
    "x IN (2, 3)",
    "x > 1 OR t = 'b'",
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("where", NAN)
def test_a_unit_does_not_decide_whether_those_with_nan_count(source, where, tmp_path):
    """A Parquet file's least and largest values leave NaN out: an engine must not conclude that there is none."""
    plain = dict.fromkeys(COLUMNS)
    unknown = [plain | {"u": f"p{place}", "x": math.nan, "t": "a"} for place in range(300)]
    known = [plain | {"u": "known", "x": value, "t": "a"} for value in (2.0, 3.0)]
    world = World("text", (*unknown, *known))
    asked = [
        questions.Count(where),
        questions.sum("x", 0, 5, where, grid=1),
        questions.sum("x", 1, 5, where, grid=1),
    ]
    values = []
    for each in (world, world.without(300)):
        with closing(open_duckdb(each.source(source, tmp_path, together=1000), "u")) as engine:
            measures = [measured(what, engine.schema)[0] for what in asked]
            keys = declare("t", ["a"], engine.schema)
            values.append([*engine.measure(measures), *(engine.measure_by(one, keys)[0] for one in measures)])
    changes = [abs(before - after) for before, after in zip(*values, strict=True)]
    assert all(change <= most for change, most in zip(changes, [1, 5, 5] * 2, strict=True))


# What is declared is what noise is drawn for.


def all_numbers():
    yield questions.Count("x > 1"), 1
    yield questions.sum("n", -7, 5), 7
    yield questions.sum("n", 3, 5), 5
    yield questions.sum("x", 0, 100, grid="0.01"), 10_000
    yield questions.sum("x", -250, 100, grid=5), 50
    yield questions.sum("m", -0.5, -0.25, grid="0.25"), 2
    for most in (1, 3):
        yield questions.distinct("t", per_unit=most), most


@pytest.mark.parametrize("epsilon", [0.1, 0.37])
def test_noise_is_drawn_for_the_sensitivity_of_the_measure(epsilon, tmp_path):
    with closing(open_duckdb(World.drawn(1, "text").source("arrow", tmp_path), "u")) as engine:
        schema = engine.schema
        for number, sensitivity in all_numbers():
            rate = rate_for(epsilon, sensitivity)
            asked = [questions.above(number, 100), questions.above(number, 100, prior=150, tolerance=20)]
            if not isinstance(number, questions.Distinct):
                asked += [
                    questions.count(number),
                    questions.count(number, prior=3, tolerance=0),
                    questions.between(number, 5, 50),
                    questions.side(number, 5),
                ]
            for question in asked:
                prepared = prepare(question, schema, epsilon)
                assert prepared.measure.sensitivity == sensitivity
                algorithm = prepared.in_steps(lambda steps: steps)
                assert algorithm.accuracy.scale == rate.denominator / rate.numerator
                assert algorithm.epsilon == epsilon
        for what, sensitivity in ((questions.Count(), 1), (questions.sum("n", -7, 5), 7)):
            batch = prepare(questions.watch(what, "t", ["a", "b"], 5), schema, epsilon).batch()
            assert batch.drawing.noise.rate == rate_for(epsilon, sensitivity)
