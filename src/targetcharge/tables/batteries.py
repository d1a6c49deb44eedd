"""Batteries of table questions: many tests, one scan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from targetcharge.errors import NotAllowed
from targetcharge.mechanisms import batch_by_key, batch_by_name
from targetcharge.mechanisms.batch import NoisyCounts
from targetcharge.queries.keys import declare
from targetcharge.queries.measures import Sketch
from targetcharge.sessions.select import check_selection
from targetcharge.tables.computing import check_grid, number_asked, steps_of
from targetcharge.tables.numbers import number_of
from targetcharge.tables.questions import Above, Top, Units, Watch
from targetcharge.tables.readers import Inquiry, OfAll
from targetcharge.tables.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from targetcharge.mechanisms import Batch
    from targetcharge.queries.columns import Column
    from targetcharge.tables.questions import Question
    from targetcharge.tables.readers import Numbers, Reader

_LOWEST: Final = -(2.0**53)
"""A threshold that every score reaches, where a selection has none."""

_OF_ALL: Final = OfAll()


def by_keys(
    question: Watch | Top, epsilon: float, schema: Mapping[str, Column], reader: Reader = _OF_ALL
) -> tuple[Batch, tuple[str, ...]]:
    """Return the tests of every declared key, and the names of the keys' columns.

    Args:
        question: a watch; or a selection, whose candidates have no threshold of their own.
        epsilon: of one test.
        schema: the columns there are.
        reader: how numbers are read.
    """
    threshold = question.threshold if isinstance(question, Watch) else None
    number = number_of(question.what, schema, threshold)
    check_grid(number, epsilon)
    if isinstance(number.measure, Sketch):
        msg = "distinct values are not counted key by key: ask `distinct_above` for each key"
        raise NotAllowed(msg)
    if threshold is not None:
        steps_of(number, "threshold", threshold)
    groups = declare(question.by, question.keys, schema)
    keys, names = groups.published(), tuple(column.name for column in groups.columns)
    if isinstance(question, Top):
        question = replace(question, k=check_selection(keys, question.k, None, question.threshold))
    record = Record.of(question, number, groups, keys if reader.individual and threshold is None else ())
    numbers = reader.by(Inquiry(number, record, epsilon), groups)
    limit = "" if threshold is None else f" >= {threshold!r}"
    tests = batch_by_key(
        numbers.counts,
        keys,
        _LOWEST if threshold is None else threshold,
        epsilon,
        sensitivity=number.measure.sensitivity,
        gauge=number.gauge,
        name=f"{number.text} by {', '.join(names)}{limit}",
    )
    return _recorded(tests, [record], numbers), names


def together(
    asked: Sequence[Above], epsilon: float, schema: Mapping[str, Column], reader: Reader = _OF_ALL
) -> Batch:
    """Return tests of different counts that are computed together."""
    numbers = [number_asked(each, schema) for each in asked]
    for each, number in zip(asked, numbers, strict=True):
        steps_of(number, "threshold", each.threshold)
    records = [Record.of(each, number) for each, number in zip(asked, numbers, strict=True)]
    pairs = zip(numbers, records, strict=True)
    read = reader.together([Inquiry(number, record, epsilon) for number, record in pairs])
    limits = [each.threshold for each in asked]
    names = [f"{number.text} >= {limit!r}" for number, limit in zip(numbers, limits, strict=True)]
    return _recorded(batch_by_name(read.counts, names, limits, epsilon), records, read)


def _recorded(tests: Batch, records: Sequence[Record], numbers: Numbers) -> Batch:
    """Return a batch whose answers tell what was asked: one record for all of them, or one for each."""
    pairs = zip(tests.algorithms, records, strict=True)
    known = tuple(replace(test, question=record.text()) for test, record in pairs)
    drawing = tests.drawing
    assert isinstance(drawing, NoisyCounts)  # noqa: S101 - as it was made
    return replace(tests, algorithms=known, drawing=replace(drawing, counts_when_due=numbers.later))


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
