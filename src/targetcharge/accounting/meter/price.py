"""Prices of hits, and the errors of what has none.

>>> Price(2, 2.0, ("hits",)).value
2.0
>>> from targetcharge.accounting.exchange import PaidRates
>>> raise not_covered("this meter", Pure(3.0), PaidRates(0.1, 0.2))
Traceback (most recent call last):
targetcharge.errors.NotAllowed: this meter has no price for this computation: it has epsilon 3, for which its hits
do not pay: one pays for epsilon up to 0.1. Make it more private, or open the session with meter='renyi'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from targetcharge import checks
from targetcharge.accounting.budget import largest_query_epsilon
from targetcharge.accounting.curves import BoundedRange, Gaussian, Pure
from targetcharge.errors import InvalidParameter, NotAllowed, Setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.curves import Curve
    from targetcharge.accounting.exchange import PaidRates
    from targetcharge.accounting.offsets import OffsetNoise


@dataclass(frozen=True)
class Price:
    """What one hit costs.

    Attributes:
        grains: the whole number that the meter counts, at least 1.
        value: for people: 1.0 hit, or κ.
        scale: what a grain is: (query ε, kind) for exact accounting, (order,) for Rényi accounting. A meter
            refuses a price of another scale.
    """

    grains: int
    value: float
    scale: tuple[object, ...]


def check_query(epsilon: float, query_epsilon: float) -> float:
    """Return the ε of a computation; refuse one above the declared query ε."""
    if epsilon > query_epsilon:
        sentence = (
            f"this computation has epsilon {epsilon:g}, above the declared query_epsilon"
            f" {query_epsilon:g}: make it more private, or open the session with "
        )
        raise NotAllowed(sentence, Setting("meter", "renyi"))
    return epsilon


def not_covered(whose: str, curve: Curve, rates: PaidRates) -> NotAllowed:
    """Return the error of a computation whose every outcome is paid for, and that a meter has no price for.

    Args:
        whose: the meter, in words.
        curve: what one run of the computation may tell.
        rates: what one hit pays for.
    """
    sentence, dear = f"{whose} has no price for this computation:", "for which its hits do not pay"
    match curve:
        case Pure():
            why = f"epsilon {curve.epsilon:.4g}, {dear}: one pays for epsilon up to {rates.pure:.4g}"
        case BoundedRange():
            why = f"{curve}, {dear}: one pays for a range up to {rates.bounded_range:.4g}"
        case Gaussian() if rates.shift is not None:
            why = f"{curve}, {dear}"
        case _:
            why = f"{curve}, and neither an epsilon nor a bounded range"
            return NotAllowed(f"{sentence} it has {why}. Open the session with ", Setting("meter", "renyi"))
    instead = "Make it more private, or open the session with "
    return NotAllowed(f"{sentence} it has {why}. {instead}", Setting("meter", "renyi"))


def no_room(budget: Budget, offset: OffsetNoise) -> InvalidParameter:
    """Return the error of an offset beside which a budget covers no hit, though it does without."""
    expected = f"smaller: beside it ({budget.epsilon:g}, {budget.delta:g}) covers no hit"
    return InvalidParameter("offset_epsilon", offset.offset_epsilon, expected)


def too_small(
    budget: Budget, query_epsilon: float, one_hit: Callable[[float], float], otherwise: str = ""
) -> InvalidParameter:
    """Return the error of a budget that does not cover one hit, with the query ε that would work.

    Args:
        budget: of the whole session.
        query_epsilon: what was asked for.
        one_hit: the ε' of a session with one hit as a function of the query ε.
        otherwise: what else would work.
    """
    largest = largest_query_epsilon(lambda query: one_hit(query) <= budget.epsilon, query_epsilon)
    if largest is None:
        advice = f"smaller than {checks.MIN_QUERY_EPSILON:g}, which is useless: raise the budget"
    else:
        advice = f"at most {largest:.3g}, or the budget larger"
    cost = f"({one_hit(query_epsilon):.4g}, {budget.delta:g})"
    sentence = f"{advice}: one hit costs {cost} and the budget is ({budget.epsilon:g}, {budget.delta:g})"
    return InvalidParameter("query_epsilon", query_epsilon, sentence + otherwise)
