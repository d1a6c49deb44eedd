"""Sessions that label: refused before the votes are drawn from, shared by threads, and broken calls stay spent."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.learning.sure_votes import EPSILON, MODES, TEACHERS, labelled, session_for, unanimous, untouched
from tests.sessions.leaks import chain, lets_out

import targetcharge as tc
from targetcharge.learning import recall


@pytest.fixture(params=["memory", "file"])
def where(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "ledger.db"


def drawn_from(monkeypatch):
    """Return a list that grows when votes are drawn from."""
    touched, rows = [], "targetcharge.learning.votes.Votes.rows"
    monkeypatch.setattr(rows, lambda *_: touched.append(1))
    return touched


@pytest.mark.parametrize("mode", MODES)
def test_a_session_with_alternatives_is_refused(monkeypatch, mode):
    touched = drawn_from(monkeypatch)
    session = tc.Session(
        None, tc.Budget(3.0, 1e-6), EPSILON, alternatives=[tc.NotPrior(prior=True), tc.NotPrior(prior=False)]
    )
    prior = {"prior": [0]} if mode == "prior" else {}
    with pytest.raises(tc.NotAllowed, match="alternatives"):
        labelled(unanimous([0]), session, mode=mode, **prior)
    assert touched == []
    assert list(session._ledger.entries()) == []


@pytest.mark.parametrize(("mode", "words"), [("boundary", "boundary wrapper"), ("twice", "renyi")])
def test_a_meter_that_has_no_price_for_the_mode_is_refused_by_name(monkeypatch, mode, words):
    touched = drawn_from(monkeypatch)
    session = session_for("prior", 5, meter="exact")
    with pytest.raises(tc.NotAllowed, match=words):
        labelled(unanimous([0]), session, mode=mode)
    assert touched == []
    assert untouched(session)


def test_a_larger_epsilon_than_was_declared_is_refused_before_the_votes_are_drawn_from(monkeypatch):
    touched = drawn_from(monkeypatch)
    for session, mode in [
        (session_for("prior", 5, meter="exact"), "plain"),
        (session_for("boundary", 5), "boundary"),
    ]:
        with pytest.raises(tc.NotAllowed, match=r"0\.3"):
            labelled(unanimous([0]), session, mode=mode, epsilon=0.3)
        assert untouched(session)
    assert touched == []


@pytest.mark.parametrize("options", [{"targets": [tc.NotPrior(None)]}, {"meter": "renyi"}, {}], ids=str)
def test_a_session_where_every_unit_has_a_meter_is_refused(monkeypatch, tmp_path, options):
    touched = drawn_from(monkeypatch)
    table = tmp_path / "visits.csv"
    table.write_text("patient,cost\n1,2\n2,3\n")
    opened = tc.open(
        table, "patient", tc.Budget(3.0, 1e-6), query_epsilon=EPSILON, charging="individual", **options
    )
    with opened as individual, pytest.raises(tc.NotAllowed, match="meter of its own"):
        labelled(unanimous([0]), individual._session, mode="plain")
    assert touched == []


def test_a_closed_session_is_refused(monkeypatch):
    touched = drawn_from(monkeypatch)
    session = session_for("plain", 5)
    session.close()
    with pytest.raises(tc.NotAllowed, match="closed"):
        labelled(unanimous([0]), session, mode="plain")
    assert touched == []


def test_threads_that_label_on_one_session_share_its_budget(where):
    with session_for("plain", 60, ledger=where) as session:
        left, found = session.meter.hits_left, {}

        def work(name):
            found[name] = labelled(unanimous([0, 1, 2] * 10), session, mode="plain", name=name)

        threads = [threading.Thread(target=work, args=(f"labels {each}",)) for each in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sum(len(labels.hits) for labels in found.values()) == session.meter.hits == left
        for name, labels in found.items():
            if labels.asked:
                assert recall(session, name, 30).codes.tolist() == labels.codes.tolist()
        seqs = [answer.seq for answer in session.transcript]
        assert len(set(seqs)) == len(seqs)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_draw_that_breaks_shows_nothing_of_the_votes_and_stays_spent(monkeypatch, where, error):
    def broken(_, counts, __):
        raise error(str(counts))

    monkeypatch.setattr("targetcharge.learning.votes.Aggregator.draw", broken)
    votes = np.array([[777_111, TEACHERS - 777_111]] * 5)
    with session_for("plain", 30, ledger=where) as session:
        held = session.meter.hits_left // 8
        with pytest.raises(tc.ComputationFailed if error is ValueError else error) as caught:
            labelled(votes, session, mode="plain")
        assert set(lets_out(caught.value, "777111")) == {"variable votes"}, "more than the caller's own argument"
        assert list(chain(caught.value)) == [caught.value]
        assert session.meter.hits == held > 1
        with pytest.raises(tc.InvalidParameter):
            recall(session)
