"""Previews: made without the data, and true of the answers that would be given."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.discrete_laplace import DiscreteLaplace
from tests.goodness import BufferedEntropy
from tests.sizes import size

import targetcharge as tc
from targetcharge.engines.duckdb.connection import Connection
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.mechanisms.noise import rate_for
from targetcharge.tables import questions as q
from targetcharge.tables.prepared import prepare

DRAWS = size(20_000, 100_000)
DISTANCES = [-60, -35, -10, -1, 0, 1, 10, 35, 60]


def opened(rows=5, **options):
    table = pa.table(
        {
            "u": pa.array(range(rows), pa.int64()),
            "x": pa.array([1.5] * rows, pa.float64()),
            "t": pa.array(["a"] * rows, pa.string()),
        }
    )
    return tc.open(table, unit="u", **({"budget": tc.Budget(3.0, 1e-6)} | options))


ASKED = {
    "above": q.above("x > 1", 100),
    "above a half": q.above("x > 1", 100.5),
    "sum": q.above(q.sum("x", 0, 10, grid="0.01"), 12.3),
    "both signs": q.above(q.sum("x", -5, 10, grid=1), 12),
    "distinct": q.above(q.distinct("t", per_unit=2), 100),
    "value": q.count("x > 1"),
    "changed": q.count("x > 1", prior=50, tolerance=4),
    "changed above": q.above("x > 1", 40, prior=50, tolerance=4),
    "watch": q.watch("x > 1", "t", ["a", "b", "c"], 100),
    "top": q.top(None, "t", ["a", "b", "c"], 2),
}
ON_RENYI = {"between": q.between("x > 1", 90, 110), "side": q.side("x > 1", 100)}


def forbidden(*_):
    msg = "a preview must not touch the data"
    raise AssertionError(msg)


@pytest.mark.parametrize("name", [*ASKED, *ON_RENYI])
def test_a_preview_needs_no_data_and_charges_nothing(monkeypatch, name):
    question = (ASKED | ON_RENYI)[name]
    found = []
    for rows in (0, 5, 3000):
        with opened(rows, meter="renyi" if name in ON_RENYI else "exact") as t:
            for method in ("measure", "measure_by", "fingerprint", "check_unchanged", "contributions", "units"):
                monkeypatch.setattr(DuckDBEngine, method, forbidden)
            monkeypatch.setattr(Connection, "rows", forbidden)
            seen = t.preview(question)
            monkeypatch.undo()
            found.append((str(seen), repr(seen), seen._repr_html_(), repr(seen.as_dict())))
            assert (t.meter.hits, len(t.transcript)) == (0, 0)
    assert found[0] == found[1] == found[2]


def tail(noise, value):
    """Return Pr[noise ≥ value], by adding up."""
    reach = math.ceil(60 / noise.rate)
    return math.fsum(noise.mass(k) for k in range(max(round(value), -reach), reach + 1))


def close(found, truth):
    return found == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 0.05])
def test_the_chances_of_a_count_are_those_of_its_noise(epsilon):
    noise = DiscreteLaplace.of(rate_for(epsilon, 1))
    with opened() as t:
        for chance in t.preview(q.above("x > 1", 100), DISTANCES, epsilon=epsilon).chances:
            truth = tail(noise, 100 - (100 + chance.distance))
            assert close(chance.hit, truth)
            assert close(
                chance.false_alarm if chance.distance < 0 else chance.miss,
                truth if chance.distance < 0 else 1 - truth,
            )
            assert (chance.miss if chance.distance < 0 else chance.false_alarm) is None


def test_the_chances_of_a_sum_are_those_of_its_noise_in_steps():
    noise = DiscreteLaplace.of(rate_for(0.1, 1000))
    with opened() as t:
        seen = t.preview(ASKED["sum"], [-200, -0.01, 0, 0.01, 50])
        steps = [-20_000, -1, 0, 1, 5000]
        assert [
            close(chance.hit, tail(noise, -away)) for chance, away in zip(seen.chances, steps, strict=True)
        ] == [True] * 5
        assert seen.scale == pytest.approx(0.01 / noise.rate, rel=1e-9)


def test_a_number_between_two_steps_is_never_taken_for_one_on_the_other_side():
    with opened() as t:
        below, above = t.preview(q.above(None, 100.5), [-0.3, 0.3]).chances
    noise = DiscreteLaplace.of(rate_for(0.1, 1))
    assert close(below.hit, tail(noise, 1))  # of 100: below 100.5 by no more than can be
    assert close(below.false_alarm, tail(noise, 1))
    assert close(above.hit, tail(noise, 0))  # of 101
    assert close(above.miss, 1 - tail(noise, 0))


def test_the_chances_of_a_change_are_those_of_leaving_the_band():
    noise = DiscreteLaplace.of(rate_for(0.1, 1))
    with opened() as t:
        for name in ("changed", "changed above"):
            seen = t.preview(ASKED[name], DISTANCES)
            assert seen.threshold == 50
            for chance in seen.chances:
                inside = math.fsum(noise.mass(value - (50 + chance.distance)) for value in range(46, 55))
                assert close(chance.hit, 1 - inside)
                assert (chance.false_alarm, chance.miss) == (None, None)


def test_the_chances_of_a_band_and_a_side():
    noise = DiscreteLaplace.of(rate_for(0.1, 1))
    with opened(meter="renyi") as t:
        for chance in t.preview(ON_RENYI["between"], DISTANCES).chances:
            count = 90 + chance.distance
            inside = math.fsum(noise.mass(value - count) for value in range(90, 111))
            assert close(chance.hit, inside)
            wrong = chance.miss if 90 <= count <= 110 else chance.false_alarm
            assert close(wrong, 1 - inside if 90 <= count <= 110 else inside)
        for chance in t.preview(ON_RENYI["side"], DISTANCES).chances:
            above = tail(noise, -chance.distance)
            rest = min(above, 1 - above)
            mark = min(1 / 3, rest / (1 + rest))
            assert close(chance.hit, mark)
            wrong = chance.false_alarm if chance.distance < 0 else chance.miss
            assert close(wrong, (1 - mark) * (above if chance.distance < 0 else 1 - above))


@pytest.mark.parametrize("name", ["above", "sum", "both signs", "changed", "changed above", "between", "side"])
@pytest.mark.parametrize("times", [-1, 0, 1])
def test_hits_come_as_often_as_a_preview_says_and_not_more_or_less_often(name, times):
    """Draws of the algorithm that would answer, on a hypothetical number so far from the threshold."""
    question = (ASKED | ON_RENYI)[name]
    with opened(meter="renyi" if name in ON_RENYI else "exact") as t:
        schema = t._engine.schema
        prepared = prepare(question, schema, 0.1)
        away = times * (10 if name not in ("sum", "both signs") else 100)
        seen = t.preview(question, [away])
    steps = prepared.gauge.least(seen.threshold + away)
    algorithm = prepared.in_steps(lambda data: data)
    entropy = BufferedEntropy(times + 5)
    target = algorithm.default_target
    hits = sum(algorithm.run(steps, entropy) in target for _ in range(DRAWS))
    chance = seen.chances[0].hit
    error = math.sqrt(chance * (1 - chance) / DRAWS)
    assert abs(hits / DRAWS - chance) <= 6 * error
    assert abs(hits / DRAWS - 1.15 * chance) > 6 * error or chance < 0.05
    assert abs(hits / DRAWS - chance / 1.15) > 6 * error or chance < 0.05


def test_the_false_alarms_of_a_watch_are_as_many_as_its_preview_says():
    size, distance = 4000, -30
    table = pd.DataFrame({"u": range(100), "t": [0] * 100})
    with tc.open(table, unit="u", budget=tc.Budget(60.0, 1e-6)) as t:
        question = q.watch(None, "t", range(1, size + 1), -distance)  # keys without rows: all are false alarms
        chance = t.preview(question, [distance]).chances[0].false_alarm
        answers = t.ask(question)
        assert not answers.stopped
        error = math.sqrt(chance * (1 - chance) * size)
        assert abs(len(answers.hits) - chance * size) <= 6 * error
        assert chance == pytest.approx(math.exp(-3) / (1 + math.exp(-0.1)), rel=1e-6)


def test_what_a_preview_says_of_price_keys_and_noise():
    with opened() as t:
        single, watch, top = (t.preview(ASKED[name]) for name in ("above", "watch", "top"))
        assert (single.keys, single.most_hits, single.price, single.epsilon) == (1, 1, 1.0, 0.1)
        assert (watch.keys, watch.most_hits, top.keys, top.most_hits) == (3, 3, 3, 2)
        assert single.margin == t.above("x > 1", 10**6).interval[1] - (10**6 - 1)
        assert single.scale == pytest.approx(10, rel=1e-6)
        assert t.preview(ASKED["above"], epsilon=0.05).scale == pytest.approx(20, rel=1e-6)
        assert t.preview(ASKED["value"]).chances == ()
        assert len(single.chances) == 11
        assert [chance.distance for chance in single.chances] == sorted(c.distance for c in single.chances)
    with opened(meter="renyi") as t:
        order = t.meter.tariff.order
        assert t.preview(ON_RENYI["side"]).price == tc.Boundary().price(order, 0.1)
        assert t.preview(ON_RENYI["between"]).price == tc.Between(90, 110).price(order, 0.1)


def test_the_margin_of_a_sketch_covers_its_blur():
    """Of 1,000 values, sketched and noisy: at least 95 of 100 estimates are within the margin."""
    with opened() as t:
        question = q.above(q.distinct("t"), 1000)
        seen, prepared = t.preview(question), prepare(question, t._engine.schema, 0.1)
    rng, inside = np.random.default_rng(1), 0
    algorithm = replace(prepared, question=q.count()).in_steps(lambda data: data)
    entropy = BufferedEntropy(1)
    for _ in range(2000):
        taken = len(np.unique(rng.integers(0, prepared.measure.buckets, 1000)))
        inside += abs(prepared.gauge.value(algorithm.run(taken, entropy)) - 1000) <= seen.margin
    assert inside / 2000 >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 2000)
