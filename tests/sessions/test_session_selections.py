"""Selections: the best candidates, each run once, each published one paid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.sessions.scripted import EPSILON, computes, gives, opened

import targetcharge as tc
from targetcharge.sessions import gap


def chosen(answers):
    return [(answer.candidate, answer.outcome) for answer in answers]


def test_the_best_are_published_in_the_order_of_their_scores():
    session = opened()
    answers = session.select([gives(score) for score in (3, 9, 1, 7)], k=3)
    assert chosen(answers) == [(1, 9), (3, 7), (0, 3)]
    assert all(answer.hit and answer.price == 1.0 for answer in answers)
    assert session.meter.hits == 3


def test_ties_go_to_the_earlier_candidate():
    answers = opened().select([gives(score) for score in (1, 5.0, 5, 2, 5)], k=4)
    assert chosen(answers) == [(1, 5.0), (2, 5), (4, 5), (3, 2)]


def test_a_tuple_is_ranked_by_its_first_member_only():
    answers = opened().select([gives((1, "z")), gives((2, None)), gives((2, "a", b"b"))], k=3)
    assert chosen(answers) == [(1, (2, None)), (2, (2, "a", b"b")), (0, (1, "z"))]


def test_integers_beyond_double_precision_are_compared_exactly():
    big = 2**53
    answers = opened().select([gives(big), gives(big + 1), gives(float(big))], k=3, threshold=big)
    assert chosen(answers) == [(1, big + 1), (0, big), (2, float(big))]
    assert chosen(opened().select([gives(big), gives(big + 1)], k=2, threshold=big + 1)) == [(1, big + 1)]
    assert chosen(opened().select([gives(10**400), gives(math.inf)], k=2)) == [(1, math.inf), (0, 10**400)]


def test_every_candidate_runs_once_also_those_that_are_not_published():
    runs = []
    candidates = [computes(lambda _, index=index: runs.append(index) or index) for index in range(4)]
    opened().select(candidates)
    assert sorted(runs) == [0, 1, 2, 3]


def test_no_score_below_the_threshold_is_published_or_paid():
    session = opened()
    candidates = [gives(score) for score in (3, 9, 1, 7)]
    assert chosen(session.select(candidates, k=4, threshold=7)) == [(1, 9), (3, 7)]
    assert session.meter.hits == 2
    assert session.select(candidates, k=2, threshold=9.5) == []
    assert session.meter.hits == 2
    assert (session.transcript[-1].outcome, session.transcript[-1].hit) == (None, False)


def test_a_gap_rule_stops_before_the_first_large_gap():
    session = opened(9)
    candidates = [gives(score) for score in (100, 97, 60, 58)]
    assert chosen(session.select(candidates, k=4, stop=gap(5))) == [(0, 100), (1, 97)]
    assert chosen(session.select(candidates, k=4, stop=gap(3))) == [(0, 100), (1, 97)]
    assert chosen(session.select(candidates, k=4, stop=gap(2.5))) == [(0, 100)]
    assert session.meter.hits == 5


def test_a_rule_names_the_floor_from_what_was_released():
    calls = []

    def stop(released):
        calls.append([answer.outcome for answer in released])
        return None if len(released) == 1 else released[0].outcome / 2

    answers = opened().select([gives(score) for score in (10, 8, 5, 4, 3)], k=5, stop=stop)
    assert [answer.outcome for answer in answers] == [10, 8, 5]
    assert calls == [[10], [10, 8], [10, 8, 5]]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_rule_is_not_called_after_the_last_release(k):
    calls = []
    opened().select([gives(score) for score in (1, 2, 3)], k=k, stop=lambda released: calls.append(len(released)))
    assert calls == list(range(1, k))


def test_a_floor_and_a_threshold_both_hold():
    candidates = [gives(score) for score in (10, 8, 6)]
    assert len(opened().select(candidates, k=3, stop=lambda _: 1, threshold=7)) == 2
    assert len(opened().select(candidates, k=3, stop=lambda _: 9, threshold=7)) == 1


def raising(_released):
    msg = "no such floor"
    raise LookupError(msg)


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        (raising, "it raised LookupError: no such floor"),
        (lambda _: math.nan, "it returned nan"),
        (lambda _: "high", "it returned 'high'"),
        (lambda _: True, "it returned True"),
        (lambda _: 1j, "it returned 1j"),
    ],
)
def test_a_rule_that_breaks_is_named_and_what_was_released_is_charged_and_kept(stop, words):
    session = opened()
    with pytest.raises(tc.InvalidParameter, match=words) as caught:
        session.select([gives(1), gives(2), gives(3)], k=3, stop=stop)
    assert caught.value.name == "stop"
    assert session.meter.hits == 1
    assert [answer.outcome for answer in session.transcript] == [3, None]


@pytest.mark.parametrize("threshold", [None, 99.5, math.inf])
@pytest.mark.parametrize(
    ("stop", "words"),
    [
        (lambda released: released[-1].score, "it raised AttributeError"),
        (lambda released: None if len(released) == 1 else "high", "it returned 'high'"),
    ],
)
def test_a_rule_that_breaks_on_made_up_answers_is_refused_before_anything_is_drawn(stop, words, threshold):
    session = opened(data=range(100))
    for candidates in (
        [tc.mechanisms.noisy_count(len, EPSILON)] * 3,
        tc.mechanisms.batch_by_key(lambda data: [len(data)] * 3, ["a", "b", "c"], 0, EPSILON),
    ):
        with pytest.raises(tc.InvalidParameter, match=f"of made-up answers {words}.*Nothing was charged"):
            session.select(candidates, k=3, stop=stop, threshold=threshold)
        assert (session.meter.hits, len(session.transcript)) == (0, 0)


def test_a_rule_is_tried_on_scores_that_the_threshold_lets_through():
    candidates, seen = [tc.mechanisms.noisy_count(lambda _: 900, EPSILON)] * 3, []
    opened().select(candidates, 3, lambda released: seen.append([answer.outcome for answer in released]), 600.5)
    assert seen[:2] == [[1601], [1601, 601]]


def test_a_rule_that_uses_the_session_is_told_so():
    session = opened()
    with pytest.raises(tc.InvalidParameter, match="cannot be used from inside"):
        session.select([gives(1), gives(2)], k=2, stop=lambda _: session.test(gives(True)).price)
    assert session.meter.hits == 1


@pytest.mark.parametrize("score", [math.nan, None, "7", True, (), ("a", 1), ((1,),), b"1", (math.nan, 1)])
def test_a_candidate_without_a_score_fails_the_selection_and_spends_all_of_it(score):
    session = opened()
    with pytest.raises(tc.ComputationFailed):
        session.select([gives(1), gives(score), gives(3)], k=2)
    assert session.meter.hits == 2
    assert len(session.transcript) == 0


def test_a_selection_that_the_hits_left_do_not_cover_is_refused_whole():
    session = opened(2)
    runs = []
    candidates = [computes(lambda _: runs.append(1) or 1)] * 3
    with pytest.raises(tc.BudgetSpent):
        session.select(candidates, k=3)
    assert runs == []
    assert len(session.select(candidates, k=2)) == 2


def test_delta_of_all_candidates_is_spent():
    session = opened(computation_delta=4e-7)
    session.select([gives(1, delta=1e-7), gives(2), gives(3, delta=2e-7)], threshold=9)
    assert session.meter.delta_left == pytest.approx(1e-7)
    with pytest.raises(tc.BudgetSpent, match="delta"):
        session.select([gives(1, delta=1e-7), gives(2, delta=1e-7)])


def test_each_candidate_is_charged_its_own_price_on_the_renyi_meter():
    session = opened(9, meter="renyi")
    order = session.meter.tariff.order
    answers = session.select(
        [gives(3, epsilon=0.1), gives(2, epsilon=0.02), gives(1, epsilon=0.05)], k=3, threshold=2
    )
    prices = [tc.NotPrior(0).price(order, epsilon) for epsilon in (0.1, 0.02)]
    assert [answer.price for answer in answers] == prices
    assert session.meter.tariff.total(session.meter.totals.spent) == pytest.approx(sum(prices), rel=1e-12)


def test_the_dearest_candidate_decides_whether_a_selection_is_covered():
    session = opened(1, meter="renyi")
    with pytest.raises(tc.BudgetSpent):
        session.select([gives(1, epsilon=0.001), gives(2, epsilon=0.1)], k=2)
    assert len(session.select([gives(1, epsilon=0.001), gives(2, epsilon=0.01)], k=2)) == 2


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_k_may_be_a_numpy_integer(meter, tmp_path):
    with opened(meter=meter, ledger=tmp_path / "ledger.db") as session:
        assert chosen(session.select([gives(1), gives(2)], k=np.int64(2))) == [(1, 2), (0, 1)]
        with pytest.raises(tc.ComputationFailed):
            session.select([gives(1), gives(None)], k=np.int64(2))
        assert session.meter.hits == 4


def test_the_number_of_clusters_is_found_by_a_gap_in_private_cost():
    costs = [-900, -300, -280, -275]
    answers = opened(9).select(
        [gives((cost, clusters)) for clusters, cost in enumerate(costs, 1)], k=4, stop=gap(50)
    )
    assert [answer.outcome[1] for answer in answers] == [4, 3, 2]
