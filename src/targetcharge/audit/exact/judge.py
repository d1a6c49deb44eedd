"""Judging: what can be told from a game against what its session's meter claims.

>>> from targetcharge.audit.exact import Claim, explore, judge, opener, response
>>> opened = opener(1.0, hits=1)
>>> def game(player):
...     for _ in range(14):
...         free, hit = (False, True) if player.loss < 1 else (True, False)
...         player.test(player.algorithm(response(1.0, free, hit), 1.0))
>>> verdict = judge(explore(opened, game), Claim.of(opened()))
>>> verdict.passed, verdict.quantity, verdict.at, verdict.ratio > 0.999
(True, 'delta', 0.0, True)
>>> round(Claim.of(opener(0.1, hits=1)()).delta(1.0), 9)
0.000105829
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.budget import Budget
from targetcharge.accounting.exact.lattice import Lattice, Level
from targetcharge.accounting.meter.at_least import GumbelTariff, SparseTariff
from targetcharge.accounting.meter.choosing import RenyiSession
from targetcharge.accounting.meter.tariff import ExactTariff, RenyiTariff
from targetcharge.accounting.offsets import OffsetNoise, gumbel_delta
from targetcharge.accounting.offsets import offset_epsilon as whole_epsilon
from targetcharge.accounting.offsets.bounds import LARGEST_SHARE, Coupling
from targetcharge.accounting.offsets.noise import SHARES
from targetcharge.accounting.renyi import log_delta_of_total, renyi_epsilon
from targetcharge.accounting.targets import Kind, NotPrior, Target
from targetcharge.audit.exact.explore import excess, hockey_stick, losses, moment
from targetcharge.audit.verdict import Verdict
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import from_grains
from targetcharge.numerics.search import smallest_real
from targetcharge.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Tariff
    from targetcharge.audit.exact.explore import Opened, View, Views
    from targetcharge.randomness.laws import Noise

ROUNDING: Final = 1e-9
"""Relative: of claims, which are upper bounds, and of sums of products of probabilities."""

_NOISE: Final = 1e-13
"""Absolute: of sums of differences of probabilities."""

_SMALLEST_DELTA: Final = 1e-12
"""To which exact claims are computed."""

_SMALLEST_RATED: Final = 1e-9
"""Ratios are told where the claimed δ is at least this: below it they are rounding."""

_MOST_BENDS: Final = 10_000
"""A claim with more multiples of the query ε than this is compared at the first of them only."""

_MOST_ROWS: Final = 60

_SHARES: Final = (*range(SHARES // 2, LARGEST_SHARE + 1, 2), SHARES)
"""λ of sparse sessions: each makes a claim, and the least is taken."""


# Claims.


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
        curves = [_curve(tariff, whole.epsilon) for tariff in tariffs]

        def delta(epsilon: float) -> float:
            promised = math.fsum(curve(epsilon) for curve in curves) + reserve
            return min(1.0, promised, whole.delta if epsilon >= whole.epsilon else 1.0)

        bends = {whole.epsilon}.union(*(_bends(tariff, whole.epsilon) for tariff in tariffs))
        name = f"{tariffs[0].name} meter, budget ({whole.epsilon:.4g}, {whole.delta:.4g})"
        totals = [tariff.total(tariff.capacity) for tariff in tariffs if isinstance(tariff, RenyiTariff)]
        if reserve or not totals:
            return cls(name, delta, tuple(sorted(bends)), reserve=reserve)
        return cls(name, delta, tuple(sorted(bends)), tariffs[0].order, float(np.logaddexp.reduce(totals)))


def _curve(tariff: Tariff, most: float) -> Callable[[float], float]:
    """Return the δ that one meter claims, as a function of ε up to `most`."""
    match tariff:
        case RenyiTariff():
            total, order = tariff.total(tariff.capacity), tariff.order
            return lambda epsilon: math.exp(min(0.0, log_delta_of_total(total, order, epsilon)))
        case GumbelTariff():
            return functools.partial(gumbel_delta, tariff.query_epsilon, tariff.capacity)
        case ExactTariff(offset=None):
            return _level(tariff.kind, tariff.query_epsilon, tariff.capacity).delta_at
        case ExactTariff(offset=OffsetNoise() as offset):
            couplings = [Coupling.half(offset.for_computation(tariff.query_epsilon), tariff.kind)]
        case SparseTariff(offset=offset):
            shares = (SHARES,) if offset.noise == "geometric" else _SHARES
            couplings = [Coupling(offset, share) for share in shares]
    hits = tariff.capacity
    curves = [coupling.after_first_move(hits, coupling.questions(hits, most)) for coupling in couplings]
    return lambda epsilon: min(curve(epsilon) for curve in curves)


def _bends(tariff: Tariff, most: float) -> set[float]:
    """Return where a claim bends: multiples of the query ε, after an offset's first move; else a few points."""
    step = tariff.query_epsilon if isinstance(tariff, ExactTariff) else 0.05
    moved = tariff.offset.offset_epsilon / 2 if isinstance(tariff, ExactTariff) and tariff.offset else 0.0
    multiples = step * np.arange(min(_MOST_BENDS, math.ceil((most + moved) / step)) + 1)
    return {min(most, abs(float(point))) for point in np.append(multiples - moved, multiples + moved)}


