"""Trials of engines: predicates against the naive reference, and neighbours against declared sensitivities."""

import random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.engines.sources import SOURCES
from tests.engines.test_engine_conformance import compare_with_the_reference
from tests.soak.tally import Tally
from tests.tables.test_table_sensitivity import KINDS, changes
from tests.tables.worlds import SOURCES as FORMS
from tests.tables.worlds import World

TABLES = 4
CALM = settings(
    max_examples=TABLES,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def predicates(number, _):
    """Ask about sixty questions of a few random tables from one source."""
    tally, name = Tally(), list(SOURCES)[number % len(SOURCES)]

    @seed(number)
    @CALM
    @given(data=st.data())
    def compare(data):
        tally.tried += 1
        compare_with_the_reference(name, data)

    try:
        compare()
    except AssertionError as error:
        tally.note("wrong", 1, f"{name}: {error}")
    return tally


def neighbours(number, folder):
    """Remove one unit of a random table: no measure changes by more than its sensitivity."""
    tally, choose = Tally(), random.Random(number)
    kind = KINDS[number % len(KINDS)]
    world = World.drawn(number, kind)
    units = len(world.units())
    if units:
        for measure, change in changes(world, choose.randrange(units), choose.choice(FORMS), folder, number):
            tally.tried += 1
            tally.note("wrong", change > measure.sensitivity, f"{kind}: {change} for {measure}")
    return tally
