"""Who opens a table with a new budget hears of the others that its people have, by name."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import targetcharge as tc
from targetcharge.ledger.registry import Registry
from targetcharge.tables import other_budgets
from targetcharge.tables.monitor import Monitor, Rule

BUDGET = tc.Budget(3.0, 1e-6)
VISITS = {"patient": list(range(40)), "age": [20, 70] * 20}
ADDS = "What is published on all of them adds up for the same people"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table, and a state folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "visits").mkdir()
    pd.DataFrame(VISITS).to_parquet(tmp_path / "visits" / "may.parquet")
    return tmp_path / "visits"


@pytest.fixture
def frame(monkeypatch):
    """A frame that nobody opened before."""
    monkeypatch.setattr(other_budgets, "_ledgers_of_frames", {})
    return pd.DataFrame(VISITS)


def opened(source, **more):
    return tc.open(source, **{"unit": "patient", "budget": BUDGET, **more})


def said(source, **more):
    """Return what opening a table warns of; it is closed."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        opened(source, **more).close()
    assert {(one.category, one.filename) for one in heard} <= {(tc.BudgetWarning, __file__)}
    return [str(one.message) for one in heard]


# Tables in files.


def test_a_second_ledger_is_told_of_the_first_by_name(folder):
    may = folder / "may.parquet"
    with opened(may) as t:
        t.count("age > 30")
    (warned,) = said(may, ledger=folder / "other.db")
    budget = "has another budget: (3, 1e-06) for units of patient, sparse meter: 1 hit, 9 left (since 20"
    for words in (f"{may} {budget}", f"), in {may}.ledger.db. {ADDS}. To go on with it instead: "):
        assert words in warned
    assert warned.endswith(f"ledger='{may}.ledger.db'")
    assert said(may) == said(may, ledger=folder / "other.db") == []  # both are known now


@pytest.mark.parametrize("other", ["symlink", "hard link", "renamed", "folder", "pattern", "relative", "memory"])
def test_the_same_file_is_found_by_another_name(other, folder, monkeypatch):
    may, name = folder / "may.parquet", folder.parent / "name.parquet"
    opened(may).close()
    monkeypatch.chdir(folder)
    ways = {"symlink": name.symlink_to, "hard link": name.hardlink_to, "renamed": lambda _: may.rename(name)}
    ways.get(other, lambda _: None)(may)
    source = {"folder": folder, "pattern": f"{folder}/m*.parquet", "relative": "may.parquet", "memory": may}.get(
        other, name
    )
    (warned,) = said(source, ledger=":memory:" if other == "memory" else folder.parent / "other.db")
    assert f"{may}.ledger.db" in warned


def test_a_file_of_a_folder_is_found_in_it(folder):
    opened(folder).close()
    (warned,) = said(folder / "may.parquet", ledger=folder.parent / "other.db")
    assert warned.startswith(f"{folder / 'may.parquet'} has another budget: ")
    assert f", in {folder}.ledger.db of {folder}. " in warned


def test_a_file_that_was_appended_belongs_to_the_ledger_from_the_next_opening_on(folder):
    may, june = folder / "may.parquet", folder / "june.parquet"
    pd.DataFrame(VISITS).to_parquet(june)
    with opened(may) as t:
        t.append(june)
    opened(june, ledger=folder.parent / "june.db").close()
    (warned,) = said(may)
    assert f", in {folder.parent / 'june.db'} of {june}. " in warned
    assert said(may) == []
    (warned,) = said(june, ledger=folder.parent / "other.db")
    assert f"in {may}.ledger.db of {may}; " in warned


def test_a_ledger_that_was_deleted_is_told_of(folder):
    may = folder / "may.parquet"
    opened(may).close()
    for file in folder.glob("*.ledger.db*"):
        file.unlink()
    (warned,) = said(may)
    assert "budget: (3, 1e-06): the file is gone, and another ledger has its place (since 20" in warned
    assert f"), in {may}.ledger.db. {ADDS}. " in warned
    assert f"Only if its table is no more may it be forgotten: tct budgets --forget {may}.ledger.db" in warned


