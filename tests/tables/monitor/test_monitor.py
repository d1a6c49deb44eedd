import datetime as dt
import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from tests.offset_noise import CarriedNoise
from tests.tables.monitor.days import FIRST, breaking, day, kinds, opened, people

import targetcharge as tc
from targetcharge.tables.monitor import Alert, Kind, Monitor, Rule


def watched(rule, counts, **options):
    """Return the kinds of a rule's alerts by day, the hits, and the alerts."""
    with opened() as table:
        monitor = Monitor(table, [rule], **{"day": "day", **options})
        looks = [monitor.look(day(number), people(number, many)) for number, many in enumerate(counts)]
        assert all(len(look.alerts) + len(look.quiet) == 1 and not look.unanswered for look in looks)
        told = [look.alerts[0].kind if look.alerts else "" for look in looks]
        assert table.meter.hits == sum(map(bool, told))
        assert monitor.alerts() == [alert for look in looks for alert in look.alerts]
        return told, monitor.alerts()


@pytest.mark.parametrize(
    ("rule", "counts", "kinds"),
    [
        (Rule("x", threshold=500), [100, 600, 2000, 600, 400, 400, 600], ["", "rose", "", "", "fell", "", "rose"]),
        (Rule("x", threshold=500, margin=200), [600, 400, 200, 400, 600], ["rose", "", "fell", "", "rose"]),
        (Rule("x", threshold=500, margin=0), [600, 400, 600, 400], ["rose", "fell", "rose", "fell"]),
        (Rule("x", threshold=500, anew=True), [600, 700, 100, 600], ["rose", "rose", "", "rose"]),
        (Rule("x", threshold=500, tolerance=150), [600, 700, 900, 800, 400], ["rose", "", "moved", "", "fell"]),
        # within the tolerance of the last value, and below the threshold all the same
        (Rule("x", threshold=500, tolerance=900), [600, 1400, 400, 1600], ["rose", "", "fell", "rose"]),
        (Rule("x", threshold=500, tolerance=150, margin=300), [600, 400, 500], ["rose", "moved", ""]),
        (Rule("x", tolerance=150), [600, 700, 800, 900, 100], ["first", "", "moved", "", "moved"]),
        (Rule("x", tolerance="20%"), [1000, 1150, 1250, 1450, 1750], ["first", "", "moved", "", "moved"]),
        (Rule("x", tolerance=150, prior=650), [600, 700, 900], ["", "", "moved"]),
        (Rule("x", threshold=500, prior=700), [600, 300, 600], ["", "fell", "rose"]),
        (Rule("x", threshold=500, prior=200), [100, 600], ["", "rose"]),
        (Rule("x", "kind = 'b'", threshold=50), [600, 600], ["", ""]),
        (Rule("x", tc.questions.sum("cost", 0, 5), threshold=1500), [400, 700, 500], ["", "rose", "fell"]),
        (Rule("x", tc.questions.sum("cost", 0, 5), tolerance=500), [400, 500, 700], ["first", "", "moved"]),
        (
            Rule("x", tc.questions.distinct("person"), threshold=500),
            [300, 700, 900, 300],
            ["", "rose", "", "fell"],
        ),
    ],
)
def test_what_fires_and_costs(rule, counts, kinds):
    assert watched(rule, counts)[0] == kinds


def test_alerts_tell_published_facts():
    _, (rose, moved, fell) = watched(Rule("x", threshold=500, tolerance=150), [600, 900, 900, 100])
    assert [abs(alert.value - true) < 50 for alert, true in ((rose, 600), (moved, 900), (fell, 100))] == [True] * 3
    assert (rose.prior, moved.prior, fell.prior) == (None, rose.value, moved.value)
    assert (rose.day, rose.key, rose.monitor, rose.snapshot) == (FIRST, None, "monitor", 2)
    assert rose.interval[0] < rose.value < rose.interval[1]
    assert rose.seq < moved.seq < fell.seq
    line = json.loads(fell.to_json())
    assert line["day"] == "2024-01-04"
    assert line["kind"] == "fell"
    assert dt.datetime.fromisoformat(line["time"]).tzinfo is dt.UTC
    assert set(line) == set(Alert.__dataclass_fields__)
    assert str(moved) == f"2024-01-02: x moved from {rose.value} to {moved.value}"


