"""Engines: where a table lives and is scanned."""
