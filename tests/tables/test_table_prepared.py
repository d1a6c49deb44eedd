"""Questions that were prepared, and a table's opening in two steps: what is checked first makes nothing."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import targetcharge as tc
from targetcharge.tables import Rule, measured
from targetcharge.tables import questions as q
from targetcharge.tables.opening import TableOpening
from targetcharge.tables.preparing import read_back
from targetcharge.tables.records import label_of

FRAME = pd.DataFrame({"id": range(3000), "kind": ["a", "b", "c"] * 1000})
BUDGET = tc.Budget(30.0, 1e-6)


def opening(tmp_path, **more):
    path = tmp_path / "people.parquet"
    if not path.exists():
        FRAME.to_parquet(path)
    return TableOpening(path, "id", BUDGET, query_epsilon=0.5, **more)


def test_a_prepared_question_is_asked_as_the_question_is(monkeypatch):
    watch = q.watch(None, "kind", ["a", "b", "d"], 500)
    asked = [q.above("kind = 'a'", 500), q.above("kind = 'd'", 500), q.count("kind = 'b'")]
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table:
        prepared = [table.prepare(question) for question in asked]
        by_key, top = table.prepare(watch), table.prepare(q.top(None, "kind", ["a", "b"], 1))
        monkeypatch.setattr(measured, "parse", None)  # nothing is read again
        assert [answer.hit for answer in table.ask_many(prepared)] == [True, False, True]
        assert [table.ask(question).algorithm for question in prepared] == [question.name for question in prepared]
        assert [answer.key for answer in table.iter_ask(by_key) if answer.hit] == ["a", "b"]
        assert [answer.key for answer in table.ask(by_key).hits] == ["a", "b"]
        assert len(table.ask(top)) == 1
        assert table.preview(by_key).keys == 3
        assert table.prepare(by_key) is by_key


@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_a_predicate_is_parsed_once_whoever_is_charged(monkeypatch, charging):
    texts, parse = [], measured.parse
    monkeypatch.setattr(measured, "parse", lambda text, schema: texts.append(text) or parse(text, schema))
    with tc.open(FRAME, "id", tc.Budget(60.0, 1e-6), query_epsilon=0.5, charging=charging) as table:
        assert len(table.watch("id >= 0", "kind", ["a", "b"], 500).hits) == 2
        assert table.above("id >= 1", 500).hit
        assert len(table.ask_many([q.above("id >= 2", 500), q.above("id >= 3", 500)]).hits) == 2
        assert len(table.top("id >= 4", "kind", ["a", "b"], 2)) == 2
        table.above("id >= 5", 10**6)
    assert texts == [f"id >= {number}" for number in range(6)]


def test_nothing_of_a_table_can_be_changed_by_what_it_has_prepared():
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table:
        prepared = table.prepare(q.above("kind = 'a'", 500))
        with pytest.raises(AttributeError):
            prepared.schema.clear()
        table.schema.clear()
        assert table.above("kind = 'a'", 500).hit


def test_a_tree_is_about_columns_of_the_table():
    with (
        tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table,
        tc.open(FRAME[["id"]], "id", BUDGET, query_epsilon=0.5, meter="exact") as other,
    ):
        where = table.prepare(q.count("kind = 'a'")).measure.where
        assert table.prepare(q.count(q.Count(where))) == table.prepare(q.count(q.Count(where)))
        assert table.prepare(q.count(q.Count(where))).record == table.prepare(q.count("kind = 'a'")).record
        with pytest.raises(tc.InvalidParameter, match="about columns of the table"):
            other.prepare(q.count(q.Count(where)))


def test_a_prepared_question_keeps_its_epsilon():
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="renyi") as table:
        asked = [table.prepare(q.above("kind = 'a'", 500), epsilon=epsilon) for epsilon in (0.5, 0.25, 0.25, 0.5)]
        assert [answer.epsilon for answer in table.ask_many(asked)] == [0.5, 0.25, 0.25, 0.5]
        assert [table.preview(question).epsilon for question in asked] == [0.5, 0.25, 0.25, 0.5]


def test_what_is_no_watch_is_not_asked_lazily_and_a_watch_is_no_single_question():
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table:
        watch = table.prepare(q.watch(None, "kind", ["a"], 500))
        with pytest.raises(tc.InvalidParameter, match=r"made by tc\.questions\.watch"):
            table.iter_ask(table.prepare(q.count(None)))
        with pytest.raises(tc.InvalidParameter, match="a question with one answer"):
            table.ask_many([watch])
        assert table.meter.hits == 0


@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_a_rehearsal_makes_nothing_and_its_questions_are_asked_of_the_table(tmp_path, charging):
    how = opening(tmp_path, charging=charging)
    engine = how.engine()
    rehearsal = how.rehearse(engine)
    prepared = rehearsal.prepare(q.above("kind = 'a'", 500))
    assert rehearsal.preview(prepared).most_hits == 1
    assert [path.name for path in tmp_path.iterdir()] == ["people.parquet"]
    with how.open(engine) as table:
        assert table.ask(prepared).hit
        assert len(table.transcript) == 1


def test_a_rehearsal_refuses_the_terms_that_opening_would(tmp_path):
    how = opening(tmp_path)
    how.open(how.engine()).close()
    other = TableOpening(how.source, "id", tc.Budget(29.0, 1e-6), query_epsilon=0.5)
    engine = other.engine()
    with pytest.raises(tc.NotAllowed, match=r"made for other terms: epsilon was 30\.0 and is 29\.0"):
        other.rehearse(engine)
    engine.close()


def test_an_opening_shows_nothing_of_its_source():
    assert "kind" not in repr(TableOpening(FRAME, "id", BUDGET, meter="exact"))


def test_a_question_of_another_table_is_refused_for_what_differs():
    other = FRAME.rename(columns={"kind": "sort"})
    shared, individual = (
        tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, charging=charging) for charging in ("shared", "individual")
    )
    with shared, individual, tc.open(other, "id", BUDGET, query_epsilon=0.5, meter="exact") as renamed:
        prepared = shared.prepare(q.above(None, 500))
        with pytest.raises(tc.InvalidParameter, match="opened with charging='individual'"):
            individual.ask(prepared)
        with pytest.raises(tc.InvalidParameter, match="a table with the same columns"):
            renamed.ask(prepared)


def test_a_prepared_count_is_released():
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table:
        prepared = table.prepare(q.count("kind = 'a'"))
        assert table.release(prepared, lambda count: count > 500).released
        assert not table.release(prepared, lambda count: count > 10_000).released
        assert [answer.algorithm for answer in table.transcript] == ["count(kind = 'a')"] * 2


def test_prior_and_tolerance_are_checked_when_a_question_is_prepared():
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table:
        pending = table.release(None, ())
        wrong = {"prior": [[], "x", float("nan"), pending], "tolerance": ["x", float("nan"), -1, [1]]}
        for name, values in wrong.items():
            for value in values:
                with pytest.raises(tc.InvalidParameter, match=f"^{name} is"):
                    table.prepare(q.above(None, 10, **{"prior": 5, "tolerance": 0, name: value}))


NAMES = {
    "count(kind = 'a') >= 3": q.above("kind = 'a'", np.int64(3)),
    "count(*) >= 1000000": q.above(None, np.float32(1e6)),
    "count(*) >= 10000000/3": q.above(None, Fraction(10_000_000, 3)),
    "count(*) between 3 and 5.5": q.between(None, np.int8(3), np.float64(5.5)),
    "count(*) side of 7": q.side(None, np.uint16(7)),
    "count(*) by kind >= 5": q.watch(None, "kind", ["a"], np.int64(5)),
    "sum(id from 0 to 9.5)": q.count(q.sum("id", np.int64(0), np.float64(9.5))),
    "distinct(kind, 2 for each unit) >= 50": q.above(q.distinct("kind", per_unit=np.int64(2)), 50),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_question_has_one_name_however_its_numbers_are_typed(name):
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="renyi") as table:
        prepared = table.prepare(NAMES[name])
        assert prepared.name == name
        again = read_back(prepared.record, 0.5, table.schema)
        assert again.name == name or "distinct" in name
        assert isinstance(prepared.question, q.Watch) or name in table.ask(prepared).algorithm


def test_a_count_is_asked_by_that_name_and_can_be_what_a_question_is_about():
    assert q.above(q.count("kind = 'a'"), 5) == q.above("kind = 'a'", 5)
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table:
        prepared = table.prepare(q.count("kind = 'a'"))
        assert prepared.record == '{"what":{"count":"kind = \'a\'"},"count":null}'
        before = prepared.record.replace('"count":null', '"value":null')
        assert read_back(before, 0.5, table.schema).question == prepared.question
        assert table.ask(q.count()).algorithm == table.count().algorithm


def test_what_cannot_be_counted_is_refused_by_the_name_of_the_argument():
    with (
        tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table,
        pytest.raises(tc.InvalidParameter, match="where is Distinct"),
    ):
        table.count(q.distinct("kind"))


def test_an_argument_has_one_name_and_one_place_in_all_calls():
    watch, above = q.watch(None, "kind", ["a"], 500), q.above("kind = 'a'", 500)
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="renyi") as table:
        assert table.ask(question=above, epsilon=0.25).epsilon == 0.25
        assert [answer.epsilon for answer in table.ask(watch, epsilon=0.25)] == [0.25]
        assert [answer.epsilon for answer in table.iter_ask(question=watch, epsilon=0.25)] == [0.25]
        assert [answer.epsilon for answer in table.ask_many(questions=[above, above], epsilon=0.25)] == [
            0.25,
            0.25,
        ]
        assert table.ask(above).epsilon == 0.5
        with pytest.raises(tc.InvalidParameter, match=r"^questions is \[\]"):
            table.ask_many([])
    with pytest.raises(TypeError, match="positional"):
        q.top(None, "kind", ["a"], 1, 500)
    with pytest.raises(TypeError, match="positional"):
        Rule("late", "kind = 'a'", 500)


def test_every_question_may_have_a_label():
    asked = [
        q.above(None, 5, label="x"),
        q.count(None, label="x"),
        q.between(None, 5, 9, label="x"),
        q.side(None, 5, label="x"),
        q.watch(None, "kind", ["a"], 5, label="x"),
        q.top(None, "kind", ["a"], label="x"),
    ]
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="renyi") as table:
        for question in asked:
            assert label_of(table.prepare(question).record)[0] == "x"
            with pytest.raises(tc.InvalidParameter, match="label is 5; it must be text"):
                table.prepare(replace(question, label=5))


def test_what_a_question_may_be_about_is_no_question_and_the_error_says_what_is():
    with tc.open(FRAME, "id", BUDGET, query_epsilon=0.5, meter="exact") as table:
        for what in (q.sum("id", 0, 5), q.distinct("kind"), q.Count("kind = 'a'")):
            with pytest.raises(
                tc.InvalidParameter, match=r"a question about that, such as tc\.questions\.above\("
            ):
                table.ask(what)
