"""How long a draw of exact noise takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.table import Table

from benchmarks.timing import median_seconds, medians, readable
from targetcharge.randomness import (
    Rate,
    SystemEntropy,
    bernoulli,
    discrete_gaussian,
    discrete_gaussian_array,
    discrete_gumbel,
    discrete_gumbel_array,
    discrete_laplace,
    discrete_laplace_array,
    geometric,
    geometric_array,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SCALARS = 5_000
_ARRAY = 100_000
_REPEATS = 9
_LAPLACE = "discrete Laplace"
_SCALAR_DRAWS = {
    _LAPLACE: discrete_laplace,
    "geometric": geometric,
    "discrete Gumbel": discrete_gumbel,
    "discrete Gaussian": discrete_gaussian,
}
_ARRAY_DRAWS = {
    _LAPLACE: discrete_laplace_array,
    "geometric": geometric_array,
    "discrete Gumbel": discrete_gumbel_array,
    "discrete Gaussian": discrete_gaussian_array,
}


def tables() -> Iterator[Table]:
    """Yield the table of draws: seconds, and how many times Laplace's at the same rate, timed in turns."""
    table = Table("draw", "scalar", "in an array of 100,000", title="exact noise, one draw", title_justify="left")
    entropy = SystemEntropy()
    for epsilon in (0.01, 0.1, 1.0):
        rate = Rate.at_most(epsilon)
        scalars = medians(
            {name: partial(_scalars, draw, entropy, rate) for name, draw in _SCALAR_DRAWS.items()}, _REPEATS
        )
        arrays = medians(
            {name: partial(draw, entropy, rate, _ARRAY) for name, draw in _ARRAY_DRAWS.items()}, _REPEATS
        )
        for name in scalars:
            cells = _beside_laplace(scalars, name, _SCALARS), _beside_laplace(arrays, name, _ARRAY)
            table.add_row(f"{name}, rate {epsilon:g}", *cells)
    coin = median_seconds(lambda: [bernoulli(entropy, 0.3) for _ in range(_SCALARS)]) / _SCALARS
    table.add_row("coin, p = 0.3", readable(coin), "")
    yield table


def _scalars(draw: Callable[[SystemEntropy, Rate], int], entropy: SystemEntropy, rate: Rate) -> None:
    for _ in range(_SCALARS):
        draw(entropy, rate)


def _beside_laplace(seconds: dict[str, float], name: str, draws: int) -> str:
    """Return the time of one draw, and its ratio to that of a Laplace draw."""
    return f"{readable(seconds[name] / draws)} (× {seconds[name] / seconds[_LAPLACE]:.2f})"