def test_other_tables_and_ledgers_that_were_moved_are_not_told_of(folder):
    may, june = folder / "may.parquet", folder / "june.parquet"
    pd.DataFrame(VISITS).to_parquet(june)
    assert said(may) == said(june) == []
    moved = folder.parent / "elsewhere"
    folder.rename(moved)
    with pytest.warns(
        tc.BudgetWarning, match="has another budget"
    ):  # at another place, so its file counts as a copy
        opened(moved / "may.parquet", ledger=folder.parent / "new.db").close()
    assert len(tc.budgets()) == 3


def test_where_warnings_are_errors_it_is_one_again_the_next_time(folder):
    may = folder / "may.parquet"
    opened(may).close()
    for _ in range(2):
        with pytest.raises(tc.BudgetWarning, match="has another budget"):
            opened(may, ledger=folder / "other.db")
    with pytest.warns(tc.BudgetWarning):
        opened(may, ledger=folder / "other.db").close()
    opened(may, ledger=folder / "other.db").close()


def test_of_many_the_first_are_named_and_the_others_counted(folder):
    may = folder / "may.parquet"
    for number in range(5):
        warned = said(may, ledger=folder / f"{number}.db")
    assert warned[0].count(".db") == 4  # with the one to go on with
    assert "2.db; and 1 more. " in warned[0]


def test_of_ledgers_made_at_once_all_but_one_are_told(folder):
    may = folder / "may.parquet"
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(4) as pool:
            tables = list(pool.map(lambda number: opened(may, ledger=folder / f"{number}.db"), range(4)))
    for table in tables:
        table.close()
    assert len(heard) == 3
    assert len(tc.budgets()) == 4


def test_there_is_nothing_from_the_data_in_the_registry(folder):
    opened(folder / "may.parquet").close()
    line = Registry().path.read_text()
    names = {"ledger", "path", "table", "places", "file", "epsilon", "delta", "since"}
    assert json.loads(line).keys() == names
    stat = (folder / "may.parquet").stat()
    assert json.loads(line)["file"] == f"{stat.st_dev}:{stat.st_ino}:{stat.st_mtime_ns}"


@pytest.mark.parametrize("broken", ["a file", "unwritable", "a folder in its place", "damaged"])
def test_a_state_folder_that_cannot_be_used_makes_no_opening_fail(broken, folder, monkeypatch):
    state, place = folder.parent / "state", Registry().path
    match broken:
        case "a file":
            state.write_text("")
        case "unwritable":
            monkeypatch.setattr(
                Registry, "add", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
            )
        case "a folder in its place":
            place.mkdir(parents=True)
        case _:
            place.parent.mkdir(parents=True)
            place.write_bytes(b"\xff\n\n{")
    warned = said(folder / "may.parquet")
    if broken != "damaged":
        (sentence,) = warned
        assert sentence.startswith(f"the registry {place} cannot be read or written (")
        assert sentence.endswith("whether this table has another ledger, with a budget of its own, is not known")
        if broken != "unwritable":
            with pytest.raises(tc.LedgerError, match="the registry of ledgers"):
                tc.budgets()
    assert said(folder / "may.parquet") == []
    with opened(folder / "may.parquet") as t:
        assert t.count(None).hit


# Frames.


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_opened_again_in_this_process_is_told_of_and_the_first_time_that_it_is_forgotten(kind, frame):
    warned = [said(kind(frame.to_dict("list")))[0] for _ in range(3)]
    assert warned[0].startswith("this budget is kept in memory and forgotten when the process ends")
    for number, sentence in enumerate(warned[1:], 2):
        assert sentence.startswith(f"this is budget {number} for the same data in this process")


def test_other_data_is_another_budget(frame):
    opened(frame, ledger=":memory:").close()
    for other in (frame.iloc[1:], frame.assign(age=5), frame.rename(columns={"age": "years"}), frame.head(0)):
        assert said(other, ledger=":memory:") == []
    assert len(said(frame.iloc[::-1], ledger=":memory:")) == 1


def test_memory_that_is_meant_and_a_file_that_is_opened_again_are_not_told_of(frame, tmp_path):
    assert said(frame, ledger=tmp_path / "ledger.db") == []
    assert said(frame, ledger=tmp_path / "ledger.db") == []
    (warned,) = said(frame, ledger=":memory:")
    assert warned.startswith("this is budget 2")


