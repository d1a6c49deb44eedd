"""What a hostile reader found once."""

import sqlite3
import threading
import time

import pytest

import targetcharge as tc
from targetcharge.ledger.sqlite.database import Database

BUDGET = tc.Budget(10.0, 1e-6)


def scores(*values):
    return [tc.private(0.1)(lambda _, value=value: value) for value in values]


@pytest.mark.parametrize("where", ["stop", "threshold"])
def test_a_floor_of_a_class_of_its_own_sees_no_score(where):
    seen = []

    class Floor(float):
        def __gt__(self, other):
            seen.append(other)
            return float(self) > other

        __lt__ = __ge__ = __le__ = __gt__

    floor = Floor(2.5)
    options = {"stop": lambda _: floor} if where == "stop" else {"threshold": floor}
    released = tc.Session([], BUDGET, 0.1).select(scores(3, 2, 1), k=3, **options)
    assert [answer.outcome for answer in released] == [3]
    assert seen == []


def test_the_transcript_can_be_read_while_another_thread_asks():
    session, no = tc.Session([], BUDGET, 0.1), tc.private(0.1)(lambda _: False)
    asking = threading.Thread(target=lambda: [session.test(no) for _ in range(3000)])
    asking.start()
    while asking.is_alive():
        list(session.transcript)
    assert len(session.transcript) == 3000


def test_the_time_in_the_transcript_is_that_of_the_question():
    session, began, ends = tc.Session([], BUDGET, 0.1), threading.Event(), threading.Event()

    def slow(_):
        began.set()
        ends.wait(20)
        return False

    first = threading.Thread(target=lambda: session.test(tc.private(0.1)(slow)))
    first.start()
    began.wait(20)
    asked, answers = time.time(), []
    second = threading.Thread(target=lambda: answers.append(session.test(tc.private(0.1)(lambda _: False))))
    second.start()
    time.sleep(0.5)
    ends.set()
    first.join()
    second.join()
    assert answers[0].received - asked < 0.4


@pytest.mark.parametrize(
    "call", [lambda rows: tc.Session(BUDGET, rows, 0.1), lambda rows: tc.Session([], BUDGET, 0.1).ask(rows)]
)
def test_mixing_up_parameters_does_not_print_the_data(call):
    with pytest.raises(tc.InvalidParameter) as caught:
        call([("alice", "HIV+"), ("bob", "flu")])
    assert "alice" not in str(caught.value)


def test_commits_are_synced_and_logged_ahead(tmp_path):
    with tc.Session([], BUDGET, 0.1, ledger=tmp_path / "l.db") as session:
        store = session._ledger._database
        full = 2
        assert (store._pragma("synchronous"), store._pragma("journal_mode")) == (full, "wal")
    assert isinstance(store, Database)
    with sqlite3.connect(tmp_path / "l.db") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_a_selection_leaves_no_more_than_one_hit_held_back(tmp_path):
    with tc.Session([], BUDGET, 0.1, ledger=tmp_path / "l.db") as session:
        session.select(scores(3, 2, 1), k=3)
        assert session._ledger._transactions.session.held.count == 1


@pytest.mark.parametrize("count", [-1, 1.5, True, False, None, ""])
def test_last_wants_a_count(count):
    with pytest.raises(tc.InvalidParameter, match="count is"):
        tc.Session([], BUDGET, 0.1).transcript.last(count)


def test_the_end_of_a_sweep_is_not_told_as_a_candidates_answer():
    session = tc.Session([], BUDGET, 0.1)
    session.select(scores(3, 2), k=2, threshold=2.5)
    end = session.transcript[-1]
    assert (end.outcome, end.hit, end.algorithm) == (None, False, "2 candidates")


def test_a_file_keeps_the_whole_transcript(tmp_path):
    with pytest.raises(tc.InvalidParameter, match="transcript is 5"):
        tc.Session([], BUDGET, 0.1, ledger=tmp_path / "l.db", transcript=5)


def test_a_ledger_that_exists_empty_becomes_private(tmp_path):
    path = tmp_path / "l.db"
    path.touch(0o644)
    with tc.Session([], BUDGET, 0.1, ledger=path):
        assert path.stat().st_mode & 0o077 == 0
