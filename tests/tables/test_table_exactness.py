"""Without noise a table's answers are the truth, as plain Python finds it, to the last step."""

from __future__ import annotations

import random

import pandas as pd
import pyarrow as pa
import pytest
from tests.sizes import size
from tests.tables.anew import anew
from tests.tables.measured import BY, WHERE, any_of, counted, grouped, totalled
from tests.tables.noise import silence
from tests.tables.worlds import SOURCES, UNITS, World

import targetcharge as tc
from targetcharge.tables import questions
from targetcharge.tables.measured import measured

TABLES = size(60, 800)
BUDGET = tc.Budget(100.0, 1e-6)


def opened(world, source, folder, **options):
    unit = "u" if world.unit else tc.ROW
    usual = {"query_epsilon": 0.1, "meter": "exact", "ledger": ":memory:"}
    return anew(tc.open(world.source(source, folder), unit=unit, budget=BUDGET, **(usual | options)))


def worlds(kind, count):
    for seed in range(count):
        yield World.drawn(1000 + seed, kind), SOURCES[seed % len(SOURCES)], random.Random(seed)


@pytest.mark.parametrize("kind", [*UNITS, "row"])
def test_every_answer_about_a_count_or_a_sum_is_the_truth(monkeypatch, kind, tmp_path):
    silence(monkeypatch)
    for world, source, rng in worlds(kind, TABLES // 20):
        units = world.units()
        with opened(world, source, tmp_path) as t:
            for _ in range(6):
                asked = any_of(rng, whole=source != "pandas")
                gauge, truth = measured(asked.what, t._engine.schema)[1], asked.truth(units)
                shown = gauge.value(truth)
                assert t.count(asked.what).outcome == shown
                assert t.above(asked.what, shown).outcome == shown
                assert t.above(asked.what, gauge.value(truth + 1)).outcome is None
                assert t.count(asked.what, prior=shown, tolerance=0).outcome is tc.UNCHANGED
                assert t.count(asked.what, prior=gauge.value(truth + 1), tolerance=0).outcome == shown
                assert t.above(asked.what, shown, prior=gauge.value(truth - 1), tolerance=0).outcome == shown
                assert (
                    t.above(asked.what, gauge.value(truth + 2), prior=gauge.value(truth + 1), tolerance=0).outcome
                    is None
                )


@pytest.mark.parametrize("kind", ["text", "integer", "row"])
def test_every_side_is_the_truth(monkeypatch, kind, tmp_path):
    silence(monkeypatch)
    monkeypatch.setattr("targetcharge.mechanisms.wrappers.bernoulli", lambda *_: False)
    for world, source, rng in worlds(kind, TABLES // 40):
        units = world.units()
        with opened(world, source, tmp_path, meter="renyi") as t:
            for _ in range(4):
                asked = any_of(rng, whole=source != "pandas")
                (measure, gauge, _), truth = measured(asked.what, t._engine.schema), asked.truth(units)
                wide = 20 * measure.sensitivity
                below, before, itself, after, above = (
                    gauge.value(truth + away) for away in (-wide, -1, 0, 1, wide)
                )
                assert t.side(asked.what, itself).outcome is tc.Side.ABOVE
                assert t.side(asked.what, after).outcome is tc.Side.BELOW
                assert t.between(asked.what, itself, above).outcome is tc.Side.BETWEEN
                assert t.between(asked.what, below, itself).outcome is tc.Side.BETWEEN
                assert t.between(asked.what, below, before).outcome is tc.Side.ABOVE
                assert t.between(asked.what, after, above).outcome is tc.Side.BELOW


@pytest.mark.parametrize("kind", ["text", "floating", "row"])
def test_every_key_is_answered_with_the_truth(monkeypatch, kind, tmp_path):
    silence(monkeypatch)
    for world, source, rng in worlds(kind, TABLES // 20):
        whole = source != "pandas"
        with opened(world, source, tmp_path) as t:
            for by, keys in BY.items():
                where = rng.choice(list(WHERE))
                asked = rng.choice([counted(where), totalled("n", (-3, 5), None, where, whole=whole)])
                gauge = measured(asked.what, t._engine.schema)[1]
                truths = [asked.truth(grouped(world.units(), by, key)) for key in keys]
                limit = gauge.value(sorted(truths)[len(truths) // 2])
                answers = t.watch(asked.what, by, keys, limit)
                expected = [gauge.value(truth) if gauge.value(truth) >= limit else None for truth in truths]
                assert [answer.outcome for answer in answers] == expected
                assert [answer.key for answer in answers] == keys
                best = t.top(asked.what, by, keys, 2)
                order = sorted(range(len(keys)), key=lambda place: -truths[place])[:2]
                assert [(answer.key, answer.outcome) for answer in best] == [
                    (keys[place], gauge.value(truths[place])) for place in order
                ]


def test_distinct_values_are_counted_about_as_many_as_there_are(monkeypatch):
    """Each unit brings at most so many of its values; a sketch may take two values for one."""
    silence(monkeypatch)
    rows = [(unit, value) for unit in range(300) for value in (unit, unit + 1000, unit + 2000, None)]
    table = pa.table({"u": [unit for unit, _ in rows], "v": [value for _, value in rows]})
    with tc.open(table, unit="u", budget=BUDGET, meter="exact") as t:
        for most, truth in ((1, 300), (2, 600), (3, 900), (7, 900)):
            found = t.distinct_above("v", 100, per_unit=most).outcome
            assert abs(found - truth) <= 30
        assert abs(t.distinct_above("v", 50, "v < 100", per_unit=3).outcome - 100) <= 5
        assert t.distinct_above("v", 990, per_unit=3).outcome is None
    with tc.open(table, unit=tc.ROW, budget=BUDGET, meter="exact") as t:
        assert abs(t.distinct_above("v", 100).outcome - 900) <= 30


def test_each_sketch_has_a_key_of_its_own(monkeypatch):
    """With one key, the values that a sketch takes for one would be the same each time."""
    silence(monkeypatch)
    table = pd.DataFrame({"u": range(3000), "v": range(3000)})
    with tc.open(table, unit="u", budget=BUDGET, meter="exact") as t:
        assert len({t.distinct_above("v", 100, again=True).outcome for _ in range(8)}) > 1


def test_many_counts_at_once_are_the_truth(monkeypatch, tmp_path):
    silence(monkeypatch)
    for kind in ("text", "row"):
        for world, source, rng in worlds(kind, 6):
            with opened(world, source, tmp_path) as t:
                wheres = [rng.choice(list(WHERE)) for _ in range(20)]
                truths = [counted(where).truth(world.units()) for where in wheres]
                asked = [
                    questions.above(where, truth + place % 2)
                    for place, (where, truth) in enumerate(zip(wheres, truths, strict=True))
                ]
                answers = t.ask_many(asked)
                assert [answer.outcome for answer in answers] == [
                    None if place % 2 else truth for place, truth in enumerate(truths)
                ]
