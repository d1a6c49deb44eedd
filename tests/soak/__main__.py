"""Trials of all kinds for so many minutes: `python -m tests.soak 10`. The exit code is 1 if anything was found."""

import argparse
import os
import random
import sys
import tempfile
import time

from tests.soak import ledgers, numbers
from tests.soak.tally import soak, table_of

KINDS = {
    "kill -9 with several writers": ledgers.kills,
    "races for the last hits": ledgers.races,
    "restored backups": ledgers.restores,
    "predicates against the reference": numbers.predicates,
    "neighbours against sensitivities": numbers.neighbours,
}


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("minutes", type=float, help="how long")
    parser.add_argument("--seed", type=int, help="of the first trials, to find again what was found")
    options = parser.parse_args()
    first = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_STATE_HOME"] = home  # ledgers of trials leave no witness in the user's home
        tallies = soak(KINDS, 60 * options.minutes, first)
    sys.stdout.write(f"{table_of(tallies)}\n{time.monotonic() - began:,.0f} s, from seed {first}\n")
    return 0 if all(tally.clean for tally in tallies.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
