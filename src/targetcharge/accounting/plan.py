"""The planner: what a budget buys under each accounting, side by side.

>>> import targetcharge as tc
>>> plan = tc.plan(tc.Budget(1.0, 1e-6), query_epsilon=0.01)
>>> plan["exact"].hits, plan["paper, simple Chernoff"].hits, plan["optimal composition"].hits
(229, 98, 562)
>>> round(tc.plan(tc.Budget(1.0, 1e-6), hits=100)["exact"].query_epsilon, 4)
0.0144
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from targetcharge import checks
from targetcharge.accounting.baselines import sparse_vector_epsilon
from targetcharge.accounting.budget import check_budget
from targetcharge.accounting.catalogue import SPARSE_VECTOR, Accounting, catalogue
from targetcharge.accounting.exact import exact_epsilon
from targetcharge.accounting.meter.tariff import one_exact_hit, too_small
from targetcharge.accounting.renyi import renyi_epsilon
from targetcharge.accounting.targets import Boundary, NotPrior, Target
from targetcharge.errors import InvalidParameter, TooLarge
from targetcharge.numerics.search import largest_integer

if TYPE_CHECKING:
    from targetcharge.accounting.budget import Budget

_OURS = ("exact", "Rényi")
_PLAIN: Final = NotPrior(prior=False)


@dataclass(frozen=True)
class PlanRow:
    """What one accounting buys.

    Attributes:
        accounting: its name.
        pays_for: what is counted: "every question" or "hits".
        hits: how many; None if it could not be computed.
        query_epsilon: the ε of each computation; None if no query ε is affordable.
        note: why a number is missing.
    """

    accounting: str
    pays_for: str
    hits: int | None
    query_epsilon: float | None
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """What a budget buys.

    Attributes:
        budget: of the whole session.
        target: what a hit is.
        rows: one for each accounting, the best ones last.
        advice: when something simpler is cheaper; empty if never.
    """

    budget: Budget
    target: Target
    rows: tuple[PlanRow, ...]
    advice: str

    def __getitem__(self, accounting: str) -> PlanRow:
        """Return the row of an accounting."""
        for row in self.rows:
            if row.accounting == accounting:
                return row
        raise KeyError(accounting)

    def as_dict(self) -> dict[str, object]:
        """Return plain data, for JSON."""
        return {
            "budget": asdict(self.budget),
            "target": repr(self.target),
            "rows": [asdict(row) for row in self.rows],
            "advice": self.advice,
        }


def plan(
    budget: Budget, *, query_epsilon: float | None = None, hits: int | None = None, target: Target = _PLAIN
) -> Plan:
    """Return what each accounting buys: hits for a query ε, or the largest query ε for a number of hits.

    Args:
        budget: of the whole session.
        query_epsilon: the ε of each computation. Give this or `hits`.
        hits: the wanted number of hits.
        target: what a hit is.

    Raises:
        InvalidParameter: if both or neither are given, or if the budget does not cover a single hit; the error
            then says which query ε it would cover.
    """
    checks.positive_delta(check_budget(budget).delta)
    if not isinstance(target, Target):
        raise InvalidParameter("target", target, "a target, such as tc.NotPrior(False)")
    if (query_epsilon is None) == (hits is None):
        expected = f"given and hits left out, or the other way round (hits is {hits!r})"
        raise InvalidParameter("query_epsilon", query_epsilon, expected)
    ways = catalogue(target)
    if query_epsilon is not None:
        return _plan_hits(budget, target.check_epsilon(query_epsilon, "query_epsilon"), target, ways)
    return _plan_query(budget, checks.hits(hits or 0), target, ways)


def _plan_hits(budget: Budget, query: float, target: Target, ways: tuple[Accounting, ...]) -> Plan:
    rows = tuple(_hits_row(way, query, budget) for way in ways)
    bought = max(row.hits or 0 for row in rows if row.accounting in _OURS)
    if not bought:
        classic = next((row.hits for row in rows if row.accounting == SPARSE_VECTOR), 0)
        otherwise = f"; classic sparse vector would give {classic} yes-or-no hits" if classic else ""
        raise too_small(budget, query, partial(_one_hit, target, budget.delta), otherwise)
    return Plan(budget, target, rows, _advice(query, bought, budget) if isinstance(target, NotPrior) else "")


def _one_hit(target: Target, delta: float, query: float) -> float:
    """Return ε' of a session with one hit of the target."""
    if isinstance(target, Boundary):
        return renyi_epsilon(target, query, 1, delta)
    return one_exact_hit(target.kind(query), query, delta)


def _hits_row(way: Accounting, query: float, budget: Budget) -> PlanRow:
    if query > way.max_epsilon:
        return PlanRow(way.name, way.pays_for, None, query, f"only for a query ε up to {way.max_epsilon:.3g}")
    try:
        return PlanRow(way.name, way.pays_for, way.hits(query, budget), query)
    except TooLarge:
        return PlanRow(way.name, way.pays_for, None, query, "more than this accounting can compute")


def _plan_query(budget: Budget, hits: int, target: Target, ways: tuple[Accounting, ...]) -> Plan:
    rows = tuple(_query_row(way, hits, budget) for way in ways)
    affordable = [row.query_epsilon for row in rows if row.accounting in _OURS and row.query_epsilon]
    if not affordable:
        expected = f"fewer, or the budget larger: ({budget.epsilon:g}, {budget.delta:g}) covers them at no query ε"
        raise InvalidParameter("hits", hits, expected)
    return Plan(
        budget, target, rows, _advice(max(affordable), hits, budget) if isinstance(target, NotPrior) else ""
    )


def _query_row(way: Accounting, hits: int, budget: Budget) -> PlanRow:
    try:
        query = way.query_epsilon(hits, budget)
    except TooLarge:
        return PlanRow(way.name, way.pays_for, hits, None, "more than this accounting can compute")
    return PlanRow(way.name, way.pays_for, hits, query, "" if query else "not affordable at any query ε")


def _advice(query_epsilon: float, planned: int, budget: Budget) -> str:
    """Say up to how many hits the classic sparse vector technique is cheaper than exact accounting.

    Looks up to twice the hits planned for (at least 64, at most 500), and says if it is still cheaper there.
    """
    search = min(max(2 * planned, 64), 500)

    computed = search

    def cheaper(hits: int) -> bool:
        nonlocal computed
        try:
            return sparse_vector_epsilon(query_epsilon, hits) <= exact_epsilon(query_epsilon, hits, budget.delta)
        except TooLarge:
            computed = min(computed, hits - 1)
            return False

    most = largest_integer(cheaper, search)
    if not most:
        return ""
    upto = f"up to {most} hits" if most < computed else f"{most} hits and perhaps more"
    return (
        f"For {upto} at query ε {query_epsilon:.4g} the classic sparse vector technique is cheaper, if yes-or-no"
        " answers about monotone counts and a noisy threshold will do."
    )