def test_a_fall_of_distinct_values_has_no_value():
    fell = watched(Rule("x", tc.questions.distinct("person"), threshold=500), [700, 100])[1][-1]
    assert (fell.kind, fell.value) == ("fell", None)
    assert str(fell).endswith(f"fell from {fell.prior}")


def test_a_day_or_all_days_so_far():
    rules = [Rule("day", threshold=500), Rule("so far", threshold=500, so_far=True)]
    with opened() as table:
        monitor = Monitor(table, rules, day="day")
        looks = [monitor.look(day(number), people(number, 200, start=200 * number)) for number in range(4)]
    assert [kinds(look) for look in looks] == [[], [], [("so far", "rose")], []]


def test_later_rows_do_not_count_when_looks_catch_up():
    rules = [Rule("day", threshold=500, margin=0), Rule("so far", threshold=500, so_far=True)]
    rows = pd.concat([people(0, 300), people(1, 700), people(2, 300)])
    for column in ("day", "time"):
        table = rows.assign(time=pd.to_datetime(rows["day"]) + pd.Timedelta(hours=23, minutes=59))
        with opened(table) as t:
            monitor = Monitor(t, rules, day=column)
            looks = [monitor.look(day(number)) for number in range(3)]
            assert [kinds(look) for look in looks] == [
                [],
                [("day", "rose"), ("so far", "rose")],
                [("day", "fell")],
            ]


def test_without_a_day_column_all_rows_count():
    assert watched(Rule("x", threshold=500), [300, 600, 10], day=None)[0] == ["", "rose", ""]


def test_keys_go_their_own_ways():
    rule = Rule("x", threshold=500, by="kind", keys=["a", "b", "c"])
    days = [{"a": 600, "b": 100}, {"a": 600, "b": 600}, {"a": 100, "b": 600, "c": 600}]
    with opened() as table:
        monitor = Monitor(table, [rule], day="day")
        looks = [
            monitor.look(day(number), pd.concat([people(number, many, kind) for kind, many in counts.items()]))
            for number, counts in enumerate(days)
        ]
        found = [[(alert.key, str(alert.kind)) for alert in look.alerts] for look in looks]
        assert found == [[("a", "rose")], [("b", "rose")], [("a", "fell"), ("c", "rose")]]
        assert looks[0].quiet == (("x", "b"), ("x", "c"))
        # a key that is added later starts anew, and the others go on
        more = Monitor(table, [Rule("x", threshold=500, by="kind", keys=["a", "b", "c", "d"])], day="day")
        assert kinds(more.look(day(3), people(3, 600, "b"))) == [("x", "fell")]


def test_keys_of_two_columns():
    rule = Rule("x", "person >= 0", threshold=500, by=["kind", "cost"], keys=[("a", 2.5), ("a", 3)])
    with opened(people(0, 700)) as table:
        look = Monitor(table, [rule], day="day").look(FIRST)
    assert [alert.key for alert in look.alerts] == [("a", 2.5)]


@pytest.mark.parametrize("again", ["2023-12-31", dt.date(2024, 1, 1), pd.Timestamp("2024-01-01")])
def test_time_does_not_go_backwards(again):
    with opened() as table:
        monitor = Monitor(table, [Rule("x", threshold=500)], day="day")
        monitor.look(day(1), people(1, 600))
        for each in (monitor, Monitor(table, [Rule("y", tolerance=5)], day="day")):  # also for another rule
            with pytest.raises(tc.InvalidParameter, match=r"day is '202.*must be 2024-01-02 or later") as refusal:
                each.look(again, people(0, 900))
            assert refusal.value.name == "day"
        assert (table.snapshot, len(table.transcript)) == (2, 1)  # nothing was appended or asked


