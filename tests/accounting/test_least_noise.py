"""The least noise for a number of hits: golden values, covered by the budget, never more than older ways need."""

import itertools
import math

import pytest
from scipy.optimize import minimize_scalar
from tests.refusals import every
from tests.sizes import LONG, spread

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, least_noise, offset_delta, offset_hits
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.offsets.noise import OffsetNoise

DELTA = 1e-6
GOLDEN_ANY = {1: 13.4, 5: 18.6, 20: 28.1, 100: 51.6}
GOLDEN_AT_LEAST = {
    (1, 1): 2.83,
    (1, 5): 7.77,
    (1, 10): 11.14,
    (1, 20): 15.39,
    (1, 50): 22.73,
    (1, 100): 30.95,
    (1, 300): 50.8,
    (3, 10): 3.93,
    (3, 50): 8.27,
    (3, 100): 11.23,
}
EPSILONS = [0.1, 0.3, 1.0, 3.0, 8.0]
HITS = [1, 2, 3, 5, 7, 10, 14, 20, 50, 100, *([200, 500, 1000] if LONG else [])]
BUDGETS = list(itertools.product(EPSILONS, HITS))


def test_golden_deviations_of_any_question():
    for hits, expected in GOLDEN_ANY.items():
        least = least_noise(tc.Budget(1.0, DELTA), hits, "any")
        assert least.standard_deviation == pytest.approx(expected, rel=0.01)
        assert (least.noise, least.offset_noise, least.lattice, least.coupling) == ("laplace", "laplace", 2, 0.5)


def test_golden_deviations_of_at_least_questions():
    def check(budget, expected):
        epsilon, hits = budget
        assert least_noise(tc.Budget(epsilon, DELTA), hits).standard_deviation == pytest.approx(expected, rel=0.01)

    every(spread(GOLDEN_AT_LEAST.items(), 4), check)


def test_the_pure_law_wins_up_to_five_hits_at_one_and_six_at_three():
    assert [least_noise(tc.Budget(1.0, DELTA), hits).noise for hits in (5, 6)] == ["geometric", "gumbel"]
    assert [least_noise(tc.Budget(3.0, DELTA), hits).noise for hits in (6, 7)] == ["geometric", "gumbel"]


def natural_charging_costs(deviation, hits):
    """Return ε' of natural charging whose Laplace noise has a standard deviation."""
    return exact_epsilon(math.sqrt(2) / deviation, hits, DELTA)


def sparse_vector_deviation(epsilon, hits):
    """Return that of classic sparse vector with values: ε1 + τ·ε2 = ε', Laplace noise, the best split."""

    def deviation(share):
        return math.sqrt(2) * math.hypot(1 / (share * epsilon), hits / ((1 - share) * epsilon))

    return float(minimize_scalar(deviation, bounds=(1e-6, 1 - 1e-6), method="bounded").fun)


@pytest.mark.parametrize(("hits", "natural", "classic"), [(1, 22.7, 4.0), (10, 40.6, 19.0), (100, 97.3, 152)])
def test_the_older_ways_are_those_of_the_table(hits, natural, classic):
    assert natural_charging_costs(1.01 * natural, hits) < 1 < natural_charging_costs(0.99 * natural, hits)
    assert sparse_vector_deviation(1.0, hits) == pytest.approx(classic, rel=0.01)


def covers(least, budget, hits, questions):
    """Check that the budget buys the hits with what was returned, and that the deviation is that of its law."""
    law = OffsetNoise(least.offset_epsilon, least.query_epsilon, least.noise, questions, least.offset_noise)
    assert least.law == law
    assert least.standard_deviation == law.standard_deviation
    assert Coupling(law, round(100 * least.coupling), 1_500_000).delta(hits, budget.epsilon) <= budget.delta


def test_any_question_never_has_more_noise_than_natural_charging():
    def check(epsilon, hits):
        budget = tc.Budget(epsilon, DELTA)
        least = least_noise(budget, hits, "any")
        covers(least, budget, hits, "any")
        assert natural_charging_costs(least.standard_deviation, hits) >= epsilon

    every(spread(BUDGETS, 18), check)


