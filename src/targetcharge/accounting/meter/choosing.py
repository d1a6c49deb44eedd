"""Choosing rates: the query ε for a wanted number of hits, and the offset that counts may carry beside it.

With an offset at λ = ½ the count of an ε-DP computation is drawn with noise of rate 2ε: half the noise, and the
offset's own, at the price of one first move (docs/theory/offsets.md#any-question). Beside a given query ε the rate
of the offset is as large as can be for at most a tenth of the hits.

>>> from targetcharge.accounting.budget import Budget
>>> plain = ExactSession(Budget(1.0, 1e-6))
>>> round(rates(plain, hits=20, offset=True).standard_deviation, 1)
28.1
>>> round(rates(plain, query_epsilon=0.01, offset=True).standard_deviation), round(math.sqrt(2) / 0.01)
(71, 141)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

from targetcharge import checks
from targetcharge.accounting import prices
from targetcharge.accounting.budget import largest_query_epsilon
from targetcharge.accounting.exact import exact_delta
from targetcharge.accounting.meter.at_least import gumbel_tariff
from targetcharge.accounting.meter.tariff import exact_tariff, kind_of_all, renyi_tariff
from targetcharge.accounting.offsets import OffsetNoise, gumbel_delta, least_noise
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.renyi import (
    best_order_for_budget,
    best_order_for_epsilon,
    log_delta_of_total,
    renyi_hits,
    total_of_budget,
)
from targetcharge.accounting.targets import NOT_PRIOR, NotPrior
from targetcharge.errors import InvalidParameter, Parameter, TooLarge
from targetcharge.numerics.search import largest_integer, largest_real
from targetcharge.randomness.laws import LaplaceLaw

if TYPE_CHECKING:
    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.targets import Kind, Target

LARGEST_WITH_OFFSET: Final = checks.MAX_QUERY_EPSILON / 2
"""Of a query ε: counts are drawn with twice that rate."""

_LEAST_RATE: Final = 1e-6
_MOST_OFFSET: Final = 20
"""Times the query ε: a larger rate of the offset changes nothing any more."""

_PRECISION: Final = 1e-4
_PLAIN: Final = NotPrior(prior=False)


@final
@dataclass(frozen=True)
class Rates:
    """What the computations of a session are drawn with.

    Attributes:
        query_epsilon: the ε of one computation.
        offset: the laws and rates of the offset that counts carry; None without one.
        hits: how many are covered beside the offset; None if nobody has said so.
    """

    query_epsilon: float
    offset: OffsetNoise | None = None
    hits: int | None = None

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of a count with sensitivity 1 and Laplace noise, offset included."""
        if self.offset is not None:
            return self.offset.for_computation(self.query_epsilon).standard_deviation
        return math.sqrt(LaplaceLaw(self.query_epsilon).variance)


class SessionToOpen(Protocol):
    """A budget, and how hits are accounted for."""

    @property
    def budget(self) -> Budget:
        """Return the budget that is left for hits."""
        ...

    def hits(self, query_epsilon: float, *, carried: bool = False) -> int:
        """Return how many hits it covers if an offset that counts carry, or do not, were free; at least one.

        Raises:
            InvalidParameter: if it covers none.
        """
        ...

    def affords(self, query_epsilon: float, hits: int, offset_epsilon: float) -> bool:
        """Return whether it covers so many beside an offset with this rate, or without one if that is 0."""
        ...

    def largest_offset(self, query_epsilon: float, hits: int, most: float) -> float:
        """Return about the largest rate up to `most` of an offset beside which it covers so many; 0 for none."""
        ...


