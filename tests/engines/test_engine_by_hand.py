"""A few numbers worked out by hand, so that the reference is not only agreed with."""

import datetime as dt
import hashlib
import struct
from contextlib import closing
from decimal import Decimal
from fractions import Fraction

import pytest
from tests.engines.rows import DATE, DECIMALS, DOUBLE, TEXT, TIME, WHOLE, Table
from tests.engines.sources import SOURCES

from targetcharge.queries.keys import Keys, Period
from targetcharge.queries.measures import Count, Histogram, Sketch, Total, UnitValue
from targetcharge.queries.tree import All, Any, Compare, Like, Missing, Not, OneOf, Operator, Settled

NAN = float("nan")
TYPES = {"who": TEXT, "age": WHOLE[0], "price": DECIMALS[2], "score": DOUBLE, "day": DATE, "at": TIME}
MORNING, EVENING = dt.datetime(2024, 2, 29, 8, 0, 0, 1), dt.datetime(2024, 2, 29, 20, 59, 59)
DAY, LATER = dt.date(2024, 2, 29), dt.date(2024, 3, 1)
TABLE = Table(
    TYPES,
    (
        ("ann", 30, Decimal("1.50"), 0.25, DAY, MORNING),
        ("ann", 30, Decimal("1.55"), NAN, DAY, EVENING),
        ("bob", None, Decimal("-2.45"), 2.5, LATER, MORNING),
        ("b%b", -128, None, -2.5, None, None),
        (None, 127, Decimal("9999999.99"), 1e300, DAY, dt.datetime(2024, 3, 1)),
    ),
)


@pytest.fixture(params=["naive", "arrow-table", "parquet-file", "duckdb-file"])
def engines(request, tmp_path):
    """The same table twice: its rows are units; or people are."""
    if request.param == "naive":
        yield SOURCES["arrow-table"].naive(TABLE, None), SOURCES["arrow-table"].naive(TABLE, "who")
        return
    (tmp_path / "rows").mkdir()
    (tmp_path / "people").mkdir()
    source = SOURCES[request.param]
    with (
        closing(source.opened(TABLE, tmp_path / "rows", None)) as rows,
        closing(source.opened(TABLE, tmp_path / "people", "who")) as people,
    ):
        yield rows, people


def test_counts(engines):
    rows, people = engines
    who, age, price, score, day, at = rows.schema.values()
    expected = {
        None: (5, 3),
        Compare(age, Operator.GE, 30): (3, 1),
        Not(Compare(age, Operator.GE, 30)): (1, 1),
        Missing(score): (1, 1),
        Compare(score, Operator.NE, 0.0): (4, 3),
        Compare(price, Operator.LT, 151): (2, 2),
        OneOf(price, (150, 155)): (2, 1),
        Any((Missing(age), Compare(age, Operator.LT, 0))): (2, 2),
        All((Compare(day, Operator.EQ, DAY), Compare(at, Operator.GT, MORNING))): (2, 1),
        Like(who, "b%b"): (2, 2),
        Like(who, "b_b"): (2, 2),
        Like(who, "b\\%b"): (0, 0),
        Like(who, "ANN"): (0, 0),
        Compare(who, Operator.EQ, "Ann"): (0, 0),
        Compare(who, Operator.LT, "bob"): (3, 2),
        Not(All((Compare(age, Operator.EQ, 1), Compare(who, Operator.EQ, "bob")))): (4, 2),
        Settled(price, holds=True, text=""): (4, 2),
        Not(Settled(price, holds=False, text="")): (4, 2),
        OneOf(age, ()): (0, 0),
    }
    assert {
        where: (*rows.measure([Count(where)]), *people.measure([Count(where)])) for where in expected
    } == expected


def test_totals(engines):
    rows, people = engines
    _, age, price, score, *_ = rows.schema.values()
    tenth, one = Fraction(1, 10), Fraction(1)
    expected = {
        Total(age, -200, 200, one, None): (30 + 30 - 128 + 127, 60 - 128),
        Total(age, 0, 50, one, None): (30 + 30 + 0 + 50, 50 + 0),
        Total(age, 0, 50, Fraction(5), None): (6 + 6 + 0 + 25, 12 + 0),
        Total(price, -(10**9), 10**9, tenth, None): (15 + 16 - 24 + 100_000_000, 31 - 24),
        Total(price, 20, 30, tenth, None): (20 + 20 + 20 + 30, 30 + 20),
        Total(score, -(2**60), 2**60, one, None): (0 + 3 - 2 + 2**53, 0 + 3 - 2),
        Total(score, 5, 7, one, Missing(score)): (0, 0),
    }
    assert {total: (*rows.measure([total]), *people.measure([total])) for total in expected} == expected