def test_time_does_not_go_backwards_in_another_process(tmp_path):
    people(1, 600).to_parquet(tmp_path / "t.parquet")
    for number in (1, 0):
        with tc.open(
            tmp_path / "t.parquet", "person", tc.Budget(60.0, 1e-6), query_epsilon=1.0, meter="exact"
        ) as table:
            monitor = Monitor(table, [Rule("x", threshold=500)], day="day")
            if number:
                assert kinds(monitor.look(day(1))) == [("x", "rose")]
                continue
            assert monitor.last == day(1)
            with pytest.raises(tc.InvalidParameter, match="2024-01-02 or later"):
                monitor.look(day(0))
            assert kinds(monitor.look(day(1))) == [("x", "rose")]  # from the transcript
            assert (table.meter.hits, len(table.transcript)) == (1, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.drop(columns="kind"),
        lambda rows: rows.assign(more=1),
        lambda rows: rows.assign(cost=["dear"] * len(rows)),
        lambda rows: rows.rename(columns={"kind": "sort"}),
    ],
)
def test_an_append_that_changes_the_schema_is_refused_and_the_look_can_be_repeated(change):
    with opened() as table:
        monitor = Monitor(table, [Rule("x", threshold=500)], day="day")
        with pytest.raises(tc.InvalidParameter):
            monitor.look(FIRST, change(people(0, 600)))
        assert (table.snapshot, len(table.transcript), monitor.last) == (1, 0, None)
        assert kinds(monitor.look(FIRST, people(0, 600))) == [("x", "rose")]


def test_the_last_day_again_is_free_and_the_same():
    with opened() as table:
        monitor = Monitor(table, [Rule("x", threshold=500), Rule("y", tolerance=90)], day="day")
        look = monitor.look(FIRST, people(0, 600))
        assert monitor.look(FIRST) == look == Monitor(table, [*_rules(monitor)], day="day").look("2024-01-01")
        assert (table.meter.hits, len(table.transcript)) == (2, 2)
        with pytest.raises(tc.InvalidParameter, match="appended already"):
            monitor.look(FIRST, people(0, 600))


def _rules(monitor):
    return [checked.rule for checked in monitor._rules]


@pytest.mark.parametrize("after", range(4))
def test_a_look_that_broke_goes_on_with_what_was_not_answered(after):
    rules = [Rule("a", tolerance=90), Rule("b", threshold=500), Rule("c", threshold=900), Rule("d", tolerance=90)]
    with opened() as table:
        monitor = Monitor(table, rules, day="day")
        with breaking(table, after), pytest.raises(tc.LedgerError):
            monitor.look(FIRST, people(0, 600))
        answered = len(table.transcript)
        assert answered < 4
        other = Monitor(table, rules, day="day")
        assert len(other.due(FIRST)) == len(monitor.due(FIRST)) == 4 - answered
        assert kinds(monitor.look(FIRST)) == [("a", "first"), ("b", "rose"), ("d", "first")]
        assert other.look(FIRST) == monitor.look(FIRST)
        assert len(table.transcript) == 4


def test_a_budget_that_is_spent_on_the_way():
    rules = [Rule(name, tolerance=90) for name in "abc"]
    with opened(budget=tc.Budget(45.0, 1e-6)) as table:
        covered = table.meter.hits_left
        assert 0 < covered < 3
        monitor = Monitor(table, rules, day="day")
        look = monitor.look(FIRST, people(0, 600))
        assert [alert.rule for alert in look.alerts] == list("abc")[:covered]
        assert look.unanswered == tuple((name, None) for name in "abc"[covered:])
        assert "budget" in look.stopped
        nothing = monitor.look(day(1), people(1, 600))
        assert (nothing.alerts, nothing.quiet, len(nothing.unanswered)) == ((), (), 3)
        assert nothing.stopped
        assert len(monitor.due(day(1))) == 3


