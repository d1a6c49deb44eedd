"""Rounding towards more privacy.

>>> up(0.1) > 0.1 > down(0.1)
True
>>> quotient_down(1.0, 3) < Fraction(1, 3)
True
>>> from_grains(grains_up(0.1)) >= 0.1 >= from_grains(grains_down(0.1))
True
"""

from __future__ import annotations

import math
from fractions import Fraction

SLACK = 2.0**-48
"""A relative margin (32 units in the last place) that covers the rounding of a short closed formula."""

GRAINS = 1 << 128
"""Meters count in whole grains of 2^-128: sums are exact, in any order, for any number of charges."""


def up(value: float) -> float:
    """Return an upper bound of a non-negative value computed with a few rounded operations."""
    return value * (1 + SLACK)


def down(value: float) -> float:
    """Return a lower bound of a non-negative value computed with a few rounded operations."""
    return value * (1 - SLACK)


def quotient_down(value: float, divisor: int) -> float:
    """Return the largest double that is at most value/divisor."""
    exact = Fraction(value) / divisor
    quotient = float(exact)
    return math.nextafter(quotient, 0.0) if quotient > exact else quotient


def grains_up(value: float) -> int:
    """Return the smallest whole number of grains that is at least the value."""
    return math.ceil(Fraction(value) * GRAINS)


def grains_down(value: float) -> int:
    """Return the largest whole number of grains that is at most the value."""
    return math.floor(Fraction(value) * GRAINS)


def from_grains(grains: int) -> float:
    """Return grains as a float, for display."""
    return float(Fraction(grains, GRAINS))
