"""The planner: what a budget buys under each accounting, side by side.

>>> import targetcharge as tc
>>> plan = tc.plan(tc.Budget(1.0, 1e-6), query_epsilon=0.01)
>>> plan["exact"].hits, plan["paper, simple Chernoff"].hits, plan["optimal composition"].hits
(229, 98, 562)
>>> round(tc.plan(tc.Budget(1.0, 1e-6), hits=100)["exact"].query_epsilon, 4)
0.0144
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from targetcharge import checks, markup
from targetcharge.accounting.baselines import (
    sparse_vector_epsilon,
)
from targetcharge.accounting.budget import check_budget
from targetcharge.accounting.catalogue import EVERY_QUESTION, HITS, SPARSE_VECTOR, Accounting, catalogue
from targetcharge.accounting.exact import exact_epsilon
from targetcharge.accounting.meter.choosing import ExactSession, GumbelSession, RenyiSession, rates
from targetcharge.accounting.meter.price import too_small
from targetcharge.accounting.meter.tariff import one_exact_hit
from targetcharge.accounting.offsets import least_noise, offset_hits
from targetcharge.accounting.offsets.least_noise import best_offset
from targetcharge.accounting.renyi import renyi_epsilon
from targetcharge.accounting.targets import Between, Boundary, Everything, NotPrior, Target
from targetcharge.errors import InvalidParameter, TooLarge
from targetcharge.frames import Columns, Type
from targetcharge.numerics.search import largest_integer
from targetcharge.randomness.laws import GumbelLaw, LaplaceLaw

if TYPE_CHECKING:
    import pandas as pd

    from targetcharge.accounting.budget import Budget


HITS_OF_UNIT: Final = "hits of a unit"
TABLE: Final = "counts of a table"
SPARSE: Final = "sparse: thresholds, always paid"
INDIVIDUAL: Final = "each unit: thresholds, always paid"

_OURS: Final = ("exact", "Rényi")
_PLAIN: Final = NotPrior(prior=False)
_MOST_EXACT: Final = 20
"""Hits on an exact meter from which a sparse one buys hundreds: to count them takes longer than a plan may."""


@dataclass(frozen=True)
class PlanRow:
    """What one accounting buys.

    Attributes:
        accounting: its name.
        pays_for: what is counted: "every question", "hits" or "hits of a unit".
        hits: how many; None if it could not be computed.
        query_epsilon: the ε of each computation; None if no query ε is affordable.
        note: why a number is missing.
        standard_deviation: of a noisy count with this query ε, as it is compared with a threshold.
    """

    accounting: str
    pays_for: str
    hits: int | None
    query_epsilon: float | None
    note: str = ""
    standard_deviation: float | None = None

    @classmethod
    def natural(cls, accounting: Accounting, hits: int | None, query: float | None, note: str = "") -> PlanRow:
        """Return the row of an accounting under which counts get discrete Laplace noise at the query ε."""
        deviation = None if query is None else math.sqrt(LaplaceLaw(query).variance)
        if deviation is not None and accounting.name == SPARSE_VECTOR:
            deviation *= math.sqrt(2)  # the threshold is as noisy
        return cls(accounting.name, accounting.pays_for, hits, query, note, deviation)

    def cells(self, *, by_hits: bool) -> list[str]:
        """Return the cells of a table: the accounting, what is paid, hits or the query ε, the noise and a note."""
        counted = "question" if self.pays_for == EVERY_QUESTION else "hit"
        bought = "" if self.hits is None else markup.counted(self.hits, counted)
        query = "" if self.query_epsilon is None else f"{self.query_epsilon:.4g}"
        noise = "" if self.standard_deviation is None else f"±{self.standard_deviation:.3g}"
        return [self.accounting, self.pays_for, bought if by_hits else query, noise, self.note]


@dataclass(frozen=True)
class Plan:
    """What a budget buys.

    Attributes:
        budget: of the whole session.
        target: what a hit is.
        rows: one for each accounting, the best ones last.
        advice: when something simpler is cheaper; empty if never.
        by_hits: whether the query ε was given, and hits were looked for.
        hits_per_unit: the most that a unit contributes to, if each is to have a budget of its own.
    """

    budget: Budget
    target: Target
    rows: tuple[PlanRow, ...]
    advice: str
    by_hits: bool = True
    hits_per_unit: int | None = None

    def __getitem__(self, accounting: str) -> PlanRow:
        """Return the row of an accounting."""
        for row in self.rows:
            if row.accounting == accounting:
                return row
        raise KeyError(accounting)

    @cached_property
    def table(self) -> PlanRow | None:
        """Return what a table buys whose counts carry an offset, for any question: on its best meter.

        For as many hits as were asked for, or at the same query ε; None for targets that no table asks with.
        """
        if not isinstance(self.target, NotPrior | Between | Boundary):
            return None
        exact = not isinstance(self.target, Boundary)
        session = ExactSession(self.budget, (self.target,)) if exact else RenyiSession(self.budget, self.target)
        wanted = self.rows[0].query_epsilon if self.by_hits else None, None if self.by_hits else self.rows[0].hits
        try:
            found = rates(session, query_epsilon=wanted[0], hits=wanted[1], offset=True)
        except (InvalidParameter, TooLarge) as error:
            return PlanRow(TABLE, HITS, wanted[1], wanted[0], _why(error))
        hits = session.hits(found.query_epsilon) if found.hits is None else found.hits
        return PlanRow(TABLE, HITS, hits, found.query_epsilon, "", found.standard_deviation)

    @cached_property
    def sparse(self) -> PlanRow | None:
        """Return what a sparse meter buys, for questions whether a count of a table is at least something.

        For as many hits as were asked for, or at the same query ε; None for targets that it does not take, and at
        a query ε so small that it buys hundreds: then plan by hits. It takes a second or so to find.
        """
        if not isinstance(self.target, NotPrior):
            return None
        exact = next(row.hits for row in self.rows if row.accounting == "exact")
        if self.by_hits and (exact is None or exact > _MOST_EXACT):
            return None
        try:
            if self.by_hits:
                law = best_offset(self.budget, self.rows[0].query_epsilon or 0.0)
                rates = law.offset_epsilon, law.query_epsilon
                hits: int | None = offset_hits(*rates, self.budget, law.noise, law.questions)
            else:
                hits = self.rows[0].hits
                law = least_noise(self.budget, hits or 0).law
        except (InvalidParameter, TooLarge) as error:
            return PlanRow(SPARSE, HITS, None, self.rows[0].query_epsilon if self.by_hits else None, _why(error))
        return PlanRow(SPARSE, HITS, hits, law.query_epsilon, "", law.standard_deviation)

    @cached_property
    def individual(self) -> PlanRow | None:
        """Return what a table buys with a budget for each unit, for questions whether counts reach thresholds.

        Its hits are those that one unit contributes to: at the same query ε, or as many as were said to be enough.
        None for other targets, and if that was not said.
        """
        if not isinstance(self.target, NotPrior) or not (self.by_hits or self.hits_per_unit):
            return None
        session, query = GumbelSession(self.budget), self.rows[0].query_epsilon if self.by_hits else None
        try:
            found = rates(session, query_epsilon=query, hits=None if self.by_hits else self.hits_per_unit)
            hits = session.hits(found.query_epsilon)
        except InvalidParameter as error:
            return PlanRow(INDIVIDUAL, HITS_OF_UNIT, self.hits_per_unit, query, _why(error))
        deviation = math.sqrt(GumbelLaw(found.query_epsilon).variance)
        return PlanRow(INDIVIDUAL, HITS_OF_UNIT, hits, found.query_epsilon, "", deviation)

    @property
    def title(self) -> str:
        """Return what was planned, in words."""
        first = self.rows[0]
        given = f"query ε {first.query_epsilon:g}" if self.by_hits else markup.counted(first.hits or 0, "hit")
        return f"A budget of {self.budget} at {given}"

    @property
    def table_in_words(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the cells of all rows, for people."""
        heads = ["accounting", "pays for", "buys" if self.by_hits else "query ε", "noise", "note"]
        rows = [row.cells(by_hits=self.by_hits) for row in self.all_rows]
        if not any(row[-1] for row in rows):
            return heads[:-1], [row[:-1] for row in rows]
        return heads, rows

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame."""
        rows, number = self.all_rows, Type.NUMBER
        return Columns(
            {
                "accounting": (Type.TEXT, [row.accounting for row in rows]),
                "pays_for": (Type.TEXT, [row.pays_for for row in rows]),
                "hits": (Type.INTEGER, [row.hits for row in rows]),
                "query_epsilon": (number, [row.query_epsilon for row in rows]),
                "standard_deviation": (number, [row.standard_deviation for row in rows]),
                "note": (Type.TEXT, [row.note for row in rows]),
            }
        ).to_pandas()

    def _repr_html_(self) -> str:
        """Return all rows as a table, for notebooks."""
        return markup.table(*self.table_in_words, f"{self.title}. {self.advice}".strip())

    @property
    def all_rows(self) -> tuple[PlanRow, ...]:
        """Return all rows, those of tables last."""
        return (*self.rows, *(row for row in (self.table, self.individual, self.sparse) if row is not None))

    def as_dict(self) -> dict[str, object]:
        """Return plain data, for JSON."""
        return {
            "budget": asdict(self.budget),
            "target": repr(self.target),
            "rows": [asdict(row) for row in self.rows],
            "table": None if self.table is None else asdict(self.table),
            "individual": None if self.individual is None else asdict(self.individual),
            "sparse": None if self.sparse is None else asdict(self.sparse),
            "advice": self.advice,
        }


def _why(error: InvalidParameter) -> str:
    """Return why a row has no figures."""
    return "more than this accounting can compute" if isinstance(error, TooLarge) else "not affordable"


def plan(
    budget: Budget,
    *,
    query_epsilon: float | None = None,
    hits: int | None = None,
    hits_per_unit: int | None = None,
    target: Target = _PLAIN,
) -> Plan:
    """Return what each accounting buys: hits for a query ε, or the largest query ε for a number of hits.

    Args:
        budget: of the whole session.
        query_epsilon: the ε of each computation. Give this or `hits`.
        hits: the wanted number of hits.
        hits_per_unit: how many of them one unit contributes to at most, to compare with a budget for each unit.
        target: what a hit is.

    Raises:
        InvalidParameter: if both or neither are given, or if the budget does not cover a single hit; the error
            then says which query ε it would cover.
    """
    checks.positive_delta(check_budget(budget).delta)
    if not isinstance(target, Target):
        raise InvalidParameter("target", target, "a target, such as tc.NotPrior(False)")
    if isinstance(target, Everything) and target.curve is not None:
        raise InvalidParameter("target", target, "Everything(): what a curve costs, the quote of a meter says")
    if (query_epsilon is None) == (hits is None):
        expected = f"given and hits left out, or the other way round (hits is {hits!r})"
        raise InvalidParameter("query_epsilon", query_epsilon, expected)
    ways = catalogue(target)
    if query_epsilon is not None and hits_per_unit is not None:
        raise InvalidParameter("hits_per_unit", hits_per_unit, "left out, or given with hits")
    if query_epsilon is not None:
        return _plan_hits(budget, target.check_epsilon(query_epsilon, "query_epsilon"), target, ways)
    planned = _plan_query(budget, checks.hits(hits or 0), target, ways)
    if hits_per_unit is None:
        return planned
    return replace(planned, hits_per_unit=checks.hits(hits_per_unit, "hits_per_unit"))


def _plan_hits(budget: Budget, query: float, target: Target, ways: tuple[Accounting, ...]) -> Plan:
    rows = tuple(_hits_row(way, query, budget) for way in ways)
    bought = max(row.hits or 0 for row in rows if row.accounting in _OURS)
    if not bought:
        classic = next((row.hits for row in rows if row.accounting == SPARSE_VECTOR), 0)
        otherwise = "; for counts of a table open a sparse meter, by the hits that are wanted" if classic else ""
        raise too_small(budget, query, partial(_one_hit, target, budget.delta), otherwise)
    return Plan(budget, target, rows, _advice(query, bought, budget) if isinstance(target, NotPrior) else "")


def _one_hit(target: Target, delta: float, query: float) -> float:
    """Return ε' of a session with one hit of the target."""
    if isinstance(target, Boundary):
        return renyi_epsilon(target, query, 1, delta)
    return one_exact_hit(target.kind(query), query, delta)


