"""Sessions with an offset at λ = ½: counts that are declared monotone carry it, all else is as it was."""

import math

import numpy as np
import pytest
from tests.discrete_laplace import DiscreteLaplace
from tests.refusals import every
from tests.tables.noise import decide

import targetcharge as tc
from targetcharge.accounting import OffsetNoise, exact_hits
from targetcharge.mechanisms import (
    above_threshold,
    batch_by_key,
    between_thresholds,
    changed,
    noisy_count,
    side_of_threshold,
)
from targetcharge.mechanisms.algorithm import batch_algorithm
from targetcharge.mechanisms.batch import Batch, Requests
from targetcharge.mechanisms.noise import Carried
from targetcharge.sessions.priced import session_noise

BUDGET = tc.Budget(3.0, 1e-6)
PEOPLE = range(500)
OFFSET, QUERY = 0.4, 0.1


def opened(budget=BUDGET, **given):
    return tc.Session(PEOPLE, budget, QUERY, offset_epsilon=OFFSET, **given)


def count(make=noisy_count, *given, **more):
    return make(len, *given, QUERY, monotone=True, **more)


@pytest.fixture
def silent(monkeypatch):
    """Draw no noise, and the offset 31: it lowers every count by 15.5."""
    decide(monkeypatch, lambda _: 0)
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: 31)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_every_tool_sees_a_monotone_count_less_the_offset_rounded_down(meter):
    targets = [tc.NotPrior(None), tc.Disagreement(), tc.Between(480, 490)]
    with opened(
        tc.Budget(30.0, 1e-6), meter=meter, **({"targets": targets} if meter == "exact" else {})
    ) as session:
        assert session.ask(count(), tc.NotPrior(None)).outcome == 484  # 500 - 15.5
        assert session.ask(noisy_count(len, QUERY), tc.NotPrior(None)).outcome == 500  # not declared
        assert session.ask(count(above_threshold, 484)).outcome == 484
        assert session.ask(count(above_threshold, 485)).outcome is None
        assert session.test(count(above_threshold, 484)).outcome is True
        assert session.ask(count(changed, 480, 4)).outcome is tc.UNCHANGED
        assert session.ask(count(side_of_threshold, 485)).outcome is tc.Side.BELOW
        assert session.ask(count(between_thresholds, 480, 490)).outcome is tc.Side.BETWEEN
        assert session.ask(tc.twice(count(side_of_threshold, 485))).outcome == (tc.Side.BELOW, tc.Side.BELOW)
        assert session.ask(tc.agreement(count(side_of_threshold, 484))).outcome is tc.Side.ABOVE
        assert session.release(count(), {484}).released
        pending = session.release(count(), lambda outcome: outcome > 490)
        assert not pending.released
        batch = batch_by_key(lambda rows: [len(rows), 3], ["all", "few"], 484, QUERY, monotone=True)
        assert [answer.outcome for answer in session.ask_each(batch)] == [484, None]
        if meter == "renyi":
            assert session.ask(tc.boundary(count(side_of_threshold, 300))).outcome is tc.Side.ABOVE
            marked = session.ask(tc.boundary(count(between_thresholds, 480, 490)))
            assert marked.outcome in (*tc.Side, tc.BOUNDARY)


@pytest.mark.usefixtures("silent")
def test_sensitivities_carry_multiples_of_the_offset():
    with opened() as session:
        for sensitivity, expected in ((1, 484), (2, 469), (3, 453), (10, 345)):
            asked = noisy_count(len, QUERY, sensitivity=sensitivity, monotone=True)
            assert session.ask(asked, tc.NotPrior(None)).outcome == expected  # 500 - 15.5·Δ, rounded down


def test_the_meter_pays_for_the_first_move_once():
    natural = exact_hits(QUERY, BUDGET)
    with opened() as session:
        assert session.meter.hits_left <= natural
        epsilon = tc.accounting.offset_epsilon(OFFSET, 2 * QUERY, session.meter.hits_left, BUDGET.delta)
        assert epsilon <= BUDGET.epsilon
        assert tc.accounting.offset_epsilon(OFFSET, 2 * QUERY, session.meter.hits_left + 1, BUDGET.delta) > 3.0
        with tc.Session(PEOPLE, BUDGET, QUERY) as plain:
            assert session.meter.odometer().epsilon > plain.meter.odometer().epsilon  # before any hit
    with opened(meter="renyi") as session, tc.Session(PEOPLE, BUDGET, QUERY, meter="renyi") as plain:
        tariff = session.meter.tariff
        x = 1 / (1 + math.exp(-OFFSET / 2))
        power = (tariff.order - 1) * OFFSET / 2
        first = math.log(x * math.exp(power) + (1 - x) * math.exp(-power))
        room = (plain.meter.tariff.capacity - tariff.capacity) / 2.0**128
        assert room == pytest.approx(first, rel=1e-9)


def test_a_wrapper_looks_at_the_number_that_is_drawn():
    """The mark of the boundary wrapper depends on the count less its share of the offset, and the fresh noise."""
    with opened(meter="renyi") as session:
        inner = session.drawn(count(side_of_threshold, 500))
        law = DiscreteLaplace.of(session_noise(session.meter.tariff, QUERY)(1).rate)
        for offset in (-40, -3, 0, 2, 7, 55):
            below = 1 - law.at_least(offset)  # 2·500 - offset + noise is below 2·500
            data = Carried(PEOPLE, offset)
            assert inner.oracle.probability(data, tc.Side.BELOW) == pytest.approx(below, rel=1e-9)
            assert inner.oracle.rest(data) == pytest.approx(min(below, 1 - below), rel=1e-9)


