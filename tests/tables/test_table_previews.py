"""Previews: made without the data, and true of the answers that would be given."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.goodness import BufferedEntropy
from tests.offset_noise import CarriedNoise
from tests.sizes import size

import targetcharge as tc
from targetcharge.engines.duckdb.connection import Connection
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.mechanisms.noise import Carried, draw_offset
from targetcharge.tables import questions as q
from targetcharge.tables.preparing import prepare

APART = size(12, 24)
"""Standard deviations between a right chance and a wrong one; the line is at 6."""
DISTANCES = [-60, -35, -10, -1, 0, 1, 10, 35, 60]


def opened(rows=5, **options):
    table = pa.table(
        {
            "u": pa.array(range(rows), pa.int64()),
            "x": pa.array([1.5] * rows, pa.float64()),
            "t": pa.array(["a"] * rows, pa.string()),
        }
    )
    usual = {"budget": tc.Budget(3.0, 1e-6), "query_epsilon": 0.1, "meter": "exact"}
    return tc.open(table, unit="u", **(usual | options))


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


def noise_of(table, epsilon=0.1, sensitivity=1):
    """Return the law of a count's error in a table, both laws added up."""
    return CarriedNoise.of(table.meter.tariff.offset, epsilon, sensitivity)


def close(found, truth):
    """Compare with rates as they are declared; those that are drawn with are less by one in 10^10."""
    return found == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.05])
@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_the_chances_of_a_count_are_those_of_its_noise_and_the_offset(meter, epsilon):
    with opened(meter=meter) as t:
        noise = noise_of(t, epsilon)
        for chance in t.preview(q.above("x > 1", 100), DISTANCES, epsilon=epsilon).chances:
            truth = noise.reaches(round(-chance.distance))
            assert close(chance.hit, truth)
            assert close(
                chance.false_alarm if chance.distance < 0 else chance.miss,
                truth if chance.distance < 0 else 1 - truth,
            )
            assert (chance.miss if chance.distance < 0 else chance.false_alarm) is None


def test_the_chances_of_a_sum_are_those_of_its_noise_in_steps():
    with opened() as t:
        noise = noise_of(t, sensitivity=1000)
        seen = t.preview(ASKED["sum"], [-200, -0.01, 0, 0.01, 50])
        steps = [-20_000, -1, 0, 1, 5000]
        assert [
            close(chance.hit, noise.reaches(-away)) for chance, away in zip(seen.chances, steps, strict=True)
        ] == [True] * 5
        assert seen.scale == pytest.approx(0.01 * noise.scale, rel=1e-9)


def test_a_number_between_two_steps_is_never_taken_for_one_on_the_other_side():
    with opened() as t:
        below, above = t.preview(q.above(None, 100.5), [-0.3, 0.3]).chances
        noise = noise_of(t)
    assert close(below.hit, noise.reaches(1))  # of 100: below 100.5 by no more than can be
    assert close(below.false_alarm, noise.reaches(1))
    assert close(above.hit, noise.reaches(0))  # of 101
    assert close(above.miss, 1 - noise.reaches(0))


def test_the_chances_of_a_change_are_those_of_leaving_the_band():
    with opened() as t:
        noise = noise_of(t)
        for name in ("changed", "changed above"):
            seen = t.preview(ASKED[name], DISTANCES)
            assert (seen.threshold, seen.unchanged) == (54, (46, 54))
            for chance in seen.chances:
                inside = math.fsum(noise.published[value - (54 + chance.distance)] for value in range(46, 55))
                assert close(chance.hit, 1 - inside)
                assert (chance.false_alarm, chance.miss) == (None, None)
            assert "so far from 54, above which it has changed (as it has below 46):" in str(seen)


