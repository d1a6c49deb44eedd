"""Every way to account for a session, under one interface: the rows of a plan and the lines of its picture.

>>> from targetcharge.accounting.targets import Boundary
>>> [accounting.name for accounting in catalogue(Boundary())][-2:]
['paper, exact tail', 'Rényi']
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from targetcharge.accounting.affordable import largest_query_epsilon
from targetcharge.accounting.baselines import (
    between_thresholds_epsilon,
    between_thresholds_gap,
    sparse_vector_epsilon,
)
from targetcharge.accounting.composition import advanced_epsilon, basic_epsilon, optimal_epsilon, optimal_hits
from targetcharge.accounting.exact import exact_epsilon, exact_hits
from targetcharge.accounting.paper import Tail, paper_epsilon
from targetcharge.accounting.renyi import renyi_epsilon, renyi_hits
from targetcharge.accounting.targets import Between, Boundary, Everything, NotPrior, Target
from targetcharge.checks import MAX_QUERY_EPSILON
from targetcharge.numerics.search import largest_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.budget import Budget

    EpsilonOf = Callable[[float, int, float], float]
    HitsOf = Callable[[float, Budget], int]

EVERY_QUESTION: Final = "every question"
HITS: Final = "hits"
SPARSE_VECTOR: Final = "classic sparse vector"

_MOST_SEARCHED = 1_000_000


@dataclass(frozen=True)
class Accounting:
    """One way to account for a session.

    Attributes:
        name: as tables show it.
        pays_for: what is counted: every question asked, or hits only.
        epsilon: ε' of the whole session from query ε, how many are counted, and δ'.
        hits: how many a budget buys at a query ε.
        max_epsilon: the largest query ε it can account for.
    """

    name: str
    pays_for: Literal["every question", "hits"]
    epsilon: EpsilonOf
    hits: HitsOf
    max_epsilon: float

    def query_epsilon(self, hits: int, budget: Budget) -> float | None:
        """Return the largest query ε with which the budget buys this many; None if there is none."""
        return largest_query_epsilon(
            lambda query: self.epsilon(query, hits, budget.delta), budget.epsilon, self.max_epsilon
        )


def _searched(epsilon: EpsilonOf) -> HitsOf:
    """Return how many a budget buys, by bisection over the ε' of a session."""

    def hits(query_epsilon: float, budget: Budget) -> int:
        return largest_integer(
            lambda count: epsilon(query_epsilon, count, budget.delta) <= budget.epsilon, _MOST_SEARCHED
        )

    return hits


def catalogue(target: Target) -> tuple[Accounting, ...]:
    """Return every accounting that applies to sessions with this target, the best ones last."""
    found = _compositions(target)
    if isinstance(target, NotPrior):
        found.append(_hits(SPARSE_VECTOR, lambda query, count, _: sparse_vector_epsilon(query, count)))
    if isinstance(target, Between):
        largest = MAX_QUERY_EPSILON / 6
        found.append(_hits("Bun-Steinke-Ullman", _between(target), max_epsilon=largest))
    if not isinstance(target, Everything):
        found += [
            _hits("paper, simple Chernoff", _paper(target, "simple"), max_epsilon=target.max_epsilon),
            _hits("paper, raw Chernoff", _paper(target, "raw"), max_epsilon=target.max_epsilon),
            _hits("paper, exact tail", _paper(target, "exact"), max_epsilon=target.max_epsilon),
        ]
    renyi = partial(renyi_epsilon, target)
    found.append(_hits("Rényi", renyi, partial(renyi_hits, target), target.max_epsilon))
    if not isinstance(target, Boundary):
        found.append(_exact(target))
    return tuple(found)


def _hits(
    name: str, epsilon: EpsilonOf, hits: HitsOf | None = None, max_epsilon: float = MAX_QUERY_EPSILON
) -> Accounting:
    return Accounting(name, HITS, epsilon, hits or _searched(epsilon), max_epsilon)


def _compositions(target: Target) -> list[Accounting]:
    """Return plain compositions of the computation as it is published (2ε for run twice, t(ε) for Boundary)."""

    def every(name: str, epsilon: EpsilonOf, hits: HitsOf | None = None) -> Accounting:
        def published(query: float, count: int, delta: float) -> float:
            return epsilon(target.paper_row(query)[0], count, delta)

        def bought(query: float, budget: Budget) -> int:
            return (hits or _searched(epsilon))(target.paper_row(query)[0], budget)

        return Accounting(name, EVERY_QUESTION, published, bought, target.max_epsilon)

    return [
        every("basic composition", lambda query, count, _: basic_epsilon(query, count)),
        every("advanced composition", advanced_epsilon),
        every("optimal composition", optimal_epsilon, optimal_hits),
    ]


def _paper(target: Target, tail: Tail) -> EpsilonOf:
    def epsilon(query: float, hits: int, delta: float) -> float:
        computation, q = target.paper_row(query)
        return paper_epsilon(computation, hits, delta, q, tail=tail)

    return epsilon


def _between(target: Between) -> EpsilonOf:
    """Return the ε' of Bun, Steinke and Ullman's algorithm; infinite where the band is too narrow for it."""

    def epsilon(query: float, hits: int, delta: float) -> float:
        if between_thresholds_gap(query, delta / (2 * hits)) > target.high - target.low:
            return math.inf
        return between_thresholds_epsilon(query, hits, delta)

    return epsilon


def _exact(target: Target) -> Accounting:
    def epsilon(query: float, hits: int, delta: float) -> float:
        kind = target.kind(query)
        return exact_epsilon(query, hits, delta, kind.q, disagreement=kind.disagreement)

    def bought(query: float, budget: Budget) -> int:
        return exact_hits(query, budget, target.kind(query))

    return _hits("exact", epsilon, bought, target.max_epsilon)
