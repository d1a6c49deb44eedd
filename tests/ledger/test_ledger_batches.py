"""Batches in ledgers: totals, seqs, text, damage, kills and races."""

import json
from base64 import b64decode, b64encode
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.asking import bare_ledger, opened
from tests.ledger.batch_children import CLASSES, requests

import targetcharge as tc
from targetcharge.ledger import Answer, BatchEntry, Settlement
from targetcharge.ledger.entries import entry_of, text_of
from targetcharge.ledger.state import Sums
from targetcharge.outcomes import Mark, Side


def batch_of(codes, hits=(), outcomes=CLASSES, seq=1, grains=(1,), **more):
    first = Answer(None, True, 1.0, seq, "labels", grains=grains, key=more.pop("key", 0), **more)
    return BatchEntry.of(first, outcomes, np.array(codes, dtype=np.intp), np.array(hits, dtype=np.intp))


# One suite for all ledgers.


@pytest.fixture(params=["memory", "sqlite"])
def bare(request, tmp_path):
    """A ledger without a session, and the price of a hit on it."""
    with bare_ledger(request.param, tmp_path, 45) as made:
        yield made


def publish(ledger, most, codes, hits=(), count=None):
    ledger.reserve(replace(most, count=max(1, len(hits)) if count is None else count, answers=len(codes)))
    batch = batch_of(codes, hits, seq=ledger.next_seq(len(codes)))
    ledger.settle(Settlement((batch,), durable=True))
    return batch


def test_a_batch_charges_each_of_its_hits_and_a_batch_of_misses_none(bare):
    ledger, most = bare
    for hits in ((), (0,), (1, 3, 4), (), (0, 1, 2, 3, 4)):
        before = ledger.meters[0].hits
        publish(ledger, most, [0, 1, 2, 0, 1], hits)
        assert ledger.meters[0].hits == before + len(hits)
        assert ledger.meters[0].totals.spent == most.prices[0].grains * (before + len(hits))
    assert (ledger.meters[0].hits, ledger.meters[0].hits_left) == (9, 36)


def test_hits_that_were_held_back_and_not_needed_are_free_again(bare):
    ledger, most = bare
    for _ in range(30):
        publish(ledger, most, [0, 1], (1,), count=10)
    assert (ledger.meters[0].hits, ledger.meters[0].hits_left) == (30, 15)


def test_a_batch_is_covered_only_if_all_its_hits_are(bare):
    ledger, most = bare
    publish(ledger, most, range(3), (0, 1, 2))
    with pytest.raises(tc.BudgetSpent):
        ledger.reserve(replace(most, count=43))
    ledger.reserve(replace(most, count=42))


def test_seqs_of_batches_follow_each_other_and_those_of_answers(bare):
    ledger, most = bare
    seqs = []
    for count in (1, 3, 2000, 1, 999, 1001, 8192):
        batch = publish(ledger, most, [0] * count)
        seqs += range(batch.first.seq, batch.seq + 1)
        ledger.reserve(most)
        seqs.append(ledger.next_seq())
        ledger.settle(Settlement((Answer(None, False, 0.0, seqs[-1], grains=(0,)),)))
    assert seqs == list(range(1, len(seqs) + 1))
    assert [answer.seq for answer in ledger.answers()] == seqs
    assert [answer.seq for answer in ledger.answers(9000)] == seqs[-9000:]


def test_a_batch_that_was_reserved_and_never_settled_is_spent(bare):
    ledger, most = bare
    ledger.reserve(replace(most, count=7, answers=5))
    ledger.next_seq(5)
    ledger.forfeit("labels")
    assert ledger.meters[0].hits == 7
    batch = publish(ledger, most, [0, 1], (1,))
    assert ledger.meters[0].hits == 8
    assert batch.first.seq > 5
    assert list(ledger.answers()) == list(batch.answers)


def test_entries_and_what_is_since_have_the_batches_as_they_were(bare):
    ledger, most = bare
    batches = [publish(ledger, most, [0, 1, 2], (1,)), publish(ledger, most, [2] * 300)]
    assert [entry for entry in ledger.entries() if isinstance(entry, BatchEntry)] == batches
    assert ledger.since(1)[1] == batches[1:]
    assert Sums.zero(1).plus(batches[0]).plus(batches[1]).hits == (1,)


# What a batch holds, and its text.


def test_the_answers_of_a_batch():
    batch = batch_of(
        [1, 0, 2, 2], (2, 3), seq=5, key=100, grains=(3, 4), targets=(("T",),), epsilon=0.1, received=2.5
    )
    answers = batch.answers
    assert [answer.seq for answer in answers] == [5, 6, 7, 8]
    assert batch.seq == 8
    assert [answer.key for answer in answers] == [100, 101, 102, 103]
    assert [answer.outcome for answer in answers] == ["dog", "cat", tc.BOUNDARY, tc.BOUNDARY]
    assert [answer.hit for answer in answers] == [False, False, True, True]
    assert [answer.grains for answer in answers] == [(0, 0), (0, 0), (3, 4), (3, 4)]
    assert [answer.price for answer in answers] == [0.0, 0.0, 1.0, 1.0]
    assert batch.grains == (6, 8)
    assert {(answer.targets, answer.epsilon, answer.received) for answer in answers} == {((("T",),), 0.1, 2.5)}
    assert len(batch) == 4


def test_a_meter_that_a_hit_does_not_charge_counts_no_hit():
    sums = Sums.zero(2).plus(batch_of([0, 0], (0, 1), grains=(3, 0)))
    assert (sums.spent, sums.hits) == ((6, 0), (2, 0))


