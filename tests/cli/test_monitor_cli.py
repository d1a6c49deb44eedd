import datetime as dt
import html
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from tests.cli.clinic import COUNTS, FILE, FIRED, arrive, founded, told
from tests.cli.commands import CODE, run, start

from targetcharge.cli import monitor as command
from targetcharge.engines import duckdb
from targetcharge.tables import measured

HUGE = 10**400  # no double


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return founded(tmp_path)


@pytest.fixture
def whole(folder):
    for day in COUNTS:
        arrive(folder, day)
    return folder


@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_a_run_a_day_while_files_arrive(folder, charging):
    (folder / "clinic.yaml").write_text(FILE + f"charging: {charging}\n")
    result, large = [], "tct: a budget with ε = 200 hardly protects anybody: what is published may be e^200 times"
    for day in COUNTS:
        arrive(folder, day)
        done = run("monitor", "clinic.yaml", "--until", day, "--quiet")
        assert (done.code, done.err[: len(large)]) == (8, "" if result else large)
        result += told(done.out)
    assert result == FIRED
    assert told((folder / "alerts.jsonl").read_text()) == FIRED
    again = run("monitor", "clinic.yaml", "--until", "2024-01-04")
    assert (again.code, again.out) == (0, "")
    assert "0 days looked at, 0 alerts" in again.err  # it was counted by the run before
    snapshots = [json.loads(line)["snapshot"] for line in (folder / "alerts.jsonl").read_text().splitlines()]
    assert snapshots == [1, 2, 3, 4]
    assert run("meter", "visits.ledger.db", "--json").json["hits"] == 4


@pytest.mark.usefixtures("whole")
def test_a_run_that_catches_up():
    done = run("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-04")
    assert (done.code, told(done.out)) == (8, FIRED)
    assert "2024-01-02: ill rose to " in done.err
    assert "4 days looked at, 4 alerts" in done.err


@pytest.mark.usefixtures("whole")
def test_the_first_run_looks_at_one_day_and_yesterday_is_the_last(monkeypatch):
    class Clock(dt.date):
        @classmethod
        def today(cls):
            return dt.date(2024, 1, 3)

    monkeypatch.setattr(command.dt, "date", Clock)
    assert told(run("monitor", "clinic.yaml").out) == [
        ("ill", "2024-01-02", "rose"),
        ("all", "2024-01-02", "first"),
    ]


@pytest.mark.usefixtures("whole")
def test_the_source_is_opened_once_a_run(monkeypatch):
    """Also by the first, which checks the rules before it makes a ledger."""
    opened, engines = duckdb.open_duckdb, []

    def counting(*given, **more):
        engines.append(opened(*given, **more))
        return engines[-1]

    monkeypatch.setattr(duckdb, "open_duckdb", counting)
    for runs, until in enumerate(("2024-01-02", "2024-01-03"), 1):
        assert run("monitor", "clinic.yaml", "--until", until).code in (0, command.FIRED)
        assert len(engines) == runs


@pytest.mark.usefixtures("whole")
def test_the_text_of_a_rule_is_read_once_a_run(monkeypatch):
    """However many days it looks at; also by the first, which checks the rules before it makes a ledger."""
    texts, parse = [], measured.parse
    monkeypatch.setattr(measured, "parse", lambda text, schema: texts.append(text) or parse(text, schema))
    for runs, until in enumerate(("2024-01-02", "2024-01-04"), 1):
        assert run("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", until).code == command.FIRED
        assert texts == ["ill = TRUE"] * runs


@pytest.mark.parametrize("until", ["2024-01-02", "2023-12-31"])
@pytest.mark.usefixtures("whole")
def test_time_does_not_go_backwards(until):
    assert run("monitor", "clinic.yaml", "--until", "2024-01-03").code == 8
    done = run("monitor", "clinic.yaml", "--until", until)
    assert (done.code, done.out) == (2, "")
    assert f"--until is '{until}'; it must be 2024-01-03 or later" in done.err


