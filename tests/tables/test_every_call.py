"""Every public call on every meter and charging: answered, or refused naming a meter or charging that takes it.

`make check` runs this too.
"""

import re

import pandas as pd
import pytest
from tests.refusals import every

import targetcharge as tc
from targetcharge import questions
from targetcharge.tables import Monitor, Rule

ROWS = range(8000)
FRAME = pd.DataFrame(
    {
        "patient": [number % 4000 for number in ROWS],
        "age": [number % 100 for number in ROWS],
        "week": [number % 10 for number in ROWS],
        "fare": [number % 50 for number in ROWS],
    }
)
OLD, ABOVE = "age > 50", questions.above("age > 50", 100)


def two_answers(t):
    return t.difference(t.count(OLD), t.count("age > 60"))


CALLS = {
    "above": lambda t: t.above(OLD, 100),
    "above with a prior": lambda t: t.above(OLD, 100, prior=2000, tolerance=100),
    "count": lambda t: t.count(OLD),
    "count with a prior": lambda t: t.count(OLD, prior=2000, tolerance=100),
    "sum": lambda t: t.sum("fare", 0, 50),
    "sum with two signs": lambda t: t.sum("fare", -10, 50, OLD),
    "mean": lambda t: t.mean("fare", 0, 50),
    "histogram": lambda t: t.histogram(OLD, by="week", keys=range(10), per_unit=2),
    "quantile": lambda t: t.quantile("fare", 0.5, 0, 50),
    "quantiles": lambda t: t.quantiles("fare", [0.25, 0.75], 0, 50),
    "between": lambda t: t.between(OLD, 1500, 2500),
    "side": lambda t: t.side(OLD, 100),
    "sum_above": lambda t: t.sum_above("fare", 0, 50, 100),
    "sum_above of a sum with two signs": lambda t: t.sum_above("fare", -10, 50, 100),
    "distinct_above": lambda t: t.distinct_above("age", 20),
    "watch": lambda t: t.watch(OLD, by="week", keys=range(10), threshold=10_000),
    "iter_watch": lambda t: list(t.iter_watch(OLD, by="week", keys=range(10), threshold=10_000)),
    "watch of sums with two signs": lambda t: t.watch(
        questions.sum("fare", -10, 50), by="week", keys=range(10), threshold=10**6
    ),
    "top": lambda t: t.top(by="week", keys=range(10), k=1),
    "top without values": lambda t: t.top(by="week", keys=range(10), k=2, values=False),
    "top with a stopping rule": lambda t: t.top(by="week", keys=range(10), k=2, stop=tc.sessions.gap(5)),
    "release from a number on": lambda t: t.release(OLD, 100),
    "revision that lowers the number": lambda t: t.release(OLD, 10**6).revise(100),
    "release with a condition": lambda t: t.release(OLD, lambda count: count > 100),
    "release of a set": lambda t: t.release(OLD, {2000}),
    "ask": lambda t: t.ask(ABOVE),
    "iter_ask": lambda t: list(t.iter_ask(questions.watch(OLD, by="week", keys=range(10), threshold=10_000))),
    "ask_quantiles": lambda t: t.ask_quantiles(questions.quantile("fare", 0.5, 0, 50)),
    "ask_many": lambda t: t.ask_many([ABOVE, questions.above("age > 60", 100)]),
    "prepare": lambda t: t.prepare(ABOVE),
    "preview": lambda t: t.preview(ABOVE),
    "difference": two_answers,
    "describe": lambda t: t.describe(),
    "meter": lambda t: (t.meter, t.meter.odometer(), t.meter.guarantee),
    "monitor": lambda t: Monitor(t, [Rule("old", OLD, threshold=100)]).look("2024-01-01"),
}
BUDGET = {"budget": tc.Budget(12.0, 1e-6)}
TABLES = {
    "exact": {"query_epsilon": 0.1, "meter": "exact", **BUDGET},
    "renyi": {"query_epsilon": 0.1, "meter": "renyi", **BUDGET},
    "sparse": {"hits": 60, **BUDGET},
    "exact, individual": {"query_epsilon": 0.1, "charging": "individual", **BUDGET},
    "exact, individual, declared": {
        "query_epsilon": 0.1, "charging": "individual", "targets": [tc.NotPrior(None)], **BUDGET
    },
    "renyi, individual": {"query_epsilon": 0.1, "meter": "renyi", "charging": "individual", **BUDGET},
}  # fmt: skip
NOT_AT_LEAST = {
    "above with a prior",
    "count with a prior",
    "between",
    "side",
    "sum_above of a sum with two signs",
    "watch of sums with two signs",
    "release with a condition",
    "release of a set",
    "monitor",
}
REFUSED = {
    "exact": {"between", "side"},
    "renyi": set(),
    "sparse": NOT_AT_LEAST,
    "exact, individual": {*NOT_AT_LEAST, "distinct_above"},
    "exact, individual, declared": {"between", "side", "distinct_above"},
    "renyi, individual": {"distinct_above"},
}


