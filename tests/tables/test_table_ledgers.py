"""The ledger of a table: beside its file, for one unit and one budget, on the data that it was made for."""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.ledger.processes import child
from tests.tables import children
from tests.tables.people import EPSILON, near, opened, source, table

import targetcharge as tc
from targetcharge.engines.duckdb.engine import DuckDBEngine
from targetcharge.ledger.entries import Spent
from targetcharge.ledger.sqlite import verify
from targetcharge.ledger.sqlite.ledger import SqliteLedger
from targetcharge.tables import questions as q

A = "kind = 'a'"
SMALL = table(5)


def note_of(ledger):
    return Path(f"{ledger}-private")


# Where it is.


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_ledger_of_a_file_lies_beside_it_and_goes_on_when_it_is_opened_again(kind, tmp_path):
    path, options = source(kind, tmp_path)
    with opened(path, **options) as t:
        assert t.above(A, 3000).hit
        first = list(t.transcript)
    assert path.with_name(f"people.{kind}.ledger.db").exists()
    with opened(str(path), **options) as t:
        assert (t.meter.hits, list(t.transcript)) == (1, first)
        assert t.above(A, 3000).hit
        assert t.meter.hits == 2


def test_the_ledger_of_a_folder_lies_beside_the_folder(tmp_path, monkeypatch):
    folder = tmp_path / "visits"
    (folder / "inside").mkdir(parents=True)
    for part in range(3):
        pq.write_table(table().slice(part * 6000, 6000), folder / f"{part}.parquet")
    with opened(folder) as t:
        assert near(t.count(A), 6000)
    assert (tmp_path / "visits.ledger.db").exists()
    monkeypatch.chdir(folder)
    for place in (".", "./", "inside/.."):
        with opened(place) as t:
            assert t.meter.hits == 1
    monkeypatch.chdir(folder / "inside")
    with opened("..") as t:
        assert t.meter.hits == 1
    assert sorted(path.name for path in folder.iterdir()) == ["0.parquet", "1.parquet", "2.parquet", "inside"]


def test_another_name_of_a_file_has_the_same_ledger(tmp_path):
    pq.write_table(table(), tmp_path / "visits.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "visits.parquet")
    with opened(tmp_path / "visits.parquet") as t:
        t.count(A)
    with opened(tmp_path / "link.parquet") as t:
        assert t.meter.hits == 1
    assert not (tmp_path / "link.parquet.ledger.db").exists()


def test_a_pattern_has_no_place_beside_it(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    with pytest.raises(tc.InvalidParameter, match="ledger is None"):
        opened(tmp_path / "*.parquet")
    with opened(tmp_path / "*.parquet", ledger=tmp_path / "ledger.db") as t:
        assert near(t.count(A), 6000)


def test_the_root_has_no_place_beside_it():
    with pytest.raises(tc.InvalidParameter, match="ledger is None"):
        opened("/")


def test_frames_have_their_ledger_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for made in (SMALL, SMALL.to_pandas()):
        with opened(made) as t:
            t.count()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"unit": "doctor"}, "unit was column 'patient' and is column 'doctor'"),
        ({"unit": tc.ROW}, "unit was column 'patient' and is every row"),
        ({"budget": tc.Budget(9.0, 1e-6)}, "epsilon was"),
        ({"meter": "renyi"}, "meter was 'exact' and is 'renyi'"),
        ({"targets": [tc.Disagreement()]}, "targets was"),
    ],
    ids=["unit", "rows", "budget", "meter", "targets"],
)
def test_other_terms_are_refused(tmp_path, changes, word):
    path, _ = source("parquet", tmp_path)
    opened(path).close()
    with pytest.raises(tc.NotAllowed, match=word):
        opened(path, **changes)
    with opened(path) as t:
        assert t.meter.hits == 0


