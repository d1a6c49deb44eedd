"""What `tct monitor` writes, where it must not write, and what it says when it cannot."""

import datetime as dt
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.clinic import COUNTS, FILE, FIRED, arrive, founded, told
from tests.cli.commands import CODE, run, start

from targetcharge.cli import monitor as command

ALL = ("monitor", "clinic.yaml", "--since", "2024-01-01", "--until", "2024-01-04")
KILLED = """
import os, signal
from targetcharge.cli.monitor import Delivery
Delivery.deliver = lambda self, alerts: alerts and os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    founded(tmp_path)
    for day in COUNTS:
        arrive(tmp_path, day)
    return tmp_path


def contents(folder):
    """What is in a folder, but for what SQLite needs to read a ledger."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if not path.name.endswith(("-shm", "-wal"))}


def test_two_monitors_with_ledgers_of_their_own_share_an_alerts_file(whole):
    (whole / "other.yaml").write_text(FILE + "ledger: other.db\n")
    for day in COUNTS:
        assert run("monitor", "clinic.yaml", "--until", day).code == 8
        assert run("monitor", "other.yaml", "--until", day).code == 8
    lines = (whole / "alerts.jsonl").read_text()
    assert told(lines) == [each for each in FIRED for _ in "ab"]
    assert [json.loads(line)["monitor"] for line in lines.splitlines()] == ["clinic", "other"] * 4


def test_monitors_that_write_at_the_same_time_lose_nothing(whole):
    names = [f"m{number}" for number in range(3)]
    for name in names:
        (whole / f"{name}.yaml").write_text(FILE + f"ledger: {name}.db\n")
    runs = [start("monitor", f"{name}.yaml", *ALL[2:]) for name in names]
    assert {(each.communicate()[1] and each.returncode) for each in runs} == {8}
    lines = [json.loads(line) for line in (whole / "alerts.jsonl").read_text().splitlines()]
    for name in names:
        result = [(each["rule"], each["day"], each["kind"]) for each in lines if each["monitor"] == name]
        assert result == FIRED


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("kept\n", "kept\n"),
        ("somebody's last words", "somebody's last words\n"),
        ('kept\n{"monitor": "cli', "kept\n"),
        ('{"monitor": "cli', ""),
        ("x" * 100_000, "x" * 100_000 + "\n"),
        ('{"monitor"' + "x" * 100_000, '{"monitor"' + "x" * 100_000 + "\n"),
    ],
)
def test_what_others_wrote_into_the_alerts_file_is_kept(whole, before, kept):
    (whole / "alerts.jsonl").write_text(before)
    done = run("monitor", "clinic.yaml", "--until", "2024-01-01")
    assert done.code == 8
    assert (whole / "alerts.jsonl").read_text() == kept + done.out


