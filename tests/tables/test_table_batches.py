"""Batches: many keys or questions at once, answered in order, and what is told when the budget ends on the way."""

from __future__ import annotations

import gc
import itertools
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.tables.people import MANY, near, opened, table

import targetcharge as tc
from targetcharge.engines.duckdb import engine
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.sessions import gap
from targetcharge.tables import questions as q
from targetcharge.tables.numbers import SharedScans

A = "kind = 'a'"


def hits(answers):
    return [answer.key for answer in answers if answer.hit]


# Watching.


def test_every_key_is_answered_in_order_and_those_above_are_paid_for():
    with opened() as t:
        answers = t.watch(None, "kind", ["nobody", "a", "c", "b"], 2000)
        assert [answer.key for answer in answers] == ["nobody", "a", "c", "b"]
        assert [answer.key for answer in answers.hits] == ["a", "b"]
        assert near(answers[1], 6000)
        assert near(answers[3], 3000)
        assert (answers.stopped, answers.unanswered, t.meter.hits) == ("", (), 2)
        assert list(t.transcript) == list(answers)
        assert {answer.algorithm for answer in answers} == {"count(*) by kind >= 2000"}


@pytest.mark.parametrize(
    ("by", "keys", "told", "truth"),
    [
        ("old", [True, False], [True], {True: 6000}),
        ("balance", [3, -3, 0], [3], {3: 6000}),
        ("fee", [2.5, 3], [2.5], {2.5: 9000}),
        (["kind", "old"], [("a", True), ("a", False), ("b", False)], [("a", True)], {("a", True): 6000}),
        (("old", "balance"), [[True, 3], [True, -3]], [(True, 3)], {(True, 3): 6000}),
        (
            "at",
            tc.hours("2024-01-01 07:00", "2024-01-01 10:00"),
            ["2024-01-01 08:00:00", "2024-01-01 09:00:00"],
            None,
        ),
        ("at", tc.days("2023-12-31", "2024-01-02"), ["2024-01-01"], {"2024-01-01": 9000}),
        ("at", ["2024-01-01 08:30", "2024-01-01 08:00"], ["2024-01-01 08:30:00"], {"2024-01-01 08:30:00": 4500}),
        ("at", ["2024-01-01", "2024-01-02"], ["2024-01-01"], {"2024-01-01": 9000}),
    ],
    ids=[
        "boolean",
        "integer",
        "number",
        "two",
        "two as lists",
        "hours",
        "days of times",
        "times",
        "dates of times",
    ],
)
def test_keys_of_every_kind(by, keys, told, truth):
    with opened() as t:
        answers = t.watch(None, by, keys, 3500)
        assert hits(answers) == told
        for answer in answers.hits:
            assert near(answer, 4500 if truth is None else truth[answer.key])


def test_days_of_a_date():
    with opened() as t:
        answers = t.watch(A, "day", tc.days("2023-12-30", "2024-01-05"), 1500)
        assert hits(answers) == ["2024-01-02", "2024-01-03"]
        assert len(answers) == 7


def test_sums_by_key():
    with opened() as t:
        answers = t.watch(q.sum("balance", -10, 10), "kind", ["a", "b", "c"], -10_000)
        assert hits(answers) == ["a", "c"]
        assert near(answers[0], 36_000, 7000)


@pytest.fixture
def scans(monkeypatch):
    """The names of what makes the queries, as the data is read."""
    found = []

    def told(name, inner):
        def outer(*arguments, **options):
            found.append(name)
            return inner(*arguments, **options)

        return outer

    for place, name in ((DuckDBEngine, "_by_key"), (engine, "query_of")):
        monkeypatch.setattr(place, name, told(name, getattr(place, name)))
    return found


def test_one_scan_answers_all_keys(scans):
    with opened() as t:
        assert len(t.watch(None, "doctor", range(5000), 2000)) == 5000
        assert scans == ["_by_key"]


