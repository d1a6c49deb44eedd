"""Every public function refuses every bad parameter by name and value, before computing anything."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.refusals import every

import targetcharge as tc
from targetcharge import accounting as ac
from targetcharge.errors import shown

PLAIN = tc.NotPrior(False)

BAD_QUERY_EPSILON = [math.nan, math.inf, -math.inf, 0.0, -0.1, 11.0, 1e300, 10**400, 1e-12, "0.1", None, True, 1j]
BAD_EPSILON = [math.nan, math.inf, -1.0, 1e5, 10**400, "1", None, False]
BAD_DELTA = [math.nan, -1e-9, 1.0, 2.0, math.inf, "0", None]
BAD_POSITIVE_DELTA = [*BAD_DELTA, 0.0, 1e-120]
BAD_HITS = [0, -1, 10**400, 1.0, 2.5, math.nan, "3", None, True]
BAD_Q = [0.0, 1e-300, -0.1, 1.1, math.nan, math.inf, "0.5"]

FUNCTIONS = [
    (ac.exact_epsilon, {"query_epsilon": 0.1, "hits": 2, "delta": 1e-6, "q": 0.5}),
    (ac.exact_delta, {"query_epsilon": 0.1, "hits": 2, "epsilon": 1.0, "q": 0.5}),
    (ac.exact_profile, {"query_epsilon": 0.1, "hits": 2, "delta": 1e-6, "q": 0.5}),
    (ac.paper_epsilon, {"query_epsilon": 0.1, "hits": 2, "delta": 1e-6, "q": 0.5}),
    (ac.renyi_epsilon, {"target": PLAIN, "query_epsilon": 0.1, "hits": 2, "delta": 1e-6}),
    (ac.optimal_epsilon, {"query_epsilon": 0.1, "computations": 2, "delta": 1e-6}),
    (ac.optimal_delta, {"query_epsilon": 0.1, "computations": 2, "epsilon": 0.1}),
    (ac.advanced_epsilon, {"query_epsilon": 0.1, "computations": 2, "delta": 1e-6}),
    (ac.basic_epsilon, {"query_epsilon": 0.1, "computations": 2}),
    (ac.sparse_vector_epsilon, {"query_epsilon": 0.1, "hits": 2}),
    (ac.selection_epsilon, {"query_epsilon": 0.1}),
    (ac.between_thresholds_gap, {"query_epsilon": 0.1, "run_delta": 1e-6}),
    (ac.between_thresholds_epsilon, {"query_epsilon": 0.1, "hits": 2, "delta": 1e-6}),
]
BAD = {
    "query_epsilon": BAD_QUERY_EPSILON,
    "epsilon": BAD_EPSILON,
    "delta": BAD_POSITIVE_DELTA,
    "run_delta": BAD_POSITIVE_DELTA,
    "hits": BAD_HITS,
    "computations": BAD_HITS,
    "q": BAD_Q,
}
CASES = [
    (function, name, value)
    for function, good in FUNCTIONS
    for name in good
    for value in BAD.get(name, [])
    if not (function is ac.optimal_epsilon and name == "delta" and isinstance(value, float) and 0 <= value < 1e-90)
    and not (function is ac.advanced_epsilon and name == "computations" and value in (1.0, 2.5))
    and not (function in (ac.advanced_epsilon, ac.between_thresholds_gap) and value == 1e-120)
]


@pytest.mark.parametrize(("function", "good"), FUNCTIONS, ids=[function.__name__ for function, _ in FUNCTIONS])
def test_refused_by_name_and_value(function, good):
    def is_refused(name, value):
        with pytest.raises(tc.InvalidParameter) as refusal:
            function(**{**good, name: value})
        error = refusal.value
        assert error.name.endswith(name)
        assert error.value is value or error.value == value
        assert str(error) == f"{error.name} is {shown(value)}; it must be {error.expected}"

    function(**good)
    every([(name, value) for asked, name, value in CASES if asked is function], is_refused)


@pytest.mark.parametrize("value", BAD_DELTA)
def test_budget_delta(value):
    with pytest.raises(tc.InvalidParameter, match="delta is"):
        tc.Budget(1.0, value)


@pytest.mark.parametrize("value", [*BAD_EPSILON, 0.0])
def test_budget_epsilon(value):
    with pytest.raises(tc.InvalidParameter, match="epsilon is"):
        tc.Budget(value, 1e-6)


@pytest.mark.parametrize("function", [ac.renyi_epsilon, ac.renyi_delta])
@pytest.mark.parametrize(("target", "epsilon"), [(tc.Boundary(), 1.1), (tc.Disagreement(), 6.0)])
def test_limits_of_a_target_hold_everywhere(function, target, epsilon):
    with pytest.raises(tc.InvalidParameter, match="query_epsilon is"):
        function(target, epsilon, 2, 1e-6)
    for refused in (ac.renyi_hits, lambda *rest: ac.Meter.renyi(rest[2], rest[1], rest[0])):
        with pytest.raises(tc.InvalidParameter, match="query_epsilon is"):
            refused(target, epsilon, tc.Budget(100.0, 1e-6))
    with pytest.raises(tc.InvalidParameter, match="query_epsilon is 6"):
        ac.exact_epsilon(6.0, 2, 1e-6, disagreement=True)


@pytest.mark.parametrize("budget", [None, 1.0, (1.0, 1e-6)])
def test_a_budget_is_a_budget(budget):
    for call in (ac.Meter.exact, ac.Meter.renyi, lambda given, query: tc.plan(given, query_epsilon=query)):
        with pytest.raises(tc.InvalidParameter, match="budget is"):
            call(budget, 0.01)
    with pytest.raises(tc.InvalidParameter, match="budget is"):
        ac.exact_hits(0.01, budget)


def test_a_target_is_a_target():
    with pytest.raises(tc.InvalidParameter, match="target is 'yes'"):
        ac.renyi_epsilon("yes", 0.1, 1, 1e-6)
    with pytest.raises(tc.InvalidParameter, match="target is 'yes'"):
        tc.plan(tc.Budget(1.0, 1e-6), hits=3, target="yes")


def test_numbers_of_other_types_are_welcome():
    assert tc.Budget(Fraction(1, 2), np.float32(0)) == tc.Budget(0.5, 0.0)
    assert ac.exact_epsilon(np.float64(0.1), np.int64(2), 1e-6) == ac.exact_epsilon(0.1, 2, 1e-6)
    assert isinstance(tc.Budget(1, 0).epsilon, float)


def test_errors_are_value_errors_and_ours():
    with pytest.raises(ValueError, match="hits is 0"):
        ac.exact_epsilon(0.1, 0, 1e-6)
    with pytest.raises(tc.TargetChargeError):
        ac.exact_epsilon(0.1, 0, 1e-6)
    assert issubclass(tc.TooLarge, tc.InvalidParameter)
    assert issubclass(tc.BudgetSpent, tc.Refused)
