"""What the tests of the black-box audit share."""

from __future__ import annotations

import functools

import pytest

from targetcharge.accounting.meter import meter


@pytest.fixture
def quick_opening(monkeypatch):
    """Compute the tariff of a kind of session once: it is the same for each of thousands of sessions."""
    for name in ("exact_tariff", "renyi_tariff"):
        monkeypatch.setattr(meter, name, functools.cache(getattr(meter, name)))
