"""Labelling that goes on: from a request, from earlier labels, and from what the ledger has after a crash."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.learning import label_children
from tests.learning.label_children import PRIOR, TRUTH, labelled
from tests.learning.sure_votes import EPSILON, TEACHERS, session_for, unanimous
from tests.ledger.processes import child

import targetcharge as tc
from targetcharge.learning import Labels, label, recall
from targetcharge.ledger import MemoryLedger, SqliteLedger
from targetcharge.ledger.entries import Spent
from targetcharge.ledger.sqlite import verify
from targetcharge.sessions.batch import MOST_ANSWERS, BatchCall

HITS = (TRUTH != PRIOR).tolist()


@pytest.fixture(params=["memory", "file"])
def where(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


def abandoned(session):
    return sum(entry.count for entry in session._ledger.entries() if isinstance(entry, Spent))


def same(one, other):
    """Return whether two labels are the same."""
    return (
        one.classes == other.classes
        and one.asked == other.asked
        and one.codes.tolist() == other.codes.tolist()
        and one.hit.tolist() == other.hit.tolist()
    )


def is_all(labels):
    return labels.complete and labels.codes.tolist() == TRUTH.tolist() and labels.hit.tolist() == HITS


def times_asked(session, name="labels"):
    """Return how often each request was answered under a name."""
    return Counter(answer.key for answer in session.transcript if answer.algorithm == name)


def once(requests):
    return dict.fromkeys(range(requests), 1)


# From a request, or from earlier labels.


@pytest.mark.parametrize("start", [0, 1, 5, 399, 400])
def test_labelling_begins_at_a_request(where, start):
    with session_for("prior", 120, ledger=where) as session:
        labels = labelled(session, start=start)
        assert labels.complete
        assert labels.codes.tolist() == [-1] * start + TRUTH[start:].tolist()
        assert labels.hit.tolist() == [False] * start + HITS[start:]
        assert labels.unanswered.sum() == start
        assert session.meter.hits == sum(HITS[start:])
        assert [answer.key for answer in session.transcript] == list(range(start, 400))


@pytest.mark.parametrize("budgets", [(1, 1, 120), (7, 120), (20, 1, 3, 120)])
def test_labels_go_on_in_a_further_session(budgets):
    """A budget after another: each request is answered once, and all labels come together."""
    labels, keys, hits = 0, [], 0
    for hits_of_this in budgets:
        session = session_for("prior", hits_of_this)
        before = labels
        kept = None if isinstance(before, int) else (before.codes.copy(), before.hit.copy(), before.asked)
        labels = labelled(session, start=before)
        if kept is not None:
            assert before.codes.tolist() == kept[0].tolist(), "the earlier labels were changed"
            assert (before.hit.tolist(), before.asked) == (kept[1].tolist(), kept[2])
        keys += [answer.key for answer in session.transcript]
        hits += session.meter.hits
    assert keys == list(range(400))
    assert is_all(labels)
    assert hits == len(labels.hits)
    assert labels.stopped == ""


def test_labels_that_are_complete_need_nothing_more(where):
    with session_for("prior", 120, ledger=where) as session:
        labels = labelled(session)
        again = labelled(session, start=labels)
        assert same(labels, again)
        assert times_asked(session) == once(400)


@pytest.mark.parametrize("requests", [10, 50, 100, 399])
def test_labels_of_a_part_of_the_requests_go_on_to_all(requests):
    session = session_for("prior", 120)
    votes, prior = unanimous(TRUTH), PRIOR
    options = {"teachers": TEACHERS, "epsilon": EPSILON, "mode": "prior"}
    part = label(votes[:requests], session, prior=prior[:requests], **options)
    assert part.complete
    assert is_all(labelled(session, start=part))
    assert times_asked(session) == once(400)


def test_labels_that_stopped_early_go_on_with_fewer_requests():
    part = labelled(session_for("prior", 2))
    assert 0 < part.asked < 50
    session = session_for("prior", 120)
    rest = label(
        unanimous(TRUTH[:50]),
        session,
        teachers=TEACHERS,
        epsilon=EPSILON,
        mode="prior",
        prior=PRIOR[:50],
        start=part,
    )
    assert rest.complete
    assert rest.codes.tolist() == TRUTH[:50].tolist()
    assert [answer.key for answer in session.transcript] == list(range(part.asked, 50))


# From the ledger.


def test_what_is_recalled_is_what_was_returned(where):
    with session_for("prior", 20, ledger=where) as session:
        labels = labelled(session)
        assert not labels.complete
        assert same(recall(session, requests=400), labels)
        found = recall(session)
        assert (len(found), found.complete, found.asked) == (labels.asked, True, labels.asked)
        assert found.codes.tolist() == labels.codes[: labels.asked].tolist()
        assert len(found.hits) == len(labels.hits) == session.meter.hits


def test_labels_are_recalled_from_a_file_that_was_opened_again(tmp_path):
    path = tmp_path / "ledger.db"
    with session_for("prior", 20, ledger=path) as session:
        labels = labelled(session)
    with session_for("prior", 20, ledger=path) as session:
        found = recall(session, "labels", 400)
        assert same(found, labels)
        assert found.classes == (0, 1, 2)
        assert labelled(session, start=found).stopped
        assert times_asked(session) == once(labels.asked)


@pytest.mark.parametrize("requests", [-1, 0, 1, 42, True, 400.0, "400", float("nan"), [400]], ids=repr)
def test_fewer_requests_than_were_answered_are_refused(requests):
    session = session_for("prior", 120)
    label(unanimous(TRUTH[:43]), session, teachers=TEACHERS, epsilon=EPSILON, mode="prior", prior=PRIOR[:43])
    with pytest.raises(tc.InvalidParameter, match="requests is"):
        recall(session, requests=requests)
    assert len(recall(session, requests=43)) == 43
    assert len(recall(session, requests=np.int64(44))) == 44


def test_two_names_on_one_ledger_are_kept_apart(where):
    with session_for("prior", 250, ledger=where) as session:
        options = {"teachers": TEACHERS, "epsilon": EPSILON, "mode": "prior", "prior": PRIOR[:100]}
        session.test(tc.private(EPSILON, name="labels")(lambda _: False))
        one = label(unanimous(TRUTH[:100]), session, **options)
        two = label(unanimous(2 - TRUTH[:100]), session, name="others", **options)
        more = labelled(session, start=one)
        assert same(recall(session), more)
        assert same(recall(session, "others"), two)
        assert len(more.hits) + len(two.hits) == session.meter.hits
        assert times_asked(session, "others") == once(100)


def test_one_name_for_two_sets_of_classes_is_refused():
    session = session_for("plain", 60)
    options = {"teachers": TEACHERS, "epsilon": EPSILON, "mode": "plain"}
    label(unanimous([0, 1]), session, **options)
    label(unanimous([0, 1, 2]), session, classes=["a", "b", "c"], start=2, **options)
    with pytest.raises(tc.InvalidParameter, match="only one set of classes"):
        recall(session)


def test_what_began_anew_under_one_name_leaves_out_what_was_before():
    """Other requests, fewer of them and other classes; then it goes on, and some are asked twice."""
    session = session_for("prior", 250)
    options = {"teachers": TEACHERS, "epsilon": EPSILON, "mode": "prior"}
    label(unanimous(TRUTH[:100]), session, prior=PRIOR[:100], **options)
    label(unanimous(2 - TRUTH[:50]), session, prior=2 - TRUTH[:50], **options)
    found = recall(session, requests=400)
    assert (found.asked, len(found.hits)) == (50, 0)
    assert found.codes[:51].tolist() == [*(2 - TRUTH[:50]).tolist(), -1]
    label(unanimous(TRUTH[:60]), session, prior=PRIOR[:60], start=40, **options)
    found = recall(session)
    assert found.codes.tolist() == [*(2 - TRUTH[:40]).tolist(), *TRUTH[40:60].tolist()]
    assert found.hit.tolist() == [False] * 40 + HITS[40:60]


def test_a_closed_session_recalls_nothing_from_its_file(tmp_path):
    session = session_for("prior", 120, ledger=tmp_path / "ledger.db")
    labelled(session)
    session.close()
    with pytest.raises(tc.TargetChargeError):
        recall(session)


# After Ctrl-C.


@pytest.mark.parametrize("entries", [0, 1, 3])
@pytest.mark.parametrize("moment", ["before an entry", "in a draw", "in settling", "after an entry"])
def test_labelling_that_was_interrupted_goes_on_and_answers_each_request_once(monkeypatch, where, entries, moment):
    count = 0
    owner, name = {
        "before an entry": (BatchCall, "publish"),
        "in a draw": (BatchCall, "_entries"),
        "in settling": (MemoryLedger if where == ":memory:" else SqliteLedger, "settle"),
        "after an entry": (BatchCall, "_published"),
    }[moment]
    original = getattr(owner, name)

    def interrupted(*arguments, **more):
        nonlocal count
        count += 1
        if count == entries + 1:
            raise KeyboardInterrupt
        return original(*arguments, **more)

    with session_for("prior", 130, ledger=where) as session:
        monkeypatch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            labelled(session)
        monkeypatch.undo()
        published = list(session.transcript.batches())
        assert len(published) == entries + (moment == "after an entry")
        labels = recall(session, requests=400) if published else 0
        done = 0 if labels == 0 else labels.asked
        assert done == sum(map(len, published))
        rest = labelled(session, start=labels)
        assert is_all(rest)
        assert times_asked(session) == once(400)
        assert same(recall(session), rest)
        held = abandoned(session)
        assert session.meter.hits == sum(HITS) + held
        assert (held > 0) == (moment in {"in a draw", "in settling"})


def test_an_interrupt_between_two_blocks_of_draws_keeps_the_first(monkeypatch, where):
    """The votes are drawn from in blocks: Ctrl-C in the second one."""
    requests = MOST_ANSWERS + 100
    truth, rows = np.arange(requests) % 3, "targetcharge.learning.votes.Votes.rows"
    drawn = []

    def interrupting(self, first, last):
        drawn.append((first, last))
        if first >= MOST_ANSWERS:
            raise KeyboardInterrupt
        return np.asarray(self)[first:last].astype(np.int64)

    options = {"teachers": TEACHERS, "epsilon": EPSILON, "mode": "prior", "prior": truth}
    with session_for("prior", 20, ledger=where) as session:
        with monkeypatch.context() as patched:
            patched.setattr(rows, interrupting)
            with pytest.raises(KeyboardInterrupt):
                label(unanimous(truth), session, **options)
        assert drawn[0][0] == 0
        found = recall(session, requests=requests)
        assert found.asked == MOST_ANSWERS
        labels = label(unanimous(truth), session, start=found, **options)
        assert labels.complete
        assert labels.codes.tolist() == truth.tolist()
        assert times_asked(session) == once(requests)


# After kill -9, and in races.


@pytest.mark.parametrize("entries", [1, 2, 5])
def test_labelling_goes_on_after_kill_9(tmp_path, entries):
    path = tmp_path / "ledger.db"
    with child(label_children.is_killed, path, 130, entries) as process:
        told = process.heard()
        assert process.ends() == -9
    assert len(told) == entries
    with session_for("prior", 130, ledger=path) as session:
        labels = recall(session, requests=400)
        assert labels.asked == sum(len(codes) for _, codes, _ in told)
        assert labels.codes[: labels.asked].tolist() == [code for _, codes, _ in told for code in codes]
        assert np.flatnonzero(labels.hit).tolist() == [first + hit for first, _, hits in told for hit in hits]
        rest = labelled(session, start=labels)
        assert is_all(rest)
        assert times_asked(session) == once(400)
        assert session.meter.hits == sum(HITS) + abandoned(session)
        assert 0 < abandoned(session) <= 32
    verify(path)


@pytest.mark.parametrize("hits", [7, 60])
def test_processes_that_label_on_one_file_share_its_budget_and_each_has_its_own_labels(tmp_path, hits):
    path = tmp_path / "ledger.db"
    with session_for("prior", hits, ledger=path) as session:
        left = session.meter.hits_left
    names = ["one", "two"]
    with (
        child(label_children.races, path, hits, "one") as one,
        child(label_children.races, path, hits, "two") as two,
    ):
        processes = one, two
        assert [process.hear() for process in processes] == ["opened"] * 2
        for process in processes:
            process.tell("go")
        told = dict(zip(names, [process.hear(60) for process in processes], strict=True))
        assert [process.hear() for process in processes] == ["closed"] * 2
    with session_for("prior", hits, ledger=path) as session:
        counted = 0
        for name, (codes, hit, asked) in told.items():
            counted += sum(hit)
            assert times_asked(session, name) == once(asked)
            if asked:
                found = recall(session, name, 400)
                assert (found.codes.tolist(), found.hit.tolist(), found.asked) == (codes, hit, asked)
            assert codes == TRUTH[:asked].tolist() + [-1] * (400 - asked)
        assert session.meter.hits == counted == left
        assert (session.meter.hits_left, abandoned(session)) == (0, 0)
    verify(path)


def test_labels_of_nothing_are_a_start():
    session = session_for("prior", 130)
    assert is_all(labelled(session, start=Labels.nothing((0, 1, 2), 400)))
    assert is_all(labelled(session_for("prior", 130), start=Labels.nothing((0, 1, 2), 0)))