@functools.lru_cache(maxsize=256)
def _level(kind: Kind, query_epsilon: float, hits: int) -> Level:
    *_, last = Lattice.for_hits(kind, query_epsilon, hits, _SMALLEST_DELTA).levels(hits)
    return last


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
    offset_epsilon: float | None = None,
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
        offset_epsilon: as for a session.
    """
    checks.choice(meter, "meter", ("exact", "renyi"))
    hits, delta = checks.hits(hits), checks.positive_delta(delta)
    chosen = alternatives or targets or NotPrior(prior=False)
    members = [chosen] if isinstance(chosen, Target) else list(chosen)
    share = delta / len(alternatives or "1") * (1 - 1e-9)
    if meter == "renyi":
        examples = members if alternatives else members[:1]
        whole = max(_renyi_epsilon(target, query_epsilon, hits, share, offset_epsilon) for target in examples)
    else:
        carried = offset_epsilon is not None
        kinds = [(target.with_offset() if carried else target).kind(query_epsilon) for target in members]
        unions = kinds if alternatives else [functools.reduce(Kind.__or__, kinds)]
        whole = max(_exact_epsilon(kind, query_epsilon, hits, share, offset_epsilon) for kind in unions)
    return functools.partial(
        Session,
        None,
        Budget(whole * (1 + 1e-9), delta + computation_delta * (1 + 1e-9)),
        query_epsilon,
        meter=meter,
        targets=targets,
        alternatives=alternatives,
        computation_delta=computation_delta,
        offset_epsilon=offset_epsilon,
    )


def _exact_epsilon(kind: Kind, query_epsilon: float, hits: int, delta: float, offset: float | None) -> float:
    if offset is None:
        return _level(kind, query_epsilon, hits).epsilon_at(delta)
    coupling = Coupling.half(OffsetNoise(offset, 2 * query_epsilon), kind)
    whole = coupling.epsilon(hits, delta)
    while coupling.hits(Budget(whole, delta)) < hits:  # on a lattice that is made for a budget
        whole *= 1.001
    return whole


def _renyi_epsilon(target: Target, query_epsilon: float, hits: int, delta: float, offset: float | None) -> float:
    natural = renyi_epsilon(target, query_epsilon, hits, delta)
    if offset is None:
        return natural

    def covers(whole: float) -> bool:
        return RenyiSession(Budget(whole, delta), target).affords(query_epsilon, hits, offset)

    free = renyi_epsilon(target.with_offset(), query_epsilon, hits, delta)
    least = smallest_real(covers, free, max(free, natural) + offset, 1e-9)
    return least * (1 + 1e-6)  # the order is best without an offset, and found to about as many digits


def sparse_opener(query_epsilon: float, hits: int, delta: float = 0.0) -> Opened:
    """Return a function that opens sparse sessions, in memory and without data, that have just this many hits.

    Args:
        query_epsilon: of the session.
        hits: of at-least questions.
        delta: of its budget; with 0 the noise is geometric, else Gumbel's.
    """
    hits, delta = checks.hits(hits), checks.delta(delta)
    noise: Noise = "gumbel" if delta else "geometric"
    whole = whole_epsilon(hits ** (1 / 3) * query_epsilon, query_epsilon, hits, delta, noise, "at least")
    budget, query = Budget(whole * (1 + 1e-9), delta), query_epsilon if delta else None
    return functools.partial(Session, None, budget, query, hits=hits, meter="sparse")


# Verdicts.


def judge(views: Views, claim: Claim | Running, worst: str = "") -> Verdict:
    """Return whether a game tells more than is claimed, both directions, and where it comes closest.

    The true curve δ(ε) is linear in e^ε between the losses of the views, and an exact claim between multiples of
    the query ε: all these are compared (of the claim's the first 10,000), and points half way. A moment is
    compared at its order.

    Args:
        views: of the game.
        claim: of the session, or one shown while it goes on.
        worst: the game, in words.
    """
    match claim:
        case Running():
            return _judge_running(views, claim, worst or claim.name)
        case Claim():
            by_curve = _judge_curve(views, claim, worst or claim.name)
            if claim.order is None:
                return by_curve
            by_moment = _judge_moment(views, claim, claim.order, by_curve)
            return max(by_curve, by_moment, key=lambda verdict: (not verdict.passed, verdict.ratio))
        case _:
            raise InvalidParameter("claim", claim, "Claim.of(session), or a Running claim")


def _judge_curve(views: Views, claim: Claim, worst: str) -> Verdict:
    points = _points(views, claim)
    attained = hockey_stick(views, points)
    most = np.array([claim.delta(float(point)) for point in points])
    claimed = np.where(most < 1, np.maximum(0.0, most - _unspent(views, claim)), most)
    rated = np.maximum(0.0, attained - _NOISE) / np.maximum(claimed, _SMALLEST_RATED)
    ratios = np.where(claimed >= _SMALLEST_RATED, rated, 0.0)
    beyond = attained - claimed * (1 + ROUNDING) - _NOISE
    place = int(ratios.argmax())
    if beyond.max() > 0 and beyond[place] <= 0:  # only where the claim is too small for a ratio
        place = int(beyond.argmax())
    rows = np.unique(np.linspace(0, len(points) - 1, _MOST_ROWS).round().astype(int))
    return Verdict(
        passed=bool(beyond.max() <= 0),
        mode="exact",
        quantity="delta",
        claimed=float(claimed[place]),
        attained=float(attained[place]),
        at=float(points[place]),
        runs=views.paths,
        worst=worst,
        curve=tuple((float(points[row]), float(claimed[row]), float(attained[row])) for row in rows),
    )


def _unspent(views: Views, claim: Claim) -> float:
    """Return how much of the δ that is kept for computations is left in every view."""
    if not claim.reserve:
        return 0.0
    spent = max((from_grains(totals.delta) for view in views.seen for totals, _, _ in view.meters), default=0.0)
    return max(0.0, claim.reserve - spent) * (1 - ROUNDING)


def _points(views: Views, claim: Claim) -> NDArray[np.float64]:
    """Return every ε at which one of the two curves bends, and points between."""
    bends = np.unique(np.concatenate(([0.0], np.abs(losses(views)), claim.bends)))
    bends = bends[bends <= max(claim.bends) + ROUNDING]
    return np.unique(np.append(bends, (bends[1:] + bends[:-1]) / 2))


def _judge_moment(views: Views, claim: Claim, order: float, by_curve: Verdict) -> Verdict:
    attained = moment(views, order)
    return replace(
        by_curve,
        passed=attained <= claim.total * (1 + ROUNDING) + _NOISE,
        quantity="moment",
        claimed=claim.total,
        attained=attained,
        at=order,
    )


def _judge_running(views: Views, claim: Running, worst: str) -> Verdict:
    """Return whether E[(1 - e^{shown - L})₊] ≤ δ; reported as a δ, at the largest ε shown."""
    shown = np.array([claim.epsilon(view) for view in views.seen])
    attained, delta = float(excess(views, shown)), claim.delta(views)
    return Verdict(
        passed=attained <= delta * (1 + ROUNDING) + _NOISE,
        mode="exact",
        quantity="delta",
        claimed=delta,
        attained=attained,
        at=float(shown.max()),
        runs=views.paths,
        worst=worst,
    )
