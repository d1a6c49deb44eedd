"""Sessions with a secret offset, the slow way: games played with the offset integrated out, and plain recursions.

A session draws one offset ρ and publishes numbers v = f + ν - Δρ that are in their targets. Given ρ its numbers
are independent, so the chance of a transcript on either dataset is a sum over ρ of products, here over a lattice
with so little mass beyond it that it cannot matter (`Mechanism.dropped`). An adversary picks the next question
from a menu, knowing the transcript; `best_deltas` tries every strategy. Nothing here knows how sessions are
accounted for.

>>> mechanism = Mechanism(1.0, 1.0, "geometric", lattice=1)
>>> [float(delta.round(3)) for delta in best_deltas(mechanism, [Ask(1, at_least(0))], 1, 1, [0.0, 0.2, 1.0])]
[0.462, 0.403, 0.0]
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import mpmath
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Cells = tuple[tuple[float, float], ...]
"""What a hit tells of a number, by cells with both ends: one after another, all between them hits as well."""

_DROPPED = 24.0
"""Beyond how many times its scale the law of an offset is cut off."""


def at_least(threshold: int, told: int = 8) -> Cells:
    """Return the target of all from a threshold on; the values of so many are told, then only that it is more."""
    return (*((value, value) for value in range(threshold, threshold + told)), (threshold + told, math.inf))


def at_most(threshold: int, told: int = 8) -> Cells:
    """Return the target of all up to a threshold."""
    return tuple((-high, -low) for low, high in at_least(-threshold, told))


def between(low: int, high: int) -> Cells:
    """Return the target of all from one threshold to another."""
    return tuple((value, value) for value in range(low, high + 1))


def all_but(prior: int, tolerance: int, told: int = 8) -> Cells:
    """Return the target of all that is further from a prior than a tolerance."""
    return at_most(prior - tolerance - 1, told) + at_least(prior + tolerance + 1, told)


@dataclass(frozen=True)
class Mechanism:
    """What a session draws, on multiples of 1/lattice.

    Attributes:
        offset_epsilon: the rate of the offset for a sensitivity of 1.
        query_epsilon: the same of the fresh noise.
        noise: "laplace", "geometric" or "gumbel".
        offset_noise: "laplace" or "geometric"; "none" for a session without an offset.
        lattice: M.
        removed: whether the first dataset is the one with the unit.
    """

    offset_epsilon: float
    query_epsilon: float
    noise: str = "laplace"
    offset_noise: str = ""
    lattice: int = 2
    removed: bool = False

    @property
    def offset_law(self) -> str:
        """Return the law of the offset."""
        return self.offset_noise or ("geometric" if self.noise == "geometric" else "laplace")

    @functools.cached_property
    def offsets(self) -> np.ndarray:
        """Return the offsets that are not cut off."""
        if self.offset_law == "none":
            return np.zeros(1)
        most = math.ceil(_DROPPED * self.lattice / self.offset_epsilon)
        return np.arange(0 if self.offset_law == "geometric" else -most, most + 1)

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """Return their probabilities."""
        if self.offset_law == "none":
            return np.ones(1)
        rate = self.offset_epsilon / self.lattice
        return up_to(self.offset_law, rate, self.offsets) - up_to(self.offset_law, rate, self.offsets - 1)

    @property
    def dropped(self) -> float:
        """Return the probability that was cut off: a δ at ε' may be wrong by e^{ε'} times it."""
        return max(0.0, 1 - float(self.weights.sum())) + 1e-15

    def cell(self, low: float, high: float, sensitivity: int, moved: float) -> np.ndarray:
        """Return, by offset, the chance that a number is in a cell, if the unit moves it by so much."""
        rate = self.query_epsilon / (self.lattice * sensitivity)
        by = sensitivity * self.offsets - moved * self.lattice
        high_side = above(self.noise, rate, low - 1 + by) - above(self.noise, rate, high + by)
        return np.where(
            low + by > 0, high_side, up_to(self.noise, rate, high + by) - up_to(self.noise, rate, low - 1 + by)
        )

    def movements(self, moved: float) -> tuple[float, float]:
        """Return how a number moves on the first dataset and on the second."""
        return (moved, 0) if self.removed else (0, moved)


def up_to(noise: str, rate: float, values: np.ndarray) -> np.ndarray:
    """Return the chance that noise is at most a value: an integer, or infinite."""
    if noise == "geometric":
        return np.where(values < 0, 0.0, -np.expm1(-rate * (np.maximum(values, 0.0) + 1)))
    if noise == "gumbel":
        return np.exp(-np.exp(np.minimum(-rate * values, 700.0)))
    return np.where(values < 0, _laplace_tail(rate, -np.minimum(values, 0.0)), 1 - above(noise, rate, values))


def above(noise: str, rate: float, values: np.ndarray) -> np.ndarray:
    """Return the chance that noise is above a value, to full precision where that is small."""
    if noise == "geometric":
        return np.exp(-rate * np.maximum(values + 1, 0.0))
    if noise == "gumbel":
        return -np.expm1(-np.exp(np.minimum(-rate * values, 700.0)))
    upper = _laplace_tail(rate, np.maximum(values, 0.0) + 1)
    return np.where(values >= 0, upper, 1 - _laplace_tail(rate, -np.minimum(values, 0.0)))


def _laplace_tail(rate: float, distance: np.ndarray) -> np.ndarray:
    """Return the chance that Laplace noise is at least a distance of 0 or more."""
    return np.exp(-rate * distance) / (1 + math.exp(-rate))


def gaps(cells: Cells) -> Cells:
    """Return what is in none of the cells."""
    ends = [(-math.inf, -math.inf), *sorted(cells), (math.inf, math.inf)]
    pairs = ((before[1] + 1, after[0] - 1) for before, after in itertools.pairwise(ends))
    return tuple((low, high) for low, high in pairs if low <= high and high > -math.inf and low < math.inf)


@dataclass(frozen=True)
class Branch:
    """Some outcomes of a question that are alike: what they cost and what is pending after them.

    Attributes:
        first: their chances on the first dataset, outcome by offset.
        second: their chances on the second.
        hits: what each of them costs.
        pending: what may be revised after them.
    """

    first: np.ndarray
    second: np.ndarray
    hits: int
    pending: tuple[Ask, ...] = ()


@dataclass(frozen=True)
class Ask:
    """Publish a number if it is in the target; a miss remains pending and may be asked again with more targets.

    Attributes:
        moved: by how many steps the unit moves it, 0 to the sensitivity.
        target: what hits.
        sensitivity: Δ.
        block: how many such numbers are asked one after another, until one hits (which is not told).
        revisions: what is added to the target, revision by revision.
        missed: what was asked of it before.
    """

    moved: float
    target: Cells
    sensitivity: int = 1
    block: int = 1
    revisions: tuple[Cells, ...] = ()
    missed: Cells = ()

    def branches(self, mechanism: Mechanism) -> Iterator[Branch]:
        """Yield the miss, then the hits."""
        hits, misses = zip(
            *(self._chances(mechanism, moved) for moved in mechanism.movements(self.moved)), strict=True
        )
        later = ()
        if self.revisions:
            missed, (target, *revisions) = self.missed + self.target, self.revisions
            later = (replace(self, target=target, revisions=tuple(revisions), missed=missed),)
        yield Branch(*misses, 0, later)
        yield Branch(*hits, 1)

    def _chances(self, mechanism: Mechanism, moved: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the chances of the hits and of the miss, given that it was missed before."""
        hits, miss, before = (
            np.array([mechanism.cell(*cell, self.sensitivity, moved) for cell in cells])
            for cells in (self.target, gaps(self.missed + self.target), gaps(self.missed))
        )
        known = np.maximum(before.sum(axis=0), 1e-300)
        hits, miss = hits / known, miss.sum(axis=0) / known
        tries = sum(miss**count for count in range(self.block)) if self.block > 1 else 1.0
        return hits * tries, miss[None, :] ** self.block


