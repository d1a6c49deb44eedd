"""Ledgers with a secret offset, without a session."""

from dataclasses import replace
from pathlib import Path

import targetcharge as tc
from targetcharge.accounting import OffsetNoise
from targetcharge.ledger import Answer, Most, Settlement, SqliteLedger, Terms
from targetcharge.sessions.opening import Declaration

NOISE = OffsetNoise(0.24, 0.09, "gumbel", "at least", "geometric")
DECLARED = Declaration.of(tc.Budget(1.0, 1e-6), 0.01, "exact", None, None, 0.0)
NATURAL = DECLARED.terms(DECLARED.meters())
TERMS = replace(NATURAL, offset=NOISE)


def ledger_at(
    path: Path, fresh: int | None, terms: Terms = TERMS, restored: tuple[int, str] | None = None
) -> SqliteLedger:
    return SqliteLedger(path, terms, DECLARED.meters(), restored, fresh)


def most_of(ledger: SqliteLedger) -> Most:
    return Most((ledger.meters[0].quote(tc.NotPrior(prior=False), 0.01),))


def hit(ledger: SqliteLedger) -> None:
    """Reserve and publish a hit."""
    most = most_of(ledger)
    ledger.reserve(most)
    ledger.settle(Settlement([Answer(True, True, 1.0, ledger.next_seq(), "yes", grains=most.grains)]))


def offset_at(path: Path, fresh: int | None = None) -> int | None:
    """Open a ledger, close it, and return its offset."""
    ledger = ledger_at(path, fresh)
    ledger.close()
    return ledger.offset
