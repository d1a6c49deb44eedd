"""Ledgers: the meters' durable record, in memory or in a SQLite file."""

from targetcharge.ledger.answer import Answer
from targetcharge.ledger.entries import Entry, Pending
from targetcharge.ledger.ledger import Ledger, Most, Settlement
from targetcharge.ledger.memory import MemoryLedger
from targetcharge.ledger.sheet import Sheet
from targetcharge.ledger.sqlite import SqliteLedger, terms_at
from targetcharge.ledger.terms import Terms

__all__ = [
    "Answer",
    "Entry",
    "Ledger",
    "MemoryLedger",
    "Most",
    "Pending",
    "Settlement",
    "Sheet",
    "SqliteLedger",
    "Terms",
    "terms_at",
]
