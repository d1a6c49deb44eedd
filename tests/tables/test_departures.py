"""At most how many units have left: told from the transcript alone, and true of counters that nobody may see."""

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from tests.sizes import size, spread
from tests.tables.individuals import capacity, counters, opened
from tests.tables.noise import silence

import targetcharge as tc
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import Spent, entry_of, text_of
from targetcharge.mechanisms.noise import CountNoise, rate_for
from targetcharge.randomness import Rate
from targetcharge.tables import Monitor, Rule
from targetcharge.tables.individual import departures as module
from targetcharge.tables.individual.departures import Departures, log_moment

EPSILON = 0.1
GUMBEL = CountNoise.gumbel(EPSILON, 1)
NOISES = {
    "gumbel": GUMBEL,
    "laplace": CountNoise.natural(EPSILON, 1),
    "gaussian": CountNoise("gaussian", Rate.at_most(0.08)),
}
SUM = '{"what":{"sum":"fee","bounds":[0,1],"grid":"1","where":null},"above":1}'


def departures(hits, *, at_least=True):
    return Departures("exact", hits, 1, 2.0, EPSILON, at_least=at_least)


def hit(number, question='{"what":{"count":null},"above":1}', targets=("NotPrior", None), **other):
    return Answer(number, True, 1.0, 1, "", (targets,), EPSILON, grains=(1,), question=question, **other)


# The law of the noise.


def masses_of(noise, rate):
    """Return integers and their probabilities, from the definitions; Gumbel noise less the integer at its mean."""
    reach = math.ceil(400 / rate)
    values = np.arange(-reach, reach + 1)
    if noise == "laplace":
        masses = np.exp(-rate * np.abs(values))
    elif noise == "gaussian":
        masses = np.exp(-((rate * values) ** 2) / 2)
    else:
        masses = np.diff(np.exp(-np.exp(np.minimum(-rate * np.append(values[0] - 1, values), 700))))
    masses = masses / masses.sum()
    return values - round(float(values @ masses)), masses


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.7, 3.0])
@pytest.mark.parametrize("noise", NOISES)
def test_moments_are_those_of_the_law_or_a_little_above(noise, rate):
    values, masses = masses_of(noise, rate)
    drawn = CountNoise(noise, Rate.at_most(rate))
    for times in (1e-4, 0.01, 0.1, 0.5, 0.9):
        tilt = times * rate
        exactly = math.log(masses @ np.exp(-tilt * values))
        (moment,) = log_moment(drawn, np.array([tilt]))
        rounded = tilt if noise == "gumbel" or rate > 1 else 0.0  # to whole steps, by less than one
        assert exactly - 1e-12 <= moment * (1 + 1e-9) <= exactly * (1 + 1e-3) + rounded + 1e-12


def test_a_moment_that_is_not_finite_is_no_bound():
    assert log_moment(NOISES["laplace"], np.array([EPSILON, 2 * EPSILON])).tolist() == [math.inf] * 2
    assert np.isfinite(log_moment(GUMBEL, np.array([2 * EPSILON]))).all()


# How often it holds.


def sessions(count, people, threshold, *, noise="gumbel", questions=24, hits=3):
    """Return, for sessions with the same question again and again, whether the bound ever was below the truth."""
    rng = np.random.default_rng(5)
    values, masses = masses_of(noise, rate_for(EPSILON, 1).numerator / rate_for(EPSILON, 1).denominator)
    broken, last = [], []
    for _ in range(count):
        bound, charged, wrong = departures(hits, at_least=noise == "gumbel"), 0, False
        for drawn in rng.choice(values, questions, p=masses).tolist():
            if people + drawn >= threshold:  # those who were charged so often have all left, others have come
                charged += people
                bound.add(hit(people + drawn))
                wrong |= bound._numbers > 0 and bound._each >= hits and bound.most() < charged // hits
        broken.append(wrong)
        last.append(bound.most() * hits / max(1, charged))
    return broken, last


@pytest.mark.parametrize(("people", "threshold"), [(1_000, 500), (1_000, 1_015), (60, 100)])
@pytest.mark.parametrize("noise", ["gumbel", "laplace"])
def test_it_holds_at_all_moments_in_95_of_100_sessions(noise, people, threshold):
    count = size(300, 5_000)
    broken, _ = sessions(count, people, threshold, noise=noise)
    assert binom.sf(sum(broken) - 1, count, 0.05) > 1e-9


def test_without_the_room_for_noise_it_would_not(monkeypatch):
    monkeypatch.setattr(module, "_UNSURE", 0.0)
    broken, _ = sessions(200, 1_000, 500)
    assert binom.sf(sum(broken) - 1, 200, 0.05) < 1e-9


def test_it_is_close_to_the_truth_where_numbers_are_large():
    _, last = sessions(50, 10_000, 500)
    assert 0.99 < min(last) < max(last) < 1.02


