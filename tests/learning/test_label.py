"""Labels from votes: what they hold is what the ledger has, hits are what costs, and budgets end them cleanly."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from tests.learning.sure_votes import (
    EPSILON,
    MODES,
    TEACHERS,
    charged,
    check_against_the_ledger,
    labelled,
    session_for,
    tied,
    unanimous,
    untouched,
)

import targetcharge as tc
from targetcharge.learning import LOW, Labels, label, recall
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import Spent


@pytest.fixture(params=["memory", "file"])
def where(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


# What labels hold.


MECHANISMS = [
    (mechanism, mode)
    for mechanism in ("permute_and_flip", "exponential", "noisy_max")
    for mode in MODES
    if (mechanism, mode) != ("noisy_max", "boundary")
]


@pytest.mark.parametrize(("mechanism", "mode"), MECHANISMS)
def test_a_unanimous_vote_is_the_label(mechanism, mode):
    truth = np.arange(60) % 3
    session = session_for(mode, 80)
    prior = {"prior": truth} if mode == "prior" else {}
    labels = labelled(unanimous(truth), session, mechanism=mechanism, mode=mode, **prior)
    assert labels.complete
    assert labels.values.tolist() == truth.tolist()
    assert labels.rows.tolist() == list(range(60))
    assert not (labels.boundary | labels.low | labels.unanswered).any()
    assert charged(session) == ((60,) * 3 if mode == "plain" else (0, 0, 0))
    assert len(labels.hits) == session.meter.hits
    check_against_the_ledger(labels, session)


@pytest.mark.parametrize("mechanism", ["permute_and_flip", "exponential"])
def test_marks_are_the_hits_of_mode_boundary(where, mechanism):
    """Unanimous requests are free, tied ones are marked with probability 1/3."""
    votes = np.concatenate([unanimous([0, 1] * 30, classes=2), tied(60)])
    votes = votes[np.random.default_rng(1).permutation(120)]
    with session_for("boundary", 100, ledger=where) as session:
        labels = labelled(votes, session, mechanism=mechanism, classes=["cat", "dog"])
        assert labels.complete
        assert labels.hit.tolist() == labels.boundary.tolist()
        assert not labels.boundary[votes.max(axis=1) == TEACHERS].any()
        assert charged(session) == (len(labels.hits),) * 3 == (int(labels.boundary.sum()),) * 3
        assert len(labels.hits) > 0, "of 60 requests none was marked: less likely than 1e-10"
        check_against_the_ledger(labels, session)
        price = session.meter.quote(tc.Boundary(2), EPSILON)
        assert session.meter.totals.spent == len(labels.hits) * price.grains


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_labels_that_differ_from_the_prior_are_the_hits_of_mode_prior(where, meter):
    truth, prior = np.arange(60) % 3, np.arange(60) % 5 % 3
    with session_for("prior", 60, meter=meter, ledger=where) as session:
        labels = labelled(unanimous(truth), session, mode="prior", prior=prior)
        assert labels.complete
        assert labels.hit.tolist() == (truth != prior).tolist()
        assert charged(session) == (len(labels.hits),) * 3 == (int((truth != prior).sum()),) * 3
        check_against_the_ledger(labels, session)


def test_a_prior_is_given_by_the_names_of_classes_and_low_agreement_differs_from_all():
    votes = np.concatenate([unanimous([0, 1, 2]), np.full((2, 3), [TEACHERS - 2, 1, 1])])
    prior = np.array(["c", "b", "c", "a", "b"])
    session = session_for("prior", 10)
    labels = labelled(votes, session, mode="prior", prior=prior, classes=["a", "b", "c"], threshold=TEACHERS * 2)
    assert labels.low.all()
    assert len(labels.hits) == 5
    session = session_for("prior", 10)
    labels = labelled(votes, session, mode="prior", prior=prior, classes=["a", "b", "c"], threshold=10)
    assert labels.hit.tolist() == [True, False, False, False, True]
    assert labels.values.tolist() == ["a", "b", "c", "a", "a"]


def test_disagreements_are_the_hits_of_mode_twice(where):
    votes = np.concatenate([unanimous([0, 1] * 30, classes=2), tied(60)])
    with session_for("twice", 90, ledger=where) as session:
        labels = labelled(votes, session, mode="twice")
        assert labels.complete
        assert labels.hit.tolist() == labels.boundary.tolist()
        assert not labels.hit[:60].any()
        assert 0 < len(labels.hits) < 60
        assert charged(session) == (len(labels.hits),) * 3
        check_against_the_ledger(labels, session)


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_everything_is_a_hit_of_mode_plain(where, meter):
    with session_for("plain", 40, meter=meter, ledger=where) as session:
        left = session.meter.hits_left
        labels = labelled(unanimous([2] * 30), session, mode="plain")
        assert labels.hit.all()
        assert charged(session) == (30, 30, 30)
        assert session.meter.hits_left == left - 30
        check_against_the_ledger(labels, session)


@pytest.mark.parametrize("mode", MODES)
def test_too_few_that_agree_are_told_and_unanimous_votes_are_not(mode):
    votes = np.concatenate([unanimous([0, 1], classes=2), tied(20)])
    prior = {"prior": [0] * 22} if mode == "prior" else {}
    session = session_for(mode, 60)
    labels = labelled(votes, session, mode=mode, threshold=0.75 * TEACHERS, **prior)
    assert labels.low.tolist() == [False] * 2 + [True] * 20
    assert labels.values.tolist() == [0, 1]
    assert len(labels.hits) == {"boundary": 0, "twice": 0, "prior": 21, "plain": 22}[mode]
    check_against_the_ledger(labels, session)


def test_a_threshold_between_two_counts_tells_them_apart():
    """With noise far smaller than the distance."""
    votes = np.array([[700_000, 300_000], [600_000, 400_000]])
    labels = labelled(votes, session_for("boundary", 5), threshold=650_000.5)
    assert labels.low.tolist() == [False, True]


@pytest.mark.parametrize(
    "classes",
    [
        ["a", "b", "c"],
        (7, 8, 9),
        [1, "a", None],
        [(1, 2), (3,), ()],
        [b"\xff", "a", 1],
        [0.5, 1, 2],
        range(3),
        3,
        np.array(["x", "y", "z"]),
        ["a\0", "a", "ü"],
        [2**70, -1, 0],
        [True, "True", 0],
    ],
    ids=repr,
)
def test_classes_have_any_names(where, classes):
    names = list(range(3)) if isinstance(classes, int) else list(classes)
    truth = [2, 0, 1, 1]
    with session_for("boundary", 5, ledger=where) as session:
        labels = labelled(unanimous(truth), session, classes=classes)
        found = recall(session)
    for each in (labels, found):
        assert each.values.ndim == 1
        assert each.values.tolist() == [names[place] for place in truth]
        assert {type(name) for name in each.classes}.isdisjoint({np.str_, np.int64})
    assert repr(found.classes) == repr(labels.classes)


@pytest.mark.parametrize("classes", [255, 256, 257, 600])
def test_more_classes_than_a_byte_can_tell(where, classes):
    truth = np.arange(classes)[::-7]
    with session_for("plain", 200, ledger=where) as session:
        labels = labelled(unanimous(truth, classes), session, mode="plain")
        assert labels.values.tolist() == truth.tolist()
        assert recall(session).values.tolist() == truth.tolist()


@pytest.mark.parametrize(
    "dtype", ["i1", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8", "list", "fortran", "strided"]
)
def test_votes_of_any_whole_numbers(dtype):
    votes = np.array([[100, 0], [0, 100], [1, 99]])
    given = {"list": votes.tolist(), "fortran": np.asfortranarray(votes), "strided": np.repeat(votes, 2, 0)[::2]}
    kept = np.array(given.get(dtype, votes))
    found = given[dtype] if dtype in given else votes.astype(dtype)
    labels = labelled(found, session_for("plain", 5, epsilon=1.0), teachers=100, epsilon=1.0, mode="plain")
    assert labels.values.tolist() == [0, 1, 1]
    assert (np.array(found) == kept).all()


def test_no_requests_are_complete_at_once(where):
    with session_for("boundary", 5, ledger=where) as session:
        labels = labelled(np.empty((0, 3), dtype=int), session)
        assert labels.complete
        assert (len(labels), labels.asked, len(labels.hits), labels.rows.tolist(), labels.values.tolist()) == (
            0,
            0,
            0,
            [],
            [],
        )
        assert labels.stopped == ""
        assert untouched(session)


def test_nothing_of_the_votes_is_in_what_labels_say():
    votes = np.array([[777_111, TEACHERS - 777_111]] * 3)
    labels = labelled(votes, session_for("boundary", 5))
    assert "777" not in repr(labels) + str(vars(labels))
    assert repr(labels).startswith("<labels: 3 of 3 requests asked")


# The end of the budget.


@pytest.mark.parametrize("hits", range(1, 41))
def test_a_budget_for_so_many_hits_labels_exactly_so_many(hits):
    """Every second request costs: the last covered one is answered, the request after it is not."""
    truth = np.zeros(300, dtype=int)
    prior = np.arange(300) % 2
    session = session_for("prior", hits)
    left = session.meter.hits_left
    assert hits <= left <= hits + 2
    labels = labelled(unanimous(truth), session, mode="prior", prior=prior)
    assert not labels.complete
    assert charged(session) == (left,) * 3
    assert len(labels.hits) == left
    assert labels.asked == 2 * left
    assert labels.hit[labels.asked - 1]
    assert labels.unanswered.tolist() == [False] * (2 * left) + [True] * (300 - 2 * left)
    assert "does not cover it" in labels.stopped
    assert isinstance(labels.refusal, tc.BudgetSpent)
    assert 0 <= labels.refusal.left < labels.refusal.asked
    assert session.meter.hits_left == 0
    check_against_the_ledger(labels, session)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("hits", [1, 3, 20])
def test_a_budget_that_is_spent_on_the_way_ends_the_call_at_the_last_hit(where, mode, hits):
    prior = {"prior": np.zeros(400)} if mode == "prior" else {}
    with session_for(mode, hits, ledger=where) as session:
        left = session.meter.hits_left
        labels = labelled(tied(400), session, mode=mode, **prior)
        assert not labels.complete, "of 400 requests fewer hit: less likely than 1e-9"
        assert len(labels.hits) == left
        assert charged(session) == (left,) * 3
        assert labels.hit[labels.asked - 1]
        assert labels.unanswered[labels.asked :].all()
        assert not labels.unanswered[: labels.asked].any()
        check_against_the_ledger(labels, session)
        assert not any(isinstance(entry, Spent) for entry in session._ledger.entries())
        again = labelled(tied(400), session, mode=mode, start=labels, **prior)
        assert (again.asked, len(again.hits), again.stopped != "") == (labels.asked, left, True)


def test_a_budget_that_was_spent_before_labels_nothing(where):
    with session_for("plain", 2, ledger=where) as session:
        labelled(unanimous([0] * 50), session, mode="plain")
        labels = labelled(unanimous([0] * 50), session, mode="plain", name="more")
        assert (labels.asked, len(labels.hits), labels.unanswered.all(), labels.complete) == (0, 0, True, False)
        assert labels.stopped


def test_hits_at_the_very_end_of_the_budget_and_of_the_requests_are_complete():
    session = session_for("plain", 10)
    labels = labelled(unanimous([0] * session.meter.hits_left), session, mode="plain")
    assert labels.complete
    assert labels.stopped == ""
    assert session.meter.hits_left == 0


def test_labels_that_lack_one_request_are_not_complete():
    session = session_for("plain", 10)
    labels = labelled(unanimous([0] * (session.meter.hits_left + 1)), session, mode="plain")
    assert (labels.complete, len(labels) - labels.asked, labels.stopped != "") == (False, 1, True)


# Many requests.


def test_three_hundred_thousand_requests_take_bounded_memory_and_no_object_each(monkeypatch):
    made = []
    create = Answer.__init__
    monkeypatch.setattr(
        Answer, "__init__", lambda self, *parts, **more: made.append(1) or create(self, *parts, **more)
    )
    count = 300_000
    votes = np.zeros((count, 10), dtype=np.int32)
    votes[np.arange(count), np.arange(count) % 10] = 250
    session = session_for("boundary", 50)
    tracemalloc.start()
    before = time.process_time()
    labels = label(votes, session, teachers=250, epsilon=EPSILON)
    seconds = time.process_time() - before
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert labels.complete
    assert len(made) < 1000, "an object for each request"
    assert most < 40 * 2**20, f"{most / 2**20:.0f} MB at once"
    assert kept < 12 * count + 2**20, f"{kept / count:.0f} bytes for each request"
    assert seconds < 60
    assert (labels.codes[~labels.boundary] == (np.arange(count) % 10)[~labels.boundary]).mean() > 0.999


def test_of_two_outcomes_of_a_request_the_later_counts():
    first = Answer(None, True, 1.0, 1, "labels", grains=(1,), key=0)
    outcomes = ("a", "b", LOW, tc.BOUNDARY)
    early = BatchEntry.of(first, outcomes, np.array([3, 3, 0, 1, 1]), np.array([0, 1]))
    late = BatchEntry.of(first, outcomes, np.array([0, 3]), np.array([1]))
    labels = Labels.nothing(("a", "b"), 6).with_entry(early).with_entry(late)
    assert labels.codes.tolist() == [0, 3, 0, 1, 1, -1]
    assert labels.hit.tolist() == [False, True, False, False, False, False]
    assert labels.asked == 5
