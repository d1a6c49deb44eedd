"""The questions people ask of exact accounting.

>>> round(exact_delta(0.1, 1, 1.0), 7)
0.0001058
>>> from targetcharge.accounting.budget import Budget
>>> exact_hits(0.01, Budget(1.0, 1e-6))
229
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from targetcharge import checks
from targetcharge.accounting.budget import Budget, check_budget
from targetcharge.accounting.exact.lattice import Lattice, Level
from targetcharge.accounting.renyi import renyi_delta, renyi_epsilon, renyi_hits
from targetcharge.accounting.targets import NOT_PRIOR, Kind
from targetcharge.errors import InvalidParameter, TooLarge

MAX_PROFILE_CELLS = 100_000_000
"""A stored profile is at most 800 MB."""

_MOST_CHORDS = 6
_LARGEST_REFINED = 4_000_000
_CHORD_ERROR = 1e-6


def kind_of(q: float | None, *, disagreement: bool) -> Kind:
    """Return the kind that the public functions' arguments describe."""
    plain = NOT_PRIOR if q is None else Kind(q=q)
    return plain | Kind(disagreement=True) if disagreement else plain


def _last(lattice: Lattice, hits: int) -> Level:
    for level in lattice.levels(hits):
        last = level
    return last


def exact_delta(
    query_epsilon: float, hits: int, epsilon: float, q: float | None = None, *, disagreement: bool = False
) -> float:
    """Return the smallest δ' with which a session is (ε', δ')-DP, certified from above.

    Where even the Rényi bound is below 1e-90 that bound is returned: nothing smaller is worth a computation.

    Args:
        query_epsilon: every computation is private with this ε.
        hits: the number of hits after which the session stops.
        epsilon: ε' of the whole session, at least 0.
        q: None for sessions of tests, priors, releases with revisions and top-k selections; otherwise any
            targets with at least this q.
        disagreement: whether run-twice computations may be asked as well.
    """
    kind = kind_of(q, disagreement=disagreement)
    query_epsilon = kind.check_epsilon(query_epsilon, "query_epsilon")
    hits = checks.hits(hits)
    epsilon = checks.epsilon_or_zero(epsilon)
    if kind.all_hits and epsilon >= hits * query_epsilon:
        return 0.0
    rough = renyi_delta(kind, query_epsilon, hits, epsilon)
    if rough < checks.MIN_DELTA:
        return rough
    level = _last(Lattice.for_epsilon(kind, query_epsilon, hits, epsilon), hits)
    return min(rough, level.delta_at(epsilon))


def exact_epsilon(
    query_epsilon: float, hits: int, delta: float, q: float | None = None, *, disagreement: bool = False
) -> float:
    """Return the smallest ε' with which a session is (ε', δ')-DP, certified from above.

    Args:
        query_epsilon: every computation is private with this ε.
        hits: the number of hits after which the session stops.
        delta: δ' of the whole session, above 0 unless q = 1.
        q: as in `exact_delta`.
        disagreement: as in `exact_delta`.
    """
    kind = kind_of(q, disagreement=disagreement)
    query_epsilon = kind.check_epsilon(query_epsilon, "query_epsilon")
    hits = checks.hits(hits)
    if kind.all_hits and checks.delta(delta) == 0:
        return hits * query_epsilon
    delta = checks.positive_delta(delta)
    rough = renyi_epsilon(kind, query_epsilon, hits, delta)
    if rough == 0:
        return 0.0
    lattice = Lattice.for_hits(kind, query_epsilon, hits, delta)
    level = _last(lattice, hits)
    # Both are true; the Rényi bound is smaller only where an unsettled policy made the certificate loose.
    epsilon = min(rough, level.epsilon_at(delta))
    if kind == NOT_PRIOR or epsilon == 0:
        return epsilon
    if kind.all_hits:
        return min(epsilon, hits * query_epsilon)
    if hits * lattice.width > _LARGEST_REFINED:
        return epsilon  # ε' is many lattice steps: the chord is short already, and ten more runs would be long
    return _refine(kind, query_epsilon, hits, delta, level, epsilon)


