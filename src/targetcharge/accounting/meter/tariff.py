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
from targetcharge.accounting.budget import largest_query_epsilon
from targetcharge.accounting.exact import exact_epsilon, exact_hits
from targetcharge.accounting.offsets import gumbel_epsilon, gumbel_hits, offset_delta, offset_hits
from targetcharge.accounting.offsets.bounds import Coupling, running_order, running_total
from targetcharge.accounting.offsets.games import GumbelGame
from targetcharge.accounting.renyi import (
    best_order_for_budget,
    best_order_for_hits,
    renyi_epsilon,
    renyi_hits,
    total_of_budget,
)
from targetcharge.accounting.targets import NOT_PRIOR, Everything, NotPrior, Target
from targetcharge.errors import InvalidParameter, NotAllowed, Setting
from targetcharge.numerics.rounding import down, from_grains, grains_down, grains_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.offsets import OffsetNoise
    from targetcharge.accounting.targets import Kind


@dataclass(frozen=True)
class Price:
    """What one hit costs.

    Attributes:
        grains: the whole number that the meter counts, at least 1.
        value: for people: 1.0 hit, or κ.
        scale: what a grain is: (query ε, kind) for exact accounting, (order,) for Rényi accounting. A meter
            refuses a price of another scale.
    """

    grains: int
    value: float
    scale: tuple[object, ...]


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
        """Return one hit, if the question is one that was declared when the session opened; else NotAllowed."""
        epsilon = target.check_epsilon(epsilon)
        if epsilon > self.query_epsilon:
            sentence = (
                f"this computation has epsilon {epsilon:g}, above the declared query_epsilon"
                f" {self.query_epsilon:g}: make it more private, or open the session with "
            )
            raise NotAllowed(sentence, Setting("meter", "renyi"))
        if not self.kind.covers((target.with_offset() if carried else target).kind(epsilon)):
            declare = "declare such a target when opening, or open"
            if self.offset is not None and self.kind.covers(target.with_offset().kind(epsilon)):
                declare = "it was declared of numbers that no unit lowers, and this may fall; open"
            sentence = (
                f"this session's exact meter was not opened for {target!r} at epsilon {epsilon:g}:"
                f" {declare} the session with "
            )
            raise NotAllowed(sentence, Setting("meter", "renyi"))
        return self.typical

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
        epsilon = target.check_epsilon(epsilon)
        value = (target.with_offset() if carried else target).kappa(self.order, epsilon)
        if value == math.inf:
            sentence = (
                f"{target!r} at epsilon {epsilon:g} has no finite price at this session's order"
                f" {self.order:.6g}: ask with a smaller epsilon, or declare the largest when opening"
            )
            raise NotAllowed(sentence)
        return _price(value, self.order)

    def total(self, grains: int) -> float:
        """Return charged grains as a total of Rényi prices."""
        return first_move(self.offset, self.order) + from_grains(grains)


