"""The guarantee of a session whose numbers carry a secret offset.

The offset has rate ε1, the fresh noise of each number rate ε2. Coupling the offset with a copy λ steps away costs
one first move; then the questions are a game (games.py). Every λ gives a true guarantee: λ belongs to the
analysis, and the best of some is taken. Proofs: docs/theory/offsets.md.

>>> round(offset_epsilon(0.1, 0.1, 20, 1e-6), 3)
1.953
>>> round(offset_epsilon(0.1, 0.1, 20, 1e-6, "gumbel", "at least"), 3)
1.007
>>> round(offset_epsilon(0.1, 0.1, 5, 0.0, "geometric", "at least"), 3)
0.6
>>> round(gumbel_epsilon(0.1, 10, 1e-6), 4)
2.1405
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from scipy.special import betainc

from targetcharge import checks
from targetcharge.accounting import prices
from targetcharge.accounting.budget import Budget, check_budget
from targetcharge.accounting.exact.certificate import FLOOR
from targetcharge.accounting.exact.lattice import Lattice
from targetcharge.accounting.offsets.games import GumbelGame, LaplaceGame
from targetcharge.accounting.offsets.gumbel import falling_delta, gumbel_levels, rising_delta
from targetcharge.accounting.offsets.noise import SHARES, OffsetNoise
from targetcharge.accounting.renyi import best_order_for_hits
from targetcharge.accounting.targets import NOT_PRIOR
from targetcharge.errors import TooLarge
from targetcharge.numerics.rounding import up
from targetcharge.numerics.search import largest_integer, smallest_real

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from targetcharge.accounting.exact.lattice import Level
    from targetcharge.accounting.exact.levels import Game
    from targetcharge.accounting.offsets.noise import OffsetLaw, Questions
    from targetcharge.accounting.targets import Kind
    from targetcharge.randomness.laws import Noise

    Profile = Callable[[float], float]
    """δ' at any ε', also below 0."""

    LatticeOf = Callable[[Kind | Game, float], Lattice]

_CELLS: Final = (300, 150, 100, 50)
"""Into how many cells of loss a query ε is divided for Gumbel noise; the error falls with their square."""

LARGEST_SHARE: Final = 90
"""Of λ below 1, in SHARES: beyond it levels cannot be certified where there are few hits, and λ = 1 is as good."""

MOST_CELLS: Final = 20_000_000
_COARSE: Final = 2_500_000
_MOST_HITS: Final = 2**30
_PRECISION: Final = 1e-9
_BETA_ROUNDING: Final = 1e-11
"""More than what SciPy's incomplete beta function is off by, relatively; tests compare it with mpmath."""


def offset_delta(
    offset_epsilon: float,
    query_epsilon: float,
    hits: int,
    epsilon: float,
    noise: Noise = "laplace",
    questions: Questions = "any",
    *,
    offset_noise: OffsetLaw | None = None,
) -> float:
    """Return the smallest δ' with which a session with an offset is (ε', δ')-DP, certified from above.

    Args:
        offset_epsilon: ε1, the rate of the offset for a sensitivity of 1.
        query_epsilon: ε2, the rate of the fresh noise of each number for a sensitivity of 1.
        hits: the number of hits after which the session stops.
        epsilon: ε' of the whole session, at least 0.
        noise: the law of the fresh noise; only "laplace" for any question.
        questions: "any", or "at least" for a session that asks only whether numbers reach thresholds.
        offset_noise: the law of the offset; left out, that of the noise, or "laplace" with Gumbel noise.
    """
    session = OffsetNoise(offset_epsilon, query_epsilon, noise, questions, offset_noise or "")
    return _delta(session, checks.hits(hits), checks.epsilon_or_zero(epsilon))


def offset_epsilon(
    offset_epsilon: float,
    query_epsilon: float,
    hits: int,
    delta: float,
    noise: Noise = "laplace",
    questions: Questions = "any",
    *,
    offset_noise: OffsetLaw | None = None,
) -> float:
    """Return the smallest ε' with which a session with an offset is (ε', δ')-DP, certified from above.

    Args (others as in `offset_delta`):
        delta: δ' of the whole session; above 0 unless the noise is geometric, whose guarantee is pure.
    """
    session = OffsetNoise(offset_epsilon, query_epsilon, noise, questions, offset_noise or "")
    hits = checks.hits(hits)
    delta = checks.delta(delta) if noise == "geometric" else checks.positive_delta(delta)
    start = usual_share(noise, questions, hits)
    return best_coupling(session, start, lambda coupling: coupling.epsilon(hits, delta))[0]


