"""Tariffs: how a meter prices a hit, and how much it may charge in all.

A tariff is fixed when the session opens and never changes. Prices are whole grains, so that a total is exact
whatever the order of the charges: a grain is one hit for exact accounting, 2^-128 for Rényi accounting.

>>> from targetcharge.accounting.budget import Budget
>>> from targetcharge.accounting.targets import NotPrior
>>> tariff = exact_tariff(Budget(1.0, 1e-6), 0.01, (NotPrior(False),))
>>> tariff.capacity, tariff.quote(NotPrior(0), 0.01).grains
(229, 1)
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Literal

from targetcharge import checks
from targetcharge.accounting import prices
from targetcharge.accounting.curves import MAX_RHO, BoundedRange, Pure
from targetcharge.accounting.exact import exact_epsilon, exact_hits
from targetcharge.accounting.exchange import PaidRates, exact_rates, hits_of
from targetcharge.accounting.meter.at_least import GumbelTariff, SparseTariff
from targetcharge.accounting.meter.price import Price, check_query, no_room, not_covered, too_small
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.renyi import (
    best_order_for_budget,
    renyi_epsilon,
    renyi_hits,
    total_of_budget,
)
from targetcharge.accounting.targets import NOT_PRIOR, Everything, NotPrior, Target
from targetcharge.accounting.targets.plain import costs_in_words, plain
from targetcharge.errors import InvalidParameter, NotAllowed, Setting
from targetcharge.numerics.rounding import down, from_grains, grains_down, grains_up
from targetcharge.numerics.search import largest_real

if TYPE_CHECKING:
    from collections.abc import Iterable

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.curves import Curve
    from targetcharge.accounting.offsets import OffsetNoise
    from targetcharge.accounting.targets import Kind


@dataclass(frozen=True)
class ExactTariff:
    """One grain a hit; as many grains as exact accounting grants for the declared query ε and kind.

    Attributes:
        query_epsilon: the largest ε of a computation.
        kind: of the targets that may be asked.
        capacity: the most grains that may ever be charged.
        order: the Rényi order at which running totals are told.
        typical: the price of a hit of the declared kind.
        offset: that counts carry, if they do.
    """

    query_epsilon: float
    kind: Kind
    capacity: int
    order: float
    typical: Price
    offset: OffsetNoise | None = None
    name: Literal["exact"] = field(default="exact", init=False)
    at_least: Literal[False] = field(default=False, init=False)

    def quote(self, target: Target, epsilon: float, *, carried: bool = False) -> Price:
        """Return one hit, if the question is one that was declared when the session opened; else NotAllowed.

        What is always paid costs as many hits as its curve is worth.
        """
        if isinstance(target, Everything) and not carried:
            return self._always_paid(target.curve or Pure(epsilon))
        epsilon = check_query(target.check_epsilon(epsilon), self.query_epsilon)
        if not self.kind.covers((target.with_offset() if carried else target).kind(epsilon)):
            declare = "declare such a target when opening, or open"
            if self.offset is not None and self.kind.covers(target.with_offset().kind(epsilon)):
                declare = "it was declared of numbers that no unit lowers, and this may fall; open"
            sentence = (
                f"this session's exact meter was not opened to pay for {costs_in_words(plain(target))}"
                f" at epsilon {epsilon:g}:"
                f" {declare} the session with "
            )
            raise NotAllowed(sentence, Setting("meter", "renyi"))
        return self.typical

    def _always_paid(self, curve: Curve) -> Price:
        """Return the hits that pay for a computation whose every outcome is paid for; else NotAllowed."""
        hits = hits_of(curve, self.query_epsilon, self.capacity, self.kind)
        if hits is None:
            whose = "this exact meter"
            raise not_covered(whose, curve, self.paid(self.query_epsilon))
        return Price(hits, float(hits), self.typical.scale)

    def paid(self, epsilon: float) -> PaidRates:
        """Return what one hit pays for where every outcome is paid for; less for an ε below the query ε."""
        return exact_rates(check_query(epsilon, self.query_epsilon), self.kind)

    def total(self, grains: int) -> float:
        """Return charged hits as a total of Rényi prices."""
        return first_move(self.offset, self.order) + grains * self.kind.kappa(self.order, self.query_epsilon)


@dataclass(frozen=True)
class RenyiTariff:
    """The Rényi price of each question at one fixed order; as much as the budget grants at it.

    Attributes:
        capacity: the most grains that may ever be charged.
        order: at which everything is priced and told.
        typical: the price of a hit of the declared kind.
        offset: that counts carry, if they do.
    """

    capacity: int
    order: float
    typical: Price
    offset: OffsetNoise | None = None
    name: Literal["renyi"] = field(default="renyi", init=False)
    at_least: Literal[False] = field(default=False, init=False)

    def quote(self, target: Target, epsilon: float, *, carried: bool = False) -> Price:
        """Return κ at this session's order; NotAllowed if it is infinite."""
        curve = target.curve if isinstance(target, Everything) else None
        epsilon = epsilon if curve is not None else target.check_epsilon(epsilon)
        value = (target.with_offset() if carried else target).kappa(self.order, epsilon)
        if value == math.inf:
            sentence = (
                f"{costs_in_words(plain(target))} at epsilon {epsilon:g} has no finite price on this session's"
                " Rényi meter: ask with a smaller epsilon, or declare the largest when opening"
            )
            raise NotAllowed(sentence)
        return _price(value, self.order)

    def paid(self, epsilon: float) -> PaidRates:
        """Return what the price of a test with this ε pays for where every outcome is paid for."""
        self.quote(NotPrior(None), epsilon)  # refuses an ε without a price
        return _renyi_rates(self.order, epsilon)

    def total(self, grains: int) -> float:
        """Return charged grains as a total of Rényi prices."""
        return first_move(self.offset, self.order) + from_grains(grains)


