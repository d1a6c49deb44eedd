"""Planning: how many changes of its estimate a stream survives, for a number of copies and a budget.

Copies that all agree outvote the other candidates by their number and the bonus for staying. So the query ε that
makes false moves rare falls as one over the copies, and the changes that a budget covers grow with their square.

>>> import targetcharge as tc
>>> [plan(tc.Budget(3.0, 1e-6), copies).changes for copies in (500, 1000, 2000)]
[58, 289, 1281]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from targetcharge import checks
from targetcharge.accounting.budget import check_budget, largest_query_epsilon
from targetcharge.accounting.exact import exact_epsilon, exact_hits
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import up
from targetcharge.numerics.search import smallest_integer
from targetcharge.streaming.consensus import INERTIA, Grid, bonus_of

if TYPE_CHECKING:
    from targetcharge.accounting.budget import Budget

MOST_COPIES: Final = 10_000
"""More are slower than they are worth."""

TOLERANCE: Final = 0.1
SMALLEST: Final = 1.0
LARGEST: Final = 2.0**53
ESTIMATES: Final = 1_000_000

_FALSE_MOVES: Final = 0.1
"""How many false moves are expected, at most, in all estimates while all copies agree. Each costs a change."""


@final
@dataclass(frozen=True)
class StreamPlan:
    """What a stream can do.

    Attributes:
        copies: of the sketch.
        query_epsilon: of one estimate.
        changes: how many times its estimate may change.
    """

    copies: int
    query_epsilon: float
    changes: int


def plan(
    budget: Budget,
    copies: int,
    query_epsilon: float | None = None,
    *,
    estimates: int = ESTIMATES,
    tolerance: float | str = TOLERANCE,
    inertia: float = INERTIA,
    smallest: float = SMALLEST,
    largest: float = LARGEST,
) -> StreamPlan:
    """Return the query ε that makes false moves rare, and how many changes the budget then covers.

    While all copies agree, a candidate has a coin with probability p = e^{-ε·(copies + bonus)/2}, and the stream
    moves with a probability of at most p/2 for each: of those whose coin says so and staying, each is as likely.

    Args:
        budget: for the copies' randomness.
        copies: of the sketch.
        query_epsilon: of one estimate, if it is not to be chosen.
        estimates: how many will be asked for, in all.
        tolerance: how far the estimates may be from what is published, as a share of it: 0.1 or "10%".
        inertia: the bonus for staying, as a share of the copies.
        smallest: the smallest value that is published, but for 0.
        largest: the largest value that is published.

    Raises:
        InvalidParameter: if so few copies cannot do it.
    """
    check_budget(budget)
    estimates = checks.positive_integer(estimates, "estimates")
    grid = Grid(smallest, largest, tolerance)
    weight = checks.integer(copies, "copies", 2, MOST_COPIES) + bonus_of(inertia, copies)
    if query_epsilon is not None:
        query_epsilon = checks.query_epsilon(query_epsilon)
    else:
        query_epsilon = _agreement(estimates, grid) / weight
        if query_epsilon > checks.MAX_QUERY_EPSILON:
            needed = math.ceil(copies * query_epsilon / checks.MAX_QUERY_EPSILON)
            raise InvalidParameter("copies", copies, f"about {needed} or more for {estimates:,} estimates")
    return StreamPlan(int(copies), query_epsilon, exact_hits(query_epsilon, budget))


def fewest_copies(budget: Budget, estimates: int, grid: Grid, inertia: float) -> int | None:
    """Return with how many copies a budget covers one change; None if with no number of them."""
    query = largest_query_epsilon(
        lambda query: exact_epsilon(query, 1, budget.delta) <= budget.epsilon, checks.MAX_QUERY_EPSILON
    )
    if query is None:
        return None
    weight = _agreement(estimates, grid) / query

    def enough(copies: int) -> bool:
        return copies + bonus_of(inertia, copies) >= weight

    return smallest_integer(enough, 2, MOST_COPIES) if enough(MOST_COPIES) else None


def _agreement(estimates: int, grid: Grid) -> float:
    """Return the query ε times the votes for staying where all copies agree and false moves are rare."""
    return 2 * math.log(max(2.0, estimates * grid.most_moves / (2 * _FALSE_MOVES)))


def share_of_wrong_copies(budget: Budget, failure: float) -> float:
    """Return how large a share of the copies is expected to be ever wrong, at most: e^ε·failure + δ.

    Who chooses the stream by what is published makes no copy fail more often than that, if it fails on any stream
    that is fixed beforehand with a probability of at most `failure` (docs/theory/labels.md#streams).

    >>> import targetcharge as tc
    >>> round(share_of_wrong_copies(tc.Budget(3.0, 1e-6), failure=0.001), 4)
    0.0201

    Args:
        budget: of the stream.
        failure: the probability that one copy is ever wrong on a stream that does not depend on it.
    """
    probability = checks.fitting(failure, "failure", "a probability, from 0 to 1", lambda given: 0 <= given <= 1)
    check_budget(budget)
    return min(1.0, up(math.exp(min(budget.epsilon, 700.0)) * probability + budget.delta))
