"""Opening by what is wanted: hits, or nothing but a budget; which meter that is, and what is said of its noise."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from tests.goodness import APART, BufferedEntropy
from tests.offset_noise import noise_of
from tests.refusals import every
from tests.sizes import size, spread
from tests.tables.always_paid import seeded
from tests.tables.anew import anew
from tests.tables.tiny import quick

import targetcharge as tc
from targetcharge.mechanisms.noise import Carried, draw_offset
from targetcharge.sessions import opening
from targetcharge.tables import Monitor, Rule
from targetcharge.tables import questions as q
from targetcharge.tables.monitor.monitor import opening_for
from targetcharge.tables.opening import TableOpening

FRAME = pd.DataFrame(
    {
        "u": range(300),
        "week": [place % 3 for place in range(300)],
        "fee": [place % 9 - 2.5 for place in range(300)],
    }
)
BUDGET = tc.Budget(3.0, 1e-6)
SURE = -(10**9)
"""A threshold that every number is above."""

METERS = {
    "sparse": {},
    "pure": {"budget": tc.Budget(3.0, 0.0)},
    "exact": {"meter": "exact"},
    "renyi": {"meter": "renyi"},
    "individual": {"charging": "individual"},
    "individual, any target": {"charging": "individual", "targets": tc.NotPrior(None)},
    "individual, renyi": {"charging": "individual", "meter": "renyi"},
}
EACH = pytest.mark.parametrize("name", METERS)
SHARED = ("sparse", "pure", "exact", "renyi")


def opened(name="sparse", source=None, **options):
    given = {"budget": BUDGET} | METERS[name] | options
    return anew(tc.open(FRAME if source is None else source, "u", **given))


# What is said, and how.


def test_all_that_follows_the_budget_is_said_by_name():
    parameters = list(inspect.signature(tc.open).parameters.values())
    assert [parameter.name for parameter in parameters[:3]] == ["source", "unit", "budget"]
    assert [parameter.name for parameter in parameters[3:6]] == ["hits", "query_epsilon", "meter"]
    assert {parameter.kind for parameter in parameters[3:]} == {inspect.Parameter.KEYWORD_ONLY}
    assert [field.name for field in fields(TableOpening)][:-1] == [parameter.name for parameter in parameters]
    with pytest.raises(TypeError, match="positional"):
        tc.open(FRAME, "u", BUDGET, 20)


@EACH
@pytest.mark.parametrize("hits", [1, 3, 20])
def test_so_many_hits_are_covered_and_no_more(name, hits):
    with opened(name, hits=hits) as t:
        assert t.meter.hits_left == hits
        for _ in range(hits):
            assert everybody(t) == 300
            assert t.above(None, SURE).hit
        if name in SHARED:
            with pytest.raises(tc.BudgetSpent):
                t.above(None, SURE)
            assert (t.meter.hits, t.meter.hits_left) == (hits, 0)
        else:
            assert everybody(t) == 0  # all have spent theirs


def everybody(t):
    """Return how many units take part in a question."""
    found, asked = [], t.prepare(q.above(None, SURE))
    t._session.up_to_date(lambda: found.append(t._numbers.one(asked)))
    return found[0]


@EACH
def test_the_noise_grows_with_the_hits(name):
    deviations = []
    for hits in (1, 5, 10, 25):
        with opened(name, hits=hits) as t:
            deviations.append(t.describe().standard_deviation)
    assert deviations == sorted(set(deviations))
    assert deviations[-1] < 26 * deviations[0]


@EACH
def test_hits_that_make_no_sense_are_refused_by_name(name):
    def refused(hits):
        with pytest.raises(tc.InvalidParameter) as refusal:
            opened(name, hits=hits)
        assert (refusal.value.name, refusal.value.value) == ("hits", hits)

    every([0, -1, 1.5, True, "20", 10**16], refused)


@pytest.mark.parametrize("name", SHARED)
def test_hits_and_a_query_epsilon_are_both_kept_where_the_budget_covers_them(name):
    if name == "pure":
        with pytest.raises(tc.InvalidParameter, match="where delta is 0: give hits") as refusal:
            opened(name, hits=5, query_epsilon=0.1)
        assert refusal.value.name == "query_epsilon"
        return
    with opened(name, hits=5, query_epsilon=0.1) as t:
        assert t.meter.hits_left >= 5
        assert t.describe().query_epsilon == 0.1
    with pytest.raises(tc.InvalidParameter) as refusal:
        opened(name, hits=200, query_epsilon=0.1)
    assert refusal.value.name == ("query_epsilon" if name == "sparse" else "hits")


# Nothing but a budget.

EPSILONS, DELTAS = (0.1, 0.3, 1.0, 3.0, 10.0), (0.0, 1e-12, 1e-9, 1e-6, 1e-3)
BUDGETS = list(itertools.product(EPSILONS, DELTAS))
SPREAD = spread(BUDGETS, 7)
"""Every ε and every δ is among them, also in a quick run."""


@pytest.mark.parametrize("name", [name for name in METERS if name != "pure"])
def test_no_sensible_budget_is_refused_and_each_buys_ten_hits(name):
    assert [set(figures) for figures in zip(*SPREAD, strict=True)] == [set(EPSILONS), set(DELTAS)]

    def check(epsilon, delta):
        budget = tc.Budget(epsilon, delta)
        if delta == 0 and name != "sparse":
            with pytest.raises(tc.InvalidParameter, match="with delta 0 misses are free on a table") as refusal:
                opened(name, budget=budget)
            assert refusal.value.name == "delta"
            return
        with opened(name, budget=budget) as t:
            assert t.meter.guarantee == budget
            assert t.meter.hits_left >= 10
            for _ in range(10):
                assert t.above(None, SURE).hit
            assert t.meter.hits == 10
            # The least noise of one answer at this ε, times ten, is more than what ten hits need.
            assert t.describe().standard_deviation < 100 / epsilon

    every(SPREAD, check)


@pytest.mark.parametrize("name", ["exact", "renyi"])
def test_ten_hits_of_what_is_declared_are_bought_too(name):
    for targets in ([tc.Between(90, 110)], [tc.NotPrior(5), tc.Everything()], tc.Everything()):
        with opened(name, targets=targets) as t:
            assert t.meter.hits_left >= 10
    with opened(name, alternatives=[tc.NotPrior(None), tc.Everything()]) as t:
        assert min(meter.hits_left for meter in t.meters) >= 10


# Which meter.


def test_auto_takes_the_meter_with_the_least_noise_that_takes_what_is_said():

    def check(options, meter):
        with tc.open(FRAME, "u", **({"budget": BUDGET} | options)) as t:
            assert t.meter.tariff.name == meter

    assert inspect.signature(tc.open).parameters["meter"].default == "auto"
    expected = {
        "nothing": ({}, "sparse"),
        "hits": ({"hits": 20}, "sparse"),
        "pure": ({"budget": tc.Budget(3.0, 0.0)}, "sparse"),
        "pure, many hits": ({"budget": tc.Budget(3.0, 0.0), "hits": 5000}, "sparse"),
        "said": ({"meter": "auto", "hits": 3}, "sparse"),
        "a query ε": ({"query_epsilon": 0.3}, "sparse"),
        "a query ε and hits": ({"query_epsilon": 0.1, "hits": 15}, "sparse"),
        "individual": ({"charging": "individual"}, "exact"),
        "individual, hits": ({"charging": "individual", "hits": 20}, "exact"),
        "targets": ({"targets": tc.NotPrior(None)}, "exact"),
        "alternatives": ({"alternatives": [tc.NotPrior(None), tc.Everything()]}, "exact"),
        "a query ε that buys hundreds": ({"query_epsilon": 0.03}, "exact"),
        "thousands of hits": ({"hits": 1001}, "exact"),
        "exact": ({"meter": "exact"}, "exact"),
        "renyi": ({"meter": "renyi"}, "renyi"),
    }
    every(expected, check)
    with pytest.raises(tc.InvalidParameter, match="'auto', 'exact', 'renyi', 'sparse'") as refusal:
        tc.open(FRAME, "u", BUDGET, meter="best")
    assert refusal.value.name == "meter"


def test_its_noise_is_indeed_the_least():
    for hits in (1, 10, 25):
        deviations = {}
        for name in ("sparse", "exact", "renyi"):
            with opened(name, hits=hits) as t:
                deviations[name] = t.describe().standard_deviation
        assert deviations["sparse"] < 0.75 * deviations["exact"] < deviations["renyi"]


def test_thousands_of_hits_have_the_noise_of_an_exact_meter():
    """A sparse meter has less, but takes minutes to choose it, and from some thousands on does not find it."""
    with opened(hits=1001) as t, opened("exact", hits=1001) as exact:
        assert t.describe() == exact.describe()


@EACH
def test_auto_keeps_the_meter_of_a_ledger_and_what_it_was_made_for(tmp_path, name):
    ledger = tmp_path / "ledger.db"
    charging = {"charging": "individual"} if "individual" in name else {}
    targets = {"targets": tc.NotPrior(None)} if "any" in name else {}
    budget = METERS[name].get("budget", BUDGET)
    with opened(name, hits=7, ledger=ledger) as t:
        made, noise = t.meter.tariff.name, t.describe()
        t.above(None, SURE)
        assert t.meter.hits == 1
    for hits in (None, 7, 3):
        with tc.open(FRAME, "u", budget, ledger=ledger, hits=hits, **charging, **targets) as t:
            assert (t.meter.tariff.name, t.meter.hits) == (made, 1)
            assert t.meter.hits_left == (7 if charging else 6)
            assert t.describe() == noise
    with pytest.raises(tc.InvalidParameter, match="at most 7, which the ledger was made for") as refusal:
        tc.open(FRAME, "u", budget, ledger=ledger, hits=8, **charging, **targets)
    assert refusal.value.name == "hits"
    others = {"exact", "renyi"} - {made} if charging else {"exact", "renyi", "sparse"} - {made}
    for other in others:
        with pytest.raises(tc.NotAllowed, match=f"meter was '{made}' and is '{other}'"):
            tc.open(FRAME, "u", budget, ledger=ledger, meter=other, **charging, **targets)


# What is said of the noise.


@EACH
def test_the_choice_and_the_noise_are_told_wherever_a_table_is_described(name):
    with opened(name) as t:
        described, meter = t.describe(), t.meter
        made = meter.tariff.name
        deviation = f"{described.standard_deviation:.4g}"
        assert (described.meter, described.charging) == (made, "individual" if "individual" in name else "shared")
        assert f"{made} meter" in str(described)
        assert f"standard deviation {deviation} for a count" in str(described)
        assert f"standard deviation {deviation} for a count" in described._repr_html_()
        assert described.as_dict()["standard_deviation"] == described.standard_deviation
        assert described.as_dict()["meter"] == made
        assert repr(meter).startswith(f"<{made} meter, 0 hits, 10 ")
        assert repr(meter).endswith(f"standard deviation of a count {deviation}>")
        assert f"standard deviation {deviation}" in meter._repr_html_()
        assert made in meter._repr_html_()
        assert meter.standard_deviation == described.standard_deviation
        assert described.common_error == (name in SHARED)
        assert ("a part of it common to all answers" in str(described)) == (name in SHARED)
        if name in SHARED:
            exact = noise_of(meter.tariff.offset, described.query_epsilon).standard_deviation
            assert described.standard_deviation == pytest.approx(exact, rel=1e-4)


DRAWS = size(75_000, 300_000)


@EACH
def test_the_standard_deviation_is_that_of_answers(name):
    """Of 75,000 draws, each with an offset of its own: 5% more or less would be found out."""
    entropy = BufferedEntropy(3)
    with opened(name) as t:
        algorithm = t._session.drawn(t.prepare(q.above(None, SURE)).in_steps(lambda _: 0))
        law, deviation = t.meter.tariff.offset, t.describe().standard_deviation
        offsets = [0 if law is None else draw_offset(entropy, law) for _ in range(DRAWS)]
        drawn = np.array(
            [algorithm.run(Carried(0, rho) if algorithm.carries else 0, entropy) for rho in offsets], float
        )
    drawn -= drawn.mean()
    squares = drawn**2 / deviation**2
    error = squares.std() / math.sqrt(DRAWS)
    rounding = 1 / (12 * deviation**2)  # to whole counts, where a step of the noise is less
    assert abs(squares.mean() - 1) < APART / 2 * error + rounding
    for wrong in (1.05, 1 / 1.05):
        assert abs(squares.mean() * wrong**2 - 1) > APART / 2 * error + rounding


@EACH
def test_so_far_off_are_the_answers_of_tables_too(monkeypatch, name):
    """Of some hundred real tables, each with a ledger of its own."""
    seeded(monkeypatch, 5)
    monkeypatch.setattr(opening, "rates", functools.cache(opening.rates))
    tables, found = size(400, 4000), []
    with quick(monkeypatch):
        for _ in range(tables):
            with opened(name) as t:
                found.append(t.above(None, SURE).outcome - 300)
                deviation = t.meter.standard_deviation
    squares = (np.array(found) / deviation) ** 2
    error = squares.std() / math.sqrt(tables)
    assert abs(squares.mean() - 1) < 6 * error
    assert error < 0.2


# Monitors.

ANEW = Rule("many", threshold=100, anew=True)
RULES = {
    "anew": ([ANEW], "sparse"),
    "anew, by keys": ([Rule("weeks", threshold=50, anew=True, by="week", keys=[0, 1])], "sparse"),
    "anew, a sum": ([Rule("fees", q.sum("fee", 0, 5), threshold=100, anew=True), ANEW], "sparse"),
    "anew, distinct values": ([Rule("fees", q.distinct("fee"), threshold=5, anew=True)], "sparse"),
    "anew, a sum that may fall": ([ANEW, Rule("fees", q.sum("fee", -5, 5), threshold=100, anew=True)], "exact"),
    "with falls": ([Rule("many", threshold=100)], "exact"),
    "both": ([ANEW, Rule("fall", threshold=100)], "exact"),
    "changes": ([Rule("moved", tolerance="15%")], "exact"),
}


@pytest.mark.parametrize("name", RULES)
def test_a_monitor_opens_with_the_meter_that_takes_its_rules(tmp_path, name):
    rules, meter = RULES[name]
    ledger = tmp_path / "ledger.db"
    with Monitor.open(FRAME, rules, unit="u", budget=BUDGET, ledger=ledger) as monitor:
        assert monitor.table.meter.tariff.name == meter
        assert monitor.table.meter.hits_left >= 10
        assert not monitor.look("2024-01-01").unanswered
        hits = monitor.table.meter.hits
    with Monitor.open(FRAME, rules, unit="u", budget=BUDGET, ledger=ledger, hits=10) as monitor:
        assert (monitor.table.meter.tariff.name, monitor.table.meter.hits) == (meter, hits)
        look = monitor.look("2024-01-02")
        assert not look.unanswered


@pytest.mark.parametrize("name", [name for name in RULES if "distinct" not in name])
def test_a_monitor_with_a_budget_for_every_individual_declares_what_its_rules_need(name):
    rules, meter = RULES[name]
    with Monitor.open(FRAME, rules, unit="u", budget=BUDGET, charging="individual") as monitor:
        tariff = monitor.table.meter.tariff
        assert (tariff.name, tariff.at_least) == ("exact", meter == "sparse")
        assert not monitor.look("2024-01-01").unanswered


def test_what_an_opening_for_rules_adds():
    sparse, exact = RULES["anew"][0], RULES["with falls"][0]
    plain = TableOpening(FRAME, "u", BUDGET)
    assert opening_for(sparse, plain) is plain
    assert opening_for(exact, plain).targets == (tc.NotPrior(None),)
    for said in ({"meter": "renyi"}, {"meter": "sparse"}, {"targets": tc.Everything()}):
        given = TableOpening(FRAME, "u", BUDGET, **said)
        assert opening_for(exact, given) is given
        assert opening_for(sparse, given) is given


def test_the_meter_that_is_said_is_taken_and_refused_by_name_where_it_does_not_take_the_rules():
    with Monitor.open(FRAME, RULES["with falls"][0], unit="u", budget=BUDGET, meter="renyi") as monitor:
        assert monitor.table.meter.tariff.name == "renyi"
    with Monitor.open(FRAME, RULES["anew"][0], unit="u", budget=BUDGET, meter="exact") as monitor:
        assert monitor.table.meter.tariff.name == "exact"
    with pytest.raises(tc.NotAllowed, match=r"the rule 'many' also asks whether .* meter='exact'"):
        Monitor.open(FRAME, RULES["with falls"][0], unit="u", budget=BUDGET, meter="sparse")


def test_a_ledger_that_is_there_keeps_its_meter_and_says_which_rules_it_does_not_take(tmp_path):
    ledger = tmp_path / "ledger.db"
    Monitor.open(FRAME, RULES["anew"][0], unit="u", budget=BUDGET, ledger=ledger).close()
    with pytest.raises(tc.NotAllowed, match="also asks whether a number has fallen or changed"):
        Monitor.open(FRAME, RULES["with falls"][0], unit="u", budget=BUDGET, ledger=ledger)
    other = tmp_path / "other.db"
    Monitor.open(FRAME, RULES["with falls"][0], unit="u", budget=BUDGET, ledger=other).close()
    with Monitor.open(FRAME, RULES["anew"][0], unit="u", budget=BUDGET, ledger=other) as monitor:
        assert monitor.table.meter.tariff.name == "exact"