def first_move(offset: OffsetNoise | None, order: float) -> float:
    """Return the logarithm of the Rényi moment of the offset's first move at λ = ½, from above; 0 without one."""
    return 0.0 if offset is None else prices.q_target(order, offset.offset_epsilon / 2, 1.0)


@lru_cache(maxsize=1024)
def _renyi_rates(order: float, epsilon: float) -> PaidRates:
    """Return the largest ε, range and shift whose moments at an order are at most the price of a test."""
    kappa = down(prices.not_prior(order, epsilon))
    least, most = checks.MIN_QUERY_EPSILON, checks.MAX_QUERY_EPSILON
    pure = largest_real(lambda rate: Pure(rate).moment(order) <= kappa, least, most, 1e-9)
    bounded = largest_real(lambda rate: BoundedRange(rate).moment(order) <= kappa, least, most, 1e-9)
    shift = down(math.sqrt(2 * kappa / (order * (order - 1))))
    return PaidRates(pure, bounded, min(shift, down(math.sqrt(2 * MAX_RHO))))


Tariff = ExactTariff | RenyiTariff | SparseTariff | GumbelTariff


def exact_tariff(
    budget: Budget,
    query_epsilon: float,
    targets: Target | Iterable[Target],
    offset: OffsetNoise | None = None,
    hits: int | None = None,
) -> ExactTariff:
    """Return the exact tariff of a session with this query ε that may ask any of these targets.

    Args:
        budget: of the whole session.
        query_epsilon: the largest ε of a computation.
        targets: examples of what may be asked.
        offset: that counts carry, if they do.
        hits: how many it is known to cover, which is quick to check; only with an offset.
    """
    kind = kind_of_all(query_epsilon, targets, carried=offset is not None)
    return _exact_tariff(budget, query_epsilon, kind, offset, hits)


