"""Leaves: the single values inside a published thing, by where they are.

>>> leaves(("a", (2, 3.5)))
{(0,): 'a', (1, 0): 2, (1, 1): 3.5}
>>> lowest_bit(12), lowest_bit(0.75), lowest_bit(0)
(2, -2, None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

Path = tuple[int, ...]

MOST_LEAVES: Final = 256
"""Further values of a long transcript are looked at only together."""


def leaves(value: Hashable) -> dict[Path, Hashable]:
    """Return the values inside nested tuples, the first few hundred; a thing that is no tuple is its own leaf."""
    found: dict[Path, Hashable] = {}
    _collect(value, (), found)
    return found


def _collect(value: Hashable, path: Path, found: dict[Path, Hashable]) -> None:
    if isinstance(value, tuple):
        for index, member in enumerate(value):
            if len(found) >= MOST_LEAVES:
                return
            _collect(member, (*path, index), found)
    else:
        found[path] = value


def number(value: object) -> float | None:
    """Return a number as a float, None if it is none (True is none) or too large."""
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def lowest_bit(value: object) -> int | None:
    """Return the exponent of the lowest bit that is set: of x = odd·2^k, k. None for 0 and no number.

    Noise in floating point leaves the true value in the low bits of the sum (Mironov 2012): what was added to 0
    has finer bits than what was added to 1.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return None
    try:
        top, bottom = value.as_integer_ratio()
    except OverflowError:  # an infinity
        return None
    return (top & -top).bit_length() - bottom.bit_length()
