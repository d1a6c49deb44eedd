"""DuckDB, embedded: files and frames of one machine, also larger than its memory."""

from targetcharge.engines.duckdb.engine import DuckDBEngine, open_duckdb

__all__ = ["DuckDBEngine", "open_duckdb"]
