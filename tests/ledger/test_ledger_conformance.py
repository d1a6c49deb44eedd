"""One suite for all ledgers."""

from dataclasses import replace
from functools import partial

import pytest
from tests.ledger.asking import (
    QUERY,
    approximate,
    ask_until_refused,
    bare_ledger,
    broken,
    entries,
    no,
    opened,
    opened_renyi,
    say,
    spent,
    told,
    yes,
)
from tests.ledger.published import answer_to, asked, batch_of, publish

import targetcharge as tc
from targetcharge.accounting.meter import Meter
from targetcharge.ledger import Answer, Most, Pending, Settlement
from targetcharge.ledger.entries import DeltaSpent
from targetcharge.numerics.rounding import grains_up

DELTA = tc.Budget(1.0, 2e-6)


@pytest.fixture(params=["memory", "sqlite"])
def place(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


@pytest.fixture(params=["memory", "sqlite"])
def bare(request, tmp_path):
    """A ledger without a session, and the price of a hit on it."""
    with bare_ledger(request.param, tmp_path, 6) as made:
        yield made


def answer(ledger, hit, outcome=None, **more):
    return Answer(outcome, hit, float(hit), ledger.next_seq(), grains=(int(hit),), **more)


def test_hits_are_charged_and_misses_are_free(bare):
    ledger, most = bare
    for hit in (False, True, False, True):
        ledger.reserve(most)
        ledger.settle(Settlement((answer(ledger, hit),)))
    assert [found.hit for found in ledger.answers()] == [False, True, False, True]
    assert (ledger.meters[0].hits, ledger.meters[0].hits_left) == (2, 4)


def test_numbers_are_unique_and_increase(bare):
    ledger, most = bare
    for hit in (False, True, False):
        ledger.reserve(most)
        ledger.settle(Settlement((answer(ledger, hit),)))
    seqs = [found.seq for found in ledger.answers()]
    assert seqs == sorted(set(seqs))
    assert len(seqs) == 3


def test_a_reservation_is_not_a_charge_but_a_forfeit_is(bare):
    ledger, most = bare
    ledger.reserve(most)
    assert ledger.meters[0].hits == 0
    ledger.forfeit("counting")
    assert ledger.meters[0].hits == 1
    (entry,) = ledger.entries()
    assert (entry.why, entry.grains, entry.count, entry.algorithm) == ("failed", (1,), 1, "counting")


def test_forfeiting_twice_charges_once(bare):
    ledger, most = bare
    ledger.reserve(most)
    ledger.forfeit("counting")
    ledger.forfeit("counting")
    assert ledger.meters[0].hits == 1


def test_forfeiting_nothing_charges_nothing(bare):
    ledger, most = bare
    ledger.forfeit("nothing")
    ledger.reserve(most)
    ledger.settle(Settlement((answer(ledger, hit=False),)))
    ledger.forfeit("nothing")
    assert ledger.meters[0].hits == 0


def test_a_reservation_that_was_never_settled_is_spent_by_the_next_call(bare):
    ledger, most = bare
    ledger.reserve(most)
    ledger.reserve(most)
    assert ledger.meters[0].hits == 1
    ledger.settle(Settlement((answer(ledger, hit=False),)))
    assert ledger.meters[0].hits == 1


def test_a_call_with_several_hits_is_covered_or_refused_as_a_whole(bare):
    ledger, most = bare
    four = Most(most.prices, 4)
    ledger.reserve(four)
    ledger.settle(Settlement([answer(ledger, hit=True) for _ in range(3)]))
    assert ledger.meters[0].hits == 3
    with pytest.raises(tc.BudgetSpent) as refusal:
        ledger.reserve(four)
    assert (refusal.value.asked, refusal.value.left) == (4.0, 3.0)
    ledger.reserve(Most(most.prices, 3))
    ledger.forfeit("all")
    assert (ledger.meters[0].hits, ledger.meters[0].hits_left) == (6, 0)


def test_a_refusal_changes_nothing(bare):
    ledger, most = bare
    before = list(ledger.entries()), ledger.meters[0].totals
    with pytest.raises(tc.BudgetSpent):
        ledger.reserve(Most(most.prices, 7, 1e-9))
    with pytest.raises(tc.BudgetSpent, match="computation_delta"):
        ledger.reserve(Most(most.prices, 1, 1e-9))
    assert (list(ledger.entries()), ledger.meters[0].totals) == before
    ledger.reserve(Most(most.prices, 6))
    ledger.settle(Settlement((answer(ledger, hit=False),)))
    assert ledger.meters[0].hits == 0


def test_pending_outcomes_wait_until_they_are_published(bare):
    ledger, most = bare
    kept = Pending(1, ("a", 2.5), "counting", 0.01, 0.0)
    ledger.reserve(most)
    ledger.settle(Settlement((answer(ledger, hit=False, release=1),), pending=kept))
    assert (ledger.pending(), ledger.pending_outcome(kept.release)) == ([kept.release], kept)
    ledger.reserve(most)
    ledger.settle(Settlement((answer(ledger, hit=False, release=1),)))
    assert (ledger.pending(), ledger.pending_outcome(kept.release)) == ([kept.release], kept)
    ledger.reserve(most)
    ledger.settle(Settlement((answer(ledger, hit=True, outcome=kept.outcome, release=1),), closes=1))
    assert (ledger.pending(), ledger.pending_outcome(kept.release)) == ([], None)
    assert ledger.meters[0].hits == 1


def test_a_release_is_published_once(bare):
    ledger, most = bare
    ledger.reserve(most)
    with pytest.raises(tc.NotAllowed, match="release 7 was published"):
        ledger.settle(Settlement((answer(ledger, hit=True, release=7),), closes=7))
    assert ledger.meters[0].hits == 0
    ledger.forfeit("a session does this after every failure")
    assert (list(ledger.answers()), ledger.meters[0].hits) == ([], 0)
    ledger.reserve(most)
    ledger.settle(Settlement((answer(ledger, hit=True),)))
    assert ledger.meters[0].hits == 1


@pytest.mark.parametrize("pattern", ["m", "h", "mmh", "hmm", "mhmhm", "mmmhmmm"])
def test_the_last_answers_are_the_end_of_all_answers(bare, pattern):
    ledger, most = bare
    for step in pattern:
        ledger.reserve(most)
        ledger.settle(Settlement((answer(ledger, hit=step == "h"),)))
    everything = list(ledger.answers())
    assert len(everything) == len(pattern)
    for last in range(len(pattern) + 3):
        assert list(ledger.answers(last)) == everything[max(0, len(everything) - last) :]


def test_answers_that_are_being_read_do_not_change(bare):
    ledger, most = bare
    for hit in (False, True, False, False):
        ledger.reserve(most)
        ledger.settle(Settlement((answer(ledger, hit),)))
    seqs = [found.seq for found in ledger.answers()]
    reading = ledger.answers()
    first = next(reading)
    ledger.reserve(most)
    ledger.settle(Settlement((answer(ledger, hit=True),)))
    assert [first.seq, *(found.seq for found in reading)] == seqs


def test_everything_is_refused_once_everything_is_spent(place):
    with opened(place, says=True) as session:
        for left in range(5, -1, -1):
            assert session.test(told).hit
            assert session.meter.hits_left == left
        for ask in (
            lambda: session.test(no),
            lambda: session.ask_prior(no, False),
            lambda: session.release(no, when=lambda _: False),
            lambda: session.select([no], k=1),
        ):
            with pytest.raises(tc.BudgetSpent):
                ask()
        assert session.meter.hits == 6


def test_a_refused_question_does_not_touch_the_data(place):
    runs = []

    @tc.private(epsilon=0.01)
    def counted(_):
        runs.append(1)
        return True

    with opened(place, hits=1) as session:
        session.test(counted)
        with pytest.raises(tc.BudgetSpent):
            session.test(counted)
    assert len(runs) == 1


def test_a_computation_that_breaks_is_charged(place):
    with opened(place) as session:
        with pytest.raises(tc.ComputationFailed):
            session.test(broken)
        assert (session.meter.hits, list(session.transcript)) == (1, [])
        assert [entry.algorithm for entry in spent(session)] == ["broken"]
        assert session.test(yes).hit
        assert session.meter.hits == 2


@pytest.mark.parametrize("says", [True, False])
def test_delta_is_spent_on_every_run_hit_or_miss(place, says):
    with tc.Session({"says": says}, DELTA, 0.03, ledger=place, computation_delta=4e-9) as session:
        for run in range(1, 5):
            session.test(approximate)
            assert session.meter.totals.delta == run * grains_up(1e-9)
        with pytest.raises(tc.BudgetSpent, match="delta 1e-09 and"):
            session.test(approximate)
        assert session.meter.hits == 4 * says
        assert sum(isinstance(entry, DeltaSpent) for entry in entries(session)) == 4
        assert session.test(yes).hit


def test_delta_is_spent_also_when_the_computation_breaks(place):
    @tc.private(epsilon=0.01, delta=1e-9)
    def breaks(_):
        raise ValueError

    with tc.Session({}, DELTA, 0.03, ledger=place, computation_delta=4e-9) as session:
        with pytest.raises(tc.ComputationFailed):
            session.test(breaks)
        assert session.meter.totals.delta == grains_up(1e-9)
        assert session.meter.hits == 1


def test_a_selection_charges_what_it_releases_and_holds_back_the_rest(place):
    scores = [tc.private(epsilon=0.01, name=f"score {n}")(lambda _, n=n: n) for n in range(5)]
    with opened(place) as session:
        found = session.select(scores, k=4, threshold=3)
        assert [answer.outcome for answer in found] == [4, 3]
        assert session.meter.hits == 2
        with pytest.raises(tc.BudgetSpent):
            session.select(scores, k=5)
        assert session.select(scores, k=4, threshold=9) == []
        assert session.meter.hits == 2


def test_a_renyi_meter_adds_up_different_prices(place):
    stronger = tc.private(epsilon=0.03)(lambda _: True)
    with opened_renyi(place) as session:
        session.test(yes)
        session.test(stronger)
        session.test(no)
        meter = session.meter
        expected = sum(meter.quote(tc.NotPrior(False), epsilon).grains for epsilon in (0.01, 0.03))
        assert (meter.totals.spent, meter.hits) == (expected, 2)


def test_a_renyi_meter_is_never_charged_above_its_capacity(place):
    with opened_renyi(place) as session:
        count = ask_until_refused([session], yes)
        meter = session.meter
        price = meter.quote(tc.NotPrior(False), 0.01).grains
        assert meter.totals.spent == count * price <= meter.tariff.capacity < (count + 1) * price


def test_alternatives_have_a_meter_each_and_go_on_until_all_are_spent(place):
    targets = [tc.NotPrior(1), tc.NotPrior(2)]
    with tc.Session({"says": 1}, tc.Budget(1.0, 1e-6), 0.04, ledger=place, alternatives=targets) as session:
        capacity = session.meters[0].hits_left
        assert capacity >= 2
        assert not session.ask(told).meters_hit[0]
        assert [meter.hits for meter in session.meters] == [0, 1]
        for _ in range(capacity - 1):
            session.ask(told)
        assert [meter.hits for meter in session.meters] == [0, capacity]
        say(session, 3)
        for _ in range(capacity):
            assert session.ask(told).meters_hit == (True, True)
        assert [meter.hits for meter in session.meters] == [capacity, 2 * capacity]
        with pytest.raises(tc.BudgetSpent):
            session.ask(told)


def test_a_broken_computation_is_charged_on_every_alternative(place):
    targets = [tc.NotPrior(1), tc.NotPrior(2)]
    with tc.Session({}, tc.Budget(1.0, 1e-6), 0.04, ledger=place, alternatives=targets, meter="renyi") as session:
        with pytest.raises(tc.ComputationFailed):
            session.ask(broken)
        assert [meter.hits for meter in session.meters] == [1, 1]
        assert [meter.totals.spent for meter in session.meters] == [
            meter.quote(target, 0.01).grains for meter, target in zip(session.meters, targets, strict=True)
        ]


@pytest.mark.parametrize(
    "outcome",
    [True, 10**5000, -(10**5000), ("a", b"\x00", 2.5, None), tc.BOUNDARY],
    ids=["true", "huge", "minus huge", "tuple", "mark"],
)
def test_any_publishable_outcome_is_a_hit_that_can_be_read_back(place, outcome):
    with opened(place, says=outcome) as session:
        assert session.ask(told, tc.NotPrior(None)).hit
        (found,) = session.transcript
        assert found.outcome == outcome
        assert type(found.outcome) is type(outcome)
        assert session.meter.hits == 1


def test_a_miss_of_any_size_does_not_stop_the_ledger(place):
    target = tc.QTarget(0.5, frozenset({True}))
    algorithm = tc.private(epsilon=0.01, targets=[target])(lambda data: data["says"])
    with opened_renyi(place, says=10**5000) as session:
        assert not session.ask(algorithm, target).hit
        say(session, True)
        assert session.ask(algorithm, target).hit
        assert [found.hit for found in session.transcript] == [False, True]


def test_meters_of_the_ledgers_show_the_same(tmp_path):
    def run(place):
        with opened(place, hits=15, computation_delta=0.0) as session:
            for step in "hmmhbmhs":
                if step == "b":
                    with pytest.raises(tc.ComputationFailed):
                        session.test(broken)
                elif step == "s":
                    session.select([yes_score, yes_score], k=2)
                else:
                    session.test(yes if step == "h" else no)
            return session.meter.totals, session.meter.hits_left, session.meter.odometer()

    yes_score = tc.private(epsilon=0.01)(lambda _: 1)
    assert run(":memory:") == run(tmp_path / "ledger.db")


def test_a_meter_that_was_opened_alone_shows_the_same_capacity(place):
    with opened(place) as session:
        alone = Meter.exact(tc.Budget(1.0, 1e-6), QUERY[6])
        assert session.meter.tariff.capacity == alone.tariff.capacity == 6


# What a question published is found again.


def free(answer):
    return replace(answer, price=0.0, grains=(0,), repeat=True)


def test_a_published_answer_is_found_by_its_question(bare):
    ledger, most = bare
    (hit,) = publish(ledger, most, lambda: answer_to(ledger, asked()))
    publish(ledger, most, lambda: answer_to(ledger, asked("young")))
    assert ledger.published([asked(), asked("none")]) == [(free(hit),), ()]
    assert ledger.meters[0].hits == 2


DIFFERENT = {"epsilon": 0.2, "prior": 5, "snapshot": 2, "question": "{}"}


@pytest.mark.parametrize("field", DIFFERENT)
def test_another_epsilon_prior_snapshot_or_record_is_another_question(bare, field):
    ledger, most = bare
    publish(ledger, most, lambda: answer_to(ledger, asked()))
    other = asked()._replace(**{field: DIFFERENT[field]})
    assert ledger.published([other]) == [()]
    publish(ledger, most, lambda: answer_to(ledger, other, outcome=3))
    assert [answer.outcome for (answer,) in ledger.published([asked(), other])] == [57, 3]


def test_a_prior_may_be_an_integer_or_the_same_float(bare):
    ledger, most = bare
    publish(ledger, most, lambda: answer_to(ledger, asked(prior=5)))
    assert ledger.published([asked(prior=5.0)]) == ledger.published([asked(prior=5)]) != [()]


def test_misses_releases_and_answers_without_a_question_are_not_published(bare):
    ledger, most = bare
    for more in (
        {"hit": False},
        {"call": "release"},
        {"call": "revise"},
        {"call": "select ended"},
        {"question": ""},
    ):
        publish(ledger, most, lambda more=more: answer_to(ledger, asked(), **more))
    assert ledger.published([asked(), asked()._replace(question="")]) == [(), ()]


def test_of_a_question_that_was_asked_again_the_last_answer_is_found(bare):
    ledger, most = bare
    publish(ledger, most, lambda: answer_to(ledger, asked(), outcome=1))
    publish(ledger, most, lambda: answer_to(ledger, asked(), outcome=2, received=7.0))
    assert [answer.outcome for (answer,) in ledger.published([asked()])] == [2]


def test_several_answers_of_a_call_are_found_together_and_in_order(bare):
    ledger, most = bare
    two = Most(most.prices, 2)
    for received in (1.0, 2.0):
        publish(ledger, two, *[partial(answer_to, ledger, asked(), key=k, received=received) for k in "ba"])
    publish(ledger, most, lambda: answer_to(ledger, asked("other")))
    (found,) = ledger.published([asked()], most=3)
    assert [(answer.key, answer.received) for answer in found] == [("b", 2.0), ("a", 2.0)]
    assert [len(found) for found in ledger.published([asked()])] == [1]


def test_of_a_selection_that_ended_early_no_more_is_found(bare):
    ledger, most = bare
    first, later = {"call": "select", "key": "a"}, {"call": "select", "key": "b", "question": ""}
    end = {"call": "select ended", "hit": False, "question": ""}
    parts = [partial(answer_to, ledger, asked(), **more) for more in (first, later, end)]
    publish(ledger, Most(most.prices, 3), *parts)
    publish(ledger, most, lambda: answer_to(ledger, asked("next"), **first))
    (found,) = ledger.published([asked()], most=9)
    assert [answer.key for answer in found] == ["a", "b"]


def test_keys_whose_hit_is_published_are_found_by_their_places(bare):
    ledger, most = bare
    keys = ["b", 3, (1, "x"), "2024-01-31", True, 2.5]
    publish(ledger, Most(most.prices, 3, answers=6), lambda: batch_of(ledger, asked(), keys, [1, 2, 4]))
    found = ledger.published_keys(asked(), keys)
    assert {place: answer.outcome for place, answer in found.items()} == {1: 10, 2: 20, 4: 40}
    assert all(answer.repeat and answer.price == 0 and answer.hit for answer in found.values())
    other = ledger.published_keys(asked(), [(1, "x"), "b", "3", *range(10, 800)])
    assert {place: answer.outcome for place, answer in other.items()} == {0: 20}
    assert ledger.published_keys(asked("young"), keys) == {}


def test_what_a_call_that_broke_would_have_published_is_not_found(bare):
    ledger, most = bare
    ledger.reserve(most)
    answer_to(ledger, asked())
    ledger.forfeit("broken")
    assert ledger.published([asked()]) == [()]


def test_thousands_of_questions_are_looked_up_in_one_call(bare):
    ledger, most = bare
    publish(ledger, most, lambda: answer_to(ledger, asked("1777")))
    found = ledger.published([asked(str(number)) for number in range(2000)])
    assert [place for place, repeats in enumerate(found) if repeats] == [1777]