@pytest.mark.parametrize(
    ("alerts", "problem"),
    [
        ("visits", "outside of the table"),
        ("visits/alerts.jsonl", "outside of the table"),
        ("visits/../visits/a", "outside of the table"),
        ("link/alerts.jsonl", "outside of the table"),
        ("clinic.yaml", "another file than this one"),
        ("visits.ledger.db", "another file than the ledger visits.ledger.db"),
        ("visits.ledger.db-private", "another file than the ledger visits.ledger.db"),
        ("visits.ledger.db-wal", "another file than the ledger visits.ledger.db"),
        ("folder", "a regular file"),
        ("/dev/full", "a regular file"),
        ("pipe", "a regular file"),
        ("clinic.yaml/alerts", "a file that can be written"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_places_that_alerts_must_not_be_kept_in(whole, alerts, problem, dry):
    (whole / "folder").mkdir()
    (whole / "link").symlink_to(whole / "visits")
    os.mkfifo(whole / "pipe")
    (whole / "clinic.yaml").write_text(FILE.replace("alerts.jsonl", alerts))
    before = contents(whole)
    done = run(*ALL, *dry)
    assert (done.code, done.out) == (2, "")
    assert "clinic.yaml: alerts is " in done.err
    assert f"it must be {problem}" in done.err
    assert contents(whole) == before


@pytest.mark.parametrize("table", ["visits/*.parquet", "visits/2024-01-01.parquet"])
def test_alerts_are_not_kept_in_a_file_of_the_table(whole, table):
    text = FILE.replace("table: visits", f"table: {table}") + "ledger: kept.db\n"
    (whole / "clinic.yaml").write_text(text.replace("alerts.jsonl", "visits/2024-01-01.parquet"))
    before = contents(whole)
    done = run(*ALL)
    assert (done.code, contents(whole)) == (2, before)
    assert "it must be outside of the table" in done.err


@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_a_dry_run_changes_nothing(whole, charging):
    (whole / "clinic.yaml").write_text(FILE + f"charging: {charging}\n")
    for day in ("2024-01-03", "2024-01-04"):
        (whole / "visits" / f"{day}.parquet").unlink()
    assert run("monitor", "clinic.yaml", "--until", "2024-01-02").code == 8
    arrive(whole, "2024-01-03", part=0.5)  # it is still being copied
    before = contents(whole)
    done = run("monitor", "clinic.yaml", "--until", "2024-01-03", "--dry-run")
    assert "1 day to look at. Asked about 2024-01-03" in done.out
    assert contents(whole) == before
    arrive(whole, "2024-01-03")
    done = run("monitor", "clinic.yaml", "--until", "2024-01-03")
    assert [json.loads(line)["snapshot"] for line in done.out.splitlines()] == [2]


def test_a_dry_run_tells_that_the_ledger_is_for_other_terms(whole):
    assert run("monitor", "clinic.yaml", "--until", "2024-01-02").code == 8
    (whole / "clinic.yaml").write_text(FILE.replace("epsilon: 200", "epsilon: 100", 1))
    for options in ((), ("--dry-run",)):
        done = run("monitor", "clinic.yaml", "--until", "2024-01-03", *options)
        assert (done.code, done.out) == (3, "")
        assert "was made for other terms: epsilon was 200.0 and is 100.0" in done.err


@pytest.mark.parametrize("change", [("threshold: 500", "threshold: 501"), ("name: ill", "name: sick")])
def test_an_alert_of_a_rule_that_was_changed_after_kill_9_is_told(whole, change):
    words = ("monitor", "clinic.yaml", "--until", "2024-01-02")
    line = [sys.executable, "-c", KILLED + CODE, *words]
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    (whole / "clinic.yaml").write_text(FILE.replace(*change, 1))
    again = run(*words)
    assert again.code == 8
    rule = change[1].removeprefix("name: ") if change[1].startswith("name") else "ill"
    assert sorted(told(again.out)) == sorted(
        [("ill", "2024-01-02", "former"), ("all", "2024-01-02", "first"), (rule, "2024-01-02", "rose")]
    )
    assert "2024-01-02: ill (as it was) fired with " in again.err
    assert run(*words).out == ""


def test_output_that_cannot_be_written_is_told_again(whole):
    words = [sys.executable, "-c", CODE, "monitor", "clinic.yaml", "--until", "2024-01-01"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 4
    assert "the standard output cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - ours
    os.close(writer)
    assert done.returncode == 4
    assert "the standard output cannot be written: Broken pipe" in done.stderr
    again = run("monitor", "clinic.yaml", "--until", "2024-01-01")
    assert (again.code, told(again.out)) == (8, FIRED[:1])
    assert (whole / "alerts.jsonl").read_text() == 3 * again.out  # each time before the standard output


def test_an_alerts_file_that_cannot_be_written_is_told_of(whole, monkeypatch):
    look = command.Monitor.look

    def moved(self, day):
        (whole / "alerts.jsonl").mkdir()
        return look(self, day)

    with monkeypatch.context() as patch:
        patch.setattr(command.Monitor, "look", moved)
        done = run("monitor", "clinic.yaml", "--until", "2024-01-01")
    assert (done.code, done.out) == (4, "")
    assert "the alerts file alerts.jsonl cannot be written: Is a directory" in done.err
    (whole / "alerts.jsonl").rmdir()
    assert told(run("monitor", "clinic.yaml", "--until", "2024-01-01").out) == FIRED[:1]


@pytest.mark.parametrize("option", ["--until", "--since"])
def test_days_that_have_not_come_are_refused(whole, option):
    tomorrow = (dt.date.today() + dt.timedelta(days=2)).isoformat()
    done = run("monitor", "clinic.yaml", option, tomorrow)
    assert (done.code, done.out) == (2, "")
    assert f"{option} is '{tomorrow}'; it must be " in done.err
    assert not (whole / "visits.ledger.db").exists()


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.usefixtures("whole")
def test_the_first_day_is_of_the_first_run_only(dry):
    ignored = "--since is ignored: the monitor 'clinic' has looked at 2024-01-04 already"
    assert ignored not in run(*ALL).err
    assert ignored in run(*ALL, *dry).err
    assert run(*ALL, *dry, "--quiet").err == ""


def test_of_many_that_were_not_answered_a_few_are_listed(whole):
    rules = "".join(f"  - {{name: r{number}, tolerance: 1}}\n" for number in range(30))
    head = FILE[: FILE.index("  - ")].replace("epsilon: 200", "epsilon: 45")
    (whole / "clinic.yaml").write_text(head + rules)
    done = run("monitor", "clinic.yaml", "--until", "2024-01-01")
    assert done.code == 3
    (line,) = (line for line in done.err.splitlines() if "not answered" in line)
    assert line.count(", r") == 19
    assert line.endswith(" more")


@pytest.mark.parametrize("name", ["clinic.yaml", "visits.ledger.db-monitor"])
def test_a_run_that_waits_says_so(whole, name):
    (whole / name).touch()
    with (whole / name).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = start("monitor", "clinic.yaml", "--until", "2024-01-01")
        assert waiting.stderr.readline() == "tct: waiting for another run of a monitor to end\n"
    out, _ = waiting.communicate()
    assert (waiting.returncode, told(out)) == (8, FIRED[:1])


def test_yesterday_is_over_in_utc_too(monkeypatch):
    class East(dt.date):
        @classmethod
        def today(cls):
            return (dt.datetime.now(dt.UTC) + dt.timedelta(days=1)).date()

    before = dt.datetime.now(dt.UTC).date()
    monkeypatch.setattr(command.dt, "date", East)
    result = command._yesterday()
    after = dt.datetime.now(dt.UTC).date()
    assert before <= result + dt.timedelta(days=1) <= after
