"""Meters: the running totals of sessions."""

from targetcharge.accounting.meter.meter import Meter, Odometer, Totals
from targetcharge.accounting.meter.tariff import Price, Tariff

__all__ = ["Meter", "Odometer", "Price", "Tariff", "Totals"]