@pytest.mark.parametrize("threshold", [-math.inf, 110])
def test_it_holds_for_the_largest_of_many(threshold):
    rng, count, wrong = np.random.default_rng(6), size(300, 5_000), 0
    values, masses = masses_of("gumbel", EPSILON)
    for _ in range(count):
        bound, charged = departures(2), 0
        for _ in range(4):
            noisy = 60 + rng.choice(values, 200, p=masses)
            best = np.sort(noisy)[::-1][:5]
            for rank, number in enumerate(best[best >= threshold].tolist()):
                asked = '{"what":{"count":null},"top":5,"by":["week"],"keys":[1,2]}' if not rank else ""
                bound.add(hit(number, asked, candidate=rank, call="select"))
                charged += 60
        wrong += (bound.most() or math.inf) < charged // 2 if bound._each >= 2 else 0
    assert binom.sf(wrong - 1, count, 0.05) > 1e-9


# What tells nothing.


@pytest.mark.parametrize(
    "asked",
    [
        hit(1_000.0, SUM),
        hit(1_000, targets=("NotPrior", tc.UNCHANGED)),
        hit(None, '{"what":{"count":null},"picks":1,"by":["week"],"keys":[1]}', candidate=0),
        hit(50.0, '{"what":{"value":"fee","bounds":[0,1],"grid":"1","where":null},"mean":null}', ("Everything",)),
        hit(1_000, ""),
        Spent("failed", (1,), 1),
    ],
    ids=["sum", "change", "pick", "mean", "unknown", "broken"],
)
def test_what_does_not_tell_how_many_were_charged_may_have_charged_everybody(asked):
    bound = departures(2)
    bound.add(entry_of(text_of(asked)))
    assert bound.most() == 0
    bound.add(hit(100))  # all of those may have been charged twice by now
    assert 100 < bound.most() < 150
    bound.add(asked)
    assert bound.most() is None


def test_a_release_that_waits_may_have_charged_everybody_until_its_number_is_published():
    bound = departures(1)
    drawn = Answer(None, False, 0.0, 7, "", (("NotPrior", None),), EPSILON, release=7, question=hit(1).question)
    bound.add(drawn)
    assert bound.most() is None
    bound.add(Answer(80, True, 1.0, 9, "", (("NotPrior", None),), EPSILON, grains=(1,), release=7, call="revise"))
    assert 80 < bound.most() < 150


@pytest.mark.parametrize("shortfall", [0, 7, 15])
def test_a_condition_that_chooses_low_noise_does_not_bring_the_bound_below_the_truth(shortfall):
    """Without a factor of 2 for each release it would be, in all runs."""
    random, units, hits = np.random.default_rng(5), 20, 105
    for _ in range(10):
        bound = departures(hits, at_least=False)
        for seq in range(1, hits + 1):
            noisy = units + int(random.geometric(-math.expm1(-EPSILON)) - random.geometric(-math.expm1(-EPSILON)))
            published = noisy < units - shortfall
            bound.add(
                replace(hit(noisy if published else None), hit=published, seq=seq, release=seq, call="release")
            )
        most = bound.most()
        assert most is None or most >= units


def test_a_question_that_needs_more_hits_loses_more_units():
    bound = departures(3)
    bound.add(hit(300)), bound.add(hit(300))
    assert bound.most(1) == 0
    assert 300 < bound.most(2) < 350  # who was charged twice cannot pay for two more
    assert 600 < bound.most(3) < 700
    assert bound.most(4) is None


