"""The k largest with their numbers: intervals of what was selected, the order in which it comes, what it costs."""

from __future__ import annotations

import functools
import math
import random
import re
from fractions import Fraction

import pandas as pd
import pytest
from scipy.stats import binom
from tests.offset_noise import noise_of
from tests.refusals import every
from tests.sizes import size
from tests.tables import naive_paid
from tests.tables.always_paid import EACH, FRAME, HITS, METERS, opened, seeded, spent, without_noise
from tests.tables.naive_units import Asked, random_rows, table_of
from tests.tables.noise import decide
from tests.tables.paired import KEYS, days
from tests.tables.tiny import quick

import targetcharge as tc
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.sessions import opening
from targetcharge.tables import questions as q

GAMES = size(8, 80)
FAR = 1e-9
"""Right intervals fail a test once in 10^9 runs, and so do wrong ones pass it."""

# Intervals of what was selected.

RUNS = size(300, 3000)
KEYS_ALIKE = 50
TABLES = {
    **{name: options | {"hits": HITS} for name, options in METERS.items()},
    "renyi, picked": {"budget": tc.Budget(60.0, 1e-6), "meter": "renyi", "hits": 30},
}
"""The last one has so few hits for its budget that keys are picked first, and then counted."""

EQUAL = pd.DataFrame(
    {"unit": range(20 * KEYS_ALIKE), "week": [place % KEYS_ALIKE for place in range(20 * KEYS_ALIKE)]}
)
STAIRS = pd.DataFrame(
    [(f"{week} {place}", week) for week in range(KEYS_ALIKE) for place in range(week)], columns=["unit", "week"]
)


def runs(monkeypatch, frame, ks, **options):
    """Yield the answers of each k, from tables with an offset and a ledger of their own."""
    seeded(monkeypatch, 1)
    monkeypatch.setattr("targetcharge.sessions.opening.rates", functools.cache(opening.rates))
    found, right = {}, DuckDBEngine.measure_by

    def known(engine, measure, keys):
        if id(frame) not in found:
            found[id(frame)] = right(engine, measure, keys)
        return found[id(frame)]

    monkeypatch.setattr(DuckDBEngine, "measure_by", known)
    with quick(monkeypatch):
        for _ in range(RUNS):
            with tc.open(frame, unit="unit", **options) as t:
                yield [t.top(None, "week", range(KEYS_ALIKE), k) for k in ks]


def too_many():
    """Return how many of all runs an interval may fail to hold in, if it holds in 95 of 100."""
    return binom.isf(FAR, RUNS, 0.05)


def missed(answers, truth_of, interval=lambda answer: answer.interval):
    """Return how many numbers are outside of their intervals."""
    ends = [(interval(answer), truth_of(answer.key)) for answer in answers]
    return sum(not low <= truth <= high for (low, high), truth in ends)


