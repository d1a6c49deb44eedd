"""Claims: what a session's meter says of everything that the session will ever publish.

>>> from targetcharge.audit.exact import Claim, opener
>>> claim = Claim.of(opener(0.1, hits=1)())
>>> round(claim.delta(1.0), 9)
0.000105829
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.budget import Budget
from targetcharge.accounting.exact.lattice import Lattice, Level
from targetcharge.accounting.kind import Kind
from targetcharge.accounting.meter.tariff import ExactTariff
from targetcharge.accounting.renyi import log_delta_of_total, renyi_epsilon
from targetcharge.accounting.targets import NotPrior, Target
from targetcharge.numerics.rounding import from_grains
from targetcharge.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.accounting.meter import Tariff
    from targetcharge.audit.exact.explore import Opened
    from targetcharge.audit.exact.views import View, Views

_SMALLEST: Final = 1e-12
_MOST_BENDS: Final = 10_000
"""A claim with more multiples of the query ε than this is compared at the first of them only."""


@functools.lru_cache(maxsize=256)
def _level(kind: Kind, query_epsilon: float, hits: int) -> Level:
    *_, last = Lattice.for_hits(kind, query_epsilon, hits, _SMALLEST).levels(hits)
    return last


@final
@dataclass(frozen=True)
class Claim:
    """What a session promises whatever happens: a curve δ(ε), and a Rényi moment where the meter adds up prices.

    Attributes:
        name: in words.
        delta: the claimed δ at an ε.
        bends: where else than at the multiples of the query ε, below, to compare.
        order: of the moment; None if there is none, or if computations have a δ of their own.
        total: the claimed ln E[e^{(order-1)·loss}].
        reserve: the part of δ that is kept for computations with a δ of their own. A game that spends less of it
            is judged by what it spends: else a charge that is missing could hide in what is left.
    """

    name: str
    delta: Callable[[float], float]
    bends: tuple[float, ...]
    order: float | None = None
    total: float = math.inf
    reserve: float = 0.0

    @classmethod
    def of(cls, session: Session) -> Claim:
        """Return the claim of a session that was just opened: by its capacity, its declared kinds, its reserve."""
        meters = session.meters
        tariffs = [meter.tariff for meter in meters]
        reserve, whole = meters[0].delta_left, meters[0].guarantee
        steps = [tariff.query_epsilon if isinstance(tariff, ExactTariff) else 0.05 for tariff in tariffs]

        def delta(epsilon: float) -> float:
            promised = math.fsum(_delta(tariff, epsilon) for tariff in tariffs) + reserve
            return min(1.0, promised, whole.delta if epsilon >= whole.epsilon else 1.0)

        count = min(_MOST_BENDS, math.ceil(whole.epsilon / min(steps)))
        bends = {min(whole.epsilon, step * place) for step in steps for place in range(count + 1)}
        name = f"{tariffs[0].name} meter, budget ({whole.epsilon:.4g}, {whole.delta:.4g})"
        if tariffs[0].name == "exact" or reserve:
            return cls(name, delta, tuple(sorted(bends | {whole.epsilon})), reserve=reserve)
        total = float(np.logaddexp.reduce([from_grains(tariff.capacity) for tariff in tariffs]))
        return cls(name, delta, tuple(sorted(bends | {whole.epsilon})), tariffs[0].order, total)


def _delta(tariff: Tariff, epsilon: float) -> float:
    """Return what one meter claims."""
    if isinstance(tariff, ExactTariff):
        return _level(tariff.kind, tariff.query_epsilon, tariff.capacity).delta_at(epsilon)
    return math.exp(min(0.0, log_delta_of_total(from_grains(tariff.capacity), tariff.order, epsilon)))


@final
@dataclass(frozen=True)
class Running:
    """A claim that is shown while the session goes on, so that somebody may stop because of it.

    It is true if E[(1 - e^{shown ε - loss})₊] ≤ δ for what is seen at the stop, either way.

    Attributes:
        name: in words.
        epsilon: the ε that is shown at the end of a view.
        delta: the δ that is shown with it; of all views the largest.
    """

    name: str
    epsilon: Callable[[View], float]
    delta: Callable[[Views], float]


ODOMETER: Final = Running(
    "the odometer",
    lambda view: min(odometer.epsilon for _, _, odometer in view.meters),
    lambda views: max(odometer.delta for view in views.seen for _, _, odometer in view.meters),
)
"""The running figure of `meter.odometer()`; with alternatives the smallest."""


def opener(
    query_epsilon: float,
    hits: int,
    delta: float = 0.02,
    *,
    meter: str = "exact",
    targets: Sequence[Target] | Target | None = None,
    alternatives: Sequence[Target] | None = None,
    computation_delta: float = 0.0,
) -> Opened:
    """Return a function that opens sessions, in memory and without data, that have just this many hits.

    Args:
        query_epsilon: of the session.
        hits: of its declared targets; with alternatives for each of them.
        delta: of its budget, apart from `computation_delta`.
        meter: "exact" or "renyi".
        targets: as for a session.
        alternatives: as for a session.
        computation_delta: as for a session; it is added to the budget.
    """
    checks.choice("meter", meter, ("exact", "renyi"))
    hits, delta = checks.hits(hits), checks.positive_delta(delta)
    chosen = alternatives or targets or NotPrior(prior=False)
    members = [chosen] if isinstance(chosen, Target) else list(chosen)
    share = delta / len(alternatives or "1") * (1 - 1e-9)
    if meter == "renyi":
        examples = members if alternatives else members[:1]
        whole = max(renyi_epsilon(target, query_epsilon, hits, share) for target in examples)
    else:
        kinds = [target.kind(query_epsilon) for target in members]
        unions = kinds if alternatives else [functools.reduce(Kind.__or__, kinds)]
        whole = max(_level(kind, query_epsilon, hits).epsilon_at(share) for kind in unions)
    budget = Budget(whole * (1 + 1e-9), delta + computation_delta * (1 + 1e-9))
    return functools.partial(
        Session,
        None,
        budget,
        query_epsilon,
        meter=meter,
        targets=targets,
        alternatives=alternatives,
        computation_delta=computation_delta,
    )
