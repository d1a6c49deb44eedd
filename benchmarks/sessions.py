"""What a question costs in time: the session's own work, the ledger's, and what peers need for the same loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

import targetcharge as tc
from benchmarks.timing import medians, readable
from targetcharge.randomness import Rate, SystemEntropy, discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Iterator

BUDGET = tc.Budget(3.0, 1e-6)
QUERY_EPSILON = 0.01
ROWS = [1] * 1000
REPEATS = 4_001
MARKS = (500, 4_000)
PEERS = Path(os.environ.get("TARGETCHARGE_PEERS", ".venv-peers/bin/python"))
AIMS = {"memory": "15 µs", "SQLite": "25 µs"}

never = tc.mechanisms.above_threshold(len, 10**6, QUERY_EPSILON)
always = tc.mechanisms.above_threshold(len, -(10**6), QUERY_EPSILON)


def tables() -> Iterator[Table]:
    """Yield the tables, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        yield _overhead(Path(folder))
        yield _growth(Path(folder))
    yield _peers()


def _open(folder: Path, ledger: str, meter: str = "exact", name: str = "") -> tc.Session:
    where = ":memory:" if ledger == "memory" else folder / f"{meter}{name}.db"
    return tc.Session(ROWS, BUDGET, QUERY_EPSILON, ledger=where, meter=meter)


def _overhead(folder: Path) -> Table:
    title = "one above-threshold question, median, taken in turns"
    table = Table("meter", "ledger", "miss", "aim", "miss / bare noise", "hit", title=title, title_justify="left")
    entropy, rate = SystemEntropy(), Rate.at_most(QUERY_EPSILON)
    with ExitStack() as stack:
        pairs = [(meter, ledger) for meter in ("exact", "renyi") for ledger in AIMS]
        opened = {pair: stack.enter_context(_open(folder, pair[1], pair[0])) for pair in pairs}
        questions = {str(pair): partial(session.ask, never) for pair, session in opened.items()}
        misses = medians({"noise": partial(discrete_laplace, entropy, rate), **questions}, REPEATS)
        hits = medians({str(pair): partial(session.ask, always) for pair, session in opened.items()}, 201)
    for meter, ledger in pairs:
        miss, hit = misses[str((meter, ledger))], hits[str((meter, ledger))]
        ratio = f"{miss / misses['noise']:.1f}"
        table.add_row(meter, ledger, readable(miss), AIMS[ledger], ratio, readable(hit))
    table.add_row("", "bare noise", readable(misses["noise"]), "", "1.0", "")
    return table


def _growth(folder: Path) -> Table:
    title = "does a question get slower? a session with 1,000 and one with 100,000 behind it, in turns"
    table = Table(
        "ledger", "1,000th", "100,000th", "ratio", "aim", "hits so far", title=title, title_justify="left"
    )
    for ledger in AIMS:
        with _open(folder, ledger, name="-young") as young, _open(folder, ledger, name="-old") as old:
            for number in range(1_000):
                young.ask(always if number % 500 == 0 else never)
            for number in range(100_000):
                old.ask(always if number % 500 == 0 else never)
            found = medians({"young": partial(young.ask, never), "old": partial(old.ask, never)}, REPEATS)
            ratio = f"{found['old'] / found['young']:.2f}"
            times = readable(found["young"]), readable(found["old"])
            table.add_row(ledger, *times, ratio, "1.2", f"{young.meter.hits} and {old.meter.hits}")
    return table


def _peers() -> Table:
    title = f"the same loop with peers' tools, in one run: one question after {MARKS[0]:,} and after {MARKS[1]:,}"
    table = Table("tool", *(f"{mark:,}th" for mark in MARKS), "growth", "times ours", title=title)
    table.title_justify = "left"
    with tc.Session(ROWS, BUDGET, QUERY_EPSILON) as session:
        ours = {}
        asked = 0
        for mark in MARKS:
            for _ in range(mark - asked):
                session.ask(never)
            ours[str(mark)] = medians({"ask": partial(session.ask, never)}, 50)["ask"]
            asked = mark + 50
    _row(table, "targetcharge, a miss", ours, ours)
    if not PEERS.exists():
        table.add_row(f"peers: not installed ({PEERS} is missing; `make bench` builds it)", "", "", "", "")
        return table
    command = [str(PEERS), "benchmarks/peers/loop.py", *map(str, MARKS)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if found.returncode:
        sys.stderr.write(found.stderr)
        table.add_row("peers: failed, see above", "", "", "", "")
        return table
    for name, times in json.loads(found.stdout.splitlines()[-1]).items():
        _row(table, name, times, ours)
    return table


def _row(table: Table, name: str, times: dict[str, float], ours: dict[str, float]) -> None:
    first, last = (times[str(mark)] for mark in MARKS)
    table.add_row(
        name, readable(first), readable(last), f"{last / first:.1f}", f"{last / ours[str(MARKS[1])]:.0f}"
    )
