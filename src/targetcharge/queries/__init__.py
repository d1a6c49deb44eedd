"""Queries: safe predicates, measures with bounded sensitivity, declared keys. Nothing here touches data."""
