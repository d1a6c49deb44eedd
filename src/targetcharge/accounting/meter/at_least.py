"""Tariffs of meters that take only whether a count that no unit lowers is at least a threshold.

One grain is one hit.

>>> from targetcharge.accounting.budget import Budget
>>> tariff = gumbel_tariff(Budget(3.0, 1e-6), 0.1)
>>> tariff.capacity, tariff.quote(NotPrior(None), 0.1).grains, tariff.paid(0.1)
(23, 1, PaidRates(pure=0.05, bounded_range=0.1, shift=None, spread=Fraction(0, 1)))
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from targetcharge.accounting.curves import BoundedRange, Pure
from targetcharge.accounting.exchange import PaidRates
from targetcharge.accounting.meter.price import Price, check_query, not_covered, too_small
from targetcharge.accounting.offsets import gumbel_epsilon, gumbel_hits, offset_hits
from targetcharge.accounting.offsets.bounds import covers, running_order, running_total
from targetcharge.accounting.offsets.games import GumbelGame
from targetcharge.accounting.renyi import best_order_for_hits
from targetcharge.accounting.targets import Everything, NotPrior, Target
from targetcharge.accounting.targets.plain import costs_in_words, plain
from targetcharge.errors import InvalidParameter, NotAllowed, Setting

if TYPE_CHECKING:
    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.curves import Curve
    from targetcharge.accounting.offsets import OffsetNoise


@dataclass(frozen=True)
class GumbelTariff:
    """One grain a hit of an at-least question with Gumbel noise and no offset: of each unit's own, in closed form.

    Attributes:
        query_epsilon: the largest ε of a computation.
        capacity: the most grains that may ever be charged.
        order: the Rényi order at which running totals are told.
        typical: the price of a hit.
    """

    query_epsilon: float
    capacity: int
    order: float
    typical: Price
    offset: None = field(default=None, init=False)
    name: Literal["exact"] = field(default="exact", init=False)
    at_least: Literal[True] = field(default=True, init=False)

    def quote(self, target: Target, epsilon: float, *, carried: bool = False) -> Price:  # noqa: ARG002 - no offset
        """Return one hit, for an at-least question or one that is always paid; NotAllowed for all others.

        That a question with NotPrior(None) is an at-least question is for the session to check.
        """
        if isinstance(target, Everything):
            curve = target.curve or Pure(epsilon)
            if not _in_range(curve, self.query_epsilon):
                whose = "with a budget for every individual this exact meter"
                raise not_covered(whose, curve, self.paid(self.query_epsilon))
            return self.typical
        if target != NotPrior(None):
            raise self.refusal(costs_in_words(plain(target)))
        check_query(target.check_epsilon(epsilon), self.query_epsilon)
        return self.typical

    def paid(self, epsilon: float) -> PaidRates:
        """Return what one hit pays for where every outcome is paid for: see `SparseTariff.paid`."""
        query = check_query(epsilon, self.query_epsilon)
        return PaidRates(query / 2, query)

    def refusal(self, asked: str, meter: str = "renyi") -> NotAllowed:
        """Return the error of a question that this meter does not take, and which meter does."""
        return _only_at_least("with a budget for every individual the exact meter", asked, meter)

    def total(self, grains: int) -> float:
        """Return charged hits as a total of Rényi prices."""
        return grains * GumbelGame(1, 1).kappa(self.order, self.query_epsilon)


@dataclass(frozen=True)
class SparseTariff:
    """One grain a hit of an at-least question whose number carries the session's offset.

    Attributes:
        offset: the laws and rates of the offset and of the fresh noise.
        capacity: the most grains that may ever be charged.
        order: the Rényi order at which running totals are told; infinite where the guarantee is pure.
        typical: the price of a hit.
    """

    offset: OffsetNoise
    capacity: int
    order: float
    typical: Price
    name: Literal["sparse"] = field(default="sparse", init=False)
    at_least: Literal[True] = field(default=True, init=False)

    def paid(self, epsilon: float) -> PaidRates:
        """Return what one hit pays for where every outcome is paid for.

        In a pure session a computation adds its own ε. Under other noise one hit pays for the range ε2, whatever λ
        is, and a computation with half of that ε has it (docs/theory/exchange.md#gumbel).
        """
        query = check_query(epsilon, self.offset.query_epsilon)
        return PaidRates(query if self.offset.noise == "geometric" else query / 2, query)

    def quote(self, target: Target, epsilon: float, *, carried: bool = False) -> Price:
        """Return one hit, for an at-least question at the session's ε or one that is always paid; else NotAllowed.

        That a question with NotPrior(None) is an at-least question is for the session to check. In a pure session
        what is always paid costs as many hits as its ε is worth.
        """
        if target == NotPrior(None) or (carried and isinstance(target, Everything)):
            check_query(target.check_epsilon(epsilon), self.offset.query_epsilon)
            return self.typical
        if not isinstance(target, Everything):
            raise self.refusal(costs_in_words(plain(target)), "exact" if isinstance(target, NotPrior) else "renyi")
        curve, query = target.curve or Pure(epsilon), self.offset.query_epsilon
        if self.offset.noise == "geometric" and isinstance(curve, Pure | BoundedRange):
            hits = math.ceil(Fraction(curve.epsilon) / Fraction(query))
            return Price(hits, float(hits), self.typical.scale)
        if self.offset.noise == "geometric" or not _in_range(curve, query):
            whose = "this sparse meter"
            raise not_covered(whose, curve, self.paid(query))
        return self.typical

    def refusal(self, asked: str, meter: str = "exact") -> NotAllowed:
        """Return the error of a question that this meter does not take, and which meter does."""
        return _only_at_least("a sparse meter", asked, meter)

    def total(self, grains: int) -> float:
        """Return charged hits as a total of Rényi prices, the offset's first move included; as ε if it is pure."""
        return running_total(self.offset, grains, self.order)


@lru_cache(maxsize=64)
def sparse_tariff(budget: Budget, offset: OffsetNoise, hits: int | None = None) -> SparseTariff:
    """Return the tariff of a session with this offset: for so many hits if they are covered, else for all.

    To check a number of hits takes a fraction of the time that it takes to find the largest.
    """
    rates, laws = (offset.offset_epsilon, offset.query_epsilon), (offset.noise, offset.questions)
    law = offset.offset_noise or None
    capacity = hits
    if hits is None or not covers(offset, budget, hits):
        capacity = offset_hits(*rates, budget, *laws, offset_noise=law)
    if not capacity:
        expected = f"such that ({budget.epsilon:g}, {budget.delta:g}) covers a hit: lower the rates"
        raise InvalidParameter("query_epsilon", offset.query_epsilon, expected)
    order = running_order(offset, capacity, budget.delta)
    return SparseTariff(offset, capacity, order, Price(1, 1.0, (offset,)))


@lru_cache(maxsize=64)
def gumbel_tariff(budget: Budget, query_epsilon: float) -> GumbelTariff:
    """Return the tariff of each unit of a session that asks at-least questions with Gumbel noise."""
    capacity = gumbel_hits(query_epsilon, budget)
    if not capacity:
        raise too_small(budget, query_epsilon, lambda query: gumbel_epsilon(query, 1, budget.delta))
    order = best_order_for_hits(GumbelGame(1, 1), query_epsilon, capacity, budget.delta)
    return GumbelTariff(query_epsilon, capacity, order, Price(1, 1.0, (query_epsilon, "gumbel")))


def _in_range(curve: Curve, query_epsilon: float) -> bool:
    """Return whether log-ratios lie in an interval of the query ε: one hit with Gumbel noise pays for that."""
    match curve:
        case Pure(epsilon):
            return 2 * epsilon <= query_epsilon
        case BoundedRange(epsilon):
            return epsilon <= query_epsilon
        case _:
            return False


def _only_at_least(whose: str, asked: str, meter: str) -> NotAllowed:
    sentence = (
        f"{whose} takes only questions whether a count that no unit lowers is at least a threshold, and"
        f" {asked} is none: open the session with "
    )
    return NotAllowed(sentence, Setting("meter", meter))
