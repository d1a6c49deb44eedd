"""Games against two tables, judged: by the audit's judge, and by the budget itself."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from tests.tables.chosen_noise import choose_noise
from tests.tables.exploring import explore
from tests.tables.tiny import quick

from targetcharge.audit.exact import Claim, judge


@contextmanager
def chosen():
    """Choose all noise, and open tiny tables quickly."""
    with pytest.MonkeyPatch.context() as monkeypatch, quick(monkeypatch):
        choose_noise(monkeypatch)
        yield


def claim_of(opened):
    """Return what the session of a table claims."""
    with opened(1) as table:
        return Claim.of(table._session)


def verdict(opened, game):
    """Return whether a game tells more than its session claims.

    A session that keeps its claim keeps its budget, which is checked with nothing of the audit's.
    """
    seen = explore(opened, game)
    found = judge(seen.views, claim_of(opened))
    assert not found.passed or within_budget(opened, seen)
    return found


def within_budget(opened, seen):
    """Return whether what is seen is as private as the budget says."""
    with opened(1) as table:
        budget = table.meter.guarantee
    return seen.delta(budget.epsilon) <= budget.delta * (1 + 1e-9)
