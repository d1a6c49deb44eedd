"""Sessions with a secret offset: at-least questions about counts that no unit lowers, with the least noise."""

import warnings
from dataclasses import replace

import pytest
from tests.randomness.sources import SeededEntropy
from tests.refusals import every

import targetcharge as tc
from targetcharge.accounting import Meter, OffsetNoise
from targetcharge.mechanisms import above_threshold, batch_by_key, noisy_count
from targetcharge.mechanisms.noise import CountNoise
from targetcharge.sessions import opening, session

BUDGET = tc.Budget(1.0, 1e-6)
PEOPLE = range(5000)


@pytest.fixture(scope="module")
def law():
    return tc.accounting.least_noise(BUDGET, 20).law


def sparse(**given):
    return tc.Session(PEOPLE, BUDGET, meter="sparse", **({"hits": 20} | given))


def above(threshold, law, **given):
    return above_threshold(len, threshold, epsilon=law.query_epsilon, monotone=True, **given)


def test_as_many_hits_are_covered_as_were_asked_for_and_then_no_more(law):
    with sparse() as opened:
        assert opened.meter.hits_left == 20
        for _ in range(20):
            assert opened.ask(above(100, law)).hit
        assert not opened.meter.hits_left
        with pytest.raises(tc.BudgetSpent, match="this could cost 1 hit on the sparse meter and nothing is left"):
            opened.ask(above(100, law))
        assert opened.meter.guarantee == BUDGET


def test_misses_are_free(law):
    with sparse() as opened:
        answers = [opened.ask(above(10_000, law)) for _ in range(100)]
        assert not any(answer.hit for answer in answers)
        assert opened.meter.hits == 0


def test_every_number_of_a_session_carries_the_same_offset(law, monkeypatch):
    monkeypatch.setattr(opening, "draw_offset", lambda *_: 700)
    sources = iter(range(10))
    monkeypatch.setattr(session, "SystemEntropy", lambda: SeededEntropy(next(sources)))
    noise = CountNoise.carried(law, 1)
    with sparse() as opened:
        source = SeededEntropy(0)
        for threshold in (4000, 5010, 4990):
            value = noise.lattice * 5000 - noise.weight * 700 + noise.draw(source)
            answer = opened.ask(above(threshold, law))
            assert answer.outcome == (noise.shown(value) if value >= noise.lattice * threshold else None)
        batch = batch_by_key(lambda rows: [len(rows), 3], ["all", "few"], 100, law.query_epsilon, monotone=True)
        fresh = noise.draws(source, 2)
        first, second = opened.ask_each(batch)
        assert first.outcome == noise.shown(noise.lattice * 5000 - noise.weight * 700 + fresh[0])
        assert second.outcome is None


def test_the_offset_of_a_session_is_drawn_once(law, monkeypatch):
    drawn = []
    draw = opening.draw_offset
    monkeypatch.setattr(opening, "draw_offset", lambda *given: drawn.append(draw(*given)) or drawn[-1])
    with sparse() as opened:
        for _ in range(5):
            opened.ask(above(100, law))
    assert len(drawn) == 1


def test_a_smaller_epsilon_has_more_noise_and_a_larger_one_is_refused(law):
    with sparse() as opened:
        usual = opened.ask(above(100, law))
        finer = opened.ask(above_threshold(len, 100, epsilon=law.query_epsilon / 2, monotone=True))
        assert finer.scale > 1.5 * usual.scale
        with pytest.raises(tc.NotAllowed, match="above the declared query_epsilon"):
            opened.ask(above_threshold(len, 100, epsilon=2 * law.query_epsilon, monotone=True))


def test_a_release_waits_for_a_number_which_revisions_lower(law):
    with sparse() as opened:
        release = opened.release(noisy_count(len, law.query_epsilon, monotone=True), when=20_000)
        assert (release.released, opened.meter.hits) == (False, 0)
        release = release.revise(10_000)
        assert not release.released
        release = release.revise(100)
        assert (release.released, opened.meter.hits) == (True, 1)
        low, high = release.interval
        assert low <= release.outcome <= high
        assert abs(release.outcome - 5000) < 1000
    with warnings.catch_warnings(), tc.Session(PEOPLE, tc.Budget(15.0, 1e-6), query_epsilon=0.5) as plain:
        assert plain.release(noisy_count(len, 0.5), when=100).released  # a number is a condition everywhere


