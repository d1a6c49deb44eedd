"""How far off is what is always paid for: the noise that one hit pays for, intervals, and previews of both."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import pandas as pd
import pytest
from tests.discrete_gaussian import DiscreteGaussian
from tests.discrete_laplace import DiscreteLaplace
from tests.goodness import BufferedEntropy
from tests.offset_noise import noise_of
from tests.sizes import size
from tests.tables import naive_paid
from tests.tables.always_paid import (
    CALLS,
    EACH,
    FRAME,
    HITS,
    NAMES,
    QUESTIONS_OF,
    answers_of,
    opened,
    seeded,
    without_noise,
)
from tests.tables.noise import SHIFT

import targetcharge as tc
from targetcharge.engines.duckdb.connection import Connection
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.mechanisms.noise import Carried, draw_offset
from targetcharge.tables import questions as q

# How much noise: the laws, from their definition.


def law_of(t, epsilon, absolute, squared):
    """Return the noise of numbers of which a unit moves all by so much, in the sum and squared, for one hit.

    A sparse meter pays for half its ε, or all of it where the guarantee is pure (docs/theory/exchange.md).
    """
    tariff = t.meter.tariff
    if tariff.name == "sparse":
        return DiscreteLaplace(epsilon / (1 if tariff.offset.noise == "geometric" else 2) / absolute)
    if tariff.name == "exact":
        assert epsilon == 0.1
        return DiscreteGaussian(squared / SHIFT**2 + 5 / 2)
    order = tariff.order
    return DiscreteGaussian(order * (order - 1) * squared / (2 * tc.NotPrior(None).price(order, epsilon)))


def deviation_of(law):
    if isinstance(law, DiscreteLaplace):
        return 1 / (math.sqrt(2) * math.sinh(law.rate / 2))
    return law.standard_deviation


def margin_of(law):
    """Return the smallest margin that at most 2.5% of noise exceeds, either way; in steps."""
    if isinstance(law, DiscreteGaussian) and law.parameter < 1e6:
        return law.margin
    if isinstance(law, DiscreteGaussian):
        return 1.9599639845 * math.sqrt(law.parameter)
    return next(m for m in range(int(2 / law.rate), int(4 / law.rate) + 2) if law.at_least(m + 1) <= 0.025)


def at_a_tenth(meter):
    """Return options with which the query ε is 0.1, or about it."""
    if meter in ("exact", "renyi"):
        return {"budget": tc.Budget(6.0, 1e-6), "query_epsilon": 0.1, "hits": None}
    return {}


@EACH
def test_the_noise_is_the_least_that_one_hit_pays_for(meter):
    with opened(FRAME, meter, **at_a_tenth(meter)) as t:
        epsilon = t.describe().query_epsilon
        for keys, per_unit in ((7, 1), (7, 2), (7, 5), (3, 5), (1000, 9)):
            moved = min(keys, per_unit)
            law, seen = (
                law_of(t, epsilon, moved, moved),
                t.preview(q.histogram(None, "week", range(keys), per_unit)),
            )
            assert seen.scale == pytest.approx(
                1 / law.rate if isinstance(law, DiscreteLaplace) else law.standard_deviation / math.sqrt(2),
                rel=1e-4,
            )
            assert seen.margin == margin_of(law)
        seen, law = t.preview(q.mean("fee", -2, 5, grid=1)), law_of(t, epsilon, 7, 49)
        assert seen.margin == margin_of(law) + 1
        for lower, upper in ((-2, 5), (-9, 3)):
            law = law_of(t, epsilon, max(-lower, upper), max(-lower, upper) ** 2)
            seen = t.preview(q.count(q.sum("fee", lower, upper, grid=1)))  # it may fall: so no offset
            assert seen.margin == margin_of(law)
            assert seen.scale * math.sqrt(2) == pytest.approx(
                deviation_of(law), rel=5e-2 if meter == "pure" else 1e-2
            )


@EACH
def test_a_count_has_the_noise_of_the_session_or_fresh_noise_whichever_is_less(meter):
    for options in ({"hits": 4}, {"hits": HITS}, at_a_tenth(meter)):
        with opened(FRAME, meter, **options) as t:
            epsilon = t.describe().query_epsilon
            carried = noise_of(t.meter.tariff.offset, epsilon).standard_deviation
            deviations = [carried]
            if meter in ("sparse", "pure", "renyi") or epsilon == 0.1:
                deviations.append(deviation_of(law_of(t, epsilon, 1, 1)))
            seen = t.preview(q.count()).scale * math.sqrt(2)
            assert seen <= min(deviations) * (1 + 1e-4)
            assert len(deviations) == 1 or seen == pytest.approx(min(deviations), rel=1e-3)
            answer = t.count()
            assert answer.scale * math.sqrt(2) == pytest.approx(seen, rel=1e-9)
            (target,) = answer.targets
            assert (target[0] == "NotPrior") == (seen == pytest.approx(carried, rel=1e-6))


def test_noise_is_laplace_where_that_is_less_than_gaussian():
    """At a large ε: one hit of an exact meter pays for 1.26ε at ε = 2, or for Gaussian noise of 1/2.29 or more."""
    with tc.open(FRAME, "unit", tc.Budget(600.0, 1e-6), query_epsilon=2.0, meter="exact") as t:
        kinds = [t.histogram(None, "week", range(7), per_unit)[0].targets[0][1] for per_unit in (1, 7)]
        assert kinds == ["pure", "gaussian"]
        epsilon = 2 + math.log((2 * math.exp(2) + 1) / (math.exp(2) + 2))
        assert t.preview(q.histogram(None, "week", range(7))).scale == pytest.approx(1 / epsilon, rel=1e-6)


# Intervals hold.

DRAWS = size(24_000, 150_000)
NARROW = size(90, 95) / 100
"""Intervals that reach so far less: they must be found out."""


def covers(held, draws):
    """Return by how many standard deviations more than 95% of intervals hold."""
    return (held / draws - 0.95) / math.sqrt(0.05 * 0.95 / draws)


def assert_intervals_hold(found, truth, *, narrow=NARROW):
    """Check that at least 95% of (outcome, interval) hold the truth, and that narrower ones would not."""
    wide = sum(low <= truth <= high for _, (low, high) in found)
    shrunk = sum(
        middle - narrow * (middle - low) <= truth <= middle + narrow * (high - middle)
        for middle, (low, high) in found
    )
    assert covers(wide, len(found)) > -6
    assert covers(shrunk, len(found)) < -6


def drawn(t, question, numbers, draws, seed):
    """Return outcomes and intervals of a question about these numbers, each with an offset of its own."""
    prepared, entropy = t.prepare(question), BufferedEntropy(seed)
    algorithm = t._session.drawn(prepared.algorithm())
    found = []
    for _ in range(draws):
        offset = draw_offset(entropy, t.meter.tariff.offset) if algorithm.carries else None
        outcome = algorithm.run(numbers if offset is None else Carried(numbers, offset), entropy)
        shown = algorithm.publish(outcome, hit=True)
        held = algorithm.accuracy.interval(shown) if algorithm.interval is None else algorithm.interval(outcome)
        found.append((shown, held))
    return found


@EACH
def test_intervals_of_counts_and_sums_hold_in_95_of_100_draws(meter):
    asked = [
        (q.count(), 1),
        (q.count(q.sum("fee", 0, 5, grid="0.5")), 0.5),
        (q.count(q.sum("fee", -2, 5, grid=1)), 1),
    ]
    with opened(FRAME, meter) as t:
        for seed, (question, step) in enumerate(asked):
            found = drawn(t, question, SimpleNamespace(one=lambda _: 1000), DRAWS, seed)
            assert_intervals_hold(found, 1000 * step)


@EACH
def test_intervals_of_means_hold_in_95_of_100_draws(meter):
    """Most narrowly so where all values are at one end: then one noise alone decides."""
    with opened(FRAME, meter) as t:
        near = SimpleNamespace(totals=lambda _: (7000 * 10**6 // 200, 10**6))
        assert_intervals_hold(drawn(t, q.mean("fee", -2, 5, grid="0.001"), near, DRAWS, 1), -2 + 7 / 200)
        for share, units in ((Fraction(1, 2), 10**6), (Fraction(1, 3), 30), (Fraction(0), 3)):
            numbers = SimpleNamespace(totals=lambda _, s=share, n=units: (int(7000 * s * n), n))
            found = drawn(t, q.mean("fee", -2, 5, grid="0.001"), numbers, DRAWS // 10, units)
            held = sum(
                low <= float(-2 + 7 * share) + 1e-9 and float(-2 + 7 * share) - 1e-9 <= high
                for _, (low, high) in found
            )
            assert covers(held, len(found)) > -6


@EACH
def test_intervals_of_the_cells_of_histograms_hold_in_95_of_100_of_them(monkeypatch, meter):
    """Of a real table: 1,500 keys in each of twenty histograms."""
    seeded(monkeypatch, 7)
    keys, rows = range(1500), [(unit, unit % 1500) for unit in range(4000)]
    with opened(pd.DataFrame(rows, columns=["unit", "week"]), meter, hits=DRAWS // len(keys)) as t:
        found = [
            (answer.outcome - truth, tuple(end - truth for end in answer.interval))
            for _ in range(DRAWS // len(keys))
            for answer in t.histogram(None, "week", keys)
            for truth in [len(range(answer.key, 4000, 1500))]
        ]
    assert_intervals_hold(found, 0)


@EACH
def test_a_quantile_is_within_its_margin_of_ranks_in_95_of_100_picks(monkeypatch, meter):
    """Of a real table; the bound is for all tables, and this one has much room below it."""
    seeded(monkeypatch, 8)
    fees = [number % 900 for number in range(6000)]
    frame = pd.DataFrame({"unit": range(6000), "fee": fees})
    hits, picks = 60, []
    with opened(frame, meter, hits=hits) as t:
        shares = [0.1, 0.5, 0.9] * (hits // 3)
        asked = q.quantiles("fee", shares, 0, 1000, grid=1)
        margin = t.preview(asked).margin
        for share, answer in zip(shares, t.ask(asked), strict=True):
            picks.append(float(naive_paid.ranks_away(answer.outcome, fees, Fraction(str(share)))))
    assert sum(away <= margin for away in picks) >= 0.95 * len(picks)
    assert max(picks) > 0


# Previews.


def forbidden(*_):
    msg = "a preview must not touch the data"
    raise AssertionError(msg)


@EACH
def test_a_preview_is_the_same_whatever_the_data(monkeypatch, meter):
    other = pd.DataFrame({"unit": range(3000), "week": [99] * 3000, "fee": [-1e9] * 3000})
    found = []
    for frame in (FRAME, other, other.head(0)):
        with opened(frame, meter) as t:
            for method in ("measure", "measure_by", "distribution", "fingerprint", "contributions", "units"):
                monkeypatch.setattr(DuckDBEngine, method, forbidden)
            monkeypatch.setattr(Connection, "rows", forbidden)
            seen = [t.preview(question) for question in QUESTIONS_OF.values()]
            monkeypatch.undo()
            assert (t.meter.hits, len(t.transcript)) == (0, 0)
        found.append([(str(one), repr(one), one._repr_html_(), one.as_dict()) for one in seen])
    assert found[0] == found[1] == found[2]


@EACH
def test_an_answer_has_the_price_and_the_error_that_its_preview_says(monkeypatch, meter):
    without_noise(monkeypatch)
    with opened(FRAME, meter) as t:
        for asked, (call, hits) in CALLS.items():
            seen, answers = t.preview(QUESTIONS_OF[asked]), answers_of(call(t))
            assert seen.question == answers[0].algorithm == t.transcript[-1].algorithm
            assert seen.most_hits == hits
            assert seen.keys == len(answers)
            assert seen.price == answers[0].price
            assert seen.scale == answers[0].scale
            assert (seen.threshold, seen.chances) == (None, ())
            for answer in answers:
                if seen.margin_of == "number":
                    low, high = answer.interval
                    assert max(high - answer.outcome, answer.outcome - low) == pytest.approx(
                        seen.margin, rel=1e-12
                    )
                elif seen.margin_of == "times units":
                    low, high = answer.interval
                    assert (high - low) / 2 * 600 == pytest.approx(seen.margin, rel=1e-12)
                else:
                    assert seen.margin_of == "rank"
                    assert answer.interval is None
        kinds = [t.preview(question).margin_of for question in QUESTIONS_OF.values()]
    assert kinds == ["number"] * 3 + ["times units"] + ["number"] * 3 + ["rank"] * 2


@EACH
def test_the_rank_of_a_quantile_is_as_far_off_as_picks_allow(meter):
    """Of n cells one is so far away with a probability of at most n·e^{-rate·ranks}: 5% at ln(20n)/rate."""
    with opened(FRAME, meter) as t:
        paid = t.quantile("fee", 0.5, 0, 10).targets[0]
        assert paid[:2] == ("Everything", "bounded range")
        for shares in ([0.5], [0.1], [0.9], [0.25, 0.5]):
            for bounds, grid, cells in (((0, 10), None, 1001), ((0, 10), 1, 11), ((-3, 3), "0.5", 13)):
                rates = [paid[2] / (2 * max(share, 1 - share)) for share in shares]
                margin = max(math.log(20 * cells) / rate for rate in rates)
                seen = t.preview(q.quantiles("fee", shares, *bounds, grid=grid))
                assert seen.margin == pytest.approx(margin, rel=1e-6)


@EACH
def test_what_a_preview_says_in_words(meter):
    with opened(FRAME, meter) as t:
        price = f"{t.preview(q.quantile('fee', 0.5, 0, 10)).price:.4g}"
        texts = {name: str(t.preview(question)) for name, question in QUESTIONS_OF.items()}
    assert f"price of a hit: {price}, for each of 3 quantiles" in texts["quantiles"]
    assert "units from the rank that is asked for in 95% of draws" in texts["quantile"]
    assert "for all 1,000 keys together" in texts["histogram of many keys"]
    assert "divided by the number of units in 95% of draws" in texts["mean"]
    assert all(text.startswith(f"question: {NAMES[name]}\n") for name, text in texts.items() if name in NAMES)