@dataclass(frozen=True)
class Top:
    """Publish the k largest numbers of some candidates with their values, by (value, index), each for a hit.

    Attributes:
        candidates: (true number, how the unit moves it) by index.
        most: k.
        low: values below are told only to be below.
        high: and from here on only to be so large.
        sensitivity: Δ of all of them.
        ties: whether all candidates of the top level are published, for one hit: a mistake.
    """

    candidates: tuple[tuple[int, float], ...]
    most: int
    low: int
    high: int
    sensitivity: int = 1
    ties: bool = False

    def branches(self, mechanism: Mechanism) -> Iterator[Branch]:
        """Yield all outcomes."""
        yield Branch(self._chances(mechanism, 0), self._chances(mechanism, 1), 1 if self.ties else self.most)

    def _chances(self, mechanism: Mechanism, place: int) -> np.ndarray:
        """Return the chances of all outcomes on one of the datasets; the last is all that is not told."""

        @functools.cache
        def cell(index: int, low: float, high: float) -> np.ndarray:
            number, moved = self.candidates[index]
            return mechanism.cell(low, high, self.sensitivity, mechanism.movements(moved)[place] + number)

        told = np.array([math.prod(cell(*part) for part in parts) for parts in self._outcomes()])
        return np.concatenate((told, np.clip(1 - told.sum(axis=0), 0.0, 1.0)[None, :]))

    def _outcomes(self) -> Iterator[list[tuple[int, float, float]]]:
        """Yield the outcomes: for each candidate the cell that it is in."""
        indices, levels = range(len(self.candidates)), range(self.high, self.low - 1, -1)

        def at(index: int, level: int) -> tuple[int, float, float]:
            return index, level, math.inf if level == self.high else level

        def below(index: int, level: int) -> tuple[int, float, float]:
            return index, -math.inf, math.inf if level > self.high else level - 1

        if self.ties:
            for level, size in itertools.product(levels, range(1, len(indices) + 1)):
                for tied in itertools.combinations(indices, size):
                    yield [(at if index in tied else below)(index, level) for index in indices]
            return
        for ranking in itertools.permutations(indices, self.most):
            for values in itertools.combinations_with_replacement(levels, self.most):
                places = list(zip((-value for value in values), ranking, strict=True))
                if places == sorted(places):
                    last, least = ranking[-1], values[-1]
                    yield [at(index, level) for index, level in zip(ranking, values, strict=True)] + [
                        below(other, least + (other > last)) for other in indices if other not in ranking
                    ]


