import json
import math
from fractions import Fraction

import pytest

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, exact_hits, sparse_vector_epsilon
from targetcharge.accounting.catalogue import catalogue
from targetcharge.accounting.curves import BoundedRange, Concentrated, Gaussian, Pure
from targetcharge.accounting.exact import lattice as lattice_module

BUDGET = tc.Budget(1.0, 1e-6)
TARGETS = [
    tc.NotPrior(0),
    tc.Disagreement(),
    tc.Boundary(),
    tc.Between(1, 40),
    tc.QTarget(0.4, {1}),
    tc.Everything(),
]


@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_hits_bought_fit_the_budget_and_one_more_does_not(target):
    plan = tc.plan(BUDGET, query_epsilon=0.03, target=target)
    for row, way in zip(plan.rows, catalogue(target), strict=True):
        assert row.accounting == way.name
        if row.hits:
            assert way.epsilon(0.03, row.hits, BUDGET.delta) <= BUDGET.epsilon * (1 + 1e-9)
        assert way.epsilon(0.03, (row.hits or 0) + 1, BUDGET.delta) > BUDGET.epsilon * (1 - 1e-9)


@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_query_epsilon_fits_the_budget_and_a_little_more_does_not(target):
    plan = tc.plan(BUDGET, hits=20, target=target)
    for row, way in zip(plan.rows, catalogue(target), strict=True):
        if row.query_epsilon is None:
            assert row.note
        else:
            assert way.epsilon(row.query_epsilon, 20, BUDGET.delta) <= BUDGET.epsilon * (1 + 2e-5)
            assert way.epsilon(row.query_epsilon * 1.0001, 20, BUDGET.delta) > BUDGET.epsilon


def test_ours_beat_the_paper_and_exact_beats_renyi():
    plan = tc.plan(BUDGET, query_epsilon=0.01)
    bought = [
        plan[name].hits for name in ("paper, simple Chernoff", "paper, raw Chernoff", "paper, exact tail", "Rényi")
    ]
    assert bought == sorted(bought)
    assert plan["exact"].hits == exact_hits(0.01, BUDGET) > 2 * plan["paper, simple Chernoff"].hits


def test_says_when_classic_sparse_vector_is_cheaper():
    plan = tc.plan(BUDGET, query_epsilon=0.01)
    most = int(plan.advice.split("up to ")[1].split(" hits")[0])
    assert sparse_vector_epsilon(0.01, most) <= exact_epsilon(0.01, most, 1e-6)
    assert sparse_vector_epsilon(0.01, most + 1) > exact_epsilon(0.01, most + 1, 1e-6)
    assert "hits and perhaps more" in tc.plan(tc.Budget(100.0, 1e-6), query_epsilon=1.0).advice
    assert not tc.plan(BUDGET, query_epsilon=0.01, target=tc.Boundary()).advice


def test_advice_speaks_only_of_what_was_computed(monkeypatch):
    monkeypatch.setattr(lattice_module, "MAX_CELLS", 8_000)
    advice = tc.plan(tc.Budget(30.0, 1e-6), query_epsilon=0.5).advice
    most = int(advice.split("For ")[1].split(" hits")[0])
    assert "hits and perhaps more" in advice
    assert 1 <= most < 64
    exact_epsilon(0.5, most, 1e-6)
    with pytest.raises(tc.TooLarge):
        exact_epsilon(0.5, most + 1, 1e-6)


def test_a_count_beyond_the_search_is_not_shown_as_a_result():
    row = tc.plan(tc.Budget(1e4, 1e-6), query_epsilon=1e-9)["basic composition"]
    assert (row.hits, row.note) == (None, "more than this accounting can compute")


def test_no_advice_where_classic_sparse_vector_never_wins():
    assert not tc.plan(tc.Budget(1.0, 0.3), query_epsilon=0.1).advice


def test_too_small_a_budget():
    with pytest.raises(
        tc.InvalidParameter, match=r"query_epsilon is 0.1; it must be at most 0.0622.* a sparse meter"
    ):
        tc.plan(BUDGET, query_epsilon=0.1)
    with pytest.raises(tc.InvalidParameter, match=r"query_epsilon is 0.1; it must be at most 0.0479[^;]*$"):
        tc.plan(BUDGET, query_epsilon=0.1, target=tc.Boundary())
    with pytest.raises(tc.InvalidParameter, match="hits is 1000000; it must be fewer"):
        tc.plan(tc.Budget(1e-9, 1e-60), hits=1_000_000)


def test_a_rare_target_is_refused_with_what_would_work():
    with pytest.raises(tc.InvalidParameter, match=r"query_epsilon is 0\.1; it must be at most .*one hit costs"):
        tc.plan(BUDGET, query_epsilon=0.1, target=tc.QTarget(1e-7, {1}))


@pytest.mark.parametrize("curve", [Concentrated(0.5), BoundedRange(1.0), Pure(1.0), Gaussian(1, Fraction(1))])
def test_a_curve_has_no_plan(curve):
    """It has a price of its own, whatever the query ε."""
    with pytest.raises(tc.InvalidParameter, match="target is Everything"):
        tc.plan(BUDGET, query_epsilon=0.1, target=tc.Everything(curve))


