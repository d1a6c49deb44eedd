"""Meters: the running totals of sessions, and what each unit may be charged where each has its own."""

from targetcharge.accounting.meter.allowance import Allowance, Prices
from targetcharge.accounting.meter.meter import Meter, Odometer, Totals
from targetcharge.accounting.meter.price import Price
from targetcharge.accounting.meter.tariff import Tariff

__all__ = ["Allowance", "Meter", "Odometer", "Price", "Prices", "Tariff", "Totals"]