Question = Ask | Top


def best_deltas(
    mechanism: Mechanism, menu: Sequence[Question], questions: int, hits: int, epsilons: Sequence[float]
) -> np.ndarray:
    """Return, for each ε', the largest δ of any strategy that asks so many questions of the menu."""
    factors = np.exp(np.asarray(epsilons, dtype=float))
    branches = functools.cache(lambda question: tuple(question.branches(mechanism)))

    def payoff(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, first[..., None] - factors * second[..., None])

    def value(first: np.ndarray, second: np.ndarray, left: int, hits: int, pending: tuple[Ask, ...]) -> np.ndarray:
        """Return the value of every node, of which there is one a row, for each ε'."""
        best = payoff(first.sum(axis=1), second.sum(axis=1))
        for question in (*menu, *pending):
            rest = tuple(other for other in pending if other is not question)
            worth = np.zeros_like(best)
            for branch in branches(question):
                after = hits - branch.hits
                if after < 0:
                    break
                if left == 1 or after == 0:
                    worth += payoff(first @ branch.first.T, second @ branch.second.T).sum(axis=1)
                    continue
                nodes = [
                    (mass[:, None, :] * chances).reshape(-1, len(mechanism.weights))
                    for mass, chances in ((first, branch.first), (second, branch.second))
                ]
                values = value(*nodes, left - 1, after, rest + branch.pending)
                worth += values.reshape(len(best), -1, len(factors)).sum(axis=1)
            else:
                best = np.maximum(best, worth)
        return best

    start = mechanism.weights[None, :]
    return value(start, start, questions, hits, ())[0]


