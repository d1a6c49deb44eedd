"""A followed stream has the law of one that is asked after each item; each row counts once; hits are changes."""

from collections import Counter

import numpy as np
import pytest
from tests.goodness import ENOUGH, BufferedEntropy, pvalue
from tests.streaming.scripted_estimates import GRID, ScriptedCopies, next_place

import targetcharge as tc
from targetcharge.ledger import BatchEntry
from targetcharge.streaming.consensus import Consensus, Grid
from targetcharge.streaming.publishing import ByConsensus

FAR = 1e-9
CONSENSUS = Consensus(GRID, 6, 1.0)
KINDS = np.array([[1.5] * 6, [0.5, 0.5, 1.5, 1.5, 3.0, 9.0], [9.0] * 6, [0.0] * 4 + [np.nan] * 2])
"""Rows of estimates, among which a script chooses."""


class UnmeteredSession:
    """Draws a batch in blocks and publishes it in entries of two hits, without a budget."""

    def __init__(self, entropy, block=700):
        self.entropy, self.block = entropy, block

    def ask_batch(self, batch):
        for first in range(0, len(batch), self.block):
            last = min(first + self.block, len(batch))
            codes, hit = batch.drawing.draw(None, self.entropy, first, last)
            for places in np.split(np.arange(len(codes)), np.flatnonzero(hit)[1::2] + 1):
                if len(places):
                    yield _Indices(codes[places])


class _Indices:
    def __init__(self, indices):
        self.indices = indices


def transitions(script, places):
    """Return {(place before, kind of row): counts of the places after it}."""
    found = {}
    for kind, before, after in zip(script.tolist(), [0, *places[:-1]], places, strict=True):
        found.setdefault((before, kind), Counter())[after] += 1
    return found


def worst_pvalue(found, consensus=CONSENSUS, rate=None):
    pvalues = []
    for (place, kind), counts in found.items():
        law = next_place(KINDS[kind], place, consensus, rate)
        if sorted(law.values())[-2] * counts.total() >= ENOUGH:
            pvalues.append(pvalue(counts, law))
    assert len(pvalues) > 3
    return min(pvalues)


def places_of(values):
    return [GRID.values.index(value) for value in values.tolist()]


def followed(script, seed, block=700, consensus=CONSENSUS):
    publisher = ByConsensus(UnmeteredSession(BufferedEntropy(seed), block), consensus, 0)
    return places_of(publisher.publish(len(script), lambda first, last: KINDS[script[first:last]]))


def asked_one_by_one(script, seed):
    publisher = ByConsensus(UnmeteredSession(BufferedEntropy(seed)), CONSENSUS, 0)
    found = [publisher.publish(1, lambda *_, kind=kind: KINDS[[kind]])[0] for kind in script]
    return places_of(np.array(found))


SCRIPT = np.random.default_rng(5).integers(0, len(KINDS), 30_000)
CALM_SCRIPT = np.repeat(SCRIPT[:100], 1_000)
"""Long runs of the same row: moves are rare, so the pace grows."""

CALM = Consensus(GRID, 6, 0.9)


@pytest.mark.parametrize("block", [1, 8192])
def test_each_step_of_a_followed_stream_has_the_law_of_one_choice(block):
    script = SCRIPT if block > 1 else SCRIPT[:10_000]
    assert worst_pvalue(transitions(script, followed(script, 1, block))) > FAR


def test_each_step_of_a_stream_that_is_asked_has_the_same_law():
    assert worst_pvalue(transitions(SCRIPT[:10_000], asked_one_by_one(SCRIPT[:10_000], seed=2))) > FAR


def test_steps_of_a_calm_stream_have_the_law_too():
    found = transitions(CALM_SCRIPT, followed(CALM_SCRIPT, 4, 8192, CALM))
    assert worst_pvalue(found, CALM) > FAR
    assert worst_pvalue(found, CALM, rate=0.45 * 0.85) < FAR
    assert worst_pvalue(found, CALM, rate=0.45 * 1.15) < FAR


def test_power_laws_that_are_off_and_rows_that_are_mixed_up_are_seen():
    places = followed(SCRIPT, 3)
    found = transitions(SCRIPT, places)
    assert worst_pvalue(found) > FAR
    assert worst_pvalue(found, rate=0.5 * 0.85) < FAR
    assert worst_pvalue(found, rate=0.5 * 1.15) < FAR
    assert worst_pvalue(transitions(np.roll(SCRIPT, 1), places)) < FAR


SURE = {"query_epsilon": 2.0, "tolerance": 1.0, "smallest": 1.0, "largest": 1024.0}
"""With 60 copies that agree, another choice than theirs has a chance below e^-60."""

RICH = tc.Budget(2000.0, 1e-6)
STEPS = Grid(1.0, 1024.0, 1.0)


def sure_stream(truth, budget=RICH, **more):
    script = ScriptedCopies(np.tile(np.asarray(truth, dtype=np.float64)[:, None], (1, 60)))
    return tc.streaming.RobustStream(script, 60, budget, **{**SURE, **more}), script


