"""Certificates: a target's q or price, tried on a dense family of neighbouring pairs and on random ones.

>>> import targetcharge as tc
>>> from targetcharge.audit import certify
>>> price = certify(tc.NotPrior(False), epsilon=0.1, order=2.0, pairs=2000)
>>> price.passed, round(price.claimed, 7), 0.99 < price.ratio <= 1
(True, 0.0235605, True)
>>> print(certify(tc.Disagreement(), epsilon=0.1, pairs=2000))
passed (certificate, ... pairs): at epsilon = 0.1 the claim is q = 0.258... and 0.498... is attained, ... of it
worst: ...
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.targets import (
    Between,
    Boundary,
    Disagreement,
    Everything,
    NotPrior,
    QTarget,
    Target,
)
from targetcharge.audit.laws import (
    boundary_wrapped,
    even_pairs,
    grid_pairs,
    largest_q,
    needed_price,
    random_pairs,
    run_twice,
    shuffled,
)
from targetcharge.audit.verdict import Verdict
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.noise import NoiseLaw, rate_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Published = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], tuple[str, ...]]
    """Two batches of laws of what is published, which outcomes hit (a row, or one for each pair), their names."""

ROUNDING: Final = 1e-7
"""Relative: of differences between masses near 1, divided by a small ε and by a small probability of a hit."""

_NEVER: Final = 1e-290
"""A probability of what does not happen that still has a logarithm."""

_SIZES: Final = range(2, 7)
_DENSE_SIZES: Final = (2, 3)
_EDGE: Final = 60
"""How far from a band counts are tried."""


def certify(
    target: Target, epsilon: float, order: float | None = None, *, pairs: int = 200_000, seed: int = 0
) -> Verdict:
    """Return whether any pair needs more than the target's price, or has less than its q; the worst pair is shown.

    What is compared is exact but for rounding: a price or q that is wrong by less than a part in 10⁷ passes.

    Args:
        target: of any type; a `QTarget` is tried on pairs whose q is just its own.
        epsilon: of the computation (of one run, for `Disagreement`).
        order: a Rényi order to try the price at; left out to try q.
        pairs: how many random pairs, beside the dense family.
        seed: of the random pairs.

    Raises:
        InvalidParameter: if the price at this order is infinite, so that there is nothing to try.
    """
    if not isinstance(target, Target):
        raise InvalidParameter("target", target, "a target, such as tc.NotPrior(False)")
    epsilon = target.check_epsilon(epsilon)
    count = checks.positive_integer("pairs", pairs)
    parameter, claimed = target.paper_row(epsilon) if order is None else (0.0, target.price(order, epsilon))
    worst, words, tried = (math.inf if order is None else -math.inf), "", 0
    for law0, law1, hits, names in _published(target, epsilon, count, np.random.default_rng(seed)):
        found = largest_q(law0, law1, hits, parameter) if order is None else needed_price(law0, law1, hits, order)
        place = int(found.argmin() if order is None else found.argmax())
        tried += len(found)
        if (found[place] < worst) if order is None else (found[place] > worst):
            worst = float(found[place])
            row = hits if hits.ndim == 1 else hits[place]
            words = _words(law0[place], law1[place], row, names)
    passed = worst >= claimed * (1 - ROUNDING) if order is None else worst <= claimed * (1 + ROUNDING)
    return Verdict(
        passed=passed,
        mode="certificate",
        quantity="q" if order is None else "price",
        claimed=claimed,
        attained=worst,
        at=epsilon if order is None else order,
        runs=tried,
        worst=f"{type(target).__name__} at epsilon {epsilon:g}: {words}",
    )


def _published(target: Target, epsilon: float, count: int, rng: np.random.Generator) -> Iterator[Published]:
    """Yield batches of what is published of neighbouring pairs."""
    if isinstance(target, Between):
        yield _band(target, epsilon)
        return
    for law0, law1 in _pairs(epsilon, count, rng, wrapped=isinstance(target, Boundary)):
        size = law0.shape[1]
        names = tuple(str(place) for place in range(size))
        match target:
            case NotPrior():
                for prior in (0, size - 1):
                    yield law0, law1, np.arange(size) != prior, names
            case Everything():
                yield law0, law1, np.ones(size, dtype=bool), names
            case Disagreement():
                both = tuple(f"{first}{second}" for first, second in itertools.product(names, repeat=2))
                yield run_twice(law0), run_twice(law1), ~np.eye(size, dtype=bool).ravel(), both
            case Boundary(caution):
                wrapped = boundary_wrapped(law0, caution), boundary_wrapped(law1, caution)
                yield *wrapped, np.arange(size + 1) == 0, ("mark", *names)
            case QTarget():
                yield _at_rate(law0, law1, target.q, epsilon, names)
            case _:
                raise InvalidParameter("target", target, "one of the types of targetcharge")


def _pairs(
    epsilon: float, count: int, rng: np.random.Generator, *, wrapped: bool
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield batches of neighbouring pairs of an ε-DP algorithm."""
    for size in _DENSE_SIZES:
        yield grid_pairs(epsilon, size)
    if wrapped:
        for pieces in (1, 2, 12):
            yield even_pairs(epsilon, pieces)
    for size in _SIZES:
        yield shuffled(rng, *random_pairs(rng, math.ceil(count / len(_SIZES)), size, epsilon))