def laplace_delta(above: float, below: float, cells: int, hits: int, epsilon: float, *, from_above: bool) -> float:
    """Return δ' of the game with moves at two rates, by value iteration: B above, A below, and C in either.

    Args:
        above: λ·ε2, where + hits.
        below: (1-λ)·ε2, where - hits; 0 if there is none.
        cells: into how many cells the sum of the rates is divided; each of them must be whole.
        hits: τ.
        epsilon: ε'.
        from_above: whether every doubt is to the adversary's advantage, or to its disadvantage.
    """
    width = (above + below) / cells
    bottom = math.ceil((abs(epsilon) + 45) / width)
    losses = np.arange(-bottom, bottom + 1) * width - epsilon
    payoff = -np.expm1(-np.maximum(losses, 0.0))

    def moved(values: np.ndarray, step: int) -> np.ndarray:
        beyond = (values[0], 1.0) if from_above else (0.0, payoff[-1])
        ghosted = np.pad(values, abs(step), constant_values=((beyond[0], beyond[1]),))
        return ghosted[abs(step) + step : abs(step) + step + len(values)]

    before = payoff
    for _ in range(hits):
        level, previous = (np.ones_like(payoff) if from_above else before), None
        while previous is None or np.abs(level - previous).max() > 1e-15:
            previous, options = level, [before]
            for rate, hits_above in ((above, True), (below, False)):
                if rate:
                    up, down, step = 1 / (1 + math.exp(-rate)), 1 / (1 + math.exp(rate)), round(rate / width)
                    plus, minus = up * moved(before, step), down * moved(before, -step)
                    options.append(plus + minus)
                    options.append(
                        plus + down * moved(level, -step) if hits_above else up * moved(level, step) + minus
                    )
            level = np.max(options, axis=0)
        before = level
    return float(before[bottom])


def gumbel_delta_from_above(above: int, below: int, width: float, hits: int, epsilon: int) -> float:
    """Return a bound of δ' of the game of Gumbel noise: the least function that is straight between nodes.

    Its straight line in any cell must be above the level before at both ends of the cell, moved by a hit. So at a
    node it is worth at least every bet that keeps the mean of y = e^{-L}: a hit for +a or a-d, a miss for -d, a
    hit for -b or -b+d, a miss for +d. Iterated from above.

    Args:
        above: a, what a hit adds where the first dataset is above, in cells.
        below: b, what it takes off where it is below.
        width: d, of a cell.
        hits: τ.
        epsilon: ε' in cells.
    """
    reach = math.ceil(40 / width)
    losses = (np.arange(-reach - epsilon, reach + 1)) * width
    payoff = -np.expm1(-np.maximum(losses, 0.0))
    bets = [(hit, -1) for hit in (above, above - 1)] + [(-hit, 1) for hit in (below, below - 1)]

    def moved(values: np.ndarray, step: int) -> np.ndarray:
        ghosted = np.pad(values, abs(step), constant_values=((values[0], 1.0),))
        return ghosted[abs(step) + step : abs(step) + step + len(values)]

    before = payoff
    for _ in range(hits):
        chances = [
            math.expm1(-miss * width) / (math.exp(-miss * width) - math.exp(-hit * width)) for hit, miss in bets
        ]
        after = [chance * moved(before, hit) for chance, (hit, _) in zip(chances, bets, strict=True)]
        level, previous = np.ones_like(payoff), None
        while previous is None or np.abs(level - previous).max() > 1e-15:
            previous, low, high = level, moved(level, -1), moved(level, 1)
            options = [
                hit + (1 - chance) * (low if miss < 0 else high)
                for hit, chance, (_, miss) in zip(after, chances, bets, strict=True)
            ]
            level = np.max([before, *options], axis=0)
        before = level
    return float(before[reach])


