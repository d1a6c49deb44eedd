"""A menu that has something for everybody: dishes, each chosen for the guests that the others leave out.

20,000 made-up guests like some of 400 dishes. Each dish is asked in turn: do at least so many guests like you who
like none of the dishes published before? Yes is published and costs one hit; no is free. The bar starts high and
comes down after each round, so that the best dishes come first: a greedy cover, whose next question depends on all
that was published and on nothing else.

Who is served already follows from the published dishes and from each guest alone. So every question is a count
that one guest changes by at most one, though there are thousands of them and each depends on earlier answers.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, optimal_epsilon
from targetcharge.mechanisms import above_threshold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Likes = NDArray[np.bool_]
    """A row for each guest, a column for each dish."""

QUERY_EPSILON, DELTA = 0.05, 1e-6
DISHES, MENU = 400, 12
BARS = [0.3 * 0.8**step for step in range(14)]

console = Console()


def guests(count: int) -> Likes:
    """Return who likes what: groups of different sizes have six favourites each, the rest is luck."""
    rng = np.random.default_rng(3)
    groups = 20
    shares = 0.85 ** np.arange(groups)
    chance = np.full((groups, DISHES), 0.01)
    for group in chance:
        group[rng.choice(DISHES, 6, replace=False)] = 0.7
    return rng.random((count, DISHES)) < chance[rng.choice(groups, count, p=shares / shares.sum())]


def newly_served(dish: int, menu: Sequence[int]) -> Callable[[Likes], int]:
    """Return the count of guests who like a dish and nothing on the menu: one guest changes it by at most one."""
    others = list(menu)
    return lambda likes: int((likes[:, dish] & ~likes[:, others].any(axis=1)).sum())


@dataclass(frozen=True)
class Chosen:
    """A dish that was published.

    Attributes:
        dish: its number.
        bar: that it reached.
        answer: the noisy number of guests that it adds.
    """

    dish: int
    bar: int
    answer: tc.Answer


def choose(session: tc.Session, bars: Sequence[int]) -> tuple[list[Chosen], int]:
    """Ask until the menu is full; return what was published, and how many questions were asked."""
    chosen: list[Chosen] = []
    asked = 0
    for bar, dish in track(list(product(bars, range(DISHES))), "asking", console=console, transient=True):
        menu = [each.dish for each in chosen]
        if not session.meter.hits_left:
            break
        if dish not in menu:
            name = f"dish {dish} adds {bar} to {menu}"
            answer = session.ask(above_threshold(newly_served(dish, menu), bar, QUERY_EPSILON, name=name))
            asked += 1
            if answer.hit:
                chosen.append(Chosen(dish, bar, answer))
    return chosen, asked


def greedy(likes: Likes, dishes: int) -> list[int]:
    """Return the greedy menu with the data in sight. Outside the session."""
    found: list[int] = []
    for _ in range(dishes):
        left = likes[~likes[:, found].any(axis=1)]
        found.append(int(left.sum(axis=0).argmax()))
    return found


def served(likes: Likes, menu: Sequence[int]) -> float:
    """Return the share of guests who like something on the menu. Outside the session."""
    return float(likes[:, list(menu)].any(axis=1).mean())


def show(chosen: Sequence[Chosen], likes: Likes) -> Table:
    """Return the menu; what each dish really adds is outside the session."""
    shown = Table("dish", "bar", "adds, as published", "95% interval", "adds (outside)", title="the menu")
    for index, each in enumerate(chosen):
        low, high = each.answer.interval or (None, None)
        true = newly_served(each.dish, [other.dish for other in chosen[:index]])(likes)
        adds = f"{each.answer.outcome:,}"
        shown.add_row(f"{each.dish}", f"{each.bar:,}", adds, f"{low:,} to {high:,}", f"{true:,}")
    return shown


def main(count: int = 20_000) -> tuple[tc.Session, list[Chosen], Likes]:
    """Choose a menu, and compare.

    Args:
        count: how many guests; about so many is public.
    """
    likes = guests(count)
    budget = tc.Budget(exact_epsilon(QUERY_EPSILON, MENU, DELTA), DELTA)
    with tc.Session(likes, budget, QUERY_EPSILON, unit="a guest") as session:
        chosen, asked = choose(session, [round(count * bar) for bar in BARS])
    console.print(show(chosen, likes))
    shown = Table(title="at the end", show_header=False)
    shown.add_row("asked", f"{asked:,} questions, each ε = {QUERY_EPSILON:g}")
    shown.add_row("published and paid", f"{len(chosen)} dishes: ({budget.epsilon:.2f}, {DELTA:g})-private")
    shown.add_row("plain composition of all questions", f"ε = {optimal_epsilon(QUERY_EPSILON, asked, DELTA):.2f}")
    menu, best = [each.dish for each in chosen], greedy(likes, len(chosen))
    shown.add_row("outside the session: guests served", f"{served(likes, menu):.1%}")
    shown.add_row("outside the session: greedy with the data in sight", f"{served(likes, best):.1%}")
    console.print(shown)
    return session, chosen, likes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Choose a menu, privately.")
    parser.add_argument("--guests", type=int, default=20_000, help="how many")
    main(parser.parse_args().guests)