def test_monitors_on_one_ledger_do_not_confuse_each_other():
    with opened() as table:
        one = Monitor(table, [Rule("x", threshold=500)], day="day", name="one")
        two = Monitor(table, [Rule("x", threshold=500)], day="day", name="two")
        assert kinds(one.look(day(5), people(5, 600))) == [("x", "rose")]
        assert two.last is None
        assert kinds(two.look(day(2), people(2, 600))) == [("x", "rose")]  # asks by itself, earlier than the other
        assert [alert.day for alert in one.alerts()] == [day(5)]
        table.above("kind = 'a'", 500)  # what others ask is nothing to it
        assert (one.last, two.last, len(table.transcript)) == (day(5), day(2), 3)


def test_a_monitor_hears_of_what_another_object_asked():
    with opened() as table:
        one, two = (Monitor(table, [Rule("x", threshold=500)], day="day") for _ in range(2))
        one.look(FIRST, people(0, 600))
        assert two.alerts() == one.alerts()
        assert two.look(day(1), people(1, 700)).alerts == ()
        assert two.alerts(after=two.alerts()[0].seq) == []


def test_a_rule_that_was_changed_is_a_new_one():
    with opened() as table:
        (alert,) = Monitor(table, [Rule("x", threshold=500)], day="day").look(FIRST, people(0, 600)).alerts
        changed = Monitor(table, [Rule("x", threshold=400)], day="day")
        assert changed.alerts() == []
        (former,) = changed.alerts(former=True)
        assert former == replace(alert, kind=Kind.FORMER)
        assert changed.alerts(after=former.seq, former=True) == []
        assert kinds(changed.look(FIRST)) == [("x", "rose")]
        assert Monitor(table, [Rule("x", threshold=500.0)], day="day").alerts() != []  # the same number


@pytest.mark.parametrize("options", [{"targets": [tc.NotPrior(None)]}, {"meter": "renyi"}], ids=["exact", "renyi"])
def test_a_budget_for_every_individual(options):
    rules = [Rule("day", threshold=500), Rule("all", tolerance=90, so_far=True)]
    with opened(charging="individual", **options) as table:
        monitor = Monitor(table, rules, day="day")
        looks = [monitor.look(day(number), people(number, many)) for number, many in enumerate([600, 650, 100])]
    assert [kinds(look) for look in looks] == [[("day", "rose"), ("all", "first")], [], [("day", "fell")]]


def test_with_a_budget_for_every_individual_it_needs_a_meter_that_takes_more_than_at_least():
    with opened(charging="individual") as table:
        with pytest.raises(tc.NotAllowed, match="meter='renyi'"):
            Monitor(table, [Rule("x", threshold=500)])
        assert len(table.transcript) == 0


@pytest.mark.parametrize("answers", [None, 5, "abc", [None], [5]], ids=repr)
def test_what_is_no_answer_is_not_learned_from(answers):
    with opened(people(0, 600)) as table:
        monitor = Monitor(table, [Rule("day", threshold=500)], day="day")
        with pytest.raises(tc.InvalidParameter, match="answers is"):
            monitor.learn(answers)


