"""Batteries of table questions: many tests, one scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge.errors import NotAllowed
from targetcharge.mechanisms import batch, battery
from targetcharge.queries.declared_keys import declared
from targetcharge.queries.measures import Sketch
from targetcharge.tables.computing import check_grid, number_asked, steps_of
from targetcharge.tables.keys import published
from targetcharge.tables.numbers import number_of
from targetcharge.tables.questions import Above, Units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from targetcharge.mechanisms import Battery
    from targetcharge.queries.columns import Column
    from targetcharge.tables.questions import Question, What

_LOWEST: Final = -(2.0**53)
"""A threshold that every score reaches, where a selection has none."""


def by_keys(
    what: What,
    by: str | Sequence[str],
    keys: object,
    threshold: float | None,
    epsilon: float,
    schema: Mapping[str, Column],
) -> tuple[Battery, tuple[str, ...]]:
    """Return the tests of every declared key, and the names of the keys' columns.

    Args:
        what: the number that is tested.
        by: one or two columns.
        keys: their declared values.
        threshold: the least noisy number that is published; None for candidates of a selection.
        epsilon: of one test.
        schema: the columns there are.
    """
    number = number_of(what, schema, threshold)
    check_grid(number, epsilon)
    measure = number.measure
    if isinstance(measure, Sketch):
        msg = "distinct values are not counted key by key: ask `distinct_above` for each key"
        raise NotAllowed(msg)
    if threshold is not None:
        steps_of(number, "threshold", threshold)
    groups = declared(by, keys, schema)
    names = tuple(column.name for column in groups.columns)
    limit = "" if threshold is None else f" >= {threshold!r}"
    tests = battery(
        lambda engine: engine.measure_by(measure, groups),
        published(groups),
        _LOWEST if threshold is None else threshold,
        epsilon,
        sensitivity=measure.sensitivity,
        gauge=number.gauge,
        name=f"{number.text} by {', '.join(names)}{limit}",
    )
    return tests, names


def together(asked: Sequence[Above], epsilon: float, schema: Mapping[str, Column]) -> Battery:
    """Return tests of different counts that are computed together."""
    numbers = [number_asked(each, schema) for each in asked]
    measures = [number.measure for number in numbers]
    limits = [each.threshold for each in asked]
    names = [f"{number.text} >= {limit!r}" for number, limit in zip(numbers, limits, strict=True)]
    return batch(lambda engine: engine.measure(measures), names, limits, epsilon)


def runs(asked: Sequence[Question]) -> Iterator[list[Above] | Question]:
    """Yield questions one by one, but neighbours that ask whether a count is above a threshold together."""
    run: list[Above] = []
    for question in asked:
        if isinstance(question, Above) and isinstance(question.what, Units) and question.prior is None:
            run.append(question)
            continue
        if run:
            yield run
            run = []
        yield question
    if run:
        yield run