def test_a_test_may_be_dearer_than_what_was_declared():
    """Where the boundary was declared, who cannot pay for a test has left, whatever else they could pay for."""
    with opened(ROWS, meter="renyi", targets=[tc.Boundary(2)], budget=tc.Budget(3.0, 1e-6)) as t:
        tariff, test = t.meter.tariff, t.meter.quote(tc.NotPrior(None), EPSILON)
        assert test.grains > 1.1 * tariff.typical.grains
        bound = Departures.of_tariff(tariff, EPSILON)
        for _ in range(tariff.capacity // test.grains):
            assert bound.most() == 0
            bound.add(replace(hit(100), grains=(test.grains,)))
        assert tariff.capacity % test.grains > tariff.typical.grains  # which is left of the budget
        assert 100 < bound.most() < 300


def test_many_hits_of_a_batch_count_as_one_by_one():
    numbers = [90, 120, 150]
    batch = BatchEntry.of(
        hit(90, '{"what":{"count":null},"above":1,"by":["week"]}'), tuple(numbers), np.arange(3), range(3)
    )
    together, alone = departures(2), departures(2)
    together.add(batch)
    for number in numbers:
        alone.add(hit(number))
    assert together.most() == alone.most() > 0


# Real tables.

ROWS = pd.DataFrame({"unit": [*range(60), *range(30)], "week": [1] * 60 + [2] * 30, "fee": 1.0})


def calls(rng):
    """Return a call of every kind."""
    where = rng.choice(["week = 1", "week = 2", None])
    return [
        lambda t: t.above(where, 10),
        lambda t: t.count(where),
        lambda t: t.watch(None, "week", [1, 2, 3], 20),
        lambda t: t.ask_many([tc.questions.above(where, 5), tc.questions.above(None, 5)]),
        lambda t: t.top(None, "week", [1, 2], 2),
        lambda t: t.top(None, "week", [1, 2], 1, threshold=40),
        lambda t: t.histogram(None, "week", [1, 2], per_unit=2),
        lambda t: t.sum("fee", 0, 1, where),
        lambda t: t.mean("fee", 0, 1, where),
        lambda t: t.release(where, 10),
        lambda t: t.release(where, 1_000).revise(5),
        lambda t: t.release(where, 1_000),
    ]


@pytest.mark.parametrize("meter", ["exact", "renyi"])
@pytest.mark.parametrize("seed", spread(range(12), 3))
def test_no_more_units_have_left_than_is_told(monkeypatch, tmp_path, meter, seed):
    silence(monkeypatch)  # so that numbers are what was charged
    rng, told, left = np.random.default_rng(seed), [], []
    declared = {"targets": None} if meter == "exact" else {}
    with opened(ROWS, 4, meter=meter, ledger=tmp_path / "a.db", **declared) as t:
        hit_price = t._numbers.allowance.scaled(t.meter.tariff.typical.grains)
        for _ in range(14):
            rng.choice(np.array(calls(rng), object))(t)
            spent = np.array(counters(t))
            for hits in (1, 2, 4):
                most = t.may_have_left(hits)
                truth = int((spent > capacity(t) - hits * hit_price).sum())
                assert most is None or most >= truth
            told.append(t.may_have_left())
            left.append(truth)
        assert t.describe().may_have_left == t.may_have_left()
    with opened(ROWS, 4, meter=meter, ledger=tmp_path / "a.db", **declared) as again:
        assert again.may_have_left() == told[-1]
    assert max(left) > 0
    assert set(told) != {None}


def test_a_shared_budget_loses_nobody():
    with tc.open(ROWS, "unit", tc.Budget(3.0, 1e-6), hits=1) as t:
        t.count()
        assert t.may_have_left() == 0
        with pytest.raises(tc.InvalidParameter, match="hits"):
            t.may_have_left(0)


# What is said.

SAID = "of the units that still take part"


def test_everything_with_a_number_says_whom_it_is_about():
    rows = pd.DataFrame({"unit": range(4_000), "week": 1})
    with tc.open(rows, "unit", tc.Budget(3.0, 1e-6), hits=2, charging="individual") as t:
        assert "so far all do" in str(t.describe())
        asked = tc.questions.above("week = 1", 100)
        single = [t.ask(asked), t.count(), t.mean("week", 0, 2), t.quantile("week", 0.5, 0, 2)]
        many = [
            t.watch(None, "week", [1], 100),
            t.ask_many([asked]),
            t.top(None, "week", [1, 2], 1),
            t.histogram(None, "week", [1, 2]),
        ]
        assert all(SAID in answer.algorithm and SAID in answer._repr_html_() for answer in single)
        assert all(SAID in answer.algorithm for answer in t.transcript)
        assert all(SAID in repr(answers) and SAID in answers._repr_html_() for answers in many)
        preview = t.preview(asked)
        assert SAID in str(preview)
        assert SAID in preview._repr_html_()
        for text in (str(t.describe()), t.describe()._repr_html_()):
            assert SAID in text
            assert "nothing that was published bounds" in text


def test_where_all_share_a_budget_nobody_is_said_to_be_missing():
    with tc.open(ROWS, "unit", tc.Budget(3.0, 1e-6), hits=2) as t:
        said = [t.count().algorithm, repr(t.watch(None, "week", [1], 1)), str(t.describe())]
        assert not any(SAID in text for text in said)


def test_alerts_say_whom_they_are_about():
    days = pd.DataFrame({"unit": range(4_000), "day": pd.Timestamp("2024-01-01")})
    rules = [Rule("visits", threshold=1_000, anew=True)]
    for charging, said in (("individual", SAID), ("shared", "")):
        opening = {"unit": "unit", "budget": tc.Budget(3.0, 1e-6), "hits": 2, "charging": charging}
        with Monitor.open(days, rules, "day", **opening) as monitor, suppress(tc.BudgetSpent):
            (alert,) = monitor.look("2024-01-01").alerts
            assert alert.whose == alert.as_dict()["whose"] == said
            assert (SAID in str(alert)) is bool(said)


def test_a_closed_table_still_describes_itself(tmp_path):
    with tc.open(
        pd.DataFrame({"u": range(9)}), "u", tc.Budget(3, 1e-6), charging="individual", ledger=tmp_path / "l"
    ) as t:
        t.count()
    assert t.may_have_left() is None
    assert "of the units that still take part" in str(t.describe())
    assert t._repr_html_()
