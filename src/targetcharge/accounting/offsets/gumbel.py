"""Gumbel noise: the guarantee of at-least questions, in closed form or certified level by level.

With y = e^{ε'-L} for the loss L, w_s(y) is the δ' that s more hits can still make. It is convex and decreasing,
w_0 is (1-y)⁺, and w_s is the smallest function above w_0 whose tangent at every y is above w_{s-1} at y·e^{-a}
and at y·e^b (docs/theory/offsets.md#gumbel): a = λε is what a hit adds where the first dataset is above, b =
(1-λ)ε what it takes off where it is below.

Computed are functions W_s on a lattice of losses. Between two nodes W_{s-1} is replaced by its chord, which is
above it; then the best threshold strategy (below the threshold let the loss rise, above it let it fall, in it
stay) has a value in closed form within every cell. Whether the result is right is not taken on trust: every
tangent of W_s must be above W_{s-1} but for a factor 1 - η, and η is *measured*, at the nodes by its formula and
between them by convexity:

    truth_s  ≤  ( W_s + 1e-7·rest_s + bottom_s ) / Π(1-η)

- rest_s is the Rényi bound at some order, or 1 if that is less, a supersolution of its own: η is relative to
  W_{s-1} + 1e-7·rest_{s-1}, so that nothing is divided by zero;
- bottom_s is the straight line through the origin that is above the Rényi bound from the lowest node on.

>>> from targetcharge.accounting.exact.lattice import Lattice
>>> from targetcharge.accounting.offsets.games import GumbelGame
>>> game = GumbelGame(24, 16)
>>> level = list(gumbel_levels(Lattice.for_hits(game, 0.1 / 40, 20, 1e-6), 20))[-1]
>>> round(level.epsilon_at(1e-6), 3)
1.056
>>> round(falling_delta(0.1, 20, 1.36213) * 1e6, 3), round(rising_delta(0.1, 20, 2.80521) * 1e6, 3)
(1.0, 1.0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
from scipy.special import gammainc, gammaincc

from targetcharge import checks
from targetcharge.accounting.exact.certificate import FLOOR, ROUNDING
from targetcharge.accounting.exact.lattice import Level
from targetcharge.accounting.exact.levels import recur
from targetcharge.accounting.offsets.games import GumbelGame
from targetcharge.errors import InvalidParameter, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.accounting.exact.lattice import Lattice

    Array = NDArray[np.float64]

_SHARE_OF_RENYI: Final = 1e-7
_GAIN: Final = 1e-12
_LARGEST_EXPONENT: Final = 700.0
_GAMMA_ROUNDING: Final = 1e-11
"""More than what SciPy's incomplete gamma functions are off by, relatively; tests compare them with mpmath."""


def falling_delta(query_epsilon: float, hits: int, epsilon: float) -> float:
    """Return δ' of the dataset with the unit against that without, from above: the loss is τε - (1-e^{-ε})·Γ_τ.

    This is also the guarantee with an offset at λ = 1, before its first move.
    """
    start = (hits * query_epsilon - epsilon) / -math.expm1(-query_epsilon)
    if start <= 0:
        return 0.0
    likely, other = float(gammainc(hits, start)), float(gammainc(hits, start * math.exp(-query_epsilon)))
    return _difference(likely, other, epsilon)


def rising_delta(query_epsilon: float, hits: int, epsilon: float) -> float:
    """Return δ' of the dataset without the unit against that with it, from above: the loss is (e^ε-1)·Γ_τ - τε."""
    start = max(0.0, (hits * query_epsilon + epsilon) / math.expm1(query_epsilon))
    likely, other = float(gammaincc(hits, start)), float(gammaincc(hits, start * math.exp(query_epsilon)))
    return _difference(likely, other, epsilon)


def _difference(likely: float, other: float, epsilon: float) -> float:
    """Return likely - e^ε·other from above, in [0, 1]."""
    weighed = math.exp(min(epsilon, 700.0)) * other
    return min(1.0, max(0.0, likely - weighed) + _GAMMA_ROUNDING * (likely + weighed) + FLOOR)


@final
@dataclass(frozen=True)
class _Cells:
    """What crossing one cell does: the chance of no hit on the way, and between which nodes a hit lands.

    Attributes:
        shift: by how many cells a hit moves the loss, as seen from the node where the crossing starts.
        inward: the same at its other end.
        miss: the chance to get there without a hit.
        hit_shift: the chance of a hit that moves by `shift`.
        hit_inward: the chance of one that moves by `inward`.
    """

    shift: int
    inward: int
    miss: float
    hit_shift: float
    hit_inward: float

    @classmethod
    def crossing(cls, jump: int, width: float) -> _Cells:
        """Return the crossing of a cell where hits add `jump` cells, so that the loss falls, or rises if negative.

        y moves to y·e^{±d} in the time d/(1 - e^{-a}) above, d/(e^b - 1) below. The split keeps the mean of y,
        and so the value of every function that is linear between the nodes.
        """
        step = 1 if jump > 0 else -1
        move = step * width
        time = move / -math.expm1(-jump * width)
        hit = -math.expm1(-time)
        # E[y] = 1:  miss·e^move + hit_shift·e^{-jump} + hit_inward·e^{move-jump} = 1
        excess = -math.expm1(move - time) - hit * math.exp(-jump * width)
        inward = min(hit, max(0.0, excess / (math.exp(-jump * width) * math.expm1(move))))
        return cls(jump, jump - step, math.exp(-time), hit - inward, inward)


