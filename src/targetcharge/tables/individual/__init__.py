"""A budget for every individual: who takes part, who is charged, and how that is remembered."""

from targetcharge.tables.individual.unit_meters import UnitMeters

__all__ = ["UnitMeters"]
