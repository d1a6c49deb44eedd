"""Words: an answer as a reader likes it.

>>> from targetcharge.ledger.answer import Answer
>>> hit = Answer(5012, True, 1.0, 3, "count(*) by county >= 100", key="Kent", interval=(4990, 5034))
>>> sentence(hit)
'count(*) by county >= 100, Kent: 5,012 (95% interval: 4,990 to 5,034), a hit, which costs 1'
>>> sentence(Answer(None, False, 0.0, 4, "count(*) >= 9000", question='{"what":{"count":null},"above":9000}'))
'count(*) >= 9000: below the threshold, free'
>>> sentence(Answer(5012, True, 0.0, 3, "count(*) >= 100", repeat=True))
'count(*) >= 100: 5,012, published before, free'
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from targetcharge import markup
from targetcharge.outcomes import BOUNDARY, UNCHANGED, to_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.ledger.answer import Answer, Interval

_LONGEST: Final = 80
PICKED: Final = "picked"
"""What an answer says that names a key, and tells no number of it."""
REPEAT: Final = "published before, free"
"""What an answer cost that was published when the same question was asked before."""


def outcome(answer: Answer) -> str:
    """Return what an answer published, cut to a line."""
    if answer.outcome is None:
        if answer.hit and '"picks":' in answer.question:
            return PICKED
        return "below the threshold" if '"above":' in answer.question else "nothing"
    if isinstance(answer.outcome, bool):
        return "yes" if answer.outcome else "no"
    if answer.outcome is UNCHANGED:
        return f"unchanged from {markup.number(answer.prior)}"
    if isinstance(answer.outcome, tuple) and '"histogram":' in answer.question:
        return markup.counted(len(answer.outcome), "count")
    return "too close to call" if answer.outcome is BOUNDARY else line(answer.outcome)


def key(answer: Answer) -> str:
    """Return the key of an answer, or the candidate of a selection that has none; empty if there is neither."""
    if answer.key is not None:
        return " · ".join(map(line, answer.key if isinstance(answer.key, tuple) else (answer.key,)))
    return "" if answer.candidate is None else f"candidate {answer.candidate}"


def line(value: object, longest: int = _LONGEST, write: Callable[[object], str] = markup.number) -> str:
    """Return a value cut to a line; in hexadecimal if Python refuses to write it in decimal."""
    try:
        return markup.cut(write(value), longest)
    except ValueError:
        return markup.cut(json.dumps(to_plain(value)), longest)


def with_interval(published: str, interval: Interval | None) -> str:
    """Return what was published with its interval, if it has one."""
    ends = markup.interval(interval)
    return f"{published} (95% interval: {ends})" if ends else published


def cost(price: float, *, hit: bool, repeat: bool = False) -> str:
    """Return what an answer cost; of the numbers of one hit the first has its price."""
    if repeat:
        return REPEAT
    if not hit:
        return "free"
    return f"a hit, which costs {price:.4g}" if price else "of the same hit"


def sentence(answer: Answer) -> str:
    """Return question, key, outcome, interval and cost, in a line."""
    about = ", ".join(filter(None, (answer.algorithm, key(answer)))) or f"answer {answer.seq}"
    charged = cost(answer.price, hit=answer.hit, repeat=answer.repeat)
    return f"{about}: {with_interval(outcome(answer), answer.interval)}, {charged}"