def test_labels_are_text_and_answers_keep_them():
    with opened(people(0, 600)) as table:
        table.ask(tc.questions.above(None, 500, label='mine "1" ε'))
        assert json.loads(table.transcript[-1].question)["label"] == 'mine "1" ε'
        with pytest.raises(tc.InvalidParameter, match="label is 3; it must be text"):
            table.ask(tc.questions.count(label=3))
        last, answers = table.transcript.since(0)
        assert (len(answers), table.transcript.since(last)) == (1, (last, []))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": ""}, "name is ''; it must be text that says which rule"),
        ({"name": 3}, "name is 3"),
        ({"threshold": None}, "threshold is None; it must be given, or a tolerance"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": "many"}, "threshold is 'many'"),
        ({"tolerance": -1}, "tolerance is -1"),
        ({"tolerance": "15"}, "tolerance is '15'; .* such as \"15%\""),
        ({"tolerance": True}, "tolerance is True"),
        ({"margin": -1}, "margin is -1; it must be a number of at least 0"),
        (
            {"threshold": -(2**53), "margin": 2**53},
            "threshold - margin is -18014398509481984; it must be a number",
        ),
        ({"threshold": -(2.0**53), "margin": 2.0**53}, "threshold - margin is -1.80"),
        ({"threshold": 10**400}, "threshold is 1000"),
        ({"margin": 10**400}, "margin is 1000"),
        ({"tolerance": 10**400}, "tolerance is 1000"),
        ({"threshold": None, "tolerance": 3, "margin": 3}, "margin is 3; it must be left out"),
        ({"threshold": None, "tolerance": 3, "anew": True}, "anew is True; it must be left out"),
        ({"anew": 1}, "anew is 1; it must be True or False"),
        ({"anew": True, "tolerance": 3}, "tolerance is 3; it must be left out"),
        ({"anew": True, "prior": 3}, "prior is 3; it must be left out"),
        ({"prior": "3"}, "prior is '3'"),
        ({"by": "kind"}, "keys is None; it must be given with by"),
        ({"keys": ["a"]}, "by is None; it must be given with keys"),
        ({"where": 3}, "where is 3"),
        ({"where": tc.questions.distinct("x"), "threshold": None, "tolerance": 5}, "given for distinct values"),
    ],
)
def test_rules_that_make_no_sense(given, problem):
    with pytest.raises(tc.InvalidParameter, match=problem):
        Rule(**{"name": "x", "threshold": 500, **given})


@pytest.mark.parametrize(
    ("rules", "options", "problem"),
    [
        ([], {}, "rules"),
        ("x", {}, "rules"),
        ([Rule("x", threshold=5), Rule("x", threshold=6)], {}, "rules is 'x'; it must be given once"),
        ([Rule("x", "age > 5", threshold=5)], {}, "age"),
        ([Rule("x", "cost > 1) OR (cost > 2", threshold=5)], {}, "where"),  # and it stays inside its parentheses
        ([Rule("x", threshold=5, by="kind", keys=[3])], {}, r"keys\[0\] is 3"),
        ([Rule("x", threshold=5, by=3, keys=["a"])], {}, "by is 3; it must be the name of a column"),
        ([Rule("x", threshold=5, by=True, keys=["a"])], {}, "by is True; it must be the name of a column"),
        ([Rule("x", threshold=5, by=[["kind"]], keys=["a"])], {}, "by is <list>; it must be one of the columns"),
        ([Rule("x", threshold=5)], {"day": "kind"}, "day is 'kind'; it must be a column of dates or times"),
        ([Rule("x", threshold=5)], {"day": "days"}, "day"),
        ([Rule("x", threshold=5)], {"name": " "}, "name is ' '"),
        ([Rule("x", threshold=5, so_far=True)], {}, "so_far is True; it must be left out"),
    ],
)
def test_monitors_that_make_no_sense(rules, options, problem):
    with opened() as table, pytest.raises(tc.InvalidParameter, match=problem):
        Monitor(table, rules, **options)


def test_days_and_tables_that_are_none():
    with opened() as table:
        monitor = Monitor(table, [Rule("x", threshold=500)], day="day")
        for wrong in (5, "yesterday", dt.datetime(2024, 1, 1, 8), None):
            with pytest.raises(tc.InvalidParameter, match=r"day is .*must be a date"):
                monitor.look(wrong)
        assert repr(monitor) == "<monitor 'monitor', 1 numbers, last look None>"
    with pytest.raises(tc.InvalidParameter, match="table"):
        Monitor(people(0, 5), [Rule("x", threshold=500)])


