"""Readings: what a session shows of its meters. Always up to date, and nothing can be charged through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from targetcharge import markup

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.meter import Meter, Odometer, Price, Tariff, Totals
    from targetcharge.accounting.targets import Target


@final
class Reading:
    """A meter, to look at."""

    def __init__(self, find: Callable[[], Meter]) -> None:
        """Look at the meter that is found each time."""
        self._find = find

    @property
    def guarantee(self) -> Budget:
        """Return the (ε, δ) of the whole session, however it ends."""
        return self._find().guarantee

    @property
    def hits(self) -> int:
        """Return the number of hits charged."""
        return self._find().hits

    @property
    def individual(self) -> bool:
        """Return whether each unit has a meter of its own."""
        return self._find().individual

    @property
    def hits_left(self) -> int:
        """Return how many more hits of the declared kind are covered; in all, where each unit has a meter."""
        return self._find().hits_left

    @property
    def delta_left(self) -> float:
        """Return what is left of the δ reserved for computations."""
        return self._find().delta_left

    @property
    def totals(self) -> Totals:
        """Return the running totals, in whole grains."""
        return self._find().totals

    @property
    def tariff(self) -> Tariff:
        """Return how the meter prices."""
        return self._find().tariff

    def quote(self, target: Target, epsilon: float) -> Price:
        """Return the price of one hit of this target for an ε-DP computation; NotAllowed if it has none."""
        return self._find().quote(target, epsilon)

    def odometer(self) -> Odometer:
        """Return the running figure, true at all times at once."""
        return self._find().odometer()

    def _repr_html_(self) -> str:
        """Return how it stands as HTML, for notebooks."""
        meter = self._find()
        budget = meter.guarantee
        facts = [
            ("budget", f"({budget.epsilon:g}, {budget.delta:g}), holds however it ends"),
            ("meter", meter.tariff.name),
            ("hits", _told(meter)),
        ]
        return markup.table([], facts)

    def __repr__(self) -> str:
        """Return how it stands; public."""
        meter = self._find()
        if meter.individual:
            return f"<{meter.tariff.name} meter, {meter.hits} hits, {meter.hits_left} for each unit in all>"
        return f"<{meter.tariff.name} meter, {meter.hits} hits, {meter.hits_left} left>"


def _told(meter: Meter) -> str:
    if meter.individual:
        return f"{meter.hits:,} published; each unit takes part in {meter.hits_left:,} at most"
    return f"{meter.hits:,} used, {meter.hits_left:,} left"
