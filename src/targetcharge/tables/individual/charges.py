"""Charges: what a question costs those who contribute to it, from the question or from the transcript's record."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from targetcharge.accounting.targets import Between, Boundary, NotPrior
from targetcharge.errors import NotAllowed
from targetcharge.queries.keys import from_published
from targetcharge.queries.measures import Count, Total
from targetcharge.queries.predicates import All
from targetcharge.tables.computing import band_in_steps
from targetcharge.tables.numbers import number_of
from targetcharge.tables.questions import Between as Band

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Allowance, Prices
    from targetcharge.accounting.targets import Target
    from targetcharge.queries.columns import Schema
    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure
    from targetcharge.tables.records import Record

    Steps = NDArray[np.int64] | None


@final
@dataclass(frozen=True)
class Charge:
    """A number that units contribute to, and what a hit costs them.

    Attributes:
        measure: the number.
        prices: of a hit, by what a unit contributes.
        record: what was asked.
        text: the record, as the transcript has it.
    """

    measure: Count | Total
    prices: Prices
    record: Record
    text: str = field(repr=False)

    @property
    def name(self) -> tuple[str, float]:
        """Return what tells charges apart: the question and its ε."""
        return self.text, self.prices.epsilon

    def of(self, steps: Steps) -> NDArray[np.int64] | int:
        """Return what a hit costs units that contribute so many steps; one price if each contributes one."""
        return self.prices.full if steps is None else self.prices.of(steps)

    def about(self, key: object, schema: Schema) -> Count | Total:
        """Return the measure of one key, as it is published; of all rows if there are no keys."""
        if not self.record.by:
            return self.measure
        chosen = self.groups((key,), schema).where(0)
        where = chosen if self.measure.where is None else All((self.measure.where, chosen))
        return replace(self.measure, where=where)

    def groups(self, keys: tuple[object, ...], schema: Schema) -> Keys:
        """Return keys of this question, as they were declared."""
        return from_published(self.record.by, keys, self.record.grain, schema)


def charge_of(record: Record, epsilon: float, schema: Schema, allowance: Allowance) -> Charge:
    """Return what a recorded question costs.

    Raises:
        NotAllowed: if not everybody can be told what they contribute.
    """
    number = number_of(record.what, schema, 1.0)
    measure = additive(number.measure)
    target: Target = NotPrior(None)
    if record.near:
        target = Boundary()
    elif record.band is not None:
        target = Between(*band_in_steps(number, Band(record.what, *record.band)), measure.sensitivity)
    prices = allowance.prices(target, epsilon, measure.sensitivity)
    return Charge(measure, prices, record, record.text())


def additive(measure: Measure) -> Count | Total:
    """Return a measure that is the sum of what units contribute; refuse others."""
    if isinstance(measure, Count | Total):
        return measure
    msg = (
        "distinct values cannot be asked with a budget for every individual: what a unit adds depends on the"
        ' others. Open the table with charging="shared" for them'
    )
    raise NotAllowed(msg)
