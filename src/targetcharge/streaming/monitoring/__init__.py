"""Monitoring: the same questions on a table that grows; pay only when an answer crosses its threshold or moves."""

from targetcharge.streaming.monitoring.alerts import Alert, Kind, Look
from targetcharge.streaming.monitoring.monitor import Monitor
from targetcharge.streaming.monitoring.rules import Rule

__all__ = ["Alert", "Kind", "Look", "Monitor", "Rule"]