def settings(refusal):
    """Return what a refusal says to open with instead."""
    return dict(re.findall(r"(meter|charging)='(\w+)'", str(refusal)))


@pytest.mark.parametrize("name", TABLES)
def test_every_call_is_answered_or_refused_naming_what_takes_it(name):
    def check(call, ask):
        with tc.open(FRAME, unit="patient", **TABLES[name]) as table:
            if call not in REFUSED[name]:
                ask(table)
                return
            with pytest.raises(tc.NotAllowed) as refused:
                ask(table)
            assert table.meter.hits == 0
        instead = {"charging": TABLES[name].get("charging", "shared"), **settings(refused.value)}
        assert instead != {"charging": TABLES[name].get("charging", "shared")}
        with tc.open(FRAME, unit="patient", query_epsilon=0.1, **BUDGET, **instead) as other:
            ask(other)  # and that takes it

    every({call: (call, ask) for call, ask in CALLS.items()}, check)


def test_calls_that_are_not_listed_here():
    """A method that is added must be added to the calls above."""
    listed = set(re.findall(r"\.(\w+)\(", " ".join(map(_source, CALLS.values()))))
    others = {"append", "close", "snapshot", "schema", "transcript", "pending", "meters", "may_have_left"}
    public = {name for name in vars(tc.Table) if not name.startswith("_")}
    assert public - listed - others - {"meter"} == set()


def _source(call):
    import inspect  # noqa: PLC0415 - only here

    return inspect.getsource(call)


# Sessions of any object.

MONOTONE = {"monotone": True}


def count(session, make=tc.mechanisms.above_threshold, *given, **more):
    tariff = session.meter.tariff
    epsilon = tariff.offset.query_epsilon if tariff.name == "sparse" else 0.1
    return make(len, *given, epsilon, **(MONOTONE | more))


@tc.private(epsilon=0.01)
def seven(_):
    return 7


@tc.private(epsilon=0.01)
def never(_):
    return False


SESSION_CALLS = {
    "ask": lambda s: s.ask(count(s, tc.mechanisms.above_threshold, 100)),
    "ask of a count that may fall": lambda s: s.ask(count(s, tc.mechanisms.above_threshold, 100, monotone=False)),
    "test": lambda s: s.test(count(s, tc.mechanisms.above_threshold, 100)),
    "test of another algorithm": lambda s: s.test(never),
    "ask_prior": lambda s: s.ask_prior(seven, 7),
    "everything": lambda s: s.ask(seven, tc.Everything()),
    "release from a number on": lambda s: s.release(count(s, tc.mechanisms.noisy_count), 100),
    "release of a set": lambda s: s.release(count(s, tc.mechanisms.noisy_count), {5}),
    "select": lambda s: s.select([count(s, tc.mechanisms.noisy_count) for _ in range(3)]),
    "select of others": lambda s: s.select([seven, seven]),
    "ask_each": lambda s: list(
        s.ask_each(tc.mechanisms.batch_by_key(lambda rows: [1, len(rows)], ["a", "b"], 5, 0.01, monotone=True))
    ),
    "changed": lambda s: s.ask(count(s, tc.mechanisms.changed, 8000, 10)),
    "between": lambda s: s.ask(count(s, tc.mechanisms.between_thresholds, 1, 9)),
    "boundary": lambda s: s.ask(tc.boundary(count(s, tc.mechanisms.side_of_threshold, 9))),
    "twice": lambda s: s.ask(tc.twice(count(s, tc.mechanisms.side_of_threshold, 9))),
}
SESSIONS = {
    "exact": {"query_epsilon": 0.1},
    "renyi": {"query_epsilon": 0.1, "meter": "renyi"},
    "sparse": {"hits": 60, "meter": "sparse"},
    "exact with an offset": {"query_epsilon": 0.1, "offset_epsilon": 0.5},
    "renyi with an offset": {"query_epsilon": 0.1, "offset_epsilon": 0.5, "meter": "renyi"},
}
NOT_ON_EXACT = {"between", "boundary", "twice"}
NOT_ON_SPARSE = {
    "ask of a count that may fall", "test of another algorithm", "ask_prior", "release of a set",
    "select of others", "changed", *NOT_ON_EXACT
}  # fmt: skip
SESSIONS_REFUSE = {name: NOT_ON_EXACT if "exact" in name else set() for name in SESSIONS} | {
    "sparse": NOT_ON_SPARSE
}


@pytest.mark.parametrize("name", SESSIONS)
def test_every_call_of_a_session_is_answered_or_refused_naming_what_takes_it(name):
    def check(call, ask):
        with tc.Session(ROWS, BUDGET["budget"], **SESSIONS[name]) as session:
            if call not in SESSIONS_REFUSE[name]:
                ask(session)
                return
            with pytest.raises(tc.NotAllowed) as refused:
                ask(session)
            assert session.meter.hits == 0
        instead = settings(refused.value)
        assert instead
        with tc.Session(ROWS, BUDGET["budget"], 0.1, **instead) as other:
            ask(other)

    every({call: (call, ask) for call, ask in SESSION_CALLS.items()}, check)
