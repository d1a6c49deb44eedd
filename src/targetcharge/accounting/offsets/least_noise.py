"""The laws and rates with the least noise that a budget and a number of hits allow.

>>> from targetcharge.accounting.budget import Budget
>>> least = least_noise(Budget(1.0, 1e-6), 5)
>>> least.noise, round(least.standard_deviation, 1)
('geometric', 7.8)
>>> least = least_noise(Budget(1.0, 1e-6), 20, "any")
>>> least.noise, least.coupling, round(least.standard_deviation, 1)
('laplace', 0.5, 28.1)
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from targetcharge import checks
from targetcharge.accounting.budget import check_budget
from targetcharge.accounting.exact.certificate import FLOOR
from targetcharge.accounting.offsets.bounds import (
    LARGEST_SHARE,
    Coupling,
    best_coupling,
    offset_hits,
    share_step,
    usual_share,
)
from targetcharge.accounting.offsets.noise import QUESTIONS, SHARES, OffsetNoise
from targetcharge.errors import InvalidParameter, TooLarge
from targetcharge.numerics.search import largest_real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.offsets.noise import OffsetLaw, Questions
    from targetcharge.randomness.laws import Noise

    Array = NDArray[np.float64]

_ORDERS: Final = np.geomspace(1e-3, 1e5, 300)
"""Rényi orders less one."""

_CONSTANTS: Final = _ORDERS * np.log(_ORDERS) - (1 + _ORDERS) * np.log1p(_ORDERS)

_LEAST_RATE: Final = 1e-6
_MOST_CELLS: Final = 1_500_000

_MOST_GEOMETRIC: Final = 60
"""Above so many hits a geometric offset to Gumbel noise is never best."""

_PRECISION: Final = 1e-4


@final
@dataclass(frozen=True)
class LeastNoise:
    """What to draw with, and what it brings.

    Attributes:
        law: the laws and rates of the offset and of the fresh noise.
        coupling: λ of the analysis that covers them.
        standard_deviation: of a number with sensitivity 1, offset included, as it is drawn.
    """

    law: OffsetNoise
    coupling: float
    standard_deviation: float

    @property
    def noise(self) -> Noise:
        """Return the law of the fresh noise."""
        return self.law.noise

    @property
    def offset_noise(self) -> OffsetLaw:
        """Return the law of the offset."""
        return self.law.offset_noise or "laplace"

    @property
    def offset_epsilon(self) -> float:
        """Return ε1, the rate of the offset."""
        return self.law.offset_epsilon

    @property
    def query_epsilon(self) -> float:
        """Return ε2, the rate of the fresh noise."""
        return self.law.query_epsilon

    @property
    def lattice(self) -> int:
        """Return M: both are drawn on multiples of 1/M."""
        return self.law.lattice


def least_noise(budget: Budget, hits: int, questions: Questions = "at least") -> LeastNoise:
    """Return the laws and rates with the least standard deviation of an answer.

    Args:
        budget: of the whole session; with δ = 0 only at-least questions, with geometric noise.
        hits: how many hits it shall buy.
        questions: "any", or "at least" for a session that asks only whether numbers reach thresholds.
    """
    check_budget(budget)
    checks.choice(questions, "questions", QUESTIONS)
    return _least_noise(budget, checks.hits(hits), questions)


@lru_cache(maxsize=256)
def best_offset(budget: Budget, query_epsilon: float, hits: int | None = None) -> OffsetNoise:
    """Return Gumbel noise of rate ε2 for at-least questions, and the offset with the least noise beside it.

    Args:
        budget: of the whole session.
        query_epsilon: ε2, the rate of the fresh noise for a sensitivity of 1.
        hits: how many hits it shall buy; left out, nine tenths of those that it would buy if the offset were free.

    Raises:
        InvalidParameter: if it does not buy so many at any offset.
    """
    checks.positive_delta(check_budget(budget).delta)

    def law(log_offset: float) -> OffsetNoise:
        offset = min(math.exp(log_offset), checks.MAX_QUERY_EPSILON)
        return OffsetNoise(offset, query_epsilon, "gumbel", "at least")

    least, most = math.log(_LEAST_RATE), math.log(checks.MAX_QUERY_EPSILON)
    wanted = hits
    if wanted is None:
        free = law(least)
        wanted = math.ceil(0.9 * offset_hits(free.offset_epsilon, query_epsilon, budget, "gumbel", "at least"))

    shares: set[int] = set()
    if wanted:
        start = usual_share("gumbel", "at least", wanted)
        usual = law(math.log(1.4 * query_epsilon) + 0.21 * math.log(wanted))
        best = best_coupling(usual, start, lambda one: one.delta(wanted, budget.epsilon), _MOST_CELLS)[1].share
        shares = {best, SHARES}  # another rate may have another λ: the one in closed form costs nothing to try

    def affordable(log_offset: float, share: int) -> bool:
        return Coupling(law(log_offset), share, _MOST_CELLS).delta(wanted, budget.epsilon) <= budget.delta

    shares = {share for share in shares if affordable(least, share)}
    if not shares:
        count = f"{wanted} hits are" if wanted else "one hit is"
        expected = f"smaller, or the budget larger: {count} not covered by ({budget.epsilon:g}, {budget.delta:g})"
        raise InvalidParameter("query_epsilon", query_epsilon, expected)
    far = max(
        largest_real(lambda far, share=share: affordable(least + far, share), 0.0, most - least, 2e-4)  # type: ignore[misc]
        for share in shares
    )
    return law(least + far)


@lru_cache(maxsize=256)
def _least_noise(budget: Budget, hits: int, questions: Questions) -> LeastNoise:
    if questions == "any":
        checks.positive_delta(budget.delta)
        candidates = [_split(budget, hits, "laplace", "any", "laplace")]
    else:
        candidates = [_pure(budget, hits)]
        with suppress(TooLarge):  # then geometric noise will do
            if budget.delta and hits <= _MOST_GEOMETRIC:
                candidates.append(_split(budget, hits, "gumbel", "at least", "geometric"))
            if budget.delta:
                candidates.append(_split(budget, hits, "gumbel", "at least", "laplace"))
    affordable = [candidate for candidate in candidates if candidate is not None]
    if not affordable:
        expected = f"fewer, or the budget larger: ({budget.epsilon:g}, {budget.delta:g}) covers them at no rate"
        raise InvalidParameter("hits", hits, expected)
    return min(affordable, key=lambda candidate: candidate.standard_deviation)


def _pure(budget: Budget, hits: int) -> LeastNoise | None:
    """Return geometric noise with the best split, ε1 = τ^{1/3}·ε2, of ε1 + τε2 = ε'."""
    query = min(budget.epsilon * (1 - 1e-12) / (hits + hits ** (1 / 3)), checks.MAX_QUERY_EPSILON)
    if query < _LEAST_RATE:
        return None
    offset = min(hits ** (1 / 3) * query, checks.MAX_QUERY_EPSILON)
    law = OffsetNoise(offset, query, "geometric", "at least")
    return LeastNoise(law, 1.0, law.standard_deviation)