def test_a_ledger_of_a_plain_session_is_not_one_of_a_table(tmp_path):
    path, _ = source("parquet", tmp_path)
    with opened(path, 5) as t:
        budget = t.meter.guarantee
    ledger = tmp_path / "people.parquet.ledger.db"
    with pytest.raises(tc.NotAllowed, match="unit was"):
        tc.Session(None, budget, EPSILON, ledger=ledger)
    with pytest.raises(tc.NotAllowed, match="unit was column 'patient' and is words 'units of patient'"):
        tc.Session(None, budget, EPSILON, ledger=ledger, unit="units of patient")


# The data that it was made for.


def test_other_data_is_refused_until_the_owner_says_so(tmp_path):
    path, _ = source("parquet", tmp_path)
    with opened(path) as t:
        t.count(A)
    pq.write_table(table(9001), path)
    with pytest.raises(tc.NotAllowed, match="new_data=True"):
        opened(path)
    with opened(path, new_data=True) as t:
        assert t.meter.hits == 1
        t.count(A)
    with opened(path) as t:
        assert t.meter.hits == 2
    pq.write_table(table(), path)
    with pytest.raises(tc.NotAllowed, match="new_data=True"):
        opened(path)


def test_a_file_that_changes_while_it_is_open_is_not_asked(tmp_path):
    path, _ = source("parquet", tmp_path)
    with opened(path) as t:
        lazy = t.iter_watch(None, "kind", ["a", "b"], 2000)
        pq.write_table(table(9001), path)
        for call in (
            lambda: t.above(A, 3000),
            lambda: next(lazy),
            lambda: t.top(None, "kind", ["a"]),
            lambda: t.release(A, {1}),
        ):
            with pytest.raises(tc.NotAllowed, match="changed"):
                call()
        assert t.meter.hits == 0


def test_frames_in_another_order_are_the_same_data_and_other_values_are_not(tmp_path):
    frame = pd.DataFrame({"u": [1, 2, 3], "x": [1.0, 2.0, None], "t": ["a", None, "b"]})
    where = {"unit": "u", "ledger": tmp_path / "ledger.db"}
    opened(frame, **where).close()
    opened(frame.iloc[[2, 0, 1]], **where).close()
    for changed in (
        frame.assign(x=[1.0, 2.0, 3.0]),
        frame.iloc[:2],
        pd.concat([frame, frame.iloc[:1]]),
        frame.assign(t=["a", "", "b"]),
        frame.rename(columns={"x": "y"}),
    ):
        with pytest.raises(tc.NotAllowed, match="new_data=True"):
            opened(changed, **where)


def test_the_note_of_the_data_is_private_and_keyed(tmp_path):
    """Without the key nobody could tell which of some small tables it was made from; with it, only its owner."""
    notes = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "people.parquet"
        pq.write_table(SMALL, path)
        opened(path).close()
        note = note_of(f"{path}.ledger.db")
        assert stat.S_IMODE(note.stat().st_mode) == 0o600
        notes.append(json.loads(note.read_text()))
        assert sorted(notes[-1]) == ["columns", "gone", "key", "snapshots", "types", "version"]
        assert len(bytes.fromhex(notes[-1]["key"])) == 32
    first, second = notes
    assert first["key"] != second["key"]
    (known,), (other,) = first["snapshots"], second["snapshots"]
    assert known["fingerprint"] != other["fingerprint"]
    whole = (tmp_path / "first" / "people.parquet").read_bytes()
    guesses = [
        hashlib.sha256(whole),
        hashlib.md5(whole, usedforsecurity=False),
        hmac.new(b"", whole, hashlib.sha256),
    ]
    assert known["fingerprint"] not in [each.hexdigest() for each in guesses]
    assert not list(tmp_path.glob("*/*-private-*"))


