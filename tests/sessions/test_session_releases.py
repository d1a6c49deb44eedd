"""Conditional releases: drawn once, published at most once, paid once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.sessions.scripted import EPSILON, budget_of, gives, opened

import targetcharge as tc


def test_a_release_publishes_and_pays_when_its_condition_holds():
    session = opened()
    release = session.release(gives(7), lambda value: value > 5)
    assert (release.released, release.outcome, release.price, session.meter.hits) == (True, 7, 1.0, 1)


def test_a_pending_release_shows_nothing_and_costs_nothing():
    session = opened()
    release = session.release(gives(7), lambda value: value > 8)
    assert (release.released, release.outcome, release.price, session.meter.hits) == (False, None, 0.0, 0)
    assert session.transcript[-1].outcome is None


def test_revisions_add_up_to_a_union_of_conditions_on_one_draw():
    session, algorithm = opened(), gives(7, 8, 9)
    release = session.release(algorithm, {1})
    for when in ({2}, lambda value: value < 0, {3, 4}):
        release = release.revise(when)
        assert not release.released
    final = release.revise({7})
    assert (final.released, final.outcome, final.price, final.seq) == (True, 7, 1.0, release.seq)
    assert session.meter.hits == 1
    assert [answer.hit for answer in session.transcript] == [False] * 4 + [True]


def test_a_published_release_cannot_be_revised_by_any_of_its_objects():
    session = opened()
    first = session.release(gives(7), {1})
    last = first.revise({7})
    for stale in (first, last):
        with pytest.raises(tc.NotAllowed, match=f"release {first.seq} "):
            stale.revise({7})
    with pytest.raises(tc.NotAllowed, match=f"release {first.seq} "):
        session.revise(first.seq, {7})
    assert session.meter.hits == 1


def test_a_release_that_was_never_made_cannot_be_revised():
    session = opened()
    session.test(gives(False))
    for seq in (1, 99):
        with pytest.raises(tc.NotAllowed, match=f"no release {seq} is pending"):
            session.revise(seq, {7})


def test_several_releases_wait_side_by_side():
    session = opened()
    releases = [session.release(gives(value), set()) for value in (10, 20, 30)]
    assert [release.seq for release in session.pending] == [release.seq for release in releases]
    assert releases[1].revise(lambda value: value > 15).outcome == 20
    assert [release.seq for release in session.pending] == [releases[0].seq, releases[2].seq]
    assert session.pending[1].revise({30}).outcome == 30
    assert releases[0].revise(lambda _: True).outcome == 10
    assert session.pending == ()
    assert session.meter.hits == 3


def raising(error):
    def when(_value):
        raise error

    return when


@pytest.mark.parametrize(
    "when",
    [raising(ValueError("7")), raising(TimeoutError()), raising(RecursionError()), lambda value: value.nothing],
    ids=["value", "timeout", "recursion", "attribute"],
)
def test_a_condition_that_raises_counts_as_false(when):
    session = opened()
    release = session.release(gives(7), when)
    assert not release.released
    assert not release.revise(when).released
    assert session.meter.hits == 0
    assert release.revise({7}).outcome == 7


PROBLEMS = {
    "name": (lambda value: value > limit, "of -2, which is made up, it raised NameError"),  # noqa: F821 - a slip
    "type": (lambda value: value["count"] > 5, "it raised TypeError: 'int' object is not subscriptable"),
    "below 0": (lambda value: math.log(value) > 5, "of -2, which is made up, it raised ValueError"),
    "at 0": (lambda value: 1 / value < 0.1, "of 0, which is made up, it raised ZeroDivisionError"),
    "no truth value": (lambda _value: Undecided(), "it raised ValueError"),
}


@pytest.mark.parametrize(("when", "words"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_condition_that_raises_on_made_up_numbers_is_refused_before_anything_is_drawn(when, words):
    session, runs = opened(), []
    algorithm = tc.mechanisms.noisy_count(lambda _: runs.append(1) or 5, EPSILON)
    with pytest.raises(tc.InvalidParameter, match=words) as caught:
        session.release(algorithm, when)
    assert caught.value.name == "when"
    assert (runs, len(session.transcript), session.meter.hits) == ([], 0, 0)
    release = session.release(algorithm, 10**6)
    with pytest.raises(tc.InvalidParameter, match=words):
        release.revise(when)
    assert len(session.transcript) == 1


def test_a_condition_that_raises_on_what_is_drawn_counts_as_false():
    def when(value):
        if value not in (-2, 0, 1_000):
            raise ValueError
        return False

    session = opened()
    assert not session.release(tc.mechanisms.noisy_count(lambda _: 10**6, EPSILON), when).released


@pytest.mark.parametrize(
    ("algorithm", "when"),
    [
        (tc.mechanisms.above_threshold(len, 10**6, EPSILON), lambda value: value > 5),  # None is no number
        (tc.mechanisms.above_threshold(len, 10**6, EPSILON), 5),
        (tc.mechanisms.side_of_threshold(len, 10**6, EPSILON), lambda side: side.value == "above"),
        (tc.mechanisms.exponential(lambda _: [1, 1], EPSILON, [None, "x"]), lambda value: value.isupper()),
    ],
)
def test_a_condition_that_only_raises_on_some_words_is_taken(algorithm, when):
    assert not opened(data=[]).release(algorithm, when).released


@pytest.mark.parametrize(
    ("algorithm", "when"),
    [
        (tc.mechanisms.side_of_threshold(len, 10**6, EPSILON), 5),
        (tc.mechanisms.side_of_threshold(len, 10**6, EPSILON), lambda side: side > 5),
        (tc.mechanisms.exponential(lambda _: [1, 1], EPSILON, ["a", "b"]), lambda value: value + 1),
    ],
)
def test_a_condition_that_raises_on_whatever_may_come_is_refused(algorithm, when):
    with pytest.raises(tc.InvalidParameter, match="which is made up, it raised TypeError"):
        opened(data=[]).release(algorithm, when)


def test_after_a_restart_a_condition_that_raises_on_any_outcome_is_refused(tmp_path):
    with tc.Session([], budget_of(3), EPSILON, ledger=tmp_path / "ledger.db") as session:
        session.release(tc.mechanisms.noisy_count(len, EPSILON), 10**6)
        session.release(tc.mechanisms.side_of_threshold(len, 10**6, EPSILON), set())
        session.release(gives("what is not known"), set())
    with tc.Session([], budget_of(3), EPSILON, ledger=tmp_path / "ledger.db") as session:
        number, side, unknown = session.pending
        for release in (number, side):
            with pytest.raises(tc.InvalidParameter, match="it raised NameError"):
                release.revise(PROBLEMS["name"][0])
        assert not number.revise(lambda value: value > 10**6).released
        assert not side.revise(lambda value: value.value == "above").released
        assert not unknown.revise(PROBLEMS["name"][0]).released


class Undecided:
    def __bool__(self):
        raise ValueError


def test_a_condition_without_a_truth_value_counts_as_false():
    assert not opened().release(gives(7), lambda _value: Undecided()).released


def test_a_condition_that_uses_the_session_counts_as_false():
    session = opened()
    release = session.release(gives(7), lambda _value: session.test(gives(True)).hit)
    assert not release.released
    assert session.meter.hits == 0
    assert len(session.transcript) == 1


@pytest.mark.parametrize("when", [{7}, frozenset({7}), [7], (7,), range(5, 9), {7: "seven"}], ids=repr)
def test_a_condition_may_be_any_container(when):
    assert opened().release(gives(7), when).outcome == 7


class Numbers:
    def __contains__(self, outcome):
        return math.sqrt(outcome) >= 0


def test_an_outcome_that_a_container_cannot_look_up_is_not_in_it():
    session = opened()
    release = session.release(gives("seven"), range(9))
    assert not release.released
    assert not release.revise(Numbers()).released
    assert release.revise(["six", "seven"]).outcome == "seven"


def test_a_list_becomes_a_tuple_before_a_set_is_asked():
    assert opened().release(gives([1, [2]]), {(1, (2,))}).outcome == (1, (2,))


def test_a_condition_sees_only_the_value_in_its_published_form():
    seen = []
    opened().release(gives([1, -0.0]), lambda *values: seen.append(values))
    ((value,),) = seen
    assert value == (1, 0.0)
    assert math.copysign(1, value[1]) == 1


def test_a_revision_is_refused_when_a_hit_is_not_covered_and_its_condition_is_not_asked():
    session, seen = opened(1), []
    release = session.release(gives(7), set())
    session.test(gives(True))
    with pytest.raises(tc.BudgetSpent):
        release.revise(seen.append)
    assert seen == []
    assert [pending.seq for pending in session.pending] == [release.seq]


def test_delta_is_spent_once_whatever_the_revisions():
    session = opened(computation_delta=1e-7)
    release = session.release(gives(7, delta=1e-7), set())
    left = session.meter.delta_left
    assert left == pytest.approx(0, abs=1e-15)
    assert release.revise({1}).revise({7}).outcome == 7
    assert session.meter.delta_left == left


def test_a_revision_costs_the_price_of_its_own_computation_on_the_renyi_meter():
    session = opened(9, meter="renyi")
    cheap, dear = (session.release(gives(1, epsilon=epsilon), set()) for epsilon in (0.05, 0.1))
    order = session.meter.tariff.order
    assert dear.revise({1}).price == tc.NotPrior(0).price(order, 0.1)
    assert cheap.revise({1}).price == tc.NotPrior(0).price(order, 0.05)


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_releases_go_on_after_a_restart(tmp_path, meter):
    def start():
        return tc.Session(
            None,
            budget_of(3, kept=2e-7, meter=meter),
            EPSILON,
            ledger=tmp_path / "ledger.db",
            meter=meter,
            computation_delta=2e-7,
        )

    with start() as session:
        seqs = [session.release(gives(value, delta=1e-7), set()).seq for value in ((1, 0.5), "b")]
        price = session.meter.tariff.typical.value
    with start() as session:
        assert [release.seq for release in session.pending] == seqs
        assert not session.pending[0].revise({"b"}).released
        with pytest.raises(tc.BudgetSpent, match="delta"):
            session.release(gives(3, delta=1e-7), {3})
    with start() as session:
        found = session.revise(seqs[0], {(1, 0.5)})
        assert (found.outcome, found.price, found.seq) == ((1, 0.5), price, seqs[0])
        assert session.meter.delta_left == pytest.approx(0, abs=1e-15)
    with start() as session:
        with pytest.raises(tc.NotAllowed, match="no release"):
            session.revise(seqs[0], {(1, 0.5)})
        assert session.meter.hits == 1
        assert session.pending[0].revise({"b"}).outcome == "b"
        assert [answer.release for answer in session.transcript] == [*seqs, seqs[0], seqs[0], seqs[1]]


def test_two_sessions_on_one_file_publish_a_release_once(tmp_path):
    first, second = (tc.Session(None, budget_of(3), EPSILON, ledger=tmp_path / "ledger.db") for _ in range(2))
    release = first.release(gives(7), set())
    (same,) = second.pending
    assert same.revise({7}).outcome == 7
    with pytest.raises(tc.NotAllowed, match=f"no release {release.seq} is pending"):
        release.revise({7})
    assert first.meter.hits == second.meter.hits == 1
    first.close()
    second.close()


def test_an_interrupted_condition_keeps_the_price_spent_and_the_release_pending():
    session = opened()
    release = session.release(gives(7), set())
    with pytest.raises(KeyboardInterrupt):
        release.revise(raising(KeyboardInterrupt()))
    assert session.meter.hits == 1
    assert release.revise({7}).outcome == 7
    assert session.meter.hits == 2


@pytest.mark.parametrize("seq", [True, 1.0, "1", None, 10**30, -1, 0], ids=repr)
def test_a_release_is_known_by_a_number_and_nothing_that_looks_like_one(tmp_path, seq):
    for place in (":memory:", tmp_path / "ledger.db"):
        with opened(ledger=place) as session:
            session.release(gives(7), {8})
            with pytest.raises(tc.InvalidParameter, match="seq is"):
                session.revise(seq, {7})
            assert (session.meter.hits, len(session.transcript)) == (0, 1)


def test_a_release_is_known_by_a_number_of_numpy(tmp_path):
    for place in (":memory:", tmp_path / "ledger.db"):
        with opened(ledger=place) as session:
            first = session.release(gives(7), {8})
            assert session.revise(np.int64(first.seq), {7}).outcome == 7
            assert type(session.transcript[-1].release) is int


@pytest.mark.parametrize("when", ["count > 100", b"7", bytearray(b"7")], ids=repr)
def test_a_text_is_no_set_of_outcomes(when):
    with opened() as session, pytest.raises(tc.InvalidParameter, match="when is"):
        session.release(gives(7), when)
