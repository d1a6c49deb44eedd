"""A ledger in a SQLite file, and how to inspect one from outside."""

from targetcharge.ledger.sqlite.creation import terms_at
from targetcharge.ledger.sqlite.ledger import SqliteLedger
from targetcharge.ledger.sqlite.trust import restore
from targetcharge.ledger.sqlite.verify import Inspection, RestoredCopyError, inspect, verify

__all__ = ["Inspection", "RestoredCopyError", "SqliteLedger", "inspect", "restore", "terms_at", "verify"]
