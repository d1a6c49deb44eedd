"""The one bisection, on integers and on reals; every answer is a point that was tried and found good.

>>> largest_integer(lambda n: n * n <= 200)
14
>>> largest_real(lambda x: x * x <= 2, 0.0, 2.0)
1.41421356237...
>>> smallest_real(lambda x: x * x >= 2, 0.0, 2.0)
1.41421356237...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def largest_integer(good: Callable[[int], bool], limit: int = 2**62) -> int:
    """Return the largest n ≥ 0 with `good(n)`, for a predicate that is true up to some n and false beyond.

    `good(0)` is taken as true; nothing above `limit` is tried.
    """
    low, high = 0, 1
    while high <= limit and good(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if good(middle):
            low = middle
        else:
            high = middle
    return low


def smallest_integer(good: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest good n of low … high, for a predicate that is false up to some n and true beyond.

    `good(high)` is taken as true.
    """
    return high - largest_integer(lambda less: good(high - less), high - low)


def largest_real(good: Callable[[float], bool], low: float, high: float, relative: float = 1e-12) -> float:
    """Return a good point, at most `relative` below the largest good point of [low, high].

    The predicate is true up to some point and false beyond; `good(low)` is taken as true.
    """
    return high if good(high) else _close_in(good, low, high, relative)


def smallest_real(good: Callable[[float], bool], low: float, high: float, relative: float = 1e-12) -> float:
    """Return a good point, at most `relative` above the smallest good point of [low, high].

    The predicate is false up to some point and true beyond; `good(high)` is taken as true.
    """
    return low if good(low) else _close_in(good, high, low, relative)


def _close_in(good: Callable[[float], bool], inside: float, outside: float, relative: float) -> float:
    while abs(outside - inside) > relative * max(abs(inside), abs(outside)):
        middle = (inside + outside) / 2
        if good(middle):
            inside = middle
        else:
            outside = middle
    return inside
