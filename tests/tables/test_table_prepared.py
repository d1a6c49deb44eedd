"""Questions that were prepared, and a table's opening in two steps: what is checked first makes nothing."""

import pandas as pd
import pytest

import targetcharge as tc
from targetcharge.tables import measured
from targetcharge.tables import questions as q
from targetcharge.tables.opening import TableOpening

FRAME = pd.DataFrame({"id": range(3000), "kind": ["a", "b", "c"] * 1000})
BUDGET = tc.Budget(30.0, 1e-6)


def opening(tmp_path, **more):
    path = tmp_path / "people.parquet"
    if not path.exists():
        FRAME.to_parquet(path)
    return TableOpening(path, "id", BUDGET, 0.5, **more)


def test_a_prepared_question_is_asked_as_the_question_is(monkeypatch):
    watch = q.watch(None, "kind", ["a", "b", "d"], 500)
    asked = [q.above("kind = 'a'", 500), q.above("kind = 'd'", 500), q.value("kind = 'b'")]
    with tc.open(FRAME, "id", BUDGET, 0.5) as table:
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


def test_a_prepared_question_keeps_its_epsilon():
    with tc.open(FRAME, "id", BUDGET, 0.5, meter="renyi") as table:
        asked = [table.prepare(q.above("kind = 'a'", 500), epsilon=epsilon) for epsilon in (0.5, 0.25, 0.25, 0.5)]
        assert [answer.epsilon for answer in table.ask_many(asked)] == [0.5, 0.25, 0.25, 0.5]
        assert [table.preview(question).epsilon for question in asked] == [0.5, 0.25, 0.25, 0.5]


def test_what_is_no_watch_is_not_asked_lazily_and_a_watch_is_no_single_question():
    with tc.open(FRAME, "id", BUDGET, 0.5) as table:
        watch = table.prepare(q.watch(None, "kind", ["a"], 500))
        with pytest.raises(tc.InvalidParameter, match=r"made by tc\.questions\.watch"):
            table.iter_ask(table.prepare(q.value(None)))
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
    other = TableOpening(how.source, "id", tc.Budget(29.0, 1e-6), 0.5)
    engine = other.engine()
    with pytest.raises(tc.NotAllowed, match=r"made for other terms: epsilon was 30\.0 and is 29\.0"):
        other.rehearse(engine)
    engine.close()


def test_an_opening_shows_nothing_of_its_source():
    assert "kind" not in repr(TableOpening(FRAME, "id", BUDGET))


def test_a_question_of_another_table_is_refused_for_what_differs():
    other = FRAME.rename(columns={"kind": "sort"})
    shared, individual = (
        tc.open(FRAME, "id", BUDGET, 0.5, charging=charging) for charging in ("shared", "individual")
    )
    with shared, individual, tc.open(other, "id", BUDGET, 0.5) as renamed:
        prepared = shared.prepare(q.above(None, 500))
        with pytest.raises(tc.InvalidParameter, match="opened with charging='individual'"):
            individual.ask(prepared)
        with pytest.raises(tc.InvalidParameter, match="a table with the same columns"):
            renamed.ask(prepared)
