"""Fixture ledgers: how each was opened and what was asked, so that a test can open a copy and go on.

`make_fixtures.py` writes them with the code as it is. Those in `fixtures/` were written by earlier versions and
are never written again: every later version must read them.
"""

import csv
import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

import targetcharge as tc

FIXTURES = Path(__file__).parent / "fixtures"
BUDGET = tc.Budget(1.0, 1e-6)
WIDE = tc.Budget(4.0, 1e-6)
PATIENTS = 600


@tc.private(epsilon=0.02)
def yes(_):
    return True


@tc.private(epsilon=0.02)
def no(_):
    return False


@tc.private(epsilon=0.02)
def seven(_):
    return 7


@tc.private(epsilon=0.02)
def broken(_):
    raise RuntimeError


@tc.private(epsilon=0.02, delta=1e-9)
def approximate(_):
    return True


def patients():
    """Yield one row of each of many people: an id, an age, a day."""
    for number in range(PATIENTS):
        yield number, 20 + number % 60, f"2024-01-{1 + number % 28:02d}"


def write_csv(path, rows, ids=str):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "age", "day"])
        writer.writerows((ids(number), age, day) for number, age, day in rows)


def frame(rows, ids):
    numbers, ages, days = zip(*rows, strict=True)
    return pd.DataFrame({"patient": [ids(number) for number in numbers], "age": ages, "day": days})


TYPES = {"patient": "integer", "age": "integer", "day": "date"}


def session(folder, **more):
    return tc.Session([1, 2, 3], BUDGET, 0.02, ledger=folder / "ledger.db", **more)


def table(folder, source, **more):
    return tc.open(
        source, "patient", WIDE, query_epsilon=0.1, ledger=folder / "ledger.db", **{"types": TYPES, **more}
    )


def mixed(number):
    """Return an id as a column of objects holds it: whole numbers and texts."""
    return number if number % 2 else f"p{number}"


# How each is opened. A test opens a copy in the same way.

OPENINGS = {
    "exact": session,
    "spent": session,
    "pending": session,
    "killed": session,
    "restored": session,
    "renyi": lambda folder: session(
        folder, meter="renyi", targets=[tc.NotPrior(prior=False), tc.Everything()], computation_delta=1e-7
    ),
    "alternatives": lambda folder: session(
        folder, alternatives=[tc.NotPrior(prior=False), tc.NotPrior(prior=True)]
    ),
    "labels": lambda folder: tc.Session(None, WIDE, 0.1, ledger=folder / "ledger.db", targets=tc.Everything()),
    "table": lambda folder: table(folder, folder / "data"),
    "appended": lambda folder: table(folder, folder / "data"),
    "monitor": lambda folder: table(folder, folder / "data"),
    "individual": lambda folder: table(folder, folder / "data", charging="individual"),
    "individual-renyi": lambda folder: table(folder, folder / "data", charging="individual", meter="renyi"),
    "individual-text": lambda folder: table(
        folder, folder / "data", charging="individual", types={"age": "integer", "day": "date"}
    ),
    "individual-frame": lambda folder: table(
        folder, frame(patients(), mixed), charging="individual", types={"day": "date"}
    ),
    "frame": lambda folder: table(folder, frame(patients(), mixed), types={"day": "date"}),
    "offset": lambda folder: session(folder, offset_epsilon=0.05),
    "sparse": lambda folder: tc.Session([1, 2, 3], BUDGET, meter="sparse", hits=5, ledger=folder / "ledger.db"),
}

WITH_OFFSETS = ("table", "appended", "monitor", "individual", "individual-frame", "frame", "offset", "sparse")
"""Those that have an offset, or Gumbel noise, since format 3: the others are still of format 2."""


def kinds_in(version):
    """Return the names of the fixtures in a folder."""
    return set(WITH_OFFSETS) if version == "3" else set(OPENINGS) - {"offset", "sparse"}


def at_least(one, threshold):
    """Return an at-least question at the query ε of a session with a sparse meter."""
    epsilon = one.meter.tariff.offset.query_epsilon
    return tc.mechanisms.above_threshold(len, threshold, epsilon, monotone=True)


def rules():
    from targetcharge.tables.monitor import Monitor, Rule  # noqa: PLC0415 - only monitors need them

    return Monitor, [Rule("old", "age > 60", threshold=3), Rule("many", None, tolerance=200, prior=0)]