def test_the_noise_beside_an_offset_is_half_as_wide():
    with opened() as session, tc.Session(PEOPLE, BUDGET, QUERY) as plain:
        carried, alone = session.ask(count(above_threshold, 10**6)), plain.ask(count(above_threshold, 10**6))
        law = OffsetNoise(OFFSET, 2 * QUERY)
        assert carried.scale == pytest.approx(law.standard_deviation / math.sqrt(2))
        assert carried.scale < 0.65 * alone.scale
        assert carried.interval[1] < alone.interval[1]


def test_a_ledger_keeps_the_offset_and_a_call_that_leaves_it_out_takes_it(tmp_path, monkeypatch):
    decide(monkeypatch, lambda _: 0)
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: 9)
    path = tmp_path / "s.db"
    with opened(ledger=path) as session:
        assert session.ask(count(), tc.NotPrior(None)).outcome == 495
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: 1000)
    for given in ({"offset_epsilon": OFFSET}, {}, {"hits": 1}):
        with tc.Session(PEOPLE, BUDGET, QUERY, ledger=path, **given) as session:
            assert session.ask(count(), tc.NotPrior(None)).outcome == 495
    with pytest.raises(tc.NotAllowed, match=r"offset was laplace with rate 0\.4 .* and is laplace with rate 0\.5"):
        tc.Session(PEOPLE, BUDGET, QUERY, ledger=path, offset_epsilon=0.5)
    with pytest.raises(tc.NotAllowed, match="meter was 'exact' and is 'renyi'"):
        tc.Session(PEOPLE, BUDGET, QUERY, ledger=path, meter="renyi")


def test_a_ledger_without_an_offset_never_gets_one(tmp_path):
    path = tmp_path / "s.db"
    tc.Session(PEOPLE, BUDGET, QUERY, ledger=path).close()
    with pytest.raises(tc.InvalidParameter, match="the ledger was made without one"):
        opened(ledger=path)
    with tc.Session(PEOPLE, BUDGET, QUERY, ledger=path) as session:
        assert session.meter.tariff.offset is None


def test_each_alternative_pays_for_the_first_move(monkeypatch):
    decide(monkeypatch, lambda _: 0)
    rivals = [tc.NotPrior(None), tc.NotPrior(tc.UNCHANGED)]
    with opened(alternatives=rivals) as session, tc.Session(PEOPLE, BUDGET, QUERY, alternatives=rivals) as plain:
        for with_offset, without in zip(session.meters, plain.meters, strict=True):
            assert with_offset.hits_left <= without.hits_left
        assert session.ask(count(above_threshold, 400)).outcome == 500


def test_hits_choose_the_query_epsilon_without_an_offset():
    for meter in ("exact", "renyi"):
        with tc.Session(PEOPLE, BUDGET, hits=12, meter=meter) as session:
            assert session.meter.hits_left >= 12
            assert session.meter.tariff.offset is None


def test_what_makes_no_sense_is_refused_by_name():
    def check(given, words):
        with pytest.raises(tc.InvalidParameter, match=words):
            tc.Session(PEOPLE, BUDGET, **given)

    every(
        [
            ({"query_epsilon": QUERY, "offset_epsilon": 0}, "offset_epsilon is 0; it must be a number from"),
            ({"query_epsilon": QUERY, "offset_epsilon": -1}, "offset_epsilon is -1;"),
            ({"query_epsilon": QUERY, "offset_epsilon": math.nan}, "offset_epsilon is nan;"),
            ({"query_epsilon": QUERY, "offset_epsilon": "much"}, "offset_epsilon is 'much';"),
            ({"query_epsilon": QUERY, "offset_epsilon": 3.5}, "at most the budget's epsilon, 3"),
            ({"offset_epsilon": 0.3}, "query_epsilon is None; it must be given where offset_epsilon is"),
            ({"meter": "sparse", "hits": 3, "offset_epsilon": 0.3}, "a sparse meter chooses its offset"),
            ({"query_epsilon": 6.0, "offset_epsilon": 0.3}, "query_epsilon is 6.0; it must be at most"),
            ({"query_epsilon": QUERY, "hits": 10**6}, "hits is 1000000; it must be at most 7 at query ε 0.1"),
            ({"query_epsilon": QUERY, "hits": 0}, "hits is 0;"),
            ({"query_epsilon": QUERY, "hits": 8, "offset_epsilon": 0.1}, "hits is 8; it must be fewer at query"),
        ],
        check,
    )
    with pytest.raises(tc.InvalidParameter, match="sensitivity is -1"):
        noisy_count(len, QUERY, sensitivity=-1, monotone=True)
    with pytest.raises(tc.InvalidParameter, match="monotone is 1"):
        noisy_count(len, QUERY, monotone=1)


def test_what_carries_no_offset_never_sees_it():
    seen = []

    def draw(data, _entropy, first, last):
        seen.append(data)
        return np.zeros(last - first, np.intp), np.zeros(last - first, np.bool_)

    @tc.private(epsilon=QUERY)
    def look(data):
        seen.append(data)
        return False

    asked = Batch((batch_algorithm("labels", QUERY, tc.NotPrior(0)),), range(5), Requests((0, 1), draw))
    with opened() as session:
        list(session.ask_each(asked))
        session.test(look)
        session.select([tc.private(epsilon=QUERY)(lambda data: seen.append(data) or 1)])
        session.release(tc.private(epsilon=QUERY)(lambda data: seen.append(data) or 1), {2})
        plain = batch_by_key(lambda data: seen.append(data) or [1], ["a"], 5, QUERY)
        list(session.ask_each(plain))
    assert len(seen) == 5
    assert all(data is PEOPLE for data in seen)
