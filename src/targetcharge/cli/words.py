"""Words: numbers and moments as a reader likes them. The report's templates use them as filters.

>>> small(1e-6), small(2.5e-9), times(0.5), times(30.0), epsilon(7.9801), epsilon(12345.6)
('10⁻⁶', '2.5 × 10⁻⁹', '1.65', '1.07 × 10¹³', '7.981', '12,346')
>>> chance(0.25), chance(0.0035), chance(2.4e-5), share(1, 8), several([1, 2, 30]), moment(0.0)
('25%', '0.35%', '1 in 42,000', '12%', '1 to 30', '1970-01-01 00:00:00')
>>> instant(0.0, 30 * 86_400), instant(0.0, 7200), instant(0.0, 90)
('1 Jan 1970', '1 Jan 00:00', '00:00:00')
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from targetcharge import markup

if TYPE_CHECKING:
    from collections.abc import Sequence

_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MOST_LISTED: Final = 20
_LARGEST: Final = 700.0  # an ε of which the factor is still a number; nobody has a larger one


def small(value: float) -> str:
    """Return a number, a tiny one with its power of ten."""
    digits, _, exponent = f"{value:.3g}".partition("e")
    if not exponent:
        return digits
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    return power if digits == "1" else f"{digits} × {power}"


def times(exponent: float) -> str:
    """Return the factor that an ε stands for, rounded up."""
    factor = math.exp(min(exponent, _LARGEST))
    if factor >= 1e6:
        power = math.floor(math.log10(factor))
        return f"{math.ceil(100 * factor / 10.0**power) / 100:g} × 10{str(power).translate(_RAISED)}"
    digits = 2 if factor < 100 else 0
    return f"{math.ceil(factor * 10**digits) / 10**digits:,.{digits}f}"


def epsilon(value: float) -> str:
    """Return an ε' with three or four digits, rounded up."""
    digits = 3 if value < 10 else 2 if value < 100 else 1 if value < 1000 else 0
    shown = round(value, digits)
    return f"{shown if shown >= value else shown + 10.0**-digits:,.{digits}f}"


def chance(value: float) -> str:
    """Return a probability in percent; a very small one as one in so many."""
    if value >= 1e-4:
        return f"{100 * value:.2g}%" if value < 0.995 else f"{100 * value:.4g}%"
    return f"1 in {float(f'{1 / value:.2g}'):,.0f}" if value > 1e-12 else "almost none"


def share(part: int, whole: int) -> str:
    """Return a part of a whole in percent."""
    return f"{100 * part / whole:.0f}%" if whole else "0%"


def listed(parts: Sequence[str]) -> str:
    """Return the first few of many, and how many more there are."""
    more = f" and {len(parts) - _MOST_LISTED:,} more" if len(parts) > _MOST_LISTED else ""
    return ", ".join(parts[:_MOST_LISTED]) + more


def several(values: Sequence[float]) -> str:
    """Return a value or, of several in order, the range; a dash for none."""
    ends = map(markup.number, (*values[:1], *values[-1:]))
    return " to ".join(dict.fromkeys(ends)) or "–"


def moment(seconds: float) -> str:
    """Return a moment in universal time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def instant(seconds: float, span: float) -> str:
    """Return a moment as precisely as a time line of so many seconds needs it."""
    at = datetime.fromtimestamp(seconds, UTC)
    if span >= 4 * 86_400:
        return f"{at.day} {at:%b %Y}"
    return f"{at.day} {at:%b %H:%M}" if span >= 600 else f"{at:%H:%M:%S}"
