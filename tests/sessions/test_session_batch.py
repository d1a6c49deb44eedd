"""Batches in sessions: drawn once, published test by test, and exactly the hits are charged."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tests.sessions.leaks import chain, lets_out
from tests.sessions.scripted import EPSILON, gives, opened
from tests.tables.noise import FAR, patterned, silence

import targetcharge as tc
from targetcharge.ledger import MemoryLedger, SqliteLedger
from targetcharge.ledger.entries import Spent
from targetcharge.mechanisms import above_threshold, batch_by_key, batch_by_name

SECRET = "987654"  # noqa: S105 - the first digits of a count
DRAWN = 987654_000000


@pytest.fixture(params=["memory", "file"])
def where(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


def spent(session):
    return [entry for entry in session._ledger.entries() if isinstance(entry, Spent)]


# What is published and charged.


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_answers_come_in_order_and_exactly_the_hits_are_charged(where, meter):
    pattern = [0, 0, 1, 0, 1, 1, 0, 0]
    with opened(5, meter=meter, ledger=where) as session:
        price = session.meter.quote(tc.NotPrior(None), EPSILON)
        answers = list(session.ask_each(patterned(pattern)))
        assert [answer.hit for answer in answers] == [bool(each) for each in pattern]
        assert [answer.key for answer in answers] == [f"k{i}" for i in range(8)]
        assert [answer.price for answer in answers] == [price.value * each for each in pattern]
        assert [answer.grains for answer in answers] == [(price.grains * each,) for each in pattern]
        assert [answer.outcome is None for answer in answers] == [not each for each in pattern]
        assert all(abs(answer.outcome - FAR) < 1000 for answer in answers if answer.hit)
        assert [answer.seq for answer in answers] == list(range(1, 9))
        assert {(answer.algorithm, answer.targets, answer.epsilon) for answer in answers} == {
            ("tests", (("NotPrior", None),), EPSILON)
        }
        assert list(session.transcript) == answers
        assert session.meter.hits == 3
        assert session.meter.totals.spent == 3 * price.grains


def test_answers_are_what_an_above_threshold_test_would_say(monkeypatch, where):
    silence(monkeypatch)
    counts = [-3, 9, 10, 11, 500]
    single = [above_threshold(lambda _, count=count: count, 10, EPSILON, name="tests") for count in counts]
    with opened(9, ledger=where) as session:
        answers = list(session.ask_each(batch_by_key(lambda _: counts, list("abcde"), 10, EPSILON)))
        told = [(answer.outcome, answer.hit, answer.scale, answer.interval) for answer in answers]
        margin = single[0].accuracy.margin
        assert told == [
            (count, True, single[0].accuracy.scale, (count - margin, count + margin))
            if count >= 10
            else (None, False, single[0].accuracy.scale, single[0].accuracy.interval(None))
            for count in counts
        ]


def test_nothing_is_computed_or_charged_before_the_first_answer_is_asked_for_and_then_once(where):
    calls = []
    tests = batch_by_key(lambda _: calls.append(1) or [FAR, -FAR, FAR], [1, 2, 3], 0, EPSILON)
    with opened(5, ledger=where) as session:
        found = session.ask_each(tests)
        assert (calls, session.meter.hits, len(session.transcript)) == ([], 0, 0)
        next(found)
        assert (calls, session.meter.hits) == ([1], 1)
        assert len(list(found)) == 2
        assert (calls, session.meter.hits) == ([1], 2)


def test_the_tests_of_a_batch_have_names_of_their_own(where):
    tests = batch_by_name(lambda _: [FAR, -FAR, -FAR, FAR], ["a", "b", "c", "d"], [1, 2, 3, 4], EPSILON)
    with opened(5, ledger=where) as session:
        answers = list(session.ask_each(tests))
        assert [(answer.algorithm, answer.hit, answer.key) for answer in answers] == [
            ("a", True, None),
            ("b", False, None),
            ("c", False, None),
            ("d", True, None),
        ]
        margin = tests.algorithms[0].accuracy.margin
        assert [answer.interval for answer in answers[1:3]] == [(None, 1 + margin), (None, 2 + margin)]
        assert list(session.transcript) == answers


# When the budget ends.


@pytest.mark.parametrize("hits", [0, 1, 2, 3])
def test_what_was_answered_before_the_budget_was_spent_stays(where, hits):
    pattern = [0, 1, 0, 1, 0, 1, 0]
    with opened(max(1, hits), ledger=where) as session:
        if not hits:
            session.test(gives(True))
        answers = []
        found = session.ask_each(patterned(pattern))
        with pytest.raises(tc.BudgetSpent) as caught:
            answers.extend(found)
        assert [answer.hit for answer in answers] == [bool(each) for each in pattern[: 2 * hits]]
        assert list(session.transcript)[-len(answers) or 99 :] == answers
        assert session.meter.hits == max(1, hits)
        assert session.meter.hits_left == 0
        assert list(chain(caught.value)) == [caught.value]
        assert list(found) == []


def test_a_hit_at_the_very_end_spends_the_budget_and_all_is_told(where):
    with opened(1, ledger=where) as session:
        assert [answer.hit for answer in session.ask_each(patterned([0, 0, 1]))] == [False, False, True]
        with pytest.raises(tc.BudgetSpent):
            next(session.ask_each(patterned([0])))


def everything_seen(outcomes):
    """Return all that a caller sees of a batch with a budget of one hit: answers, errors, meters, transcript."""
    with opened(1) as session:
        answers, news = [], None
        try:
            answers.extend(session.ask_each(patterned(outcomes)))
        except tc.BudgetSpent as error:
            news = type(error), str(error), error.asked, error.left, error.__context__, error.__cause__
        told = [(answer.key, answer.hit, answer.seq, answer.price) for answer in answers]
        return told, news, session.meter.totals, session.meter.hits_left, len(session.transcript)


def test_nothing_is_seen_of_what_was_drawn_after_the_last_hit_that_is_covered():
    views = {repr(everything_seen([0, 0, 1, *rest])) for rest in itertools.product((0, 1), repeat=4)}
    assert len(views) == 1
    assert repr(everything_seen([0, 1, 0, 0, 0, 0, 0])) not in views


def test_a_batch_that_is_not_covered_never_touches_the_data(where):
    calls = []
    tests = batch_by_key(lambda _: calls.append(1) or [0], ["a"], 0, EPSILON)
    with opened(1, ledger=where) as session:
        session.test(gives(True))
        with pytest.raises(tc.BudgetSpent):
            next(session.ask_each(tests))
    assert calls == []


@pytest.mark.parametrize(
    ("options", "tests"),
    [
        ({}, patterned([1], epsilon=0.2)),
        ({"alternatives": [tc.NotPrior(None), tc.NotPrior(3)]}, patterned([1])),
    ],
    ids=["larger ε", "alternatives"],
)
def test_what_a_session_has_no_price_for_is_refused_before_the_data_is_touched(options, tests):
    session = opened(3, **options)
    with pytest.raises(tc.NotAllowed):
        next(session.ask_each(tests))
    assert (session.meter.hits, len(session.transcript)) == (0, 0)


@pytest.mark.parametrize("given", [None, "tests", [gives(True)], gives(True), 5], ids=lambda each: str(each)[:20])
def test_anything_but_a_batch_is_refused_by_name(given):
    with pytest.raises(tc.InvalidParameter, match="batch is"):
        next(opened(3).ask_each(given))


# Failures.


def raising(error):
    def counts(data):
        digits = str(data)
        raise error(digits)

    return counts


BROKEN = {
    "raises": raising(ValueError),
    "raises an error of ours": raising(tc.LedgerError),
    "exits": raising(GeneratorExit),
    "too few": lambda data: [data] * 2,
    "too many": lambda data: [data] * 4,
    "none": lambda _: [],
    "no list": lambda data: data,
    "a float": lambda data: [data, float(data), data],
    "a text": lambda data: [data, str(data), data],
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("counts", BROKEN.values(), ids=BROKEN)
def test_a_computation_that_breaks_spends_one_hit_and_lets_nothing_out(where, counts):
    with opened(3, data=DRAWN, ledger=where) as session:
        found = session.ask_each(batch_by_key(counts, ["a", "b", "c"], 0, EPSILON, name="broken"))
        with pytest.raises(tc.ComputationFailed) as caught:
            next(found)
        assert list(chain(caught.value)) == [caught.value]
        assert lets_out(caught.value, SECRET) == []
        assert (session.meter.hits, session.meter.hits_left, len(session.transcript)) == (1, 2, 0)
        assert [entry.algorithm for entry in spent(session)] == ["broken"]
        assert list(found) == []
        assert SECRET not in repr(list(session._ledger.entries()))
        assert len(list(session.ask_each(patterned([0, 1])))) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_of_the_computation_spends_one_hit(where, error):
    with opened(3, data=DRAWN, ledger=where) as session:
        with pytest.raises(error) as caught:
            next(session.ask_each(batch_by_key(raising(error), ["a"], 0, EPSILON)))
        assert lets_out(caught.value, SECRET) == []
        assert session.meter.hits == 1


@pytest.mark.parametrize("ledger", [MemoryLedger, SqliteLedger])
@pytest.mark.parametrize("error", [tc.LedgerError("disk"), KeyboardInterrupt(), MemoryError()], ids=repr)
@pytest.mark.parametrize("before", [0, 1])
def test_a_ledger_that_fails_to_settle_lets_nothing_out(monkeypatch, tmp_path, ledger, error, before):
    """Neither what would have been published, nor what was drawn for later."""
    session = opened(5, ledger=tmp_path / "l.db" if ledger is SqliteLedger else ":memory:")
    tests = batch_by_key(lambda _: [-FAR, DRAWN + 1, DRAWN + 2], ["a", "b", "c"], 0, EPSILON)
    found = session.ask_each(tests)
    answers = [next(found) for _ in range(2 * before)]
    settle = ledger.settle

    def failing(held, settlement):
        settle(held, settlement)
        raise error

    monkeypatch.setattr(ledger, "settle", failing)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any error at all is looked through
        next(found)
    place = [each for each in lets_out(caught.value, SECRET) if each not in ("variable entries", "variable entry")]
    assert place == []
    assert before or lets_out(caught.value, SECRET) == []
    assert list(chain(caught.value)) == [caught.value]
    assert session.meter.hits >= before + 1
    assert len(answers) == 2 * before
    assert list(found) == []
    session.close()


def test_the_news_that_the_budget_is_spent_does_not_hold_what_was_drawn():
    session = opened(1, data=None)
    tests = batch_by_key(lambda _: [FAR, DRAWN, -DRAWN], ["a", "b", "c"], 0, EPSILON)
    found = session.ask_each(tests)
    next(found)
    with pytest.raises(tc.BudgetSpent) as caught:
        next(found)
    assert lets_out(caught.value, SECRET) == []


def test_nothing_printed_on_the_way_holds_what_was_drawn():
    session = opened(3)
    found = session.ask_batch(batch_by_key(lambda _: [-FAR, FAR, DRAWN, -DRAWN], list("abcd"), 0, EPSILON))
    next(found)
    variables = found.gi_frame.f_locals
    assert SECRET not in repr(variables)
    assert SECRET not in repr([session, session.meter, list(session.transcript), variables["call"]])


# Several at once.


def test_batches_and_prices_interleave(where):
    with opened(9, ledger=where) as session:
        first, second = session.ask_each(patterned([0, 1, 0, 1])), session.ask_each(patterned([1, 0, 1]))
        answers = [next(first), next(second), session.test(gives(True)), next(first), next(second)]
        release = session.release(gives(7), set())
        answers += [*first, *second]
        assert release.revise({7}).released
        assert [answer.hit for answer in answers] == [False, True, True, True, False, False, True, True]
        assert session.meter.hits == 6
        told = list(session.transcript)
        assert sorted(answer.seq for answer in told) == [answer.seq for answer in told] == list(range(1, 11))
        assert {answer.seq for answer in answers} <= {answer.seq for answer in told}


def test_two_batches_share_the_last_hit(where):
    with opened(1, ledger=where) as session:
        first, second = session.ask_each(patterned([0, 1, 0])), session.ask_each(patterned([0, 1, 0]))
        assert [answer.hit for answer in itertools.islice(first, 2)] == [False, True]
        for found in (first, second):
            with pytest.raises(tc.BudgetSpent):
                next(found)
        assert (session.meter.hits, len(session.transcript)) == (1, 2)


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_an_abandoned_batch_is_charged_for_what_it_published(where, taken):
    with opened(3, ledger=where) as session:
        found = session.ask_each(patterned([0, 1, 1, 0]))
        answers = list(itertools.islice(found, taken))
        found.close()
        hits = {0: 0, 1: 1, 2: 1, 3: 2}[taken]  # answers up to a hit leave together
        assert session.meter.hits == hits
        assert list(session.transcript)[:taken] == answers
        assert session.test(gives(True)).hit
        assert spent(session) == []
    if where != ":memory:":
        with opened(3, ledger=where) as session:
            assert session.meter.hits == hits + 1


def test_a_session_that_is_closed_in_the_middle_says_so(where):
    session = opened(3, ledger=where)
    found = session.ask_each(patterned([1, 0, 1]))
    next(found)
    session.close()
    with pytest.raises(tc.NotAllowed, match="closed"):
        next(found)


def test_a_batch_that_asks_its_own_session_fails():
    session = opened(3)
    tests = batch_by_key(lambda _: [session.test(gives(True)).seq], ["a"], 0, EPSILON)
    with pytest.raises(tc.ComputationFailed):
        next(session.ask_each(tests))
    assert session.meter.hits == 1


def test_threads_with_batches_of_their_own_are_charged_exactly(where):
    answers, lock = [], threading.Lock()

    def ask(_):
        with suppress(tc.BudgetSpent):
            for answer in session.ask_each(patterned([0, 1, 0, 0] * 10)):
                with lock:
                    answers.append(answer)

    with opened(20, ledger=where) as session, ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
        assert sum(answer.hit for answer in answers) == session.meter.hits == 20
        assert len({answer.seq for answer in answers}) == len(answers)
        assert sorted(answers, key=lambda each: each.seq) == list(session.transcript)