def test_at_least_questions_never_have_more_noise_than_classic_sparse_vector_or_any_question():
    def check(epsilon, hits):
        budget = tc.Budget(epsilon, DELTA)
        least = least_noise(budget, hits)
        covers(least, budget, hits, "at least")
        assert least.standard_deviation <= sparse_vector_deviation(epsilon, hits) / math.sqrt(2) * (1 + 1e-3)
        assert least.standard_deviation <= least_noise(budget, hits, "any").standard_deviation

    every(spread(BUDGETS, 12), check)


def test_what_it_returns_buys_the_hits():
    def check(epsilon, hits, questions):
        budget = tc.Budget(epsilon, DELTA)
        least = least_noise(budget, hits, questions)
        rates = least.offset_epsilon, least.query_epsilon
        laws = {"noise": least.noise, "questions": questions, "offset_noise": least.offset_noise}
        assert offset_delta(*rates, hits, epsilon, **laws) <= budget.delta
        assert offset_hits(*rates, budget, **laws) >= hits

    every(
        [(1.0, 1, "any"), (0.3, 20, "any"), (1.0, 3, "at least"), (1.0, 10, "at least"), (3.0, 20, "at least")],
        check,
    )


def test_more_hits_need_more_noise_and_more_budget_less():
    for questions in ("any", "at least"):
        by_hits = [
            least_noise(tc.Budget(1.0, DELTA), hits, questions) for hits in spread([1, 2, 4, 6, 8, 12, 30], 3)
        ]
        by_epsilon = [least_noise(tc.Budget(epsilon, DELTA), 6, questions) for epsilon in (8.0, 1.0, 0.1)]
        by_delta = [least_noise(tc.Budget(1.0, delta), 10, questions) for delta in (1e-3, 1e-6)]
        for found in (by_hits, by_epsilon, by_delta):
            deviations = [least.standard_deviation for least in found]
            assert deviations == sorted(deviations)


def test_without_delta_there_is_only_geometric_noise():
    for hits in (1, 5, 100):
        least = least_noise(tc.Budget(1.0, 0.0), hits)
        assert (least.noise, least.offset_noise, least.coupling) == ("geometric", "geometric", 1.0)
        assert 0.999 < least.offset_epsilon + hits * least.query_epsilon <= 1.0
        assert least.standard_deviation == pytest.approx(
            sparse_vector_deviation(1.0, hits) / math.sqrt(2), rel=1e-3
        )
    with pytest.raises(tc.InvalidParameter, match="delta is 0"):
        least_noise(tc.Budget(1.0, 0.0), 5, "any")


def test_refused_by_name_and_value():
    def is_refused(name, value):
        good = {"budget": tc.Budget(1.0, DELTA), "hits": 5, "questions": "at least"}
        with pytest.raises(tc.InvalidParameter) as refusal:
            least_noise(**{**good, name: value})
        assert (refusal.value.name, refusal.value.value) == (name, value)

    cases = [("hits", value) for value in (0, -1, 1.0, 2.5, "3", None, True, 10**400)]
    cases += [("questions", value) for value in ("", "at most", None, 1)] + [("budget", None), ("budget", 1.0)]
    every(cases, is_refused)


def test_hits_that_no_rate_affords_are_refused():
    with pytest.raises(tc.InvalidParameter, match="hits is"):
        least_noise(tc.Budget(0.001, 0.0), 10**9)


def test_budgets_at_both_ends_end_in_an_answer_or_a_refusal_by_name():
    for budget, hits in ((tc.Budget(3e-6, 1e-6), 5), (tc.Budget(1e-5, 1e-9), 100)):
        with pytest.raises(tc.InvalidParameter, match=f"hits is {hits}"):
            tc.accounting.least_noise(budget, hits)
    assert tc.accounting.least_noise(tc.Budget(1e-3, 1e-30), 10).standard_deviation > 1000
    assert tc.accounting.least_noise(tc.Budget(9000.0, 1e-6), 3).standard_deviation < 1
    with pytest.raises(tc.TooLarge):
        tc.accounting.offset_hits(1e-7, 1e-9, tc.Budget(10.0, 0.0), "geometric", "at least")