def opened(name, folder):
    """Return the session or table of a fixture in a folder."""
    return OPENINGS[name](folder)


def copy_of(name, folder, version="1"):
    """Return a copy of a fixture that looks as if it had never been moved: its witness knows the new file."""
    target = folder / name
    shutil.copytree(FIXTURES / version / name, target)
    known = json.loads((target / "ledger.db-witness").read_text())
    known["inode"] = (target / "ledger.db").stat().st_ino
    (target / "ledger.db-witness").write_text(json.dumps(known).ljust(256))
    return target


def held(name, opened):
    """Return what a ledger holds, as plain data: what was published, and what every meter shows."""
    inner = getattr(opened, "_session", opened)
    ledger = inner._ledger
    answers = [plain(answer) for answer in opened.transcript]
    body = {
        "answers": answers,
        "pending": ledger.pending(),
        "totals": [asdict(meter.totals) for meter in ledger.meters],
        "broken": sum(getattr(entry, "count", 0) for entry in ledger.entries() if hasattr(entry, "why")),
        "guarantee": [opened.meter.guarantee.epsilon, opened.meter.guarantee.delta],
    }
    if name.startswith("individual"):
        body["units"] = counters(opened)
    return json.loads(json.dumps(body))


FIRST_WORDS = {
    "NotPrior(None)": ("ask", ["('NotPrior', None)"]),
    "NotPrior(False)": ("ask", ["('NotPrior', False)"]),
    "NotPrior(7)": ("ask", ["('NotPrior', 7)"]),
    "NotPrior(8)": ("ask", ["('NotPrior', 8)"]),
    "NotPrior(UNCHANGED)": ("ask", ["('NotPrior', UNCHANGED)"]),
    "NotPrior(False) or NotPrior(True)": ("ask", ["('NotPrior', False)", "('NotPrior', True)"]),
    "Everything()": ("ask", ["('Everything',)"]),
    "release": ("release", ["('NotPrior', None)"]),
    "revise": ("revise", ["('NotPrior', None)"]),
    "select": ("select", ["('NotPrior', None)"]),
}
"""What the first format had in place of a call and its targets: the words in its fixtures, and what they mean."""


def read(holds, version):
    """Return what a fixture is to hold: what is written beside it, where words of the first format are data."""
    if version != "1" or "answers" not in holds:
        return holds
    answers = []
    for answer in holds["answers"]:
        (call, targets), grains = FIRST_WORDS[answer.pop("target")], answer.pop("units")
        answers.append({**answer, "call": call, "targets": targets, "grains": grains})
    return {**holds, "answers": answers}


def plain(answer):
    outcome = answer.outcome
    outcome = outcome if isinstance(outcome, bool | int | str | None) else repr(outcome)
    fields = ("hit", "price", "seq", "algorithm", "epsilon", "delta", "candidate", "release")
    more = ("key", "scale", "interval", "prior", "question", "snapshot")
    asked = {"call": answer.call, "targets": list(map(repr, answer.targets)), "grains": answer.grains}
    return {"outcome": outcome, **asked, **{field: getattr(answer, field) for field in (*fields, *more)}}


def counters(table):
    """Return what each unit has paid, by its name."""
    found = {}

    def read():
        spent = table._numbers.settle().spent
        numbers = table._engine._table.unit_ids
        for unit, number in table._engine._table.link.rows(f"SELECT u, id FROM {numbers._name}"):
            found[str(unit)] = int(spent[number])

    table._session.up_to_date(read)
    return dict(sorted(found.items()))


# What was asked of each, when it was made.


def make(name, folder):
    folder.mkdir(parents=True)
    data = folder / "data"
    if name in ("table", "appended", "monitor", "individual", "individual-renyi", "individual-text"):
        data.mkdir()
        write_csv(data / "a.csv", patients(), (lambda n: f"p{n}") if name == "individual-text" else str)
    with opened(name, folder) as one:
        ASKED.get(name, lambda *_: None)(one, folder)
        if name == "restored":
            state = one._ledger._database.state()
    if name == "restored":
        (folder / "ledger.db-witness").unlink()
        with session(folder, restored=(state.last_entry, state.head.hex())) as one:
            one.test(yes)
    if name == "killed":
        killed(folder)
        shutil.rmtree(folder / "ledger.db-tenants")
        body = {"hits": 3, "broken": 1}  # what it will hold when it is opened, and the dead session is found
    else:
        with opened(name, folder) as one:
            body = held(name, one)
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in body.items())
    (folder / "holds.json").write_text(f"{{\n{lines}\n}}\n")
    shutil.rmtree(folder / "ledger.db-tenants", ignore_errors=True)


