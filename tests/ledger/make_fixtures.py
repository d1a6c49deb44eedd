"""Write the fixture ledgers with the code as it is, into a new folder: `fixtures/README.md` says how."""

import sys
from pathlib import Path

from tests.ledger.fixture_ledgers import OPENINGS, make

if __name__ == "__main__":
    folder = Path(sys.argv[1]).absolute()
    for name in OPENINGS:
        make(name, folder / name)
