"""Processes that die at any moment, or ask at the same time: the counters are those of the ledger."""

from __future__ import annotations

import itertools
import json
import random
from types import SimpleNamespace

import pytest
from tests.ledger.processes import Child, child
from tests.sizes import size
from tests.tables import unit_children as children
from tests.tables.individuals import Drawn, counters, opened
from tests.tables.naive_units import Asked, asked_in, naive_of, random_rows, replay_of, replayed, table_of

from targetcharge.ledger.entries import Spent

ASKERS = size(3, 4)
ROUNDS = size(8, 40)
METERS = ("exact", "renyi")

SNAPSHOTS = [random_rows(random.Random(11), 25, 70), random_rows(random.Random(12), 25, 20, first=15)]


IN_A_CALL = {"after reserve", "before the scan", "after the scan", "before settle"}
BETWEEN_CALLS = {"at the end", "before reserve", "before an append is noted", "after an append is noted"}


def options_of(meter, hits=6):
    return {"hits": hits, "meter": meter}


CRASHES = [
    (point, meter, nth)
    for meter, nth in (("exact", 1), ("renyi", 4), ("renyi", 1), ("exact", 4), *itertools.product(METERS, (2, 3)))
    for point in children.POINTS
]


@pytest.mark.parametrize(("point", "meter", "nth"), CRASHES[: size(2 * len(children.POINTS), len(CRASHES))])
def test_after_a_crash_the_counters_are_those_of_the_ledger(monkeypatch, tmp_path, meter, point, nth):
    path, options = tmp_path / "ledger.db", options_of(meter)
    other = opened(table_of(SNAPSHOTS[0]), ledger=path, **options)  # is there all the time
    with child(children.dies, path, SNAPSHOTS, options, point, nth) as process:
        said = process.heard()
        assert (process.ends() < 0) == (said[-1:] != ["closed"])
    died = said[-1:] != ["closed"]
    if not died:
        assert nth > 1, "the moment never came"
        said = said[:-1]
    told_hits = {seq for each in said for seq in each}
    drawn = Drawn(monkeypatch)
    grew = len(json.loads(path.with_name("ledger.db-private").read_text())["snapshots"]) > 1
    for t in (other, None):
        found = opened(table_of(SNAPSHOTS[0]), ledger=path, **options) if t is None else t
        if grew:
            assert found.append(table_of(SNAPSHOTS[1])) == 2
        snapshots = SNAPSHOTS[: 1 + grew]
        assert counters(found) == replayed(found, snapshots)
        charged = [entry for entry in found._session._ledger.entries() if isinstance(entry, Spent)]
        if point in IN_A_CALL and died:
            assert [entry.why for entry in charged] == ["abandoned"]
        elif point in BETWEEN_CALLS:
            assert charged == []
        hits = {answer.seq for answer in found.transcript if answer.hit}
        assert told_hits <= hits
        naive = naive_of(found, snapshots)
        naive.spent = dict(zip(naive.spent, counters(found), strict=True))
        drawn.clear()
        found.count()
        assert drawn == [naive.number(Asked(None, snapshot=len(snapshots)))]
        assert counters(found) == replayed(found, snapshots)
        found.close()


@pytest.mark.parametrize("seed", range(size(1, 10)))
@pytest.mark.parametrize("meter", METERS)
def test_processes_that_ask_at_the_same_time_draw_with_who_is_active_at_the_head(tmp_path, meter, seed):
    path, options = tmp_path / "ledger.db", options_of(meter, 4)
    snapshots = SNAPSHOTS[:1]
    processes = [
        Child(children.asks, path, snapshots, options, 100 * seed + number, ROUNDS) for number in range(ASKERS)
    ]
    told = []
    try:
        for process in processes:
            assert process.hear(60) == "ready"
        for process in processes:
            process.tell()
        for process in processes:
            told += process.hear(120)
        for process in processes:
            process.ends()
    finally:
        for process in processes:
            process.stop()
    with opened(table_of(snapshots[0]), ledger=path, **options) as t:
        assert counters(t) == replayed(t, snapshots)
        entries = list(t._session._ledger.entries())
        replay, checked = replay_of(t, snapshots), 0
        assert t._session._ledger.since(0) == (len(entries), entries)
        for head in range(len(entries) + 1):
            for _, text, epsilon, key, number in (each for each in told if each[0] == head):
                answer = SimpleNamespace(key=key, epsilon=epsilon, snapshot=1, targets=(("NotPrior", None),))
                asked, keys, k = asked_in(answer, text)
                if keys:
                    assert list(number) == list(replay.naive.best(asked, keys, k)[0].values())
                else:
                    assert number == replay.naive.number(asked)
                checked += 1
            if head < len(entries):
                replay.feed(entries[head])
        assert checked == len(told) > ASKERS * ROUNDS // 2
        assert replay.naive.counters == counters(t)
