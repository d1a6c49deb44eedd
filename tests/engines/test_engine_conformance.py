"""One suite for all engines and all that they read: the same integers as the naive reference."""

import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.asking import measures, measures_by_key, told
from tests.engines.rows import tables
from tests.engines.sources import FOLDER, SOURCES
from tests.sizes import size

from targetcharge.queries.keys import Keys
from targetcharge.queries.measures import Count, Histogram, UnitValue
from targetcharge.queries.tree import All, Missing, Not

TABLES = size(5, 20)
"""Random tables of each source, the first of them without rows: about sixty comparisons each."""


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=TABLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_all_measures_of_random_tables(name, data):
    compare_with_the_reference(name, data)


def compare_with_the_reference(name, data):
    """Draw a table and questions about it, and ask both an engine over this source and the reference."""
    source = SOURCES[name]
    table = source.fitted(data.draw(tables(source.types), label="table"))
    unit = data.draw(st.none() | st.sampled_from(list(table.types)), label="unit")
    naive = source.naive(table, unit)
    questions = data.draw(measures(naive))
    keyed = data.draw(measures_by_key(naive))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / FOLDER
        folder.mkdir()
        with closing(source.opened(table, folder, unit)) as engine:
            assert engine.schema == naive.schema
            agree({told(each): (engine.measure([each]), naive.measure([each])) for each in questions})
            agree({f"no {column.name}": nobody(engine, column) for column in naive.schema.values()})
            agree({"together": (engine.measure(questions), naive.measure(questions))})
            agree({told(*each): (engine.measure_by(*each), naive.measure_by(*each)) for each in keyed})
            agree({f"{told(*each)} in one call": in_one_call(engine, naive, *each) for each in keyed})
            agree({f"how {told(each)} is distributed": distributions(engine, naive, each) for each in questions})
            engine.check_unchanged()


def nobody(engine, column):
    """Count the rows without a value, as a key and as a predicate."""
    return engine.measure_by(Count(None), Keys((column,), ((None,),))), engine.measure([Count(Missing(column))])


def distributions(engine, naive, measure):
    """Ask how a value is distributed; of no other measure is that known."""
    if not isinstance(measure, UnitValue):
        return None, None
    both = engine.distribution(measure), naive.distribution(measure)
    known = All((Not(Missing(measure.column)), *([] if measure.where is None else [measure.where])))
    assert [int(both[0].units.sum())] == engine.measure([Count(known)])
    assert {array.dtype for found in both for array in (found.steps, found.units)} == {np.dtype(np.int64)}
    return tuple((found.steps.tolist(), found.units.tolist()) for found in both)


def in_one_call(engine, naive, measure, keys):
    """Ask for the measure of each key by itself, all in one call: a family, but for days and hours of times."""
    if isinstance(measure, Histogram):  # of one key alone nobody has too many
        measure = Count(measure.where)
    each = [replace(measure, where=All((keys.where(place), measure.where))) for place in range(len(keys.values))]
    return engine.measure(each), naive.measure_by(measure, keys)


def agree(answers):
    """Compare what an engine and the reference say; name only the questions where they differ."""
    assert not {question: pair for question, pair in answers.items() if pair[0] != pair[1]}