def first_move(offset: OffsetNoise | None, order: float) -> float:
    """Return the logarithm of the Rényi moment of the offset's first move at λ = ½, from above; 0 without one."""
    return 0.0 if offset is None else prices.q_target(order, offset.offset_epsilon / 2, 1.0)


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
        """Return one hit, for an at-least question; NotAllowed for all others.

        That a question with NotPrior(None) is an at-least question is for the session to check.
        """
        if target != NotPrior(None):
            raise self.refusal(f"{target!r}")
        if target.check_epsilon(epsilon) > self.query_epsilon:
            sentence = (
                f"this computation has epsilon {epsilon:g}, above the declared query_epsilon"
                f" {self.query_epsilon:g}: make it more private, or open the session with "
            )
            raise NotAllowed(sentence, Setting("meter", "renyi"))
        return self.typical

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

    @property
    def always_paid_epsilon(self) -> float:
        """Return the largest ε of a computation whose every outcome is paid that costs one hit.

        In a pure session it adds its own ε. Under Gumbel noise bounded range ε2 costs a hit at every λ, and a
        computation with half of that ε has it (docs/theory/offsets.md#at-least).
        """
        return self.offset.query_epsilon / (1 if self.offset.noise == "geometric" else 2)

    def quote(self, target: Target, epsilon: float, *, carried: bool = False) -> Price:
        """Return one hit, for an at-least question at the session's ε or one that is always paid; else NotAllowed.

        That a question with NotPrior(None) is an at-least question is for the session to check.
        """
        if target == NotPrior(None) or (carried and isinstance(target, Everything)):
            return self.typical
        if isinstance(target, Everything) and target.check_epsilon(epsilon) <= self.always_paid_epsilon:
            return self.typical
        if isinstance(target, Everything):
            sentence = (
                f"on a sparse meter a computation whose every outcome is paid has epsilon up to"
                f" {self.always_paid_epsilon:.4g}, and this one has {epsilon:g}: make it more private, or open the"
                " session with "
            )
            raise NotAllowed(sentence, Setting("meter", "renyi"))
        raise self.refusal(f"{target!r}", "exact" if isinstance(target, NotPrior) else "renyi")

    def refusal(self, asked: str, meter: str = "exact") -> NotAllowed:
        """Return the error of a question that this meter does not take, and which meter does."""
        return _only_at_least("a sparse meter", asked, meter)

    def total(self, grains: int) -> float:
        """Return charged hits as a total of Rényi prices, the offset's first move included; as ε if it is pure."""
        return running_total(self.offset, grains, self.order)


def _only_at_least(whose: str, asked: str, meter: str) -> NotAllowed:
    sentence = (
        f"{whose} takes only questions whether a count that no unit lowers is at least a threshold, and"
        f" {asked} is none: open the session with "
    )
    return NotAllowed(sentence, Setting("meter", meter))


Tariff = ExactTariff | RenyiTariff | SparseTariff | GumbelTariff


@lru_cache(maxsize=64)
def sparse_tariff(budget: Budget, offset: OffsetNoise, hits: int | None = None) -> SparseTariff:
    """Return the tariff of a session with this offset: for so many hits if they are covered, else for all.

    To check a number of hits takes a fraction of the time that it takes to find the largest.
    """
    rates, laws = (offset.offset_epsilon, offset.query_epsilon), (offset.noise, offset.questions)
    law = offset.offset_noise or None
    capacity = hits
    if hits is None or offset_delta(*rates, hits, budget.epsilon, *laws, offset_noise=law) > budget.delta:
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
        raise _no_room(budget, offset)
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
        raise _no_room(budget, offset)
    return RenyiTariff(capacity, order, typical, offset)


def _no_room(budget: Budget, offset: OffsetNoise) -> InvalidParameter:
    """Return the error of an offset beside which a budget covers no hit, though it does without."""
    expected = f"smaller: beside it ({budget.epsilon:g}, {budget.delta:g}) covers no hit"
    return InvalidParameter("offset_epsilon", offset.offset_epsilon, expected)


@lru_cache(maxsize=4096)
def _price(value: float, order: float) -> Price:
    """Return a Rényi price in grains; cached, since a session quotes the same few over and over."""
    return Price(grains_up(value), value, (order,))


def too_small(
    budget: Budget, query_epsilon: float, one_hit: Callable[[float], float], otherwise: str = ""
) -> InvalidParameter:
    """Return the error of a budget that does not cover one hit, with the query ε that would work.

    Args:
        budget: of the whole session.
        query_epsilon: what was asked for.
        one_hit: the ε' of a session with one hit as a function of the query ε.
        otherwise: what else would work.
    """
    largest = largest_query_epsilon(lambda query: one_hit(query) <= budget.epsilon, query_epsilon)
    if largest is None:
        advice = f"smaller than {checks.MIN_QUERY_EPSILON:g}, which is useless: raise the budget"
    else:
        advice = f"at most {largest:.3g}, or the budget larger"
    cost = f"({one_hit(query_epsilon):.4g}, {budget.delta:g})"
    sentence = f"{advice}: one hit costs {cost} and the budget is ({budget.epsilon:g}, {budget.delta:g})"
    return InvalidParameter("query_epsilon", query_epsilon, sentence + otherwise)