def killed(folder):
    """Leave a ledger as kill -9 leaves it in the middle of a call: with a log, and something held back."""
    child = os.fork()
    if not child:
        one = session(folder)

        @tc.private(epsilon=0.02)
        def fatal(_):
            os._exit(9)

        one.test(yes)
        one.test(fatal)
    os.waitpid(child, 0)


def _mixed_session(one, _):
    one.test(yes)
    for _ in range(3):
        one.test(no)
    one.ask_prior(seven, 7)
    one.ask_prior(seven, 8)
    scores = [tc.private(epsilon=0.02)(lambda _, each=each: each) for each in (3, 9, 5)]
    one.select(scores, k=2)
    with suppress(tc.ComputationFailed):
        one.test(broken)
    one.test(no)


def _renyi(one, _):
    one.test(yes)
    one.ask(approximate, tc.Everything())
    one.test(tc.private(epsilon=0.01)(lambda _: True))
    one.test(no)


def _pending(one, _):
    first = one.release(seven, lambda outcome: outcome > 100)
    one.release(seven, lambda outcome: outcome > 5)
    one.release(seven, {1, 2})
    first.revise(lambda outcome: outcome > 50)


def _spend(one, _):
    while one.meter.hits_left:
        one.test(yes)


def _labels(one, _):
    votes = np.zeros((40, 3), dtype=int)
    votes[np.arange(40), np.arange(40) % 3] = 250
    tc.learning.label(votes, one, teachers=250, epsilon=0.1, mode="plain")


def _table(one, _):
    one.above("age > 30", 100)
    one.above("age > 200", 100)
    one.watch(None, by="day", keys=[f"2024-01-{day:02d}" for day in range(1, 31)], threshold=300)
    one.watch("age > 30", by="age", keys=range(31, 34), threshold=2)
    one.top(by="age", keys=range(20, 30), k=2)
    one.release("age > 30", when=lambda count: count > 10_000)


def _appended(one, folder):
    one.above("age > 30", 100)
    write_csv(folder / "data" / "b.csv", [(number + 10_000, 40, "2024-01-01") for number, *_ in patients()])
    one.append(folder / "data" / "b.csv")
    one.above("age > 30", 800)


def _monitor(one, _):
    kind, list_of_rules = rules()
    monitor = kind(one, list_of_rules, day="day")
    for day in ("2024-01-01", "2024-01-02", "2024-01-03"):
        monitor.look(day)


def _individual(one, _):
    one.above("age > 60", 50)
    one.above("age > 200", 50)
    one.watch(None, by="day", keys=["2024-01-01", "2024-01-02", "2024-01-30"], threshold=5)
    one.top(by="age", keys=range(20, 24), k=1)
    one.release("age = 20", when=10_001)


def _offset(one, _):
    count = tc.mechanisms.noisy_count(len, 0.02, monotone=True)
    one.ask(count, tc.NotPrior(None))
    one.test(yes)
    one.release(count, lambda outcome: outcome > 10**6)


def _sparse(one, _):
    one.ask(at_least(one, -(10**6)))
    one.ask(at_least(one, 10**6))
    one.release(at_least(one, -(10**6)), 10**6)


ASKED = {
    "exact": _mixed_session,
    "restored": lambda one, _: one.test(yes),
    "killed": lambda one, _: one.test(yes),
    "spent": _spend,
    "pending": _pending,
    "renyi": _renyi,
    "alternatives": lambda one, _: [one.ask(each) for each in (yes, no, no, yes, yes)],
    "labels": _labels,
    "table": _table,
    "frame": _table,
    "appended": _appended,
    "monitor": _monitor,
    "individual": _individual,
    "individual-renyi": _individual,
    "individual-text": _individual,
    "individual-frame": _individual,
    "offset": _offset,
    "sparse": _sparse,
}
