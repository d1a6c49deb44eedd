"""How large the samples and loops of the tests are: one knob, the environment variable TARGETCHARGE_LONG.

Unset (or 0), the whole run takes minutes; set to 1 (`make test-long`), every loop has its full length.
"""

import os

LONG = os.environ.get("TARGETCHARGE_LONG", "0") not in {"", "0"}


def size(quick: int, long: int) -> int:
    """Return how many of something a test takes: `quick`, or `long` in a long run."""
    return long if LONG else quick
