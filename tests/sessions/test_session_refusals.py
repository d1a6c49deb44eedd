"""Refusals come before the data is touched, and depend on nothing but what was published and declared."""

from __future__ import annotations

import pytest
from tests.sessions.scripted import computes, gives, opened

import targetcharge as tc


class Watched:
    """Data that notes every access."""

    def __init__(self):
        object.__setattr__(self, "accesses", [])

    def __getattribute__(self, name):
        if name not in {"accesses", "__class__"}:
            object.__getattribute__(self, "accesses").append(name)
        return object.__getattribute__(self, name)

    def __len__(self):
        self.accesses.append("len")
        return 3

    def __iter__(self):
        self.accesses.append("iter")
        return iter([1, 2, 3])

    def __bool__(self):
        self.accesses.append("bool")
        return True

    def __eq__(self, other):
        self.accesses.append("eq")
        return self is other

    __hash__ = None


SIZE = computes(len)
REFUSED = {
    "ask": lambda session: session.ask(SIZE, tc.NotPrior(0)),
    "test": lambda session: session.test(SIZE),
    "ask_prior": lambda session: session.ask_prior(SIZE, 0),
    "release": lambda session: session.release(SIZE, {3}),
    "select": lambda session: session.select([SIZE]),
    "delta": lambda session: session.test(computes(len, delta=1e-7)),
    "larger epsilon": lambda session: session.test(computes(len, epsilon=0.2)),
    "unsupported": lambda session: session.ask(SIZE, tc.Boundary()),
    "no algorithm": lambda session: session.test(len),
    "bad prior": lambda session: session.ask_prior(SIZE, {}),
    "bad k": lambda session: session.select([SIZE], k=2),
    "bad condition": lambda session: session.release(SIZE, 5),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_a_refusal_comes_before_the_data_is_touched(call):
    data = Watched()
    session = opened(1, data=data)
    session.test(gives(True))
    before = session.meter.totals
    with pytest.raises((tc.Refused, tc.InvalidParameter)):
        call(session)
    assert data.accesses == []
    assert session.meter.totals == before
    assert len(session.transcript) == 1
    session.close()


def test_opening_reading_and_showing_a_session_does_not_touch_the_data():
    data = Watched()
    with opened(data=data) as session:
        assert "session" in repr(session)
        assert session.meter.hits == len(session.transcript) == len(session.pending) == 0
    assert data.accesses == []


def refusals(data, outcomes):
    """Return what happened to a fixed list of questions on some data whose algorithms give these outcomes."""
    session = opened(3, data=data, computation_delta=3e-7)
    told = []
    scripts = iter(outcomes)

    def algorithm(**parts):
        outcome = next(scripts)
        return computes(lambda rows: (len(rows), outcome)[1], **parts)

    calls = [
        lambda: session.test(algorithm(delta=1e-7)),
        lambda: session.release(algorithm(), {1}).released,
        lambda: session.test(algorithm(delta=1e-7)),
        lambda: session.select([algorithm(), algorithm(), algorithm()], k=2),
        lambda: session.pending and session.pending[0].revise({0, 1}).released,
        lambda: session.test(algorithm(delta=1e-7)),
        lambda: session.test(algorithm(delta=1e-7)),
        lambda: session.test(algorithm()),
    ]
    for call in calls:
        try:
            call()
            told.append("answered")
        except (tc.Refused, tc.ComputationFailed) as error:
            told.append((type(error), str(error), vars(error)))
    return told


@pytest.mark.parametrize(
    "outcomes", [[0, 0, 0, 1, 2, 3, 0, 0, 0], [1, 1, 0, 1, 2, 3, 1, 1, 1], [0, 0, 1, None, 1, 1, 1, 0, 1]]
)
def test_the_same_outcomes_bring_the_same_refusals_on_neighbouring_data(outcomes):
    first, second = refusals(["row"] * 7, outcomes), refusals(["row"] * 8, outcomes)
    assert first == second
    assert any(told != "answered" for told in first)


def test_a_refusal_says_what_was_asked_and_what_is_left():
    session = opened(3)
    session.test(gives(True))
    with pytest.raises(tc.BudgetSpent, match="could cost 3 hits on the exact meter and 2 are left") as caught:
        session.select([gives(1)] * 3, k=3)
    assert (caught.value.asked, caught.value.left) == (3.0, 2.0)


def test_misses_are_free_for_ever():
    session, no = opened(1), gives(False)
    assert not any(session.test(no).hit for _ in range(2000))
    assert session.test(gives(True)).hit
    with pytest.raises(tc.BudgetSpent):
        session.test(no)
