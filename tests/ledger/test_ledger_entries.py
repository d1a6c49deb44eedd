"""Entries: the same after writing and reading, whatever was published."""

import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import targetcharge as tc
from targetcharge.ledger import Answer, Pending, Terms
from targetcharge.ledger.entries import (
    DeltaSpent,
    Restored,
    Spent,
    entry_of,
    text_of,
)
from targetcharge.ledger.state import Sums, link
from targetcharge.outcomes import Mark, Side, from_plain, publishable, same, to_plain

simple = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**1000, max_value=2**1100)
    | st.floats(allow_nan=False)
    | st.text()
    | st.text(st.characters(categories=["Cs", "Lu"]))
    | st.binary()
    | st.sampled_from([*Side, *Mark])
)
outcomes = st.recursive(simple, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=8)
units = st.lists(st.integers(0, 2**140), min_size=1, max_size=3).map(tuple)
positive = st.floats(min_value=0, allow_infinity=False, allow_nan=False)

answers = st.builds(
    Answer,
    outcome=outcomes,
    hit=st.booleans(),
    price=positive,
    seq=st.integers(1, 2**62),
    algorithm=st.text(),
    targets=st.lists(st.lists(simple, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple).map(publishable),
    epsilon=positive,
    delta=positive,
    received=positive,
    grains=units,
    candidate=st.none() | st.integers(0, 100),
    release=st.none() | st.integers(1, 2**62),
)
entries = (
    answers
    | st.builds(Spent, st.sampled_from(["failed", "abandoned"]), units, st.integers(0, 1000), st.text())
    | st.builds(DeltaSpent, st.integers(0, 2**130))
    | st.builds(Restored, st.integers(0, 2**62))
)


@given(outcomes)
def test_an_outcome_is_the_same_after_writing_and_reading(value):
    outcome = publishable(value)
    assert same(from_plain(json.loads(json.dumps(to_plain(outcome)))), outcome)


@given(outcomes, outcomes)
def test_different_outcomes_are_written_differently(first, second):
    first, second = publishable(first), publishable(second)
    written = [json.dumps(to_plain(value)) for value in (first, second)]
    assert (written[0] == written[1]) == same(first, second)


def test_halves_of_a_character_stay_halves():
    halves, whole = "\ud800\udc00", "\U00010000"
    assert json.dumps(to_plain(halves)) != json.dumps(to_plain(whole))
    for value in (halves, whole, "\udfff", ("a\ud800",)):
        assert from_plain(json.loads(json.dumps(to_plain(value)))) == value


@pytest.mark.parametrize("value", [-0.0, 5e-324, math.inf, -math.inf, 0.1, 1e308])
def test_floats_are_kept_to_the_last_bit(value):
    found = from_plain(json.loads(json.dumps(to_plain(value))))
    assert (found, math.copysign(1, found)) == (value, math.copysign(1, value))


@given(entries)
def test_an_entry_is_the_same_after_writing_and_reading(entry):
    text = text_of(entry)
    assert text.isascii()
    assert "\n" not in text
    found = entry_of(text)
    assert found == entry
    assert type(found) is type(entry)
    assert text_of(found) == text


@given(outcomes)
def test_a_pending_outcome_is_the_same_after_writing_and_reading(value):
    pending = Pending(3, publishable(value), "counting", 0.1, 1e-9)
    found = Pending.of(pending.text())
    assert found == pending
    assert same(found.outcome, pending.outcome)
    assert "outcome" not in repr(found)


@given(
    st.lists(
        entries.filter(
            lambda entry: len(getattr(entry, "grains", (0,)) if not isinstance(entry, DeltaSpent) else (0,)) == 1
        ),
        max_size=8,
    )
)
def test_sums_are_what_the_entries_charge(found):
    sums = Sums.zero(1)
    for entry in found:
        sums = sums.plus(entry)
    charged = [entry for entry in found if isinstance(entry, Spent) or (isinstance(entry, Answer) and entry.hit)]
    assert sums.spent == (sum(entry.grains[0] for entry in charged),)
    assert sums.delta == sum(entry.grains for entry in found if isinstance(entry, DeltaSpent))
    counted = [(entry.count if isinstance(entry, Spent) else 1) for entry in charged if entry.grains[0]]
    assert sums.hits == (sum(counted),)


def test_entries_say_their_version_and_kind():
    body = json.loads(text_of(DeltaSpent(5)))
    assert body == {"version": 2, "kind": "delta", "grains": 5}


def test_a_newer_version_is_not_read():
    text = text_of(DeltaSpent(5)).replace('"version":2', '"version":3')
    with pytest.raises(tc.LedgerError, match="newer version of targetcharge: upgrade"):
        entry_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "null",
        "[]",
        "5",
        "{}",
        '{"version":1}',
        '{"version":1,"kind":"Answer"}',
        '{"version":1,"kind":"os.system","command":"true"}',
        '{"version":1,"kind":"delta"}',
        '{"version":1,"kind":"delta","grains":1,"more":2}',
        '{"version":1,"kind":"spent","why":"failed","units":5,"count":1}',
        '{"version":1,"kind":["delta"],"grains":1}',
        '{"version":2,"kind":"spent","why":"failed","grains":5,"count":1}',
        '{"version":1,"kind":"answer","outcome":1}',
    ],
)
def test_a_text_that_holds_no_entry_is_said_to_be_damaged(text):
    with pytest.raises(tc.LedgerError, match="damaged or changed"):
        entry_of(text)


def test_a_hash_covers_everything_before_it():
    first, second = text_of(DeltaSpent(1)), text_of(DeltaSpent(2))
    assert link(b"", first) == hashlib.sha256(first.encode()).digest()
    assert link(link(b"", first), second) != link(link(b"", second), first)
    assert link(link(b"", first), second) != link(b"", second)


@given(st.floats(min_value=0.01, max_value=100), st.integers(1, 2**140), positive)
def test_terms_are_the_same_after_writing_and_reading(epsilon, capacity, order):
    terms = Terms(
        epsilon,
        1e-6,
        "renyi",
        0.01,
        0.0,
        (("NotPrior",), ("Between", 1, 21, 3), ("QTarget", 0.4)),
        (),
        order,
        (capacity,),
        (1,),
    )
    assert Terms.of(json.loads(json.dumps(terms.plain()))) == terms
    assert terms.differences(terms) == []
