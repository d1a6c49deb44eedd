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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.targets import Between, Boundary, Disagreement, Everything, NotPrior, QTarget, Target
from targetcharge.audit.verdict import Verdict
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.noise import NoiseLaw, rate_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Laws = NDArray[np.float64]
    """Rows are laws."""

    Pairs = tuple[Laws, Laws]
    """On two neighbours: pairs of rows."""

ROUNDING: Final = 1e-7
"""Relative: of differences between masses near 1, divided by a small ε and by a small probability of a hit."""

_NEVER: Final = 1e-290
"""A probability of what does not happen that still has a logarithm."""

_SIZES: Final = range(2, 7)
_DENSE_SIZES: Final = (2, 3)
_RATIOS: Final = (-1.0, -0.5, 0.0, 0.5, 1.0)
_MASSES: Final = (1e-6, 1e-3, 0.05, 0.2, 0.5, 1.0)
_EDGE: Final = 60
"""How far from a band counts are tried."""
_MOST_LISTED: Final = 8
"""Outcomes of the worst pair that are shown."""


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
    count = checks.positive_integer(pairs, "pairs")
    parameter, claimed = target.paper_row(epsilon) if order is None else (0.0, target.price(order, epsilon))
    sign = -1 if order is None else 1  # a q is a lower bound, a price an upper one
    worst, words, tried = -sign * math.inf, "", 0
    for batch in _outcome_laws(target, epsilon, count, np.random.default_rng(seed)):
        values = batch.largest_q(parameter) if order is None else batch.needed_price(order)
        place = int((sign * values).argmax())
        tried += len(values)
        if sign * values[place] > sign * worst:
            worst, words = float(values[place]), batch.words(place)
    return Verdict(
        passed=sign * worst <= sign * claimed * (1 + sign * ROUNDING),
        mode="certificate",
        quantity="q" if order is None else "price",
        claimed=claimed,
        attained=worst,
        at=epsilon if order is None else order,
        runs=tried,
        worst=f"{type(target).__name__} at epsilon {epsilon:g}: {words}",
    )


@final
@dataclass(frozen=True)
class _OutcomeLaws:
    """The laws of what is published of neighbouring pairs, which outcomes hit, and their names."""

    law0: Laws
    law1: Laws
    hits: NDArray[np.bool_]
    names: tuple[str, ...]

    def needed_price(self, order: float) -> NDArray[np.float64]:
        """Return what each pair needs, in the worse direction: -ln((1 - S_off)/S_on), infinite if S_off ≥ 1."""
        log_ratio = np.log(self.law0) - np.log(self.law1)
        return np.maximum(self._one_way(self.law1, log_ratio, order), self._one_way(self.law0, -log_ratio, order))

    def _one_way(self, base: Laws, log_ratio: NDArray[np.float64], order: float) -> NDArray[np.float64]:
        """Return -ln(1 - (S_off + S_on - 1)/S_on).

        S - 1 = Σ base (r^a - 1 - a(r - 1)) = Σ base (r (r^{a-1} - 1) - (a - 1)(r - 1)) keeps small prices.
        """
        beyond = order - 1
        terms = np.exp(log_ratio) * np.expm1(beyond * log_ratio) - beyond * np.expm1(log_ratio)
        excess = (base * terms).sum(axis=-1)
        on = np.where(self.hits, base * np.exp(order * log_ratio), 0).sum(axis=-1)
        share = np.divide(excess, on, out=np.where(excess > 0, np.inf, 0.0), where=on > 0)
        return np.where(share < 1, -np.log1p(-np.where(share < 1, share, 0)), np.inf)

    def largest_q(self, epsilon: float) -> NDArray[np.float64]:
        """Return q* of each pair: min_b Z^b(⊤) / (1 - Σ_{y∉⊤} c(y)), c = (e^ε min - max)/(e^ε - 1)."""
        unshared = _unshared(self.law0, self.law1, epsilon)
        hit0, hit1 = (np.where(self.hits, law, 0).sum(axis=-1) for law in (self.law0, self.law1))
        whole = hit0 + np.where(self.hits, 0, unshared).sum(axis=-1)
        shares = np.divide(np.minimum(hit0, hit1), whole, out=np.ones_like(whole), where=whole > 0)
        return np.asarray(np.minimum(1.0, shares))

    def words(self, place: int) -> str:
        """Return a pair, in words."""
        outcomes = zip(self.names, self.hits, self.law0[place], self.law1[place], strict=True)
        listed = [
            f"{name}{' (hit)' if hit else ''} {p0:.6g} | {p1:.6g}"
            for name, hit, p0, p1 in outcomes
            if max(p0, p1) > 1e-14
        ]
        more = f" and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
        return ", ".join(listed[:_MOST_LISTED]) + more


