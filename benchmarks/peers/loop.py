"""The loop of `benchmarks.sessions` with peers' tools: a noisy count a turn, on a budget checked every time.

Prints one JSON object: peer -> {questions asked before: seconds a question}. It imports nothing of ours.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import dp_accounting
import opendp.prelude as dp
from diffprivlib.accountant import BudgetAccountant
from diffprivlib.mechanisms import Geometric
from dp_accounting.rdp import RdpAccountant

if TYPE_CHECKING:
    from collections.abc import Callable

EPSILON = 0.01
ROWS = 1000
WINDOW = 50


def opendp_filter() -> Callable[[], object]:
    """Return one turn of OpenDP's privacy filter: a discrete Laplace count."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    odometer = dp.c.make_fully_adaptive_composition(*space, output_measure=dp.max_divergence())
    guarded = dp.c.make_privacy_filter(odometer, d_in=1, d_out=1e6)([1] * ROWS)
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / EPSILON)
    return lambda: guarded(count)


def diffprivlib_accountant() -> Callable[[], object]:
    """Return one turn of diffprivlib's accountant: check, draw a geometric count, spend."""
    accountant = BudgetAccountant(epsilon=1e6, delta=1e-6)
    mechanism = Geometric(epsilon=EPSILON, sensitivity=1)
    rows = [1] * ROWS

    def turn() -> object:
        accountant.check(EPSILON, 0)
        noisy = mechanism.randomise(len(rows))
        accountant.spend(EPSILON, 0)
        return noisy

    return turn


def dp_accounting_rdp() -> Callable[[], object]:
    """Return one turn of dp-accounting's Rényi accountant, which draws nothing: compose, then ask for ε."""
    accountant: Any = RdpAccountant()
    event = dp_accounting.LaplaceDpEvent(1 / EPSILON)

    def turn() -> object:
        accountant.compose(event)
        return accountant.get_epsilon(1e-6)

    return turn


PEERS = {
    "opendp": ("OpenDP's privacy filter", opendp_filter),
    "diffprivlib": ("diffprivlib's accountant", diffprivlib_accountant),
    "dp-accounting": ("dp-accounting's Rényi accountant (draws no noise)", dp_accounting_rdp),
}


def seconds_at(turn: Callable[[], object], marks: list[int]) -> dict[int, float]:
    """Return the median time of a turn around each mark."""
    asked, found = 0, {}
    for mark in marks:
        while asked < mark - WINDOW:
            turn()
            asked += 1
        times = []
        for _ in range(WINDOW):
            start = time.perf_counter()
            turn()
            times.append(time.perf_counter() - start)
        asked += WINDOW
        found[mark] = statistics.median(times)
    return found


def main() -> None:
    """Print the times of every peer."""
    marks = [int(mark) for mark in sys.argv[1:]]
    found = {
        f"{label}, {package} {version(package)}": seconds_at(make(), marks)
        for package, (label, make) in PEERS.items()
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