def test_a_file_with_another_schema(folder):
    assert run("monitor", "clinic.yaml", "--until", "2024-01-01").code == 8
    wrong = pd.DataFrame({"person": range(900), "ill": ["yes"] * 900, "day": [dt.date(2024, 1, 2)] * 900})
    wrong.to_parquet(folder / "visits" / "2024-01-02.parquet", index=False)
    done = run("monitor", "clinic.yaml", "--until", "2024-01-02")
    assert (done.code, done.out) == (7, "")
    assert "do not have the same columns" in done.err
    arrive(folder, "2024-01-02")
    assert told(run("monitor", "clinic.yaml", "--until", "2024-01-02").out) == [FIRED[1]]


def test_nothing_is_asked_in_a_dry_run(whole):
    for _ in range(2):
        done = run("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-04", "--dry-run")
        assert done.code == 0
        assert "4 days to look at, from 2024-01-01 to 2024-01-04" in done.out
        assert "count(ill = TRUE AND day = '2024-01-01') >= 500" in done.out
    assert sorted(path.name for path in whole.iterdir()) == ["clinic.yaml", "visits"]
    assert run("monitor", "clinic.yaml", "--until", "2024-01-02").code == 8
    asked = run("monitor", "clinic.yaml", "--until", "2024-01-04", "--dry-run").out
    assert "2 days to look at, from 2024-01-03 to 2024-01-04. Asked about 2024-01-03:" in asked
    assert "day = '2024-01-03'" in asked
    assert run("monitor", "clinic.yaml", "--until", "2024-01-02", "--dry-run").out == "nothing is due\n"


@pytest.mark.usefixtures("whole")
def test_a_dry_run_tells_the_chances_at_the_ends_of_what_is_unchanged():
    """Of a fall below the threshold, and of a move beyond the tolerance."""
    assert run("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-03").code == 8
    asked = run("monitor", "clinic.yaml", "--until", "2024-01-04", "--dry-run").out
    assert "1 day to look at. Asked about 2024-01-04:" in asked
    ill, everybody = asked.split("\n\n")[1:]
    assert "rule ill of the monitor clinic\n" in ill
    assert re.search(r"so far from [\d.,]+, below which it has changed:\n +-\d.* hit 100.00%", ill)
    assert re.search(r"\n +\+\d\S+ +hit [0-9.]+e-0\d *$", ill)
    assert "rule all of the monitor clinic\n" in everybody
    assert re.search(
        r"so far from 1,8\d\d\S*, above which it has changed \(as it has below 1,1\d\d\S*\):", everybody
    )
    assert re.search(r"\n +\+\d\S+ +hit (99|100)\.\d\d% *$", everybody)


@pytest.mark.usefixtures("whole")
def test_a_ledger_and_a_report_name_the_rule_that_asked(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-04").code == 8
    shown = run("ledger", "show", "visits.ledger.db").out
    assert "rule ill of the monitor clinic: count(ill = TRUE AND day = '2024-01-02') >= 500" in shown
    page = html.unescape(run("report", "visits", "--output", "-").out)
    assert page.count("rule ill of the monitor clinic: count(ill = TRUE AND day = '2024-01-01') >= 500") == 1
    assert "rule all of the monitor clinic" in page
    assert re.findall(r">(2024-01-0\d)<", page) == ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]


def test_a_look_may_be_about_all_rows_if_that_is_said(whole):
    (whole / "clinic.yaml").write_text(FILE.replace("day: day", "all_rows: true"))
    done = run("monitor", "clinic.yaml", "--until", "2024-01-02")
    assert told(done.out) == [("ill", "2024-01-02", "rose"), ("all", "2024-01-02", "first")]


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_not_there_is_told_once():
    assert run("monitor", "no.yaml").err == "tct: no.yaml: it cannot be read: No such file or directory\n"