def _unshared(law0: Laws, law1: Laws, epsilon: float) -> Laws:
    """Return what is left of law0 without the part that the pair has in common: law0 - c."""
    growth = math.exp(epsilon)
    return np.abs(law0 - law1) / (growth - 1) * np.where(law0 > law1, growth, 1)


# What is published, by the type of the target.


def _outcome_laws(target: Target, epsilon: float, count: int, rng: np.random.Generator) -> Iterator[_OutcomeLaws]:
    if isinstance(target, Between):
        yield _band(target, epsilon)
        return
    for law0, law1 in _pairs(epsilon, count, rng, wrapped=isinstance(target, Boundary)):
        size = law0.shape[1]
        names = tuple(str(place) for place in range(size))
        match target:
            case NotPrior():
                for prior in (0, size - 1):
                    yield _OutcomeLaws(law0, law1, np.arange(size) != prior, names)
            case Everything():
                yield _OutcomeLaws(law0, law1, np.ones(size, dtype=bool), names)
            case Disagreement():
                both = tuple(f"{first}{second}" for first, second in itertools.product(names, repeat=2))
                yield _OutcomeLaws(_run_twice(law0), _run_twice(law1), ~np.eye(size, dtype=bool).ravel(), both)
            case Boundary(caution):
                marked0, marked1 = _boundary_wrapped(law0, caution), _boundary_wrapped(law1, caution)
                yield _OutcomeLaws(marked0, marked1, np.arange(size + 1) == 0, ("mark", *names))
            case QTarget():
                yield _at_rate(law0, law1, target.q, epsilon, names)
            case _:
                raise InvalidParameter("target", target, "one of the types of targetcharge")


def _run_twice(laws: Laws) -> Laws:
    """Return the product laws; outcome (i, j) is at i * outcomes + j."""
    return (laws[:, :, None] * laws[:, None, :]).reshape(len(laws), -1)


def _boundary_wrapped(laws: Laws, caution: float) -> Laws:
    """Return the laws of the boundary wrapper: the mark, then each outcome of the wrapped algorithm."""
    doubt = caution * np.minimum(1 - laws.max(axis=1, keepdims=True), 0.5)
    mark = doubt / (1 + doubt)
    return np.hstack([mark, (1 - mark) * laws])


def _band(target: Between, epsilon: float) -> _OutcomeLaws:
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
    return _OutcomeLaws(law0, law1, np.array([False, True, False]), ("below", "between", "above"))


def _at_rate(law0: Laws, law1: Laws, q: float, epsilon: float, names: tuple[str, ...]) -> _OutcomeLaws:
    """Return pairs with a part of all hits (or misses) moved across, so that their q is just the declared one."""
    hits = np.arange(law0.shape[1]) % 2 == 0
    unshared = _unshared(law0, law1, epsilon)
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
    moved = np.where(hits, np.where(lower, 1 - kept[:, None], 0.0), np.where(lower, 0.0, raised[:, None]))
    stays = np.where(hits & lower, kept[:, None], 1 - moved)
    parts = [np.hstack([law * np.clip(share, _NEVER, 1) for share in (stays, moved)]) for law in (law0, law1)]
    return _OutcomeLaws(parts[0], parts[1], np.append(hits, ~hits), (*names, *(f"{name} moved" for name in names)))


def _over(above: NDArray[np.float64], below: NDArray[np.float64], otherwise: float) -> NDArray[np.float64]:
    """Return a quotient; where the divisor is 0 (only at q = 1, where all is shared) something else."""
    return np.divide(above, below, out=np.full_like(above, otherwise), where=below > 0)


