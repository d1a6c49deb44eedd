"""Ledgers: the meters' durable record, in memory or in a SQLite file."""

from targetcharge.ledger.answer import Answer, BatchEntry
from targetcharge.ledger.entries import Entry, Pending
from targetcharge.ledger.ledger import Ledger, Most, Settlement
from targetcharge.ledger.memory import MemoryLedger
from targetcharge.ledger.published import QuestionId
from targetcharge.ledger.sqlite import SqliteLedger, terms_at
from targetcharge.ledger.terms import Terms, Unit

__all__ = [
    "Answer",
    "BatchEntry",
    "Entry",
    "Ledger",
    "MemoryLedger",
    "Most",
    "Pending",
    "QuestionId",
    "Settlement",
    "SqliteLedger",
    "Terms",
    "Unit",
    "terms_at",
]