def _refine(kind: Kind, query_epsilon: float, hits: int, delta: float, level: Level, epsilon: float) -> float:
    """Return ε' with the chord between two lattice points replaced by ever shorter chords.

    δ' is convex in e^{ε'}, so between two certified points it lies below their chord: where the chord meets δ is
    a valid ε'. The lattice is run again there, at a shifted position where nothing is interpolated, and half way
    to the left end, until the chord is short enough.
    """
    low, high = math.floor(epsilon / query_epsilon * (1 - 1e-12)) * query_epsilon, epsilon
    low_delta, high_delta = level.delta_at(low), delta
    for _ in range(_MOST_CHORDS):
        for probe in (high, (low + high) / 2):
            exact = _last(Lattice.for_epsilon(kind, query_epsilon, hits, probe), hits).delta_at(probe)
            if exact <= delta:
                high, high_delta = probe, exact
            else:
                low, low_delta = probe, exact
        if high_delta >= delta * (1 - _CHORD_ERROR) or not low_delta > high_delta:
            break
        weight = min(1.0, (low_delta - delta) / (low_delta - high_delta))
        high = min(high, (low + math.log1p(weight * math.expm1(high - low))) * (1 + 1e-12))
    return high


def exact_hits(query_epsilon: float, budget: Budget, kind: Kind = NOT_PRIOR) -> int:
    """Return how many hits the budget buys: the largest τ whose certified δ'(ε') fits. One lattice run.

    Raises:
        TooLarge: if the budget buys more hits than a lattice run can count.
    """
    query_epsilon = kind.check_epsilon(query_epsilon, "query_epsilon")
    if kind.all_hits and check_budget(budget).delta == 0:
        return math.floor(budget.epsilon / query_epsilon)
    checks.positive_delta(check_budget(budget).delta)
    lattice = Lattice.for_budget(kind, query_epsilon, budget)
    # Exact accounting buys at least what Rényi accounting does: refuse a hopeless run before it starts.
    least = renyi_hits(kind, query_epsilon, budget)
    if max(1, least) <= lattice.most_hits:
        for level in lattice.levels(lattice.most_hits):
            if level.delta_at(budget.epsilon) > budget.delta:
                return max(least, level.hits - 1)
    expected = (
        f"larger, or the budget smaller: it buys more than the {lattice.most_hits:,} hits that a lattice"
        " can count: a Rényi meter has no such limit"
    )
    raise TooLarge("query_epsilon", query_epsilon, expected)


@dataclass(frozen=True)
class ExactProfile:
    """δ'(ε') for every number of hits up to some τ, from one lattice run.

    Attributes:
        levels: the certified level of 1, 2, …, τ hits.
    """

    levels: tuple[Level, ...]

    def delta(self, hits: int, epsilon: float) -> float:
        """Return an upper bound of δ' at ε' for a session of this many hits."""
        return self._level(hits).delta_at(checks.epsilon_or_zero(epsilon))

    def epsilon(self, hits: int, delta: float) -> float:
        """Return an upper bound of the smallest ε' at δ'; infinite if the profile does not reach so far down."""
        return self._level(hits).epsilon_at(checks.positive_delta(delta))

    def _level(self, hits: int) -> Level:
        if checks.hits(hits) > len(self.levels):
            raise InvalidParameter("hits", hits, f"at most {len(self.levels)}, the hits of this profile")
        return self.levels[hits - 1]


def exact_profile(
    query_epsilon: float,
    hits: int,
    delta: float = 1e-12,
    q: float | None = None,
    *,
    disagreement: bool = False,
) -> ExactProfile:
    """Return δ'(ε') for 1 to `hits` hits, down to where δ' = `delta` for all of them.

    At multiples of the query ε the values are those of `exact_delta`; between them the profile interpolates,
    which is exact for q = None and otherwise an upper bound, a little above `exact_delta`.
    """
    kind = kind_of(q, disagreement=disagreement)
    query_epsilon = kind.check_epsilon(query_epsilon, "query_epsilon")
    hits = checks.hits(hits)
    lattice = Lattice.for_hits(kind, query_epsilon, hits, checks.positive_delta(delta))
    rows = MAX_PROFILE_CELLS // (lattice.depth + 1)
    if hits > rows:
        expected = f"at most {rows} for a profile at query_epsilon {query_epsilon:g}, which stores every level"
        raise TooLarge("hits", hits, expected)
    return ExactProfile(tuple(lattice.levels(hits)))