def rates(
    session: SessionToOpen, *, query_epsilon: float | None = None, hits: int | None = None, offset: bool = False
) -> Rates:
    """Return what a session draws with; give the query ε, the hits, or both.

    Args:
        session: what it is opened for.
        query_epsilon: the ε of one computation; left out, the one with the least noise for the hits.
        hits: how many to cover; left out, at least nine tenths of what the query ε buys.
        offset: whether counts may carry an offset; they do if that is less noise.

    Raises:
        InvalidParameter: if the budget does not cover that.
    """
    if query_epsilon is None:
        if hits is None:
            instead = Parameter("query_epsilon")
            raise InvalidParameter("hits", None, "given for a new ledger; ", instead, " may be given instead")
        try:
            return _for_hits(session, hits, offset=offset)
        except TooLarge:
            expected = "fewer, or the budget larger: so many cannot be computed"
            raise InvalidParameter("hits", hits, expected) from None
    offset = offset and query_epsilon <= LARGEST_WITH_OFFSET
    covered = session.hits(query_epsilon, carried=offset)
    if hits is not None and hits > covered:
        instead = Parameter("query_epsilon")
        expected = f"at most {covered:,} at query ε {query_epsilon:g}: give fewer, or leave "
        raise InvalidParameter("hits", hits, expected, instead, " out")
    wanted = covered - covered // 10 if hits is None else hits
    if offset:
        most = min(checks.MAX_QUERY_EPSILON, _MOST_OFFSET * query_epsilon, session.budget.epsilon)
        largest = session.largest_offset(query_epsilon, wanted, most)
        while largest > _LEAST_RATE and not session.affords(query_epsilon, wanted, largest):
            largest *= 1 - _PRECISION
        offset_noise = OffsetNoise(max(largest, _LEAST_RATE), 2 * query_epsilon)
        carried = Rates(query_epsilon, offset_noise, wanted)
        if largest > _LEAST_RATE and carried.standard_deviation < Rates(query_epsilon).standard_deviation:
            if hits is not None or largest < most:
                return carried
            more = largest_integer(
                lambda more: session.affords(query_epsilon, wanted + more, largest), covered - wanted
            )
            return Rates(query_epsilon, offset_noise, wanted + more)
    return Rates(query_epsilon, None, hits)


def _for_hits(session: SessionToOpen, hits: int, *, offset: bool) -> Rates:
    """Return the rates with the least noise for so many hits.

    The split between offset and fresh noise is the best one of exact accounting, which is about the best of all.
    """
    split = 0.0
    if offset:
        law = least_noise(session.budget, hits, "any").law
        split = 2 * law.offset_epsilon / law.query_epsilon
        if isinstance(session, ExactSession) and session.kind(law.query_epsilon / 2, carried=True) == NOT_PRIOR:
            return Rates(law.query_epsilon / 2, law, hits)

    def affordable(query: float) -> bool:
        return session.affords(query, hits, min(checks.MAX_QUERY_EPSILON, split * query))

    query = largest_query_epsilon(affordable, LARGEST_WITH_OFFSET if offset else checks.MAX_QUERY_EPSILON)
    if query is None:
        budget = session.budget
        expected = f"fewer, or the budget larger: ({budget.epsilon:g}, {budget.delta:g}) covers them at no query ε"
        raise InvalidParameter("hits", hits, expected)
    rate = min(checks.MAX_QUERY_EPSILON, split * query)
    return Rates(query, OffsetNoise(rate, 2 * query) if offset else None, hits)


