"""How fast the accounting is, and how much more a budget buys with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.table import Table

import targetcharge as tc
from benchmarks.timing import median_seconds, readable
from targetcharge.accounting import Meter, exact_epsilon, prices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from targetcharge.accounting.targets import Target

GRID = [
    (0.1, 100, 1e-6, "50 ms"),
    (0.01, 1000, 1e-8, "2 s"),
    (0.1, 1, 1e-6, ""),
    (0.1, 1000, 1e-6, ""),
    (0.01, 100, 1e-6, ""),
    (0.5, 20, 1e-6, ""),
    (1.0, 100, 1e-6, ""),
]
TARGETS: list[Target] = [
    tc.NotPrior(prior=False),
    tc.QTarget(0.3, frozenset()),
    tc.Between(1, 40),
    tc.Disagreement(),
    tc.Boundary(),
    tc.Everything(),
]
BUDGETS = [
    (1.0, 1e-6, 0.01),
    (1.0, 1e-6, 0.02),
    (1.0, 1e-6, 0.005),
    (3.0, 1e-6, 0.05),
    (8.0, 1e-8, 0.1),
    (0.5, 1e-9, 0.002),
]


def tables() -> Iterator[Table]:
    """Yield the tables, one after another."""
    yield _exact()
    yield _prices()
    yield _plan()
    yield _bought()
    yield _year()


def _exact() -> Table:
    table = Table("query ε", "hits", "δ'", "ε'", "time", "aim", title="exact_epsilon", title_justify="left")
    for epsilon, hits, delta, aim in GRID:
        run = partial(exact_epsilon, epsilon, hits, delta)
        table.add_row(f"{epsilon}", f"{hits}", f"{delta:g}", f"{run():.5g}", readable(median_seconds(run)), aim)
    for options in ({"disagreement": True}, {"q": 0.3}):
        run = partial(exact_epsilon, 0.05, 50, 1e-6, **options)
        table.add_row("0.05", f"50 {options}", "1e-06", f"{run():.5g}", readable(median_seconds(run)), "")
    return table


def _prices() -> Table:
    table = Table("target", "cold", "cached", "quote", title="a price at order 5, ε = 0.05", title_justify="left")
    meter = Meter.renyi(tc.Budget(1.0, 1e-6), 0.01)
    clearing = _each(_clear)
    for target in TARGETS:
        lookup = partial(target.kappa, 5.0, 0.05)
        cold = _each(_clear, lookup) - clearing
        table.add_row(
            type(target).__name__,
            readable(cold),
            readable(_each(lookup)),
            readable(_each(partial(meter.quote, target, 0.01))),
        )
    return table


def _clear() -> None:
    for function in (prices.not_prior, prices.q_target, prices.disagreement, prices.boundary):
        function.cache_clear()


def _each(*calls: Callable[[], object]) -> float:
    """Return the seconds of one round of calls, from a thousand rounds."""

    def rounds() -> None:
        for _ in range(1000):
            for call in calls:
                call()

    return median_seconds(rounds) / 1000


def _plan() -> Table:
    table = Table("plan", "time", title="tc.plan, budget (1, 1e-6)", title_justify="left")
    budget = tc.Budget(1.0, 1e-6)
    for options in ({"query_epsilon": 0.05}, {"query_epsilon": 0.01}, {"query_epsilon": 0.002}, {"hits": 100}):
        run = partial(tc.plan, budget, **options)
        table.add_row(str(options), readable(median_seconds(run, repeats=3)))
    return table


def _bought() -> Table:
    table = Table(
        "budget",
        "query ε",
        "paper",
        "Rényi",
        "exact",
        "Rényi / paper",
        "exact / paper",
        "questions, optimal composition",
        "exact / optimal",
        title="hits bought at equal (ε', δ'): the figure that matters",
        title_justify="left",
    )
    for epsilon, delta, query in BUDGETS:
        plan = tc.plan(tc.Budget(epsilon, delta), query_epsilon=query)
        names = ("paper, simple Chernoff", "Rényi", "exact", "optimal composition")
        paper, renyi, exact, optimal = (plan[name].hits or 0 for name in names)
        table.add_row(
            f"({epsilon:g}, {delta:g})",
            f"{query:g}",
            *(f"{number:,}" for number in (paper, renyi, exact)),
            *(f"{number / paper:.2f}" if paper else "-" for number in (renyi, exact)),
            f"{optimal:,}",
            f"{exact / optimal:.2f}",
        )
    return table


def _year() -> Table:
    """Return the noise of the README's year of flights: 365 questions, 50 of them hits."""
    budget = tc.Budget(4.0, 1e-6)
    plan, every = tc.plan(budget, hits=50), tc.plan(budget, hits=365)
    rows = {
        "plain composition, optimal": every["optimal composition"],
        "classic sparse vector, with values": plan["classic sparse vector"],
        "the paper's theorem": plan["paper, exact tail"],
        "exact accounting, without an offset": plan["exact"],
        "any question": plan.table,
        "thresholds": plan.sparse,
    }
    title = "365 questions, 50 hits, (4, 1e-6): the standard deviation of a count"
    table = Table("accounting", "pays for", "deviation", title=title, title_justify="left")
    for name, row in rows.items():
        if row is not None and row.standard_deviation is not None:
            table.add_row(name, row.pays_for, f"{row.standard_deviation:.1f}")
    return table