def test_a_note_that_is_lost_is_made_anew_and_one_that_is_damaged_is_told(tmp_path):
    path, _ = source("parquet", tmp_path)
    opened(path).close()
    note = note_of(f"{path}.ledger.db")
    kept = note.read_text()
    secret = json.loads(kept)["key"]
    for text in ("", "{", "[]", "null", "7", '{"key": 5}', kept[:100], kept.replace(secret, "xyz")):
        note.write_text(text)
        with pytest.raises(tc.LedgerError, match="private note") as caught:
            opened(path)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        assert secret not in repr(vars(caught.value))
    with opened(path, new_data=True) as t:  # the owner vouches for the data, whatever the note says
        assert t.meter.hits == 0
    note.unlink()
    opened(path).close()
    assert json.loads(note.read_text())["key"] != secret


@pytest.mark.parametrize("asked", [3000, 9000], ids=["a hit", "a miss"])
def test_without_its_note_a_ledger_with_answers_is_refused_until_the_owner_takes_the_data_for_new(asked, tmp_path):
    """Else whoever deletes the note goes on with any data."""
    path, _ = source("parquet", tmp_path)
    with opened(path) as t:
        spent = t.above(A, asked).hit
    note = note_of(f"{path}.ledger.db")
    note.unlink()
    said = f"the private note {note} is gone, which says what data the ledger was used with: restore it"
    with pytest.raises(tc.LedgerError, match=said) as caught:
        opened(path)
    assert "If it is lost, new_data=True goes on with the same budget" in str(caught.value)
    assert not note.exists()
    with opened(path, new_data=True) as t:
        assert (t.meter.hits, t.above(A, asked).snapshot) == (spent, 2)  # answers of 1 are of other data
    with opened(path) as t:
        assert [answer.snapshot for answer in t.transcript] == [1, 2]
    pq.write_table(table(9001), path)
    with pytest.raises(tc.NotAllowed, match="the data is not what it was"):
        opened(path)


def test_data_that_is_taken_for_new_has_a_number_that_no_answer_has(tmp_path):
    """The last answer may be of an earlier snapshot than others: of a table that had not grown yet."""
    path, more = tmp_path / "first.parquet", tmp_path / "second.parquet"
    for place in (path, more):
        pq.write_table(SMALL, place)
    with opened(path) as old, opened(path) as grown:
        grown.append(more)
        assert [t.above(A, 9000).snapshot for t in (grown, old)] == [2, 1]
    note_of(f"{path}.ledger.db").unlink()
    with opened(path, new_data=True) as t:
        assert t.above(A, 9000).snapshot == 3


def test_where_each_unit_pays_nothing_replaces_the_note(tmp_path):
    path, _ = source("parquet", tmp_path)
    with opened(path, charging="individual", meter="exact") as t:
        assert not t.above(A, 9000).hit
    note_of(f"{path}.ledger.db").unlink()
    for new_data in (False, True):
        with pytest.raises(tc.LedgerError, match="who has paid cannot be told without it: else choose another"):
            opened(path, charging="individual", meter="exact", new_data=new_data)


# Releases across restarts.


def test_a_pending_release_waits_for_a_revision_across_restarts(tmp_path):
    path, _ = source("parquet", tmp_path)
    with opened(path) as t:
        release = t.release(A, lambda count: count > 9000)
        other = t.release(q.sum("balance", -10, 10), lambda total: total > 9000)
        assert (release.released, release.outcome, other.released) == (False, None, True)
    with opened(path) as t:
        (pending,) = t.pending
        assert pending.seq == release.seq
        assert not pending.revise({5}).released
        assert t.meter.hits == 1
    with opened(path) as t:
        published = t.pending[0].revise(lambda count: count > 3000)
        assert published.released
        assert abs(published.outcome - 6000) < 700
        assert (t.pending, t.meter.hits) == ((), 2)
        with pytest.raises(tc.NotAllowed, match="nothing left to revise"):
            published.revise({5})
        assert [answer.call for answer in t.transcript] == ["release", "release", "revise", "revise"]


