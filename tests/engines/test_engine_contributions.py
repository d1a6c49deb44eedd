"""One suite for all engines and all that they read: who contributes how much, the same arrays as the reference."""

import itertools
import tempfile
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.asking import measures, measures_by_key, told
from tests.engines.rows import Table, tables
from tests.engines.sources import FOLDER, SOURCES
from tests.sizes import size

from targetcharge.queries.measures import Count, Histogram, Sketch
from targetcharge.queries.tree import All

TABLES = size(3, 15)
"""Random tables of each source, the first of them without rows."""

KEY = b"a key"


def plain(found):
    """Return contributions as lists, having checked that they are what they promise to be."""
    numbers = [found.of(index) for index in range(len(found))]
    for units, steps in numbers:
        assert (np.diff(units) > 0).all()
        assert steps is None or (steps != 0).all()
    assert {array.dtype for array in (found.units, found.starts)} == {np.dtype(np.int64)}
    assert found.steps is None or found.steps.dtype == np.int64
    assert (found.starts[0], found.starts[-1]) == (0, len(found.units))
    return found.starts.tolist(), found.units.tolist(), None if found.steps is None else found.steps.tolist()


def sums(found):
    return [
        len(units) if steps is None else sum(steps.tolist())
        for units, steps in (found.of(index) for index in range(len(found)))
    ]


def agree(engine, naive, asked, keyed):
    """Compare all that is asked of an engine with what the reference says, on every snapshot."""
    assert (engine.snapshot, engine.units()) == (naive.snapshot, naive.units())
    assert engine.measure([Count(None)]) == [naive.units()]
    for snapshot in (None, *range(1, naive.snapshot + 1)):
        assert plain(engine.contributions(asked, snapshot)) == plain(naive.contributions(asked, snapshot))
        for each in asked:
            pair = [plain(every.contributions([each], snapshot)) for every in (engine, naive)]
            assert pair[0] == pair[1], (told(each), snapshot)
        for measure, keys in keyed:
            pair = [plain(every.contributions_by(measure, keys, snapshot)) for every in (engine, naive)]
            assert pair[0] == pair[1], (told(measure, keys), snapshot)
    assert sums(engine.contributions(asked)) == engine.measure(asked)
    for measure, keys in keyed:
        assert sums(engine.contributions_by(measure, keys)) == engine.measure_by(measure, keys)
        if not isinstance(measure, Histogram):
            one_by_one(engine, measure, keys)


def one_by_one(engine, measure, keys):
    """Compare the contributions by key with those of the predicate that selects each key."""
    found = engine.contributions_by(measure, keys)
    selected = [keys.where(index) for index in range(len(keys.values))]
    if measure.where is not None:
        selected = [All((measure.where, each)) for each in selected]
    alone = engine.contributions([replace(measure, where=each) for each in selected])
    for index in range(len(keys.values)):
        assert plain(found.only(index)) == plain(alone.only(index))


def pieces(table, cuts):
    """Return a table in parts, cut before some rows."""
    ends = [0, *sorted(cuts), len(table.rows)]
    return [Table(table.types, table.rows[a:b]) for a, b in itertools.pairwise(ends)]


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=TABLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_contributions_of_random_tables_that_grow(name, data):
    source = SOURCES[name]
    whole = source.fitted(data.draw(tables(source.types), label="table"))
    unit = data.draw(st.none() | st.sampled_from(list(whole.types)), label="unit")
    cuts = data.draw(st.lists(st.integers(0, len(whole.rows)), max_size=3), label="cuts")
    parts = pieces(whole, cuts)
    naive = source.naive(whole, unit)
    asked = [each for each in data.draw(measures(naive, 4)) if not isinstance(each, Sketch)]
    keyed = data.draw(measures_by_key(naive, 2))
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def folder(number):
            made = place / str(number) / FOLDER
            made.mkdir(parents=True)
            return made

        naive = source.naive(parts[0], unit)
        engine = stack.enter_context(closing(source.opened(parts[0], folder(0), unit)))
        for number, part in enumerate(parts[1:], 1):
            given_part, _ = source.given(part, folder(number))
            engine.append(given_part)
            naive.append(source.naive(part, unit))
        agree(engine, naive, asked, keyed)
        engine.check_unchanged()
        taken_back(engine, naive, asked, keyed)


def taken_back(engine, naive, asked, keyed):
    """Take back the last append, and compare again."""
    digests = [engine.digest_of_units(KEY, number) for number in range(1, engine.snapshot + 1)]
    if engine.snapshot > 1:
        engine.retract()
        naive.retract()
        agree(engine, naive, asked, keyed)
        assert [engine.digest_of_units(KEY, number) for number in range(1, engine.snapshot + 1)] == digests[:-1]
