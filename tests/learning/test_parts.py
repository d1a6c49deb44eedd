"""Dealing records and units to parts: one record or unit reaches one part only."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from targetcharge.errors import InvalidParameter
from targetcharge.learning.parts import count_units, deal, deal_units

PARTS = 3
UNITS = ("ann", "bob", "cid", "dee", "eve")


def contents(records, dealt):
    """What each part holds, in order."""
    return [
        tuple(record for record, part in zip(records, dealt, strict=True) if part == one) for one in range(PARTS)
    ]


def changed(before, after):
    return sum(one != other for one, other in zip(before, after, strict=True))


def datasets():
    """Every set of units, two records each, interleaved so that a unit's records do not lie together."""
    for size in range(len(UNITS) + 1):
        for units in combinations(UNITS, size):
            yield [(unit, 1) for unit in units] + [(unit, 2) for unit in units]


def neighbours(records):
    """All datasets that differ in one unit: without it, or with other records of it."""
    for unit in {name for name, _ in records}:
        yield [record for record in records if record[0] != unit]
        yield [(name, -value if name == unit else value) for name, value in records]


def by_hash(records):
    return deal_units([unit for unit, _ in records], PARTS, key=b"a key")


def by_sorted_order(records):
    ranks = {unit: rank for rank, unit in enumerate(sorted({unit for unit, _ in records}))}
    return [ranks[unit] % PARTS for unit, _ in records]


def by_first_seen(records):
    ranks = {unit: rank for rank, unit in enumerate(dict(records))}
    return [ranks[unit] % PARTS for unit, _ in records]


def most_changed(dealing):
    """The fewest and the most parts that one unit changes, over all neighbouring pairs."""
    counts = [
        changed(contents(records, dealing(records)), contents(other, dealing(other)))
        for records in datasets()
        for other in neighbours(records)
    ]
    return min(counts), max(counts)


def test_one_unit_changes_exactly_one_part():
    assert most_changed(by_hash) == (1, 1)


@pytest.mark.parametrize("naive", [by_sorted_order, by_first_seen])
def test_the_naive_way_changes_several_parts(naive):
    assert most_changed(naive)[1] >= 2


def test_one_replaced_record_changes_exactly_one_part():
    dealt = deal(10, PARTS, np.random.default_rng(1))
    records = list(range(10))
    for place in records:
        other = [-1 if record == place else record for record in records]
        assert changed(contents(records, dealt), contents(other, dealt)) == 1


@pytest.mark.parametrize(("records", "parts"), [(10, 3), (9, 3), (7, 7), (1000, 64), (3, 5)])
def test_sizes_differ_by_at_most_one(records, parts):
    sizes = np.bincount(deal(records, parts, np.random.default_rng()), minlength=parts)
    assert sizes.sum() == records
    assert sizes.max() - sizes.min() <= 1


def test_records_are_dealt_at_random():
    dealt = np.array([deal(6, PARTS, np.random.default_rng()) for _ in range(6_000)])
    for place in range(6):
        assert chisquare(np.bincount(dealt[:, place], minlength=PARTS)).pvalue > 1e-9
    assert chisquare(np.bincount(np.sort(dealt[:, 0]) // 2, minlength=PARTS)).pvalue < 1e-9  # the test has power
    together = np.mean(dealt[:, 0] == dealt[:, 1])  # one of the five others shares the part
    assert abs(together - 1 / 5) < 0.04


def test_units_are_spread_evenly_by_any_key():
    units = [f"unit {number}" for number in range(20_000)]
    keys = [np.random.default_rng().bytes(32) for _ in range(2)]
    one, other = (deal_units(units, 10, key) for key in keys)
    for dealt in (one, other):
        assert chisquare(np.bincount(dealt, minlength=10)).pvalue > 1e-9
    agree = np.bincount((one - other) % 10, minlength=10)
    assert chisquare(agree).pvalue > 1e-9  # the keys say nothing about each other


def test_records_of_a_unit_stay_together():
    units = ["a", "b", "a", "c", "b", "a"]
    dealt = deal_units(units, 1_000_000, key=b"k")
    assert len({*dealt[[0, 2, 5]]}) == 1
    assert dealt[1] == dealt[4]


def test_another_units_type_moves_nobody():
    """A text among numbers, or a missing fraction, changes the type of a whole column."""
    numbers = deal_units([1, 2, 3], 10**6, key=b"k")
    assert (deal_units([1.0, 2.0, 3.0], 10**6, key=b"k") == numbers).all()
    assert (deal_units(np.array([1, 2, 3], np.uint8), 10**6, key=b"k") == numbers).all()
    assert (deal_units(["x", 2, 3.0], 10**6, key=b"k")[1:] == numbers[1:]).all()
    assert (deal_units(np.array([1.5, 2, 3]), 10**6, key=b"k")[1:] == numbers[1:]).all()


def test_different_units_have_different_names():
    units = ["1", b"1", 1, 1.5, "1.5", -1, "", "n1", b"n1"]
    assert count_units(units) == len(units)
    assert count_units([1, 1.0, True, np.int8(1), np.float32(1)]) == 1


@pytest.mark.parametrize("missing", [None, float("nan"), float("inf"), (1, 2), np.datetime64("NaT")])
def test_a_unit_that_is_missing_or_odd_is_refused(missing):
    with pytest.raises(InvalidParameter, match=r"units is .* none missing") as caught:
        deal_units(["secret name", missing], 4, key=b"k")
    assert "secret name" not in str(caught.value)
