"""Differences of published numbers: without the offset, with an interval that holds the truth."""

import math

import pandas as pd
import pytest
from tests.sizes import size
from tests.tables.noise import decide

import targetcharge as tc

TABLES = size(40, 1000)
BUDGET = tc.Budget(4.0, 1e-6)
ROWS = pd.DataFrame({"id": range(300), "group": ["a"] * 200 + ["b"] * 100, "worth": [1.5] * 300})
METERS = [{"meter": "exact"}, {"meter": "renyi"}, {"meter": "sparse", "hits": 9}, {"charging": "individual"}]


def opened(**terms):
    return tc.open(
        ROWS, unit="id", budget=BUDGET, **({"query_epsilon": 0.1} if "hits" not in terms else {}), **terms
    )


def both(table):
    return table.watch(None, by="group", keys=["a", "b"], threshold=-(10**6))


@pytest.mark.parametrize("terms", METERS, ids=str)
def test_a_difference_tells_the_noise_of_both_numbers_and_its_interval_holds_the_truth(terms):
    inside, squares = 0, 0.0
    for _ in range(TABLES):
        with opened(**terms) as table:
            compared = both(table).difference("a", "b")
        low, high = compared.interval
        assert low <= compared.value <= high
        inside += low <= 100 <= high
        squares += (compared.value - 100) ** 2
    error = math.sqrt(0.05 * 0.95 / TABLES)
    assert inside / TABLES > 0.95 - 5 * error
    spread = squares / TABLES / compared.standard_deviation**2
    assert 0.2 < spread < 3.5


@pytest.mark.parametrize("offset", [0, 1, -4000, 12_345])
@pytest.mark.parametrize("terms", METERS[:3], ids=str)
def test_no_offset_changes_a_difference(monkeypatch, terms, offset):
    decide(monkeypatch, lambda _: 0)
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: offset)
    with opened(**terms) as table:
        answers = both(table)
        lattice = 100 if terms["meter"] == "sparse" else 2
        assert abs(answers[0].outcome - (200 - offset / lattice)) <= 0.5
        assert answers.difference("a", "b").value == 100
        assert answers.difference("b", "a").value == -100
        again = table.above("group = 'b'", -(10**6))
        assert table.difference(answers[0], again).value == 100
        assert answers.difference(answers[0], "b") == answers.difference("a", answers[1])


@pytest.mark.parametrize("terms", METERS, ids=str)
def test_the_noise_of_a_difference_is_twice_the_fresh_variance(terms):
    with opened(**terms) as table:
        tariff, compared = table.meter.tariff, both(table).difference("a", "b")
    rate = tariff.offset.for_computation(0.1).query_epsilon if terms.get("meter") in ("exact", "renyi") else None
    if rate is not None:
        assert rate == 0.2
        fresh = 2 * math.exp(-0.1) / math.expm1(-0.1) ** 2 / 4  # on half steps
        assert compared.standard_deviation == pytest.approx(math.sqrt(2 * fresh), rel=1e-6)
    elif tariff.offset is None:
        assert compared.standard_deviation == pytest.approx(math.sqrt(2 * math.pi**2 / 6) / 0.1, rel=1e-3)
    else:
        assert compared.standard_deviation < math.sqrt(2) * tariff.offset.standard_deviation


def test_sums_are_compared_in_what_they_are_worth(monkeypatch):
    decide(monkeypatch, lambda _: 3)
    spent = tc.questions.sum("worth", 0, 2, "group = 'a'", grid="0.5")
    other = tc.questions.sum("worth", 0, 2, "group = 'b'", grid="0.5")
    with opened(meter="exact") as table:
        answers = table.ask_many([tc.questions.above(what, -(10**6)) for what in (spent, other)])
        compared = answers.difference(answers[0], answers[1])
        assert compared.interval[0] < compared.value == 150 < compared.interval[1]
        assert compared.value == answers[0].outcome - answers[1].outcome
        count = table.count("group = 'a'")
        with pytest.raises(tc.NotAllowed, match="a unit adds at most as much to both"):
            table.difference(answers[0], count)
        signed = table.above(tc.questions.sum("worth", -2, 2, grid="0.5"), -(10**6))
        with pytest.raises(tc.NotAllowed, match="a unit adds at most as much to both"):
            table.difference(answers[0], signed)


def test_what_has_no_number_is_refused_by_name():
    with opened(meter="exact") as table:
        answers = both(table)
        missed = table.above(None, 10**6)
        top = table.top(None, by="group", keys=["a", "b"], k=2)
        assert top.difference("a", "b").value == top[0].outcome - top[1].outcome
        with pytest.raises(tc.InvalidParameter, match=r"second is .*a published number"):
            table.difference(answers[0], missed)
        with pytest.raises(tc.InvalidParameter, match="first is 'c'; it must be one of these answers"):
            answers.difference("c", "b")
        with pytest.raises(tc.InvalidParameter, match="first is 5; it must be an answer"):
            table.difference(5, missed)
        with pytest.raises(tc.InvalidParameter, match="whose question is known"):
            table.difference(top[0], top[1])
        values = table.distinct_above("group", 1)
        if values.hit:
            with pytest.raises(tc.InvalidParameter, match="distinct values are told by a sketch"):
                table.difference(values, answers[0])