def test_values_of_units(engines):
    rows, people = engines
    _, age, price, score, *_ = rows.schema.values()
    tenth, one = Fraction(1, 10), Fraction(1)
    expected = {
        UnitValue(age, -200, 200, one, None): ([231, 231, 73, 328], [231, 73]),
        UnitValue(price, -30, 50, tenth, None): ([46, 47, 7, 81], [1 + 16 + 30, 7]),  # ann's 15 and 16 make 15.5
        UnitValue(price, -30, 15, tenth, None): ([46, 46, 7, 46], [46, 7]),
        UnitValue(score, -2, 3, one, None): ([3, 6, 1, 6], [3, 6, 1]),
        UnitValue(score, 5, 5, one, Missing(score)): ([], []),
    }
    for value, contributed in expected.items():
        for engine, contributions in zip((rows, people), contributed, strict=True):
            found = engine.distribution(value)
            by_steps = zip(found.steps.tolist(), found.units.tolist(), strict=True)
            assert list(by_steps) == sorted({(one, contributions.count(one)) for one in contributions})
            assert engine.measure([value]) == [sum(contributions)]


def test_a_histogram_keeps_the_keys_with_the_smallest_ranks(engines):
    rows, people = engines
    at = rows.schema["at"]
    hours = Keys((at,), tuple((dt.datetime(2024, 2, 29, hour),) for hour in (20, 3, 8)), Period.HOUR)
    kept = set()
    for key in map(str, range(20)):
        number = int(hashlib.md5(f"{key}ann".encode(), usedforsecurity=False).hexdigest()[:15], 16) % (2**31 - 1)
        ranks = {}
        for place in (0, 2):
            first, second = struct.unpack(">2Q", hashlib.sha256(f"{key}{place}".encode()).digest()[:16])
            slope, start = 1 + first % (2**31 - 2), second % (2**31 - 1)
            ranks[(number * slope + start) % (2**31 - 1)] = place
        place = ranks[min(ranks)]  # of ann, who has two; bob has one
        assert people.measure_by(Histogram(None, 1, key), hours) == [int(place == 0), 0, 1 + int(place == 2)]
        assert people.measure_by(Histogram(None, 2, key), hours) == [1, 0, 2]
        assert rows.measure_by(Histogram(None, 1, key), hours) == [1, 0, 2]
        kept.add(place)
    assert kept == {0, 2}


def test_keys(engines):
    rows, people = engines
    who, age, price, _, day, at = rows.schema.values()
    days = Keys((at,), ((DAY,), (LATER,), (dt.date(2024, 3, 2),)), Period.DAY)
    hours = Keys((at,), ((dt.datetime(2024, 2, 29, 20),), (dt.datetime(2024, 2, 29, 8),)), Period.HOUR)
    pairs = Keys((who, age), (("ann", 30), ("bob", 30), ("b%b", -128)))
    expected = {days: ([3, 1, 0], [2, 0, 0]), hours: ([1, 2], [1, 2]), pairs: ([2, 0, 1], [1, 0, 1])}
    assert {
        keys: (rows.measure_by(Count(None), keys), people.measure_by(Count(None), keys)) for keys in expected
    } == expected
    total, prices = Total(age, -9, 40, Fraction(1), None), Keys((day,), ((LATER,), (DAY,)))
    assert (rows.measure_by(total, prices), people.measure_by(total, prices)) == ([0, 100], [0, 40])
    assert rows.measure_by(Count(None), Keys((price,), ((-245,), (150,), (151,)))) == [1, 1, 0]


def whole(*numbers):
    return [struct.pack(">q", number) for number in numbers]


DATA = {
    "who": [b"ann", b"bob", b"b%b"],
    "age": whole(30, -128, 127),
    "price": [b"1.50", b"1.55", b"-2.45", b"9999999.99"],
    "score": [struct.pack(">d", number) for number in (0.25, 2.5, -2.5, 1e300)],
    "day": whole(19782, 19783),
    "at": whole(1709193600000001, 1709240399000000, 1709251200000000),
}
"""What is hashed of each column's values."""


@pytest.mark.parametrize("name", DATA)
def test_sketches(name, engines):
    rows, _ = engines
    for buckets in (2, 3, 5, 2**40):
        numbers = [
            int(hashlib.md5(b"key" + data, usedforsecurity=False).hexdigest()[:15], 16) for data in DATA[name]
        ]
        expected = len({number % buckets for number in numbers})
        assert rows.measure([Sketch(rows.schema[name], None, 1, buckets, "key")]) == [expected]


def test_a_sketch_keeps_the_smallest_of_a_unit(engines):
    _, people = engines
    price = people.schema["price"]
    ann, bob = ("1.50", "1.55"), ("-2.45",)
    numbers = {
        text: int(hashlib.md5(f"k{text}".encode(), usedforsecurity=False).hexdigest()[:15], 16)
        for text in (*ann, *bob)
    }
    kept = {min(numbers[text] for text in ann), numbers[bob[0]]}
    for buckets in range(1, 12):
        expected = [
            len({number % buckets for number in kept}),
            len({number % buckets for number in numbers.values()}),
        ]
        assert people.measure([Sketch(price, None, most, buckets, "k") for most in (1, 2)]) == expected
