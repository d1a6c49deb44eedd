"""Each mistake of `unit_mistakes` makes a table tell more of a unit than is claimed; the right code does not."""

from __future__ import annotations

import itertools
import math

import pyarrow as pa
import pytest
from tests.tables.anew import anew
from tests.tables.exploring import explore
from tests.tables.judged import chosen, claim_of, verdict
from tests.tables.tiny import TESTS, budget, frames, opener, own, total
from tests.tables.unit_games import until
from tests.tables.unit_mistakes import MISTAKES, broken

import targetcharge as tc
from targetcharge.audit.exact import judge


@pytest.fixture(scope="module", autouse=True)
def noise():
    with chosen():
        yield


ALONE = frames(z=own(1, 2, 3, 4, 5))


def selecting(twins):
    twins.top("g", [1, 2, 3, 4, 5], 5, {1})


def watching(twins):
    twins.watch(None, "g", [1, 2, 3, 4, 5], 1)


def releasing(twins):
    waiting = [twins.release(f"g = {group}", {1}) for group in (1, 2, 3, 4, 5)]
    for each in waiting:
        twins.revise(each.seq, -math.inf)


def tipping(twins):
    """Ask for a number far above its threshold, until it is not: it charges nobody."""
    for _ in range(5):
        if twins.above("g = 1", -9, {-8}).outcome in (None, -9):
            return


def coupled(twins):
    """Make z spend its budget, then ask about those who share a bit with it."""
    twins.count("g = 1")
    twins.count("g = 2")


SHARING = frames(**{name: own(2 + place % 2) for place, name in enumerate("abcdefghij")}, z=own(1))
"""By their ids, z and those in group 2 share a bit."""

LOW = {"meter": "renyi", "delta": 0.3}
BROKEN = {
    "something_left_is_enough": (
        opener(ALONE, 1.0, 1, **LOW, more=1.02),
        until(lambda twins: twins.above("g = 1", 1), 2, 14),
    ),
    "only_what_raises_a_sum_is_priced": (
        opener(frames(z={1: -1}), 2.0, 1),
        until(lambda twins: twins.above(total(1), 0), 9, 5),
    ),
    "prices_are_those_of_small_epsilons": (
        opener(ALONE, 1.0, 1, **LOW),
        until(lambda twins: twins.above("g = 1", 1), 2, 14),
    ),
    "spent_units_are_in_a_sketch": (opener(SHARING, 1.0, 1), coupled),
    "only_who_tipped_the_scales_pays": (opener(ALONE, 2.0, 1), tipping),
    "pending_releases_are_not_held": (opener(ALONE, 2.0, 1), releasing),
    "room_for_one_hit_is_enough_for_a_selection": (opener(ALONE, 2.0, 1), selecting),
    "sums_are_rounded_before_the_noise": (
        opener(frames(z={1: 1}), 0.5, 1, **LOW),
        until(lambda twins: twins.between(total(2), 1, 10**6), 3, 8),
    ),
    "a_batch_counts_once": (opener(ALONE, 2.0, 1), watching),
    "broken_calls_are_free": (opener(ALONE, 2.0, 1), until(lambda twins: twins.above("g = 1", 1, broken=1), 9, 5)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_mistake_is_flagged(monkeypatch, name):
    opened, game = BROKEN[name]
    claim = claim_of(opened)
    broken(name, monkeypatch)
    found = judge(explore(opened, game).views, claim, name)
    assert not found.passed
    assert found.ratio > 1.1


@pytest.mark.parametrize("name", BROKEN)
def test_the_right_table_passes_the_same_game(name):
    found = verdict(*BROKEN[name])
    assert found.passed
    assert found.ratio <= 1


# Batches that are interrupted, data that grows, two sessions.


def interrupted(twins):
    """Ask the first test of a batch, then something that makes z spend its budget, then the others."""
    batches = {}

    def begin(table):
        batches[id(table)] = table.iter_watch(None, "g", [1, 2, 3, 4], 1)
        return next(batches[id(table)])

    answered = 1
    twins.call(begin, {1}, (1, math.inf))
    twins.count("g = 5")
    while answered < 4:
        twins.call(lambda table: next(batches[id(table)]), {1}, (1, math.inf))
        answered += 1


def growing():
    """Return what opens a table, and a game: append rows of z and go on after a hit."""
    sources = [
        [pa.table({"u": ["a", *names], "g": [group] * (1 + len(names))}) for group in (1, 2)]
        for names in ([], ["z"])
    ]
    appended = {}

    def opened(side):
        table = tc.open(
            sources[side][0], "u", budget(2.0, 1), query_epsilon=2.0, charging="individual", targets=TESTS
        )
        appended[id(table)] = sources[side][1]
        return anew(table)

    def game(twins):
        for group in (1, 2):
            until(lambda twins, group=group: twins.above(f"g = {group}", 2), 1, 3)(twins)
            if group == 1:
                twins.call(lambda table: table.append(appended[id(table)]))

    return opened, game


def test_a_batch_that_is_interrupted_leaves_out_who_has_spent_its_budget(monkeypatch):
    opened = opener(ALONE, 2.0, 1)
    assert verdict(opened, interrupted).passed
    broken("a_batch_counts_once", monkeypatch)
    found = verdict(opened, interrupted)
    assert not found.passed
    assert found.ratio > 1.1


def test_budgets_carry_on_when_the_data_grows(monkeypatch):
    opened, game = growing()
    found = verdict(opened, game)
    assert found.passed
    assert found.ratio > 0.8
    broken("appended_rows_bring_new_budgets", monkeypatch)
    found = verdict(opened, game)
    assert not found.passed
    assert found.ratio > 1.1


class Two:
    """Two tables on one ledger."""

    def __init__(self, tables):
        self.tables = tables
        self._numbers, self._session = tables[0]._numbers, tables[0]._session

    def __getattr__(self, name):
        return getattr(self.tables[0], name)

    def close(self):
        for table in self.tables:
            table.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def two_sessions(folder):
    """Return what opens two tables on one ledger file, and a game: go on with the other one after a hit."""
    places = itertools.count()

    def opened(side):
        asked = {"query_epsilon": 2.0, "charging": "individual", "targets": TESTS}
        place = folder / f"{next(places)}.db"
        tables = [tc.open(ALONE[side], "u", budget(2.0, 1), ledger=place, **asked) for _ in range(2)]
        return Two(list(map(anew, tables)))

    def game(twins):
        hits = 0
        for _ in range(4):
            answer = twins.call(lambda two, turn=hits: two.tables[turn].above("g = 1", 1), {1})
            hits += answer.hit
            if hits == 2:
                return

    return opened, game


def test_sessions_that_look_only_at_themselves_are_flagged(monkeypatch, tmp_path):
    opened, game = two_sessions(tmp_path)
    claim = claim_of(opened)
    broken("others_are_not_looked_at", monkeypatch)
    found = judge(explore(opened, game).views, claim)
    assert not found.passed
    assert found.ratio > 1.1


def test_two_sessions_on_one_ledger_tell_no_more_than_one(tmp_path):
    assert verdict(*two_sessions(tmp_path)).passed


def test_every_mistake_is_tried():
    assert set(MISTAKES) == set(BROKEN) | {"others_are_not_looked_at", "appended_rows_bring_new_budgets"}
