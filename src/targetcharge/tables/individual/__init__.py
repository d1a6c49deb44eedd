"""A budget for every individual: who takes part, who is charged, and how that is remembered."""

from targetcharge.tables.individual.roll import UnitRoll

__all__ = ["UnitRoll"]
