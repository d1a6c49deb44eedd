"""How large the samples and loops of the tests are: one knob, the environment variable TARGETCHARGE_LONG.

Unset (or 0), the whole run takes minutes; set to 1 (`make test-long`), every loop has its full length.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

Value = TypeVar("Value")

LONG = os.environ.get("TARGETCHARGE_LONG", "0") not in {"", "0"}


def size(quick: int, long: int) -> int:
    """Return how many of something a test takes: `quick`, or `long` in a long run."""
    return long if LONG else quick


def spread(values: Iterable[Value], quick: int) -> list[Value]:
    """Return all values in a long run, else `quick` of them, evenly spread from the first to the last.

    >>> spread(range(10), 4) if not LONG else [0, 3, 6, 9]
    [0, 3, 6, 9]
    """
    listed = list(values)
    if LONG or quick >= len(listed):
        return listed
    return [listed[place * (len(listed) - 1) // (quick - 1)] for place in range(quick)]