def test_a_monitor_on_a_frame_says_that_its_budget_is_forgotten(frame):
    """Also where it chooses the meter, and so opens with other arguments than it was given."""
    rules = [Rule("old", "age > 60", threshold=3)]
    with pytest.warns(tc.BudgetWarning, match="kept in memory") as heard:
        Monitor.open(frame, rules, unit="patient", budget=BUDGET).close()
    assert heard[0].filename == __file__


def test_no_hash_of_a_frame_is_kept_without_a_key(frame):
    opened(frame, ledger=":memory:").close()
    (digest,) = other_budgets._ledgers_of_frames
    with tc.open(frame, tc.ROW, BUDGET, ledger=":memory:") as t:
        assert t._engine.fingerprint(b"another key", 1, 10_000) != digest
        assert len(other_budgets._KEY) == 32


# All budgets.


def test_budgets_lists_each_ledger_of_each_table_as_it_stands(folder, frame):
    may = folder / "may.parquet"
    with opened(may) as t:
        t.count(None)
        (there,) = tc.budgets()  # also while it is open
        assert (there.table, there.ledger, there.hits) == (str(may), folder / "may.parquet.ledger.db", 1)
    opened(frame, ledger=folder / "frame.db", charging="individual").close()
    files = sorted(folder.iterdir())
    by_table = {known.table: known for known in tc.budgets()}
    assert sorted(folder.iterdir()) == files  # no -wal, no -shm
    of_frame, of_may = by_table["a data frame"], by_table[str(may)]
    assert (of_may.budget, of_may.unit, of_may.meter, of_may.charging) == (
        BUDGET,
        "units of patient",
        "sparse",
        "shared",
    )
    assert (of_may.hits, of_may.hits_left, of_may.problem, of_frame.charging) == (1, 9, "", "individual")
    assert of_may.since <= of_may.used
    (folder / "frame.db").unlink()
    gone = tc.budgets()[1]
    assert gone == replace(
        of_frame,
        used=gone.used,
        problem="the file is gone",
        unit=None,
        meter=None,
        charging=None,
        hits=None,
        hits_left=None,
    )
    assert "(3, 1e-06) for units of patient, sparse meter: 1 hit, 9 left" in repr(tc.budgets())
    assert "<td>1 hit, 9 left</td>" in tc.budgets()._repr_html_()


def test_a_ledger_that_cannot_be_read_is_listed_with_the_reason(folder):
    opened(folder / "may.parquet").close()
    ledger = folder / "may.parquet.ledger.db"
    ledger.write_bytes(b"no database")
    (known,) = tc.budgets()
    assert (known.hits, known.unit) == (None, None)
    assert "file is not a database" in known.problem


# Budgets that are too large to protect anybody.


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (
            tc.Budget(3.0, 0.01),
            ["δ = 0.01 hardly protects anybody: to publish one person in 100 just as they are"],
        ),
        (tc.Budget(20.0, 1e-6), ["ε = 20 hardly protects anybody: what is published may be e^20 times as likely"]),
        (tc.Budget(20.0, 0.5), ["δ = 0.5", "ε = 20"]),
        (tc.Budget(10.0, 1e-3), []),
    ],
)
def test_a_new_ledger_with_a_large_budget_says_why_it_protects_nobody(budget, words, folder):
    warned = said(folder / "may.parquet", budget=budget)
    assert len(warned) == len(words)
    assert all(word in sentence for word, sentence in zip(words, warned, strict=True))
    assert said(folder / "may.parquet", budget=budget) == []  # it was said when it was made


def test_of_a_frame_and_of_a_session_with_a_file_it_is_said_too(frame, tmp_path):
    assert "ε = 20" in said(frame, budget=tc.Budget(20.0, 1e-6), ledger=":memory:")[0]
    with pytest.warns(tc.BudgetWarning, match="ε = 20") as heard:
        tc.Session(None, tc.Budget(20.0, 1e-6), 0.1, ledger=tmp_path / "ledger.db").close()
    assert heard[0].filename == __file__
    tc.Session(None, tc.Budget(20.0, 1e-6), 0.1, ledger=tmp_path / "ledger.db").close()