def test_a_lazy_watch_scans_for_its_first_answer_and_pays_as_it_goes():
    with opened() as t:
        found = t.iter_watch(None, "kind", ["c", "a", "b", "d"], 2000)
        assert (t.meter.hits, len(t.transcript)) == (0, 0)
        assert [next(found).key, t.meter.hits] == ["c", 1]
        assert [next(found).key, t.meter.hits] == ["a", 1]
        assert t.above(A, 3000).hit
        assert [answer.key for answer in found] == ["b", "d"]
        assert t.meter.hits == 3


def test_mistakes_of_a_lazy_watch_are_told_at_once():
    with opened() as t:
        for arguments in ((None, "nobody", ["a"], 5), (None, "kind", [5], 5), ("x >", "kind", ["a"], 5)):
            with pytest.raises(tc.InvalidParameter):
                t.iter_watch(*arguments)


# When the budget ends.


def test_a_watch_tells_what_it_answered_before_the_budget_was_spent():
    with opened(hits=2) as t:
        answers = t.watch(None, "kind", ["c", "a", "d", "b", "e", "f"], 2000)
        assert [answer.key for answer in answers] == ["c", "a", "d", "b"]
        assert answers.unanswered == ("e", "f")
        assert "does not cover it" in answers.stopped
        assert "2 not answered" in repr(answers)
        assert list(t.transcript) == list(answers)
        none = t.watch(None, "kind", ["c"], 2000)
        assert (list(none), none.unanswered, bool(none.stopped)) == ([], ("c",), True)


def test_a_lazy_watch_ends_where_the_budget_is_spent_and_says_so():
    with opened(hits=1) as t:
        found = t.iter_watch(None, "kind", ["c", "a", "d"], 2000)
        assert [answer.key for answer in itertools.islice(found, 2)] == ["c", "a"]
        assert not found.stopped
        assert list(found) == []
        assert "does not cover it" in found.stopped
        assert found.unanswered == ("d",)


def test_many_questions_tell_what_they_answered_before_the_budget_was_spent():
    asked = [q.above(A, 3000), q.above(A, 9000), q.count(A), q.above(A, 3000), q.above(A, 9000), q.count(None)]
    for many, answered in ((1, 1), (2, 3), (3, 4), (4, 6)):
        with opened(hits=many) as t:
            answers = t.ask_many(asked)
            assert len(answers) == answered
            assert list(answers.unanswered) == asked[answered:]
            assert bool(answers.stopped) == (answered < 6)
            assert list(t.transcript) == list(answers)
            assert t.meter.hits == sum(answer.hit for answer in answers)


def test_a_selection_is_covered_whole_or_not_made():
    with opened(hits=2) as t:
        none = t.top(None, "kind", ["a", "b", "c"], 3)
        assert (list(none), none.unanswered, bool(none.stopped)) == ([], ("a", "b", "c"), True)
        assert len(t.top(None, "kind", ["a", "b", "c"], 2)) == 2


# Many questions.


def test_questions_of_all_kinds_are_answered_in_their_order():
    asked = [
        q.above(A, 3000),
        q.above("kind = 'c'", 3000),
        q.count(A, prior=6000, tolerance=1000),
        q.above(q.sum("balance", -10, 10), 5000),
        q.above(A, 3000, prior=1000, tolerance=100),
        q.above(q.distinct("doctor"), 1500),
        q.above(None, 5000),
    ]
    with opened() as t:
        answers = t.ask_many(asked)
        assert [answer.hit for answer in answers] == [True, False, False, True, True, True, True]
        assert [answer.algorithm for answer in answers] == [t.preview(each).question for each in asked]
        assert t.meter.hits == 5
        frame = answers.to_pandas()
        assert list(frame["question"]) == [answer.algorithm for answer in answers]