@pytest.mark.parametrize(
    ("rule", "floor"),
    [
        (Rule("x", threshold=500), lambda noise: 500 - round(4 * noise(1).scale)),
        (Rule("x", threshold=500, margin=7), 493),
        (Rule("x", threshold=-(2**53)), -(2**53)),  # thresholds end there
        (
            Rule("x", tc.questions.sum("cost", 0, 5), threshold=500),
            lambda noise: pytest.approx(500 - 4 * noise(5_000_000).scale / 1e6, abs=0.01),  # a millionth is a step
        ),
        (Rule("x", tc.questions.sum("cost", -5, 5), threshold=500), pytest.approx(300, abs=0.01)),  # no offset
        (Rule("x", tc.questions.distinct("person"), threshold=20), 1),
        (Rule("x", tolerance=5), None),
    ],
)
def test_where_a_number_has_fallen(rule, floor):
    with opened(query_epsilon=0.1, budget=tc.Budget(5.0, 1e-6)) as table:
        (checked,) = Monitor(table, [rule])._rules
        offset = table.meter.tariff.offset
    if callable(floor):
        floor = floor(lambda sensitivity: CarriedNoise.of(offset, 0.1, sensitivity))
    assert checked.floor == floor


@pytest.mark.parametrize("rho", [0, 1])
@pytest.mark.parametrize("margin", [None, 0])
def test_a_fall_by_noise_alone_is_rare(monkeypatch, margin, rho):
    """At the threshold 0.5% of looks fall with the default margin, 3 of 600; without a margin 20%, 118 of 600.

    An offset in all of them makes falls a little more likely, and rises less.
    """
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: rho)
    rule, falls = Rule("x", threshold=500, margin=margin), 0
    with opened(people(0, 500), budget=tc.Budget(1000.0, 1e-6)) as table:
        assert table.meter.hits_left > 350  # of which 236 are expected without a margin
        monitor = Monitor(table, [rule])
        noise, below = CarriedNoise.of(table.meter.tariff.offset, 1.0), 500 - monitor._rules[0].floor
        for number in range(600):
            falls += sum(alert.kind == "fell" for alert in monitor.look(day(number)).alerts)
    rises, fails = noise.given(rho, 0), 1 - noise.given(rho, -noise.lattice * below)
    expected = 600 * rises * fails / (rises + fails)
    assert (expected < 10) == (margin is None)
    assert abs(falls - expected) <= 6 * math.sqrt(expected) + 1


def test_rules_that_ask_the_same_on_the_same_rows_are_asked_each_and_known_to_every_monitor():
    """Their labels tell them apart: a repeat is in no transcript, so the next process would not know of it."""
    rules = [Rule("one", threshold=500, anew=True), Rule("two", threshold=500, anew=True)]
    with opened(people(0, 600)) as table:
        monitor = Monitor(table, rules)
        for number in range(2):  # no rows came: every day stands for itself all the same
            assert kinds(monitor.look(day(number))) == [("one", "rose"), ("two", "rose")]
        assert table.meter.hits == 4
        assert len(Monitor(table, rules).alerts()) == len(monitor.alerts()) == 4


def test_a_rule_that_another_session_looked_at_since_is_not_paid_twice(tmp_path):
    place = tmp_path / "ledger.db"
    with opened(people(0, 600), ledger=place) as first, opened(people(0, 600), ledger=place) as second:
        rules = [Rule("one", threshold=500)]
        late = Monitor(second, rules)
        due = late.due(FIRST)
        assert kinds(Monitor(first, rules).look(FIRST)) == [("one", "rose")]
        (answer,) = second.ask_many(due)  # as a look would that began before
        assert (answer.repeat, first.meter.hits) == (True, 1)
        late.learn([answer])
        assert [alert.seq for alert in late.alerts()] == [answer.seq]