def test_a_condition_sees_the_number_as_it_is_shown():
    seen = []
    with opened() as t:
        t.release(q.sum("fee", 0, 10, grid="0.5"), seen.append)
        with pytest.raises(tc.InvalidParameter, match="which is made up, it raised ZeroDivisionError"):
            t.release(A, lambda _: 1 / 0)
        assert len(t.pending) == 1
    assert seen[:-1] == [-1, 0, 500]  # made up, before anything is drawn
    assert abs(seen[-1] - 45_000) < 7000
    assert seen[-1] % 0.5 == 0


# Several at once.


def test_two_threads_share_a_table(tmp_path):
    answers, lock = [], threading.Lock()

    def ask(number):
        for _ in range(10):
            found = [t.above(A, 3000)] if number % 2 else list(t.watch(None, "kind", ["c", "a", "d"], 5000))
            with lock:
                answers.extend(found)

    with opened(hits=60, ledger=tmp_path / "ledger.db") as t, ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
        assert t.meter.hits == sum(answer.hit for answer in answers) == 40
        assert sorted(answers, key=lambda each: each.seq) == sorted(t.transcript, key=lambda each: each.seq)
        assert len({answer.seq for answer in answers}) == len(answers) == 80


def test_two_processes_spend_one_budget(tmp_path):
    path, _ = source("parquet", tmp_path)
    with ExitStack() as stack:
        others = [stack.enter_context(child(children.asks_a_table, path, 5)) for _ in range(2)]
        assert [other.hear(60) for other in others] == ["opened"] * 2
        told = []
        for other in others * 3:
            other.tell(True)
            told.append(other.hear())
        with opened(path, 5) as t:
            assert t.meter.hits == 5
            with pytest.raises(tc.BudgetSpent):
                t.above(A, 3000)
            assert sorted(answer.seq for answer in t.transcript) == sorted(seq for seq in told if seq != "refused")
        assert told.count("refused") == 1
        for other in others:
            other.tell(None)
            assert other.ends() == 0


@pytest.mark.parametrize("after", [1, 40])
def test_a_watch_that_is_killed_has_paid_for_all_that_it_told(tmp_path, after):
    path, _ = source("parquet", tmp_path)
    hits = 200
    with child(children.watches, path, hits) as watching:
        assert watching.hear(60) == "opened"
        watching.tell("go")
        told = [watching.hear() for _ in range(after)]
        watching.kill()
        while not watching.is_silent(0):
            try:
                told.append(watching.pipe.recv())
            except EOFError:
                break
    told = [each for each in told if each != "spent"]
    with opened(path, hits) as t:
        published = {answer.seq: (answer.seq, answer.key, answer.outcome) for answer in t.transcript if answer.hit}
        assert [published[seq] for seq, _, _ in told] == told
        lost = [entry for entry in t._session._ledger.entries() if isinstance(entry, Spent)]
        assert t.meter.hits == len(published) + sum(entry.count for entry in lost) >= len(told)
        assert sum(entry.count for entry in lost) <= 1
        assert t.above(A, 3000).hit or t.meter.hits_left == 0
    verify(Path(f"{path}.ledger.db"))


def test_a_table_that_is_dropped_closes_its_ledger(tmp_path):
    path, _ = source("parquet", tmp_path)
    t = opened(path)
    t.above(A, 9000)
    del t
    with opened(path) as t:
        assert (t.meter.hits, len(t.transcript)) == (0, 1)


def test_an_engine_is_closed_although_the_ledger_does_not(tmp_path, monkeypatch):
    closed = []

    def breaks(_):
        msg = "it does not close"
        raise tc.LedgerError(msg)

    with monkeypatch.context() as patched:
        patched.setattr(
            DuckDBEngine, "close", lambda engine, close=DuckDBEngine.close: closed.append(close(engine))
        )
        patched.setattr(SqliteLedger, "close", breaks)
        t = opened(table(), ledger=tmp_path / "ledger.db")
        with pytest.raises(tc.LedgerError, match="it does not close"):
            t.close()
        assert len(closed) == 1
        other = table().append_column("more", pa.array([1] * len(table())))
        with pytest.raises(tc.LedgerError, match="it does not close"):
            opened(other, ledger=tmp_path / "ledger.db")
        assert len(closed) == 2


