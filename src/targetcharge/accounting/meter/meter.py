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

from targetcharge import checks
from targetcharge.accounting.budget import Budget, check_budget
from targetcharge.accounting.meter.tariff import Price, Tariff, exact_tariff, renyi_tariff
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import BudgetSpent, InvalidParameter
from targetcharge.numerics.rounding import from_grains, grains_down, grains_up, up

if TYPE_CHECKING:
    from collections.abc import Iterable

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


@final
class Meter:
    """A running total of prices against a capacity, and of the computations' own δ against a reserve.

    What was charged depends on the data, so a guarantee computed from it would be false: `guarantee` is the
    whole budget's, `odometer()` the running figure that may be shown (docs/theory.md#odometer).
    """

    def __init__(self, budget: Budget, tariff: Tariff, computation_delta: float = 0.0) -> None:
        """Open a meter; use `Meter.exact` or `Meter.renyi`, which choose the tariff.

        Args:
            budget: of the whole session.
            tariff: made for the budget less `computation_delta`.
            computation_delta: the part of the budget's δ reserved for the computations' own δ.
        """
        self._budget = budget
        self._tariff = tariff
        self._hit_delta = budget.delta - computation_delta
        self._reserve = grains_down(computation_delta)
        self._spent = 0
        self._delta_spent = 0
        self._hits = 0

    @classmethod
    def exact(
        cls,
        budget: Budget,
        query_epsilon: float,
        targets: Target | Iterable[Target] = _PLAIN,
        *,
        computation_delta: float = 0.0,
    ) -> Meter:
        """Return a meter that counts hits of computations with at most this query ε, by exact accounting.

        Args:
            budget: of the whole session.
            query_epsilon: the largest ε of a computation.
            targets: one or more examples of the targets that may be asked. `NotPrior` stands for tests,
                priors, releases with revisions and top-k selections.
            computation_delta: part of the budget's δ reserved for the computations' own δ.
        """
        rest = _less(budget, computation_delta)
        return cls(budget, exact_tariff(rest, query_epsilon, targets), computation_delta)

    @classmethod
    def renyi(
        cls, budget: Budget, query_epsilon: float, target: Target = _PLAIN, *, computation_delta: float = 0.0
    ) -> Meter:
        """Return a meter that adds up Rényi prices of any mix of computations.

        The order is chosen now, for the most hits of the declared kind; other kinds and other ε are priced at
        that order.

        Args:
            budget: of the whole session.
            query_epsilon: the ε of a typical computation.
            target: a typical target.
            computation_delta: part of the budget's δ reserved for the computations' own δ.
        """
        rest = _less(budget, computation_delta)
        return cls(budget, renyi_tariff(rest, query_epsilon, target), computation_delta)

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
        return self._hits

    @property
    def hits_left(self) -> int:
        """Return how many more hits of the declared kind are covered."""
        return (self._tariff.capacity - self._spent) // self._tariff.typical.units

    @property
    def delta_left(self) -> float:
        """Return what is left of the δ reserved for computations."""
        return from_grains(self._reserve - self._delta_spent)

    def quote(self, target: Target, epsilon: float) -> Price:
        """Return the price of one hit of this target for an ε-DP computation; NotAllowed if it has none."""
        return self._tariff.quote(target, epsilon)

    def check(self, price: Price, count: int = 1, delta: float = 0.0) -> None:
        """Refuse what is not covered: `count` hits at this price and a computation's own δ.

        Raises:
            BudgetSpent: with what was asked and what is left.
        """
        self._check_hits(price, count)
        if delta:
            self._check_delta(delta)

    def charge(self, price: Price, count: int = 1) -> None:
        """Charge hits."""
        self._check_hits(price, count)
        self._spent += price.units * count
        self._hits += count

    def spend_delta(self, delta: float) -> None:
        """Spend a computation's own δ: before it runs, whether it will hit or miss."""
        self._check_delta(delta)
        self._delta_spent += grains_up(float(delta))

    def _check_hits(self, price: Price, count: int) -> None:
        if price.scale != self._tariff.typical.scale or price.units < 1:
            raise InvalidParameter("price", price, "one quoted by this meter or one just like it")
        left = self._tariff.capacity - self._spent
        if price.units * checks.hits(count, "count") > left:
            asked, rest = price.value * count, price.value * (left / price.units)
            sentence = (
                f"this could cost {asked:.4g} on the {self._tariff.name} meter and {rest:.4g} is left:"
                f" the budget ({self._budget.epsilon:g}, {self._budget.delta:g}) does not cover it"
            )
            raise BudgetSpent(sentence, asked=asked, left=rest)

    def _check_delta(self, delta: float) -> None:
        delta = checks.delta(delta)
        if grains_up(delta) > self._reserve - self._delta_spent:
            sentence = (
                f"this computation spends delta {delta:g} and {self.delta_left:g} is left of the"
                " computation_delta that was reserved when opening"
            )
            raise BudgetSpent(sentence, asked=delta, left=self.delta_left)

    def odometer(self) -> Odometer:
        """Return the running figure: at a fixed order, ε = (Σκ + ln(1/δ))/(a-1) at δ + Σδ_i, by Ville."""
        total = self._tariff.total(self._spent)
        epsilon = up((total - math.log(self._hit_delta)) / (self._tariff.order - 1))
        delta = self._hit_delta + from_grains(self._delta_spent)
        return Odometer(epsilon, delta, self._hits, self.hits_left)


def _less(budget: Budget, computation_delta: float) -> Budget:
    """Return the budget that is left for hits."""
    checks.positive_delta(check_budget(budget).delta)
    reserve = checks.delta(computation_delta, "computation_delta")
    if reserve and reserve >= budget.delta:
        expected = f"below the budget's delta, {budget.delta!r}"
        raise InvalidParameter("computation_delta", computation_delta, expected)
    return Budget(budget.epsilon, math.nextafter(budget.delta - reserve, 0.0)) if reserve else budget
