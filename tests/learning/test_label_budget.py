"""Labels paid from a budget, without a session: ε follows from the budget and the number of teachers."""

from __future__ import annotations

import numpy as np
import pytest

import targetcharge as tc
from targetcharge.learning import label, recall
from targetcharge.learning.opening import Payer
from targetcharge.ledger import terms_at

BUDGET = tc.Budget(3.157, 1e-5)
CLEAR = np.array([[250, 0], [0, 250]] * 50)


def test_votes_and_a_budget_are_enough():
    labels = label(CLEAR, budget=BUDGET)
    assert labels.complete
    assert labels.values.tolist() == [0, 1] * 50


@pytest.mark.parametrize("mode", ["boundary", "prior", "twice", "plain"])
def test_every_mode_gets_a_meter_that_prices_it(mode, tmp_path):
    prior = {"prior": [0, 1] * 10} if mode == "prior" else {}
    labels = label(CLEAR[:20], budget=BUDGET, mode=mode, ledger=tmp_path / "ledger.db", **prior)
    assert labels.values.tolist() == [0, 1] * 10
    assert terms_at(tmp_path / "ledger.db").meter == ("renyi" if mode == "boundary" else "exact")


def test_the_budget_is_kept_by_the_ledger(tmp_path):
    doubtful = np.tile([126, 124], (2_000, 1))
    first = label(doubtful, budget=BUDGET, ledger=tmp_path / "ledger.db")
    assert not first.complete
    assert len(label(doubtful, budget=BUDGET, ledger=tmp_path / "ledger.db", name="again").hits) == 0
    with tc.Session(
        None, BUDGET, 0.08, meter="renyi", targets=[tc.Boundary(2)], ledger=tmp_path / "ledger.db"
    ) as session:
        assert session.meter.hits == len(first.hits)
        assert recall(session, requests=2_000).codes.tolist() == first.codes.tolist()


def test_the_epsilon_is_the_best_for_the_teachers_or_covers_ten_hits():
    assert Payer.of(None, BUDGET, None, ":memory:").epsilon_of(tc.Boundary(2), 250) == 0.08
    assert Payer.of(None, BUDGET, 0.03, ":memory:").epsilon_of(tc.Boundary(2), 250) == 0.03
    assert Payer.of(None, BUDGET, None, ":memory:").epsilon_of(tc.NotPrior(None), 2000) == 0.01
    few = Payer.of(None, BUDGET, None, ":memory:")
    for target in (tc.NotPrior(None), tc.Everything()):
        with few.opened(target, few.epsilon_of(target, 10)) as session:
            assert session.meter.hits_left >= 10


def test_the_number_of_teachers_is_that_of_the_first_row():
    with pytest.raises(tc.InvalidParameter, match="teachers=250: row 1 does not"):
        label([[250, 0], [249, 0]], budget=BUDGET)
    for row in ([0.5, 0.25], [float("nan"), 1], [float("inf"), 1]):
        with pytest.raises(tc.InvalidParameter, match="whole numbers: row 0"):
            label([row], budget=BUDGET)
    with pytest.raises(tc.InvalidParameter, match="teachers is None; it must be given"):
        label(np.empty((0, 2)), budget=BUDGET)


def test_it_is_said_who_pays(tmp_path):
    session = tc.Session(None, BUDGET, 0.08, meter="renyi", targets=[tc.Boundary(2)])
    for words, given in {
        "budget is None": {},
        "budget is Budget": {"session": session, "budget": BUDGET, "epsilon": 0.08},
        "ledger is": {"session": session, "ledger": tmp_path / "ledger.db", "epsilon": 0.08},
        "epsilon is None": {"session": session},
        "budget is 3.0": {"budget": 3.0},
        "epsilon is 1.0; it must be at most": {"budget": BUDGET, "epsilon": 1.0},
    }.items():
        with pytest.raises(tc.InvalidParameter, match=words):
            label(CLEAR, **given)
    assert session.meter.hits == 0
    assert not (tmp_path / "ledger.db").exists()


def test_a_caution_is_that_of_the_session(monkeypatch):
    session = tc.Session(None, BUDGET, 0.08, meter="renyi", targets=[tc.Boundary(3)])
    labels = label(CLEAR, session, epsilon=0.08)
    assert labels.complete
    assert session.transcript.last(1)[0].targets == (("Boundary", 3.0),)
    monkeypatch.setattr("targetcharge.learning.votes.Votes.rows", None)
    with pytest.raises(tc.InvalidParameter, match=r"caution is 2; it must be 3, as in the targets"):
        label(CLEAR, session, epsilon=0.08, caution=2)
    assert len(session.transcript) == len(CLEAR)
