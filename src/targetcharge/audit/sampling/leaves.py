"""Leaves: the single values inside a published thing, by where they are.

>>> leaves(("a", (2, 3.5)))
{(0,): 'a', (1, 0): 2, (1, 1): 3.5}
>>> lowest_bit(12), lowest_bit(0.75), lowest_bit(0)
(2, -2, None)
>>> label(0.0) == label(-0.0), label(1) == label(True), forms(("a", (2, 3)))
(False, False, {(): ('tuple', 2), (1,): ('tuple', 2)})
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable

Path = tuple[int, ...]

MOST_LEAVES: Final = 512
"""Further values of a long transcript are not looked at, but as a part of everything that is published."""


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


def forms(value: Hashable) -> dict[Path, tuple[str, int]]:
    """Return the kind and the length of each collection inside, the first few hundred."""
    found: dict[Path, tuple[str, int]] = {}
    _forms(value, (), found)
    return found


def _forms(value: Hashable, path: Path, found: dict[Path, tuple[str, int]]) -> None:
    if isinstance(value, tuple) and len(found) < MOST_LEAVES:
        found[path] = form(value)
        for index, member in enumerate(value):
            _forms(member, (*path, index), found)


_SHOWN: Final = {"Listed": "list", "Mapped": "dict", "Arrayed": "array"}


def form(value: tuple[Hashable, ...]) -> tuple[str, int]:
    """Return the kind and the length of a collection."""
    kind = type(value).__name__
    return _SHOWN.get(kind, kind), len(value)


def label(value: Hashable) -> tuple[Hashable, Hashable]:
    """Return a value with its looks: what Python calls equal and looks different has different labels."""
    kind = type(value)
    if (kind is float or issubclass(kind, np.floating)) and value == 0 and math.copysign(1, value) < 0:
        return value, f"-0.0 {kind.__name__}"
    return value, kind


def number(value: object) -> float | None:
    """Return a number as a float, None if it is none (True and NaN are none) or too large."""
    if type(value) is float:
        return None if math.isnan(value) else value
    if isinstance(value, np.floating | np.integer):
        return number(float(value))
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
    if isinstance(value, np.floating | np.integer):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return None
    try:
        top, bottom = value.as_integer_ratio()
    except (OverflowError, ValueError, AttributeError):  # an infinity, NaN, a float longer than Python's
        return None
    return (top & -top).bit_length() - bottom.bit_length()
