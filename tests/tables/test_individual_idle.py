"""A process that dies between two calls costs nobody anything; one that dies in a call costs everybody."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.tables.individuals import counters, crowd, opened

ASKS = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from tests.tables.individuals import crowd, opened
from targetcharge.tables.individual import UnitMeters
t = opened(crowd((range(40), 0), (range(40, 60), 1)), 3, ledger=sys.argv[1])
assert t.above("week = 0", -1000).hit
assert not t.above("week = 1", 100_000).hit
if sys.argv[3] == "in a call":
    UnitMeters.one = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    t.above("week = 1", 100_000)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("when", "spent"), [("between two calls", [1] * 40 + [0] * 20), ("in a call", [2] * 40 + [1] * 20)]
)
def test_who_pays_when_a_process_is_killed(tmp_path, when, spent):
    path, root = tmp_path / "ledger.db", Path(__file__).parents[2]
    child = subprocess.run([sys.executable, "-c", ASKS, str(path), str(root), when], check=False)  # noqa: S603 - our own interpreter
    assert child.returncode == -9
    with opened(crowd((range(40), 0), (range(40, 60), 1)), 3, ledger=path) as t:
        assert counters(t) == spent