def _band(target: Between, epsilon: float) -> Published:
    """Return the true laws of noisy counts around a band: one apart, half the sensitivity, all of it."""
    low, most = math.ceil(target.low), target.sensitivity
    noise = NoiseLaw.of(rate_for(epsilon, most))
    edge = min(_EDGE, math.ceil(12 * most / epsilon))  # beyond it the rounding of the sure side hides the hits
    counts = range(low - edge - most + 1, low + target.width + edge)
    laws = {
        count: noise.sides(count, low, low + target.width - 1) for count in range(counts.start, counts.stop + most)
    }
    shifts = {1, math.ceil(most / 2), most}
    pairs = [(laws[count], laws[count + shift]) for shift in sorted(shifts) for count in counts]
    law0, law1 = np.moveaxis(np.array(pairs), 1, 0)
    return law0, law1, np.array([False, True, False]), ("below", "between", "above")


def _at_rate(
    law0: NDArray[np.float64], law1: NDArray[np.float64], q: float, epsilon: float, names: tuple[str, ...]
) -> Published:
    """Return pairs with a part of all hits (or misses) moved across, so that their q is just the declared one."""
    hits = np.arange(law0.shape[1]) % 2 == 0
    growth = math.exp(epsilon)
    unshared = np.abs(law0 - law1) / (growth - 1) * np.where(law0 > law1, growth, 1)
    shared = np.maximum(0.0, law0 - unshared)
    hit0, same_hits = law0[:, hits].sum(axis=1), shared[:, hits].sum(axis=1)
    alone, outside, same_misses = (part.sum(axis=1) for part in (unshared, unshared[:, ~hits], shared[:, ~hits]))
    kept, raised = np.full(len(law0), -np.inf), np.full(len(law0), -np.inf)
    # q* = min_b hit_b / (hit0 + outside) after the move: linear in the moved part for either b.
    for law in (law0, law1):
        hit, miss = law[:, hits].sum(axis=1), law[:, ~hits].sum(axis=1)
        kept = np.maximum(kept, _over(q * alone, hit - q * same_hits, 1.0))
        raised = np.maximum(raised, _over(q * (hit0 + outside) - hit, miss - q * same_misses, 0.0))
    lower = (raised < 0)[:, None]  # the pair's q is above the declared one: hits are moved
    none = np.zeros_like(lower, dtype=np.float64)
    moved = np.where(hits, np.where(lower, 1 - kept[:, None], none), np.where(lower, none, raised[:, None]))
    stays = np.where(hits & lower, kept[:, None], 1 - moved)
    parts = [np.hstack([law * np.clip(share, _NEVER, 1) for share in (stays, moved)]) for law in (law0, law1)]
    return parts[0], parts[1], np.append(hits, ~hits), (*names, *(f"{name} moved" for name in names))


def _over(above: NDArray[np.float64], below: NDArray[np.float64], otherwise: float) -> NDArray[np.float64]:
    """Return a quotient; where the divisor is 0 (only at q = 1, where all is shared) something else."""
    return np.divide(above, below, out=np.full_like(above, otherwise), where=below > 0)


def _words(
    law0: NDArray[np.float64], law1: NDArray[np.float64], hits: NDArray[np.bool_], names: tuple[str, ...]
) -> str:
    """Return a pair, in words."""
    shown = [
        f"{name}{' (hit)' if hit else ''} {p0:.6g} | {p1:.6g}"
        for name, hit, p0, p1 in zip(names, hits, law0, law1, strict=True)
        if max(p0, p1) > 1e-14
    ]
    return ", ".join(shown)
