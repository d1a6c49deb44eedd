"""Distinct counts by a sketch that is private by its own randomness, against noise on others at equal ε."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from benchmarks.timing import median_seconds, readable
from targetcharge.mechanisms import distinct_count
from targetcharge.mechanisms.distinct import DistinctEstimate, MaximaLaw, fitting_buckets
from targetcharge.numerics.search import largest_integer
from targetcharge.randomness import SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

EPSILONS = (0.1, 0.5, 1.0)
COUNTS = (10**4, 10**5, 10**6)
RUNS = 200
REGISTERS = 2**14
AT_MOST = 10
"""Public knowledge that helps the others: there are at most so many times the elements that there are."""

TRIED = 10**5
"""Elements that an adversary hashes beforehand, to find the one that moves an estimate most."""

HYPERLOGLOG = MaximaLaw(0, (2**64 - 2**12, *(2**bits for bits in range(63, 0, -1))))
"""The same sketch without phantoms, in octaves; level 0 is an empty register but for a chance of 2^-52 an element.

Its hash is public. It is read by maximum likelihood, as ours.
"""


def tables() -> Iterator[Table]:
    """Yield the tables, one after another."""
    generator = np.random.default_rng()
    yield _errors(generator)
    yield _losses(generator)
    yield _real(generator)


def _errors(generator: np.random.Generator) -> Table:
    """Compare errors: by simulation, those of bitmaps and exact counts by formula."""
    columns = ("ε", "elements", "distinct_count", "noisy bitmap", "such a bitmap, as small", "exact + Laplace")
    others = ("HLL, noisy registers", "HLL + worst-case Laplace", "HLL + Laplace(1/ε): NOT private")
    title = "distinct counts: relative error (RMS) and memory"
    table = Table(*columns, *others, title=title, title_justify="left")
    for epsilon in EPSILONS:
        for count in COUNTS:
            ours, buckets = _ours(epsilon, count, generator)
            wide = 2 ** math.ceil(math.log2(16 * count))  # as `t.distinct_above` has it
            plain = _hyperloglog(REGISTERS, count, generator)
            table.add_row(
                f"{epsilon:g}",
                f"{count:,}",
                _cell(ours, buckets),
                _cell(_bitmap(epsilon, count, wide), wide // 8),
                _cell(_bitmap(epsilon, count, 8 * buckets), buckets),
                _cell(math.sqrt(2) / epsilon / count, 8 * count),
                _cell(*_noisy_registers(epsilon, count, generator)),
                _cell(_error(_clamped(plain, epsilon, count, generator), count), REGISTERS),
                _cell(_error(plain + generator.laplace(0, 1 / epsilon, RUNS), count), REGISTERS),
            )
    return table


def _cell(error: float, memory: float) -> str:
    unit, size = ("MB", 1e6) if memory >= 1e6 else ("KB", 1e3)
    return f"{100 * error:.3g}%, {memory / size:.3g} {unit}"


def _error(estimates: NDArray[np.float64], count: int) -> float:
    return float(np.sqrt(np.mean((estimates - count) ** 2))) / count


def _sampled(law: MaximaLaw, buckets: int, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Return a sketch drawn from its law: the smallest of N uniform numbers is 1 - U^(1/N)."""
    inside = generator.multinomial(count, np.full(buckets, 1 / buckets)) + law.phantoms
    with np.errstate(divide="ignore"):
        smallest = -np.expm1(np.log(generator.random(buckets)) / inside)
    return law.levels(np.minimum(np.ldexp(smallest, 64), math.nextafter(2.0**64, 0)).astype(np.uint64))


