"""A budget for every individual on an exact meter: at-least questions with Gumbel noise, and nothing else."""

from __future__ import annotations

import math
from collections import Counter

import pandas as pd
import pytest
from scipy.special import gammainc, gammaincc
from tests.discrete_laplace import DiscreteLaplace
from tests.goodness import assert_only, draws_to_tell
from tests.ledger.fixture_ledgers import copy_of
from tests.ledger.fixture_ledgers import opened as opened_fixture
from tests.refusals import every
from tests.tables.anew import anew
from tests.tables.individuals import counters, crowd
from tests.tables.noise import paid_scale, silence
from tests.tables.tiny import quick

import targetcharge as tc
from targetcharge import questions as q
from targetcharge.ledger import terms_at
from targetcharge.tables.monitor import Monitor, Rule

BUDGET = tc.Budget(2.15, 1e-6)
"""Of ten hits at query ε 0.1, and not eleven."""

QUERY = 0.1
TESTS = [tc.NotPrior(None)]
FRAME = pd.DataFrame({"unit": range(400), "week": [number % 4 for number in range(400)], "fee": [1] * 400})


def opened(rows=FRAME, **options):
    given = {"budget": BUDGET, "query_epsilon": QUERY, "charging": "individual"}
    return anew(tc.open(rows, "unit", **(given | options)))


def gumbel(rate, centre=None):
    """Return {k: Pr[K - c = k]}: Pr[K ≤ k] = exp(-e^{-rate·k}), and c is the integer next to the mean of K."""
    low, high = -math.ceil(8 / rate), math.ceil(40 / rate)
    tops = [math.exp(-math.exp(-rate * k)) for k in range(low - 1, high + 1)]
    law = {k: tops[place + 1] - tops[place] for place, k in enumerate(range(low, high + 1))}
    if centre is None:
        centre = round(math.fsum(k * mass for k, mass in law.items()))
    return {k - centre: mass for k, mass in law.items()}


