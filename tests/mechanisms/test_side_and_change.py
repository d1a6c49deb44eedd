"""Sides and changes in sessions: free while nothing happens, paid once it does, and kept as they were."""

import math

import numpy as np
import pytest
from tests.accounting.neighbours import needed_price, order_at
from tests.goodness import drawn
from tests.sessions.scripted import EPSILON, budget_of, opened

import targetcharge as tc
from targetcharge.ledger.entries import from_plain, to_plain
from targetcharge.mechanisms import changed, side_of_threshold

SIDES = (tc.Side.BELOW, tc.Side.ABOVE)


def itself(data):
    return data


# What they declare.


def test_declarations():
    side, change = side_of_threshold(itself, 5, 0.3), changed(itself, 5, 1, 0.3)
    assert (side.name, side.epsilon, side.delta) == ("side_of_threshold(itself)", 0.3, 0.0)
    assert (change.name, change.epsilon, change.delta) == ("changed(itself)", 0.3, 0.0)
    assert side.default_target == tc.NotPrior(tc.Side.BELOW)
    assert change.default_target == tc.NotPrior(tc.UNCHANGED)
    for algorithm in (side, change):
        assert algorithm.supports(tc.NotPrior(3))
        assert algorithm.supports(tc.Everything())
        others = (tc.Between(5, 6), tc.Boundary(), tc.Disagreement(), tc.QTarget(0.3, {1}))
        assert not any(algorithm.supports(target) for target in others)
    assert side_of_threshold(itself, 5, 0.3, name="full").name == "full"
    assert changed(itself, 5, 1, 0.3, name="beds").name == "beds"


def test_a_tolerance_that_no_integer_meets_names_the_least_that_one_does():
    with pytest.raises(tc.InvalidParameter, match=r"tolerance is 0\.2; it must be at least 0\.25: .* 7\.75"):
        changed(itself, 7.75, 0.2, 0.3)
    changed(itself, 7.75, 0.25, 0.3)


@pytest.mark.parametrize("prior", [np.int64(7), np.float32(7), np.uint8(7), 7.0, 7])
def test_priors_of_all_kinds(prior):
    algorithm = changed(itself, prior, np.int8(100), 1.0)
    assert algorithm.run(7, tc.randomness.SystemEntropy()) is tc.UNCHANGED


# Sessions.


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_a_count_that_stays_is_free_and_one_that_moves_is_paid(meter):
    session = opened(5, data=1000, meter=meter)
    stays = changed(itself, 1010, 600, EPSILON)
    answers = [session.ask(stays) for _ in range(50)]
    assert {(answer.outcome, answer.hit, answer.price) for answer in answers} == {(tc.UNCHANGED, False, 0.0)}
    assert session.meter.hits == 0
    moved = session.ask(changed(itself, 0, 400, EPSILON))
    assert moved.hit
    assert abs(moved.outcome - 1000) < 500
    assert moved.price > 0
    small = session.ask(changed(itself, 3000, 600, EPSILON, threshold=2000))
    assert (small.outcome, small.hit) == (None, True)
    assert session.meter.hits == 2
    assert session.test(stays).outcome is False
    assert session.test(changed(itself, 0, 400, EPSILON)).outcome is True
    assert session.meter.hits == 3


def test_an_earlier_answer_is_the_next_prior():
    session = opened(5, data=1000)
    first = session.ask(changed(itself, 0, 400, EPSILON))
    assert session.ask(changed(itself, first.outcome, 600, EPSILON)).outcome is tc.UNCHANGED


def test_a_side_far_from_the_threshold_is_free_both_ways_behind_the_boundary():
    session = opened(5, data=1000, meter="renyi")
    for threshold, side in ((0, tc.Side.ABOVE), (2000, tc.Side.BELOW)):
        far = tc.boundary(side_of_threshold(itself, threshold, EPSILON))
        answers = [session.ask(far) for _ in range(50)]
        assert {(answer.outcome, answer.price) for answer in answers} == {(side, 0.0)}
    assert session.meter.hits == 0
    assert session.ask(side_of_threshold(itself, 0, EPSILON)).hit


def test_a_side_near_the_threshold_is_marked_and_paid():
    session = opened(5, data=1000, meter="renyi")
    near = tc.boundary(side_of_threshold(itself, 1000, EPSILON))
    marked = next(answer for answer in (session.ask(near) for _ in range(200)) if answer.hit)
    assert marked.outcome is tc.BOUNDARY
    assert marked.price == tc.Boundary().price(session.meter.tariff.order, EPSILON)


def test_the_transcript_of_a_reopened_ledger_has_the_mark(tmp_path):
    def reopened():
        return tc.Session(1000, budget_of(5), EPSILON, ledger=tmp_path / "ledger.db")

    with reopened() as session:
        session.ask(changed(itself, 1000, 600, EPSILON))
        session.ask(changed(itself, 0, 400, EPSILON))
    with reopened() as session:
        outcomes = [answer.outcome for answer in session.transcript]
        assert outcomes[0] is tc.UNCHANGED
        assert type(outcomes[1]) is int
        assert [answer.targets for answer in session.transcript] == [(("NotPrior", tc.UNCHANGED),)] * 2


def test_the_mark_is_plain_data_and_back():
    assert to_plain((tc.UNCHANGED, tc.BOUNDARY)) == [{"mark": "unchanged"}, {"mark": "boundary"}]
    assert from_plain({"mark": "unchanged"}) is tc.UNCHANGED
    assert repr(tc.UNCHANGED) == "UNCHANGED"


def test_a_pending_change_is_released_when_a_condition_allows_it():
    session = opened(5, data=1000)
    release = session.release(changed(itself, 1000, 600, EPSILON), lambda outcome: outcome > 0)
    assert not release.released  # UNCHANGED > 0 raises, which counts as false
    assert release.revise({tc.UNCHANGED}).outcome is tc.UNCHANGED


# What the boundary costs with them.


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("sensitivity", [1, 4])
def test_the_price_of_boundary_covers_sides(epsilon, sensitivity):
    side = side_of_threshold(itself, 0.5, epsilon, sensitivity=sensitivity)
    reach = math.ceil(15 * sensitivity / epsilon)
    published = []
    for count in range(-reach, reach):
        rest = side.oracle.rest(count)
        mark = min(1 / 3, rest / (1 + rest))
        published.append([mark, *((1 - mark) * side.oracle.probability(count, one) for one in SIDES)])
    laws = np.array(published)
    members = np.array([True, False, False])
    for fraction in (0.01, 0.3, 0.9, 0.999):
        order = order_at(tc.Boundary(), epsilon, fraction)
        for step in range(1, sensitivity + 1):
            needed = needed_price(laws[:-step], laws[step:], members, order).max()
            assert 0 < needed <= tc.Boundary().price(order, epsilon)


def test_a_sure_change_or_none_is_never_marked():
    unchanged = tc.boundary(changed(itself, 0, 10**5, 1.0))
    assert drawn(unchanged, 0, 2000) == {tc.UNCHANGED: 2000}
    nothing = tc.boundary(changed(itself, 10**6, 9, 1.0, threshold=10**5))
    assert drawn(nothing, 0, 2000) == {None: 2000}