def expected_path(truth):
    """Return the values that copies which agree lead to."""
    place, found = 0, []
    for number in truth:
        moves = STEPS.moves(place)
        place = int(moves.places[sum(number >= edge for edge in moves.edges.tolist())])
        found.append(STEPS.values[place])
    return found


def changes_of(values, start=0.0):
    return int((np.diff(np.concatenate([[start], values])) != 0).sum())


def test_every_row_is_asked_for_once_and_in_order_over_many_thousands():
    truth = np.repeat([1.0, 4.0, 16.0, 4.0, 16.0, 1.0], 3_500)
    stream, script = sure_stream(truth)
    values = stream.follow(range(len(truth)))
    assert values.tolist() == expected_path(truth)
    starts, ends = zip(*script.asked, strict=True)
    assert starts == (0, *ends[:-1])
    assert ends[-1] == len(truth) == 21_000
    assert stream.changes == changes_of(values) == 6
    assert stream.value == values[-1]


def test_more_hits_than_an_entry_holds():
    truth = np.tile([1.0, 4.0], 40)
    stream, _ = sure_stream(truth)
    assert stream.plan.changes > 80
    values = stream.follow(range(80))
    assert values.tolist() == truth.tolist()
    assert stream.changes == stream.meter.hits == 80
    entries = [entry for entry in stream._session._ledger.entries() if isinstance(entry, BatchEntry)]
    assert len(entries) > 2
    assert sum(map(len, entries)) == 80


JUMPS = [0.0, 1.0, 1.0, 700.0, 700.0, 700.0, 700.0, 3.0, 0.0]


@pytest.mark.parametrize("calls", ["one", "several"])
def test_the_same_values_however_it_is_called(calls):
    stream, _ = sure_stream(JUMPS)
    if calls == "one":
        values = stream.follow(range(9)).tolist()
    else:
        values = [value for some in (range(4), range(0), range(4, 9)) for value in stream.follow(some).tolist()]
    assert values == expected_path(JUMPS)
    assert stream.changes == changes_of(values)


def test_an_estimate_after_a_jump_is_looked_at_until_it_stays():
    stream, _ = sure_stream(JUMPS)
    values = []
    for item in range(9):
        stream.update(item)
        values.append(stream.estimate())
    path = expected_path(np.repeat(JUMPS, 10))  # as many looks at each as it takes
    assert values == path[9::10] == [0.0, 1.0, 1.0, 512.0, 512.0, 512.0, 512.0, 2.0, 0.0]
    assert stream.changes == changes_of(path) > changes_of(values)


def test_an_estimate_that_the_budget_does_not_let_settle_is_what_was_paid_for():
    stream, _ = sure_stream([700.0], budget=tc.Budget(216.0, 1e-6))
    stream.update(0)
    assert stream.plan.changes == 1
    assert stream.estimate() == stream.value == expected_path([700.0])[0] != 512.0
    assert stream.changes == 1
    with pytest.raises(tc.BudgetSpent):
        stream.estimate()


def test_asking_again_without_news_is_free_and_gives_the_same():
    stream, _ = sure_stream([4.0])
    stream.update(0)
    first = stream.estimate()
    while (now := stream.estimate()) != first:
        first = now
    paid = stream.changes
    assert {stream.estimate() for _ in range(200)} == {now}
    assert stream.changes == paid


def test_a_budget_that_ends_on_the_way_gives_what_is_paid_for():
    truth = np.tile([1.0, 1.0, 4.0, 4.0], 200)
    stream, script = sure_stream(truth, tc.Budget(400.0, 1e-6))
    allowed = stream.plan.changes
    assert 3 < allowed < 300
    values = stream.follow(range(800))
    assert changes_of(values) == allowed == stream.changes == stream.meter.hits
    assert len(values) < 800
    assert "budget" in values.stopped
    assert values.tolist() == expected_path(truth)[: len(values)]
    assert stream.value == values[-1]
    before = script.next
    nothing = stream.follow(range(3))
    assert (nothing.tolist(), type(nothing.refusal)) == ([], tc.BudgetSpent)
    assert "budget" in nothing.stopped
    with pytest.raises(tc.BudgetSpent):
        stream.estimate()
    assert script.next == before
    assert stream.value == values[-1]


def test_a_budget_that_ends_while_asking_one_by_one():
    truth = np.tile([1.0, 4.0], 200)
    stream, _ = sure_stream(truth, tc.Budget(400.0, 1e-6))
    values = []
    with pytest.raises(tc.BudgetSpent):  # noqa: PT012 - whichever it is
        for item in range(400):
            stream.update(item)
            values.append(stream.estimate())
    assert changes_of(np.array(values)) == stream.plan.changes == len(values)


def test_nothing_is_followed_for_nothing():
    stream, script = sure_stream([1.0])
    assert stream.follow([]).shape == (0,)
    assert stream.follow([]).stopped == ""
    stream.update_many([])
    assert (stream.changes, stream.value) == (0, 0.0)
    assert script.next == 0
