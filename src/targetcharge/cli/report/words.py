"""Words: numbers, moments and outcomes as a reader likes them.

>>> small(1e-6), small(2.5e-9), small(0.0)
('10⁻⁶', '2.5 × 10⁻⁹', '0')
>>> counted(1, "hit"), counted(1200, "hit")
('1 hit', '1,200 hits')
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from targetcharge import markup
from targetcharge.accounting.targets.plain import in_words
from targetcharge.errors import shown
from targetcharge.ledger.plain import to_plain
from targetcharge.outcomes import BOUNDARY, UNCHANGED, Mark

if TYPE_CHECKING:
    from targetcharge.ledger import Answer, Terms

_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MOST: Final = 80
_LARGEST: Final = 700.0
"""An ε of which the factor is still a number; nobody has a larger one."""

_CALLS: Final = {
    "release": "it is released",
    "revise": "it is released",
    **dict.fromkeys(("select", "select ended", "select broke"), "it is among the largest"),
}
_PRIORS: Final[dict[object, str]] = {
    None: "a value is published",
    UNCHANGED: "it has changed",
    True: "it is not “yes”",
    False: "it is not “no”",
}


def small(value: float) -> str:
    """Return a number, a tiny one with its power of ten."""
    digits, _, exponent = f"{value:.3g}".partition("e")
    if not exponent:
        return digits
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    return power if digits == "1" else f"{digits} × {power}"


def times(exponent: float) -> str:
    """Return the factor that an ε stands for, rounded up.

    >>> times(0.5), times(8.0), times(30.0)
    ('1.65', '2,981', '1.07 × 10¹³')
    """
    factor = math.exp(min(exponent, _LARGEST))
    if factor >= 1e6:
        power = math.floor(math.log10(factor))
        return f"{math.ceil(100 * factor / 10.0**power) / 100:g} × 10{str(power).translate(_RAISED)}"
    digits = 2 if factor < 100 else 0
    return f"{math.ceil(factor * 10**digits) / 10**digits:,.{digits}f}"


def epsilon(value: float) -> str:
    """Return an ε' with three or four digits, rounded up.

    >>> epsilon(7.9801), epsilon(12345.6)
    ('7.981', '12,346')
    """
    digits = 3 if value < 10 else 2 if value < 100 else 1 if value < 1000 else 0
    shown = round(value, digits)
    return f"{shown if shown >= value else shown + 10.0**-digits:,.{digits}f}"


def chance(value: float) -> str:
    """Return a probability in percent; a very small one as one in so many.

    >>> chance(0.25), chance(0.0035), chance(2.4e-5)
    ('25%', '0.35%', '1 in 42,000')
    """
    if value >= 1e-4:
        return f"{100 * value:.2g}%" if value < 0.995 else f"{100 * value:.4g}%"
    return f"1 in {float(f'{1 / value:.2g}'):,.0f}" if value > 1e-12 else "almost none"


def share(part: int, whole: int) -> str:
    """Return a part of a whole.

    >>> share(1, 8), share(0, 8), share(9, 8)
    ('12%', '0%', '112%')
    """
    return f"{100 * part / whole:.0f}%" if whole else "0%"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number of things."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def budget(terms: Terms) -> str:
    """Return the budget as a pair."""
    return f"({terms.epsilon:g}, {small(terms.delta)})"


def moment(seconds: float) -> str:
    """Return a moment in universal time.

    >>> moment(0.0)
    '1970-01-01 00:00:00'
    """
    return _at(seconds).strftime("%Y-%m-%d %H:%M:%S")


def instant(seconds: float, span: float) -> str:
    """Return a moment as precisely as a time line of so many seconds needs it.

    >>> instant(0.0, 30 * 86_400), instant(0.0, 7200), instant(0.0, 90)
    ('1 Jan 1970', '1 Jan 00:00', '00:00:00')
    """
    at = _at(seconds)
    if span >= 4 * 86_400:
        return f"{at.day} {at:%b %Y}"
    return f"{at.day} {at:%b %H:%M}" if span >= 600 else f"{at:%H:%M:%S}"


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def costs(answer: Answer) -> str:
    """Return when the question of an answer costs.

    >>> from targetcharge.ledger import Answer
    >>> costs(Answer(5, True, 1.0, 1, targets=(("NotPrior", None),)))
    'a value is published'
    >>> costs(Answer("yes", True, 1.0, 1, targets=(("NotPrior", "no"),)))
    "it is not 'no'"
    """
    if answer.call != "ask":
        return _CALLS[answer.call]
    match answer.targets:
        case [("Everything",)]:
            return "always"
        case [("Boundary", *_)]:
            return "it is too close to call"
        case [("Disagreement",)]:
            return "two runs differ"
        case [("Between", *_)]:
            return "it lies in the band"
        case [("QTarget", *_)]:
            return "it is in the target"
        case [("NotPrior", prior)]:
            named = prior is None or isinstance(prior, bool | Mark)
            return _PRIORS[prior] if named and prior in _PRIORS else f"it is not {shown(prior)}"
        case [("NotPrior",)]:
            return "it is not what is expected of it"
        case _:
            return in_words(*answer.targets)


def said(answer: Answer) -> str:
    """Return what an answer published, cut to a line; in hexadecimal if Python refuses to write it in decimal."""
    outcome = answer.outcome
    if outcome is None:
        return "nothing"
    if outcome is BOUNDARY:
        return "too close to call"
    if outcome is UNCHANGED:
        return f"unchanged from {markup.number(answer.prior)}"
    if isinstance(outcome, bool):
        return "yes" if outcome else "no"
    return _cut(outcome)


def key_of(answer: Answer) -> str:
    """Return the key of an answer, or the candidate of a selection that has none; empty if there is neither."""
    if isinstance(answer.key, tuple):
        return " · ".join(map(_cut, answer.key))
    if answer.key is not None:
        return _cut(answer.key)
    return "" if answer.candidate is None else f"candidate {answer.candidate}"


def _cut(value: object) -> str:
    try:
        shown = markup.number(value)
    except ValueError:
        shown = json.dumps(to_plain(value))
    return shown if len(shown) <= _MOST else shown[: _MOST - 1] + "…"


def interval_of(answer: Answer) -> str:
    """Return where the true value lies, in at least 95% of all answers; empty if it says nothing of it."""
    return markup.interval(answer.interval)
