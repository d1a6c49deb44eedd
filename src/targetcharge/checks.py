"""Checks of parameters: each names the parameter, refuses NaN, and returns the value it was given.

>>> query_epsilon(0.1)
0.1
>>> delta(1.5)
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: delta is 1.5; it must be a number in [0, 1)
"""

from __future__ import annotations

import math
import numbers
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_QUERY_EPSILON = 10.0
"""Above this a single answer is all but the truth (odds of e^10 = 22026 to 1)."""

MIN_QUERY_EPSILON = 1e-9
"""Below this a computation says nothing that double precision could account for."""

MAX_EPSILON = 1e4
"""A guarantee above this is none."""

MAX_HITS = 10**15
"""More hits than any session will have, few enough that all sums are exact in double precision."""

MIN_Q = 1e-12
"""A target that hits more rarely has no useful guarantee."""

MAX_THRESHOLD = 2.0**53
"""Counts and thresholds beyond this are not exact in double precision."""

MIN_DELTA = 1e-90
"""The certified computations carry an absolute floor of 1e-100."""

_PERCENT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(?:%|percent)")


def real(value: float, name: str, expected: str) -> float:
    """Return a real number as a float; refuse text, complex numbers, booleans and NaN."""
    plain = type(value) is float  # the common case, and asking the number tower takes ten times as long
    if not plain and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        raise InvalidParameter(name, value, expected)
    try:
        number = float(value)
    except OverflowError:
        raise InvalidParameter(name, value, expected) from None
    if math.isnan(number):
        raise InvalidParameter(name, value, expected)
    return number


def fitting(value: float, name: str, expected: str, fits: Callable[[float], bool]) -> float:
    """Return a real number as a float; refuse what does not fit."""
    number = real(value, name, expected)
    if not fits(number):
        raise InvalidParameter(name, value, expected)
    return number


def query_epsilon(
    value: float,
    name: str = "query_epsilon",
    most: float = MAX_QUERY_EPSILON,
    what: str = "one computation",
) -> float:
    """Return the ε of one computation, in [1e-9, most]."""
    expected = f"a number from {MIN_QUERY_EPSILON:g} to {most:g}, the ε of {what}"
    return fitting(value, name, expected, lambda number: MIN_QUERY_EPSILON <= number <= most)


def epsilon(value: float, name: str = "epsilon") -> float:
    """Return the ε of a whole interaction: above 0 and at most 10,000."""
    expected = f"finite, above 0 and at most {MAX_EPSILON:g}"
    return fitting(value, name, expected, lambda number: 0 < number <= MAX_EPSILON)


def epsilon_or_zero(value: float, name: str = "epsilon") -> float:
    """Return the ε of a whole interaction where 0 is allowed: from 0 to 10,000."""
    expected = f"finite, at least 0 and at most {MAX_EPSILON:g}"
    return fitting(value, name, expected, lambda number: 0 <= number <= MAX_EPSILON)


def delta(value: float, name: str = "delta") -> float:
    """Return a δ in [0, 1)."""
    return fitting(value, name, "a number in [0, 1)", lambda number: 0 <= number < 1)


def positive_delta(value: float, name: str = "delta") -> float:
    """Return a δ in [1e-90, 1): with δ = 0 misses are free on sparse meters alone."""
    expected = f"at least {MIN_DELTA:g}: with delta 0 misses are free on a table's sparse meter only"
    delta(value, name)
    return fitting(value, name, expected, lambda number: number >= MIN_DELTA)


def share_of_delta(value: float, name: str = "delta") -> float:
    """Return a part of a δ, for bounds in closed form: above 0 and below 1."""
    expected = "above 0: this bound grows without limit as it falls"
    delta(value, name)
    return fitting(value, name, expected, lambda number: number > 0)


def hits(value: int, name: str = "hits") -> int:
    """Return a number of hits: an integer from 1 to 10^15."""
    plain = type(value) is int
    if not plain and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
        raise InvalidParameter(name, value, "an integer of at least 1")
    if not 1 <= value <= MAX_HITS:
        raise InvalidParameter(name, value, f"an integer from 1 to {MAX_HITS:,}")
    return int(value)


def q(value: float, name: str = "q") -> float:
    """Return the q of a target, in (0, 1] and no smaller than 1e-12."""
    expected = f"a number in (0, 1], and at least {MIN_Q:g} to be of use"
    return fitting(value, name, expected, lambda number: MIN_Q <= number <= 1)


def order(value: float, name: str = "order") -> float:
    """Return a Rényi order: finite and above 1."""
    return fitting(value, name, "finite and above 1", lambda number: 1 < number < math.inf)


def choice(value: str, name: str, choices: tuple[str, ...]) -> str:
    """Return one of a few words."""
    if value not in choices:
        raise InvalidParameter(name, value, "one of " + ", ".join(repr(word) for word in choices))
    return value


def threshold(value: float, name: str) -> float:
    """Return a number that a count is compared with, as it was given: from -2^53 to 2^53."""
    expected = "a number between -2^53 and 2^53, as counts are"
    number = fitting(value, name, expected, lambda number: abs(number) <= MAX_THRESHOLD)
    given: object = value
    return value if isinstance(given, numbers.Rational) else number


def positive_integer(value: int, name: str) -> int:
    """Return an integer from 1 to 10^15."""
    return hits(value, name)


def integer(value: int, name: str, least: int, most: int, what: str = "") -> int:
    """Return an integer from one to another; the error says what the other is, if that is not plain."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise InvalidParameter(name, value, f"an integer from {least} to {most:,}" + (f", {what}" if what else ""))
    return int(value)


def positive_real(value: float, name: str) -> float:
    """Return a finite number above 0, as it was given."""
    fitting(value, name, "finite and above 0", lambda number: 0 < number < math.inf)
    return value


def percent_of(text: str, value: float, name: str, expected: str) -> float:
    """Return the share of a value that a text says, whatever its sign.

    >>> percent_of("20%", -3000, "tolerance", "a share"), percent_of("2.5 percent", 1, "tolerance", "a share")
    (600, 0.025)
    """
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise InvalidParameter(name, text, expected)
    exact = abs(Fraction(value)) * Fraction(match[1]) / 100
    return int(exact) if exact.denominator == 1 else float(exact)


def flag(value: object, name: str) -> bool:
    """Return True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool):
        raise InvalidParameter(name, value, "True or False")
    return value


def function_of_data(value: object, name: str) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise InvalidParameter(name, value, "a function of the data")
