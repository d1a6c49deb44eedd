"""Monitors: the same questions on a table that grows; pay only when an answer crosses its threshold or moves."""

from targetcharge.tables.monitor.alerts import Alert, Kind, Look
from targetcharge.tables.monitor.monitor import Monitor
from targetcharge.tables.monitor.rules import Rule

__all__ = ["Alert", "Kind", "Look", "Monitor", "Rule"]
