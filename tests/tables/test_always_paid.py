"""What is always paid for, where all units share a budget: what it publishes and costs, and what is kept of it."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest
from tests.cli.commands import run
from tests.refusals import every
from tests.sizes import size
from tests.tables import naive_paid
from tests.tables.always_paid import (
    CALLS,
    EACH,
    FRAME,
    HITS,
    METERS,
    NAMES,
    QUESTIONS_OF,
    answers_of,
    opened,
    spent,
    without_noise,
)
from tests.tables.naive_units import PREDICATES, Asked, random_rows, table_of
from tests.tables.paired import KEYS, days, hours

import targetcharge as tc
from targetcharge.tables import questions as q
from targetcharge.tables.preparing import read_back

GAMES = size(10, 100)
QUESTIONS = 6
BOUNDS = [(0, 10, "1"), (-2, 5, "0.25"), (1, 4, "0.5"), (-5, 3, "0.01"), (-8, -3, "0.5")]
SUMS = [("fee", 0, 10, "1"), ("fee", -2, 5, "0.25"), ("fee", 0, 40.3, "0.01"), ("fee", -7, -1, "0.5")]
SHARES = [[0.5], [0.1, 0.9], [0.25, 0.5, 0.75], [Fraction(1, 3)], [0.000001, 0.999999]]
UNITS = pytest.mark.parametrize("unit", ["unit", tc.ROW], ids=["column", "row"])


# Without noise.


class Game:
    """Random questions to a table without noise, beside the naive truth."""

    def __init__(self, rng, picks, *, by_row):
        self.rng, self.picks = rng, picks
        rows = random_rows(rng, 25, rng.choice([0, 1, 8, 70, 70]))
        self.source, self.truth = table_of(rows), naive_paid.Truth(rows, by_row=by_row)

    def where(self):
        return self.rng.choice(list(PREDICATES))

    def number(self, t):
        asked = Asked(self.where())
        assert t.count(asked.where).outcome == self.truth.number(asked)

    def sum(self, t):
        asked = Asked(self.where(), self.rng.choice(SUMS))
        column, lower, upper, grid = asked.total
        answer = t.sum(column, lower, upper, asked.where, grid=grid)
        assert answer.outcome == float(self.truth.number(asked))

    def mean(self, t):
        where, (lower, upper, grid) = self.where(), self.rng.choice(BOUNDS)
        answer = t.mean("fee", lower, upper, where, grid=grid)
        assert answer.outcome == self.truth.mean(where, lower, upper, grid)
        low, high = answer.interval
        assert lower <= low <= answer.outcome <= high <= upper

    def histogram(self, t):
        where, per_unit = self.where(), self.rng.choice([1, 1, 2, 3, 7])
        by = self.rng.choice([*KEYS, days, hours])
        keys, columns, grain = KEYS.get(by, by), by, None
        if by in (days, hours):
            columns, keys, grain = ("at",), by(), by.__name__.removesuffix("s")
        answers = t.histogram(where, list(columns), keys() if callable(keys) else keys, per_unit)
        cells = {answer.key: answer.outcome for answer in answers}
        held = list(self.truth.held(where, columns, list(cells), grain).values())
        assert sum(cells.values()) == sum(min(per_unit, len(own)) for own in held)
        for key, cell in cells.items():
            those = [own for own in held if key in own]
            assert sum(len(own) <= per_unit for own in those) <= cell <= len(those)

    def quantiles(self, t):
        where, (lower, upper, grid) = self.where(), self.rng.choice(BOUNDS)
        shares, step = self.rng.choice(SHARES), Fraction(grid)
        if len(shares) > 1:
            answers = t.quantiles("fee", shares, lower, upper, where, grid=grid)
            assert [answer.key for answer in answers] == list(map(float, shares))
        else:
            answers = [t.quantile("fee", shares[0], lower, upper, where, grid=grid)]
        values = self.truth.values(where, lower, upper, grid)
        cells = range(math.ceil(lower / step), math.floor(upper / step) + 1)
        for share, answer in zip(shares, answers, strict=True):
            exact = Fraction(str(share))
            away = [naive_paid.ranks_away(cell, values, exact) for cell in cells]
            gaps, rate = self.picks.pop(0)
            assert [Fraction(gap, exact.denominator) for gap in gaps] == away
            assert answer.outcome == float(cells[away.index(min(away))] * step)
            assert min(away) == 0 < rate
        assert not self.picks


@EACH
@UNITS
def test_without_noise_every_answer_is_the_truth(monkeypatch, unit, meter):
    """Of units with many rows or none, missing values, values far outside of the bounds, and of nobody at all."""
    for number in range(GAMES):
        rng = random.Random(f"{unit} {meter} {number}")
        game = Game(rng, without_noise(monkeypatch), by_row=unit is tc.ROW)
        with opened(game.source, meter, unit=unit) as t:
            for _ in range(QUESTIONS):
                rng.choice([game.number, game.sum, game.mean, game.histogram, game.histogram, game.quantiles])(t)


@EACH
def test_a_grid_that_fits_is_chosen_where_none_is_given(monkeypatch, meter):
    without_noise(monkeypatch)
    rows = pa.table({"unit": [1, 2, 3], "fee": [0.123456789, 1.0, 2.0], "age": [30, 41, 55]})
    with opened(rows, meter) as t:
        assert t.mean("fee", 0, 2).outcome == pytest.approx((0.123457 + 3) / 3, abs=1e-12)  # of a millionth of 2
        assert t.mean("age", 0, 1000).outcome == 42
        assert t.sum("fee", 0, 1).outcome == 2.123457
        assert t.quantile("age", 0.5, 0, 10_000).outcome == 41  # whole numbers, of which there are not too many
        assert t.quantile("age", 0.5, 0, 10_001).outcome == 40  # steps of 10 for wider bounds
        assert t.quantile("fee", 0.3, 0, 2).outcome == 0.123
        kept = [json.loads(answer.question)["what"]["grid"] for answer in t.transcript]
    assert kept == ["1/1000000", "1/1000", "1/1000000", "1", "10", "1/1000"]


@EACH
def test_which_keys_count_for_a_unit_is_drawn_anew_each_time(monkeypatch, meter):
    """A unit with four keys that counts for one of them: not the same in twenty histograms."""
    without_noise(monkeypatch)
    source = pa.table({"unit": [1] * 4, "week": [0, 1, 2, 3]})
    found = set()
    with opened(source, meter) as t:
        for _ in range(HITS):
            cells = [answer.outcome for answer in t.histogram(None, "week", range(4))]
            assert sorted(cells) == [0, 0, 0, 1]
            found.add(cells.index(1))
    assert len(found) > 1


@EACH
def test_nobody_at_all_has_the_middle_of_the_bounds_and_the_least_cell(monkeypatch, meter):
    without_noise(monkeypatch)
    empty = pa.table({"unit": pa.array([], pa.int64()), "fee": pa.array([], pa.float64())})
    with opened(empty, meter) as t:
        mean = t.mean("fee", -2, 5)
        assert (mean.outcome, mean.interval) == (1.5, (-2.0, 5.0))
        assert t.quantile("fee", 0.5, -2, 5).outcome == -2
        assert (t.count().outcome, t.sum("fee", -2, 5).outcome) == (0, 0)
        assert [answer.outcome for answer in t.histogram(None, "fee", [0, 1.5], 2)] == [0, 0]


# What it costs.


@EACH
def test_each_costs_a_hit_and_on_a_renyi_meter_no_more_than_a_test(meter):
    for asked, (call, hits) in CALLS.items():
        with opened(FRAME, meter) as t:
            test = t.meter.quote(tc.NotPrior(None), t.describe().query_epsilon, carried=True).value
            answers = answers_of(call(t))
            assert t.meter.hits == hits, asked
            assert sum(answer.price for answer in answers) <= hits * test * (1 + 1e-9)
            assert sum(sum(answer.grains) for answer in answers) == t.meter.totals.spent
            assert 0.999 * hits < spent(t) <= hits  # nothing of a hit is given away
            assert t.meter.hits_left == HITS - hits
            assert all(answer.hit for answer in answers)


@EACH
def test_a_histogram_has_its_price_once_and_is_one_entry(meter):
    with opened(FRAME, meter) as t:
        answers = t.histogram(None, "week", range(7), 2)
        assert [answer.price > 0 for answer in answers] == [True] + [False] * 6
        assert {answer.seq for answer in answers} == {1}
        (kept,) = t.transcript
        assert kept.outcome == tuple(answer.outcome for answer in answers)
        assert (kept.seq, kept.hit, kept.key, kept.interval) == (1, True, None, None)
        assert repr(answers) == "<7 answers, 1 hit>"


def test_a_smaller_epsilon_is_more_noise_at_its_own_price():
    asked = list(QUESTIONS_OF.values())
    for meter in METERS:
        with opened(FRAME, meter) as t:
            query = t.describe().query_epsilon
            for question in asked:
                full, half = t.preview(question), t.preview(question, epsilon=query / 2)
                assert 1.9 * full.margin < half.margin < 3 * full.margin
                assert half.price < 0.5 * full.price if meter == "renyi" else half.price == full.price == 1
            answer = t.count(epsilon=query / 2)
            assert (answer.epsilon, answer.price) == (query / 2, t.preview(asked[0], epsilon=query / 2).price)


@pytest.mark.parametrize("charging", ["shared", "individual"])
@EACH
def test_a_larger_epsilon_is_refused_as_that_of_a_test_is(meter, charging):
    """It would get no less noise than what a hit pays for."""
    if charging == "individual" and meter in ("sparse", "pure"):
        return
    with opened(FRAME, meter, charging=charging) as t:
        for question in [*QUESTIONS_OF.values(), q.top(None, "week", range(7), 2, values=False)]:
            for call in (t.preview, t.ask):
                with pytest.raises(tc.NotAllowed, match=r"^this computation has epsilon|no finite price"):
                    call(question, epsilon=9.5)
        assert (t.meter.hits, len(t.transcript)) == (0, 0)


# What the ledger keeps.

RECORDS = {
    "count": '{"what":{"count":"week < 3"},"count":null}',
    "sum": '{"what":{"sum":"fee","bounds":[0,10],"grid":"1/100000","where":null},"count":null}',
    "mean": '{"what":{"value":"fee","bounds":[0,10],"grid":"1/100000","where":"week > 1"},"mean":null}',
    "histogram": '{"what":{"count":null},"histogram":1,"by":["week"],"keys":[0,1,2,3,4,5,6]}',
    "histogram of pairs": '{"what":{"count":null},"histogram":2,"by":["week","unit"],"keys":[[1,2],[3,4]]}',
    "quantile": '{"what":{"value":"fee","bounds":[0,10],"grid":"1/100","where":null},"quantiles":["1/2"]}',
    "quantiles": (
        '{"what":{"value":"fee","bounds":[0,10],"grid":"1/100","where":null},"quantiles":["1/10","1/2","9/10"]}'
    ),
}


@EACH
def test_the_ledger_keeps_what_was_asked_and_what_was_paid_for(meter, tmp_path):
    ledger = tmp_path / "ledger.db"
    with opened(FRAME, meter, ledger=ledger) as t:
        for asked, record in RECORDS.items():
            answers = answers_of(CALLS[asked][0](t))
            last = t.transcript[-1]
            assert json.loads(last.question) == json.loads(record), asked
            assert last.algorithm == NAMES[asked]
            assert (last.outcome == answers[-1].outcome) != ("histogram" in asked)
            known = read_back(last.question, last.epsilon, t.schema)
            prepared = t.prepare(QUESTIONS_OF[asked])
            assert (known.measure, known.always_paid, known.name) == (prepared.measure, True, prepared.name)
        kept = list(t.transcript)
    shown = run("ledger", "show", ledger)
    assert shown.code == 0, shown.err
    entries = run("ledger", "show", ledger, "--json").json["entries"]
    assert [entry["algorithm"] for entry in entries if "algorithm" in entry] == [
        answer.algorithm for answer in kept
    ]
    with opened(FRAME, meter, ledger=ledger, hits=None) as t:
        assert list(t.transcript) == kept


@EACH
def test_a_file_ledger_goes_on_where_it_was(meter, tmp_path):
    ledger, hits = tmp_path / "ledger.db", 0
    for asked, (call, more) in CALLS.items():
        with opened(FRAME, meter, ledger=ledger) as t:
            assert (t.meter.hits, t.meter.hits_left) == (hits, HITS - hits), asked
            call(t)
            hits += more
            assert t.meter.hits == hits
    assert spent(t) <= hits


@EACH
def test_an_answer_from_the_transcript_is_compared_with_a_new_one(meter):
    with opened(FRAME, meter) as t:
        t.count("week = 1")
        first, second = t.transcript[0], t.count("week = 2")
        compared = t.difference(first, second)
        assert compared.value == first.outcome - second.outcome or t.meter.tariff.offset is not None
        low, high = compared.interval
        assert low <= compared.value <= high
        cells = t.histogram(None, "week", range(3))
        low, high = cells.difference(0, 1).interval
        assert low <= cells[0].outcome - cells[1].outcome <= high
        for answer in (t.mean("fee", 0, 5), t.quantile("fee", 0.5, 0, 5)):
            with pytest.raises(tc.InvalidParameter, match="about a count or a sum"):
                t.difference(answer, second)
        with pytest.raises(tc.InvalidParameter) as refusal:
            t.difference(t.transcript[2], second)  # all cells of a histogram
        assert refusal.value.name == "first"


# Budgets that end.


@EACH
def test_a_budget_that_ends_refuses_one_answer_and_says_of_many_why_there_is_none(meter):
    with opened(FRAME, meter, hits=2) as t:
        t.count()
        many = t.quantiles("fee", [0.1, 0.5, 0.9], 0, 10)
        assert (len(many), many.unanswered, t.meter.hits) == (0, (0.1, 0.5, 0.9), 1)
        assert "could cost" in many.stopped
        assert isinstance(many.refusal, tc.BudgetSpent)
        assert t.meter.tariff.name == "renyi" or (many.refusal.asked, many.refusal.left) == (3, 1)
        assert len(t.quantiles("fee", [0.5], 0, 10)) == 1
        for asked, (call, _) in CALLS.items():
            if asked.startswith(("histogram", "quantiles")):
                answers = call(t)
                assert (len(answers), answers.hits) == (0, []), asked
                assert isinstance(answers.refusal, tc.BudgetSpent)
                assert len(answers.unanswered) == t.preview(QUESTIONS_OF[asked]).keys
                assert answers.stopped == str(answers.refusal)
            else:
                with pytest.raises(tc.BudgetSpent):
                    call(t)
        assert (t.meter.hits, len(t.transcript)) == (2, 2)


@EACH
def test_questions_in_a_list_are_answered_until_the_budget_ends(meter):
    asked = [q.mean("fee", 0, 10), q.count(), q.count(q.sum("fee", 0, 10)), q.mean("fee", 0, 5), q.count()]
    with opened(FRAME, meter, hits=3) as t:
        answers = t.ask_many(asked)
        assert [answer.algorithm for answer in answers] == [
            "mean(fee from 0 to 10)",
            "count(*)",
            "sum(fee from 0 to 10)",
        ]
        assert answers.unanswered == tuple(asked[3:])
        assert isinstance(answers.refusal, tc.BudgetSpent)
        assert t.meter.hits == 3


# What is refused.


NAN = math.nan


def mistakes():
    for share in (0, 1, -0.1, 1.1, NAN, math.inf, "0.5", None, True, 1j, 0.1234567, Fraction(1, 10**6 + 1)):
        yield f"q {share}", (lambda t, share=share: t.quantile("fee", share, 0, 5), "q", share)
        yield f"qs {share}", (lambda t, share=share: t.quantiles("fee", [0.5, share], 0, 5), "q", share)
    for shares in ([], (), 0.5, "0.5", None, {0.5}):
        yield f"qs {shares}", (lambda t, shares=shares: t.quantiles("fee", shares, 0, 5), "qs", shares)
    single = {
        "mean": lambda t, *given, **more: t.mean(*given, **more),
        "quantile": lambda t, column, *given, **more: t.quantile(column, 0.5, *given, **more),
        "sum": lambda t, *given, **more: t.sum(*given, **more),
    }
    for name, call in single.items():
        for bad in (NAN, math.inf, "5", None, True, 10**16):
            yield f"{name}: lower {bad}", (lambda t, c=call, b=bad: c(t, "fee", b, 5), "lower", bad)
            yield f"{name}: upper {bad}", (lambda t, c=call, b=bad: c(t, "fee", 0, b), "upper", bad)
        yield f"{name}: reversed", (lambda t, c=call: c(t, "fee", 5, 4), "lower", 5)
        for grid in (0, -1, "x", NAN, True, "1e-999999999", [1], "1/0"):
            yield f"{name}: grid {grid}", (lambda t, c=call, g=grid: c(t, "fee", 0.1, 5, grid=g), "grid", grid)
        yield f"{name}: too coarse", (lambda t, c=call: c(t, "fee", 0.1, 5, grid=1000), "grid", 1000)
        yield f"{name}: too fine", (lambda t, c=call: c(t, "fee", 0, 5000, grid="1e-13"), "grid", "1e-13")
        yield f"{name}: unknown", (lambda t, c=call: c(t, "salary", 0, 5), "column", "salary")
        yield f"{name}: text", (lambda t, c=call: c(t, "kind", 0, 5), "column", "kind")
        yield f"{name}: no name", (lambda t, c=call: c(t, 5, 0, 5), "column", 5)
        for bad in (0, -1, NAN, "0.1", 11):
            yield f"{name}: epsilon {bad}", (lambda t, c=call, b=bad: c(t, "fee", 0, 5, epsilon=b), "epsilon", bad)
    for name in ("mean", "quantile"):
        yield f"{name}: of one value", (lambda t, c=single[name]: c(t, "fee", 5, 5), "upper", 5)
    yield "quantile: too many cells", (lambda t: t.quantile("fee", 0.5, 0, 5000, grid="0.001"), "grid", "0.001")
    for many in (0, -1, 1.5, "2", None, True, 10**16):
        yield f"per_unit {many}", (lambda t, m=many: t.histogram(None, "kind", ["a"], m), "per_unit", many)
    keys = {"none": (None, "keys"), "empty": ([], "keys"), "a set": ({"a"}, "keys"), "text": ("abc", "keys")}
    keys["too many"] = (range(10**6 + 1), "keys")
    for name, (given, parameter) in keys.items():
        by = "fee" if name == "too many" else "kind"
        yield f"keys: {name}", (lambda t, k=given, b=by: t.histogram(None, b, k), parameter, given)
    yield "keys: twice", (lambda t: t.histogram(None, "kind", ["a", "b", "a"]), "keys[2]", "a")
    yield "keys: a number", (lambda t: t.histogram(None, "kind", ["a", 5]), "keys[1]", 5)
    yield "keys: missing twice", (lambda t: t.histogram(None, "kind", [None, None]), "keys[1]", None)
    yield "by: unknown", (lambda t: t.histogram(None, "salary", [1]), "by", "salary")
    total = q.sum("fee", 0, 5)
    yield "histogram of a sum", (lambda t: t.histogram(total, "kind", ["a"]), "where", total)
    value = q.mean("fee", 0, 5).what
    yield "count of a value", (lambda t: t.ask(q.CountQuestion(value)), "what", value)
    yield "mean of a count", (lambda t: t.ask(q.Mean(q.Count())), "what", q.Count())
    mean = q.mean("fee", 0, 5)
    yield "release of a mean", (lambda t: t.release(t.prepare(mean), 5), "where", mean)
    yield "a mean with distances", (lambda t: t.preview(mean, [5]), "distances", [5])
    histogram = q.histogram(None, "kind", ["a"])
    yield "a histogram in a list", (lambda t: t.ask_many([histogram]), "question", histogram)
    quantiles = q.quantiles("fee", [0.1, 0.2], 0, 5)
    yield "quantiles in a list", (lambda t: t.ask_many([quantiles]), "question", quantiles)
    yield "label", (lambda t: t.ask(q.mean("fee", 0, 5, label=5)), "label", 5)


def test_what_makes_no_sense_is_refused_by_name_and_value():
    with opened(pd.DataFrame({"unit": [1], "fee": [2.5], "kind": ["a"]}), "exact") as t:

        def refused(call, name, value):
            with pytest.raises(tc.InvalidParameter) as refusal:
                call(t)
            assert refusal.value.name == name
            assert refusal.value.value is value or refusal.value.value == value
            assert str(refusal.value).startswith(name)

        every(dict(mistakes()), refused)
        assert (t.meter.hits, len(t.transcript)) == (0, 0)