@pytest.mark.parametrize("name", TABLES)
def test_intervals_hold_in_95_of_100_runs_at_every_rank_where_all_keys_are_equal(monkeypatch, name):
    """Fifty keys alike, one, three and ten of which are published: the noise of the largest is a large one.

    The interval that a count has which was not selected fails in far more runs.
    """
    ks, ranks, plain = (1, 3, 10), {}, []
    with tc.open(EQUAL, unit="unit", **TABLES[name]) as t:
        noise = noise_of(t.meter.tariff.offset, t.describe().query_epsilon)
        below, above = (-(-far // noise.lattice) for far in noise.margins)
        picked = t.preview(q.top(None, "week", range(KEYS_ALIKE), 10)).margin_of == "beside the best"
    for tops in runs(monkeypatch, EQUAL, ks, **TABLES[name]):
        for k, answers in zip(ks, tops, strict=True):
            assert len(answers) == k
            for rank, answer in enumerate(answers, 1):
                ranks.setdefault((k, rank), []).append(answer)
        plain.append(tops[0][0])
    assert picked == (name == "renyi, picked")
    for place, answers in ranks.items():
        assert missed(answers, lambda _: 20) <= too_many(), place
    if not picked:
        wrong = missed(plain, lambda _: 20, lambda answer: (answer.outcome - above, answer.outcome + below))
        assert wrong > RUNS / 2
        assert binom.sf(too_many(), RUNS, wrong / RUNS) > 1 - FAR


@pytest.mark.parametrize("name", TABLES)
def test_intervals_hold_where_keys_are_not_equal(monkeypatch, name):
    ranks = {}
    for (answers,) in runs(monkeypatch, STAIRS, (5,), **TABLES[name]):
        for rank, answer in enumerate(answers):
            ranks.setdefault(rank, []).append(answer)
    assert len(ranks) == 5
    for rank, answers in ranks.items():
        assert missed(answers, lambda key: key) <= too_many(), rank


@EACH
def test_the_interval_of_each_rank_is_as_wide_as_its_preview_says_or_narrower(monkeypatch, meter):
    without_noise(monkeypatch)
    with opened(FRAME, meter) as t:
        for what in (None, q.sum("fee", 0, 10, grid="0.5")):
            for k in (1, 3):
                seen, answers = t.preview(q.top(what, "week", range(7), k)), t.top(what, "week", range(7), k)
                if seen.margin_of == "number":
                    reach = [max(a.interval[1] - a.outcome, a.outcome - a.interval[0]) for a in answers]
                    step = 1 if what is None else 0.5
                    assert 0 <= seen.margin - max(reach) <= step  # it is rounded up to a step
                    assert {answer.scale for answer in answers} == {seen.scale}
                    assert seen.scale >= t.preview(q.count(what)).scale
                    assert seen.margin > t.preview(q.count(what)).margin


# The order.


class Game:
    """Selections from a random table, with noise that a generator decides, beside the naive ones."""

    def __init__(self, monkeypatch, rng, meter, unit):
        rows = random_rows(rng, 15, rng.choice([0, 40]))
        self.rng, self.truth, self.noise = rng, Truth(rows, by_row=unit is tc.ROW), []
        decide(monkeypatch, lambda _: 0, self.draw)
        self.t = opened(table_of(rows), meter, unit=unit, hits=40)

    def draw(self, noise, count):
        """Return noise of a few steps: numbers that are alike are often published as the same."""
        self.lattice, reach = noise.lattice, 2 * noise.lattice
        self.noise = [self.rng.randint(-reach, reach) for _ in range(count)]
        return self.noise

    def play(self):
        rng, t = self.rng, self.t
        where, by = rng.choice([None, "week >= 1", "fee < 0"]), rng.choice([*KEYS, days])
        columns, keys, grain = (by, KEYS.get(by), None) if by is not days else (("at",), days(), "day")
        total = rng.choice([None, ("fee", 0, 10, "1"), ("fee", 0, 5, "0.25")])
        what = where if total is None else q.sum(*total[:3], where, grid=total[3])
        published = keys if grain is None else [day.isoformat() for day in keys.listed()]
        k = rng.randint(1, len(published))
        threshold, gap = rng.choice([None, None, 3, 0.5]), rng.choice([None, None, 0, 2])
        stop = None if gap is None else tc.sessions.gap(gap)
        before = spent(t)
        answers = t.top(what, list(columns), keys, k, threshold=threshold, stop=stop)
        asked = Asked(where, total, columns, grain)
        numbers = [self.truth.cell(asked, key) for key in published]
        expected = naive_top(self.shown(numbers, asked.grid), k, threshold, gap)
        assert [(answer.candidate, answer.outcome) for answer in answers] == expected
        assert [answer.key for answer in answers] == [published[place] for place, _ in expected]
        assert [answer.outcome for answer in answers] == sorted((a.outcome for a in answers), reverse=True)
        assert spent(t) - before == pytest.approx(len(answers), rel=1e-9)
        last = t.transcript[-1]
        assert last.call == ("select" if len(answers) == k else "select ended")
        assert last.hit == (len(answers) == k)

    def shown(self, numbers, grid):
        """Return numbers as they are published: on the next whole step of two that are as near, the lower."""
        noisy = (
            number / grid + Fraction(noise, self.lattice)
            for number, noise in zip(numbers, self.noise, strict=True)
        )
        return [math.ceil(number - Fraction(1, 2)) * grid for number in noisy]


def naive_top(numbers, k, threshold, gap):
    """Return places and numbers: largest first, of equal ones the first; down to a threshold, or a wide gap."""
    order = sorted(range(len(numbers)), key=lambda place: (-numbers[place], place))
    chosen = []
    for place in order[:k]:
        if threshold is not None and numbers[place] < Fraction(threshold):
            break
        if gap is not None and chosen and numbers[place] < chosen[-1][1] - gap:
            break
        chosen.append((place, numbers[place]))
    return chosen


class Truth(naive_paid.Truth):
    """The numbers of keys."""

    def cell(self, asked, key):
        return Fraction(self.number(Asked(asked.where, asked.total, asked.by, asked.grain, key)))


@EACH
@pytest.mark.parametrize("unit", ["unit", tc.ROW], ids=["column", "row"])
def test_the_largest_come_first_and_of_equal_ones_the_first(monkeypatch, meter, unit):
    """As falling thresholds would find them (docs/theory/offsets.md), with thresholds and stopping rules."""
    monkeypatch.setattr("targetcharge.sessions.opening.rates", functools.cache(opening.rates))
    for number in range(GAMES):
        game = Game(monkeypatch, random.Random(f"{meter} {unit} {number}"), meter, unit)
        with game.t:
            for _ in range(6):
                game.play()


def test_keys_that_are_published_as_equal_come_in_their_order_whatever_the_noise_below_a_step(monkeypatch):
    """On a sparse meter noise has a hundred steps for one of a count: what it is within one is not told."""
    frame = pd.DataFrame({"unit": range(30), "week": [0, 1, 2] * 10})
    decide(monkeypatch, lambda _: 0, lambda _noise, _count: [-20, 30, 45])
    with opened(frame) as t:
        answers = t.top(None, "week", [2, 0, 1], 3)
        assert [(answer.key, answer.outcome) for answer in answers] == [(2, 10), (0, 10), (1, 10)]


# What it costs.

SIGNED = q.sum("fee", -10, 10, grid="0.5")
"""A sum that a unit may lower: it carries no offset, so a pick and a number have less noise together."""


@EACH
@pytest.mark.parametrize("k", [1, 3, 7])
def test_each_costs_a_hit_with_or_without_its_number(meter, k):
    with opened(FRAME, meter, hits=24) as t:
        test = t.meter.tariff.typical.value
        for values in (True, False):
            for what in (None, q.sum("fee", 0, 10)):
                question, before = q.top(what, "week", range(7), k, values=values), t.meter.totals
                seen = t.preview(question)
                answers = t.ask(question) if t.meter.hits_left >= k else []
                assert (seen.most_hits, seen.keys) == (k, 7)
                assert seen.price <= test * (1 + 1e-9)
                if answers:
                    assert len(answers) == k
                    assert {answer.price for answer in answers} == {seen.price}
                    assert [answer.outcome is not None for answer in answers] == [values] * k
                    assert [answer.interval is not None for answer in answers] == [values] * k
                    assert t.meter.hits == before.hits + k
                    assert 0.999 * k < (t.meter.totals.spent - before.spent) / t.meter.tariff.typical.grains <= k
                    assert len({answer.key for answer in answers}) == k


@EACH
def test_a_number_after_a_pick_is_a_second_hit_and_the_preview_and_the_answers_say_so(monkeypatch, meter):
    seeded(monkeypatch, 3)
    with opened(FRAME, meter) as t:
        test, question = t.meter.tariff.typical.value, q.top(SIGNED, "week", range(7), 3)
        seen, answers = t.preview(question), t.ask(question)
        assert (seen.most_hits, seen.margin_of) == (3, "beside the best")
        assert 1.999 * test < seen.price <= 2 * test
        assert [answer.price for answer in answers] == [seen.price] * 3
        assert 5.99 < spent(t) <= 6
        assert spent(t) == pytest.approx(seen.most_hits * seen.price / test, rel=1e-9)
        assert t.meter.hits_left == HITS - 6
        ((picked, counted),) = {answer.targets for answer in answers}
        assert picked[:2] == ("Everything", "bounded range")
        assert counted[:2] == ("Everything", "gaussian" if meter in ("exact", "renyi") else "pure")
        count = t.preview(q.count(SIGNED))
        for answer in answers:
            low, high = answer.interval
            assert answer.scale == seen.scale == count.scale
            assert high - answer.outcome == pytest.approx(count.margin, abs=1e-9)
            assert high - answer.outcome == answer.outcome - low
        picks = t.preview(q.top(SIGNED, "week", range(7), 3, values=False))
        assert picks.price == pytest.approx(seen.price / 2, rel=1e-3)
        assert (picks.margin, picks.scale) == (seen.margin, 0)
        assert f"in 95% of picks, their numbers of scale {seen.scale:.4g}, priced like a test at" in str(seen)
        assert "in 95% of picks, priced like a test at" in str(picks)


@EACH
def test_the_margin_of_a_pick_is_what_the_exponential_mechanism_allows(meter):
    """Of n keys one is so far below with a probability of at most n·e^{-rate·gap}: 5% at ln(20n)/rate."""
    with opened(FRAME, meter) as t:
        for what, width, step in ((None, 1, 1), (q.sum("fee", 0, 10, grid="0.5"), 20, 0.5), (SIGNED, 40, 0.5)):
            question = q.top(what, "week", range(7), 1, values=False)
            seen, (answer,) = t.preview(question), t.ask(question)
            ((kind, curve, most),) = answer.targets
            assert (kind, curve) == ("Everything", "bounded range")
            assert seen.margin == pytest.approx(math.log(20 * 7) * width / most * step, rel=1e-6)


@EACH
def test_picks_are_the_best_without_noise_and_say_no_numbers(monkeypatch, meter):
    without_noise(monkeypatch)
    frame = pd.DataFrame({"unit": range(60), "week": [0] * 10 + [1] * 30 + [2] * 20, "fee": [-1.0] * 60})
    with opened(frame, meter) as t:
        for what, best in ((None, [1, 2, 0]), (q.sum("fee", -2, 5, grid=1), [3, 0, 2])):
            picked = t.top(what, "week", [0, 1, 2, 3], 3, values=False)
            assert [answer.key for answer in picked] == best
            assert {(answer.outcome, answer.interval, answer.scale) for answer in picked} == {(None, None, 0.0)}
        counted = t.top(q.sum("fee", -2, 5, grid=1), "week", [0, 1, 2, 3], 2)
        assert [(answer.key, answer.outcome) for answer in counted] == [(3, 0), (0, -10)]


@EACH
def test_a_threshold_or_a_rule_publishes_fewer_and_charges_for_those(monkeypatch, meter):
    seeded(monkeypatch, 4)
    sizes = {0: 4000, 1: 3000, 2: 2900, 3: 100}
    weeks = [week for week, many in sizes.items() for _ in range(many)]
    with opened(pd.DataFrame({"unit": range(len(weeks)), "week": weeks}), meter) as t:
        above = t.top(None, "week", [3, 2, 1, 0], 4, threshold=2000)
        assert [answer.key for answer in above] == [0, 1, 2]
        together = t.top(None, "week", [3, 2, 1, 0], 4, stop=tc.sessions.gap(500))
        assert [answer.key for answer in together] == [0]
        assert spent(t) == pytest.approx(4, rel=1e-9)
        assert (above.stopped, above.unanswered) == ("", ())
        assert [answer.call for answer in t.transcript].count("select ended") == 2
        assert 3990 < together[0].outcome < 4010 or together[0].interval[0] < 4000 < together[0].interval[1]
        compared = above.difference(0, 1)
        assert compared.interval[0] < 1000 < compared.interval[1]


def test_a_sum_that_may_fall_has_its_threshold_where_a_meter_takes_it():
    """Its noisy numbers are compared with it, and a sparse meter takes none of those."""
    weeks = pd.DataFrame({"unit": range(3000), "week": [0] * 2000 + [1] * 1000, "fee": [5.0] * 3000})
    for meter in METERS:
        with opened(weeks, meter) as t:
            if meter in ("sparse", "pure"):
                for ask in (t.preview, t.ask):
                    with pytest.raises(tc.NotAllowed, match="meter='exact'"):
                        ask(q.top(SIGNED, "week", [0, 1, 2], 3, threshold=1000))
                assert (t.meter.hits, len(t.transcript)) == (0, 0)
            else:
                answers = t.top(SIGNED, "week", [0, 1, 2], 3, threshold=2500)
                assert [answer.key for answer in answers] == [0, 1]
                assert spent(t) == pytest.approx(2, rel=1e-9)


# Budgets that do not cover it, and what makes no sense.


@EACH
@pytest.mark.parametrize("values", [True, False])
def test_a_budget_that_does_not_cover_all_of_them_answers_none_and_says_so(meter, values):
    with opened(FRAME, meter, hits=4) as t:
        assert len(t.top(None, "week", range(7), 1, values=False)) == 1
        before = t.meter.totals
        for what in (None, q.sum("fee", 0, 10), SIGNED):
            answers = t.top(what, "week", range(7), 4, values=values)
            assert (len(answers), answers.hits) == (0, [])
            assert answers.unanswered == tuple(range(7))
            assert isinstance(answers.refusal, tc.BudgetSpent)
            assert answers.stopped == str(answers.refusal)
            assert "could cost" in answers.stopped
        assert (t.meter.totals, len(t.transcript)) == (before, 1)
        assert len(t.top(None, "week", range(7), 3, values=values)) == 3


@EACH
def test_numbers_alone_where_a_pick_and_a_number_for_each_are_not_covered(meter):
    """On a sparse meter noisy numbers of such a sum cannot be selected: there it is refused."""
    with opened(FRAME, meter, hits=3) as t:
        answers = t.top(SIGNED, "week", range(7), 3)
        if meter in ("sparse", "pure"):
            assert (len(answers), t.meter.hits) == (0, 0)
            assert (answers.refusal.asked, answers.refusal.left) == (6, 3)
        else:
            assert len(answers) == 3
            assert spent(t) == pytest.approx(3, rel=1e-9)
            assert all(answer.call == "select" for answer in answers)


def test_what_makes_no_sense_is_refused_by_name_and_value():
    rule = tc.sessions.gap(5)
    asked = {
        "k 0": ({"k": 0}, "k", 0),
        "k 8": ({"k": 8}, "k", 8),
        "k 8 without values": ({"k": 8, "values": False}, "k", 8),
        "k 1.5": ({"k": 1.5}, "k", 1.5),
        "k true": ({"k": True}, "k", True),
        "values 1": ({"values": 1}, "values", 1),
        "values none": ({"values": None}, "values", None),
        "threshold": ({"values": False, "threshold": 5}, "threshold", 5),
        "stop": ({"values": False, "stop": rule}, "stop", rule),
        "NaN": ({"threshold": math.nan}, "threshold", None),
        "no rule": ({"stop": 5}, "stop", 5),
        "keys twice": ({"keys": [1, 2, 1]}, "keys[2]", 1),
        "epsilon": ({"epsilon": 0}, "epsilon", 0),
    }
    for meter in METERS:
        with opened(FRAME, meter) as t:

            def refused(options, name, value, t=t):
                with pytest.raises(tc.InvalidParameter) as refusal:
                    t.top(**({"by": "week", "keys": range(7)} | options))
                assert refusal.value.name == name
                assert value is None or refusal.value.value == value

            every(asked, refused)
            assert (t.meter.hits, len(t.transcript)) == (0, 0)


@EACH
def test_the_ledger_keeps_which_of_them_it_was(tmp_path, meter):
    ledger = tmp_path / "ledger.db"
    with opened(FRAME, meter, ledger=ledger) as t:
        t.top("week < 5", "week", range(7), 2)
        t.top(None, "week", range(7), 2, values=False)
        t.top(SIGNED, "week", range(7), 2)
        kept = list(t.transcript)
    hashed = re.compile(r',"keys_hash":"[0-9a-f]{64}"')  # which keys, told apart and not told
    questions = [hashed.sub("", answer.question) for answer in kept]
    assert questions[0] == '{"what":{"count":"week < 5"},"top":2,"threshold":null,"by":["week"]}'
    assert questions[1] in ("", questions[0])  # of a selection only the first says it
    assert questions[2:4] == ['{"what":{"count":null},"picks":2,"threshold":null,"by":["week"]}'] * 2
    assert all('"sum":"fee"' in question and '"top":2' in question for question in questions[4:])
    with opened(FRAME, meter, ledger=ledger, hits=None) as t:
        assert list(t.transcript) == kept
        assert (t.meter.hits, t.meter.hits_left) == (6, HITS - 8)