def in_cells(width, law):
    """Return {k // width: probability}."""
    cells = Counter()
    for k, mass in law.items():
        cells[k // width] += mass
    return dict(cells)


def deviation(law):
    mean = math.fsum(k * mass for k, mass in law.items())
    return math.sqrt(math.fsum((k - mean) ** 2 * mass for k, mass in law.items()))


# The noise.


@pytest.mark.parametrize(("bound", "asked"), [(1, None), (7, q.sum("fee", 0, 7, grid=1))], ids=["count", "sum"])
def test_numbers_have_gumbel_noise_of_the_query_epsilon_over_their_sensitivity(monkeypatch, bound, asked):
    rate = QUERY / bound
    laplace = {k: DiscreteLaplace(rate).mass(k) for k in gumbel(rate)}
    others = [gumbel(rate * 1.2), gumbel(rate / 1.2), gumbel(rate, centre=0), laplace]
    law, *others = [in_cells(bound, each) for each in (gumbel(rate), *others)]
    with quick(monkeypatch), opened(FRAME.head(3), budget=tc.Budget(60.0, 1e-6)) as t:
        draws = draws_to_tell(law, *others)
        assert t.meter.tariff.capacity > draws
        found = Counter((t.count(asked).outcome - 3) // bound for _ in range(draws))
    assert_only(found, law, *others)


def test_the_keys_of_a_watch_have_it_too():
    law = gumbel(QUERY)
    others = [gumbel(QUERY * factor) for factor in (1.1, 1 / 1.1)] + [gumbel(QUERY, centre=5)]
    draws = draws_to_tell(law, *others)
    rows = pd.DataFrame({"unit": range(draws), "week": range(draws)})
    with opened(rows) as t:
        answers = t.watch(None, "week", range(draws), -(10**6))
    assert_only(Counter(answer.outcome - 1 for answer in answers), law, *others)


def test_what_is_told_of_the_noise_is_its_law_added_up():
    law = gumbel(QUERY)
    with opened() as t:
        described, answer = t.describe(), t.count()
        assert described.standard_deviation == pytest.approx(deviation(law), rel=1e-6)
        assert not described.common_error
        assert answer.scale * math.sqrt(2) == pytest.approx(deviation(law), rel=1e-6)
        low, high = answer.interval
        below, above = high - answer.outcome, answer.outcome - low
        assert math.fsum(mass for k, mass in law.items() if k < -below) <= 0.025
        assert math.fsum(mass for k, mass in law.items() if k < 1 - below) > 0.025
        assert math.fsum(mass for k, mass in law.items() if k > above) <= 0.025
        assert math.fsum(mass for k, mass in law.items() if k > above - 1) > 0.025
        for chance in t.preview(q.above(None, 400), [-30, -5, 0, 5, 30]).chances:
            reached = math.fsum(mass for k, mass in law.items() if k >= -chance.distance)
            assert chance.hit == pytest.approx(reached, abs=1e-9)


def test_a_smaller_epsilon_is_a_larger_noise_for_the_same_price_and_a_larger_one_is_refused():
    with opened() as t:
        blunt = t.above(None, -(10**6), epsilon=0.05)
        assert (blunt.epsilon, blunt.price) == (0.05, 1.0)
        assert blunt.scale * math.sqrt(2) == pytest.approx(deviation(gumbel(0.05)), rel=1e-6)
        with pytest.raises(tc.NotAllowed, match=r"epsilon 0\.2, above the declared .* meter='renyi'"):
            t.above(None, 100, epsilon=0.2)
        assert t.meter.hits == 1


# What may be asked.

FEES = q.sum("fee", -1, 5, grid=1)
REFUSED = {
    "a prior": lambda t: t.above(None, 100, prior=400, tolerance=50),
    "a change": lambda t: t.count(prior=400, tolerance=50),
    "a band": lambda t: t.between(None, 100, 200),
    "a side": lambda t: t.side(None, 100),
    "a sum with two signs": lambda t: t.sum_above("fee", -1, 5, threshold=100),
    "a sum below 0": lambda t: t.sum_above("fee", -5, 0, threshold=-(10**6)),
    "a sum below 0 that is published if it has changed": lambda t: t.count(
        q.sum("fee", -5, 0), prior=0, tolerance=0
    ),
    "a watch of such sums": lambda t: t.watch(FEES, "week", range(4), 10),
    "a top of such sums": lambda t: t.top(FEES, "week", range(4), k=1),
    "a release of one": lambda t: t.release(FEES, 100),
    "a release with a condition": lambda t: t.release(None, lambda count: count > 100),
    "a release of some numbers": lambda t: t.release(None, {400}),
    "one of many": lambda t: t.ask_many([q.above(None, 100), q.above(FEES, 100)]),
    "a preview of a band": lambda t: t.preview(q.between(None, 100, 200)),
    "a preview of a sum": lambda t: t.preview(q.above(FEES, 100)),
    "a monitor": lambda t: Monitor(t, [Rule("all", threshold=100)]),
}


def test_every_other_question_is_refused_before_it_is_asked_and_told_which_meter_takes_it():
    with opened() as t:

        def check(ask):
            with pytest.raises(tc.NotAllowed, match="meter='renyi'"):
                ask(t)
            assert (t.meter.hits, len(t.transcript)) == (0, 0)

        every(REFUSED, check)
        with pytest.raises(tc.NotAllowed, match="charging='shared'"):
            t.distinct_above("week", 2)
    described = str(t.describe())
    assert "above(where, threshold)" in described
    assert not any(call in described for call in ("between(", "side(", "prior", "distinct_above("))


@pytest.mark.parametrize("options", [{"targets": TESTS}, {"meter": "renyi"}], ids=["declared", "renyi"])
def test_what_is_refused_is_answered_where_targets_are_declared_or_on_a_renyi_meter(options):
    with opened(budget=tc.Budget(20.0, 1e-6), **options) as t:
        kept = {name: ask for name, ask in REFUSED.items() if "band" not in name and name != "a side"}
        every(kept, lambda ask: ask(t))
        assert t.above(None, -(10**6)).scale == pytest.approx(1 / QUERY, rel=1e-6)
        assert t.count().scale == pytest.approx(paid_scale(t), rel=1e-4)


def test_what_is_always_paid_may_fall_and_then_has_laplace_noise_of_half_the_query_epsilon():
    """One hit pays for a range of ε, and so for ε/2 (docs/theory/exchange.md#gumbel)."""
    with opened() as t:
        total = t.count(q.sum("fee", -5, 1, grid=1))
        assert total.targets == (("Everything", "pure", QUERY / 2),)
        assert (total.scale, total.price) == (pytest.approx(5 / (QUERY / 2), rel=1e-6), 1)
        assert t.sum("fee", 0, 5, grid=1).scale * math.sqrt(2) == pytest.approx(
            deviation(gumbel(QUERY / 5)), rel=1e-6
        )
        assert counters(t) == [2] * 400


def test_a_release_waits_for_a_number_which_revisions_lower(monkeypatch):
    silence(monkeypatch)
    with opened() as t:
        pending = t.release(None, 1000)
        assert not pending.revise(500).released
        assert pending.revise(400).released
        assert t.meter.hits == 1
        assert counters(t) == [1] * 400


# Budgets.


def delta(query, hits, epsilon):
    """Return δ' of so many hits, the larger of the theory's two closed forms."""
    first = (hits * query - epsilon) / -math.expm1(-query)
    second = (hits * query + epsilon) / math.expm1(query)
    with_unit = (
        gammainc(hits, first) - math.exp(epsilon) * gammainc(hits, first * math.exp(-query)) if first > 0 else 0
    )
    without = gammaincc(hits, second) - math.exp(epsilon) * gammaincc(hits, second * math.exp(query))
    return max(with_unit, without)


@pytest.mark.parametrize(
    ("query", "epsilon", "hits"),
    [
        (0.1, 1.106, 1),
        (0.1, 2.1406, 10),
        (0.1, 2.1404, 9),
        (0.1, 5.8605, 100),
        (0.05, 1.9132, 50),
        (0.5, 20.98, 20),
    ],
)
def test_every_unit_has_as_many_hits_as_the_closed_form_covers(query, epsilon, hits):
    budget = tc.Budget(epsilon, 1e-6)
    with opened(query_epsilon=query, budget=budget) as t:
        assert t.meter.tariff.capacity == tc.accounting.gumbel_hits(query, budget) == hits
    assert delta(query, hits, epsilon) <= 1e-6 < delta(query, hits + 1, epsilon)


def test_a_unit_is_out_after_so_many_hits_and_misses_are_free(monkeypatch):
    silence(monkeypatch)
    with opened(crowd((range(5), 0), (range(5, 12), 1))) as t:
        for _ in range(3):
            assert not t.above(None, 100).hit
        found = [t.count("week = 0").outcome for _ in range(12)]
        assert found == [5] * 10 + [0] * 2
        assert counters(t) == [10] * 5 + [0] * 7
        assert t.count().outcome == 7
        assert t.above(None, 7).hit
        assert counters(t) == [10] * 5 + [2] * 7


def test_hits_alone_choose_the_noise():
    with opened(budget=tc.Budget(3.29, 1e-6), query_epsilon=None, hits=10) as t:
        assert t.meter.tariff.capacity == 10
        chosen = t.describe().query_epsilon
        assert t.describe().standard_deviation == pytest.approx(8.8, rel=5e-3)  # as the theory has it
    assert delta(chosen, 10, 3.29) <= 1e-6 < delta(1.001 * chosen, 10, 3.29)
    with opened(query_epsilon=None) as t:  # ten, if nothing is said
        assert t.meter.tariff.capacity == 10
        chosen = t.describe().query_epsilon
    assert delta(chosen, 10, BUDGET.epsilon) <= 1e-6 < delta(1.001 * chosen, 10, BUDGET.epsilon)


def test_more_hits_than_a_query_epsilon_buys_are_refused_by_name(tmp_path):
    for hits in (1, 10):
        with opened(hits=hits) as t:
            assert t.meter.tariff.capacity == 10
    with pytest.raises(tc.InvalidParameter, match=r"hits is 11; it must be at most 10 at query ε 0\.1") as refusal:
        opened(hits=11, ledger=tmp_path / "ledger.db")
    assert refusal.value.name == "hits"
    with pytest.raises(tc.InvalidParameter, match="one hit costs") as refusal:
        opened(query_epsilon=0.5, ledger=tmp_path / "ledger.db")
    assert refusal.value.name == "query_epsilon"
    assert list(tmp_path.iterdir()) == []


# Ledgers keep their noise.


@pytest.mark.parametrize("declared", [None, TESTS], ids=["gumbel", "laplace"])
def test_a_ledger_keeps_the_noise_that_it_was_made_with_whether_targets_are_declared_or_not(tmp_path, declared):
    path = tmp_path / "ledger.db"
    budget = tc.Budget(6.0, 1e-6)
    scale = deviation(gumbel(QUERY)) / math.sqrt(2) if declared is None else 1 / QUERY
    hits = tc.accounting.gumbel_hits if declared is None else tc.accounting.exact_hits
    capacity = hits(QUERY, budget)
    for asked, targets in enumerate([declared, None, TESTS, None, TESTS]):
        with opened(budget=budget, ledger=path, targets=targets) as t:
            assert terms_at(path).noise == ("gumbel" if declared is None else "laplace")
            assert (t.meter.tariff.at_least, t.meter.tariff.capacity) == (declared is None, capacity)
            assert t.above(None, -(10**6)).scale == pytest.approx(scale, rel=1e-6)
            if declared is None:
                with pytest.raises(tc.NotAllowed, match="meter='renyi'"):
                    t.count(prior=400, tolerance=0)
            else:
                t.count(prior=400, tolerance=10**6)
            assert counters(t) == [asked + 1] * 400


@pytest.mark.filterwarnings("ignore:the ledger .* was written by an earlier version")
@pytest.mark.parametrize("version", ["1", "2"])
def test_ledgers_from_before_go_on_with_laplace_noise(tmp_path, version):
    with opened_fixture("individual", copy_of("individual", tmp_path, version)) as t:
        assert not t.meter.tariff.at_least
        assert t.above(None, -(10**6)).scale == pytest.approx(10, rel=1e-6)
        assert t.count().scale == pytest.approx(paid_scale(t), rel=1e-4)
        assert t.count(prior=10**6, tolerance=10**7).outcome is tc.UNCHANGED
