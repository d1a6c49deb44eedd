"""A ledger in a SQLite file."""

from targetcharge.ledger.sqlite.ledger import SqliteLedger

__all__ = ["SqliteLedger"]
