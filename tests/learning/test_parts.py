"""Dealing records and units to parts: one record or unit reaches one part only."""

import io
from contextlib import suppress
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from targetcharge.learning.teachers import LEFT_OUT, count_units, deal, deal_units

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
    units = [1, 1.5, -1, "", "n1", "t1", "0x1", "1 2", "nan", "inf", "1e20", "²", "١"]
    assert count_units(units) == len(units)
    assert count_units([1, 1.0, True, "1", "1.0", "True", b"1", np.int8(1), np.float32(1), "1\0"]) == 1
    assert count_units([1.5, "1.5", "01.50", b"1.5", "15e-1"]) == 1
    assert count_units(["ann", b"ann"]) == 1


COLUMNS = {
    "whole": [1, 2, 7, 0, -3],
    "large": [2**53 + 1, 2**60 + 7, -(2**62)],
    "fractions": [0.1, 1.5, 1e-5, -2.25, 3.0, 1 / 3],
    "text": ["1", "ann", "2.5", "007", "1e5"],
    "bytes": [b"1", b"ann", b"2.5"],
    "flags": [True, False],
}
ODD = [0.5, 9, 2**40, 2**70, -1, "x", "a long text", b"x", True, np.int8(3), np.uint64(2**63), np.float32(0.5)]


def columns_of(values):
    """All columns that these values make, and what a caller may do to them."""
    yield values
    for kind in (None, object, str, bytes, float):
        with suppress(ValueError, TypeError, OverflowError):
            yield np.array(values, kind)
    yield pd.Series(values)
    with suppress(ValueError, TypeError, OverflowError):
        yield pd.Series(values, dtype="string")


@pytest.mark.parametrize("column", COLUMNS)
def test_no_type_of_a_column_moves_a_unit(column):
    """Brute force: one odd value more, in all types a column may take."""
    expected = deal_units(COLUMNS[column], 10**6, key=b"k")
    compared = 0
    for odd in ODD:
        for values in columns_of([*COLUMNS[column], odd]):
            dealt = deal_units(values, 10**6, key=b"k")
            assert (dealt[:-1] == expected).all()
            compared += 1
    assert compared > 40


TEXTS = ["007", "1e3", "2.50", "-4", "12", "9007199254740993"], ["True", "FALSE"], ["1.5", "1e-3"], ["ann", "7"]


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("odd", ["x", "0.5", "3", "true", str(2**70)])
def test_what_a_file_reader_makes_of_a_column_moves_no_unit(texts, odd):
    """One text in a file of numbers, and all of them are read as text."""
    without, with_it = (
        pd.read_csv(io.StringIO("\n".join(["unit", *texts, *more])))["unit"] for more in ([], [odd])
    )
    expected, dealt = deal_units(without, 10**6, key=b"k"), deal_units(with_it, 10**6, key=b"k")
    assert (dealt[:-1] == expected).all()


@pytest.mark.parametrize("rounded", [2.0**53, -(2.0**60), np.float32(1e30)])
def test_a_floating_point_number_that_may_be_rounded_is_the_whole_numbers_that_it_may_be(rounded):
    near = [rounded, int(rounded), int(rounded) + 1, str(int(rounded) + 1)]
    assert count_units(near) == 1
    assert len(set(deal_units(near, 10**6, key=b"k").tolist())) == 1


@pytest.mark.parametrize("missing", [None, float("nan"), (1, 2), np.datetime64("NaT"), object()])
def test_a_record_whose_unit_is_missing_or_odd_is_left_out(missing):
    dealt = deal_units(["ann", missing, "bob"], 4, key=b"k")
    assert (dealt[1], count_units(["ann", missing, "bob"])) == (LEFT_OUT, 2)
    assert (dealt[[0, 2]] == deal_units(["ann", "bob"], 4, key=b"k")).all()
