"""Bad input: each error names the parameter, the value and what to do, and no data is touched."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.sessions.scripted import EPSILON, gives, opened

import targetcharge as tc
from targetcharge.errors import shown
from targetcharge.sessions import gap

BUDGET = tc.Budget(9.0, 1e-6)
PRIOR = tc.NotPrior(prior=False)

OPENING = [
    *(
        ("query_epsilon", value)
        for value in (math.nan, math.inf, -math.inf, 0.0, -1.0, 11.0, 1e300, "0.1", None, True)
    ),
    *(("query_epsilon", value) for value in (5.0, 10**400)),
    *(("computation_delta", value) for value in (math.nan, math.inf, -1e-9, 1.0, 1e-6, 2e-6, "x", None)),
    *(("budget", value) for value in (None, 1.0, (1.0, 1e-6), "1.0")),
    *(("meter", value) for value in ("foo", None, 5, "Exact")),
    *(("ledger", value) for value in (5, "", None, "postgresql://…", b"l.db")),
    *(("transcript", value) for value in (0, -1, 1.5, "3", True)),
    *(("restored", value) for value in ((1, "ab"), "garbage", 5)),
    *(("alternatives", value) for value in ([PRIOR], [], PRIOR, 5, "ab", {PRIOR})),
    *(("targets", value) for value in ([], 5, "x")),
]


@pytest.mark.parametrize(("name", "value"), OPENING, ids=lambda each: str(each)[:20])
def test_opening(name, value):
    options = {"budget": BUDGET, "query_epsilon": EPSILON, name: value}
    with pytest.raises(tc.InvalidParameter) as caught:
        tc.Session(None, **options)
    assert caught.value.name == name
    assert f"{name} is {shown(value)}; it must be " in str(caught.value)
    assert len(caught.value.expected) > 5


@pytest.mark.parametrize("restored", ["garbage", 5, (1,), (1, 2), ("1", "ab")])
def test_opening_a_file_with_a_garbled_head(tmp_path, restored):
    with pytest.raises(tc.InvalidParameter, match="restored is ") as caught:
        tc.Session(None, BUDGET, EPSILON, ledger=tmp_path / "ledger.db", restored=restored)
    assert "number and the hash" in str(caught.value)


@pytest.mark.parametrize("name", ["targets", "alternatives"])
def test_targets_that_are_none_are_named(name):
    with pytest.raises(tc.InvalidParameter, match=f"{name} is 'False'; it must be a list of targets"):
        tc.Session(None, BUDGET, EPSILON, **{name: [PRIOR, "False"]})


def test_targets_beside_alternatives_are_refused():
    with pytest.raises(
        tc.InvalidParameter, match=r"targets is .* it must be left out where alternatives are given"
    ):
        tc.Session(None, BUDGET, EPSILON, alternatives=[PRIOR, tc.NotPrior(1)], targets=PRIOR)


def test_a_budget_without_delta_is_refused():
    with pytest.raises(tc.InvalidParameter, match=r"delta is 0\.0; it must be at least"):
        tc.Session(None, tc.Budget(1.0, 0.0), EPSILON)


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0, 1e4, "x", None])
def test_the_epsilon_of_an_algorithm(value):
    with pytest.raises(tc.InvalidParameter, match=f"epsilon is {value!r}; it must be"):
        tc.private(epsilon=value)


@pytest.mark.parametrize("value", [math.nan, -1e-9, 1.0, math.inf, "x"])
def test_the_delta_of_an_algorithm(value):
    with pytest.raises(tc.InvalidParameter, match=f"delta is {value!r}; it must be"):
        tc.private(epsilon=EPSILON, delta=value)


@pytest.mark.parametrize("value", [math.nan, 0.0, -0.5, 1.5, "x"])
def test_the_q_of_a_target(value):
    with pytest.raises(tc.InvalidParameter, match=f"q is {value!r}; it must be"):
        tc.QTarget(value, {1})


ALGORITHMS = [len, None, "above", lambda data: data, 5]


@pytest.mark.parametrize("value", ALGORITHMS, ids=["built-in", "none", "text", "function", "number"])
@pytest.mark.parametrize(
    "call",
    [
        lambda session, value: session.ask(value),
        lambda session, value: session.ask(value, PRIOR),
        lambda session, value: session.ask(value, "target"),
        lambda session, value: session.test(value),
        lambda session, value: session.ask_prior(value, 0),
        lambda session, value: session.release(value, {1}),
        lambda session, value: session.select([gives(1), value]),
    ],
    ids=["ask", "ask a target", "ask a text", "test", "ask_prior", "release", "select"],
)
def test_what_is_not_an_algorithm(call, value):
    with pytest.raises(tc.InvalidParameter) as caught:
        call(opened(), value)
    assert f"algorithm is {value!r}; it must be made by tc.mechanisms" in str(caught.value)


def nothing(_value):
    return False


CALLS = [
    ("target", "NotPrior", lambda session, value: session.ask(gives(1), value)),
    ("target", 5, lambda session, value: session.ask(gives(1), value)),
    ("target", None, lambda session, value: session.ask(gives(1), value)),
    ("target", tc.NotPrior, lambda session, value: session.ask(gives(1), value)),
    *(
        ("prior", value, lambda session, value: session.ask_prior(gives(1), value))
        for value in (math.nan, {}, {1}, 1j)
    ),
    ("prior", [1, {}], lambda session, value: session.ask_prior(gives(1), value)),
    *(
        ("when", value, lambda session, value: session.release(gives(1), value))
        for value in (math.nan, None, True)
    ),
    *(
        ("when", value, lambda session, value: session.release(gives(1), nothing).revise(value))
        for value in (math.nan, None)
    ),
    *(
        ("k", value, lambda session, value: session.select([gives(1)] * 3, value))
        for value in (0, -1, 4, 1.0, True, None)
    ),
    *(
        ("candidates", value, lambda session, value: session.select(value))
        for value in ([], (), None, gives, "ab")
    ),
    *(("stop", value, lambda session, value: session.select([gives(1)], stop=value)) for value in (5, "gap")),
    *(
        ("threshold", value, lambda session, value: session.select([gives(1)], threshold=value))
        for value in (math.nan, "x")
    ),
    *(("size", value, lambda _, value: gap(value)) for value in (-1, math.nan, math.inf, "x")),
]


@pytest.mark.parametrize(
    ("name", "value", "call"), CALLS, ids=lambda each: str(each)[:20] if not callable(each) else ""
)
def test_calls(name, value, call):
    session = opened()
    with pytest.raises(tc.InvalidParameter) as caught:
        call(session, value)
    assert caught.value.name == name
    assert f"{name} is {shown(value)}; it must be " in str(caught.value)
    assert session.meter.hits == 0


@pytest.mark.parametrize(
    ("algorithm", "target", "words"),
    [
        (gives(1), tc.Boundary(), r"scripted does not support Boundary\(\): ask with NotPrior\(…\) or Everything"),
        (gives(1), tc.QTarget(0.3, {1}), r"does not support QTarget\(0.3, \{1\}\)"),
        (gives(1), tc.Disagreement(), "does not support Disagreement"),
        (
            tc.twice(gives(1)),
            PRIOR,
            r"twice\(scripted\) does not support NotPrior\(False\): ask with Disagreement",
        ),
        (
            gives(1, epsilon=0.2),
            PRIOR,
            "epsilon 0.2, above the declared query_epsilon 0.1: make it more private, or",
        ),
        (tc.twice(gives(1)), None, "declare such a target when opening, or open the session with meter='renyi'"),
    ],
    ids=["boundary", "q", "twice", "wrapped", "epsilon", "undeclared"],
)
def test_prices_that_a_session_cannot_price(algorithm, target, words):
    session = opened()
    with pytest.raises(tc.NotAllowed, match=words):
        session.ask(algorithm, target)
    assert session.meter.hits == 0


def test_an_epsilon_without_a_finite_price_on_the_renyi_meter():
    with pytest.raises(
        tc.NotAllowed, match=r"any outcome but 0 at epsilon 9 has no finite price .* smaller epsilon"
    ):
        opened(meter="renyi").ask_prior(gives(1, epsilon=9.0), 0)


def test_a_spent_budget():
    session = opened(1)
    session.test(gives(True))
    with pytest.raises(
        tc.BudgetSpent, match=r"could cost 1 hit on the exact meter and nothing is left: the budget \(.*, 1e-06\)"
    ):
        session.test(gives(False))


def test_numpy_numbers_are_numbers():
    with tc.Session(
        None, BUDGET, np.float64(0.1), computation_delta=np.float32(1e-7), transcript=np.int64(4)
    ) as session:
        assert session.test(gives(True, epsilon=np.float64(0.1))).hit


def test_a_pending_release_is_no_prior():
    session = tc.Session([], tc.Budget(10.0, 1e-6), 0.1)
    pending = session.release(tc.mechanisms.noisy_count(len, 0.1), when=lambda _: False)
    with pytest.raises(tc.InvalidParameter, match=r"prior is .* this release is pending"):
        session.ask_prior(tc.mechanisms.noisy_count(len, 0.1), pending)


def test_a_test_wants_an_algorithm_that_answers_yes_or_no():
    side = tc.mechanisms.between_thresholds(len, 1, 5, 0.1)
    session = tc.Session([], tc.Budget(10.0, 1e-6), 0.1, meter="renyi")
    with pytest.raises(tc.NotAllowed, match=r"does not answer yes or no: ask it with Between\(1, 5\)"):
        session.test(side)