def kind_of_all(query_epsilon: float, targets: Target | Iterable[Target], *, carried: bool) -> Kind:
    """Return what exact accounting must cover in a session that may ask any of these targets.

    Args:
        query_epsilon: the largest ε of a computation.
        targets: what may be asked.
        carried: whether counts carry an offset.
    """
    members = (targets,) if isinstance(targets, Target) else tuple(targets)
    if not members or not all(isinstance(member, Target) for member in members):
        raise InvalidParameter("targets", targets, "a target or several, such as (tc.NotPrior(False),)")
    for target in members:
        target.check_epsilon(query_epsilon, "query_epsilon")
    asked = [target.with_offset() for target in members] if carried else members
    return reduce(operator.or_, [target.kind(query_epsilon) for target in asked])


@lru_cache(maxsize=64)
def _exact_tariff(
    budget: Budget, query_epsilon: float, kind: Kind, offset: OffsetNoise | None, hits: int | None
) -> ExactTariff:
    """Return the exact tariff of a kind of session; cached, since a service or an audit opens many alike."""
    if offset is None:
        capacity = exact_hits(query_epsilon, budget, kind)
    else:
        if 2 * query_epsilon > checks.MAX_QUERY_EPSILON:
            expected = f"at most {checks.MAX_QUERY_EPSILON / 2:g} with an offset"
            raise InvalidParameter("query_epsilon", query_epsilon, expected)
        coupling = Coupling.half(offset.for_computation(query_epsilon), kind)
        known = hits is not None and coupling.delta(hits, budget.epsilon) <= budget.delta
        capacity = hits if hits is not None and known else coupling.hits(budget)
    if not capacity and offset is not None and exact_hits(query_epsilon, budget, kind):
        raise no_room(budget, offset)
    if not capacity:
        raise too_small(budget, query_epsilon, lambda query: one_exact_hit(kind, query, budget.delta))
    order = best_order_for_budget(kind, query_epsilon, budget)
    return ExactTariff(query_epsilon, kind, capacity, order, Price(1, 1.0, (query_epsilon, kind)), offset)


def one_exact_hit(kind: Kind, query_epsilon: float, delta: float) -> float:
    """Return ε' of a session with one hit: exact where that is quick, a little more by Rényi elsewhere."""
    if kind == NOT_PRIOR:
        return exact_epsilon(query_epsilon, 1, delta)
    return renyi_epsilon(kind, query_epsilon, 1, delta)


def renyi_tariff(
    budget: Budget,
    query_epsilon: float,
    target: Target,
    order: float | None = None,
    offset: OffsetNoise | None = None,
) -> RenyiTariff:
    """Return the Rényi tariff at this order, or at the one that buys the most hits of this target and query ε."""
    if not isinstance(target, Target):
        raise InvalidParameter("target", target, "a target, such as tc.NotPrior(False)")
    plain = NotPrior(prior=False) if isinstance(target, NotPrior) else target  # no price depends on the prior
    return _renyi_tariff(budget, target.check_epsilon(query_epsilon, "query_epsilon"), plain, order, offset)


@lru_cache(maxsize=64)
def _renyi_tariff(
    budget: Budget, query_epsilon: float, target: Target, order: float | None, offset: OffsetNoise | None
) -> RenyiTariff:
    """Return the Rényi tariff; cached as the exact one is. The order is the best one if an offset were free."""
    priced = target if offset is None else target.with_offset()
    if not renyi_hits(priced, query_epsilon, budget):
        raise too_small(budget, query_epsilon, lambda query: renyi_epsilon(priced, query, 1, budget.delta))
    if order is None:
        order = best_order_for_budget(priced, query_epsilon, budget)
    typical = _price(priced.price(order, query_epsilon), order)
    capacity = grains_down(down(total_of_budget(budget, order) - first_move(offset, order)))
    if offset is not None and capacity < typical.grains:
        raise no_room(budget, offset)
    return RenyiTariff(capacity, order, typical, offset)


@lru_cache(maxsize=4096)
def _price(value: float, order: float) -> Price:
    """Return a Rényi price in grains; cached, since a session quotes the same few over and over."""
    return Price(grains_up(value), value, (order,))
