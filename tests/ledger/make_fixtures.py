"""Write the fixture ledgers with the code as it is, into a new folder: `fixtures/README.md` says how."""

import sys
from pathlib import Path

from tests.ledger.fixture_ledgers import kinds_in, make

if __name__ == "__main__":
    folder = Path(sys.argv[1]).absolute()
    for name in sorted(kinds_in(folder.name)):
        make(name, folder / name)