def test_a_selection_publishes_the_largest_in_order(law):
    counts = [10, 4000, 2000, 3000]
    batch = batch_by_key(lambda _: counts, ["a", "b", "c", "d"], -(2.0**53), law.query_epsilon, monotone=True)
    with sparse() as opened:
        best = opened.select(batch, k=3)
        assert [answer.key for answer in best] == ["b", "d", "c"]
        assert opened.meter.hits == 3
        candidates = [
            noisy_count(lambda _, count=count: count, law.query_epsilon, monotone=True) for count in counts
        ]
        assert [answer.candidate for answer in opened.select(candidates, k=2)] == [1, 3]


def test_what_is_always_paid_costs_a_hit(law):
    with sparse() as opened:
        assert opened.ask(noisy_count(len, law.query_epsilon, monotone=True), tc.Everything()).hit
        assert opened.ask(noisy_count(len, law.query_epsilon / 2), tc.Everything()).hit
        assert opened.meter.hits == 2
        with pytest.raises(tc.NotAllowed, match=r"epsilon up to 0\.045.*open the session with meter='renyi'"):
            opened.ask(noisy_count(len, law.query_epsilon), tc.Everything())


def test_what_a_sparse_session_does_not_take_says_which_does(law):
    query = law.query_epsilon
    side = tc.mechanisms.side_of_threshold(len, 100, query)
    refused = {
        "a count that is not declared monotone": (lambda s: s.ask(above_threshold(len, 100, query)), "exact"),
        "a test of one": (lambda s: s.test(above_threshold(len, 100, query)), "exact"),
        "a prior": (lambda s: s.ask_prior(above(100, law), 7), "exact"),
        "a change": (lambda s: s.ask(tc.mechanisms.changed(len, 5000, 10, query)), "exact"),
        "a band": (lambda s: s.ask(tc.mechanisms.between_thresholds(len, 5, 9, query)), "renyi"),
        "a boundary": (lambda s: s.ask(tc.boundary(side)), "renyi"),
        "two runs": (lambda s: s.ask(tc.twice(side)), "renyi"),
        "a side": (lambda s: s.ask(side), "exact"),
        "a condition": (lambda s: s.release(noisy_count(len, query, monotone=True), lambda n: n > 3), "exact"),
        "values": (lambda s: s.release(noisy_count(len, query, monotone=True), {1, 2}), "exact"),
        "a batch": (lambda s: list(s.ask_each(batch_by_key(lambda _: [1], ["a"], 5, query))), "exact"),
        "candidates": (lambda s: s.select([noisy_count(len, query)]), "exact"),
        # That all candidates have a score would say of each, for one hit, that it reached its threshold.
        "candidates with thresholds": (lambda s: s.select([above(100, law)] * 50, k=1), "exact"),
        "a private function": (lambda s: s.test(tc.private(epsilon=query)(bool)), "exact"),
    }
    with sparse() as opened:

        def check(ask, meter):
            with pytest.raises(tc.NotAllowed, match=f"open the session with meter='{meter}'"):
                ask(opened)

        every(refused, check)
        assert opened.meter.hits == 0
        assert not opened.transcript.last(1)


def test_a_number_of_another_class_cannot_look_at_what_is_not_released(law):
    seen = []

    class Sneaky(int):
        def __le__(self, outcome):
            seen.append(outcome)
            return True

        __ge__ = __lt__ = __gt__ = __le__

    with sparse() as opened:
        assert not opened.release(noisy_count(len, law.query_epsilon, monotone=True), Sneaky(10**6)).released
        assert not seen


