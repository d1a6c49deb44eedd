"""Many questions in one call: neighbours that ask whether a count is above a threshold become one batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast, final

from targetcharge.mechanisms import batch_by_name
from targetcharge.tables.questions import Above, Count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from targetcharge.mechanisms import Batch
    from targetcharge.mechanisms.batch import NoisyCounts
    from targetcharge.tables.individual import UnitMeters
    from targetcharge.tables.numbers import SharedNumbers
    from targetcharge.tables.prepared import Prepared


@final
@dataclass(frozen=True)
class Counts:
    """Several counts, each with a threshold of its own, that are computed together."""

    prepared: tuple[Prepared, ...]

    def read(self, numbers: SharedNumbers) -> Iterable[int]:
        """Return all counts."""
        return numbers.several(self.prepared)

    def read_when_due(self, numbers: UnitMeters) -> Callable[[int, int], Iterable[int]]:
        """Return what gives the counts from one place up to another, each when it is due."""
        return numbers.several_when_due(self.prepared)

    def batch(self, *, individual: bool) -> Batch:
        """Return the tests of the counts."""
        thresholds = [cast("Above", question.question).threshold for question in self.prepared]
        names = [question.name for question in self.prepared]
        batch = batch_by_name(self.read, names, thresholds, self.prepared[0].epsilon)
        algorithms = zip(batch.algorithms, self.prepared, strict=True)
        recorded = tuple(replace(test, question=question.record) for test, question in algorithms)
        drawing = cast("NoisyCounts", batch.drawing)
        if individual:
            drawing = replace(drawing, counts_when_due=self.read_when_due)
        return replace(batch, algorithms=recorded, drawing=drawing)


def grouped(asked: Sequence[Prepared]) -> Iterator[list[Prepared] | Prepared]:
    """Yield questions one by one, but neighbours that ask whether a count is above a threshold together."""
    group: list[Prepared] = []
    for prepared in asked:
        question = prepared.question
        count = isinstance(question, Above) and isinstance(question.what, Count) and question.prior is None
        if group and not (count and prepared.epsilon == group[0].epsilon):
            yield group
            group = []
        if count:
            group.append(prepared)
        else:
            yield prepared
    if group:
        yield group
