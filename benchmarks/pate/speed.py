"""How fast `label` is, and how much memory it takes."""

from __future__ import annotations

import statistics
import tempfile
import time
import tracemalloc
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

import targetcharge as tc
from benchmarks.timing import median_seconds, readable
from targetcharge.learning import label

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

TEACHERS = 250
CLASSES = 10
QUERY_EPSILON = 0.1
CAUTION = 2.0
_MEASURED = ("permute_and_flip", "memory")
"""Whose memory is measured: that slows a call down, and the others take the same."""

_KINDS = (_MEASURED, ("permute_and_flip", "SQLite"), ("exponential", "memory"))
_ROOMY = tc.Budget(60.0, 1e-5)
"""More hits than the generated votes bring: what is timed is a call that comes to its end."""


def speed() -> Table:
    """Return the table of times; the votes are generated, so it needs no file."""
    title = (
        f"label: {TEACHERS} teachers, {CLASSES} classes, mode boundary, ε {QUERY_EPSILON:g} (aim: 10,000 in 1 s)"
    )
    columns = ("requests", "mechanism", "ledger", "hits", "time", "to bare NumPy", "peak memory, without votes")
    table = Table(*columns, title=title, title_justify="left")
    with tempfile.TemporaryDirectory() as folder:
        for count, doubtful, repeats in ((10_000, 0.05, 5), (1_000_000, 0.0005, 1)):
            votes = generated(count, doubtful)
            bare = median_seconds(partial(_bare, votes), repeats)
            for mechanism, ledger in _KINDS:
                ask = partial(_label, votes, mechanism, Path(folder) if ledger == "SQLite" else None)
                times: list[float] = []
                hits = [_timed(ask, times) for _ in range(repeats)][-1]
                seconds = statistics.median(times)
                peak = f"{_peak(ask) / 1e6:.0f} MB" if (mechanism, ledger) == _MEASURED else ""
                figures = f"{hits}", readable(seconds), f"{seconds / bare:.1f}", peak
                table.add_row(f"{count:,}", mechanism, ledger, *figures)
            table.add_row(f"{count:,}", "bare NumPy, exponential", "none", "", readable(bare), "1.0", "")
    return table


def _timed(ask: Callable[[], int], times: list[float]) -> int:
    start = time.perf_counter()
    hits = ask()
    times.append(time.perf_counter() - start)
    return hits


def _peak(ask: Callable[[], int]) -> int:
    """Return the most memory that a call takes at once, beyond what was there before it."""
    tracemalloc.start()
    ask()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def generated(count: int, doubtful: float) -> NDArray[np.int64]:
    """Return votes: nearly all for one class, but torn between two in a share of the rows."""
    random = np.random.default_rng()
    shares = np.full((count, CLASSES), 0.05 / (CLASSES - 1))
    first = random.integers(0, CLASSES, count)
    shares[np.arange(count), first] = 0.95
    torn = np.flatnonzero(random.random(count) < doubtful)
    shares[torn] = 0.0
    shares[torn, first[torn]] = shares[torn, (first[torn] + 1) % CLASSES] = 0.5
    return random.multinomial(TEACHERS, shares)


def _label(votes: NDArray[np.int64], mechanism: str, folder: Path | None) -> int:
    ledger = ":memory:" if folder is None else folder / f"{uuid.uuid4()}.db"
    targets = [tc.Boundary(CAUTION)]
    with tc.Session(None, _ROOMY, QUERY_EPSILON, ledger=ledger, meter="renyi", targets=targets) as session:
        labels = label(
            votes, session, teachers=TEACHERS, epsilon=QUERY_EPSILON, mechanism=mechanism, caution=CAUTION
        )
    if not labels.complete:
        msg = "the budget must cover the generated votes"
        raise RuntimeError(msg)
    return len(labels.hits)


def _bare(votes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Drawn from the exponential mechanism with floating-point noise: no ledger, no exactness."""
    noise = np.random.default_rng().gumbel(size=votes.shape)
    return np.asarray((QUERY_EPSILON / 2 * votes + noise).argmax(axis=1))