@final
@dataclass(frozen=True)
class ExactSession:
    """A session with an exact meter.

    Attributes:
        budget: that is left for hits.
        targets: examples of what may be asked.
    """

    budget: Budget
    targets: tuple[Target, ...] = (_PLAIN,)

    def kind(self, query_epsilon: float, *, carried: bool) -> Kind:
        """Return what accounting must cover, where counts carry an offset or do not."""
        return kind_of_all(query_epsilon, self.targets, carried=carried)

    def hits(self, query_epsilon: float, *, carried: bool = False) -> int:
        """Return how many hits the budget buys if an offset were free."""
        targets = tuple(target.with_offset() for target in self.targets) if carried else self.targets
        return exact_tariff(self.budget, query_epsilon, targets).capacity

    def affords(self, query_epsilon: float, hits: int, offset_epsilon: float) -> bool:
        """Return whether δ' of so many is at most δ: by Rényi accounting, which is quick, or else exactly."""
        if any(query_epsilon > target.max_epsilon for target in self.targets):
            return False
        kind = self.kind(query_epsilon, carried=offset_epsilon > 0)
        order = best_order_for_epsilon(kind, query_epsilon, hits, self.budget.epsilon)
        total = hits * kind.kappa(order, query_epsilon) + prices.q_target(order, offset_epsilon / 2, 1.0)
        if log_delta_of_total(total, order, self.budget.epsilon) <= math.log(self.budget.delta):
            return True
        if not offset_epsilon:
            disagreement = kind.disagreement
            delta = exact_delta(query_epsilon, hits, self.budget.epsilon, kind.q, disagreement=disagreement)
            return delta <= self.budget.delta
        coupling = Coupling.half(OffsetNoise(offset_epsilon, 2 * query_epsilon), kind)
        return coupling.delta(hits, self.budget.epsilon) <= self.budget.delta

    def largest_offset(self, query_epsilon: float, hits: int, most: float) -> float:
        """Return the largest rate by one run of the lattice: only the first move depends on it."""
        kind = self.kind(query_epsilon, carried=True)
        epsilon, delta = self.budget.epsilon, self.budget.delta
        questions = Coupling.half(OffsetNoise(most, 2 * query_epsilon), kind).questions(hits, epsilon)

        def covers(rate: float) -> bool:
            coupling = Coupling.half(OffsetNoise(rate, 2 * query_epsilon), kind)
            return coupling.after_first_move(hits, questions)(epsilon) <= delta

        return largest_real(covers, _LEAST_RATE, most, _PRECISION) if covers(_LEAST_RATE) else 0.0


@final
@dataclass(frozen=True)
class RenyiSession:
    """A session with a Rényi meter.

    Attributes:
        budget: that is left for hits.
        target: a typical one.
    """

    budget: Budget
    target: Target = _PLAIN

    def hits(self, query_epsilon: float, *, carried: bool = False) -> int:
        """Return how many hits the budget buys if an offset were free."""
        tariff = renyi_tariff(self.budget, query_epsilon, self.target.with_offset() if carried else self.target)
        return tariff.capacity // tariff.typical.grains

    def affords(self, query_epsilon: float, hits: int, offset_epsilon: float) -> bool:
        """Return whether the capacity covers so many, at the order that is best if the offset were free."""
        priced = self.target.with_offset() if offset_epsilon else self.target
        if query_epsilon > priced.max_epsilon or not renyi_hits(priced, query_epsilon, self.budget):
            return False
        order, room = self._room(priced, query_epsilon, hits)
        return prices.q_target(order, offset_epsilon / 2, 1.0) <= room

    def largest_offset(self, query_epsilon: float, hits: int, most: float) -> float:
        """Return the largest rate whose first move fits into what so many hits leave."""
        order, room = self._room(self.target.with_offset(), query_epsilon, hits)

        def covers(rate: float) -> bool:
            return prices.q_target(order, rate / 2, 1.0) <= room

        return largest_real(covers, _LEAST_RATE, most, _PRECISION) if covers(_LEAST_RATE) else 0.0

    def _room(self, priced: Target, query_epsilon: float, hits: int) -> tuple[float, float]:
        """Return the order, and what so many hits leave of the budget at it, a little less."""
        order = best_order_for_budget(priced, query_epsilon, self.budget)
        total = total_of_budget(self.budget, order)
        return order, total - hits * priced.kappa(order, query_epsilon) - 1e-12 * abs(total)


@final
@dataclass(frozen=True)
class GumbelSession:
    """A session where every unit has an exact meter of its own, for at-least questions. It has no offset.

    Attributes:
        budget: of each unit.
    """

    budget: Budget

    def hits(self, query_epsilon: float, *, carried: bool = False) -> int:  # noqa: ARG002 - it has no offset
        """Return how many hits the budget buys."""
        return gumbel_tariff(self.budget, query_epsilon).capacity

    def affords(self, query_epsilon: float, hits: int, offset_epsilon: float) -> bool:
        """Return whether δ' of so many is at most δ, without an offset."""
        return not offset_epsilon and gumbel_delta(query_epsilon, hits, self.budget.epsilon) <= self.budget.delta

    def largest_offset(self, query_epsilon: float, hits: int, most: float) -> float:  # noqa: ARG002 - it has none
        """Return 0: the coupling would move units in questions that they do not contribute to."""
        return 0.0