def _split(
    budget: Budget, hits: int, noise: Noise, questions: Questions, offset_noise: OffsetLaw
) -> LeastNoise | None:
    """Return the best split of a budget between the offset and the numbers, for given laws.

    The split and λ are those that are best by Rényi accounting, which is quick and off by about the same for all
    of them; the rates are as large as certified accounting allows.
    """
    rough = _RenyiSearch(budget, hits, noise, questions, offset_noise)
    usual = math.log(1.4) + 0.21 * math.log(hits)
    least = minimize_scalar(
        lambda split: rough.best(split)[0], bounds=(usual - 1.5, usual + 1.5), method="bounded"
    )
    split = float(least.x)
    deviation, share, start = rough.best(split)
    if deviation == math.inf:
        return None
    share = share if share <= LARGEST_SHARE else SHARES
    _, coupling = best_coupling(
        rough.law(split, start), share, lambda coupling: coupling.delta(hits, budget.epsilon), _MOST_CELLS
    )
    law = _largest(rough, split, coupling.share, start)
    return None if law is None else LeastNoise(law, coupling.share / SHARES, law.standard_deviation)


@final
@dataclass(frozen=True)
class _RenyiSearch:
    """The rates that a budget affords with given laws, by Rényi accounting."""

    budget: Budget
    hits: int
    noise: Noise
    questions: Questions
    offset_noise: OffsetLaw

    def law(self, split: float, log_query: float) -> OffsetNoise:
        """Return the laws with the rates ε2 = e^{log_query} and ε1 = e^{split}·ε2."""
        offset = max(_LEAST_RATE, min(checks.MAX_QUERY_EPSILON, math.exp(log_query + split)))
        query = min(checks.MAX_QUERY_EPSILON, math.exp(log_query))
        return OffsetNoise(offset, query, self.noise, self.questions, self.offset_noise)

    def best(self, split: float) -> tuple[float, int, float]:
        """Return the logarithm of the least standard deviation at a split, its λ, and the logarithm of its ε2."""
        step = share_step(self.noise, self.questions)
        best = self._at(split, usual_share(self.noise, self.questions, self.hits))
        for direction in (step, -step) if step else ():
            while (other := self._at(split, best[1] + direction))[0] < best[0]:
                best = other
        return best

    def _at(self, split: float, share: int) -> tuple[float, int, float]:
        """Return the same at a split and one λ."""
        least, most = math.log(_LEAST_RATE), math.log(checks.MAX_QUERY_EPSILON)
        if not SHARES // 2 <= share <= SHARES or not self._affords(split, share, 0.0):
            return math.inf, share, least
        # As a distance from the least rate: a search to a relative precision stays away from 0.
        log_query = least + largest_real(lambda far: self._affords(split, share, far), 0.0, most - least, 1e-6)
        return math.log(self.law(split, log_query).standard_deviation), share, log_query

    def _affords(self, split: float, share: int, far: float) -> bool:
        """Return whether Rényi accounting covers the hits at e^far times the least rate."""
        query = _LEAST_RATE * math.exp(far)
        first = share / SHARES * query * math.exp(split)
        if self.questions == "any":
            rate = np.minimum(_ORDERS * query / 2, 300.0)
            price = -_log1p(-np.expm1(rate) * np.expm1(rate + query / 2))
        else:
            below = query * (1 - share / SHARES)
            price = np.maximum(
                _falling(query * share / SHARES), -_ORDERS * below - _log1p(-_ORDERS * math.expm1(below))
            )
        if self.offset_noise == "laplace":
            first_move = np.logaddexp(
                _ORDERS * first - np.logaddexp(0.0, -first), -_ORDERS * first - np.logaddexp(0.0, first)
            )
            return self._covers(price, first_move)
        return self._covers(price, _ORDERS * first) and self._covers(_falling(query), 0.0)

    def _covers(self, price: Array, first_move: Array | float) -> bool:
        total = self.hits * price + first_move - _ORDERS * self.budget.epsilon + _CONSTANTS
        return bool(total.min() <= math.log(self.budget.delta))


