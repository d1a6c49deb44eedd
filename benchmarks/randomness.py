"""How long a draw of exact noise takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.table import Table

from benchmarks.timing import median_seconds, readable
from targetcharge.randomness import Rate, SystemEntropy, bernoulli, discrete_laplace, discrete_laplace_array

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCALARS = 5_000
_ARRAY = 100_000


def tables() -> Iterator[Table]:
    """Yield the table of draws."""
    table = Table("draw", "scalar", "in an array of 100,000", title="exact noise, one draw", title_justify="left")
    entropy = SystemEntropy()
    for epsilon in (0.01, 0.1, 1.0):
        rate = Rate.at_most(epsilon)
        array = median_seconds(partial(discrete_laplace_array, entropy, rate, _ARRAY)) / _ARRAY
        scalar = median_seconds(partial(_scalars, entropy, rate)) / _SCALARS
        table.add_row(f"discrete Laplace, ε = {epsilon:g}", readable(scalar), readable(array))
    coin = median_seconds(lambda: [bernoulli(entropy, 0.3) for _ in range(_SCALARS)]) / _SCALARS
    table.add_row("coin, p = 0.3", readable(coin), "")
    yield table


def _scalars(entropy: SystemEntropy, rate: Rate) -> None:
    for _ in range(_SCALARS):
        discrete_laplace(entropy, rate)
