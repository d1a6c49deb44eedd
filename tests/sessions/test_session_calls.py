"""What each call publishes and charges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.sessions.scripted import EPSILON, computes, gives, opened

import targetcharge as tc
from targetcharge.outcomes import Side


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_ask_charges_the_price_for_an_outcome_in_the_target_and_nothing_for_another(meter):
    session = opened(meter=meter)
    algorithm = gives("no", "yes", "no")
    price = session.meter.quote(tc.NotPrior("no"), EPSILON).value
    answers = [session.ask(algorithm, tc.NotPrior("no")) for _ in range(3)]
    assert [(answer.outcome, answer.hit, answer.price) for answer in answers] == [
        ("no", False, 0.0),
        ("yes", True, price),
        ("no", False, 0.0),
    ]
    assert session.meter.hits == 1
    assert session.meter.hits_left == 4


def test_an_algorithm_gets_the_data_of_the_session():
    data = object()
    session = opened(data=data)
    assert session.ask(computes(lambda given: given is data), tc.NotPrior(False)).outcome is True


def test_ask_takes_the_algorithms_own_target_when_none_is_named():
    session = opened(data=range(7))
    quiet, loud = (tc.mechanisms.above_threshold(len, t, EPSILON) for t in (2000, -2000))
    assert (session.ask(quiet).hit, session.ask(loud).hit) == (False, True)
    assert session.transcript[0].targets == (("NotPrior", None),)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (True, True),
        (False, False),
        (1, True),
        (0, False),
        (np.True_, True),
        (np.False_, False),
        (0.0, False),
    ],
)
def test_a_test_says_true_or_false_and_pays_for_true(outcome, said):
    session = opened()
    answer = session.test(gives(outcome))
    assert answer.outcome is said
    assert answer.hit is said
    assert session.meter.hits == said


@pytest.mark.parametrize("outcome", [57, -1, 0.5, "", "yes", None, (), (True,), Side.ABOVE], ids=repr)
def test_an_outcome_that_is_neither_yes_nor_no_is_not_published_as_a_hit_and_its_price_is_spent(outcome):
    session = opened()
    with pytest.raises(tc.ComputationFailed):
        session.test(gives(outcome))
    assert (len(session.transcript), session.meter.hits) == (0, 1)


NOT_BOOLEAN = {
    "noisy_count": tc.mechanisms.noisy_count(len, EPSILON),
    "distinct_count": tc.mechanisms.distinct_count(lambda data: data, EPSILON),
    "exponential": tc.mechanisms.exponential(lambda _: [1, 2], EPSILON, ["no", "yes"]),
    "noisy_max": tc.mechanisms.noisy_max(lambda _: [1, 2], EPSILON, 2),
}


@pytest.mark.parametrize("algorithm", NOT_BOOLEAN.values(), ids=NOT_BOOLEAN)
def test_a_test_of_what_does_not_answer_yes_or_no_is_refused_before_the_data_is_touched(algorithm):
    touched = []

    class Data(list):
        def __len__(self):
            touched.append(self)
            return 3

    session = opened(data=Data())
    with pytest.raises(tc.NotAllowed, match=r"does not answer yes or no, .* or test one that has a threshold"):
        session.test(algorithm)
    assert (touched, len(session.transcript), session.meter.hits) == ([], 0, 0)


def test_a_choice_between_yes_and_no_can_be_tested():
    choice = tc.mechanisms.exponential(lambda _: [0, 10**6], EPSILON, [False, True])
    assert opened().test(choice).outcome is True


@pytest.mark.parametrize("value", [0, -3, 5, None])
def test_a_test_of_an_algorithm_that_speaks_only_on_a_hit_says_yes_whatever_it_speaks(value):
    session = opened()
    answer = session.test(gives(value, default_target=tc.NotPrior(None)))
    assert answer.outcome is (value is not None)
    assert session.meter.hits == (value is not None)


def test_a_threshold_far_below_zero_is_reached_by_a_negative_noisy_count():
    session = opened(data=-1000)
    answer = session.test(tc.mechanisms.above_threshold(lambda data: data, -3000, EPSILON))
    assert answer.outcome is True
    assert session.ask(tc.mechanisms.above_threshold(lambda data: data, -3000, EPSILON)).outcome < 0


@pytest.mark.parametrize(
    ("prior", "outcome"),
    [
        (1, True),
        (True, 1),
        (0.0, -0.0),
        (0, False),
        (3, 3.0),
        ((1, 2.0), [True, 2]),
        ([1, 2], (1, 2)),
        (np.array([1, 2]), [1, 2]),
        (np.int64(4), 4),
        ("below", Side.BELOW),
        ((), []),
    ],
)
def test_an_outcome_that_equals_the_prior_is_published_as_the_prior_itself(prior, outcome):
    session = opened()
    prior = prior.tolist() if isinstance(prior, np.ndarray) else prior
    expected = session.ask_prior(gives(prior), prior)
    found = session.ask_prior(gives(outcome), prior)
    assert (repr(found.outcome), found.hit, found.price) == (repr(expected.outcome), False, 0.0)
    assert session.meter.hits == 0


def test_minus_zero_and_zero_look_alike_hit_or_miss():
    session = opened()
    signs = [math.copysign(1, session.ask_prior(gives(-0.0), prior).outcome) for prior in (0.0, -0.0, 5)]
    assert signs == [1, 1, 1]


def test_a_numpy_prior_of_one_number_that_changes_later_is_read_when_asked():
    session, prior = opened(), np.array([3])
    target, algorithm = tc.NotPrior(prior), gives((3,))
    assert not session.ask(algorithm, target).hit
    prior[0] = 5
    assert session.ask(algorithm, target).hit


def test_members_that_change_after_a_question_was_asked_make_no_outcome_free():
    members = {"high"}
    declared = tc.QTarget(0.4, frozenset(members))
    session = tc.Session(None, tc.Budget(9.0, 1e-6), EPSILON, targets=declared)
    algorithm, target = gives("high", targets=(declared,)), tc.QTarget(0.4, members)
    assert session.ask(algorithm, target).hit
    members.clear()
    assert session.ask(algorithm, target).hit


def test_the_prior_may_be_an_answer_of_an_older_dataset():
    older, newer = opened(data=range(10)), opened(data=range(11))
    size = computes(len)
    answer = older.ask(size, tc.Everything())
    assert newer.ask_prior(computes(lambda data: len(data) - 1), answer).hit is False
    assert newer.ask_prior(size, answer).outcome == 11


def test_the_prior_may_be_a_release_of_an_older_dataset():
    older, newer = opened(data="a"), opened(data="ab")
    release = older.release(computes(str), {"a"})
    assert newer.ask_prior(computes(lambda data: data[0]), release).hit is False
    assert newer.ask_prior(computes(str), release).outcome == "ab"


def test_between_costs_only_in_the_band():
    session = opened(20, data=1000, meter="renyi")
    sides = [
        tc.mechanisms.between_thresholds(int, *band, EPSILON) for band in ((0, 99), (500, 1500), (2000, 2099))
    ]
    answers = [session.ask(side) for side in sides]
    assert [answer.outcome for answer in answers] == [Side.ABOVE, Side.BETWEEN, Side.BELOW]
    band = tc.Between(500, 1500)
    assert [answer.price for answer in answers] == [0.0, band.price(session.meter.tariff.order, EPSILON), 0.0]


def test_boundary_costs_only_for_the_mark():
    session = opened(20, data=1000, meter="renyi")
    clear = tc.boundary(tc.mechanisms.between_thresholds(lambda data: data, 0, 9, EPSILON))
    assert session.ask(clear).outcome is Side.ABOVE
    assert session.meter.hits == 0
    marked = session.ask(gives(tc.BOUNDARY, targets=(tc.Boundary(),), default_target=tc.Boundary()))
    assert (marked.outcome, marked.hit) == (tc.BOUNDARY, True)
    assert marked.price == tc.Boundary().price(session.meter.tariff.order, EPSILON)


def test_twice_publishes_both_outcomes_and_charges_a_disagreement():
    session = tc.Session(None, tc.Budget(9.0, 1e-6), EPSILON, targets=(tc.Disagreement(),))
    algorithm = tc.twice(gives("a", "a", "a", "b", 1, True))
    answers = [session.ask(algorithm) for _ in range(3)]
    assert [answer.outcome for answer in answers] == [("a", "a"), ("a", "b"), (1, True)]
    assert [answer.hit for answer in answers] == [False, True, True]
    assert session.meter.hits == 2


def test_agreement_publishes_one_outcome_or_the_mark():
    session = tc.Session(None, tc.Budget(9.0, 1e-6), EPSILON, targets=(tc.Disagreement(),))
    algorithm = tc.agreement(gives("a", "a", "a", "b", 2.0, 2))
    answers = [session.ask(algorithm) for _ in range(3)]
    assert [answer.outcome for answer in answers] == ["a", tc.BOUNDARY, tc.BOUNDARY]
    assert [answer.hit for answer in answers] == [False, True, True]


def test_delta_is_spent_on_every_run_hit_or_miss_until_there_is_none():
    session = opened(computation_delta=3e-7)
    algorithm = gives(False, True, False, delta=1e-7)
    assert [session.test(algorithm).hit for _ in range(3)] == [False, True, False]
    assert session.meter.delta_left == pytest.approx(0, abs=1e-15)
    with pytest.raises(tc.BudgetSpent, match="spends delta 1e-07"):
        session.test(algorithm)
    assert session.meter.hits == 1
    assert session.test(gives(False)).hit is False


def test_run_twice_spends_delta_for_both_runs():
    session = opened(computation_delta=3e-7, meter="renyi")
    session.ask(tc.twice(gives(False, delta=1e-7)))
    assert session.meter.delta_left == pytest.approx(1e-7)


def test_all_tools_on_one_renyi_meter_charge_the_sum_of_their_prices():
    session = tc.Session(None, tc.Budget(20.0, 1e-6), 0.2, meter="renyi")
    order, none = session.meter.tariff.order, tc.NotPrior(None)
    quarter = tc.QTarget(0.25, frozenset({"rare"}))
    band = tc.Between(1, 5)
    session.ask(gives("x", epsilon=0.2), tc.Everything())
    session.test(gives(True, epsilon=0.05))
    session.test(gives(False, epsilon=0.2))
    session.ask_prior(gives(4, epsilon=0.1), 3)
    session.ask(gives("rare", epsilon=0.1, targets=(quarter,)), quarter)
    session.ask(gives(Side.BETWEEN, epsilon=0.2, targets=(band,)), band)
    session.ask(gives(tc.BOUNDARY, epsilon=0.1, targets=(tc.Boundary(),)), tc.Boundary())
    session.ask(tc.twice(gives(1, 2, epsilon=0.1)))
    release = session.release(gives(7, epsilon=0.15), {0})
    session.select([gives(3, epsilon=0.02), gives(2, epsilon=0.2), gives(1, epsilon=0.1)], k=2)
    release.revise({7})
    prices = [
        tc.Everything().price(order, 0.2),
        *(none.price(order, epsilon) for epsilon in (0.05, 0.1, 0.15, 0.02, 0.2)),
        quarter.price(order, 0.1),
        band.price(order, 0.2),
        tc.Boundary().price(order, 0.1),
        tc.Disagreement().price(order, 0.1),
    ]
    spent = session.meter.tariff.total(session.meter.totals.spent)
    assert spent == pytest.approx(math.fsum(prices), rel=1e-12)
    assert spent >= math.fsum(prices) * (1 - 1e-15)
    assert math.fsum(answer.price for answer in session.transcript) == pytest.approx(spent, rel=1e-12)
    assert session.meter.hits == len(prices)
