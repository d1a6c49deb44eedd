"""Sessions with alternatives: several targets, a meter each, one budget."""

from __future__ import annotations

import math

import pytest
from tests.sessions.scripted import EPSILON, gives

import targetcharge as tc
from targetcharge.accounting import exact_hits
from targetcharge.numerics.rounding import from_grains

BUDGET = tc.Budget(4.0, 1e-6)
RARE = tc.QTarget(0.4, frozenset({"rare"}))


def rivals(meter="exact", budget=BUDGET, **options):
    return tc.Session(None, budget, EPSILON, meter=meter, alternatives=[tc.NotPrior(0), tc.NotPrior(1)], **options)


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_each_meter_is_charged_for_its_own_hits(meter):
    session = rivals(meter)
    answers = [session.ask(gives(outcome)) for outcome in (0, 1, 2)]
    assert [answer.meters_hit for answer in answers] == [(False, True), (True, False), (True, True)]
    assert [answer.hit for answer in answers] == [True, True, True]
    assert [each.hits for each in session.meters] == [2, 2]


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_the_session_goes_on_until_all_meters_are_spent(meter):
    session = rivals(meter)
    first, second = (each.hits_left for each in session.meters)
    for _ in range(first + 5):
        session.ask(gives(1))
    assert session.meters[0].hits_left == 0
    assert session.meters[1].hits_left == second
    for _ in range(second):
        session.ask(gives(0))
    assert [each.hits_left for each in session.meters] == [0, 0]
    with pytest.raises(tc.BudgetSpent):
        session.ask(gives(0))


def test_each_exact_meter_has_half_of_delta():
    session = rivals()
    assert session.meters[0].tariff.capacity == exact_hits(EPSILON, tc.Budget(4.0, 0.5e-6))
    assert session.meters[0].tariff.capacity < exact_hits(EPSILON, BUDGET)
    assert session.meter.guarantee == BUDGET


def test_each_renyi_meter_has_the_logarithm_of_their_number_less():
    session = rivals("renyi")
    order = session.meter.tariff.order
    alone = tc.accounting.Meter.renyi(BUDGET, EPSILON, order=order)
    less = from_grains(alone.tariff.capacity) - from_grains(session.meter.tariff.capacity)
    assert less == pytest.approx(math.log(2), abs=1e-9)
    assert [meter.tariff.order for meter in session.meters] == [order, order]


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_targets_of_different_kinds_have_different_prices(meter):
    session = tc.Session(None, tc.Budget(9.0, 1e-6), EPSILON, meter=meter, alternatives=[RARE, tc.Everything()])
    algorithm = gives("rare", "often", targets=(RARE, tc.Everything))
    both, one = session.ask(algorithm), session.ask(algorithm)
    quotes = [
        each.quote(target, EPSILON) for each, target in zip(session.meters, (RARE, tc.Everything()), strict=True)
    ]
    assert both.grains == tuple(quote.grains for quote in quotes)
    assert one.grains == (0, quotes[1].grains)
    assert both.price == max(quote.value for quote in quotes)
    assert [each.hits for each in session.meters] == [1, 2]


def test_an_outcome_that_equals_a_prior_is_published_as_that_prior():
    answers = [rivals().ask(gives(outcome)) for outcome in (False, 1.0)]
    assert [repr(answer.outcome) for answer in answers] == ["0", "1"]


@pytest.mark.parametrize(
    "call",
    [
        lambda session: session.test(gives(True)),
        lambda session: session.ask_prior(gives(True), 0),
        lambda session: session.release(gives(True), {True}),
        lambda session: session.select([gives(1)]),
        lambda session: session.ask(gives(True), tc.NotPrior(0)),
    ],
    ids=["test", "ask_prior", "release", "select", "ask with a target"],
)
def test_other_calls_are_refused_by_name(call):
    session = rivals()
    with pytest.raises(tc.NotAllowed, match="this session has alternatives"):
        call(session)
    assert [meter.hits for meter in session.meters] == [0, 0]


def test_an_algorithm_must_support_all_alternatives():
    session = tc.Session(None, BUDGET, EPSILON, alternatives=[tc.NotPrior(0), RARE])
    with pytest.raises(tc.NotAllowed, match=r"scripted does not support QTarget\(0.4"):
        session.ask(gives(0))


def test_a_failure_is_spent_on_every_meter():
    session = rivals()
    with pytest.raises(tc.ComputationFailed):
        session.ask(gives(ValueError()))
    assert [meter.hits for meter in session.meters] == [1, 1]


def test_alternatives_with_a_delta_of_their_own_and_a_file_survive_a_restart(tmp_path):
    options = {"ledger": tmp_path / "ledger.db", "computation_delta": 2e-7}
    with rivals("renyi", **options) as session:
        session.ask(gives(0, delta=1e-7))
        before = [meter.totals for meter in session.meters]
    with rivals("renyi", **options) as session:
        assert [meter.totals for meter in session.meters] == before
        assert session.meter.delta_left == pytest.approx(1e-7)
        assert session.transcript[0].meters_hit == (False, True)
    with pytest.raises(tc.NotAllowed, match="alternatives was"):
        tc.Session(None, BUDGET, EPSILON, meter="renyi", **options)
