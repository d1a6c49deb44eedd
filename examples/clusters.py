"""How many kinds of customers are there? The number of clusters by a gap rule, paying for the clusters alone.

12,000 made-up customers answered 15 questions with one of four answers each. A kind of customers agrees on three
questions; on all others they differ. Candidates are all 29,120 triples of answers, and a candidate's score is how
many customers gave them: every customer counts for 455 candidates. `select` publishes the scores from the highest
down, and its rule stops before the first that lies far below the one before it: the number of clusters is how many
were published. The rule sees published scores only. Of the next it learns that it is below a floor, which is free.
"""

from __future__ import annotations

import argparse
import math
from itertools import combinations, product
from typing import TYPE_CHECKING, cast

import numpy as np
from rich.console import Console
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, optimal_epsilon
from targetcharge.mechanisms import batch_by_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Customers = NDArray[np.int64]
    """A row for each customer, a column for each question; answers 0 to 3."""

QUERY_EPSILON, DELTA, MOST = 0.05, 1e-6, 12
QUESTIONS, ANSWERS = 15, 4
TRIPLES = list(combinations(range(QUESTIONS), 3))
NAMES = [
    " ".join(f"{question}={answer}" for question, answer in zip(triple, answers, strict=True))
    for triple in TRIPLES
    for answers in product(range(ANSWERS), repeat=3)
]
GAP = 0.025
"""Of all customers: a step down of more than this ends the clusters."""

console = Console()


def customers(count: int, kinds: int) -> tuple[Customers, list[str]]:
    """Return customers, and the triples of answers that make each kind; one customer in four is of no kind."""
    rng = np.random.default_rng(8)
    data = rng.integers(0, ANSWERS, (count, QUESTIONS))
    chosen = rng.choice(len(NAMES), kinds, replace=False)
    shares = np.linspace(1.3, 1.0, kinds)
    kind = rng.choice(kinds, count, p=shares / shares.sum())
    kind[rng.random(count) < 1 / 4] = kinds
    for number, cell in enumerate(chosen):
        triple, answers = TRIPLES[cell // ANSWERS**3], np.unravel_index(cell % ANSWERS**3, (ANSWERS,) * 3)
        data[np.ix_(kind == number, triple)] = answers
    return data, [NAMES[cell] for cell in chosen]


def sizes(data: Customers) -> NDArray[np.int64]:
    """Return how many customers gave each triple of answers: one customer changes each count by at most one."""
    found = []
    for first, second, third in TRIPLES:
        cell = (data[:, first] * ANSWERS + data[:, second]) * ANSWERS + data[:, third]
        found.append(np.bincount(cell, minlength=ANSWERS**3))
    return np.concatenate(found)


def show(found: Sequence[tc.Answer], data: Customers) -> Table:
    """Return the clusters that were published, beside the truth."""
    true = dict(zip(NAMES, sizes(data).tolist(), strict=True))
    shown = Table("answers", "customers, as published", "95% interval", "customers (outside)", title="clusters")
    for answer in found:
        low, high = answer.interval or (None, None)
        name = str(answer.key)
        shown.add_row(name, f"{answer.outcome:,}", f"{low:,} to {high:,}", f"{true.pop(name):,}")
    shown.add_row("the largest of the others", "below the floor", "", f"{max(true.values()):,}")
    return shown


def main(count: int = 12_000, kinds: int = 7) -> tuple[tc.Session, list[tc.Answer], list[str]]:
    """Find the kinds, and compare.

    Args:
        count: how many customers; about so many is public.
        kinds: how many kinds there are, which the session is to find out.
    """
    data, made = customers(count, kinds)
    budget = tc.Budget(exact_epsilon(QUERY_EPSILON, MOST, DELTA), DELTA)
    scores = batch_by_key(sizes, NAMES, threshold=0, epsilon=QUERY_EPSILON, name="customers with these answers")
    with tc.Session(data, budget, QUERY_EPSILON, unit="a customer") as session:
        found = session.select(scores, k=MOST, stop=tc.sessions.gap(GAP * count))
        left = session.meter.hits_left
    console.print(show(found, data))
    total = sum(cast("int", answer.outcome) for answer in found)
    plain = optimal_epsilon(QUERY_EPSILON, len(NAMES), DELTA)
    each = math.comb(QUESTIONS, 3)
    shown = Table(title="at the end", show_header=False)
    shown.add_row("clusters", f"{len(found)}, with about {total:,} customers")
    shown.add_row("outside the session: kinds that were made", f"{len(made)}")
    shown.add_row("paid", f"{len(found)} hits for {len(NAMES):,} candidates; {left} of {MOST} hits are left")
    shown.add_row("the whole budget", f"({budget.epsilon:.2f}, {DELTA:g}), noise of scale {1 / QUERY_EPSILON:g}")
    shown.add_row("all scores as one noisy table", f"({budget.epsilon:.2f}, 0), scale {each / budget.epsilon:.0f}")
    shown.add_row("plain composition of all scores", f"({plain:.0f}, {DELTA:g}), scale {1 / QUERY_EPSILON:g}")
    console.print(shown)
    return session, found, made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Choose the number of clusters by a gap rule.")
    parser.add_argument("--customers", type=int, default=12_000, help="how many")
    main(parser.parse_args().customers)
