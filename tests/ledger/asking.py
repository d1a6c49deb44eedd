"""Sessions whose outcomes a test decides, and what a crash leaves of them."""

from contextlib import contextmanager
from pathlib import Path

import targetcharge as tc
from targetcharge.ledger import Answer, MemoryLedger, Most, SqliteLedger
from targetcharge.ledger.entries import Entry, Spent
from targetcharge.mechanisms import Algorithm
from targetcharge.sessions.opening import Declaration

BUDGET = tc.Budget(1.0, 1e-6)
QUERY = {1: 0.06, 2: 0.05, 6: 0.04, 15: 0.03, 45: 0.02, 229: 0.01}
"""From how many hits a session should have to its query ε, with BUDGET on the exact meter."""


@tc.private(epsilon=0.01)
def told(data):
    """Say what the test says."""
    return data["says"]


@tc.private(epsilon=0.01)
def yes(_):
    return True


@tc.private(epsilon=0.01)
def no(_):
    return False


@tc.private(epsilon=0.01)
def broken(data):
    raise RuntimeError(data)


@tc.private(epsilon=0.01, delta=1e-9)
def approximate(data):
    return data["says"]


def opened(path: Path | str, hits: int = 6, says: object = False, **more: object) -> tc.Session:
    return tc.Session({"says": says}, BUDGET, QUERY[hits], ledger=path, **more)


def opened_renyi(path: Path | str, says: object = False) -> tc.Session:
    return tc.Session({"says": says}, BUDGET, 0.02, ledger=path, meter="renyi")


def say(session: tc.Session, what: object) -> None:
    session._dataset.data["says"] = what


def crash(session: tc.Session) -> None:
    """Leave of a session what kill -9 leaves: what was committed, and no locks."""
    ledger = session._ledger
    session._finalizer.detach()
    session._turn.close()
    ledger._transactions.close()
    ledger._closed = True
    ledger._database.close()


def entries(session: tc.Session) -> list[Entry]:
    return list(session._ledger.entries())


def spent(session: tc.Session) -> list[Spent]:
    return [entry for entry in entries(session) if isinstance(entry, Spent)]


def hits(session: tc.Session) -> list[Answer]:
    return [answer for answer in session.transcript if answer.hit]


def ask_until_refused(sessions: list[tc.Session], algorithm: Algorithm) -> int:
    """Ask the sessions in turn; return how many answers they gave."""
    for count in range(10_000):
        try:
            sessions[count % len(sessions)].test(algorithm)
        except tc.BudgetSpent:
            return count
    raise AssertionError


@contextmanager
def bare_ledger(kind, folder, hits):
    """A ledger without a session, with room for so many hits, and the price of one on it."""
    declared = Declaration.of(tc.Budget(1.0, 1e-6), QUERY[hits], "exact", None, None, 0.0)
    meters = declared.meters()
    if kind == "memory":
        ledger = MemoryLedger(meters)
    else:
        ledger = SqliteLedger(folder / "ledger.db", declared.terms(meters), meters)
    yield ledger, Most((meters[0].quote(tc.NotPrior(prior=False), 0.01),))
    ledger.close()