def test_questions_that_differ_in_a_value_share_a_scan_and_are_answered_each_for_itself(scans):
    def asked(make):
        return [make(f"doctor = {doctor} AND kind = '{kind}'") for doctor in range(40) for kind in "ab"]

    values = asked(lambda where: q.count(where, prior=500, tolerance=3000))
    sums = asked(lambda where: q.count(q.sum("balance", -10, 10, where=where), prior=9, tolerance=8000))
    both = [each for pair in zip(values, sums, strict=True) for each in pair]
    with opened() as t:
        answers = t.ask_many([*both, q.above("kind = 'c'", 5000), q.count(A, prior=6000, tolerance=1000)])
        assert scans == ["_by_key", "_by_key", "query_of", "query_of"]
        assert [answer.hit for answer in answers] == [False] * 162
        truths = {"a": 6000, "b": 3000, "c": 0}
        answers = t.ask_many([q.count(f"kind = '{kind}'") for kind in "cabac"])
        assert all(near(found, truths[kind]) for found, kind in zip(answers, "cabac", strict=True))
        assert scans[4:] == ["_by_key"]


def test_questions_share_a_scan_on_several_meters_too(scans):
    with opened(meter="renyi", alternatives=[tc.NotPrior(None), tc.NotPrior(tc.UNCHANGED)]) as t:
        answers = t.ask_many([q.count(f"kind = '{kind}'", prior=4500, tolerance=4000) for kind in "ab"])
        assert [answer.outcome for answer in answers] == [tc.UNCHANGED] * 2
        assert scans == ["_by_key"]


def test_numbers_that_were_read_together_are_read_anew_after_an_append(monkeypatch):
    """Another thread may append between two answers of a batch."""
    ask, appended = tc.Session.ask, []

    def asking(session, *arguments):
        if len(t.transcript) == 1 and not appended:
            appended.append(t.append(table(MANY, patient=pa.array(range(MANY, 3 * MANY), pa.int64()))))
        return ask(session, *arguments)

    monkeypatch.setattr(tc.Session, "ask", asking)
    with opened() as t:
        before, after = t.ask_many([q.count(f"kind = '{kind}'") for kind in "ab"])
        assert near(before, 6000)
        assert near(after, 3000 + 2 * 3000)
        assert (before.snapshot, after.snapshot) == (1, 2)


