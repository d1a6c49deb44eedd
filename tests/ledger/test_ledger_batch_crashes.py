"""Batches in processes that are killed, race or fork: no charge is lost, and no hit shared."""

import threading

import pytest
from tests.ledger import batch_children
from tests.ledger.asking import opened, spent, yes
from tests.ledger.batch_children import HITS, requests
from tests.ledger.processes import child

import targetcharge as tc
from targetcharge.ledger.entries import text_of
from targetcharge.ledger.sqlite import verify

# Kills.

# Of four hits that a batch held back: what is charged after a kill, as (hits in batches, hits abandoned).
AFTER_A_KILL = {
    "before reserving": (0, 0),
    "after reserving": (0, HITS),
    "after drawing": (0, HITS),
    "before recording": (0, HITS),
    "before commit": (0, HITS),
    "after commit": (2, 1),
    "before the witness": (2, 1),
    "before return": (2, 1),
}


@pytest.mark.parametrize("point", AFTER_A_KILL)
def test_a_process_killed_in_a_batch_pays_for_what_it_may_have_seen(tmp_path, point):
    path = tmp_path / "ledger.db"
    with child(batch_children.dies_in_a_batch, path, point) as process:
        assert process.heard() == []
        assert process.ends() == -9
    published, abandoned = AFTER_A_KILL[point]
    with opened(path, 45) as session:
        found = list(session.transcript.batches())
        assert sum(len(batch.hit_places) for batch in found) == published
        assert sum(entry.count for entry in spent(session)) == abandoned
        assert session.meter.hits == published + abandoned
        one = session.meter.quote(tc.NotPrior(None), 0.01).grains
        assert session.meter.totals.spent == (published + abandoned) * one
        assert session.test(yes).hit
    assert verify(path) >= 1


@pytest.mark.parametrize("batches_before", [1, 3])
def test_batches_that_were_published_before_a_kill_are_there_after_it(tmp_path, batches_before):
    path = tmp_path / "ledger.db"
    with child(batch_children.publishes_until_killed, path) as process:
        told = [process.hear() for _ in range(batches_before)]
        process.kill()
        told += process.heard()
    with opened(path, 229) as session:
        found = [text_of(batch) for batch in session.transcript.batches()]
        assert found[: len(told)] == told, "a batch that was published is lost"
        assert len(found) <= len(told) + 1
        hits = sum(len(batch.hit_places) for batch in session.transcript.batches())
        abandoned = sum(entry.count for entry in spent(session))
        assert session.meter.hits == hits + abandoned
        assert abandoned <= 32
        seqs = [answer.seq for answer in session.transcript]
        assert len(set(seqs)) == len(seqs)
    verify(path)


# Races and forks.


@pytest.mark.parametrize("seed", range(2))
def test_processes_that_race_with_batches_never_share_a_hit(tmp_path, seed):
    path = tmp_path / "ledger.db"
    opened(path, 45).close()
    with (
        child(batch_children.asks_a_batch, path, f"one {seed}") as one,
        child(batch_children.asks_a_batch, path, f"two {seed}") as two,
    ):
        assert {one.hear(), two.hear()} == {"opened"}
        one.tell("go")
        two.tell("go")
        told = {f"one {seed}": one.hear(60), f"two {seed}": two.hear(60)}
        assert (one.hear(), two.hear()) == ("closed", "closed")
    with opened(path, 45) as session:
        hits = 0
        for name, texts in told.items():
            mine = [batch for batch in session.transcript.batches() if batch.first.algorithm == name]
            assert list(map(text_of, mine)) == texts
            hits += sum(len(batch.hit_places) for batch in mine)
        assert session.meter.hits == hits == 45
        assert (session.meter.hits_left, spent(session)) == (0, [])
        seqs = [answer.seq for answer in session.transcript]
        assert len(set(seqs)) == len(seqs)
    verify(path)


@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_batch_that_was_begun_before_a_fork_is_refused_in_the_child(tmp_path, where):
    place = ":memory:" if where == "memory" else tmp_path / "ledger.db"
    with child(batch_children.forks_in_a_batch, place) as process:
        assert process.hear() == ["NotAllowed"] * 2
        assert process.hear() == "x" * 20


def test_a_reader_in_another_thread_sees_whole_batches_only(tmp_path):
    path, reading, done, seen = tmp_path / "ledger.db", threading.Event(), threading.Event(), []

    def read():
        with opened(path, 229) as reader:
            while not done.is_set():
                seen.append([len(batch.hit_places) for batch in reader.transcript.batches()])
                reading.set()

    with opened(path, 229) as session:
        thread = threading.Thread(target=read)
        thread.start()
        assert reading.wait(30)
        written = [len(batch.hit_places) for batch in session.ask_batch(requests(".x" * 200))]
        done.set()
        thread.join(30)
    assert seen
    assert all(found == written[: len(found)] for found in seen)