# Neighbouring pairs of an ε-DP algorithm.


def _pairs(epsilon: float, count: int, rng: np.random.Generator, *, wrapped: bool) -> Iterator[Pairs]:
    for size in _DENSE_SIZES:
        yield _grid_pairs(epsilon, size)
    if wrapped:
        for pieces in (1, 2, 12):
            yield _even_pairs(epsilon, pieces)
    for size in _SIZES:
        yield _random_pairs(rng, math.ceil(count / len(_SIZES)), size, epsilon)


def _balanced(weights: NDArray[np.float64], log_ratios: NDArray[np.float64]) -> Pairs:
    """Return the pairs with these ln(law0/law1), the masses as close to the weights as two sums of 1 allow.

    Scaling the outcomes that rise by the loss of those that fall, and conversely, makes both sums equal. Every row
    must have an outcome that rises and one that falls.
    """
    change = weights * np.expm1(log_ratios)
    gain = np.where(change > 0, change, 0).sum(axis=-1, keepdims=True)
    loss = np.where(change < 0, -change, 0).sum(axis=-1, keepdims=True)
    law1 = weights * np.where(change > 0, loss, np.where(change < 0, gain, np.sqrt(gain * loss)))
    law1 /= law1.sum(axis=-1, keepdims=True)
    return law1 * np.exp(log_ratios), law1


def _grid_pairs(epsilon: float, outcomes: int) -> Pairs:
    """Return the dense family: every combination of a few masses and of ratios from e^{-ε} to e^ε."""
    ratios = np.array([row for row in itertools.product(_RATIOS, repeat=outcomes) if max(row) > 0 > min(row)])
    masses = np.array(list(itertools.product(_MASSES, repeat=outcomes)))
    return _balanced(np.repeat(masses, len(ratios), axis=0), epsilon * np.tile(ratios, (len(masses), 1)))


def _random_pairs(rng: np.random.Generator, count: int, outcomes: int, epsilon: float) -> Pairs:
    """Return pairs with even to very uneven masses, and ratios from moderate to all of e^{±ε}.

    Some outcomes have ratio 1: those are common parts. One rises and one falls.
    """
    unevenness = rng.choice([0.1, 1.0, 6.0], (count, 1))
    weights = np.exp(-unevenness * rng.exponential(size=(count, outcomes)))
    reach = rng.choice([1.0, 2.0, 100.0], (count, 1))
    scaled = np.clip(reach * rng.uniform(-1, 1, (count, outcomes)), -1, 1)
    scaled[rng.random((count, outcomes)) < 0.15] = 0
    scaled[:, 0] = np.maximum(np.abs(scaled[:, 0]), 1e-3)
    scaled[:, 1] = -np.maximum(np.abs(scaled[:, 1]), 1e-3)
    law0, law1 = _balanced(weights, epsilon * scaled)
    places = rng.permuted(np.tile(np.arange(outcomes), (count, 1)), axis=1)
    return np.take_along_axis(law0, places, axis=1), np.take_along_axis(law1, places, axis=1)


def _even_pairs(epsilon: float, outcomes: int) -> Pairs:
    """Return pairs around the boundary wrapper's worst: one outcome of mass near 1/2, the rest in even pieces."""
    firsts = np.unique(
        np.concatenate([np.linspace(0.02, 0.98, 49), 0.5 * np.exp(epsilon * np.linspace(-1, 1, 9))])
    )
    rows = []
    for first, share in itertools.product(firsts[firsts < 1], np.linspace(0.0, 1.0, 21)):
        ratio = share * math.exp(epsilon) + (1 - share) * math.exp(-epsilon)
        other = 1 - (1 - first) * ratio
        if 0 < other < 1 and abs(math.log(other / first)) <= epsilon:
            pieces = np.array([share, 1 - share]).repeat(outcomes) / outcomes * (1 - first)
            scale = np.exp([epsilon, -epsilon]).repeat(outcomes)
            kept = np.maximum(pieces, 1e-300)
            rows.append((np.append(other, kept * scale), np.append(first, kept)))
    law0, law1 = np.moveaxis(np.array(rows), 1, 0)
    return law0, law1