def test_a_budget_that_is_spent(whole):
    (whole / "clinic.yaml").write_text(FILE.replace("epsilon: 200", "epsilon: 45", 1))
    done = run("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-04")
    assert done.code == 3  # although something fired
    assert told(done.out) == FIRED[:1]
    assert "2024-01-02: not answered: ill, all" in done.err
    assert "the budget (45, 1e-06) does not cover it" in done.err
    again = run("monitor", "clinic.yaml", "--until", "2024-01-04")
    assert (again.code, again.out) == (3, "")


KILLED = """
import os, signal
from targetcharge.cli.monitor import Delivery
deliver = Delivery.deliver
def killed(self, alerts):
    if alerts:
        {}
        os.kill(os.getpid(), signal.SIGKILL)
Delivery.deliver = killed
"""


@pytest.mark.parametrize("when", ["pass", "deliver(self, alerts)"])
def test_an_alert_is_told_after_kill_9(whole, when):
    """Killed after the answer is durable: before the alert is told, or after."""
    words = ("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-01")
    line = [sys.executable, "-c", KILLED.format(when) + CODE, *words]
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert done.returncode == -signal.SIGKILL
    expected = FIRED[:1] if when == "pass" else []
    if when != "pass":
        assert told(done.stdout) == FIRED[:1]
    again = run("monitor", "clinic.yaml", "--until", "2024-01-01")
    assert told(again.out) == expected
    assert again.code == (8 if expected else 0)
    assert told((whole / "alerts.jsonl").read_text()) == FIRED[:1]


def test_a_torn_line_and_a_torn_note_are_mended(whole):
    assert run("monitor", "clinic.yaml", "--until", "2024-01-02").code == 8
    alerts, note = whole / "alerts.jsonl", whole / "visits.ledger.db-monitor"
    first, second = alerts.read_text().splitlines(keepends=True)
    alerts.write_text(first + second[:20])
    note.write_text(note.read_text()[:-3])
    again = run("monitor", "clinic.yaml", "--until", "2024-01-02")
    assert (again.code, again.out) == (8, first + second)  # told again, with the same seq
    assert alerts.read_text() == first + first + second


def test_alerts_file_that_was_moved_away_is_started_anew(whole):
    assert run("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-03").code == 8
    (whole / "alerts.jsonl").rename(whole / "alerts.1")
    assert run("monitor", "clinic.yaml", "--until", "2024-01-04").code == 8
    assert told((whole / "alerts.jsonl").read_text()) == FIRED[3:]


def test_a_ledger_that_was_started_anew_tells_its_alerts_from_the_first(whole):
    words = ("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-04")
    assert told(run(*words).out) == FIRED
    for path in whole.glob("visits.ledger.db*"):
        if not path.name.endswith("-monitor"):
            path.unlink()
    assert told(run(*words).out) == FIRED


@pytest.mark.usefixtures("whole")
def test_two_runs_at_the_same_time_ask_once():
    words = ("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-04")
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda each: (each.communicate()[0], each.returncode), [start(*words) for _ in "ab"]))
    assert sorted(code for _, code in done) == [0, 8]
    assert told("".join(out for out, _ in done)) == FIRED
    verified = run("ledger", "show", "visits.ledger.db", "--json", "--last", "100")
    assert verified.out.count('"algorithm"') == 8


def test_monitors_of_two_files_share_a_ledger(whole):
    (whole / "other.yaml").write_text(FILE.replace("alerts.jsonl", "other.jsonl"))
    for name in ("clinic", "other"):
        assert told(run("monitor", f"{name}.yaml", "--until", "2024-01-04").out) == [
            ("all", "2024-01-04", "first")
        ]


