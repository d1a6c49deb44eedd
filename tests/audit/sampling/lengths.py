"""How long the tests of the black-box audit run: TARGETCHARGE_RUNS=10 makes all of them ten times as long."""

import os

FACTOR = int(os.environ.get("TARGETCHARGE_RUNS", "1"))


def runs(number):
    return FACTOR * number
