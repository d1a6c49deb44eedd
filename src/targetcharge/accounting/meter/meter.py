"""The meter: adds up prices and refuses what the budget cannot cover.

>>> import targetcharge as tc
>>> meter = tc.accounting.Meter.exact(tc.Budget(1.0, 1e-6), query_epsilon=0.01)
>>> price = meter.quote(tc.NotPrior(False), 0.01)
>>> meter.check(price)      # before the data is touched
>>> meter.charge(price)     # after a hit
>>> meter.hits, meter.hits_left, meter.guarantee
(1, 228, Budget(epsilon=1.0, delta=1e-06))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from targetcharge import checks, markup
from targetcharge.accounting.budget import Budget, check_budget
from targetcharge.accounting.meter.at_least import gumbel_tariff, sparse_tariff
from targetcharge.accounting.meter.tariff import Tariff, exact_tariff, renyi_tariff
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import BudgetSpent, InvalidParameter
from targetcharge.numerics.rounding import from_grains, grains_down, grains_up, up

if TYPE_CHECKING:
    from collections.abc import Iterable

    from targetcharge.accounting.meter.price import Price
    from targetcharge.accounting.offsets import OffsetNoise
    from targetcharge.accounting.targets import Target

_PLAIN: Final = NotPrior(prior=False)


@dataclass(frozen=True)
class Odometer:
    """The honest running figure: true at all times at once, also when somebody stops because of it.

    Attributes:
        epsilon: with probability at least 1 - delta the privacy loss so far is at most this.
        delta: the meter's δ plus the δ that computations have spent so far.
        hits: hits so far.
        hits_left: hits of the declared kind that are left.
    """

    epsilon: float
    delta: float
    hits: int
    hits_left: int


@dataclass(frozen=True)
class Totals:
    """What a meter has counted, in whole grains: the state that a ledger keeps.

    Attributes:
        spent: grains charged.
        hits: hits charged.
        delta: the computations' own δ that was spent, in grains of 2^-128.
    """

    spent: int = 0
    hits: int = 0
    delta: int = 0


@final
class Meter:
    """A running total of prices against a capacity, and of the computations' own δ against a reserve.

    What was charged depends on the data, so a guarantee computed from it would be false: `guarantee` is the
    whole budget's, `odometer()` the running figure that may be shown (docs/theory/renyi.md#odometer).

    With a budget for every individual this meter counts what was published, which is public; the capacity is each
    unit's own, and it refuses only what no unit could ever pay.
    """

    def __init__(
        self,
        budget: Budget,
        tariff: Tariff,
        computation_delta: float = 0.0,
        alternatives: int = 1,
        *,
        individual: bool = False,
    ) -> None:
        """Open a meter; use `Meter.exact` or `Meter.renyi`, which choose the tariff.

        Args:
            budget: of the whole session.
            tariff: made for the budget less `computation_delta`, and for this number of alternatives.
            computation_delta: the part of the budget's δ reserved for the computations' own δ.
            alternatives: how many meters, one a target, share the budget (docs/theory/renyi.md#several-targets).
            individual: whether each unit has a meter of its own, with this capacity.
        """
        computation_delta = checks.delta(computation_delta, "computation_delta")
        self._budget = budget
        self._tariff = tariff
        self._hit_delta = budget.delta - _reserved(computation_delta)
        self._alternatives = alternatives
        self._individual = individual
        self._reserve = grains_down(_reserved(computation_delta))
        self._totals = Totals()

    @classmethod
    def exact(
        cls,
        budget: Budget,
        query_epsilon: float,
        targets: Target | Iterable[Target] = _PLAIN,
        *,
        computation_delta: float = 0.0,
        alternatives: int = 1,
        individual: bool = False,
        offset: OffsetNoise | None = None,
        hits: int | None = None,
    ) -> Meter:
        """Return a meter that counts hits of computations with at most this query ε, by exact accounting.

        Args (others as in `__init__`):
            query_epsilon: the largest ε of a computation.
            targets: one or more examples of the targets that may be asked. `NotPrior` stands for tests,
                priors, releases with revisions and top-k selections.
            alternatives: how many meters share the budget: each has a share of δ.
            offset: the laws and rates of the offset that counts carry at λ = ½, if they do.
            hits: how many are known to be covered beside an offset, to be checked only.
        """
        rest = share_of_budget(budget_for_hits(budget, computation_delta), alternatives)
        tariff = exact_tariff(rest, query_epsilon, targets, offset, hits)
        return cls(budget, tariff, computation_delta, alternatives, individual=individual)

    @classmethod
    def renyi(
        cls,
        budget: Budget,
        query_epsilon: float,
        target: Target = _PLAIN,
        *,
        computation_delta: float = 0.0,
        alternatives: int = 1,
        order: float | None = None,
        individual: bool = False,
        offset: OffsetNoise | None = None,
    ) -> Meter:
        """Return a meter that adds up Rényi prices of any mix of computations.

        The order is chosen now, for the most hits of the declared kind; other kinds and other ε are priced at
        that order.

        Args (others as in `__init__`):
            query_epsilon: the ε of a typical computation.
            target: a typical target.
            alternatives: how many meters share the budget: each has ln(alternatives) less, as with a share of δ.
            order: the order to price at, if it was chosen before.
            offset: the laws and rates of the offset that counts carry at λ = ½, if they do.
        """
        rest = share_of_budget(budget_for_hits(budget, computation_delta), alternatives)
        tariff = renyi_tariff(rest, query_epsilon, target, order, offset)
        return cls(budget, tariff, computation_delta, alternatives, individual=individual)

    @classmethod
    def gumbel(cls, budget: Budget, query_epsilon: float) -> Meter:
        """Return a meter that counts each unit's hits of at-least questions with Gumbel noise.

        Args (others as in `__init__`):
            query_epsilon: the largest ε of a computation.
        """
        checks.positive_delta(check_budget(budget).delta)
        return cls(budget, gumbel_tariff(budget, checks.query_epsilon(query_epsilon)), individual=True)

    @classmethod
    def sparse(
        cls, budget: Budget, offset: OffsetNoise, hits: int | None = None, *, computation_delta: float = 0.0
    ) -> Meter:
        """Return a meter that counts hits of at-least questions whose numbers carry a session's offset.

        Args (others as in `__init__`):
            offset: the laws and rates of the offset and of the fresh noise.
            hits: how many to cover; left out, or if they are not covered, as many as are.
        """
        pure = not check_budget(budget).delta and offset.noise == "geometric" and not computation_delta
        rest = budget if pure else budget_for_hits(budget, computation_delta)
        return cls(budget, sparse_tariff(rest, offset, hits), computation_delta)

    @property
    def guarantee(self) -> Budget:
        """Return the (ε, δ) of the whole session, however it ends."""
        return self._budget

    @property
    def tariff(self) -> Tariff:
        """Return how this meter prices."""
        return self._tariff

    @property
    def hits(self) -> int:
        """Return the number of hits charged."""
        return self._totals.hits

    @property
    def totals(self) -> Totals:
        """Return the running totals."""
        return self._totals

    def load(self, totals: Totals) -> None:
        """Take over the totals that a ledger kept."""
        self._totals = totals

    @property
    def individual(self) -> bool:
        """Return whether each unit has a meter of its own."""
        return self._individual

    @property
    def hits_left(self) -> int:
        """Return how many more hits of the declared kind are covered; in all, where each unit has a meter."""
        spent = 0 if self._individual else self._totals.spent
        return max(0, self._tariff.capacity - spent) // self._tariff.typical.grains

    @property
    def delta_left(self) -> float:
        """Return what is left of the δ reserved for computations."""
        return from_grains(self._reserve - self._totals.delta)

    def quote(self, target: Target, epsilon: float, *, carried: bool = False) -> Price:
        """Return the price of one hit of this target for an ε-DP computation; NotAllowed if it has none.

        Args:
            target: the outcomes that cost.
            epsilon: of the computation.
            carried: whether its count carries the session's offset.
        """
        return self._tariff.quote(target, epsilon, carried=carried)

    def check(self, price: Price, count: int = 1, delta: float = 0.0, *, held: int = 0) -> None:
        """Refuse what is not covered: `count` hits at this price and a computation's own δ.

        Args:
            price: of one hit, quoted by this meter.
            count: the most hits there could be.
            delta: the computation's own.
            held: grains that are held back for others.

        Raises:
            BudgetSpent: with what was asked and what is left.
        """
        self._check_hits(price, count, held)
        if delta:
            self.check_delta(delta)

    def charge(self, price: Price, count: int = 1) -> None:
        """Charge hits."""
        self._check_hits(price, count)
        totals = self._totals
        self._totals = Totals(totals.spent + price.grains * count, totals.hits + count, totals.delta)

    def spend_delta(self, delta: float) -> None:
        """Spend a computation's own δ: before it runs, whether it will hit or miss."""
        self.check_delta(delta)
        totals = self._totals
        self._totals = Totals(totals.spent, totals.hits, totals.delta + grains_up(float(delta)))

    def _check_hits(self, price: Price, count: int, held: int = 0) -> None:
        if price.scale != self._tariff.typical.scale or price.grains < 1:
            raise InvalidParameter("price", price, "one quoted by this meter or one just like it")
        if self._individual:
            self._check_each(price)
            return
        left = self._tariff.capacity - self._totals.spent - held
        if price.grains * checks.hits(count, "count") > left:
            asked, rest = price.value * count, price.value * (max(0, left) / price.grains)
            hits = self._tariff.name != "renyi"
            cost = markup.counted(round(asked), "hit") if hits else f"{asked:.4g}"
            over = f"{round(rest):,} {'is' if round(rest) == 1 else 'are'}" if hits else f"{rest:.4g} is"
            over = over if rest else "nothing is"
            sentence = (
                f"this could cost {cost} on the {self._tariff.name} meter and {over} left:"
                f" the budget ({self._budget.epsilon:g}, {self._budget.delta:g}) does not cover it. Ask for less,"
                " or let the owner of the data decide on another budget"
            )
            raise BudgetSpent(sentence, asked=asked, left=rest)

    def _check_each(self, price: Price) -> None:
        """Refuse a hit that not even a fresh unit could pay: nobody would take part."""
        if price.grains > self._tariff.capacity:
            most = price.value * (self._tariff.capacity / price.grains)
            sentence = (
                f"a hit costs a unit {price.value:.4g} on the {self._tariff.name} meter and the budget"
                f" ({self._budget.epsilon:g}, {self._budget.delta:g}) gives each unit {most:.4g} in all: who"
                " contributes in full could never take part. Ask with a smaller epsilon"
            )
            raise BudgetSpent(sentence, asked=price.value, left=most)

    def check_delta(self, delta: float) -> None:
        """Refuse a computation's own δ that is not covered."""
        delta = checks.delta(delta)
        if grains_up(delta) > self._reserve - self._totals.delta:
            left = f"{self.delta_left:g}" if self.delta_left else "nothing"
            sentence = (
                f"this computation spends delta {delta:g} and {left} is left of the"
                " computation_delta reserved when opening: reserve more, or take an algorithm with less"
            )
            raise BudgetSpent(sentence, asked=delta, left=self.delta_left)

    def odometer(self) -> Odometer:
        """Return the running figure: at a fixed order, ε = (Σκ + ln(k/δ))/(a-1) at δ + Σδ_i, by Ville.

        k is the number of alternatives: each of their meters' figures holds, all at once. Where each unit has a
        meter of its own, its loss counts at most what was published, and never more than its capacity.
        """
        spent = min(self._totals.spent, self._tariff.capacity) if self._individual else self._totals.spent
        total = self._tariff.total(spent)
        if self._tariff.order == math.inf:  # a pure guarantee
            return Odometer(total, from_grains(self._totals.delta), self.hits, self.hits_left)
        epsilon = up((total - math.log(self._hit_delta / self._alternatives)) / (self._tariff.order - 1))
        delta = self._hit_delta + from_grains(self._totals.delta)
        return Odometer(epsilon, delta, self.hits, self.hits_left)


def budget_for_hits(budget: Budget, computation_delta: float) -> Budget:
    """Return the budget that is left for hits."""
    checks.positive_delta(check_budget(budget).delta)
    reserve = checks.delta(computation_delta, "computation_delta")
    if reserve and _reserved(reserve) >= budget.delta:
        expected = f"below the budget's delta, {budget.delta!r}"
        raise InvalidParameter("computation_delta", computation_delta, expected)
    return Budget(budget.epsilon, math.nextafter(budget.delta - _reserved(reserve), 0.0)) if reserve else budget


def _reserved(computation_delta: float) -> float:
    """Return what is taken from the hits' δ: a hair more, so that ten times 1e-7 fits into 1e-6."""
    return computation_delta * (1 + 2.0**-40)


def share_of_budget(budget: Budget, alternatives: int) -> Budget:
    """Return one meter's share: δ/k, which for Rényi totals is exactly K - ln k."""
    count = checks.hits(alternatives, "alternatives")
    return budget if count == 1 else Budget(budget.epsilon, math.nextafter(budget.delta / count, 0.0))
