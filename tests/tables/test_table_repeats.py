"""A question whose hit is published is answered by that, for nothing; misses are drawn anew."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pandas as pd
import pytest

import targetcharge as tc
from targetcharge import questions as q

BUDGET = tc.Budget(30.0, 1e-6)
FRAME = pd.DataFrame({"unit": range(3000), "k": [n % 5 for n in range(3000)], "v": [n % 100 for n in range(3000)]})
OLD = "v > 5"
TABLES = {
    "sparse": {"meter": "sparse"},
    "exact": {"meter": "exact"},
    "renyi": {"meter": "renyi"},
    "individual": {"charging": "individual"},
    "individual renyi": {"charging": "individual", "meter": "renyi"},
}
ALL_METERS = {
    "above": q.above(OLD, 100),
    "count": q.count(OLD),
    "sum": q.count(q.sum("v", 0, 100)),
    "sum above": q.above(q.sum("v", 0, 100), 10),
    "mean": q.mean("v", 0, 100),
    "quantile": q.quantile("v", 0.5, 0, 100),
    "quantiles": q.quantiles("v", [0.2, 0.5], 0, 100),
    "watch": q.watch(OLD, "k", range(5), 100),
    "top": q.top(OLD, "k", range(5), 2),
    "top with a threshold": q.top(OLD, "k", [0, 1, 9], 3, threshold=300),
    "picks": q.top(OLD, "k", range(5), 2, values=False),
    "histogram": q.histogram(OLD, "k", range(5)),
}
CHANGES = {
    "count with a prior": q.count(OLD, prior=100, tolerance=1),
    "above with a prior": q.above(OLD, 100, prior=100, tolerance=1),
    "above that fell": q.above(OLD, 2900, prior=100, tolerance=1),
}
OTHERS = {"distinct": q.above(q.distinct("v"), 10), "between": q.between(OLD, 100, 4000)}
ASKED = [
    *((table, name) for table in TABLES for name in ALL_METERS),
    *((table, name) for table in ("exact", "renyi", "individual renyi") for name in CHANGES),
    *((table, "distinct") for table in ("sparse", "exact", "renyi")),
    *((table, "between") for table in ("renyi", "individual renyi")),
]
QUESTIONS = ALL_METERS | CHANGES | OTHERS


def opened(table="sparse", ledger=":memory:", **more):
    options = {"budget": BUDGET, "hits": 30, "ledger": ledger, **TABLES[table], **more}
    return tc.open(FRAME, unit="unit", **options)


def listed(answers):
    return [answers] if isinstance(answers, tc.Answer) else list(answers)


def free(answer):
    return replace(answer, price=0.0, grains=(0,), repeat=True)


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


@pytest.mark.parametrize(("table", "name"), ASKED, ids=": ".join)
def test_a_question_whose_hit_is_published_is_a_repeat_also_after_a_restart(table, name, tmp_path):
    place = tmp_path / "ledger.db"
    with opened(table, place) as t:
        first = listed(t.ask(QUESTIONS[name]))
        assert any(answer.hit for answer in first)
    with opened(table, place) as t:
        hits, entries = t.meter.hits, len(list(t._session._ledger.entries()))
        assert t.preview(QUESTIONS[name]).repeats >= sum(answer.hit for answer in first)
        repeats = listed(t.ask(QUESTIONS[name]))
        assert repeats == [free(answer) for answer in first]
        assert (t.meter.hits, len(list(t._session._ledger.entries()))) == (hits, entries)
        anew = listed(t.ask(QUESTIONS[name], again=True))
        assert not any(answer.repeat for answer in anew)
        assert t.meter.hits > hits


METHODS = {
    "above": lambda t, **more: t.above(OLD, 100, **more),
    "count": lambda t, **more: t.count(OLD, **more),
    "sum": lambda t, **more: t.sum("v", 0, 100, **more),
    "mean": lambda t, **more: t.mean("v", 0, 100, **more),
    "quantile": lambda t, **more: t.quantile("v", 0.5, 0, 100, **more),
    "quantiles": lambda t, **more: t.quantiles("v", [0.5], 0, 100, **more),
    "between": lambda t, **more: t.between(OLD, 100, 4000, **more),
    "sum_above": lambda t, **more: t.sum_above("v", 0, 100, 5, **more),
    "distinct_above": lambda t, **more: t.distinct_above("v", 5, **more),
    "watch": lambda t, **more: t.watch(OLD, "k", range(2), 100, **more),
    "iter_watch": lambda t, **more: list(t.iter_watch(OLD, "k", range(2), 100, **more)),
    "top": lambda t, **more: t.top(OLD, "k", range(5), 2, **more),
    "histogram": lambda t, **more: t.histogram(OLD, "k", range(5), **more),
    "ask": lambda t, **more: t.ask(q.above(OLD, 100), **more),
    "ask a watch": lambda t, **more: t.ask(q.watch(OLD, "k", range(2), 100), **more),
    "iter_ask": lambda t, **more: list(t.iter_ask(q.watch(OLD, "k", range(2), 100), **more)),
    "ask_many": lambda t, **more: t.ask_many([q.above(OLD, 100), q.count(OLD)], **more),
    "ask_quantiles": lambda t, **more: t.ask_quantiles(q.quantiles("v", [0.5], 0, 100), **more),
}


@pytest.mark.parametrize("call", METHODS.values(), ids=METHODS)
def test_every_call_takes_again(call):
    with opened("renyi") as t:
        assert not any(answer.repeat for answer in listed(call(t)))
        hits = t.meter.hits
        assert all(answer.repeat for answer in listed(call(t)))
        assert t.meter.hits == hits
        assert not any(answer.repeat for answer in listed(call(t, again=True)))
        assert t.meter.hits > hits
        with pytest.raises(tc.InvalidParameter, match="again is 'yes'"):
            call(t, again="yes")


def test_a_miss_is_drawn_anew(place):
    with opened(ledger=place) as t:
        for _ in range(3):
            miss = t.above(OLD, 10**6)
            assert (miss.hit, miss.repeat) == (False, False)
        assert len(t.transcript) == 3


def test_a_side_that_is_told_for_free_is_drawn_anew(place):
    with opened("renyi", place) as t:
        assert [t.side(OLD, 10).seq for _ in range(2)] == [1, 2]


@pytest.mark.parametrize(
    "other",
    [
        q.above(OLD, 101),
        q.above("v > 6", 100),
        q.above(OLD, 100, label="weekly"),
        q.above(OLD, 100, prior=50, tolerance=1),
        q.above(OLD, 100, prior=50, tolerance=2),
        q.above(OLD, 100, prior=51, tolerance=1),
        q.count(OLD),
        q.count(OLD, prior=50, tolerance=1),
        q.above(q.sum("v", 0, 1, OLD), 100),
        q.top(OLD, "k", range(5), 2),
        q.top(OLD, "k", range(4), 2),
        q.top(OLD, "k", range(5), 2, threshold=3),
        q.top(OLD, "k", range(5), 2, values=False),
        q.top(OLD, "k", range(5), 1),
        q.histogram(OLD, "k", range(4)),
        q.histogram(OLD, "k", range(5), 2),
    ],
    ids=str,
)
def test_a_question_that_differs_is_asked(place, other):
    everything = [*QUESTIONS.values(), q.above(OLD, 100, prior=50, tolerance=3)]
    with opened("renyi", place, hits=60, budget=tc.Budget(100.0, 1e-6)) as t:
        for asked in everything:
            if asked != other:
                t.ask(asked)
        assert not any(answer.repeat for answer in listed(t.ask(other)))


def test_another_epsilon_is_another_question(place):
    with opened(ledger=place) as t:
        t.above(OLD, 100)
        epsilon = t.describe().query_epsilon
        assert t.above(OLD, 100, epsilon=epsilon).repeat
        assert not t.above(OLD, 100, epsilon=epsilon / 2).repeat


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (q.above("v>5", 100), q.above("  v  >  5 ", 100.0)),
        (q.above(q.count(OLD), 100), q.above(OLD, 100)),
        (q.count(OLD, prior=100, tolerance=1), q.count(OLD, prior=100.0, tolerance=1.0)),
        (q.mean("v", 0, 100), q.mean("v", 0.0, 100.0)),
        (q.watch(OLD, ["k"], [1, 2], 100), q.watch("v>5", "k", (2, 1), 100.0)),
    ],
    ids=str,
)
def test_the_same_question_in_other_words_is_a_repeat(place, first, second):
    with opened("exact", place) as t:
        t.ask(first)
        assert all(answer.repeat for answer in listed(t.ask(second)))


def test_rows_that_were_appended_make_it_another_question(place):
    more = FRAME.assign(unit=FRAME["unit"] + 10_000)
    with opened(ledger=place) as t:
        first = t.above(OLD, 100)
        t.append(more)
        second = t.above(OLD, 100)
        assert (second.repeat, second.snapshot) == (False, 2)
        assert abs(second.outcome - 2 * first.outcome) < 300
        assert t.above(OLD, 100) == free(second)


def test_data_that_was_replaced_makes_it_another_question(tmp_path):
    with opened(ledger=tmp_path / "ledger.db") as t:
        t.above(OLD, 100)
    more = FRAME.assign(v=FRAME["v"] + 50)
    with tc.open(more, "unit", BUDGET, hits=30, ledger=tmp_path / "ledger.db", new_data=True) as t:
        assert not t.above(OLD, 100).repeat


def test_what_another_session_published_meanwhile_is_a_repeat(tmp_path):
    place = tmp_path / "ledger.db"
    with opened(ledger=place) as first, opened(ledger=place) as second:
        first.above("v > 99", 100)  # a miss, so that it holds a hit back
        published = second.above(OLD, 100)
        watched = second.watch(OLD, "k", range(3), 100)
        assert first.above(OLD, 100) == free(published)
        assert first.watch(OLD, "k", range(3), 100)[0] == free(watched[0])


@pytest.mark.parametrize("table", ["sparse", "individual"])
def test_a_spent_ledger_still_answers_repeats(table, place):
    keys = range(4)
    with opened(table, place, hits=4 if table == "sparse" else 2) as t:
        first = t.watch(OLD, "k", keys, 100)
        while t.meter.hits_left and table == "sparse":
            t.count(OLD, again=True)
        hits = t.meter.hits
        assert [answer.repeat for answer in t.watch(OLD, "k", keys, 100)] == [True] * 4
        if table == "sparse":
            again = t.watch(OLD, "k", [4, *keys], 100)
            assert (again.unanswered, "budget" in again.stopped) == ((4,), True)
            assert list(again) == [free(answer) for answer in first]
            with pytest.raises(tc.BudgetSpent):
                t.above(OLD, 99)
            refused = t.ask_many([q.above(OLD, 99), q.above(OLD, 98)])
            assert (len(refused), len(refused.unanswered)) == (0, 2)
        assert t.meter.hits == hits


def test_keys_whose_hit_is_published_come_back_at_their_place_and_the_others_are_asked(place):
    with opened(ledger=place) as t:
        first = t.watch(OLD, "k", [1, 3], 100)
        scans = []
        measure_by = t._engine.measure_by
        t._numbers.__dict__["engine"].measure_by = lambda measure, keys: (
            scans.append(keys.published()) or measure_by(measure, keys)
        )
        answers = t.watch(OLD, "k", [0, 1, 9, 3, 4], 100)
        assert [answer.key for answer in answers] == [0, 1, 9, 3, 4]
        assert [answer.repeat for answer in answers] == [False, True, False, True, False]
        assert [answers[1], answers[3]] == [free(answer) for answer in first]
        assert scans == [(0, 9, 4)]
        assert t.meter.hits == 4
        assert repr(answers) == "<5 answers, 4 hits, 2 of them published before>"


def test_a_watch_of_which_all_is_published_scans_nothing(place, monkeypatch):
    with opened(ledger=place) as t:
        t.watch(OLD, "k", range(5), 100)
        monkeypatch.setattr(type(t._engine), "measure_by", None)
        assert len(t.watch(OLD, "k", range(5), 100).hits) == 5


def test_a_lazy_watch_gives_repeats_before_it_asks(place):
    with opened(ledger=place) as t:
        t.watch(OLD, "k", [2], 100)
        lazy = t.iter_watch(OLD, "k", [2, 3], 100)
        assert next(lazy).repeat
        assert (t.meter.hits, lazy.unanswered) == (1, (3,))
        assert not next(lazy).repeat
        assert (t.meter.hits, lazy.unanswered, lazy.stopped) == (2, (), "")


@pytest.mark.parametrize("table", ["sparse", "exact", "individual"])
def test_many_questions_are_repeats_among_others(table, place):
    with opened(table, place) as t:
        t.ask_many([q.above(OLD, 100), q.above("v > 50", 10**6), q.mean("v", 0, 100)])
        hits = t.meter.hits
        asked = [q.above("v > 50", 10**6), q.mean("v", 0, 100), q.above("v > 7", 100), q.above(OLD, 100)]
        answers = t.ask_many(asked)
        assert [answer.repeat for answer in answers] == [False, True, False, True]
        assert [answer.hit for answer in answers] == [False, True, True, True]
        assert t.meter.hits == hits + 1


def test_the_same_question_twice_in_one_call_is_paid_once(place):
    with opened(ledger=place) as t:
        answers = t.ask_many([q.above(OLD, 100), q.count(OLD), q.above(OLD, 100), q.above("v > 5", 100)])
        assert [answer.repeat for answer in answers] == [False, False, True, True]
        assert (t.meter.hits, len({answer.seq for answer in answers})) == (2, 2)
        answers = t.ask_many([q.above(OLD, 10**6)] * 3)
        assert len({answer.seq for answer in answers}) == 3
        assert len(t.ask_many([q.count(OLD)] * 3, again=True)) == 3
        assert t.meter.hits == 5


def test_releases_are_never_repeats(place):
    with opened(ledger=place) as t:
        releases = [t.release(OLD, when=100) for _ in range(2)]
        assert [release.released for release in releases] == [True, True]
        assert t.meter.hits == 2
        assert not t.count(OLD).repeat
        assert t.release(OLD, when=100).price > 0


def test_a_selection_that_a_rule_ends_is_never_a_repeat(place):
    with opened(ledger=place) as t:
        for hits in (2, 4):
            assert not t.top(OLD, "k", range(5), 2, stop=lambda _: None)[0].repeat
            assert t.meter.hits == hits
        assert not t.top(OLD, "k", range(5), 2)[0].repeat


def test_of_what_was_asked_again_the_last_answer_is_the_repeat(place):
    with opened(ledger=place) as t:
        answers = [t.count(OLD), t.count(OLD, again=True)]
        assert t.count(OLD) == free(answers[1])
        top = [t.top(OLD, "k", range(5), 2), t.top(OLD, "k", range(5), 2, again=True)]
        assert list(t.top(OLD, "k", range(5), 2)) == [free(answer) for answer in top[1]]


def test_a_repeat_says_so_everywhere(place):
    with opened(ledger=place) as t:
        t.above(OLD, 100)
        repeat = t.above(OLD, 100)
        assert "published before, free" in repeat._repr_html_()
        assert str(repeat).endswith(", published before, free")
        frame = t.ask_many([q.above(OLD, 100), q.above(OLD, 10**6)]).to_pandas()
        assert list(frame["repeat"]) == [True, False]
        assert "published before: asked again it is free" in str(t.preview(q.above(OLD, 100)))
        assert t.preview(q.above(OLD, 100)).most_hits == 0
        t.watch(OLD, "k", [1, 2], 100)
        shown = t.preview(q.watch(OLD, "k", range(5), 100))
        assert (shown.repeats, shown.most_hits) == (2, 3)
        assert "published before: 2 of 5: " in str(shown)


def test_differences_of_repeats_are_those_of_the_answers(place):
    with opened(ledger=place) as t:
        first, second = t.count(OLD), t.count("v > 50")
        expected = t.difference(first, second)
        assert t.difference(t.count(OLD), t.count("v > 50")) == expected


def test_individual_repeats_are_the_old_answers_though_units_have_left(place):
    with opened("individual", place, hits=1) as t:
        first = t.above(OLD, 100)
        assert not t.above("v > 4", 300).hit  # they all have paid
        assert t.above(OLD, 100) == free(first)


def test_an_index_that_was_changed_can_at_worst_find_nothing(tmp_path):
    place = tmp_path / "ledger.db"
    with opened(ledger=place) as t:
        for where in (OLD, "v > 50"):
            t.above(where, 100)
        t.watch(OLD, "k", range(2), 100)
    changes = [
        "UPDATE published SET number = 3 - number WHERE number < 3",
        "UPDATE published SET number = 'x'",
        "UPDATE published SET number = 1, place = 7",
        "UPDATE published SET place = 'x'",
        "DELETE FROM published",
    ]
    for change in changes:
        with closing(sqlite3.connect(place)) as file, file:
            file.execute(change)
        with opened(ledger=place) as t:
            hits = t.meter.hits
            answers = [t.above(OLD, 100), *t.watch(OLD, "k", range(2), 100)]
            assert t.meter.hits == hits + sum(not answer.repeat for answer in answers)
            assert all(answer.algorithm.startswith("count(v > 5)") for answer in answers)
    with closing(sqlite3.connect(place)) as file, file:
        file.execute("DROP TABLE published")
    with opened(ledger=place) as t:
        assert t.above(OLD, 100).repeat


def test_a_prior_needs_a_tolerance_and_0_says_that_there_is_none():
    with opened("exact") as t:
        for asked in (lambda **how: t.count(OLD, **how), lambda **how: t.above(OLD, 100, **how)):
            with pytest.raises(tc.InvalidParameter, match="tolerance is None; it must be given with a prior"):
                asked(prior=120)
            assert asked(prior=120, tolerance=0).hit


# As many hits as are wanted.


@pytest.mark.parametrize("table", ["sparse", "individual"])
def test_a_watch_ends_after_as_many_new_hits_as_are_wanted(table, place):
    with opened(table, place) as t:
        t.watch(OLD, "k", [1, 4], 100)
        hits = t.meter.hits
        answers = t.watch(OLD, "k", [9, 0, 1, 2, 3, 4], 100, max_hits=2)
        assert [answer.key for answer in answers] == [9, 0, 1, 2, 4]
        assert answers.unanswered == (3,)
        assert answers.stopped == "stopped after 2 new hits, as many as were wanted"
        assert answers.refusal is None
        assert t.meter.hits == hits + 2
        assert t.watch(OLD, "k", [1, 2], 100, max_hits=1).stopped == ""


def test_many_questions_end_after_as_many_new_hits_as_are_wanted(place):
    with opened(ledger=place) as t:
        asked = [q.above(OLD, 100 + number) for number in range(5)]
        answers = t.ask_many(asked, max_hits=1)
        assert (len(answers), answers.unanswered) == (1, tuple(asked[1:]))
        assert answers.stopped == "stopped after 1 new hit, as many as were wanted"
        assert len(t.ask_many(asked, max_hits=3)) == 4
        assert t.meter.hits == 4


def test_a_lazy_watch_ends_after_as_many_new_hits_as_are_wanted(place):
    with opened(ledger=place) as t:
        lazy = t.iter_watch(OLD, "k", range(5), 100, max_hits=1)
        assert next(lazy).key == 0
        assert list(lazy) == []
        assert (lazy.unanswered, t.meter.hits) == ((1, 2, 3, 4), 1)


def test_with_no_new_hits_wanted_only_what_is_published_is_told(place):
    with opened(ledger=place) as t:
        t.watch(OLD, "k", [2], 100)
        answers = t.watch(OLD, "k", [1, 2, 3], 100, max_hits=0)
        assert ([answer.key for answer in answers], answers.unanswered, t.meter.hits) == ([2], (1, 3), 1)


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "2"])
def test_how_many_hits_are_wanted_is_checked(wrong):
    with opened() as t:
        for call in (
            lambda: t.watch(OLD, "k", range(5), 100, max_hits=wrong),
            lambda: t.iter_watch(OLD, "k", range(5), 100, wrong),
            lambda: t.ask_many([q.count(OLD)], max_hits=wrong),
        ):
            with pytest.raises(tc.InvalidParameter, match="max_hits"):
                call()
        assert len(t.transcript) == 0


@pytest.mark.parametrize("table", ["sparse", "individual"])
def test_the_key_null_is_published_once_also_after_a_restart(table, tmp_path):
    frame = FRAME.assign(k=FRAME["k"].where(FRAME["k"] != 4))
    questions = [
        q.watch(None, "k", [0, None], 100),
        q.top(None, "k", [0, None], 2),
        q.histogram(None, "k", [None]),
    ]
    for repeat in (False, True):
        with tc.open(
            frame, unit="unit", budget=BUDGET, hits=30, ledger=tmp_path / "ledger.db", **TABLES[table]
        ) as t:
            answers = [answer for question in questions for answer in t.ask(question)]
        assert [answer.repeat for answer in answers] == [repeat] * 5
        assert [answer.key for answer in answers].count(tc.MISSING) == 3
        assert all(abs(answer.outcome - 600) < 100 for answer in answers)
