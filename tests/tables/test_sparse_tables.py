"""Tables with a sparse meter: what may be asked, how precise it is, and what other meters are for."""

import pandas as pd
import pytest

import targetcharge as tc
from targetcharge import questions
from targetcharge.sessions import opening
from targetcharge.tables.monitor import Monitor, Rule

BUDGET = tc.Budget(1.0, 1e-6)
FRAME = pd.DataFrame(
    {
        "patient": [number % 4000 for number in range(8000)],
        "age": [number % 100 for number in range(8000)],
        "week": [number % 10 for number in range(8000)],
        "fare": [number % 50 for number in range(8000)],
    }
)


def test_answers_are_close_and_intervals_hold_the_truth():
    truths = {
        "above": FRAME[FRAME.age > 50].patient.nunique(),
        "count": FRAME[FRAME.age > 50].patient.nunique(),
        "sum_above": 0,
    }
    with tc.open(FRAME, unit="patient", budget=BUDGET, hits=20, meter="sparse") as table:
        deviation = tc.accounting.least_noise(BUDGET, 20).standard_deviation
        for call, ask in (("above", lambda t: t.above("age > 50", 100)), ("count", lambda t: t.count("age > 50"))):
            answer = ask(table)
            assert answer.scale == pytest.approx(deviation / 2**0.5, rel=1e-3)
            assert abs(answer.outcome - truths[call]) < 20 * deviation
            low, high = answer.interval
            assert low < answer.outcome < high
            assert 3 * deviation < high - low < 5 * deviation


def test_a_preview_tells_the_noise_and_the_chances_with_the_offset_in_them():
    with tc.open(FRAME, unit="patient", budget=BUDGET, hits=20, meter="sparse") as table:
        preview = table.preview(questions.above("age > 50", 1000), distances=[-200, 0, 200])
        assert [round(chance.hit, 6) for chance in preview.chances][::2] == [0.0, 1.0]
        assert 0.3 < preview.chances[1].hit < 0.6
        assert preview.price == 1
        many = table.preview(questions.watch("age > 50", by="week", keys=range(10), threshold=10))
        assert many.scale == preview.scale
        with pytest.raises(tc.NotAllowed, match="meter='renyi'"):
            table.preview(questions.between("age > 50", 1, 2))
        assert table.meter.hits == 0


def test_one_offset_is_in_every_answer(monkeypatch):
    monkeypatch.setattr(opening, "draw_offset", lambda *_: 100 * 1000)
    with tc.open(FRAME, unit="patient", budget=BUDGET, hits=20, meter="sparse") as table:
        truth = FRAME[FRAME.age > 50].patient.nunique()
        assert abs(table.count("age > 50").outcome - (truth - 1000)) < 300
        assert abs(table.top(by="week", keys=range(10), k=1)[0].outcome - (400 - 1000)) < 300
        total = table.sum_above("fare", 0, 50, -(10**6)).outcome
        whole = FRAME.groupby("patient").fare.sum().clip(0, 50).sum()
        assert abs(total - (whole - 50 * 1000)) < 50 * 300


def test_what_was_chosen_is_described():
    with tc.open(FRAME, unit="patient", budget=BUDGET, hits=20, meter="sparse") as table:
        described = table.describe()
        assert described.meter == "sparse"
        assert described.query_epsilon == pytest.approx(0.09, rel=0.02)
        assert described.standard_deviation == pytest.approx(15.4, rel=0.01)
        assert "standard deviation 15.39 for a count" in str(described)
        assert "above(" in str(described)
        assert "between(" not in str(described)
        assert described.as_dict()["standard_deviation"] == described.standard_deviation


def test_a_sparse_meter_is_for_all_units_together():
    with pytest.raises(tc.InvalidParameter, match="meter is 'sparse'; it must be exact or renyi"):
        tc.open(FRAME, unit="patient", budget=BUDGET, hits=20, meter="sparse", charging="individual")


def test_a_monitor_needs_another_meter():
    with tc.open(FRAME, unit="patient", budget=BUDGET, hits=20, meter="sparse") as table:
        with pytest.raises(tc.NotAllowed, match="meter='exact'"):
            Monitor(table, [Rule("old", "age > 50", threshold=100)])
        assert table.meter.hits == 0
