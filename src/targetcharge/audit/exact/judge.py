"""Judging: what can be told from a game against what its session claims.

>>> from targetcharge.audit.exact import Claim, explore, judge, opener, response
>>> opened = opener(1.0, hits=1)
>>> def game(player):
...     for _ in range(14):
...         free, hit = (False, True) if player.loss < 1 else (True, False)
...         player.test(player.algorithm(response(1.0, free, hit), 1.0))
>>> verdict = judge(explore(opened, game), Claim.of(opened()))
>>> verdict.passed, verdict.quantity, verdict.at, verdict.ratio > 0.999
(True, 'delta', 1.0, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.audit.exact.claims import Claim, Running
from targetcharge.audit.exact.views import hockey_stick, losses, moment
from targetcharge.audit.verdict import Verdict
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.audit.exact.views import Views

ROUNDING: Final = 1e-9
"""Relative: of claims, which are upper bounds, and of sums of products of probabilities."""

_NOISE: Final = 1e-13
"""Absolute: of sums of differences of probabilities."""

_SMALLEST: Final = 1e-9
"""Ratios are told where the claimed δ is at least this: below it they are rounding."""

_MOST_ROWS: Final = 60


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
            return _running(views, claim, worst)
        case Claim():
            told = _curve(views, claim, worst)
            if claim.order is None:
                return told
            found = _moment(views, claim, worst, told.curve)
            return max(told, found, key=lambda verdict: (not verdict.passed, verdict.ratio))
        case _:
            raise InvalidParameter("claim", claim, "Claim.of(session), or a Running claim")


def _curve(views: Views, claim: Claim, worst: str) -> Verdict:
    points = _points(views, claim)
    told = hockey_stick(views, points)
    most = np.array([claim.delta(float(point)) for point in points])
    claimed = np.where(most < 1, np.maximum(0.0, most - _unspent(views, claim)), most)
    ratios = np.where(claimed >= _SMALLEST, np.maximum(0.0, told - _NOISE) / np.maximum(claimed, _SMALLEST), 0.0)
    beyond = told - claimed * (1 + ROUNDING) - _NOISE
    place = int(ratios.argmax())
    if beyond.max() > 0 and beyond[place] <= 0:  # only where the claim is too small for a ratio
        place = int(beyond.argmax())
    rows = np.unique(np.linspace(0, len(points) - 1, _MOST_ROWS).round().astype(int))
    return Verdict(
        passed=bool(beyond.max() <= 0),
        mode="exact",
        quantity="delta",
        claimed=float(claimed[place]),
        attained=float(told[place]),
        at=float(points[place]),
        runs=views.paths,
        worst=worst or claim.name,
        curve=tuple((float(points[row]), float(claimed[row]), float(told[row])) for row in rows),
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


def _moment(views: Views, claim: Claim, worst: str, rows: tuple[tuple[float, float, float], ...]) -> Verdict:
    order = claim.order or 0.0
    told = moment(views, order)
    return Verdict(
        passed=told <= claim.total * (1 + ROUNDING) + _NOISE,
        mode="exact",
        quantity="moment",
        claimed=claim.total,
        attained=told,
        at=order,
        runs=views.paths,
        worst=worst or claim.name,
        curve=rows,
    )


def _running(views: Views, claim: Running, worst: str) -> Verdict:
    """Return whether E[(1 - e^{shown - L})₊] ≤ δ; reported as a δ, at the largest ε shown."""
    shown = np.array([claim.epsilon(view) for view in views.seen])
    first, second = views.weights.T
    told = max(
        float(np.maximum(0.0, one - np.exp(shown) * other).sum())
        for one, other in ((first, second), (second, first))
    )
    delta = claim.delta(views)
    return Verdict(
        passed=told <= delta * (1 + ROUNDING) + _NOISE,
        mode="exact",
        quantity="delta",
        claimed=delta,
        attained=told,
        at=float(shown.max()),
        runs=views.paths,
        worst=worst or claim.name,
    )