@pytest.mark.parametrize(("outcomes", "width"), [(255, 1), (256, 1), (257, 2), (2**16, 2)])
def test_codes_take_a_byte_or_two(outcomes, width):
    codes = [0, outcomes - 1, outcomes // 2]
    batch = batch_of(codes, (1,), outcomes=tuple(range(outcomes)))
    assert len(batch.codes) == 3 * width
    assert (len(batch), batch.indices.tolist(), batch.seq) == (3, codes, 3)
    assert entry_of(text_of(batch)) == batch


def test_a_batch_of_the_first_format_is_read():
    first = (
        '{"outcome":null,"hit":true,"price":1.0,"seq":1,"algorithm":"labels","target":"Everything()","epsilon":0.0,"delta":0.0,'
        '"received":0.0,"units":[1],"candidate":null,"release":null,"key":0}'
    )
    rest = '"outcomes":["cat","dog",{"mark":"boundary"}],"codes":"AAIB","hits":[1]'
    text = f'{{"version":1,"kind":"sheet","first":{first},{rest}}}'
    assert entry_of(text) == batch_of([0, 2, 1], (1,), targets=(("Everything",),))
    assert batch_of([258], outcomes=tuple(range(300))).codes == bytes([2, 1]), "the low byte first"


plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from([*Mark, *Side])
)
outcome = st.recursive(plain, lambda inner: st.tuples(inner, inner), max_leaves=3)


@st.composite
def batches(draw):
    outcomes = draw(st.lists(outcome, min_size=1, max_size=6, unique_by=repr))
    outcomes += list(range(10**6, 10**6 + draw(st.sampled_from([0, 250, 256, 300]))))
    codes = draw(st.lists(st.integers(0, len(outcomes) - 1), min_size=1, max_size=30))
    hits = sorted(draw(st.sets(st.integers(0, len(codes) - 1))))
    units = tuple(draw(st.lists(st.integers(0, 2**130), min_size=1, max_size=3)))
    seq, key = draw(st.integers(1, 10**12)), draw(st.integers(0, 10**9))
    return batch_of(codes, hits, tuple(outcomes), seq, units, key=key, targets=((draw(st.text(max_size=5)),),))


@settings(deadline=None)
@given(batches())
def test_a_batch_survives_being_written_down(batch):
    text = text_of(batch)
    found = entry_of(text)
    assert found == batch
    assert repr(found) == repr(batch), "equal, and of other types"
    assert text_of(found) == text
    assert text.isascii()
    assert found.answers == batch.answers
    assert Sums.zero(len(batch.first.grains)).plus(found) == Sums.zero(len(batch.first.grains)).plus(batch)


def damaged(body, **parts):
    return json.dumps({**body, **parts})


DAMAGE = {
    "no codes": {"codes": ""},
    "a code too many": {"codes": b64encode(bytes([0, 3])).decode()},
    "not base64": {"codes": "????"},
    "base64 with a stranger in it": {"codes": "AA\nEC"},
    "base64 that is cut short": {"codes": "AAE"},
    "codes that are no text": {"codes": 7},
    "codes that are missing": {"codes": None},
    "hits out of order": {"hit_places": [2, 1]},
    "a hit twice": {"hit_places": [1, 1]},
    "a hit before the first": {"hit_places": [-1]},
    "a hit after the last": {"hit_places": [3]},
    "a hit that is text": {"hit_places": ["1"]},
    "hits that are a number": {"hit_places": 1},
    "no outcomes": {"outcomes": []},
    "too few outcomes": {"outcomes": ["cat"]},
    "outcomes of no kind": {"outcomes": [{"mark": "what"}] * 3},
    "no first": {"first": None},
    "an empty first": {"first": {}},
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_batch_is_refused(name):
    body = json.loads(text_of(batch_of([0, 1, 2], (1,))))
    with pytest.raises(tc.LedgerError):
        entry_of(damaged(body, **DAMAGE[name]))


def test_codes_of_two_bytes_that_lost_one_are_refused():
    body = json.loads(text_of(batch_of([0, 256], outcomes=tuple(range(300)))))
    codes = b64decode(body["codes"])
    with pytest.raises(tc.LedgerError):
        entry_of(damaged(body, codes=b64encode(codes[:-1]).decode()))


@pytest.mark.parametrize("field", ["first", "outcomes", "codes", "hit_places"])
def test_a_batch_without_one_of_its_parts_is_refused(field):
    body = json.loads(text_of(batch_of([0, 1, 2], (1,))))
    del body[field]
    with pytest.raises(tc.LedgerError):
        entry_of(json.dumps(body))


@pytest.mark.parametrize("where", ["memory", "file"])
def test_the_end_of_a_long_transcript_is_read_without_the_rest(tmp_path, monkeypatch, where):
    """Only the batches that hold the last answers are taken apart, and none for their number."""
    taken, plain = [], BatchEntry.answers.fget
    monkeypatch.setattr(BatchEntry, "answers", property(lambda batch: (taken.append(batch), plain(batch))[1]))
    with opened(":memory:" if where == "memory" else tmp_path / "ledger.db", 45) as session:
        written = list(session.ask_batch(requests("..x" * 12)))
        assert len(session.transcript) == 36
        assert not taken
        last = session.transcript.last(2)
        assert [answer.seq for answer in last] == [written[-1].seq - 1, written[-1].seq]
        assert len(taken) == 1
        assert len(session.transcript.last(100)) == 36
