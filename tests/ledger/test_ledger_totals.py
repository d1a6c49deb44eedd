"""Totals and header are covered by the witnesses: what was changed in the file is refused when it is opened."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from tests.ledger.asking import no, opened, yes

import targetcharge as tc
from targetcharge.ledger.sqlite import inspect, verify
from targetcharge.ledger.sqlite.database import Database
from targetcharge.ledger.sqlite.witness import WitnessFile, WitnessRecord
from targetcharge.ledger.state import LedgerState, Sums

CHANGED = "was damaged or changed"


@pytest.fixture
def path(tmp_path):
    """A ledger with a budget of one hit, which is spent."""
    path = tmp_path / "ledger.db"
    with opened(path, 1) as session:
        session.test(no)
        session.test(yes)
    return path


def witnesses(path):
    return WitnessFile.beside(path), WitnessFile.at_home(inspect(path).state.ledger)


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as database:
        assert database.execute(statement, values).rowcount
        database.commit()


def sums(path):
    with closing(sqlite3.connect(path)) as database:
        return json.loads(database.execute("SELECT sums FROM state").fetchone()[0])


def give_back(path):
    change(path, "UPDATE state SET sums = ?", json.dumps({"spent": [0], "hits": [0], "delta": 0}))


def assert_refused(path, why=CHANGED):
    for look in (lambda: opened(path, 1), lambda: inspect(path), lambda: verify(path)):
        with pytest.raises(tc.LedgerError, match=why):
            look()


def without_totals(witness, size=256):
    """Make it the witness of an earlier version."""
    known = json.loads(witness.path.read_text())
    del known["totals"]
    witness.path.write_text(json.dumps(known).ljust(size))


def test_hits_cannot_be_given_back_by_changing_the_totals(path):
    give_back(path)
    assert_refused(path, "its totals are not the sum of its entries")


@pytest.mark.parametrize("part", ["spent", "hits", "delta"])
@pytest.mark.parametrize("by", [-1, 1])
def test_no_total_can_be_changed(path, part, by):
    changed = sums(path)
    changed[part] = changed[part] + by if part == "delta" else [changed[part][0] + by]
    change(path, "UPDATE state SET sums = ?", json.dumps(changed))
    assert_refused(path, "its totals are not the sum of its entries")


@pytest.mark.parametrize(
    "text", ['{"spent":["0"],"hits":[0],"delta":0}', '{"spent":[0,0],"hits":[0,0],"delta":0}']
)
def test_totals_of_another_kind_are_refused(path, text):
    change(path, "UPDATE state SET sums = ?", text)
    assert_refused(path)


def test_capacities_cannot_be_changed(path):
    change(path, 'UPDATE state SET header = replace(header, \'"capacities":["1"]\', \'"capacities":["9"]\')')
    assert_refused(path)


def test_capacities_of_a_ledger_without_entries_cannot_be_changed(tmp_path):
    path = tmp_path / "ledger.db"
    opened(path, 1).close()
    change(path, 'UPDATE state SET header = replace(header, \'"capacities":["1"]\', \'"capacities":["9"]\')')
    with opened(path, 1) as session, pytest.raises(tc.BudgetSpent, match="restored copy"):
        session.test(yes)
    assert inspect(path).hits_left == 0


def test_a_head_that_was_changed_is_refused(path):
    change(path, "UPDATE state SET head = zeroblob(32)")
    assert_refused(path)


@pytest.mark.parametrize("which", [0, 1], ids=["beside", "in the state folder"])
def test_one_witness_is_enough(path, which):
    """The other one was changed as well, or comes from an earlier version."""
    both = witnesses(path)
    give_back(path)
    other = both[1 - which]
    known = json.loads(other.path.read_text())
    for totals in ("", _digest(path)):
        other.path.write_text(json.dumps({**known, "totals": totals}).ljust(512))
        assert_refused(path, "its totals are not the sum of its entries")


def _digest(path):
    with closing(Database(path, read_only=True)) as store:
        return store.state().digest()


# Witnesses that lag, and those of earlier versions.


def test_a_witness_that_lags_is_caught_up_with(path):
    """As after a crash: what the entries since have added is taken away."""
    with opened(path.with_name("other.db"), 6) as session:
        for _ in range(2):
            session.test(yes)
    path = path.with_name("other.db")
    both = witnesses(path)
    before = [witness.path.read_bytes() for witness in both]
    with opened(path, 6) as session:
        session.test(no)
        session.test(yes)
    for witness, content in zip(both, before, strict=True):
        witness.path.write_bytes(content)
    with opened(path, 6) as session:
        assert session.meter.hits == 3
    assert {witness.read().number for witness in both} == {4}


def let_lag(path):
    """Let both witnesses remember the first entry only, a miss."""
    for witness in witnesses(path):
        known = witness.read()
        with closing(Database(path, read_only=True)) as store:
            state, first = store.state(), store.hash_at(1).hex()
        zero = state.digest(Sums.zero(1))
        witness.path.write_bytes(WitnessRecord(known.ledger, known.inode, 1, first, zero).content())


def test_totals_changed_while_the_witness_lags_are_refused(path):
    let_lag(path)
    assert inspect(path).state.last_entry == 2
    give_back(path)
    assert_refused(path, "its totals are not the sum of its entries")


def test_an_entry_after_the_witness_that_was_changed_is_refused(path):
    let_lag(path)
    change(path, """UPDATE entries SET body = replace(body, '"hit":true', '"hit":false') WHERE number = 2""")
    give_back(path)
    assert_refused(path, "entry 2 is not what was written")


def test_a_witness_of_an_earlier_version_has_everything_looked_at_once(path, monkeypatch):
    both = witnesses(path)
    for witness in both:
        without_totals(witness)
    looked = []
    rows = Database.rows
    monkeypatch.setattr(Database, "rows", lambda store, after=0: looked.append(after) or rows(store, after))
    opened(path, 1).close()
    assert looked == [0]
    assert all(witness.read().totals for witness in both)
    assert both[0].path.stat().st_size == 512
    looked.clear()
    opened(path, 1).close()
    assert 0 not in looked


def test_totals_that_were_changed_beside_a_witness_of_an_earlier_version_are_refused(path):
    for witness in witnesses(path):
        without_totals(witness)
    give_back(path)
    assert_refused(path, "its totals are not the sum of its entries")


def test_opening_takes_no_longer_with_many_entries(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    with opened(path, 229) as session:
        for _ in range(2500):
            session.test(no)
        session.test(yes)
    read = []
    rows = Database.rows

    def counted(store, after=0):
        for row in rows(store, after):
            read.append(row)
            yield row

    monkeypatch.setattr(Database, "rows", counted)
    opened(path, 229).close()
    inspect(path)
    assert read == []


def test_vouching_for_a_copy_whose_totals_were_changed_is_refused(path, tmp_path):
    state = inspect(path).state
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    give_back(copy)
    with pytest.raises(tc.LedgerError, match="its totals are not the sum of its entries"):
        opened(copy, 1, restored=(state.last_entry, state.head.hex()))
    shutil.copy(path, copy)
    with opened(copy, 1, restored=(state.last_entry, state.head.hex())) as session:
        assert session.meter.hits_left == 0


def test_a_state_folder_that_was_lost_is_made_again(path, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    opened(path, 1).close()
    assert witnesses(path)[1].read().number == 2


def test_the_digest_differs_with_the_header_and_each_total(path):
    with closing(Database(path, read_only=True)) as store:
        state = store.state()
    others = [
        state.digest(Sums((2,), (1,), 0)),
        state.digest(Sums((1,), (2,), 0)),
        state.digest(Sums((1,), (1,), 1)),
        LedgerState(state.header + " ", state.last_entry, state.head, state.next_seq, state.sums).digest(),
    ]
    assert len({state.digest(), *others}) == 5