def test_a_table_that_does_not_open_leaves_no_one_in_the_ledger(tmp_path):
    path, _ = source("parquet", tmp_path)
    opened(path).close()
    pq.write_table(pa.table({"patient": [1]}), path)
    for _ in range(3):
        with pytest.raises(tc.NotAllowed):
            opened(path)
    with opened(path, new_data=True) as t:
        assert t.meter.hits == 0


# A file and the folder that it is in


def _patients(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("patient,age\n" + "".join(f"{number},40\n" for number in range(500)))
    return path


def test_a_file_in_a_folder_that_has_a_ledger_gets_no_second_one(tmp_path):
    file = _patients(tmp_path / "visits" / "year=2024" / "a.csv")
    with tc.open(tmp_path / "visits", "patient", tc.Budget(3.0, 1e-6), meter="exact"):
        pass
    for path in (file, file.parent):
        with pytest.raises(
            tc.InvalidParameter, match=r"ledger is None; it must be given: .* is part of .*second budget"
        ):
            tc.open(path, "patient", tc.Budget(3.0, 1e-6), meter="exact")
    assert sorted(path.name for path in tmp_path.rglob("*.ledger.db")) == ["visits.ledger.db"]
    with pytest.warns(tc.BudgetWarning, match="has another budget"):
        tc.open(file, "patient", tc.Budget(3.0, 1e-6), ledger=tmp_path / "own.db", meter="exact").close()


def test_a_folder_with_a_file_that_has_a_ledger_gets_no_second_one(tmp_path):
    file = _patients(tmp_path / "visits" / "a.csv")
    with tc.open(file, "patient", tc.Budget(3.0, 1e-6), meter="exact"):
        pass
    with pytest.raises(
        tc.InvalidParameter, match=r"a\.csv is part of .*visits, and .*a\.csv\.ledger\.db keeps the budget"
    ):
        tc.open(tmp_path / "visits", "patient", tc.Budget(3.0, 1e-6), meter="exact")
    with tc.open(file, "patient", tc.Budget(3.0, 1e-6), meter="exact"):
        pass
    with tc.open(_patients(tmp_path / "other.csv"), "patient", tc.Budget(3.0, 1e-6), meter="exact"):
        pass


# What the columns were.

WORDS = "age number Exact(scale=0, low=-9223372036854775808, high=9223372036854775807); u text None"


@pytest.mark.parametrize("words", [False, True], ids=["data", "words"])
def test_with_a_budget_for_each_unit_the_columns_stay_what_they_were(tmp_path, words):
    """An earlier version noted them in words, which still count."""
    path, ledger = tmp_path / "f.csv", tmp_path / "ledger.db"
    path.write_text("u,age\n" + "".join(f"{unit},{unit}\n" for unit in range(50)))

    def reopened(kind):
        budget, types = tc.Budget(3.0, 1e-6), {"u": "text", "age": kind}
        return tc.open(path, "u", budget, query_epsilon=0.1, charging="individual", types=types, ledger=ledger)

    with reopened("integer") as t:
        t.above("age > 3", 1000)
    note = json.loads(note_of(ledger).read_text())
    assert [(column["name"], column["kind"]) for column in note["columns"]] == [("age", "number"), ("u", "text")]
    former = {name: value for name, value in note.items() if name != "types"}
    if words:
        note_of(ledger).write_text(json.dumps({**former, "version": 3, "columns": WORDS}))
    with reopened("integer") as t:
        assert len(t.transcript) == 1
    for kind in ("number", "text"):
        with pytest.raises(tc.NotAllowed, match=f"other types: age was integer and is {kind}. Leave them"):
            reopened(kind)
        note_of(ledger).write_text(json.dumps({**former, "version": 4}))  # which did not say what was declared
        with pytest.raises(tc.NotAllowed, match="the columns are declared otherwise"):
            reopened(kind)
        note_of(ledger).write_text(json.dumps(note))
