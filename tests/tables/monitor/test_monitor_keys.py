"""Rules about keys: those that are low are asked in one scan, others one by one; nobody sees a difference."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables.monitor.days import BUDGET, FIRST, breaking, day, kinds, opened, people

import targetcharge as tc
from targetcharge.accounting.targets import NotPrior
from targetcharge.queries.keys import Keys
from targetcharge.tables import measured
from targetcharge.tables.monitor import Monitor, Rule
from targetcharge.tables.monitor.alerts import Label, label_of
from targetcharge.tables.monitor.rules import check_rule, day_column, version_of
from targetcharge.tables.questions import Above, CountQuestion, Watch

GROUPS = [
    (
        "x 'é'",
        1,
        0.1,
        Decimal("12345678901234567.80"),
        dt.date(2024, 3, 1),
        dt.datetime(2024, 3, 1, 0, 30),
        True,
        "a",
    ),
    ("y", 2, 2.0, Decimal("2.00"), dt.date(2024, 3, 2), dt.datetime(2024, 3, 2, 1, 30), False, None),
    ("", -3, -1e300, Decimal("0.10"), dt.date(2024, 3, 3), dt.datetime(2024, 3, 3, 23, 30), True, "c"),
]
NAMES = ["text", "whole", "real", "price", "date", "at", "flag", "gap"]
TYPES = [
    pa.string(),
    pa.int16(),
    pa.float64(),
    pa.decimal128(20, 2),
    pa.date32(),
    pa.timestamp("us"),
    pa.bool_(),
    pa.string(),
]
COUNTS = [(600, 100, 0), (600, 700, 0), (100, 700, 600), (100, 700, 600)]
"""Of the groups, day by day. The first rises and falls, the second rises, the third rises later."""


def in_groups(number, counts):
    """Rows of a day: so many people of each group."""
    groups = [group for group, many in zip(GROUPS, counts, strict=True) for _ in range(many)]
    columns = {
        name: pa.array(values, kind)
        for name, kind, values in zip(NAMES, TYPES, zip(*groups, strict=True), strict=True)
    }
    days = pa.array([day(number)] * len(groups), pa.date32())
    return pa.table({"person": range(len(groups)), **columns, "day": days})


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups") / "visits"
    folder.mkdir()
    for number, counts in enumerate(COUNTS):
        pq.write_table(in_groups(number, counts), folder / f"{number}.parquet")
    return folder


EVERY = {
    "text": ("text", [group[0] for group in GROUPS], ["x 'é'", "y", ""]),
    "integers": ("whole", [1, 2, -3, 4], [1, 2, -3]),
    "floats": ("real", [0.1, 2, -1e300, 0.3], [0.1, 2, -1e300]),
    "decimals": (
        "price",
        [Decimal("12345678901234567.80"), 2, 0.1, Decimal("0.11")],
        ["12345678901234567.80", 2, 0.1],
    ),
    "dates": ("date", [group[4] for group in GROUPS], ["2024-03-01", "2024-03-02", "2024-03-03"]),
    "days of dates": ("date", tc.days("2024-02-28", "2024-03-04"), ["2024-03-01", "2024-03-02", "2024-03-03"]),
    "days of times": ("at", tc.days("2024-02-28", "2024-03-04"), ["2024-03-01", "2024-03-02", "2024-03-03"]),
    "listed days": ("at", [group[4] for group in GROUPS], ["2024-03-01", "2024-03-02", "2024-03-03"]),
    "times": ("at", [group[5] for group in GROUPS], [f"{group[5]}" for group in GROUPS]),
    "hours": (
        "at",
        tc.hours("2024-03-01", "2024-03-03 23:00"),
        ["2024-03-01 00:00:00", "2024-03-02 01:00:00", "2024-03-03 23:00:00"],
    ),
    "no value": ("gap", ["a", None, "c"], ["a", tc.MISSING, "c"]),
    "pairs with none": (
        ["gap", "whole"],
        [(None, 2), ("a", 1), ("c", -3)],
        [("a", 1), (tc.MISSING, 2), ("c", -3)],
    ),
    "pairs": (
        ["text", "price"],
        [(group[0], group[3]) for group in GROUPS] + [("y", Decimal("0.10"))],
        [("x 'é'", "12345678901234567.80"), ("y", 2), ("", 0.1)],
    ),
    "pairs of dates": (
        ("date", "flag"),
        [(f"2024-03-0{number}", flag) for number in (1, 2, 3) for flag in (True, False)],
        [("2024-03-01", True), ("2024-03-02", False), ("2024-03-03", True)],
    ),
}


@pytest.mark.parametrize(("by", "keys", "told"), EVERY.values(), ids=EVERY)
def test_keys_of_every_kind_are_known_again_when_the_ledger_is_reopened(visits, tmp_path, by, keys, told):
    first, second, third = told
    rule = Rule("r", threshold=500, by=by, keys=keys)
    expected = [[(first, "rose")], [(second, "rose")], [(first, "fell"), (third, "rose")], []]
    singles = [0, 1, 2, 2]  # the keys that are high before the look
    for number, fired in enumerate(expected):
        looks = []
        for again in (False, True):
            with tc.open(
                visits, "person", BUDGET, query_epsilon=1.0, ledger=tmp_path / "ledger.db", meter="exact"
            ) as table:
                monitor = Monitor(table, [rule], day="day")
                due = [type(each) for each in monitor.due(day(number))]
                assert due == ([] if again else [Watch, *[CountQuestion] * singles[number]])
                look = monitor.look(day(number))
                looks.append(look)
                assert len(table.transcript) == (len(look.alerts) + len(look.quiet)) * (number + 1)
                assert table.meter.hits == len(monitor.alerts()) == sum(map(len, expected[: number + 1]))
        assert looks[0] == looks[1]
        assert [(alert.key, str(alert.kind)) for alert in look.alerts] == fired
        assert all(("null" in alert.to_json()) for alert in look.alerts if "MISSING" in repr(alert.key))


def test_sums_of_keys():
    rule = Rule("r", tc.questions.sum("cost", 0, 2, "cost > 1"), threshold=900, by="kind", keys=["a", "b"])
    counts = [(300, 600), (600, 600), (600, 100)]
    with opened() as table:
        monitor, fired = Monitor(table, [rule], day="day"), []
        for number, (a, b) in enumerate(counts):
            look = monitor.look(day(number), pd.concat([people(number, a, "a"), people(number, b, "b", 1000)]))
            fired.append([(alert.key, str(alert.kind)) for alert in look.alerts])
    assert fired == [[("b", "rose")], [("a", "rose")], [("b", "fell")]]


@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_high_and_low_keys_of_several_rules(charging):
    """Rules keep their order, keys theirs, whatever is asked together."""
    rules = [
        Rule("first", tolerance=200),
        Rule("keys", threshold=500, by="kind", keys=list("abc")),
        Rule("anew", threshold=500, by="kind", keys=list("cba"), anew=True),
        Rule("known", threshold=500, prior=600, by="kind", keys=["a", "b"]),
        Rule("moving", tolerance=200, prior=0, by="kind", keys=["b", "a"]),
        Rule("last", threshold=5000),
    ]
    days = [{"a": 600, "b": 100}, {"a": 650, "b": 700}, {"b": 700, "c": 600}]
    with opened(charging=charging, budget=tc.Budget(400.0, 1e-6), targets=[NotPrior(None)]) as table:
        monitor, found = Monitor(table, rules, day="day"), []
        for number, counts in enumerate(days):
            starts = dict(zip("abc", (0, 1000, 2000), strict=True))
            rows = [people(number, many, kind, starts[kind]) for kind, many in counts.items()]
            due = monitor.look(day(number), pd.concat(rows))
            found.append([f"{alert.rule} {alert.key} {alert.kind}" for alert in due.alerts])
            assert not due.unanswered
            assert monitor.look(day(number)) == due
    assert found == [
        ["first None first", "keys a rose", "anew a rose", "known b fell", "moving a moved"],
        ["first None moved", "keys b rose", "anew b rose", "anew a rose", "known b rose", "moving b moved"],
        ["keys a fell", "keys c rose", "anew c rose", "anew b rose", "known a fell", "moving a moved"],
    ]


def test_what_is_due_is_one_question_for_all_that_is_low():
    rules = [
        Rule("one", threshold=500),
        Rule("keys", "cost > 1", threshold=500, by="kind", keys=[f"k{number}" for number in range(50)]),
        Rule("distinct", tc.questions.distinct("person"), threshold=500, by="kind", keys=["k1", "k2"]),
    ]
    with opened() as table:
        monitor = Monitor(table, rules, day="day")
        monitor.look(FIRST, people(0, 600, "k7"))
        one, watch, seventh, *distinct = monitor.due(day(1))
        assert (type(one), type(watch), type(seventh)) == (CountQuestion, Watch, CountQuestion)
        assert all(isinstance(each, Above) for each in distinct)
        assert str(watch.what.where) == "cost > 1 AND day = '2024-01-02'"
        assert [key for (key,) in watch.keys.values] == [f"k{number}" for number in range(50) if number != 7]
        assert str(seventh.what.where) == "cost > 1 AND kind = 'k7' AND day = '2024-01-02'"
        preview = table.preview(watch)
        assert (preview.keys, preview.question) == (49, "count(cost > 1 AND day = '2024-01-02') by kind >= 500")


def spread(counts):
    """Rows of the first day, so many people of each kind."""
    return pd.concat([people(0, many, kind) for kind, many in counts.items()])


@pytest.mark.parametrize(("epsilon", "covered"), [(45, 1), (55, 2), (60, 3), (65, 4)])
def test_a_budget_that_ends_inside_a_watch(epsilon, covered):
    counts = dict(zip("abcdefg", (0, 600, 0, 600, 0, 600, 0), strict=True))
    rules = [
        Rule("first", threshold=5000),
        Rule("keys", threshold=500, by="kind", keys=list(counts)),
        Rule("last", threshold=5000),
    ]
    told = [("first", None), *(("keys", key) for key in counts), ("last", None)]
    with opened(budget=tc.Budget(float(epsilon), 1e-6)) as table:
        assert table.meter.hits_left == covered
        monitor = Monitor(table, rules, day="day")
        look = monitor.look(FIRST, spread(counts))
        # misses after the last hit could be hits too, so they are not asked
        answered = len(told) if covered > 3 else told.index(("keys", "bdf"[covered - 1])) + 1
        assert look.unanswered == tuple(told[answered:])
        assert [alert.key for alert in look.alerts] == list("bdf")[:covered]
        assert look.quiet == tuple(each for each in told[:answered] if each[1] not in ("b", "d", "f"))
        assert bool(look.stopped) == bool(look.unanswered)
        assert len(table.transcript) == answered
        for each in (monitor, Monitor(table, rules, day="day")):
            assert each.look(FIRST).unanswered == look.unanswered
            left = [key for due in each.due(FIRST) if isinstance(due, Watch) for (key,) in due.keys.values]
            assert left == [key for _, key in look.unanswered if key is not None]


def test_a_budget_that_does_not_cover_a_watch_at_all():
    rules = [Rule("first", tolerance=90), Rule("keys", threshold=500, by="kind", keys=["a", "b"])]
    with opened(budget=tc.Budget(45.0, 1e-6)) as table:
        assert table.meter.hits_left == 1
        look = Monitor(table, rules, day="day").look(FIRST, people(0, 100))
        assert kinds(look) == [("first", "first")]
        assert look.unanswered == (("keys", "a"), ("keys", "b"))
        assert "budget" in look.stopped


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("kept", ["memory", "file"])
def test_a_look_that_broke_inside_a_watch_asks_only_what_is_left(tmp_path, after, kept):
    counts = dict(zip("abcdefg", (0, 600, 0, 600, 0, 600, 0), strict=True))
    rules = [
        Rule("first", tolerance=90),
        Rule("keys", threshold=500, by="kind", keys=list(counts)),
        Rule("last", tolerance=90),
    ]
    ledger = {"ledger": tmp_path / "ledger.db"} if kept == "file" else {}
    with opened(**ledger) as table:
        monitor = Monitor(table, rules, day="day")
        with breaking(table, after), pytest.raises(tc.LedgerError):
            monitor.look(FIRST, spread(counts))
        answered = {(label.rule, label.key) for label in map(label_of, table.transcript)}
        assert len(answered) == len(table.transcript) < 9
        for each in (monitor, Monitor(table, rules, day="day")):
            left = {
                ("keys", key) for due in each.due(FIRST) if isinstance(due, Watch) for (key,) in due.keys.values
            }
            assert left == {("keys", key) for key in counts} - answered
        look = monitor.look(FIRST)
        assert [alert.key for alert in look.alerts] == [None, "b", "d", "f", None]
        assert len(table.transcript) == 9
        assert Monitor(table, rules, day="day").look(FIRST) == look


def test_rows_that_arrived_elsewhere_stop_a_look_on_the_way(monkeypatch):
    """What refuses a later part of a look does not hide what was answered before it."""
    rules = [Rule("first", tolerance=90), Rule("keys", threshold=500, by="kind", keys=["a", "b"])]

    def refused(*_, **__):
        msg = "somebody else appended"
        raise tc.NotAllowed(msg)

    with opened() as table:
        monitor = Monitor(table, rules, day="day")
        with monkeypatch.context() as patch:
            patch.setattr(tc.Table, "iter_ask", refused)
            look = monitor.look(FIRST, people(0, 600))
            assert (kinds(look), look.stopped) == ([("first", "first")], "somebody else appended")
            assert look.unanswered == (("keys", "a"), ("keys", "b"))
            with pytest.raises(tc.NotAllowed):  # nothing else is left
                monitor.look(FIRST)
        assert kinds(monitor.look(FIRST)) == [("first", "first"), ("keys", "rose")]


def test_keys_that_were_asked_one_by_one_are_known_too():
    """As a transcript has them in which they were high, or that an earlier version wrote."""
    rule = Rule("keys", threshold=500, by="kind", keys=["a", "b"])
    with opened(people(0, 600)) as table:
        version = version_of(rule, "day", ["kind"])
        labels = [Label("monitor", "keys", version, FIRST, key).text() for key in "ab"]
        asked = [
            tc.questions.above(f"kind = '{key}' AND day = '2024-01-01'", 500, label=label)
            for key, label in zip("ab", labels, strict=True)
        ]
        table.ask_many(asked)
        monitor = Monitor(table, [rule], day="day")
        assert monitor.due(FIRST) == []
        assert [alert.key for alert in monitor.look(FIRST).alerts] == ["a"]


def test_keys_are_asked_one_by_one_on_several_meters():
    alternatives = [NotPrior(None), NotPrior(0)]
    budget = tc.Budget(20.0, 1e-6)
    with opened(people(0, 600), budget=budget, query_epsilon=0.1, alternatives=alternatives) as table:
        monitor = Monitor(table, [Rule("keys", threshold=300, by="kind", keys=["a", "b"])])
        assert {type(each) for each in monitor.due(FIRST)} == {Above}
        look = monitor.look(FIRST)
        assert (look.unanswered, len(table.transcript)) == ((), 2)


def test_keys_that_were_declared_before_are_keys_of_their_columns_only():
    with opened(people(0, 600)) as table:
        keys = Keys((table.schema["kind"],), (("a",), ("b",), ("c",)))
        some = keys.at([2, 0])
        assert some.values == (("c",), ("a",))
        answers = table.ask(tc.questions.watch(None, "kind", some, 500, label="mine"))
        assert [answer.key for answer in answers] == ["c", "a"]
        assert [answer.key for answer in answers.hits] == ["a"]
        assert all('"label":"mine"' in answer.question for answer in table.transcript)
        with pytest.raises(tc.InvalidParameter, match="it must be kind, as these keys were declared for") as slip:
            table.watch(None, "cost", keys, 500)
        assert slip.value.name == "by"
        with pytest.raises(tc.InvalidParameter, match="at least one"):
            table.watch(None, "kind", keys.at([]), 500)
        with pytest.raises(tc.InvalidParameter, match="label is 3; it must be text"):
            table.ask(tc.questions.watch(None, "kind", keys, 500, label=3))
        assert len(table.transcript) == 2


def test_hours_are_other_numbers_than_instants(visits, tmp_path):
    """The keys are told alike, and the rows are not the same."""
    instants = [dt.datetime(2024, 3, 1, hour) for hour in range(3)]
    options = {"ledger": tmp_path / "ledger", "query_epsilon": 1.0}
    with tc.open(visits, "person", BUDGET, **options) as table:
        hours = Rule("x", threshold=300, by="at", keys=tc.hours("2024-03-01 00:00", "2024-03-01 02:00"))
        assert [alert.key for alert in Monitor(table, [hours]).look(FIRST).alerts] == ["2024-03-01 00:00:00"]
        exact = Monitor(table, [Rule("x", threshold=300, by="at", keys=instants)])
        assert exact.alerts() == []
        assert len(exact.look(FIRST).quiet) == 3


def test_the_predicate_of_a_rule_is_parsed_once_for_all_days_and_tables(monkeypatch):
    texts, parse = [], measured.parse
    monkeypatch.setattr(measured, "parse", lambda text, schema: texts.append(text) or parse(text, schema))
    rules = [
        Rule("one", "cost > 1 OR kind = 'b'", threshold=500, so_far=True),
        Rule("keys", "cost > 2", threshold=500, by="kind", keys=["a", "b"]),
        Rule("moving", tc.questions.sum("cost", 0, 5, "cost > 0"), tolerance="15%"),
    ]
    with opened() as rehearsal, opened() as table:
        checked = [check_rule(rule, rehearsal, day_column(rehearsal, "day")) for rule in rules]
        monitor = Monitor(table, checked, day="day")
        for number in range(4):
            monitor.look(day(number), people(number, 600 * (number % 2 + 1)))
        assert {alert.rule for alert in monitor.alerts()} == {"one", "keys", "moving"}
    assert texts == ["cost > 1 OR kind = 'b'", "cost > 2", "cost > 0"]


def test_a_rule_that_was_checked_for_another_table_is_refused():
    rule = Rule("x", "kind = 'a'", threshold=500)
    with opened() as table, opened(query_epsilon=0.5) as other, opened(people(0, 1)[["person"]], types={}) as less:
        checked = check_rule(rule, table, day_column(table, "day"))
        for wrong, column in ((other, "day"), (table, None), (less, None)):
            with pytest.raises(tc.InvalidParameter, match="same"):
                Monitor(wrong, [checked], column)
        Monitor(table, [checked], "day")


def test_versions_of_rules_are_those_that_ledgers_hold(monkeypatch):
    """A rule whose version changes would begin anew on every ledger, and pay again."""
    for kind in (tc.questions.Sum, tc.questions.Distinct):
        monkeypatch.setattr(kind, "__repr__", lambda _: "shown to people in another way")
    total = tc.questions.sum("cost", 0, 5, "a > 1", grid="0.1")
    distinct = tc.questions.distinct("p", per_unit=2)
    assert version_of(Rule("x", "a > 1", threshold=150), "day", ["k"], "hour") == "c7f47b8ecdd80904"
    assert version_of(Rule("x", total, tolerance="15%", prior=3.5, so_far=True), None, []) == "d3dd13b607e656a6"
    assert version_of(Rule("x", distinct, threshold=1.5, margin=2), "day", []) == "adfe4a7f1bb1d130"
