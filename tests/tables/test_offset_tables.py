"""Tables whose counts carry a secret offset: one for all answers of a ledger, while it lives, and told nowhere."""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest
from tests.cli.commands import run
from tests.discrete_laplace import DiscreteLaplace
from tests.goodness import assert_only, draws_to_tell
from tests.ledger.fixture_ledgers import copy_of
from tests.ledger.fixture_ledgers import opened as opened_fixture
from tests.ledger.processes import child
from tests.offset_noise import CarriedNoise
from tests.refusals import every
from tests.sessions.leaks import lets_out
from tests.tables import children
from tests.tables.anew import anew
from tests.tables.noise import only_offset
from tests.tables.tiny import quick

import targetcharge as tc
from targetcharge import questions as q
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.sessions import opening

METERS = ("exact", "renyi")
BUDGET = tc.Budget(1.0, 1e-6)
QUERY = 0.01
"""At which offsets are wide: two that are drawn are the same once in fifty times."""

MANY = 3000
PAIRS = q.sum("pair", 0, 2, grid=1)
"""A unit adds at most 2, so that a step of the offset is one of the sum."""

SURE = -(10**9)
"""A threshold that every number is above: what is asked so has the session's noise, whatever a hit pays for."""


def people(many=MANY):
    """Rows of units with 2 each, of four kinds."""
    return pd.DataFrame({"u": range(many), "pair": [2] * many, "kind": [number % 4 for number in range(many)]})


FRAME = people()


def opened(rows=None, **options):
    usual = {"budget": BUDGET, "query_epsilon": QUERY, "meter": "exact"}
    return anew(tc.open(FRAME if rows is None else rows, "u", **(usual | options)))


def offset_of(table, many=MANY):
    """Return the offset of a table without fresh noise: a sum with sensitivity 2 is too low by it."""
    return 2 * many - table.above(PAIRS, SURE).outcome


def noise_of(table, epsilon, sensitivity=1):
    return CarriedNoise.of(table.meter.tariff.offset, epsilon, sensitivity)


# One offset for a ledger.