def _estimates(law: MaximaLaw, buckets: int, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    estimate = DistinctEstimate.of(law, buckets)
    drawn = (_sampled(law, buckets, count, generator) for _ in range(RUNS))
    return np.array([estimate.most_likely(sketch) for sketch in drawn], dtype=np.float64)


def _ours(epsilon: float, count: int, generator: np.random.Generator) -> tuple[float, int]:
    """Return the error with the number of buckets that is chosen for a threshold at the count."""
    law = MaximaLaw.of(Fraction(epsilon))
    buckets = fitting_buckets(law.phantoms, count)
    return _error(_estimates(law, buckets, count, generator), count), buckets


def _bitmap(epsilon: float, count: int, bits: int) -> float:
    """Return the error of linear counting with Laplace noise of scale 1/ε on the bits that are set."""
    load = count / bits
    return math.sqrt(bits * (math.exp(load) - load - 1) + 2 * math.exp(2 * load) / epsilon**2) / count


def _hyperloglog(registers: int, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    return _estimates(HYPERLOGLOG, registers, count, generator)


def _clamped(
    plain: NDArray[np.float64], epsilon: float, count: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Add noise for the worst pair of datasets: one element can take an estimate from the bottom to the top."""
    top = AT_MOST * count
    return np.clip(plain + generator.laplace(0, top / epsilon, RUNS), 0, top)


def _noisy_registers(epsilon: float, count: int, generator: np.random.Generator) -> tuple[float, int]:
    """Return the least error of any size, with noise on every register, and its memory: floats, four bytes each.

    An element can raise one register from 0 to the top, so noise has that scale. Registers are cut off a little
    above what they reach. Their mean is compared with its expectation; their median would gain a factor of √2.
    """
    found = []
    for registers in (2**8, 2**10, 2**12, 2**14):
        top = max(3, math.ceil(math.log2(AT_MOST * count / registers)) + 3)
        noise = generator.laplace(0, top / epsilon, (RUNS, registers)).mean(axis=1)
        sketches = (_sampled(HYPERLOGLOG, registers, count, generator) for _ in range(RUNS))
        means = np.array([np.minimum(sketch, top).mean() for sketch in sketches]) + noise
        estimates = [_inverted(mean, registers, top, AT_MOST * count) for mean in means]
        found.append((_error(np.array(estimates, dtype=np.float64), count), 4 * registers))
    return min(found)


def _inverted(mean: float, registers: int, top: int, most: int) -> int:
    """Return the number of elements for which registers have this mean."""
    shrink = np.log1p(-np.ldexp(1.0, -np.arange(top)) / registers)
    return largest_integer(lambda count: float(np.sum(-np.expm1(count * shrink))) <= mean, most)


def _losses(generator: np.random.Generator) -> Table:
    """Show what Laplace(1/ε) on an estimate really protects: its loss is ε times the change of the estimate."""
    title = (
        f"HLL + Laplace(1/ε), {REGISTERS:,} registers: true loss for one of {TRIED:,} elements, chosen by its hash"
    )
    table = Table("elements", "estimate moves by", *(f"loss, claimed {e:g}" for e in EPSILONS), title=title)
    table.title_justify = "left"
    estimate = DistinctEstimate.of(HYPERLOGLOG, REGISTERS)
    for count in COUNTS:
        sketch = _sampled(HYPERLOGLOG, REGISTERS, count, generator)
        levels = HYPERLOGLOG.levels(generator.integers(0, 2**64, TRIED, dtype=np.uint64))
        buckets = generator.integers(0, REGISTERS, TRIED)
        now = sketch[buckets].astype(np.float64)
        best = int(np.argmax(np.exp2(-now) - np.exp2(-np.maximum(now, levels))))
        moved = sketch.copy()
        moved[buckets[best]] = max(levels[best], moved[buckets[best]])
        change = estimate.most_likely(moved) - estimate.most_likely(sketch)
        table.add_row(f"{count:,}", f"{change:,}", *(f"{epsilon * change:.3g}" for epsilon in EPSILONS))
    return table


def _real(generator: np.random.Generator) -> Table:
    """Run the algorithm itself: is the simulation right, and how long does an element take?"""
    title = "distinct_count at ε = 0.5 with its real hash"
    table = Table("elements", "RMS error of 20 runs", "simulated", "an element takes", title=title)
    table.title_justify = "left"
    entropy = SystemEntropy()
    for count in COUNTS[:2]:
        algorithm = distinct_count(np.arange, 0.5, buckets=fitting_buckets(2, count))
        outcomes = np.array([algorithm.run(count, entropy) for _ in range(20)], dtype=np.float64)
        seconds = median_seconds(partial(algorithm.run, count, entropy)) / count
        error = _error(outcomes, count)
        simulated, _ = _ours(0.5, count, generator)
        table.add_row(f"{count:,}", f"{error:.2%}", f"{simulated:.2%}", readable(seconds))
    return table
