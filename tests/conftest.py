"""Every test has a state folder of its own: tables that several tests open have no other budgets there."""

import os
from itertools import count
from pathlib import Path

import pytest

_numbers = count()


@pytest.fixture(autouse=True)
def _own_state(monkeypatch):
    state = Path(os.environ["XDG_STATE_HOME"])  # that of all tests, which is removed at the end
    monkeypatch.setenv("XDG_STATE_HOME", str(state / f"{next(_numbers)}"))