def gumbel_levels(lattice: Lattice, hits: int) -> Iterator[Level]:
    """Yield the certified levels for 1, 2, …, `hits` hits of the game that the lattice was made for."""
    lattice.check_size(checks.hits(hits))
    if lattice.bottom * lattice.epsilon > _LARGEST_EXPONENT:
        raise TooLarge(
            "epsilon", lattice.depth * lattice.epsilon, "smaller: such losses overflow double precision"
        )
    run = _Run(lattice)
    inflation, values = 0.0, run.payoff
    for count in range(1, hits + 1):
        before = run.with_ghosts(values)
        values, threshold = run.level(before)
        excess = run.violation(values, before, threshold, count)
        inflation += -math.log1p(-excess) if excess < 1 else math.inf
        yield Level(count, lattice.epsilon, 0.0, run.bound(values, count, inflation))


class _Run:
    """The nodes of a lattice, the moves between them, and the Rényi bound around them."""

    def __init__(self, lattice: Lattice) -> None:
        game, width = lattice.kind, lattice.epsilon
        if not isinstance(game, GumbelGame):
            raise InvalidParameter("lattice", lattice, "one made for a GumbelGame")
        self._lattice = lattice
        self._above, self._below = game.above, game.below
        self._falling = _Cells.crossing(self._above, width)
        self._rising = _Cells.crossing(-self._below, width)
        self._drop, self._rise = -math.expm1(-self._above * width), math.expm1(self._below * width)
        self._losses: Array = np.arange(-lattice.bottom, lattice.top + 1, dtype=np.float64) * width
        self._ratio = np.exp(-self._losses)  # y
        self._beyond = np.exp(-np.arange(1, self._above + 1) * width)
        self._price = game.kappa(1 + lattice.exponent, width)
        exponent = lattice.exponent
        self._constant = exponent * math.log(exponent) - (1 + exponent) * math.log1p(exponent)
        self.payoff = -np.expm1(-np.maximum(self._losses, 0.0)) + FLOOR

    def with_ghosts(self, values: Array) -> Array:
        """Return a level with nodes beyond its ends: falling on as it does below; above, the chord to 1 at y = 0.

        Below it may be anything convex: the truth is covered by the line through the origin from there on.
        """
        below = values[0] * (values[0] / values[1]) ** np.arange(self._below, 0, -1)
        return np.concatenate((below, values, 1 - (1 - values[-1]) * self._beyond))

    def _moved(self, ghosted: Array, jump: int) -> Array:
        """Return the level at every node moved by so many cells."""
        start = self._below + jump
        return ghosted[start : start + len(self._losses)]

    def _hits(self, before: Array, cells: _Cells) -> Array:
        """Return what the hits on the way across a cell are worth, at the node where the crossing starts."""
        at_start, at_end = self._moved(before, cells.shift), self._moved(before, cells.inward)
        return cells.hit_shift * at_start + cells.hit_inward * at_end

    def _stay(self, before: Array) -> Array:
        """Return what staying at a node until a hit is worth."""
        share = self._rise / (self._rise + self._drop)
        return share * self._moved(before, self._above) + (1 - share) * self._moved(before, -self._below)

    def level(self, before: Array) -> tuple[Array, int]:
        """Return W_s at the nodes, and the node that is its threshold."""
        stay, fall, rise = self._stay(before), self._falling, self._rising
        after_fall, after_rise = self._hits(before, fall), self._hits(before, rise)
        # The threshold is above the last node that gains by letting the loss rise to the next and staying there.
        gains = np.flatnonzero(rise.miss * stay[1:] + after_rise[:-1] > (1 + _GAIN) * stay[:-1])
        threshold = min(int(gains[-1]) + 1, len(stay) - 2) if len(gains) else self._lattice.bottom
        values = np.empty_like(stay)
        values[threshold] = stay[threshold]
        values[threshold + 1 :] = recur(fall.miss, stay[threshold], after_fall[threshold + 1 :])
        values[:threshold] = recur(rise.miss, stay[threshold], after_rise[:threshold][::-1])[::-1]
        return values, threshold

    def violation(self, values: Array, before: Array, threshold: int, count: int) -> float:
        """Return η: by how much, relatively, W_{s-1} exceeds the tangents of W_s anywhere (0 if nowhere)."""
        if not (np.isfinite(values).all() and (values > 0).all()):
            return math.inf
        y, high, low = self._ratio, self._moved(before, self._above), self._moved(before, -self._below)
        # Up to the threshold tangents meet W_{s-1} at y·e^b, from there on at y·e^{-a}; the other side has a gap.
        gaps_high, gaps_low = np.zeros(len(values) - 1), np.zeros(len(values) - 1)
        upto, since = slice(0, threshold + 1), slice(threshold, None)
        gaps_high[:threshold] = _gaps(y[upto], values[upto], low[upto], self._rise, high[upto], -self._drop)
        gaps_low[threshold:] = _gaps(y[since], values[since], high[since], -self._drop, low[since], self._rise)
        # What a crossing is off by, spread over its cell, tilts a tangent by so much.
        error = ROUNDING + self._error(values, before, threshold)
        tilt = error * (1 + max(self._drop, self._rise) / self._lattice.epsilon) * values[1:]
        high_excess = (tilt - gaps_high) / (high[:-1] + self._rest(self._above, count - 1))
        low_excess = (tilt - gaps_low) / (low[:-1] + self._rest(-self._below, count - 1))
        excess = float(np.max([high_excess.max(), low_excess.max(), self._excess_above(values, before)]))
        return excess if math.isfinite(excess) and self._is_convex(values) else math.inf

    def _is_convex(self, values: Array) -> bool:
        """Return whether a level is convex in y but for rounding: else its chords would not be above it."""
        width = self._ratio[:-1] - self._ratio[1:]
        slope = (values[:-1] - values[1:]) / width
        rounding = 1e-9 * np.abs(slope[:-1]) + 64 * ROUNDING * values[1:-1] / width[1:]
        return bool((slope[:-1] - slope[1:] >= -rounding).all())

    def _error(self, values: Array, before: Array, threshold: int) -> float:
        """Return how far a node is, relatively, from what crossing its cell or staying in it is worth."""
        fall, rise = self._falling, self._rising
        made = np.concatenate(
            (
                rise.miss * values[1 : threshold + 1] + self._hits(before, rise)[:threshold],
                self._stay(before)[threshold : threshold + 1],
                fall.miss * values[threshold:-1] + self._hits(before, fall)[threshold + 1 :],
            )
        )
        return float((np.abs(made - values) / values).max())

    def _rest(self, jump: int, hits: int) -> Array:
        """Return what is added of the Rényi bound to a level, at the lower ends of its cells moved by a jump."""
        losses: Array = self._losses[:-1] + jump * self._lattice.epsilon
        return _SHARE_OF_RENYI * np.exp(np.minimum(self._log_renyi(losses, hits), 0.0))

    def _excess_above(self, values: Array, before: Array) -> float:
        """Return the same beyond the highest node, where W_s is the chord to 1 at y = 0."""
        chord = 1 - (1 - values[-1]) * np.exp(np.arange(self._below + 1) * self._lattice.epsilon)
        target = before[-self._above - 1 - self._below : -self._above][::-1]
        return float(((target - chord) / target).max())

    def _log_renyi(self, losses: Array, hits: int) -> Array:
        """Return the logarithm of the Rényi bound of δ' at these losses with so many hits to come."""
        return self._constant + hits * self._price + self._lattice.exponent * losses

    def bound(self, values: Array, hits: int, inflation: float) -> Array:
        """Return upper bounds of δ' at ε' = 0, 1, …, depth cells, at most 1."""
        lattice = self._lattice
        depth = np.arange(lattice.depth + 1)
        losses: Array = -depth.astype(np.float64) * lattice.epsilon
        rest = _SHARE_OF_RENYI * np.exp(np.minimum(self._log_renyi(losses, hits), 0.0))
        lowest = self._losses[:1]
        bottom = np.exp(np.minimum(self._log_renyi(lowest, hits) + lowest - losses, 1.0))
        reached = values[lattice.bottom - depth] + rest + bottom
        return np.asarray(np.minimum(math.exp(min(inflation, 700.0)) * reached + FLOOR, 1.0))


def _gaps(y: Array, values: Array, own: Array, own_shift: float, other: Array, other_shift: float) -> Array:
    """Return, cell by cell, a lower bound of the gap between tangents at y·(1 + other_shift) and `other` there.

    Within a cell both targets are straight lines and the tangent at y·(1 + own_shift) is `own`. So the gap is
    convex: it lies above its tangents at both ends of the cell.
    """
    slope = (own - values) / (own_shift * y)
    gap = values + other_shift * y * slope - other
    width = y[:-1] - y[1:]
    bend = other_shift / own_shift
    line = (bend * (own[:-1] - own[1:]) - (other[:-1] - other[1:])) / width
    right, left = (1 - bend) * slope[:-1] + line, (1 - bend) * slope[1:] + line  # y falls from node to node
    inside = (left < 0) & (right > 0)
    place = (gap[:-1] - gap[1:] - right * width) / np.where(inside, left - right, -1.0)
    return np.where(inside, gap[1:] + left * np.clip(place, 0.0, width), np.minimum(gap[:-1], gap[1:]))
