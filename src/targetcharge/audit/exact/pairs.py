"""Pairs: what a finite algorithm does on two neighbouring datasets.

A pair maps each outcome to its probabilities on either dataset. A type of exception among the outcomes is raised,
a `Twin` stands for its value.

>>> {outcome: [round(p, 3) for p in chances] for outcome, chances in response(1.0, "yes", "no").items()}
{'yes': [0.731, 0.269], 'no': [0.269, 0.731]}
>>> check_pair(response(1.0, "yes", "no"), 0.5)
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: epsilon is 0.5; it must be at least 1 for this pair: ...
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from targetcharge import checks
from targetcharge.accounting.qvalues import best_q
from targetcharge.accounting.targets import Boundary
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.outcomes import BOUNDARY, Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.accounting.targets import Between, QTarget

Chances = tuple[float, float]
"""Probabilities on the first dataset and on its neighbour."""

Pair = Mapping[object, Chances]

Chance = float | NDArray[np.float64]
"""A probability, or one for each value of a session's secret offset."""

Law = Mapping[object, tuple[Chance, Chance]]
"""A pair, or one for each value of the offset."""

_TOLERANCE: Final = 1e-9


@final
@dataclass(frozen=True, eq=False)
class Twin:
    """An outcome that equals another one and looks different: `Twin(1)` beside `Twin(True)`."""

    value: object

    def __eq__(self, other: object) -> bool:
        """Return whether the other one looks the same."""
        return isinstance(other, Twin) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Return a hash of its looks."""
        return hash(repr(self))


def value_of(outcome: object) -> object:
    """Return what an algorithm gives where a pair has this outcome."""
    return outcome.value if isinstance(outcome, Twin) else outcome


def response(epsilon: float, plus: object, minus: object) -> Pair:
    """Return randomised response: `plus` speaks for the first dataset."""
    up, down = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return {plus: (up, down), minus: (down, up)}


def saturated(rng: np.random.Generator, epsilon: float, outcomes: Sequence[object]) -> Pair:
    """Return a random pair whose likelihood ratio is e^ε or e^{-ε} at every outcome."""
    cut = int(rng.integers(1, len(outcomes)))
    shares = [*rng.dirichlet(np.ones(cut)), *rng.dirichlet(np.ones(len(outcomes) - cut))]
    plus, minus = response(epsilon, "+", "-").values()
    chances = [plus] * cut + [minus] * (len(outcomes) - cut)
    return {
        outcome: (float(share) * p0, float(share) * p1)
        for outcome, share, (p0, p1) in zip(outcomes, shares, chances, strict=True)
    }


def mixed(rng: np.random.Generator, epsilon: float, outcomes: Sequence[object]) -> Pair:
    """Return any random pair: by the structure lemma, one that ignores the data mixed with a saturated one."""
    share = float(rng.beta(0.5, 0.5))
    common = rng.dirichlet(np.ones(len(outcomes)))
    rest = saturated(rng, epsilon, outcomes)
    return {
        outcome: (share * float(same) + (1 - share) * p0, share * float(same) + (1 - share) * p1)
        for same, (outcome, (p0, p1)) in zip(common, rest.items(), strict=True)
    }


def leaky(pair: Pair, delta: float, first: object, second: object) -> Pair:
    """Return a pair that gives the dataset away with probability δ, by an outcome of its own for either."""
    parts = {outcome: ((1 - delta) * p0, (1 - delta) * p1) for outcome, (p0, p1) in pair.items()}
    return {**parts, first: (delta, 0.0), second: (0.0, delta)}


def both_runs(pair: Pair) -> Pair:
    """Return what two independent runs publish."""
    return {
        (first, second): (p0 * q0, p1 * q1)
        for first, (p0, p1) in pair.items()
        for second, (q0, q1) in pair.items()
    }


def agreed(pair: Pair) -> Pair:
    """Return what is published of two runs if a disagreement is published as BOUNDARY."""
    merged: dict[object, Chances] = {outcome: (p0 * p0, p1 * p1) for outcome, (p0, p1) in pair.items()}
    return {**merged, BOUNDARY: tuple(1 - sum(chances) for chances in zip(*merged.values(), strict=True))}


def wrapped(pair: Pair) -> Pair:
    """Return the pair of the boundary wrapper around an algorithm, the mark last."""
    marks = [Boundary().mark_probability(1 - max(law)) for law in zip(*pair.values(), strict=True)]
    parts = {outcome: ((1 - marks[0]) * p0, (1 - marks[1]) * p1) for outcome, (p0, p1) in pair.items()}
    return {**parts, BOUNDARY: (marks[0], marks[1])}


def sides(band: Between, counts: tuple[int, int], epsilon: float) -> Pair:
    """Return the pair of a noisy count against a band: the true laws of discrete Laplace noise."""
    if abs(counts[0] - counts[1]) > band.sensitivity:
        raise InvalidParameter("counts", counts, f"two counts that differ by at most {band.sensitivity}")
    noise = NoiseLaw.of(rate_for(epsilon, band.sensitivity))
    least, most = math.ceil(band.low), math.floor(band.high)
    laws = [noise.sides(count, least, most) for count in counts]
    return dict(zip((Side.BELOW, Side.BETWEEN, Side.ABOVE), zip(*laws, strict=True), strict=True))


def check_pair(pair: Pair, epsilon: float, delta: float = 0.0) -> None:
    """Refuse what is no pair of laws, or not (ε, δ)-indistinguishable as declared."""
    try:
        items = tuple((outcome, (float(p0), float(p1))) for outcome, (p0, p1) in pair.items())
    except (AttributeError, TypeError, ValueError):
        items = ()
    if not items:
        raise InvalidParameter("pair", pair, "a mapping of outcomes to their two probabilities")
    _check(items, epsilon, delta)


@lru_cache(maxsize=4096)
def _check(items: tuple[tuple[object, Chances], ...], epsilon: float, delta: float) -> None:
    epsilon, delta = checks.query_epsilon(epsilon, "epsilon"), checks.delta(delta)
    for side in (0, 1):
        law = [chances[side] for _, chances in items]
        if not min(law) >= 0 or not abs(math.fsum(law) - 1) <= _TOLERANCE:
            expected = f"two laws, and the {('first', 'second')[side]} one sums to {math.fsum(law):.9g}"
            raise InvalidParameter("pair", dict(items), expected)
    needed = max(
        math.fsum(max(0.0, chances[side] - math.exp(epsilon) * chances[1 - side]) for _, chances in items)
        for side in (0, 1)
    )
    if needed > delta + _TOLERANCE:
        outcome, (p0, p1) = max(items, key=lambda item: _log_ratio(*item[1]))
        ratio = _log_ratio(p0, p1)
        expected = (
            f"at least {ratio:.6g} for this pair: {value_of(outcome)!r} is e^{ratio:.6g} = {_exp(ratio):.6g} times"
            f" as likely on one dataset as on the other; or a delta of at least {needed:.6g}"
        )
        raise InvalidParameter("epsilon", epsilon, expected)


def _log_ratio(p0: float, p1: float) -> float:
    if max(p0, p1) == 0:
        return 0.0
    return abs(math.log(p0 / p1)) if min(p0, p1) > 0 else math.inf


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def check_q(pair: Pair, epsilon: float, target: QTarget) -> None:
    """Refuse a q-target whose declared q is above the pair's."""
    members = [value_of(outcome) in target for outcome in pair]
    laws = list(zip(*pair.values(), strict=True))
    most = best_q(laws[0], laws[1], members, epsilon * (1 + _TOLERANCE))
    if target.q > most * (1 + _TOLERANCE):
        raise InvalidParameter("q", target.q, f"at most {most:.9g}, the q of this pair and these members")
