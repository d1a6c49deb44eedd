"""The secret offset of a ledger: drawn once, kept beside the pending outcomes, and shown nowhere."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from tests.ledger import creation_children
from tests.ledger.offsets import DECLARED, NATURAL, NOISE, TERMS, hit, ledger_at, most_of, offset_at
from tests.ledger.processes import child
from tests.ledger.test_ledger_creation import killed_at
from tests.sessions.leaks import lets_out
from tests.sizes import size
from typer.testing import CliRunner

import targetcharge as tc
from targetcharge.accounting import OffsetNoise
from targetcharge.cli.app import app
from targetcharge.ledger import MemoryLedger, SqliteLedger, Terms, terms_at
from targetcharge.ledger.offset import SecretOffset
from targetcharge.ledger.sqlite import RestoredCopyError, inspect, restore, verify
from targetcharge.ledger.sqlite.database import Database
from targetcharge.outcomes import canonical_json

ANY = OffsetNoise(0.3, 0.1)
IN_WORDS = "geometric with rate 0.24 beside gumbel noise with rate 0.09, for at-least questions"
SECRET = 7318465529
"""An offset that is found wherever it is written."""


def as_read(header: dict[str, object]) -> dict[str, object]:
    return json.loads(canonical_json(header))


def test_a_header_without_an_offset_does_not_mention_offsets():
    assert NATURAL.version == 2
    assert "offset" not in canonical_json(NATURAL.plain())


@pytest.mark.parametrize("offset", [ANY, NOISE, OffsetNoise(1 / 3, 1 / 7, "geometric", "at least")])
def test_terms_with_an_offset_are_read_to_the_last_bit_from_a_header_with_a_version_of_its_own(offset):
    terms = replace(NATURAL, offset=offset, meter="sparse")
    header = as_read(terms.plain())
    assert header["version"] == terms.version == 3
    assert Terms.of(header) == terms
    assert Terms.of(header).plain() == terms.plain()


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"version": 1},
        {"offset": None},
        {"offset": {}},
        {"offset": "gumbel"},
        {"offset": {**as_read(TERMS.plain())["offset"], "noise": "normal"}},
        {"offset": {**as_read(TERMS.plain())["offset"], "offset_epsilon": "nan"}},
        {"offset": {**as_read(TERMS.plain())["offset"], "offset_epsilon": 0.3}},
        {"offset": {**as_read(TERMS.plain())["offset"], "rate": "0x1p-3"}},
    ],
)
def test_a_header_whose_offset_makes_no_sense_is_not_read(changes):
    header = as_read(TERMS.plain()) | changes
    with pytest.raises(tc.LedgerError, match="header cannot be read"):
        Terms.of(header)


@pytest.mark.parametrize("version", [1, 2])
def test_ledgers_without_an_offset_stay_without_one_in_every_version(version):
    made = replace(NATURAL, version=version)
    assert Terms.of(as_read(made.plain())).offset is None
    assert made.differences(NATURAL) == []
    assert made.differences(TERMS) == [f"offset was none and is {IN_WORDS}"]


def test_another_offset_is_told_in_words():
    assert TERMS.differences(TERMS) == []
    assert TERMS.differences(replace(NATURAL, epsilon=2.0)) == [
        "epsilon was 1.0 and is 2.0",
        f"offset was {IN_WORDS} and is none",
    ]
    (difference,) = TERMS.differences(replace(TERMS, offset=ANY))
    assert difference.endswith(" is laplace with rate 0.3 beside laplace noise with rate 0.1, for any question")


def test_a_ledger_in_memory_keeps_its_offset_and_does_not_show_it():
    assert MemoryLedger(DECLARED.meters()).offset is None
    ledger = MemoryLedger(DECLARED.meters(), None, -SECRET)
    assert ledger.offset == -SECRET
    assert str(SECRET) not in repr(ledger)


# A ledger in a file.


@pytest.fixture
def path(tmp_path):
    """A ledger with an offset and two hits."""
    path = tmp_path / "ledger.db"
    with closing(ledger_at(path, SECRET)) as ledger:
        hit(ledger)
        hit(ledger)
    return path


def edit(path, *statements, values=()):
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement, values if "?" in statement else ())
        database.commit()


def header(path):
    return inspect(path, unchecked=True).state.fields


def stored(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT offset FROM secret").fetchone()[0]


@pytest.mark.parametrize("offset", [0, 7, -7, 2**70])
def test_a_ledger_keeps_the_offset_that_it_was_made_with(tmp_path, offset):
    path = tmp_path / "ledger.db"
    with closing(ledger_at(path, offset)) as first, closing(ledger_at(path, 1)) as second:
        assert (first.offset, second.offset) == (offset, offset)
        hit(first)
        hit(second)
    assert [offset_at(path, fresh) for fresh in (None, 2, offset)] == [offset] * 3
    assert terms_at(path) == TERMS
    assert verify(path) == 2


def test_a_ledger_without_an_offset_has_none_and_its_header_is_what_it_was(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = ledger_at(path, None, NATURAL)
    hit(ledger)
    ledger.close()
    assert ledger.offset is None
    assert header(path) == as_read({**NATURAL.plain(), "ledger": header(path)["ledger"]})
    assert header(path)["version"] == 2
    assert header(path).keys().isdisjoint({"offset", "commitment"})


def test_the_header_commits_to_the_offset_and_shows_nothing_of_it(tmp_path):
    paths = [tmp_path / "one.db", tmp_path / "two.db"]
    assert [offset_at(path, 7) for path in paths] == [7, 7]
    commitments = [header(path)["commitment"] for path in paths]
    assert commitments == [SecretOffset.stored(stored(path)).commitment for path in paths]
    assert len(set(commitments)) == 2
    assert {len(commitment) for commitment in commitments} == {64}


def test_a_ledger_is_not_made_without_the_offset_of_its_terms(tmp_path):
    with pytest.raises(tc.InvalidParameter, match="fresh_offset is None; it must be an integer") as caught:
        ledger_at(tmp_path / "ledger.db", None)
    assert caught.value.name == "fresh_offset"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("fresh", "terms"), [(SECRET, NATURAL), (float(SECRET), TERMS), (True, TERMS)])
def test_an_offset_that_does_not_fit_is_refused_and_not_shown(tmp_path, fresh, terms):
    with pytest.raises(tc.InvalidParameter, match="fresh_offset is <class") as caught:
        ledger_at(tmp_path / "ledger.db", fresh, terms)
    assert str(SECRET) not in f"{caught.value!r} {vars(caught.value)}"
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_is_opened_with_its_own_offset_terms_only(path, tmp_path):
    natural = tmp_path / "natural.db"
    ledger_at(natural, None, NATURAL).close()
    with pytest.raises(tc.NotAllowed, match=f"offset was none and is {IN_WORDS}"):
        ledger_at(natural, 1)
    with pytest.raises(tc.NotAllowed, match=f"offset was {IN_WORDS} and is none"):
        ledger_at(path, None, NATURAL)
    with pytest.raises(tc.NotAllowed, match="for at-least questions and is laplace with rate"):
        ledger_at(path, 1, replace(TERMS, offset=ANY))
    assert offset_at(path) == SECRET


# An offset that is gone or altered: the ledger opens as spent.

NEW_TABLE = ("DROP TABLE IF EXISTS secret", "CREATE TABLE secret (id INTEGER, offset)")
GONE = {
    "no row": ("DELETE FROM secret",),
    "no table": ("DROP TABLE secret",),
    "no column": ("ALTER TABLE secret RENAME COLUMN offset TO other",),
    "nothing in it": (*NEW_TABLE, "INSERT INTO secret VALUES (1, NULL)"),
}
ALTERED = {
    "another offset": ("UPDATE secret SET offset = CAST(substr(offset, 1, 32) || '7' AS BLOB)",),
    "an earlier digit": ("UPDATE secret SET offset = CAST(substr(offset, 1, length(offset) - 1) AS BLOB)",),
    "another key": ("UPDATE secret SET offset = CAST(randomblob(32) || substr(offset, 33) AS BLOB)",),
    "a key that is too long": ("UPDATE secret SET offset = CAST(x'00' || offset AS BLOB)",),
    "empty": ("UPDATE secret SET offset = x''",),
    "a number": ("UPDATE secret SET offset = 7",),
    "text that is none": (f"UPDATE secret SET offset = CAST('{SECRET}' || x'ff' AS TEXT)",),
    "another ledger's": ("UPDATE secret SET offset = ?",),
}


@pytest.mark.parametrize(
    ("statements", "how"),
    [*((edits, "is gone") for edits in GONE.values()), *((edits, "was altered") for edits in ALTERED.values())],
    ids=[*GONE, *ALTERED],
)
def test_a_ledger_whose_offset_is_gone_or_altered_is_spent(path, statements, how):
    last, kept = inspect(path).state, stored(path)
    edit(path, *statements, values=(SecretOffset.fresh(SECRET).body(),))
    for restored in (None, (last.last_entry, last.head.hex())):
        with closing(ledger_at(path, SECRET, restored=restored)) as ledger:
            assert ledger.offset is None
            assert ledger.meters[0].hits_left == 0
            with pytest.raises(
                tc.BudgetSpent, match=f"secret offset of this ledger {how}.*counts as spent"
            ) as spent:
                ledger.reserve(most_of(ledger))
            assert lets_out(spent.value, str(SECRET)) == []
            assert [answer.outcome for answer in ledger.answers()] == [True, True]
    with pytest.raises(tc.LedgerError, match=how) as caught:
        verify(path)
    assert not isinstance(caught.value, RestoredCopyError)
    assert lets_out(caught.value, str(SECRET)) == []
    assert how in inspect(path).restored
    assert inspect(path).hits_left == 0
    assert inspect(path).state == last
    edit(path, *NEW_TABLE)
    edit(path, "INSERT INTO secret VALUES (1, ?)", values=(kept,))
    assert offset_at(path) == SECRET
    assert verify(path) == 2


def test_the_command_line_tells_an_offset_that_is_gone(path):
    edit(path, "DELETE FROM secret")
    run = CliRunner().invoke(app, ["ledger", "verify", str(path)])
    assert run.exit_code != 0
    assert "the secret offset of this ledger is gone" in str(run.exception)
    assert "is gone" in CliRunner().invoke(app, ["ledger", "show", str(path), "--json"]).output


def other_commitment(path):
    edit(path, "UPDATE state SET header = replace(header, ?, ?)", values=(header(path)["commitment"], "0" * 64))


def other_offset_and_commitment(path):
    fresh = SecretOffset.fresh(7)
    statement = "UPDATE state SET header = replace(header, ?, ?)"
    edit(path, statement, values=(header(path)["commitment"], fresh.commitment))
    edit(path, "UPDATE secret SET offset = ?", values=(fresh.body(),))


def other_rate(path):
    statement = "UPDATE state SET header = replace(header, ?, ?)"
    edit(path, statement, values=(NOISE.offset_epsilon.hex(), (0.3).hex()))


def no_offset_in_the_terms(path):
    plain = canonical_json({**NATURAL.plain(), "ledger": header(path)["ledger"]})
    edit(path, "UPDATE state SET header = ?", values=(plain,))


@pytest.mark.parametrize(
    "change", [other_commitment, other_offset_and_commitment, other_rate, no_offset_in_the_terms]
)
def test_a_header_that_was_changed_is_refused(path, change):
    change(path)
    for work in (lambda: ledger_at(path, None, terms_at(path)), lambda: verify(path), lambda: inspect(path)):
        with pytest.raises(tc.LedgerError, match="was damaged or changed") as caught:
            work()
        assert lets_out(caught.value, str(SECRET)) == []


# Copies, races, kills.


def test_a_backup_has_the_same_offset_and_is_spent_unless_its_owner_vouches_for_it(path, tmp_path):
    copy, last = tmp_path / "copy.db", inspect(path).state
    shutil.copy(path, copy)
    with closing(ledger_at(copy, 1)) as ledger:
        assert ledger.offset == SECRET
        with pytest.raises(tc.BudgetSpent, match="looks like a restored copy"):
            ledger.reserve(most_of(ledger))
    with pytest.raises(RestoredCopyError):
        verify(copy)
    with closing(ledger_at(copy, 1, restored=(last.last_entry, last.head.hex()))) as ledger:
        assert ledger.offset == SECRET
        hit(ledger)
    assert verify(copy) == 4


def test_a_copy_that_lost_its_offset_is_spent_whatever_its_owner_says(path, tmp_path):
    copy, last = tmp_path / "copy.db", inspect(path).state
    shutil.copy(path, copy)
    edit(copy, "DELETE FROM secret")
    with pytest.raises(tc.LedgerError, match="secret offset of this ledger is gone"):
        restore(copy, last.last_entry, last.head.hex())
    with closing(ledger_at(copy, 1, restored=(last.last_entry, last.head.hex()))) as ledger:
        with pytest.raises(tc.BudgetSpent, match="secret offset of this ledger is gone"):
            ledger.reserve(most_of(ledger))
        assert ledger.offset is None
    assert inspect(copy).state == last


def test_processes_that_race_to_make_a_ledger_share_one_offset(tmp_path):
    rounds = size(10, 100)
    with ExitStack() as stack:
        makers = [
            stack.enter_context(child(creation_children.races_to_make_an_offset, fresh)) for fresh in range(3)
        ]
        for number in range(rounds):
            path = tmp_path / f"{number}.db"
            for maker in makers:
                maker.tell(path)
            offsets = {maker.hear() for maker in makers}
            assert len(offsets) == 1
            assert offsets == {offset_at(path, 99)}
            assert offsets <= {0, 1, 2}
            verify(path)


def test_a_ledger_whose_maker_was_killed_at_any_call_has_its_offset_or_is_new(tmp_path):
    found = []
    for path in killed_at(creation_children.is_killed_making_an_offset, tmp_path, 0, size(5, 1)):
        there = path.exists() and path.stat().st_size > 0
        if there:
            verify(path)
        found.append(offset_at(path, 8))
        assert found[-1] == (7 if there else 8)
        with closing(ledger_at(path, 9)) as ledger:
            assert ledger.offset == found[-1]
            hit(ledger)
        assert {file.name for file in path.parent.rglob("*")} == {"ledger.db", "ledger.db-witness"}
    assert set(found) == {7, 8}
    assert found == sorted(found, reverse=True)


def test_a_full_disk_leaves_no_header_without_its_offset(tmp_path):
    made = []
    for most in range(2_000, 150_000, size(16_000, 2_000)):
        path = tmp_path / f"{most}.db"
        with child(creation_children.makes_an_offset_on_a_full_disk, path, most) as process:
            offset = process.hear()
            process.ends()
        made.append(path.exists())
        assert offset in {None, 7}
        assert offset_at(path, 8) == (7 if made[-1] else 8)
        verify(path)
    assert set(made) == {False, True}


# Nothing shows it.


def test_the_offset_is_written_in_its_table_and_nowhere_else(path):
    with closing(sqlite3.connect(path)) as database:
        rest = [line for line in database.iterdump() if 'INTO "secret"' not in line]
    secret = str(SECRET)
    assert stored(path).endswith(secret.encode())
    assert not any(secret in line or secret.encode().hex() in line.lower() for line in rest)
    assert secret not in path.with_name("ledger.db-witness").read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_that_can_be_printed_of_a_ledger_shows_its_offset(path):
    inspection = inspect(path, last=10)
    with closing(ledger_at(path, 1)) as ledger, closing(Database(path, read_only=True)) as database:
        shown = [ledger, ledger._offset, database, database.offset(), inspection, inspection.as_dict()]
        shown += [terms_at(path), inspection.state.header, list(ledger.entries()), list(ledger.answers())]
        assert str(SECRET) not in f"{shown!r} {list(map(str, shown))}"
        assert repr(ledger._offset) == "SecretOffset()"
    told = inspection.as_dict()["offset"]
    assert told["offset_epsilon"] == NOISE.offset_epsilon
    for command in (["ledger", "show", str(path)], ["ledger", "show", str(path), "--json"]):
        assert str(SECRET) not in CliRunner().invoke(app, command).output


def no_folder(path):
    return path / "ledger.db"


def another_program(path):
    with closing(sqlite3.connect(path.with_name("other.db"))) as database:
        database.execute("CREATE TABLE state (id INTEGER)")
    return path.with_name("other.db")


def a_witness_of_another(path):
    path.unlink()
    return path


@pytest.mark.parametrize("where", [no_folder, another_program, a_witness_of_another])
def test_an_error_at_opening_lets_no_offset_out(path, where):
    there = where(path)
    with pytest.raises(tc.LedgerError) as caught:
        SqliteLedger(there, TERMS, DECLARED.meters(), None, SECRET)
    assert lets_out(caught.value, str(SECRET)) == []


def failing_at(words, code):
    """Return how to connect to databases on a disk that fails at statements with these words."""
    connect = sqlite3.connect

    class Connection(sqlite3.Connection):
        def execute(self, sql, *values):
            if words in sql:
                error = sqlite3.OperationalError("the disk failed")
                error.sqlite_errorcode = code
                raise error
            return super().execute(sql, *values)

    return lambda *where, **how: connect(*where, factory=Connection, **how)


@pytest.mark.parametrize("words", ["BEGIN IMMEDIATE", "INSERT INTO secret", "COMMIT"])
def test_an_error_while_the_offset_is_written_lets_none_out_and_leaves_no_ledger(tmp_path, monkeypatch, words):
    with monkeypatch.context() as broken:
        broken.setattr(sqlite3, "connect", failing_at(words, sqlite3.SQLITE_FULL))
        with pytest.raises(tc.LedgerError) as caught:
            SqliteLedger(tmp_path / "ledger.db", TERMS, DECLARED.meters(), None, SECRET)
    assert lets_out(caught.value, str(SECRET)) == []
    assert list(tmp_path.iterdir()) == []
    assert offset_at(tmp_path / "ledger.db", 7) == 7


def test_an_offset_that_cannot_be_read_now_is_not_taken_for_lost(path, monkeypatch):
    """A disk that fails for a moment is an error, and no reason to count the budget as spent."""
    with monkeypatch.context() as broken:
        broken.setattr(sqlite3, "connect", failing_at("FROM secret", sqlite3.SQLITE_IOERR))
        with pytest.raises(tc.LedgerError, match="cannot be read or written"):
            ledger_at(path, 1)
    assert offset_at(path) == SECRET