def offset_hits(
    offset_epsilon: float,
    query_epsilon: float,
    budget: Budget,
    noise: Noise = "laplace",
    questions: Questions = "any",
    *,
    offset_noise: OffsetLaw | None = None,
) -> int:
    """Return how many hits a budget buys in a session with an offset; arguments as in `offset_delta`."""
    session = OffsetNoise(offset_epsilon, query_epsilon, noise, questions, offset_noise or "")
    if noise != "geometric":
        checks.positive_delta(check_budget(budget).delta)
    about = Coupling(session, usual_share(noise, questions, 30)).hits(check_budget(budget))
    start = usual_share(noise, questions, max(1, about))
    hits = int(-best_coupling(session, start, lambda coupling: -coupling.hits(budget))[0])
    if hits >= _MOST_HITS:
        raise TooLarge("query_epsilon", query_epsilon, "larger, or the budget smaller: it buys too many to count")
    while _delta(session, hits + 1, budget.epsilon) <= budget.delta:  # on a lattice that was made for so many
        hits += 1
    return hits


def _delta(session: OffsetNoise, hits: int, epsilon: float, most_cells: int = MOST_CELLS) -> float:
    start = usual_share(session.noise, session.questions, hits)
    return best_coupling(session, start, lambda coupling: coupling.delta(hits, epsilon), most_cells)[0]


def covers(session: OffsetNoise, budget: Budget, hits: int) -> bool:
    """Return whether a budget covers so many hits: by a coarse lattice if that will do, in a tenth of the time."""
    return any(_delta(session, hits, budget.epsilon, cells) <= budget.delta for cells in (_COARSE, MOST_CELLS))


def gumbel_delta(query_epsilon: float, hits: int, epsilon: float) -> float:
    """Return δ' of at-least questions with Gumbel noise and no offset, from above; see `gumbel_epsilon`."""
    query_epsilon, hits = checks.query_epsilon(query_epsilon), checks.hits(hits)
    epsilon = checks.epsilon_or_zero(epsilon)
    return max(falling_delta(query_epsilon, hits, epsilon), rising_delta(query_epsilon, hits, epsilon))


def gumbel_epsilon(query_epsilon: float, hits: int, delta: float) -> float:
    """Return ε' of at-least questions with Gumbel noise and no offset, from above: in closed form, and attained.

    With a budget for every individual it is the guarantee of each, for the hits that it contributes to.

    Args:
        query_epsilon: the rate of the noise for a sensitivity of 1.
        hits: the number of hits after which the session, or the unit, stops.
        delta: δ' of the whole session.
    """
    query_epsilon, hits, delta = (
        checks.query_epsilon(query_epsilon),
        checks.hits(hits),
        checks.positive_delta(delta),
    )
    return _smallest_epsilon(lambda epsilon: gumbel_delta(query_epsilon, hits, epsilon), delta)


def gumbel_hits(query_epsilon: float, budget: Budget) -> int:
    """Return how many hits a budget buys for at-least questions with Gumbel noise and no offset."""
    checks.positive_delta(check_budget(budget).delta)
    return largest_integer(
        lambda hits: gumbel_delta(query_epsilon, hits, budget.epsilon) <= budget.delta, _MOST_HITS
    )


def running_total(session: OffsetNoise, hits: int, order: float) -> float:
    """Return the logarithm of the Rényi moment of an at-least session with so many hits so far, from above.

    It is analysed at λ = 0.6, which is about the best; a geometric offset has one direction at λ = 1. The
    guarantee of geometric noise is pure: there it is the ε so far.
    """
    if session.noise == "geometric":
        return session.offset_epsilon + hits * session.query_epsilon
    first, price = 0.6 * session.offset_epsilon, _running_game(session).kappa(order, session.query_epsilon / 5)
    if session.offset_noise == "laplace":
        return up(prices.q_target(order, first, 1.0) + hits * price)
    exponent, query = order - 1, session.query_epsilon
    falling = exponent * query - math.log1p(exponent * -math.expm1(-query))
    return up(max(exponent * first + hits * price, hits * falling))