def test_one_of_query_epsilon_and_hits():
    for arguments in ({}, {"query_epsilon": 0.01, "hits": 3}):
        with pytest.raises(tc.InvalidParameter, match="given and hits left out, or the other way round"):
            tc.plan(BUDGET, **arguments)
    with pytest.raises(tc.InvalidParameter, match="hits is 0"):
        tc.plan(BUDGET, hits=0)
    with pytest.raises(tc.InvalidParameter, match=r"query_epsilon is 2\.0; it must be a number from 1e-09 to 1,"):
        tc.plan(BUDGET, query_epsilon=2.0, target=tc.Boundary())
    with pytest.raises(tc.InvalidParameter, match="delta is 0"):
        tc.plan(tc.Budget(1.0, 0.0), query_epsilon=0.01)


def test_what_cannot_be_computed_is_noted():
    huge = tc.plan(tc.Budget(1.0, 1e-6), query_epsilon=1e-5)
    assert huge["exact"].hits is None
    assert huge["exact"].note == "more than this accounting can compute"
    assert huge["Rényi"].hits > 1e8
    many = tc.plan(BUDGET, hits=10_000_000)
    assert many["exact"].query_epsilon is None
    assert many["Rényi"].query_epsilon > 0
    band = tc.plan(tc.Budget(400.0, 1e-6), query_epsilon=1.9, target=tc.Between(1, 9))
    assert band["Bun-Steinke-Ullman"].note == "only for a query ε up to 1.67"


def test_bun_steinke_ullman_needs_a_wide_band():
    narrow, wide = (tc.plan(BUDGET, query_epsilon=0.01, target=tc.Between(0, high)) for high in (100, 10_000))
    assert narrow["Bun-Steinke-Ullman"].hits == 0
    assert wide["Bun-Steinke-Ullman"].hits > 10


def test_rows_by_name_and_plain_data():
    plan = tc.plan(BUDGET, query_epsilon=0.05)
    with pytest.raises(KeyError):
        plan["nothing"]
    data = json.loads(json.dumps(plan.as_dict()))
    assert data["budget"] == {"epsilon": 1.0, "delta": 1e-6}
    assert [row["hits"] for row in data["rows"]] == [row.hits for row in plan.rows]


def test_rows_compare_by_the_noise_of_a_count():
    plan = tc.plan(BUDGET, hits=20)
    for row in plan.rows:
        factor = 2 if row.accounting == "classic sparse vector" else math.sqrt(2)
        assert row.standard_deviation == pytest.approx(factor / row.query_epsilon, rel=1e-3)
    least = tc.accounting.least_noise(BUDGET, 20)
    assert plan.sparse.standard_deviation == least.standard_deviation
    assert (plan.sparse.hits, plan.sparse.query_epsilon) == (20, least.query_epsilon)
    assert all(plan.sparse.standard_deviation < row.standard_deviation / 1.5 for row in plan.rows)


def test_at_a_query_epsilon_a_sparse_meter_buys_more_with_less_noise():
    plan = tc.plan(BUDGET, query_epsilon=0.05)
    assert plan.sparse.query_epsilon == 0.05
    assert plan.sparse.hits > 5 * plan["exact"].hits
    assert plan.sparse.standard_deviation < plan["exact"].standard_deviation
    assert json.loads(json.dumps(plan.as_dict()))["sparse"]["hits"] == plan.sparse.hits
    assert tc.plan(BUDGET, query_epsilon=0.01, target=tc.Boundary()).sparse is None


def test_where_a_sparse_meter_buys_hundreds_they_are_not_counted():
    assert tc.plan(BUDGET, query_epsilon=0.01).sparse is None
    assert tc.plan(BUDGET, query_epsilon=0.0001).sparse is None
    assert tc.plan(BUDGET, hits=229).sparse.standard_deviation < 50


def test_a_plan_is_a_frame_and_a_table_for_notebooks():
    plan = tc.plan(tc.Budget(1.0, 1e-6), hits=20)
    frame = plan.to_pandas()
    assert list(frame["accounting"]) == [row.accounting for row in plan.all_rows]
    assert list(frame["hits"].fillna(0)) == [row.hits or 0 for row in plan.all_rows]
    assert frame["query_epsilon"][len(plan.rows) - 1] == plan["exact"].query_epsilon
    html = plan._repr_html_()
    assert f"<td>exact</td><td>hits</td><td>{plan['exact'].query_epsilon:.4g}</td>" in html
    assert "A budget of (1, 1e-06) at 20 hits" in html
    by_query = tc.plan(tc.Budget(1.0, 1e-6), query_epsilon=0.05)
    assert f"<td>{by_query['exact'].hits} hits</td>" in by_query._repr_html_()
    assert dict(frame.dtypes) == dict(by_query.to_pandas().dtypes)
