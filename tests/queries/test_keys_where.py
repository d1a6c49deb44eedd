"""The predicate of one key: its rows and no others."""

import datetime as dt

import pytest

from targetcharge.queries.keys import Keys, Period
from targetcharge.queries.parser import parse
from targetcharge.queries.tree import All, Column, Compare, Exact, Kind, Missing, Operator

AT, DAY, NAME = Column("at", Kind.TIME), Column("day", Kind.DATE), Column("name", Kind.TEXT)
PRICE, SCORE, ILL = (
    Column("price", Kind.NUMBER, Exact(2, -9999, 9999)),
    Column("score", Kind.NUMBER),
    Column("ill", Kind.BOOLEAN),
)
SCHEMA = {column.name: column for column in (AT, DAY, NAME, PRICE, SCORE, ILL)}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (NAME, "it's"),
        (NAME, ""),
        (PRICE, -5),
        (SCORE, -0.0),
        (SCORE, float("inf")),
        (SCORE, 1e-300),
        (ILL, False),
        (DAY, dt.date(9999, 12, 31)),
        (AT, dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
    ],
    ids=repr,
)
def test_a_value_is_compared_as_it_is(column, value):
    keys = Keys((column,), (("another",), (value,)))
    assert keys.where(1) == Compare(column, Operator.EQ, value)


def test_two_columns_are_both_compared():
    keys = Keys((NAME, PRICE), (("a", 1), ("b", 250)))
    assert keys.where(1) == All((Compare(NAME, Operator.EQ, "b"), Compare(PRICE, Operator.EQ, 250)))
    assert parse(str(keys.where(1)), SCHEMA) == keys.where(1)


def test_no_value_is_missing_also_in_a_pair_and_beside_days():
    pairs = Keys((NAME, PRICE), (("a", None), (None, None)))
    assert [str(pairs.where(index)) for index in (0, 1)] == [
        "name = 'a' AND price IS NULL",
        "name IS NULL AND price IS NULL",
    ]
    assert Keys((AT,), ((dt.date(2024, 2, 29),), (None,)), Period.DAY).where(1) == Missing(AT)


@pytest.mark.parametrize("day", [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)], ids=str)
def test_a_day_ends_with_its_last_microsecond(day):
    where = Keys((AT,), ((day,),), Period.DAY).where(0)
    start = dt.datetime.combine(day, dt.time())
    last = start.replace(hour=23, minute=59, second=59, microsecond=999_999)
    assert where == All((Compare(AT, Operator.GE, start), Compare(AT, Operator.LE, last)))
    assert parse(str(where), SCHEMA) == where


@pytest.mark.parametrize(
    "hour", [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 5), dt.datetime(9999, 12, 31, 23)], ids=str
)
def test_an_hour_ends_with_its_last_microsecond(hour):
    where = Keys((AT,), ((hour,),), Period.HOUR).where(0)
    last = hour.replace(minute=59, second=59, microsecond=999_999)
    assert where == All((Compare(AT, Operator.GE, hour), Compare(AT, Operator.LE, last)))


def test_a_key_with_a_period_that_is_no_time():
    with pytest.raises(TypeError, match="a date or a time"):
        Keys((AT,), (("2024-01-01",),), Period.DAY).where(0)


def test_keys_that_there_are_not():
    with pytest.raises(IndexError):
        Keys((NAME,), (("a",),)).where(1)