def test_counts_of_rows_share_a_scan_where_no_cube_helps(scans):
    many = pa.table({"id": pa.array(range(20_000)), "half": pa.array([place // 2 for place in range(20_000)])})
    with opened(many, unit=tc.ROW, hits=1) as t:
        asked = [q.count(f"half = {half} AND id > 5", prior=0, tolerance=4000) for half in range(300)]
        assert not any(answer.hit for answer in t.ask_many(asked))
        assert scans == ["_by_key"]


def numbers_kept():
    """How many numbers each batch remembers that is still somewhere in memory."""
    gc.collect()
    return [len(each._known) for each in gc.get_objects() if isinstance(each, SharedScans)]


@pytest.mark.parametrize("fault", [None, RuntimeError, KeyboardInterrupt, tc.BudgetSpent])
def test_numbers_that_were_read_together_are_forgotten_when_the_batch_ends(monkeypatch, fault):
    """Also those that were not answered, and also for who looks at the frames of an error."""
    calls, by_key = [], DuckDBEngine._by_key

    def broken(*arguments, **options):
        calls.append(numbers_kept())
        if len(calls) == 2 and fault in (RuntimeError, KeyboardInterrupt):
            raise fault
        return by_key(*arguments, **options)

    monkeypatch.setattr(DuckDBEngine, "_by_key", broken)
    counts = [q.count(f"kind = '{kind}'", prior=4500, tolerance=4000) for kind in "ab"]
    sums = [q.count(q.sum("balance", 0, 10, where=each.what.where)) for each in counts]
    errors = {RuntimeError: tc.ComputationFailed, KeyboardInterrupt: KeyboardInterrupt}
    with opened(hits=1 if fault is tc.BudgetSpent else 9) as t:
        with pytest.raises(errors[fault]) if fault in errors else nullcontext():
            t.ask_many([counts[0], sums[0], counts[1], sums[1]])
        assert calls[1] == [1]  # the other count, while the first sum is read
        assert len(numbers_kept()) >= 1
        assert not any(numbers_kept())


def test_a_batch_that_breaks_says_no_more_than_that(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("secret")

    with opened() as t:
        monkeypatch.setattr(DuckDBEngine, "_by_key", broken)
        with pytest.raises(tc.ComputationFailed) as refusal:
            t.ask_many([q.count(f"kind = '{kind}'") for kind in "ab"])
        assert "secret" not in f"{refusal.value} {refusal.value.__cause__} {refusal.value.__context__}"
        assert t.meter.hits == 1


def test_nothing_is_asked_if_one_of_many_cannot_be():
    """What is wrong with a later question is found before an earlier one is paid for."""
    wrong = [
        q.watch(None, "kind", ["a"], 5),
        q.above("nobody > 5", 5),
        q.above(A, float("nan")),
        q.between(A, 5, 9),
        7,
    ]
    for each in wrong:
        with opened() as t:
            with pytest.raises((tc.InvalidParameter, tc.NotAllowed)):
                t.ask_many([q.count(A), q.above(A, 3000), each])
            assert (t.meter.hits, len(t.transcript)) == (0, 0)


def test_all_questions_are_priced_before_the_first_is_asked():
    budget = tc.Budget(3.0, 1e-6)
    blunt = tc.open(table(), "patient", budget, query_epsilon=0.1, meter="exact")
    sharp = tc.open(table(), "patient", budget, query_epsilon=0.05, meter="exact")
    with blunt, sharp:
        dear = blunt.prepare(q.above("kind = 'b'", 3000))
        for asked in ([q.count(A), dear], [dear, q.count(A)], [q.above(A, 3000), dear]):
            with pytest.raises(tc.NotAllowed, match="above the declared"):
                sharp.ask_many(asked)
        with pytest.raises(tc.NotAllowed, match="above the declared"):
            sharp.prepare(dear)
        assert (sharp.meter.hits, len(sharp.transcript)) == (0, 0)


def test_all_questions_are_priced_first_where_there_are_alternatives():
    rivals = [tc.NotPrior(None), tc.Everything()]
    with opened(meter="renyi", alternatives=rivals) as t:
        with pytest.raises(tc.NotAllowed, match="does not support"):
            t.ask_many([q.above(A, 3000), q.side(A, 3000)])
        assert (t.meter.hits, len(t.transcript)) == (0, 0)


# Selections.


def test_the_largest_are_published_in_order_up_to_a_gap_or_a_threshold():
    with opened() as t:
        keys = ["c", "b", "a", "d"]
        assert [answer.key for answer in t.top(None, "kind", keys, 2)] == ["a", "b"]
        assert [answer.key for answer in t.top(None, "kind", keys, 4, threshold=2000)] == ["a", "b"]
        assert [answer.key for answer in t.top(None, "kind", keys, 4, stop=gap(4000))][:2] == ["a", "b"]
        assert [answer.key for answer in t.top(None, "kind", keys, 4, stop=gap(2000))] == ["a"]
        assert list(t.top("kind = 'z'", "kind", keys, 2, threshold=2000)) == []
        best = t.top(None, ["kind", "old"], [("b", False), ("a", True)], 1)[0]
        assert (best.key, best.candidate, best.hit) == (("a", True), 1, True)
        assert near(best, 6000)


def test_the_smallest_sum_is_never_hidden_by_a_threshold_of_its_own():
    with opened() as t:
        found = t.top(q.sum("balance", -10, 10), "kind", ["a", "b"], 2)
        assert [answer.key for answer in found] == ["a", "b"]
        assert abs(found[1].outcome + 18_000) < 7000


# Keys.


def test_keys_of_numpy_and_pandas_are_published_as_plain_ones(tmp_path):
    with opened(ledger=tmp_path / "ledger.db") as t:
        for keys in (
            np.array([3, -3]),
            pd.Series([3, -3]),
            pl.Series([3, -3]),
            pa.array([3, -3]),
            range(-3, 4, 6),
        ):
            answers = t.watch(None, "balance", keys, 5000)
            assert {type(answer.key) for answer in answers} == {int}
            assert hits(answers) == [3]