@pytest.mark.usefixtures("whole")
def test_ctrl_c_ends_after_a_day(monkeypatch):
    look = command.Monitor.look

    def pressed(self, day):
        os.kill(os.getpid(), signal.SIGINT)
        return look(self, day)

    monkeypatch.setattr(command.Monitor, "look", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    try:
        done = run("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-04")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.code, told(done.out)) == (130, FIRED[:1])


def test_every_field(whole):
    (whole / "clinic.yaml").write_text(
        """
name: clinic 7
table: visits
rows: true
epsilon: 200
delta: 1.0e-6
query_epsilon: 1
meter: renyi
ledger: kept/clinic.db
memory: 1GB
day: day
rules:
  - {name: a, where: ill = TRUE, threshold: 500, margin: 100, prior: 100, tolerance: 300}
  - {name: b, sum: person, lower: 0, upper: 10, grid: 1, tolerance: 1e3}
  - {name: c, distinct: person, per_unit: 1, threshold: 700, so_far: true}
  - {name: d, threshold: 500, by: ill, keys: [true, false], anew: true}
  - {name: e, threshold: 500, by: [ill, day], keys: [[true, 2024-01-02]], anew: true}
"""
    )
    (whole / "kept").mkdir()
    done = run("monitor", "clinic.yaml", "--until", "2024-01-02")
    alerts = [json.loads(line) for line in done.out.splitlines()]
    assert [(alert["rule"], alert["key"]) for alert in alerts] == [
        ("a", None),
        ("b", None),
        ("c", None),
        ("d", True),
        ("e", [True, "2024-01-02"]),
    ]
    assert {alert["monitor"] for alert in alerts} == {"clinic 7"}
    assert (whole / "kept" / "clinic.db-monitor").exists()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("table: visits\n", "", "clinic.yaml: there is no table"),
        ("unit: person\n", "", "clinic.yaml: there is no unit (or rows: true)"),
        ("epsilon: 200\n", "", "clinic.yaml: there is no epsilon"),
        ("day: day", "days: day", "clinic.yaml: there is no field 'days'; there are table,"),
        ("day: day", "days: day", "; did you mean day?"),
        ("threshold: 500", "treshold: 500", "; did you mean threshold?"),
        ("epsilon: 200", "epsilon: much", "clinic.yaml: epsilon is 'much'; it must be a number"),
        ("epsilon: 200", "epsilon: true", "clinic.yaml: epsilon is True; it must be a number"),
        ("day: day", "day: 3", "clinic.yaml: day is 3; it must be text"),
        ("day: day", "charging: both", "clinic.yaml: charging is 'both'; it must be one of shared, individual"),
        ("day: day", "types: [a]", "clinic.yaml: types is <list>; it must be columns with their kinds"),
        ("day: day", "rows: true", "clinic.yaml: rows is True; it must be left out"),
        (
            "day: day",
            "",
            "clinic.yaml: there is no day, the column of dates (or all_rows: true, if a look is about",
        ),
        ("day: day", "all_rows: false", "clinic.yaml: there is no day, the column of dates (or all_rows: true"),
        (
            "day: day",
            "day: day\nall_rows: true",
            "clinic.yaml: all_rows is True; it must be left out where",
        ),
        ("day: day", "all_rows: 1", "clinic.yaml: all_rows is 1; it must be true or false"),
        ("day: day", "day: [", "this is not YAML"),
        (
            "alerts.jsonl",
            "nowhere/alerts.jsonl",
            "clinic.yaml: alerts is 'nowhere/alerts.jsonl'; it must be a file that",
        ),
        ("day: day", "day: ill", "day is 'ill'; it must be a column of dates or times"),
        ("threshold: 500", "limit: 500", "clinic.yaml, item 1: there is no field 'limit'; there are name,"),
        ("threshold: 500", "threshold: x", "clinic.yaml, item 1: threshold is 'x'; it must be a number"),
        ("threshold: 500", "threshold: .nan", "clinic.yaml, item 1: threshold is nan"),
        ("threshold: 500", "anew: 1", "clinic.yaml, item 1: anew is 1; it must be true or false"),
        ("threshold: 500", "lower: 1", "clinic.yaml, item 1: lower is 1; it must be given with sum"),
        ("tolerance: 25%", "tolerance: '%'", "clinic.yaml, item 2: tolerance is '%'"),
        ("tolerance: 25%", "", "clinic.yaml, item 2: threshold is None; it must be given, or a tolerance"),
        ("name: all", "name: ill", "clinic.yaml, item 2: its name 'ill' is that of clinic.yaml, item 1 too"),
        ("name: all, ", "", "clinic.yaml, item 2: name is None; it must be given: alerts carry it"),
        ("name: all", "where: ages > 3, name: all", "clinic.yaml, item 2: "),
        ("name: all", "by: ill, keys: [3], name: all", "clinic.yaml, item 2: keys[0] is 3"),
        ("name: all", "by: 3, keys: [3], name: all", "clinic.yaml, item 2: by is 3; it must be the name of"),
        ("name: all", "by: true, keys: [3], name: all", "clinic.yaml, item 2: by is True; it must be the name of"),
        ("name: all", "by: [3], keys: [3], name: all", "clinic.yaml, item 2: by is 3; it must be one of"),
        ("threshold: 500", f"threshold: {HUGE}", "clinic.yaml, item 1: threshold is 1000"),
        ("threshold: 500", f"threshold: 500, margin: {HUGE}", "clinic.yaml, item 1: margin is 1000"),
        ("tolerance: 25%", f"tolerance: {HUGE}", "clinic.yaml, item 2: tolerance is 1000"),
        ("epsilon: 200", f"epsilon: {HUGE}", "clinic.yaml: epsilon is 1000"),
        ("threshold: 500", "sum: age, lower: 0, upper: 1, threshold: 5", "clinic.yaml, item 1: sum is 'age'"),
        ("threshold: 500", f"sum: person, lower: {HUGE}, upper: 1", "clinic.yaml, item 1: lower is 1000"),
        ("threshold: 500", f"sum: person, lower: 0, upper: {HUGE}", "clinic.yaml, item 1: upper is 1000"),
        (
            "threshold: 500",
            f"threshold: 5, sum: person, lower: 0, upper: 1, grid: {HUGE}",
            "clinic.yaml, item 1: grid is 1000",
        ),
        (
            "threshold: 500",
            f"threshold: 5, distinct: person, per_unit: {HUGE}",
            "clinic.yaml, item 1: per_unit is 1000",
        ),
        (
            "day: day",
            "day: day\nledger: nowhere/l.db",
            "nowhere/l.db: this ledger cannot be written: No such file",
        ),
    ],
)
def test_mistakes_name_their_place(folder, old, new, problem):
    assert old in FILE
    (folder / "clinic.yaml").write_text(FILE.replace(old, new, 1))
    done = run("monitor", "clinic.yaml", "--until", "2024-01-01")
    assert (done.code, done.out) == (2, "")
    assert problem in " ".join(done.err.split())
    assert sorted(path.name for path in folder.iterdir()) == ["clinic.yaml", "visits"]  # it leaves nothing behind


@pytest.mark.parametrize("text", ["", "- a", "rules: []\ntable: visits\nunit: a\nepsilon: 1\ndelta: 1e-6"])
def test_files_that_are_none(folder, text):
    (folder / "clinic.yaml").write_text(text)
    assert run("monitor", "clinic.yaml").code == 2
    assert run("monitor", "missing.yaml").code == 2


@pytest.mark.parametrize("options", [("--until", "soon"), ("--since", "2024-01-05", "--until", "2024-01-01")])
def test_days_that_are_none(folder, options):
    done = run("monitor", "clinic.yaml", *options)
    assert done.code == 2
    assert options[0] in done.err
    assert sorted(path.name for path in folder.iterdir()) == ["clinic.yaml", "visits"]