def test_a_delta_for_computations_is_part_of_the_budgets():
    for budget, delta in ((tc.Budget(1.0, 0.0), 0.5), (tc.Budget(1.0, 1e-6), 1e-6)):
        with pytest.raises(tc.InvalidParameter, match="delta is"):
            tc.Session(PEOPLE, budget, hits=3, meter="sparse", computation_delta=delta)
    pure = OffsetNoise(0.5, 0.1, "geometric", "at least")
    whole = Meter.sparse(tc.Budget(1.0, 0.3), pure)
    part = Meter.sparse(tc.Budget(1.0, 0.3), pure, computation_delta=0.29)
    assert (whole.hits_left, part.hits_left) == (8, 5)
    with tc.Session(PEOPLE, BUDGET, hits=3, meter="sparse", computation_delta=1e-7) as opened:
        assert opened.meter.hits_left == 3


def test_how_a_sparse_session_may_be_opened_is_checked_by_name():
    plain = (PEOPLE, BUDGET)
    mistakes = {
        "nothing said": (lambda: tc.Session(*plain, meter="sparse"), "hits is None; it must be given"),
        "a query ε without δ": (
            lambda: tc.Session(PEOPLE, tc.Budget(1.0, 0.0), 0.1, meter="sparse"),
            "query_epsilon is 0.1; it must be left out where delta is 0",
        ),
        "a tiny budget": (lambda: tc.Session(PEOPLE, tc.Budget(1e-6, 1e-6), hits=5, meter="sparse"), "hits is 5"),
        "no hits": (lambda: tc.Session(*plain, hits=0, meter="sparse"), "hits is 0"),
        "half a hit": (lambda: tc.Session(*plain, hits=1.5, meter="sparse"), "hits is 1.5"),
        "too many": (lambda: tc.Session(*plain, 0.09, hits=500, meter="sparse"), "query_epsilon is 0.09"),
        "too large": (lambda: tc.Session(*plain, 3.0, meter="sparse"), "query_epsilon is 3.0"),
        "targets": (lambda: sparse(targets=[tc.NotPrior(0)]), "targets is"),
        "alternatives": (lambda: sparse(alternatives=[tc.NotPrior(0), tc.NotPrior(1)]), "alternatives is"),
        "more than are covered": (
            lambda: tc.Session(*plain, 0.01, hits=230),
            "hits is 230; it must be at most 229",
        ),
        "no query ε": (lambda: tc.Session(*plain), "query_epsilon is None"),
    }

    def check(make, sentence):
        with pytest.raises(tc.InvalidParameter) as refusal:
            make()
        assert str(refusal.value).startswith(sentence)

    every(mistakes, check)


def test_given_a_query_epsilon_the_offset_costs_at_most_a_tenth_of_the_hits():
    with tc.Session(PEOPLE, BUDGET, 0.09, meter="sparse") as opened:
        offset = opened.meter.tariff.offset
        assert offset.query_epsilon == 0.09
        free = tc.accounting.offset_hits(1e-6, 0.09, BUDGET, "gumbel", "at least")
        assert 0.9 * free <= opened.meter.hits_left < free
        more = replace(offset, offset_epsilon=1.2 * offset.offset_epsilon)
        assert tc.accounting.offset_hits(more.offset_epsilon, 0.09, BUDGET, "gumbel", "at least") < 0.9 * free + 1


def test_pure_sessions_need_no_delta():
    with tc.Session(PEOPLE, tc.Budget(1.0, 0.0), hits=5, meter="sparse") as opened:
        law = opened.meter.tariff.offset
        assert (law.noise, opened.meter.hits_left) == ("geometric", 5)
        assert opened.ask(above(100, law)).hit
        assert opened.meter.odometer().delta == 0


def test_errors_of_a_computation_show_nothing_of_the_offset(law, monkeypatch):
    monkeypatch.setattr(opening, "draw_offset", lambda *_: 987654321987)

    def breaks(rows):
        raise ValueError(len(rows))

    with sparse() as opened:
        with pytest.raises(tc.ComputationFailed) as failure:
            opened.ask(above_threshold(breaks, 100, epsilon=law.query_epsilon, monotone=True))
        shown = [
            repr(opened),
            str(failure.value),
            repr(failure.value),
            repr(opened.meter),
            repr(opened.transcript),
        ]
        assert not any("987654321987" in text for text in shown)
        assert opened.meter.hits == 1
