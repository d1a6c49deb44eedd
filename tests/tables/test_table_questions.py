"""Questions with one answer: what each publishes, and what it costs."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.offset_noise import CarriedNoise
from tests.tables.people import EPSILON, SOURCES, near, opened, source, table

import targetcharge as tc
from targetcharge.tables import questions as q

A, B = "kind = 'a'", "kind = 'b'"


@pytest.mark.parametrize("kind", SOURCES)
def test_above_publishes_and_costs_where_the_count_is_above_and_nothing_else(kind, tmp_path):
    made, options = source(kind, tmp_path)
    with opened(made, ledger=":memory:", **options) as t:
        hit = t.above(A, 3000)
        assert (hit.hit, hit.price, t.meter.hits) == (True, 1.0, 1)
        assert near(hit, 6000)
        miss = t.above(B, 5000)
        assert (miss.outcome, miss.hit, miss.price, t.meter.hits) == (None, False, 0.0, 1)
        assert miss.interval == (None, 4999 + (hit.interval[1] - hit.outcome))
        assert hit.algorithm == "count(kind = 'a') >= 3000"
        assert t.above("fee > 2 AND old = TRUE AND day >= '2024-01-01'", 3000).hit
        assert not t.above("at < '2024-01-01'", 3000).hit
        assert list(t.transcript)[:2] == [hit, miss]


def test_a_unit_counts_once_however_many_rows_it_has():
    with opened() as t:
        assert near(t.count(), 9000)
        assert near(t.count("fee > 2"), 9000)
    with opened(unit=tc.ROW) as t:
        assert near(t.count(), 18_000)
    with opened(unit="doctor") as t:
        assert near(t.count(), 3000)


@pytest.mark.parametrize("unit", [None, 5, "", "nobody", True, ["patient"], "row"])
def test_whose_privacy_is_protected_must_be_said(unit):
    with pytest.raises(tc.InvalidParameter) as caught:
        opened(unit=unit)
    assert caught.value.name == "unit"


def test_a_unit_may_be_named_in_other_capitals():
    with opened(unit="PATIENT") as t:
        assert "units of patient" in repr(t)


@pytest.mark.parametrize("kind", SOURCES)
def test_an_empty_table_opens_and_answers(kind, tmp_path):
    made, options = source(kind, tmp_path, table(0))
    with opened(made, ledger=":memory:", **options) as t:
        assert near(t.count(), 0)
        assert not t.above(None, 2000).hit
        assert not t.sum_above("fee", 0, 10, threshold=20_000, grid=1).hit
        assert not t.distinct_above("kind", 2000).hit
        assert t.watch(None, "kind", ["a", "b"], 2000).hits == []
        assert len(t.top(None, "kind", ["a", "b"], 2)) == 2


def test_rows_without_a_unit_are_left_out():
    places = [None if place < 6000 else place for place in range(9000) for _ in range(2)]
    with opened(table(patient=pa.array(places, pa.int64()))) as t:
        assert near(t.count(), 3000)
        assert not t.above("patient IS NULL", 2000).hit
        assert near(t.sum_above("fee", 0, 10, threshold=5000, grid=1), 3000 * 6)
    with opened(table(patient=pa.array([None] * 18_000, pa.int64()))) as t:
        assert not t.above(None, 2000).hit


# Priors.


def test_a_count_that_has_not_changed_is_free_for_as_long_as_it_has_not():
    with opened() as t:
        first = t.above(A, 3000)
        second = t.above(A, 3000, prior=first, tolerance=1000)
        assert (second.outcome, second.hit, second.price) == (tc.UNCHANGED, False, 0.0)
        assert second.prior == first.outcome
        third = t.above(A, 3000, prior=second, tolerance=1000)
        assert (third.outcome, third.prior) == (tc.UNCHANGED, first.outcome)
        low, high = third.interval
        assert low <= first.outcome - 1000 < first.outcome + 1000 <= high
        assert t.meter.hits == 1


@pytest.mark.parametrize("prior", [6000, 6000.0, np.int64(6000), np.float64(6000), np.float32(6000)])
def test_a_prior_may_be_any_number(prior, tmp_path):
    with opened(ledger=tmp_path / "ledger.db") as t:
        assert t.count(A, prior=prior, tolerance=1000).outcome is tc.UNCHANGED
        changed = t.count(A, prior=prior - 3000, tolerance=1000)
        assert changed.hit
        assert near(changed, 6000)
        unchanged = t.transcript[0]
    assert type(unchanged.prior) in (int, float)
    with opened(ledger=tmp_path / "ledger.db") as t:
        assert t.transcript[0] == unchanged
        assert t.count(A, prior=t.transcript[0], tolerance=1000).outcome is tc.UNCHANGED


def test_a_tolerance_may_be_a_share_of_the_prior():
    with opened(meter="exact") as t:
        for tolerance in ("20%", " 20 percent", "20.0 %"):
            assert t.count(A, prior=6000, tolerance=tolerance).outcome is tc.UNCHANGED
        assert t.count(A, prior=3000, tolerance="20%").hit
        preview, same = (t.preview(q.count(A, 6000, tolerance)) for tolerance in ("20%", 1200))
        assert preview == same
        for wrong in ("20", "-5%", "%", "twenty percent", ""):
            with pytest.raises(tc.InvalidParameter, match=r'at least 0, or a share of the prior such as "20%'):
                t.count(A, prior=6000, tolerance=wrong)
        for prior in (float("inf"), float("nan"), 2**60):
            with pytest.raises(tc.InvalidParameter, match="prior is"):
                t.count(A, prior=prior, tolerance="20%")
        with pytest.raises(tc.InvalidParameter, match="tolerance is '20%'; it must be left out, or"):
            t.count(A, tolerance="20%")


def test_a_count_that_falls_below_the_threshold_costs_and_publishes_nothing():
    with opened() as t:
        fallen = t.above(A, 8000, prior=9000, tolerance=500)
        assert (fallen.outcome, fallen.hit, fallen.price, t.meter.hits) == (None, True, 1.0, 1)
        assert fallen.interval[0] is None
        assert 7999 <= fallen.interval[1] < 8100
        assert t.above(A, 8000, prior=fallen, tolerance=500).hit is False  # nothing was published: as without


def test_a_miss_or_nothing_is_no_prior():
    with opened() as t:
        miss = t.above(B, 5000)
        again = t.above(B, 5000, prior=miss, tolerance=0)
        assert (again.outcome, again.hit, again.prior) == (None, False, None)
        assert t.above(A, 3000, prior=None).hit


def test_a_release_is_a_prior_once_it_is_published():
    with opened() as t:
        release = t.release(A, lambda count: count > 9000)
        with pytest.raises(tc.InvalidParameter, match="pending"):
            t.above(A, 3000, prior=release, tolerance=1000)
        released = release.revise(lambda count: count > 3000)
        assert t.above(A, 3000, prior=released, tolerance=1000).outcome is tc.UNCHANGED
        assert t.meter.hits == 1


def test_a_side_is_no_prior():
    with opened(meter="renyi") as t:
        side = t.side(A, 3000)
        with pytest.raises(tc.InvalidParameter, match="prior is"):
            t.count(A, prior=side, tolerance=0)


def test_the_prior_of_a_sum_is_in_its_own_unit():
    with opened() as t:
        first = t.sum_above("fee", 0, 10, threshold=20_000, grid="0.5")
        what = q.sum("fee", 0, 10, grid="0.5")
        assert near(first, 45_000, 10_000)
        assert t.count(what, prior=first, tolerance=15_000).outcome is tc.UNCHANGED
        assert t.count(what, prior=0, tolerance=15_000).hit


# Sums and distinct values.


def test_sums_of_both_signs():
    with opened() as t:
        for bounds, truth in {(-10, 10): 18_000, (0, 10): 36_000, (-2, 2): 6000, (-10, 0): -18_000}.items():
            found = t.count(q.sum("balance", *bounds))
            assert near(found, truth, 70 * max(map(abs, bounds)) / EPSILON)
        below = t.sum_above("balance", -10, 0, threshold=-10_000)
        assert (below.outcome, below.hit) == (None, False)
        assert t.sum_above("balance", -10, 0, threshold=-30_000).hit


def test_a_unit_contributes_no_more_and_no_less_than_its_bounds():
    with opened() as t:
        assert near(t.count(q.sum("fee", 0, 1, grid=1)), 9000)
        assert near(t.count(q.sum("fee", 8, 10, grid=1)), 72_000, 7000)
        assert near(t.count(q.sum("fee", 8, 10, B, grid=1)), 24_000, 7000)
        assert near(t.count(q.sum("fee", 1, 3, "kind = 'c'", grid=1)), 0, 2100)


@pytest.mark.parametrize(("grid", "step"), [("0.5", 0.5), (1, 1), (0.25, 0.25), ("1/4", 0.25)])
def test_a_sum_is_shown_on_its_grid(grid, step):
    with opened() as t:
        found = t.sum_above("fee", 0, 10, threshold=20_000, grid=grid)
        assert found.outcome % step == 0
        assert abs(found.outcome - (45_000 if step < 1 else 54_000)) < 7000  # 2.5 is 3 on a grid of 1
        noise = CarriedNoise.of(t.meter.tariff.offset, EPSILON, round(10 / step))
        assert found.scale == pytest.approx(step * noise.scale, rel=1e-6)
        assert noise.scale * step < 0.6 * 10 / EPSILON  # of noise without an offset
        assert found.algorithm == "sum(fee from 0 to 10) >= 20000"


@pytest.mark.parametrize(("most", "truth"), [(1, 3000), (3, 3000)])
def test_distinct_values(most, truth):
    with opened() as t:
        found = t.distinct_above("doctor", 1500, per_unit=most)
        assert near(found, truth, NEAR_DISTINCT * most)
        assert found.algorithm.startswith("distinct(doctor" + (", 3 for each unit" if most > 1 else ""))
        assert t.distinct_above("doctor", 6000, per_unit=most).outcome is None
        assert t.distinct_above("kind", 1500, A).outcome is None
        assert t.meter.hits == 1


NEAR_DISTINCT = 900


# Sides.


def test_between_and_side_are_free_far_from_their_thresholds_and_cost_at_them():
    with opened(meter="renyi") as t:
        assert t.between(A, 1000, 3000).outcome is tc.Side.ABOVE
        assert t.between(A, 8000, 9000).outcome is tc.Side.BELOW
        assert t.side(A, 3000).outcome is tc.Side.ABOVE
        assert t.side(A, 9000).outcome is tc.Side.BELOW
        assert t.side(q.sum("balance", -10, 10), 3000).outcome is tc.Side.ABOVE
        assert (t.meter.hits, t.meter.totals.spent) == (0, 0)
        inside = t.between(A, 4000, 8000)
        assert (inside.outcome, inside.hit) == (tc.Side.BETWEEN, True)
        assert inside.price == tc.Between(4000, 8000).price(t.meter.tariff.order, EPSILON)
        assert t.between(q.sum("balance", -10, 10), 5000, 30_000).hit
        marked = next(answer for answer in (t.side(A, 6000) for _ in range(300)) if answer.hit)
        assert marked.outcome is tc.BOUNDARY
        assert marked.price == tc.Boundary().price(t.meter.tariff.order, EPSILON)
        assert marked.interval is None
        assert t.meter.hits == 3


@pytest.mark.parametrize("call", [lambda t: t.between(A, 1, 5), lambda t: t.side(A, 5)], ids=["between", "side"])
def test_the_exact_meter_has_no_price_for_them(call):
    with opened() as t:
        with pytest.raises(tc.NotAllowed):
            call(t)
        assert (t.meter.hits, len(t.transcript)) == (0, 0)


# ε, alternatives, and questions as values.


def test_a_smaller_epsilon_is_a_larger_noise_at_its_own_price():
    with opened() as t:
        small = t.above(A, 3000, epsilon=0.05)
        assert small.scale == pytest.approx(CarriedNoise.of(t.meter.tariff.offset, 0.05).scale, rel=1e-6)
        assert (small.epsilon, small.price) == (0.05, 1.0)
        with pytest.raises(tc.NotAllowed):
            t.above(A, 3000, epsilon=0.2)
    with opened(meter="renyi") as t:
        order = t.meter.tariff.order
        assert t.above(A, 3000, epsilon=0.05).price == tc.NotPrior(None).price(order, 0.05)
        assert t.watch(A, "kind", ["a"], 3000, epsilon=0.05)[0].price == tc.NotPrior(None).price(order, 0.05)


def test_a_table_with_alternatives_asks_one_by_one():
    budget = tc.Budget(6.0, 1e-6)
    with opened(budget=budget, alternatives=[tc.NotPrior(None), tc.NotPrior(5)]) as t:
        assert t.above(A, 3000).meters_hit == (True, True)
        assert t.above(A, 9000).meters_hit == (False, True)
        assert [meter.hits for meter in t.meters] == [1, 2]
        answers = t.ask_many([q.above(A, 3000), q.above(A, 9000)])
        assert [answer.meters_hit for answer in answers] == [(True, True), (False, True)]
        for call in (lambda: t.watch(A, "kind", ["a"], 3000), lambda: t.top(None, "kind", ["a"])):
            with pytest.raises(tc.NotAllowed, match="alternatives"):
                call()
        assert [meter.hits for meter in t.meters] == [2, 4]


def test_questions_are_values_that_are_asked_later():
    with opened() as t:
        above, value = q.above(A, 3000), q.count(A, prior=6000, tolerance=1000)
        assert near(t.ask(above), 6000)
        assert t.ask(value).outcome is tc.UNCHANGED
        assert [answer.key for answer in t.ask(q.watch(None, "kind", ["a", "c"], 3000)).hits] == ["a"]
        assert [answer.key for answer in t.ask(q.top(None, "kind", ["b", "a"], 1))] == ["a"]
        assert list(t.ask(q.top(None, "kind", ["b", "a"], 2, threshold=8000))) == []
    assert q.above(A, 5) == q.above(A, 5)
    assert q.watch(A, ["kind", "day"], [1], 5).by == ("kind", "day")


def test_a_question_as_a_value_is_released_too():
    with opened() as t:
        assert near(t.release(q.count(A), lambda count: count > -1000), 6000)
        with pytest.raises(tc.InvalidParameter, match="without a prior"):
            t.release(q.count(A, prior=5, tolerance=0), lambda count: count > -1000)


def test_a_prepared_question_is_asked_as_it_is_and_only_of_a_table_like_its_own():
    question = q.above(A, 3000)
    with opened() as t, opened() as twin:
        prepared = t.prepare(question)
        assert t.prepare(prepared) is prepared
        assert near(t.ask(prepared), 6000)
        assert near(twin.ask(prepared), 6000)
        assert t.preview(prepared) == t.preview(question)
        assert [answer.hit for answer in t.ask_many([prepared, prepared])] == [True, True]
        with pytest.raises(tc.InvalidParameter, match="it must be left out"):
            t.prepare(prepared, epsilon=0.05)
        other = pd.DataFrame({"patient": range(10), "kind": [1] * 10})
        with tc.open(other, unit="patient", budget=tc.Budget(3.0, 1e-6), meter="exact") as numbers:
            for ask in (numbers.ask, numbers.preview, lambda one: numbers.ask_many([one])):
                with pytest.raises(tc.InvalidParameter, match="prepared by a table with the same columns"):
                    ask(prepared)
            assert len(numbers.transcript) == 0


@pytest.mark.parametrize("threshold", [None, 5], ids=["always paid", "above"])
def test_a_grid_that_is_too_fine_is_refused_and_the_one_named_is_taken(threshold):
    frame = pd.DataFrame({"fee": [1.0, 2.0]})
    with tc.open(frame, unit=tc.ROW, budget=tc.Budget(1, 1e-6), query_epsilon=0.02, ledger=":memory:") as t:

        def prepared(grid):
            fees = q.sum("fee", 0, 2**20, grid=grid)
            return t.prepare(q.count(fees) if threshold is None else q.above(fees, threshold))

        with pytest.raises(tc.InvalidParameter, match=r"grid is 0\.05; it must be at least 0\.") as refused:
            prepared("0.05")
        assert prepared(re.search(r"at least (\S+)", str(refused.value))[1])


@pytest.mark.parametrize(
    ("terms", "refused"),
    [
        ({"meter": "sparse"}, {"prior", "between", "side"}),
        ({"meter": "exact"}, {"between", "side"}),
        ({"meter": "exact", "targets": [tc.NotPrior(None), tc.Between(1, 60)]}, {"side"}),
        ({"meter": "renyi"}, set()),
        ({"charging": "individual"}, {"prior", "between", "side"}),
        ({"charging": "individual", "meter": "renyi"}, set()),
    ],
)
def test_a_description_lists_what_the_meter_takes_and_nothing_else(terms, refused):
    with tc.open(pd.DataFrame({"u": [1, 2]}), "u", tc.Budget(3, 1e-6), ledger=":memory:", **terms) as t:
        described = str(t.describe())
        asked = {
            "prior": ("count(where, prior, tolerance)", q.count(None, 100, 50)),
            "between": ("between(where, low, high)", q.between(None, 1, 60)),
            "side": ("side(where, threshold)", q.side(None, 10)),
        }
        for name, (line, question) in asked.items():
            assert (line in described) == (name not in refused)
            if name in refused:
                with pytest.raises(tc.NotAllowed):
                    t.prepare(question)
            else:
                t.prepare(question)


def test_shares_of_units_may_come_from_a_loop_or_from_numpy():
    with opened() as t:
        tenths = t.quantiles("fee", list(np.linspace(0.1, 0.9, 9)), 0, 5, epsilon=0.01)
        assert [answer.key for answer in tenths] == [number / 10 for number in range(1, 10)]
        assert t.prepare(q.quantile("fee", 3 * 0.1, 0, 5)).record == t.prepare(q.quantile("fee", 0.3, 0, 5)).record
        with pytest.raises(tc.InvalidParameter, match="at most six decimals"):
            t.prepare(q.quantile("fee", 1 / 3, 0, 5))


def test_what_asking_refuses_a_preview_refuses_too_and_picks_need_no_price_of_tests():
    frame, budget = pd.DataFrame({"u": range(40), "kind": ["a", "b"] * 20}), tc.Budget(3, 1e-6)
    picks = q.top(None, "kind", ["a", "b"], 1, values=False)
    band = tc.Between(1, 50)
    with tc.open(frame, "u", budget, query_epsilon=0.1, targets=[band], ledger=":memory:") as t:
        assert (t.preview(picks).price, len(t.ask(picks))) == (1, 1)
    rivals = [band, tc.Between(1, 90)]
    with tc.open(frame, "u", budget, query_epsilon=0.1, alternatives=rivals, ledger=":memory:") as t:
        for question in (
            q.mean("u", 0, 9),
            q.count(),
            q.histogram(None, "kind", ["a"]),
            q.quantile("u", 0.5, 0, 9),
            picks,
        ):
            for call in (t.preview, t.ask):
                with pytest.raises(tc.NotAllowed):
                    call(question)
