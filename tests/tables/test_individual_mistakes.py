"""What cannot be asked is refused by name, before anything is drawn or charged, whoever has the budget."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.refusals import every
from tests.sessions.scripted import budget_of
from tests.tables.individuals import EPSILON, opened
from tests.tables.noise import silence

import targetcharge as tc

FRAME = pd.DataFrame({"unit": range(30), "week": [0, 1, 2] * 10, "fee": 1.5})
CHARGING = ("shared", "individual")

NO_NUMBERS = {
    "nan": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "object": object(),
    "text": "5",
    "bytes": b"5",
    "none": None,
    "bool": True,
    "list": [5],
    "huge": 10**400,
    "very huge": 10**5000,
    "complex": 5j,
    "numpy nan": np.float64("nan"),
}

ASKING = {
    "above": ("threshold", lambda t, it: t.above(None, it)),
    "above with a prior": ("threshold", lambda t, it: t.above(None, it, prior=5, tolerance=0)),
    "low": ("low", lambda t, it: t.between(None, it, 10)),
    "high": ("high", lambda t, it: t.between(None, 5, it)),
    "side": ("threshold", lambda t, it: t.side(None, it)),
    "sum": ("threshold", lambda t, it: t.sum_above("fee", 0, 5, threshold=it)),
    "lower": ("lower", lambda t, it: t.sum_above("fee", it, 5, threshold=3)),
    "upper": ("upper", lambda t, it: t.sum_above("fee", 0, it, threshold=3)),
    "watch": ("threshold", lambda t, it: t.watch(None, "week", [0], it)),
    "iter_watch": ("threshold", lambda t, it: t.iter_watch(None, "week", [0], it)),
    "many": ("threshold", lambda t, it: t.ask_many([tc.questions.above(None, it)])),
    "many, not the first": (
        "threshold",
        lambda t, it: t.ask_many([tc.questions.above(None, 5), tc.questions.above(None, it)]),
    ),
    "k": ("k", lambda t, it: t.top(None, "week", [0, 1], it)),
}


@pytest.fixture(params=CHARGING)
def table(request):
    with opened(FRAME, 9, meter="renyi", charging=request.param) as t:
        yield t


def test_what_is_no_number_is_refused_by_name(table):
    def is_refused(name, ask, value):
        with pytest.raises(tc.InvalidParameter) as refusal:
            ask(table, value)
        assert refusal.value.name == name
        assert (list(table.transcript), table.meter.hits) == ([], 0)

    every(
        {
            f"{asked} with {kind}": (*ASKING[asked], value)
            for asked, (kind, value) in itertools.product(ASKING, NO_NUMBERS.items())
        },
        is_refused,
    )


FRACTIONS = {
    "above": lambda t, it: t.above(None, it),
    "between": lambda t, it: t.between(None, it, 10 * it),
    "side": lambda t, it: t.side(None, it),
    "sum": lambda t, it: t.sum_above("fee", 0, 5, threshold=it),
    "bounds": lambda t, it: t.sum_above("fee", -it, it, threshold=3),
    "grid": lambda t, it: t.sum_above("fee", 0, 5, threshold=3, grid=it),
    "watch": lambda t, it: t.watch(None, "week", [0], it),
    "many": lambda t, it: t.ask_many([tc.questions.above(None, it)] * 2),
}


@pytest.mark.parametrize("value", [Fraction(7, 2), np.float64(3.5), np.float32(3.5)], ids=repr)
@pytest.mark.parametrize("ask", FRACTIONS.values(), ids=FRACTIONS)
def test_every_kind_of_number_that_is_one_can_be_asked_with(monkeypatch, table, ask, value):
    """They could before questions were kept in the transcript: as with the same number as one of Python's own."""
    silence(monkeypatch)
    monkeypatch.setattr("targetcharge.mechanisms.wrappers.bernoulli", lambda *_: False)
    for it in (value, 3.5):
        ask(table, it)
    answers = list(table.transcript)
    half = len(answers) // 2
    assert [answer.outcome for answer in answers[:half]] == [answer.outcome for answer in answers[half:]]


# Opening.


@pytest.mark.parametrize("value", ["other", "", "Individual", True, 1])
def test_charging_is_one_of_two_words(value):
    with pytest.raises(tc.InvalidParameter, match="charging is") as refusal:
        opened(FRAME, charging=value)
    assert refusal.value.name == "charging"


def test_alternatives_are_for_shared_budgets():
    for meter in ("exact", "renyi"):
        with pytest.raises(tc.InvalidParameter) as refusal:
            opened(FRAME, meter=meter, targets=None, alternatives=[tc.NotPrior(1), tc.NotPrior(2)])
        assert refusal.value.name == "alternatives"


@pytest.mark.parametrize("first", CHARGING)
def test_a_ledger_is_for_one_kind_of_charging(tmp_path, first):
    second = CHARGING[1 - CHARGING.index(first)]
    path = tmp_path / "ledger.db"
    with opened(FRAME, charging=first, ledger=path) as t:
        t.count()
    for new_data in (False, True):
        with pytest.raises(tc.NotAllowed, match=f"charging was '{first}' and is '{second}'"):
            opened(FRAME, charging=second, ledger=path, new_data=new_data)
    with opened(FRAME, charging=first, ledger=path) as t:
        assert t.meter.hits == 1


def test_distinct_values_are_for_shared_budgets():
    distinct = tc.questions.distinct("week")
    with opened(FRAME) as t:
        for ask in (
            lambda: t.distinct_above("week", 2),
            lambda: t.above(distinct, 2),
            lambda: t.ask(tc.questions.above(distinct, 2)),
            lambda: t.ask_many([tc.questions.above(None, 2), tc.questions.above(distinct, 2)]),
        ):
            with pytest.raises(tc.NotAllowed, match="distinct"):
                ask()
        assert (list(t.transcript), t.meter.hits) == ([], 0)


def test_a_budget_that_buys_nobody_a_hit_is_refused():
    with pytest.raises(tc.InvalidParameter, match="one hit costs"):
        opened(FRAME, budget=tc.Budget(0.5, 1e-6))


def test_hits_left_are_those_of_each_unit_and_hits_those_that_were_published(monkeypatch):
    silence(monkeypatch)
    with opened(FRAME, 3) as t:
        for number in range(8):
            assert (t.meter.hits, t.meter.hits_left) == (number, 3)
            t.count()
        assert t.meter.guarantee == budget_of(3, EPSILON)
        assert t.meter.odometer().hits == 8
