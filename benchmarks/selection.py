"""The top items of a shop: how many of the true ones are missed, at equal guarantees.

`python -m benchmarks.selection FILE.csv …` takes counts from files, as lines item,count after a line of names;
without files they are made up. Each count is turned into so many rows, and rows are the units.

Few are missed, so that runs differ a lot: the ratio is that of many draws of the two laws, as they are.
"""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import targetcharge as tc
from targetcharge.accounting import least_noise
from targetcharge.accounting.baselines import bounded_range_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

BUDGET = tc.Budget(1.0, 1e-6)
PICKS = (25, 50, 100)
RUNS = 100
DRAWS = 200_000
AT_ONCE = 1_000


def tables() -> Iterator[Table]:
    """Yield a table of made-up counts."""
    yield table("made-up counts", _made_up())


def table(name: str, counts: NDArray[np.int64]) -> Table:
    """Return how many of the true top items each way misses, on average."""
    title = f"False negatives among the top items of {name}, {len(counts):,} items, (1, 1e-6), {RUNS} runs"
    made = Table(title=title)
    heads = "top", "peeling alone", "t.top", "ratio of laws", "exact meter", "exact, picks only", "σ of a value"
    for head in heads:
        made.add_column(head, justify="right")
    random = np.random.default_rng(1)
    for picks in PICKS:
        rate, fresh = bounded_range_rate(picks, BUDGET), least_noise(BUDGET, picks).query_epsilon
        peeled = _missed(lambda picks=picks, rate=rate: _largest(counts, picks, rate, random), picks)  # type: ignore[misc]
        ours, deviation = _asked(counts, picks, "sparse", values=True)
        exact, _ = _asked(counts, picks, "exact", values=True)
        only, _ = _asked(counts, picks, "exact", values=False)
        ratio = _missed_by_law(counts, picks, fresh, random) / _missed_by_law(counts, picks, rate, random)
        figures = (f"{figure:.2f}" for figure in (peeled, ours, ratio, exact, only))
        made.add_row(str(picks), *figures, f"{deviation:.1f}")
    return made


def _missed_by_law(counts: NDArray[np.int64], picks: int, rate: float, random: np.random.Generator) -> float:
    """Return how many are missed on average by Gumbel noise of a rate; items far off the kth are left out."""
    sure = int((counts > counts[picks - 1] + 40 / rate).sum())
    near, wanted = counts[sure : int((counts > counts[picks - 1] - 40 / rate).sum())], picks - sure
    missed = 0
    for _ in range(DRAWS // AT_ONCE):
        noisy = near + random.gumbel(size=(AT_ONCE, len(near))) / rate
        missed += int((np.argpartition(-noisy, wanted, axis=1)[:, :wanted] >= wanted).sum())
    return missed / (DRAWS // AT_ONCE * AT_ONCE)


def _asked(counts: NDArray[np.int64], picks: int, meter: str, *, values: bool) -> tuple[float, float]:
    """Return what `t.top` misses on average, and the standard deviation of its values."""
    frame = pd.DataFrame({"item": np.repeat(np.arange(len(counts)), counts)})

    def once() -> list[int]:
        with tc.open(frame, unit=tc.ROW, budget=BUDGET, hits=picks, meter=meter, ledger=":memory:") as opened:
            answers = opened.top(None, by="item", keys=range(len(counts)), k=picks, values=values)
        return [int(str(answer.key)) for answer in answers]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missed = _missed(once, picks)
        with tc.open(frame, unit=tc.ROW, budget=BUDGET, hits=picks, meter=meter, ledger=":memory:") as opened:
            return missed, opened.describe().standard_deviation


def _largest(counts: NDArray[np.int64], picks: int, rate: float, random: np.random.Generator) -> list[int]:
    """Return the largest counts with Gumbel noise: picks by the exponential mechanism, one after another."""
    noisy = counts + random.gumbel(size=len(counts)) / rate
    return [int(place) for place in np.argpartition(-noisy, picks)[:picks]]


def _missed(pick: Callable[[], list[int]], picks: int) -> float:
    """Return how many of the first items are not picked, on average."""
    return float(np.mean([len(set(range(picks)) - set(pick())) for _ in range(RUNS)]))


def _made_up() -> NDArray[np.int64]:
    """Return counts that fall as a power of the rank, as those of a shop do."""
    return np.asarray(40_000 / np.arange(1, 10_001) ** 0.85, dtype=np.int64)


def _read(path: Path) -> NDArray[np.int64]:
    with path.open(encoding="utf-8") as file:
        counts = [int(row[1]) for row in list(csv.reader(file))[1:]]
    return np.array(sorted(counts, reverse=True))


if __name__ == "__main__":
    console = Console(width=140)
    for made in [table(name, _read(Path(name))) for name in sys.argv[1:]] or tables():
        console.print(made)
