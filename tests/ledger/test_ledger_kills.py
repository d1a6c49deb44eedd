"""kill -9: at named points, at random moments, and after a thousand misses."""

import random
import time

import pytest
from tests.ledger import children
from tests.ledger.asking import approximate, entries, hits, opened, spent, told, yes
from tests.ledger.client import Client
from tests.ledger.processes import child
from tests.sizes import size

import targetcharge as tc
from targetcharge.ledger.entries import DeltaSpent
from targetcharge.ledger.sqlite import verify
from targetcharge.numerics.rounding import grains_up

KILLS = size(60, 600)
ROUND = 10

# What is charged after a kill, as (hits in the transcript, hits abandoned): the reservation in the file is spent,
# and a hit that was committed is charged although nobody saw it.
NOTHING, HELD, BOTH = (0, 0), (0, 1), (1, 1)
AFTER_A_KILL = {
    "after reserving": (HELD, HELD),
    "after drawing": (HELD, HELD),
    "before recording": (HELD, HELD),
    "before commit": (NOTHING, HELD),
    "after commit": (HELD, BOTH),
    "before the witness": (HELD, BOTH),
    "after the witness": (HELD, BOTH),
    "before return": (BOTH, BOTH),
    "before reserving": (NOTHING, HELD),
}


@pytest.mark.parametrize("point", AFTER_A_KILL)
@pytest.mark.parametrize("warm", [False, True], ids=["first call", "after a miss"])
def test_a_process_killed_at_this_point_pays_for_what_it_may_have_seen(tmp_path, point, warm):
    path = tmp_path / "ledger.db"
    with child(children.dies_at, path, point, 6, True, warm) as process:
        assert process.heard() == []
        assert process.ends() == -9
    published, abandoned = AFTER_A_KILL[point][warm]
    with opened(path) as session:
        assert (len(hits(session)), sum(entry.count for entry in spent(session))) == (published, abandoned)
        assert session.meter.hits == published + abandoned
        assert session.test(yes).hit
        assert session.meter.hits_left == 5 - published - abandoned
    assert verify(path) >= 1


@pytest.mark.parametrize("point", ["after commit", "before return"])
def test_a_kill_after_the_last_hit_charges_no_more_than_the_budget(tmp_path, point):
    path = tmp_path / "ledger.db"
    with child(children.dies_at, path, point, 1, True, True) as process:
        assert process.heard() == []
    with opened(path, 1) as session:
        assert (len(hits(session)), spent(session)) == (1, [])
        with pytest.raises(tc.BudgetSpent):
            session.test(yes)


@pytest.mark.parametrize("point", ["before recording", "before return"])
def test_a_miss_that_was_lost_in_a_crash_gets_a_new_number(tmp_path, point):
    path = tmp_path / "ledger.db"
    with child(children.dies_at, path, point, 6, False, True) as process:
        assert process.heard() == []
    with opened(path) as session:
        assert session.test(told).seq > 1000
        assert session.meter.hits == 1


def check_after_a_kill(session, client, before):
    """Compare the ledger with what the client saw; return what is charged now."""
    assert client.lost(session) + client.wrong(session) == []
    unseen, abandoned = client.unseen(session)
    assert 0 <= unseen - before[0] <= 2, "more than the call in flight was charged"
    assert 0 <= abandoned - before[1] <= 2, "more than one reservation was spent"
    return unseen, abandoned


@pytest.mark.parametrize("seed", range(-(-KILLS // ROUND)))
def test_no_charge_is_lost_whenever_a_process_is_killed(tmp_path, seed):
    path, choose = tmp_path / "ledger.db", random.Random(seed)
    client, before = Client(), (0, 0)
    for kill in range(min(ROUND, KILLS - seed * ROUND)):
        with child(children.asks_until_killed, path, seed * ROUND + kill) as process:
            if kill % 4:
                assert process.hear() == ("opened",)
            time.sleep(choose.random() * (0.03 if kill % 4 else 0.05))
            process.kill()
            for message in process.heard():
                client.sees(*message)
        with opened(path, 229) as session:
            before = check_after_a_kill(session, client, before)
            if not session.meter.hits_left:  # a quick process spent them all
                break
            answer = session.ask(told, tc.NotPrior(None))
            client.sees("answer", answer.seq, answer.hit, answer.outcome)
        verify(path)
    assert client.seqs


def test_the_delta_of_a_thousand_misses_survives_a_kill(tmp_path):
    path = tmp_path / "ledger.db"
    with child(children.spends_delta, path) as process:
        assert process.hear(60) == "missed"
        process.kill()
    with tc.Session({"says": False}, tc.Budget(1.0, 2e-6), 0.03, ledger=path, computation_delta=1e-6) as session:
        assert sum(isinstance(entry, DeltaSpent) for entry in entries(session)) == 1000
        assert session.meter.totals.delta >= grains_up(1e-6)
        assert session.meter.delta_left < 1e-9
        with pytest.raises(tc.BudgetSpent, match="delta 1e-09"):
            session.test(approximate)
        assert session.test(yes).hit