def _hits_row(way: Accounting, query: float, budget: Budget) -> PlanRow:
    if query > way.max_epsilon:
        return PlanRow.natural(way, None, query, f"only for a query ε up to {way.max_epsilon:.3g}")
    try:
        return PlanRow.natural(way, way.hits(query, budget), query)
    except TooLarge:
        return PlanRow.natural(way, None, query, "more than this accounting can compute")


def _plan_query(budget: Budget, hits: int, target: Target, ways: tuple[Accounting, ...]) -> Plan:
    rows = tuple(_query_row(way, hits, budget) for way in ways)
    affordable = [row.query_epsilon for row in rows if row.accounting in _OURS and row.query_epsilon]
    if not affordable:
        expected = f"fewer, or the budget larger: ({budget.epsilon:g}, {budget.delta:g}) covers them at no query ε"
        raise InvalidParameter("hits", hits, expected)
    advice = _advice(max(affordable), hits, budget) if isinstance(target, NotPrior) else ""
    return Plan(budget, target, rows, advice, by_hits=False)


def _query_row(way: Accounting, hits: int, budget: Budget) -> PlanRow:
    try:
        query = way.query_epsilon(hits, budget)
    except TooLarge:
        return PlanRow.natural(way, hits, None, "more than this accounting can compute")
    return PlanRow.natural(way, hits, query, "" if query else "not affordable at any query ε")


def _advice(query_epsilon: float, planned: int, budget: Budget) -> str:
    """Say up to how many hits the classic sparse vector technique is cheaper than exact accounting.

    Looks up to twice the hits planned for (at least 64, at most 500), and says if it is still cheaper there.
    """
    search = computed = min(max(2 * planned, 64), 500)

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
    upto = f"up to {markup.counted(most, 'hit')}" if most < computed else f"{most} hits and perhaps more"
    return (
        f"For {upto} at query ε {query_epsilon:.4g} the classic sparse vector technique is cheaper, if yes-or-no"
        " answers about monotone counts and a noisy threshold will do. For counts of a table a sparse meter is"
        " better still."
    )