def test_the_chances_of_a_change_are_about_its_ends_however_wide_the_tolerance():
    with opened() as t:
        wide = t.preview(q.count("x > 1", prior=5000, tolerance=2000)).chances
        assert wide[0].hit < 0.01
        assert 0.4 < wide[len(wide) // 2].hit < 0.6
        assert wide[-1].hit > 0.99
        none = t.preview(q.count("x > 1", prior=5000, tolerance=10**12))
        assert (none.threshold, none.unchanged) == (5000 - 10**12, (5000 - 10**12, None))
        assert none.chances[0].hit > 0.99
        assert "below which it has changed:" in str(none)
        assert "so far from 50:" in str(t.preview(q.count("x > 1", prior=50, tolerance=0)))


def test_the_smallest_chances_are_not_told_in_full():
    with opened() as t:
        seen = str(t.preview(q.above("x > 1", 5000), distances=[-300, 300]))
        assert "hit < 1e-12" in seen
        assert "miss < 1e-12" in seen


def test_the_chances_of_a_band_and_a_side():
    with opened(meter="renyi") as t:
        noise = noise_of(t)
        for chance in t.preview(ON_RENYI["between"], DISTANCES).chances:
            count = 90 + chance.distance
            inside = math.fsum(noise.published[value - count] for value in range(90, 111))
            assert close(chance.hit, inside)
            wrong = chance.miss if 90 <= count <= 110 else chance.false_alarm
            assert close(wrong, 1 - inside if 90 <= count <= 110 else inside)
        for chance in t.preview(ON_RENYI["side"], DISTANCES).chances:
            marked = mistaken = 0.0
            for rho, mass in noise.offsets:  # the wrapper marks by the law that is left, given the offset
                above = noise.given(rho, round(-noise.lattice * chance.distance))
                rest = min(above, 1 - above)
                mark = min(1 / 3, rest / (1 + rest))
                marked += mass * mark
                mistaken += mass * (1 - mark) * (above if chance.distance < 0 else 1 - above)
            assert close(chance.hit, marked)
            assert close(chance.false_alarm if chance.distance < 0 else chance.miss, mistaken)


@pytest.mark.parametrize("name", ["above", "sum", "both signs", "changed", "changed above", "between", "side"])
@pytest.mark.parametrize("times", [-1, 0, 1])
def test_hits_come_as_often_as_a_preview_says_and_not_more_or_less_often(name, times):
    """Draws of the algorithm that would answer, and of the offset, on a number so far from the threshold."""
    question = (ASKED | ON_RENYI)[name]
    with opened(meter="renyi" if name in ON_RENYI else "exact") as t:
        schema = t._engine.schema
        prepared = prepare(question, schema, 0.1)
        away = times * (5 if name not in ("sum", "both signs") else 50)
        seen = t.preview(question, [away])
        algorithm = t._session.drawn(prepared.in_steps(lambda data: data))
        offset = t.meter.tariff.offset
    steps = prepared.gauge.least(seen.threshold + away)
    entropy = BufferedEntropy(times + 5)
    target = algorithm.default_target
    assert algorithm.carries == (name != "both signs")
    chance = seen.chances[0].hit
    draws = math.ceil((APART / (1 - 1 / 1.15)) ** 2 * (1 - chance) / chance)
    hits = 0
    for _ in range(draws):
        data = Carried(steps, draw_offset(entropy, offset)) if algorithm.carries else steps
        hits += algorithm.run(data, entropy) in target
    error = math.sqrt(chance * (1 - chance) / draws)
    assert abs(hits / draws - chance) <= 6 * error
    assert abs(hits / draws - 1.15 * chance) > 6 * error
    assert abs(hits / draws - chance / 1.15) > 6 * error


@pytest.mark.parametrize("rho", [-16, 0, 8])
def test_the_false_alarms_of_a_watch_are_as_many_as_its_preview_says(monkeypatch, rho):
    """All keys of a table share its offset: given one there are more of them, or fewer."""
    keys, distance = 4000, -15
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: rho)
    table = pd.DataFrame({"u": range(100), "t": [0] * 100})
    with tc.open(table, unit="u", budget=tc.Budget(60.0, 1e-6), query_epsilon=0.1, meter="exact") as t:
        noise = noise_of(t)
        question = q.watch(None, "t", range(1, keys + 1), -distance)  # keys without rows: all are false alarms
        assert close(t.preview(question, [distance]).chances[0].false_alarm, noise.reaches(-distance))
        answers = t.ask(question)
        assert not answers.stopped
        chance = noise.given(rho, -noise.lattice * distance)
        error = math.sqrt(chance * (1 - chance) * keys)
        assert abs(len(answers.hits) - chance * keys) <= 6 * error
        assert abs(len(answers.hits) - noise.given(-rho, -noise.lattice * distance) * keys) > 6 * error or not rho


def test_what_a_preview_says_of_price_keys_and_noise():
    with opened() as t:
        single, watch, top = (t.preview(ASKED[name]) for name in ("above", "watch", "top"))
        assert (single.keys, single.most_hits, single.price, single.epsilon) == (1, 1, 1.0, 0.1)
        assert (watch.keys, watch.most_hits, top.keys, top.most_hits) == (3, 3, 3, 2)
        assert single.margin == t.above("x > 1", 10**6).interval[1] - (10**6 - 1)
        assert single.margin == -(-noise_of(t).margin // 2)
        assert single.scale == pytest.approx(noise_of(t).scale, rel=1e-6)
        blunt = t.preview(ASKED["above"], epsilon=0.05).scale
        assert blunt == pytest.approx(noise_of(t, 0.05).scale, rel=1e-6)
        assert t.preview(ASKED["value"]).chances == ()
        assert len(single.chances) == 11
        assert [chance.distance for chance in single.chances] == sorted(c.distance for c in single.chances)
    with opened(meter="renyi") as t:
        order = t.meter.tariff.order
        assert t.preview(ON_RENYI["side"]).price == tc.Boundary().price(order, 0.1)
        halves = tc.Between(1, 2 * 21)  # of steps: a unit moves a count by one, once the offset is shared out
        assert t.preview(ON_RENYI["between"]).price == halves.price(order, 0.1)


def test_the_margin_of_a_sketch_covers_its_blur():
    """Of 1,000 values, sketched and noisy: at least 95 of 100 estimates are within the margin."""
    with opened() as t:
        question = q.above(q.distinct("t"), 1000)
        seen, prepared = t.preview(question), prepare(question, t._engine.schema, 0.1)
        algorithm = t._session.drawn(
            replace(prepared, question=q.above(None, -(10**9))).in_steps(lambda data: data)
        )
        offset = t.meter.tariff.offset
    rng, inside = np.random.default_rng(1), 0
    entropy = BufferedEntropy(1)
    for _ in range(2000):
        taken = len(np.unique(rng.integers(0, prepared.measure.buckets, 1000)))
        outcome = algorithm.run(Carried(taken, draw_offset(entropy, offset)), entropy)
        inside += abs(prepared.gauge.value(outcome) - 1000) <= seen.margin
    assert inside / 2000 >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 2000)


def test_large_figures_are_written_out():
    with opened() as t:
        shown = str(t.preview(q.above(q.sum("x", 0, 10**9), 10**12)))
        assert "e+" not in shown
        assert "1,000,000,000,000" in shown