def running_order(session: OffsetNoise, hits: int, delta: float) -> float:
    """Return the order at which so many hits have the smallest running figure; infinite for geometric noise."""
    if session.noise == "geometric":
        return math.inf
    return best_order_for_hits(_running_game(session), session.query_epsilon / 5, hits, delta)


def _running_game(session: OffsetNoise) -> Game:
    return GumbelGame(3, 2) if session.noise == "gumbel" else LaplaceGame(3, 2)


def best_coupling(
    session: OffsetNoise, start: int, cost: Callable[[Coupling], float], most_cells: int = MOST_CELLS
) -> tuple[float, Coupling]:
    """Return the least cost of a coupling that was tried, and it: downhill from a λ in SHARES."""
    costs: dict[int, float] = {}

    def at(share: int) -> float:
        if share not in costs:
            allowed = share == start or (step and SHARES // 2 <= share <= SHARES)
            costs[share] = cost(Coupling(session, share, most_cells)) if allowed else math.inf
        return costs[share]

    step, share = share_step(session.noise, session.questions), start
    for direction in (step, -step):
        while at(share + direction) < at(share):
            share += direction
    if step and at(SHARES) < at(share):  # in closed form
        share = SHARES
    return at(share), Coupling(session, share, most_cells)


def share_step(noise: Noise, questions: Questions) -> int:
    """Return in which steps λ is chosen, in SHARES; 0 where only one will do."""
    return 0 if questions == "any" or noise == "geometric" else 5 if noise == "laplace" else 2


def usual_share(noise: Noise, questions: Questions, hits: int) -> int:
    """Return about the best λ, in SHARES: ½ for any question, 1 for a pure guarantee, else 0.5 + 0.7/√hits."""
    if questions == "any":
        return SHARES // 2
    if noise == "geometric":
        return SHARES
    step = share_step(noise, questions)
    return min(LARGEST_SHARE, step * round(SHARES * (0.5 + 0.7 / math.sqrt(hits)) / step))


@final
@dataclass(frozen=True)
class Coupling:
    """One analysis of a session: the offset is coupled with a copy λ steps away.

    Attributes:
        session: its laws and rates.
        share: λ in SHARES, at least one half.
        most_cells: how many cells a Gumbel lattice may have in all levels, if a coarser one will do.
        kind: of the targets, where any question may be asked.
    """

    session: OffsetNoise
    share: int
    most_cells: int = MOST_CELLS
    kind: Kind = NOT_PRIOR

    @classmethod
    def half(cls, session: OffsetNoise, kind: Kind) -> Coupling:
        """Return the coupling at λ = ½ of a session that may ask any question with targets of a kind."""
        return cls(session, SHARES // 2, kind=kind)

    @property
    def first(self) -> float:
        """Return the rate of the first move: λε1, which is the larger of the two directions'."""
        return up(self.share / SHARES * self.session.offset_epsilon)

    def delta(self, hits: int, epsilon: float) -> float:
        """Return δ' at ε'."""
        return self.after_first_move(hits, self.questions(hits, epsilon))(epsilon)

    def epsilon(self, hits: int, delta: float) -> float:
        """Return ε' at δ'."""
        whole = self._whole(hits, lambda game, cell: Lattice.for_hits(game, cell, hits, delta))
        return _smallest_epsilon(whole, delta)

    def hits(self, budget: Budget) -> int:
        """Return how many hits a budget buys."""

        def covers(hits: int, profile: Profile) -> bool:
            return self.after_first_move(hits, profile)(budget.epsilon) <= budget.delta

        if self.share == SHARES:
            return largest_integer(lambda hits: covers(hits, self._closed(hits)), _MOST_HITS)
        wide = Budget(budget.epsilon + self.first, budget.delta)
        for level in self._levels(None, lambda game, cell: Lattice.for_budget(game, cell, wide)):
            if not covers(level.hits, level.delta_at):
                return level.hits - 1
        expected = "larger, or the budget smaller: it buys more hits than can be counted"
        raise TooLarge("query_epsilon", self.session.query_epsilon, expected)

    def questions(self, hits: int, epsilon: float) -> Profile:
        """Return the profile of the questions alone, down to where a first move leads from ε'."""
        reach = epsilon + self.first
        return self._questions(hits, lambda game, cell: Lattice.for_epsilon(game, cell, hits, reach))

    def _whole(self, hits: int, lattice_of: LatticeOf) -> Profile:
        """Return the profile of the whole session."""
        return self.after_first_move(hits, self._questions(hits, lattice_of))

    def _questions(self, hits: int, lattice_of: LatticeOf) -> Profile:
        if self.share == SHARES:
            return self._closed(hits)
        for level in self._levels(hits, lattice_of):
            last = level
        return last.delta_at

    def _closed(self, hits: int) -> Profile:
        """Return the profile of the questions at λ = 1, where always letting the loss fall is the best game."""
        query, noise = self.session.query_epsilon, self.session.noise
        if noise == "gumbel":
            return lambda epsilon: falling_delta(query, hits, epsilon)
        if noise == "laplace":
            return lambda epsilon: _one_sided_delta(query, hits, epsilon)
        pure = self.session.offset_epsilon + hits * query  # rounded to nearest, as plain composition is
        return lambda epsilon: max(0.0, -math.expm1(min(0.0, epsilon - pure)))

    def _levels(self, hits: int | None, lattice_of: LatticeOf) -> Iterator[Level]:
        """Return the certified levels of the questions' game, for so many hits or as many as can be counted."""
        query, above, below = self.session.query_epsilon, self.share, SHARES - self.share
        common = math.gcd(above, below)
        if self.session.noise == "gumbel":
            for cells in _CELLS:
                finer = max(1, cells * common // SHARES)
                gumbel = GumbelGame(finer * above // common, finer * below // common)
                lattice = self._deepened(lattice_of(gumbel, query * common / (finer * SHARES)))
                if lattice.width * (hits or lattice.charge / lattice.price) <= self.most_cells:
                    break
            return gumbel_levels(lattice, hits or max(1, lattice.most_hits))
        if self.session.questions == "any":
            lattice = self._deepened(lattice_of(self.kind, query / 2))
        else:
            laplace = LaplaceGame(above // common, below // common)
            lattice = self._deepened(lattice_of(laplace, query * common / SHARES))
        return lattice.levels(hits or max(1, lattice.most_hits))

    def _deepened(self, lattice: Lattice) -> Lattice:
        """Return a lattice that also reaches where a first move leads."""
        return replace(lattice, depth=lattice.depth + math.ceil(2 * self.first / lattice.epsilon))

    def after_first_move(self, hits: int, questions: Profile) -> Profile:
        """Return the profile of the whole session from that of its questions.

        The first move is randomised response at λε1 for a Laplace offset. For a geometric one it is the constant
        loss λε1 in one direction; the other is analysed at λ = 1, where it has none.
        """
        first, query = self.first, self.session.query_epsilon
        if self.session.noise == "geometric":  # whose offset is paid with its questions
            return questions
        if self.session.offset_noise == "geometric":
            return lambda epsilon: max(questions(epsilon - first), falling_delta(query, hits, epsilon))
        higher, lower = 1 / (1 + math.exp(-first)), 1 / (1 + math.exp(first))
        return lambda epsilon: up(higher * questions(epsilon - first) + lower * questions(epsilon + first))


def _one_sided_delta(query_epsilon: float, hits: int, epsilon: float) -> float:
    """Return δ' of at-least questions under Laplace noise at λ = 1, from above.

    The loss of τ hits after n misses is (τ-n)ε, n being negative binomial: with x = e^ε/(1+e^ε) the hits'
    probability, δ' = Pr[NB(τ, x) ≤ n*] - e^{ε'}·Pr[NB(τ, 1-x) ≤ n*] for n* = ⌈τ - ε'/ε⌉ - 1.
    """
    most = math.ceil(hits - epsilon / query_epsilon) - 1
    if most < 0:
        return 0.0
    higher, lower = 1 / (1 + math.exp(-query_epsilon)), 1 / (1 + math.exp(query_epsilon))
    likely = float(betainc(hits, most + 1, higher))
    other = math.exp(min(epsilon, 700.0)) * float(betainc(hits, most + 1, lower))
    return min(1.0, max(0.0, likely - other) + _BETA_ROUNDING * (likely + other) + FLOOR)


def _smallest_epsilon(profile: Profile, delta: float) -> float:
    """Return the smallest ε' at which a profile is at most δ, from above."""
    most = 1.0
    while profile(most) > delta and most < checks.MAX_EPSILON:
        most *= 2
    return smallest_real(lambda epsilon: profile(epsilon) <= delta, 0.0, most, _PRECISION)