def _falling(rate: float) -> Array:
    """Return the Rényi price of a hit of Gumbel noise where the first dataset is above, by order."""
    return _ORDERS * rate - np.log1p(_ORDERS * -math.expm1(-rate))


def _log1p(values: Array) -> Array:
    """Return ln(1 + value), and minus infinity where there is none."""
    return np.log1p(np.maximum(values, -1 + 1e-300), where=values > -1, out=np.full_like(values, -math.inf))


def _largest(rough: _RenyiSearch, split: float, share: int, start: float) -> OffsetNoise | None:
    """Return the largest rates at a split that certified accounting covers, upwards from Rényi accounting's."""

    def excess(log_query: float) -> float:
        coupling = Coupling(rough.law(split, log_query), share, _MOST_CELLS)
        return math.log(max(coupling.delta(rough.hits, rough.budget.epsilon), FLOOR) / rough.budget.delta)

    good, most = start, math.log(checks.MAX_QUERY_EPSILON)
    while excess(good) > 0:
        good -= 0.2
        if good < math.log(_LEAST_RATE):
            return None
    bad = min(most, good + 0.2)
    while excess(bad) <= 0:
        if bad == most:
            return rough.law(split, most)
        good, bad = bad, min(most, bad + 0.2)
    root = float(brentq(excess, good, bad, xtol=_PRECISION))
    while excess(root) > 0:
        root -= _PRECISION
    return rough.law(split, root)