def gumbel_delta_attained(above: float, below: float, width: float, hits: int, epsilon: float) -> float:
    """Return δ' that questions attain under Gumbel noise: each looks at so much that a miss moves the loss by d.

    A hit tells only that it is one. So the loss is i·d + m·(what a hit above adds) + n·(what a hit below adds) for
    whole numbers, nothing is rounded, and the best of above, below and stopping is iterated from below.
    """
    looks = (width / -math.expm1(-above), width / math.expm1(below))
    rises = (looks[0] * math.exp(-above), looks[1] * math.exp(below))
    misses = [math.exp(-look) for look in looks]
    adds = [math.log(math.expm1(-look) / math.expm1(-other)) for look, other in zip(looks, rises, strict=True)]
    reach = math.ceil((12 + epsilon) / width)
    walks = np.arange(-reach, reach + 1) * width - epsilon

    def payoff(first: int, second: int) -> np.ndarray:
        return -np.expm1(-np.maximum(walks + first * adds[0] + second * adds[1], 0.0))

    before = [payoff(first, hits - first) for first in range(hits + 1)]
    for made in reversed(range(hits)):
        levels = []
        for first in range(made + 1):
            floor = payoff(first, made - first)
            after_above, after_below = (1 - misses[0]) * before[first + 1], (1 - misses[1]) * before[first]
            level, previous = floor, None
            while previous is None or np.abs(level - previous).max() > 1e-13:
                previous = level
                fallen, risen = np.concatenate(([0.0], level[:-1])), np.concatenate((level[1:], floor[-1:]))
                options = floor, after_above + misses[0] * fallen, after_below + misses[1] * risen
                level = np.max(options, axis=0)
            levels.append(level)
        before = levels
    return float(before[0][reach])


def misses_delta(query_epsilon: float, hits: int, epsilon: float) -> mpmath.mpf:
    """Return δ' of a session of signs that stops at so many +, by summation: each - takes off what a + adds."""
    rate, factor = mpmath.mpf(query_epsilon), mpmath.exp(mpmath.mpf(epsilon))
    up, down = 1 / (1 + mpmath.exp(-rate)), 1 / (1 + mpmath.exp(rate))
    total = mpmath.mpf(0)
    for misses in range(max(0, math.ceil(hits - epsilon / query_epsilon) + 1)):
        ways = mpmath.binomial(misses + hits - 1, misses)
        total += max(mpmath.mpf(0), ways * (up**hits * down**misses - factor * down**hits * up**misses))
    return total


def points_delta(query_epsilon: float, hits: int, epsilon: float, *, rising: bool) -> mpmath.mpf:
    """Return δ' of looking at Poisson points until so many were seen, by quadrature.

    The time is Γ_τ on the first dataset; on the second points come e^ε times as often (the loss rises while none
    comes), or as seldom.
    """
    rate = mpmath.mpf(query_epsilon) * (1 if rising else -1)
    drift = mpmath.expm1(rate)

    def integrand(time: mpmath.mpf) -> mpmath.mpf:
        loss = drift * time - hits * rate
        density = mpmath.exp(-time + (hits - 1) * mpmath.log(time) - mpmath.loggamma(hits))
        return density * max(mpmath.mpf(0), -mpmath.expm1(epsilon - loss))

    edge = (epsilon + hits * rate) / drift
    if edge <= 0 and not rising:
        return mpmath.mpf(0)
    edge, far = max(edge, mpmath.mpf(0)), hits + 60 + 20 * math.sqrt(hits)
    if rising:
        return mpmath.quad(integrand, mpmath.linspace(edge, edge + far, 24))
    return mpmath.quad(integrand, mpmath.linspace(0, edge, 24))
