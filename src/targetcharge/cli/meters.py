"""The names of meters."""

from __future__ import annotations

from enum import StrEnum


class MeterName(StrEnum):
    """How a session adds up."""

    EXACT = "exact"
    RENYI = "renyi"
