"""Sessions with alternatives: several targets, a meter each, one budget."""

from __future__ import annotations

import math

import pytest

import targetcharge as tc
from sessions.scripted import EPSILON, budget_of, gives
from targetcharge.accounting import exact_hits, split  # noqa: F401
