"""Every accounting that applies to sessions with a target: what hits, or questions, cost under it.

>>> [accounting.name for accounting in catalogue(Boundary())][-2:]
['paper, exact tail', 'Rényi']
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from targetcharge import checks
from targetcharge.accounting.baselines import (
    advanced_epsilon,
    basic_epsilon,
    between_thresholds_epsilon,
    between_thresholds_gap,
    optimal_delta,
    optimal_epsilon,
    optimal_hits,
    sparse_vector_epsilon,
)
from targetcharge.accounting.budget import largest_query_epsilon
from targetcharge.accounting.exact import exact_delta, exact_epsilon, exact_hits
from targetcharge.accounting.paper import Tail, paper_epsilon
from targetcharge.accounting.renyi import renyi_delta, renyi_epsilon, renyi_hits
from targetcharge.accounting.targets import Between, Boundary, Everything, NotPrior, Target
from targetcharge.errors import TooLarge
from targetcharge.numerics.search import largest_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.budget import Budget

    EpsilonOf = Callable[[float, int, float], float]
    Affordable = Callable[[float, int, Budget], bool]
    HitsOf = Callable[[float, Budget], int]
    QueryOf = Callable[[int, Budget], float | None]

EVERY_QUESTION: Final = "every question"
HITS: Final = "hits"
SPARSE_VECTOR: Final = "classic sparse vector"

_MOST_SEARCHED: Final = 2**40


@dataclass(frozen=True)
class Accounting:
    """One way to account for a session.

    Attributes:
        name: as tables show it.
        pays_for: what is counted: every question asked, or hits only.
        max_epsilon: the largest query ε it can account for.
        epsilon: ε' of the whole session from query ε, how many are counted, and δ'.
        hits: how many a budget buys at a query ε.
        query_epsilon: the largest query ε at which a budget buys so many; None if there is none.
        of_paper: whether it is a form of the paper's theorem.
    """

    name: str
    pays_for: Literal["every question", "hits"]
    max_epsilon: float
    epsilon: EpsilonOf
    hits: HitsOf
    query_epsilon: QueryOf
    of_paper: bool = False


def _accounting(
    name: str,
    epsilon: EpsilonOf,
    *,
    pays_for: Literal["every question", "hits"] = HITS,
    max_epsilon: float = checks.MAX_QUERY_EPSILON,
    affordable: Affordable | None = None,
    hits: HitsOf | None = None,
) -> Accounting:
    """Return an accounting; what is not given is searched for with `affordable`, or with ε' alone."""

    def within(query: float, count: int, budget: Budget) -> bool:
        return epsilon(query, count, budget.delta) <= budget.epsilon

    fits = affordable or within

    def search_hits(query: float, budget: Budget) -> int:
        most = largest_integer(lambda count: fits(query, count, budget), _MOST_SEARCHED)
        if most == _MOST_SEARCHED:
            raise TooLarge("query_epsilon", query, f"larger: this budget buys more than {most:,}")
        return most

    def search_query(count: int, budget: Budget) -> float | None:
        return largest_query_epsilon(lambda query: fits(query, count, budget), max_epsilon)

    return Accounting(name, pays_for, max_epsilon, epsilon, hits or search_hits, search_query)


def catalogue(target: Target) -> tuple[Accounting, ...]:
    """Return every accounting that applies to sessions with this target, the best ones last."""
    accountings = _compositions(target)
    if isinstance(target, NotPrior):
        accountings.append(_accounting(SPARSE_VECTOR, lambda query, count, _: sparse_vector_epsilon(query, count)))
    if isinstance(target, Between):
        accountings.append(_bun_steinke_ullman(target))
    unknown = isinstance(target, Boundary) and not target.as_in_the_paper
    if not unknown and not isinstance(target, Everything):
        accountings += [
            _paper(target, "simple", "paper, simple Chernoff"),
            _paper(target, "raw", "paper, raw Chernoff"),
            _paper(target, "exact", "paper, exact tail"),
        ]
    renyi, bought = partial(renyi_epsilon, target), partial(renyi_hits, target)
    accountings.append(_accounting("Rényi", renyi, max_epsilon=target.max_epsilon, hits=bought))
    if not isinstance(target, Boundary):
        accountings.append(_exact(target))
    return tuple(accountings)


def _compositions(target: Target) -> list[Accounting]:
    """Return plain compositions of the computation as it is published (2ε for run twice, t(ε) for Boundary)."""

    def published(query: float) -> float:
        return target.published_epsilon(query)

    def optimal_fits(query: float, count: int, budget: Budget) -> bool:
        return optimal_delta(published(query), count, budget.epsilon) <= budget.delta

    every = partial(_accounting, pays_for=EVERY_QUESTION, max_epsilon=target.max_epsilon)
    return [
        every("basic composition", lambda query, count, _: basic_epsilon(published(query), count)),
        every("advanced composition", lambda query, *rest: advanced_epsilon(published(query), *rest)),
        every(
            "optimal composition",
            lambda query, *rest: optimal_epsilon(published(query), *rest),
            affordable=optimal_fits,
            hits=lambda query, budget: optimal_hits(published(query), budget),
        ),
    ]


def _paper(target: Target, tail: Tail, name: str) -> Accounting:
    def epsilon(query: float, hits: int, delta: float) -> float:
        computation, q = target.paper_row(query)
        return paper_epsilon(computation, hits, delta, q, tail=tail)

    return replace(_accounting(name, epsilon, max_epsilon=target.max_epsilon), of_paper=True)


def _bun_steinke_ullman(target: Between) -> Accounting:
    """Return the accounting of their BetweenThresholds, which needs a band of a certain width."""

    def wide_enough(query: float, hits: int, delta: float) -> bool:
        return between_thresholds_gap(query, delta / (2 * hits)) <= (target.high - target.low) / target.sensitivity

    def epsilon(query: float, hits: int, delta: float) -> float:
        return between_thresholds_epsilon(query, hits, delta) if wide_enough(query, hits, delta) else math.inf

    largest = checks.MAX_QUERY_EPSILON / 6
    plain = _accounting("Bun-Steinke-Ullman", between_thresholds_epsilon, max_epsilon=largest)

    def query_epsilon(hits: int, budget: Budget) -> float | None:
        # More noise needs a wider band, so only the largest affordable query ε can do.
        query = plain.query_epsilon(hits, budget)
        return query if query and wide_enough(query, hits, budget.delta) else None

    searched = _accounting(plain.name, epsilon, max_epsilon=largest)
    return Accounting(plain.name, HITS, largest, epsilon, searched.hits, query_epsilon)


def _exact(target: Target) -> Accounting:
    def epsilon(query: float, hits: int, delta: float) -> float:
        kind = target.kind(query)
        return exact_epsilon(query, hits, delta, kind.q, disagreement=kind.disagreement)

    def fits(query: float, hits: int, budget: Budget) -> bool:
        kind = target.kind(query)
        if renyi_delta(kind, query, hits, budget.epsilon) <= budget.delta:
            return True  # the exact δ' is smaller still
        return exact_delta(query, hits, budget.epsilon, kind.q, disagreement=kind.disagreement) <= budget.delta

    return _accounting(
        "exact",
        epsilon,
        max_epsilon=target.max_epsilon,
        affordable=fits,
        hits=lambda query, budget: exact_hits(query, budget, target.kind(query)),
    )