@pytest.mark.parametrize("meter", METERS)
def test_every_answer_of_a_table_is_off_by_its_share_of_one_offset(monkeypatch, meter):
    only_offset(monkeypatch)
    with opened(meter=meter) as t:
        rho = offset_of(t)
        halves = -rho // 2  # a count moves by half a step of the offset, and is rounded down
        assert t.above(None, SURE).outcome == MANY + halves
        assert t.above("kind = 1", -MANY).outcome == MANY // 4 + halves
        assert t.count(prior=-MANY, tolerance=0).outcome == MANY + halves
        assert {answer.outcome for answer in t.watch(None, "kind", range(4), -MANY)} == {MANY // 4 + halves}
        assert t.top(None, "kind", range(4), k=1)[0].outcome == MANY // 4 + halves
        assert t.release(None, -MANY).outcome == MANY + halves
        asked = [q.above("kind = 2", -MANY), q.above("kind < 2", -MANY)]
        assert [answer.outcome - halves for answer in t.ask_many(asked)] == [MANY // 4, MANY // 2]
        for bound in (3, 4, 7):  # each unit has 2
            expected = math.floor(2 * MANY - bound * rho / 2)
            assert t.sum_above("pair", 0, bound, threshold=-(10**6), grid=1).outcome == expected


def test_distinct_values_carry_it_too(monkeypatch):
    only_offset(monkeypatch, -4000)
    with opened() as t:
        assert t.distinct_above("u", 1000).outcome > MANY + 1500  # 2,000 buckets more, a tenth of which were taken


@pytest.mark.parametrize("meter", METERS)
def test_a_ledger_that_is_opened_again_has_the_same_offset(monkeypatch, tmp_path, meter):
    only_offset(monkeypatch)
    offsets = set()
    for given in (QUERY, None, QUERY, None, QUERY, None):
        with opened(query_epsilon=given, meter=meter, ledger=tmp_path / "ledger.db") as t:
            assert t.describe().query_epsilon == QUERY
            offsets |= {offset_of(t), offset_of(t)}
    assert len(offsets) == 1


@pytest.mark.parametrize("meter", METERS)
def test_ledgers_have_offsets_of_their_own(monkeypatch, meter):
    only_offset(monkeypatch)
    offsets = set()
    for _ in range(6):
        with opened(meter=meter) as t:
            offsets.add(offset_of(t))
    assert len(offsets) > 1


@pytest.mark.parametrize("meter", METERS)
def test_data_that_has_grown_has_the_same_offset(monkeypatch, tmp_path, meter):
    only_offset(monkeypatch)
    offsets = set()
    for many in range(MANY, MANY + 6):
        more = people(many + 1).tail(1)
        with opened(people(many), meter=meter, ledger=tmp_path / "ledger.db", new_data=True) as t:
            offsets.add(offset_of(t, many))
            t.append(more)
            offsets.add(offset_of(t, many + 1))
    assert len(offsets) == 1


@pytest.mark.parametrize("meter", METERS)
def test_sessions_and_processes_on_one_ledger_share_its_offset(monkeypatch, tmp_path, meter):
    only_offset(monkeypatch)
    path = tmp_path / "people.parquet"
    FRAME.to_parquet(path)
    with (
        opened(path, meter=meter) as first,
        opened(path, meter=meter, query_epsilon=None) as second,
        child(children.counts_without_fresh_noise, path, BUDGET, meter, PAIRS) as third,
        child(children.counts_without_fresh_noise, path, BUDGET, meter, PAIRS) as fourth,
    ):
        offsets = {offset_of(first), offset_of(second), offset_of(first)}
        for process in (third, fourth):
            assert process.hear() == "opened"
            process.tell("count")
            offsets.add(2 * MANY - process.hear())
            process.tell(None)
    assert len(offsets) == 1


# Without one.


def drawn_never(*_):
    msg = "no offset is to be drawn"
    raise AssertionError(msg)


@pytest.mark.filterwarnings("ignore:the ledger .* was written by an earlier version")
@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("name", ["table", "frame", "appended", "monitor"])
def test_a_ledger_that_was_made_without_an_offset_stays_without_one(monkeypatch, tmp_path, name, version):
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", drawn_never)
    copy = copy_of(name, tmp_path, version)
    for _ in range(2):
        with opened_fixture(name, copy) as t:
            assert t.meter.tariff.offset is None
            assert not t.describe().common_error
            assert t.describe().standard_deviation == pytest.approx(1 / (math.sqrt(2) * math.sinh(0.05)), rel=1e-6)
            assert t.above(None, SURE).scale == pytest.approx(10, rel=1e-6)


@pytest.mark.parametrize("meter", METERS)
def test_alternatives_have_none(monkeypatch, tmp_path, meter):
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", drawn_never)
    targets = [tc.NotPrior(None), tc.NotPrior(5)]
    for _ in range(2):
        with opened(meter=meter, alternatives=targets, ledger=tmp_path / "ledger.db") as t:
            assert {one.tariff.offset for one in t.meters} == {None}
            assert t.above(None, 100).scale == pytest.approx(1 / QUERY, rel=1e-6)


def test_a_budget_that_has_nothing_left_for_an_offset_has_none(monkeypatch):
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", drawn_never)
    with opened(query_epsilon=0.1, budget=tc.Budget(1.7307, 1e-6)) as t:  # of one hit, and hardly more
        assert (t.meter.tariff.offset, t.meter.hits_left) == (None, 1)
        assert not t.describe().common_error
        assert t.describe().standard_deviation == pytest.approx(1 / (math.sqrt(2) * math.sinh(0.05)), rel=1e-6)


@pytest.mark.parametrize("meter", METERS)
def test_a_sum_that_a_unit_may_lower_has_noise_of_its_own_and_a_count_beside_it_the_offset(monkeypatch, meter):
    only_offset(monkeypatch, 10**6)
    with opened(meter=meter) as t:
        assert t.describe().common_error
        signed = t.above(q.sum("pair", -1, 2, grid=1), SURE)
        assert (signed.outcome, signed.scale) == (2 * MANY, pytest.approx(2 / QUERY, rel=1e-6))
        plain = t.above(PAIRS, SURE)
        assert (plain.outcome, plain.scale) == (
            2 * MANY - 10**6,
            pytest.approx(noise_of(t, QUERY, 2).scale, rel=1e-6),
        )
        assert t.above(None, SURE).outcome == MANY - 10**6 // 2
        watched = t.watch(q.sum("pair", -1, 2, grid=1), "kind", [0], -(10**6))
        assert [answer.outcome for answer in watched] == [2 * MANY // 4]


# What is told of the noise.


@pytest.mark.parametrize("options", [{"query_epsilon": 0.01}, {"query_epsilon": None, "hits": 20}], ids=str)
@pytest.mark.parametrize("meter", METERS)
def test_the_standard_deviation_and_the_intervals_are_those_of_both_laws_added_up(meter, options):
    with opened(meter=meter, **options) as t:
        described = t.describe()
        noise = noise_of(t, described.query_epsilon)
        added_up = math.sqrt(math.fsum(value**2 * mass for value, mass in noise.masses.items())) / noise.lattice
        assert described.standard_deviation == pytest.approx(added_up, rel=1e-6)
        assert described.standard_deviation < 0.75 * math.sqrt(2) / described.query_epsilon
        assert described.common_error
        assert f"standard deviation {added_up:.4g} for a count, a part of it common" in str(described)
        assert t.preview(q.above(None, SURE)).scale * math.sqrt(2) == pytest.approx(added_up, rel=1e-6)
        assert t.preview(q.above(None, SURE)).margin == -(-noise.margin // 2)
        answer = t.above(None, SURE)
        assert answer.scale * math.sqrt(2) == pytest.approx(added_up, rel=1e-6)
        # The noisy count is 2·outcome half steps or one more, and less than 2.5% of errors exceed the margin.
        low, high = answer.interval
        assert low == -(-(2 * answer.outcome - noise.margin) // 2)
        assert high == (2 * answer.outcome + 1 + noise.margin) // 2


@pytest.mark.parametrize("meter", METERS)
def test_the_running_figure_begins_with_what_the_offset_costs(meter):
    """A randomised response at ε1/2: at order a the logarithm of x·e^{(a-1)ε1/2} + (1-x)·e^{-(a-1)ε1/2}."""
    with opened(meter=meter) as t:
        tariff, odometer = t.meter.tariff, t.meter.odometer()
    half, order = tariff.offset.offset_epsilon / 2, tariff.order - 1
    likely = 1 / (1 + math.exp(-half))
    moment = math.log(likely * math.exp(order * half) + (1 - likely) * math.exp(-order * half))
    assert odometer.hits == 0
    assert odometer.epsilon == pytest.approx((moment - math.log(1e-6)) / order, rel=1e-9)


# What is published.


def of_fresh_tables(monkeypatch, draws, read, **options):
    """Count what is read off so many tables, each with a ledger of its own. Their rates are chosen once."""
    monkeypatch.setattr(opening, "rates", functools.cache(opening.rates))
    found = Counter()
    with quick(monkeypatch):
        for _ in range(draws):
            with opened(**options) as t:
                found[read(t)] += 1
    return found


@pytest.mark.parametrize("meter", METERS)
def test_counts_of_fresh_tables_have_the_law_of_noise_and_offset(monkeypatch, meter):
    options = {"meter": meter, "budget": tc.Budget(6.0, 1e-6), "query_epsilon": None, "hits": 1}
    with opened(**options) as t:
        epsilon = t.describe().query_epsilon
        noise = noise_of(t, epsilon)
    rate, natural = noise.fresh.rate, DiscreteLaplace(epsilon)
    others = [replace(noise, fresh=DiscreteLaplace(rate * factor)).published for factor in (1.2, 1 / 1.2)]
    others.append({value: natural.mass(value) for value in noise.published})
    draws = draws_to_tell(noise.published, *others)
    found = of_fresh_tables(monkeypatch, draws, lambda t: t.above(None, SURE).outcome - MANY, **options)
    assert_only(found, noise.published, *others)


@pytest.mark.parametrize("meter", METERS)
def test_offsets_of_fresh_tables_have_their_law(monkeypatch, meter):
    only_offset(monkeypatch)
    options = {"meter": meter, "budget": tc.Budget(6.0, 1e-6), "query_epsilon": None, "hits": 1}
    with opened(**options) as t:
        rate = t.meter.tariff.offset.offset_epsilon / 2

    def law(of):
        return {value: DiscreteLaplace(of).mass(value) for value in range(-200, 201)}

    others = [law(rate * factor) for factor in (1.2, 1 / 1.2)]
    found = of_fresh_tables(monkeypatch, draws_to_tell(law(rate), *others), offset_of, **options)
    assert_only(found, law(rate), *others)


# How many hits.


@pytest.mark.parametrize("meter", METERS)
def test_hits_alone_choose_the_least_noise_that_covers_them(meter):
    with opened(meter=meter, query_epsilon=None, hits=20) as t:
        assert t.meter.hits_left == 20
        for _ in range(20):
            assert t.above(None, -(10**6)).hit
        with pytest.raises(tc.BudgetSpent):
            t.above(None, -(10**6))
        deviation = t.describe().standard_deviation
    if meter == "exact":
        assert deviation == pytest.approx(28.1, rel=2e-3)  # as the theory's table has it
    with opened(meter=meter, query_epsilon=None, hits=21) as t:
        assert 1 < t.describe().standard_deviation / deviation < 1.05


@pytest.mark.parametrize("meter", METERS)
def test_hits_and_a_query_epsilon_that_the_budget_does_not_cover_are_refused_by_name(tmp_path, meter):
    natural = {
        "exact": tc.accounting.exact_hits(QUERY, BUDGET),
        "renyi": tc.accounting.renyi_hits(tc.NotPrior(None), QUERY, BUDGET),
    }[meter]
    for hits in (natural, natural // 2):
        with opened(meter=meter, hits=hits) as t:
            assert t.meter.hits_left >= hits
    with pytest.raises(tc.InvalidParameter, match=f"at most {natural} at query ε 0.01") as refusal:
        opened(meter=meter, hits=natural + 1, ledger=tmp_path / "ledger.db")
    assert refusal.value.name == "hits"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("meter", METERS)
def test_fewer_hits_beside_a_query_epsilon_leave_more_for_the_offset(meter):
    def deviation(hits):
        with opened(meter=meter, hits=hits) as t:
            assert t.meter.hits_left >= (hits or 0)
            return t.describe().standard_deviation

    half = 1 / math.sqrt(2) / QUERY  # of fresh noise alone, at twice the rate
    assert half < deviation(20) < deviation(None) < 1.05 * half


@pytest.mark.parametrize("meter", METERS)
def test_a_ledger_covers_the_hits_that_it_was_made_for(tmp_path, meter):
    path = tmp_path / "ledger.db"
    opened(meter=meter, query_epsilon=None, hits=20, ledger=path).close()
    for hits in (None, 1, 20):
        with opened(meter=meter, query_epsilon=None, hits=hits, ledger=path) as t:
            assert t.meter.hits_left == 20
    with pytest.raises(tc.InvalidParameter, match="at most 20, which the ledger was made for") as refusal:
        opened(meter=meter, query_epsilon=None, hits=21, ledger=path)
    assert refusal.value.name == "hits"


# Nothing tells it.

SECRET = 7318465529


@pytest.mark.parametrize("meter", METERS)
def test_nothing_that_can_be_printed_of_a_table_shows_its_offset(monkeypatch, tmp_path, meter):
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: SECRET)
    path = tmp_path / "people.parquet"
    FRAME.to_parquet(path)
    with opened(path, meter=meter) as t:
        answers = t.watch(None, "kind", range(4), -(10**12))
        release, count = t.release(None, 10**6), t.count()
        things = [t, t.describe(), t.preview(q.above(None, 5)), t.prepare(q.count(PAIRS)), t._session]
        things += [t.meter, t.meter.tariff, t.meter.odometer(), t._session._ledger]
        things += [answers, release, count, t.transcript, list(t.transcript)]
        shown = " ".join(f"{thing!r} {thing}" for thing in things)
        shown += t.describe()._repr_html_() + answers._repr_html_() + repr(answers.to_pandas())
    ledger = path.with_name("people.parquet.ledger.db")
    for command in (("report", path, "--output", "-"), ("meter", path, "--json"), ("ledger", "show", ledger)):
        result = run(*command)
        assert result.code == 0, result.err
        shown += result.out + result.err
    assert str(count.outcome) in shown
    assert str(SECRET) not in shown


@pytest.mark.parametrize("meter", METERS)
def test_errors_of_a_table_show_nothing_of_its_offset(monkeypatch, meter):
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: SECRET)

    def broken_count(t):
        with monkeypatch.context() as patch:
            patch.setattr(DuckDBEngine, "measure", lambda *_: 1 // 0)
            t.count()

    calls = {
        "another epsilon": lambda t: t.count(epsilon=-1),
        "no column": lambda t: t.count("age > 5"),
        "no number": lambda t: t.above(None, math.nan),
        "no condition": lambda t: t.release(None, "never"),
        "no difference": lambda t: t.difference(t.above(None, SURE), t.above(PAIRS, SURE)),
        "a broken engine": broken_count,
    }

    def check(ask):
        with pytest.raises(tc.TargetChargeError) as refusal:
            ask(t)
        assert lets_out(refusal.value, str(SECRET)) == []

    with opened(meter=meter, query_epsilon=None, hits=8) as t:
        every(calls, check)
        while t.meter.hits_left:
            t.count()
        with pytest.raises(tc.BudgetSpent) as spent:
            t.count()
        assert lets_out(spent.value, str(SECRET)) == []
