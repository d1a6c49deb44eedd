"""One canonical text for all writings of a value."""

import datetime as dt
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from targetcharge.identity import canonical

NOON = dt.datetime(2024, 1, 1, 12)
SAME = {
    "one": [
        *(
            1,
            1.0,
            "1",
            "01",
            " 1",
            "1.0",
            "+1",
            "1e0",
            b"1",
            True,
            "True",
            np.bool_(True),
            np.int8(1),
            np.uint64(1),
        ),
        *(np.float16(1), np.float32(1), np.longdouble(1), Decimal(1), Decimal("1.00"), Fraction(2, 2)),
        *(np.str_("1"), np.bytes_(b"1"), "1\0"),
    ],
    "zero": [0, 0.0, -0.0, "0", "-0", "0.00", Decimal("-0"), False, "false", np.float32(-0.0)],
    "a tenth": [
        0.1,
        np.float32(0.1),
        float(np.float32(0.1)),
        Decimal("0.1"),
        "0.1",
        ".1",
        "1e-1",
        Fraction(1, 10),
    ],
    "seven": [Decimal(7), Decimal("7.0"), Decimal("7.00"), 7, np.int64(7), "7"],
    "many digits": [2**60, 2**60 + 1, float(2**60), str(2**60), np.uint64(2**60), Decimal(2**60)],
    "a time": [
        *(NOON, pd.Timestamp(NOON), NOON.replace(tzinfo=dt.UTC), NOON.replace(fold=1)),
        *(pd.Timestamp("2024-01-01 13:00", tz="Europe/Berlin"), np.datetime64("2024-01-01T12:00")),
        *(np.datetime64("2024-01-01T12:00:00.000000000"), "2024-01-01 12:00", "2024-01-01T12:00:00Z"),
        *("2024-01-01T12:00:00.000000000", "2024-01-01 07:00:00-0500", "2024-01-01T17:30+05:30"),
    ],
    "a day": [dt.date(2024, 1, 1), "2024-01-01", np.datetime64("2024-01-01"), pd.Timestamp("2024-01-01")],
    "an hour": [
        dt.datetime(2024, 1, 1, 5),
        "2024-01-01T05",
        " 2024-01-01 05:00",
        "2024-01-01T05:00+00",
        "2024-01-01T05Z",
    ],
    "a long decimal": [Decimal("123456789.00000000001"), 123456789.0, 123456789, "123456789.00000000001"],
    "a picosecond": [np.datetime64(10**15, "ps"), np.datetime64(1000, "s")],
    "a nanosecond": [pd.Timestamp(1, unit="ns"), np.datetime64(1, "ns"), "1970-01-01T00:00:00.000000001"],
    "a month": [np.datetime64("2024-02"), dt.date(2024, 2, 1)],
    "text": ["ann", np.str_("ann"), b"ann", "ann\0"],
    "infinity": [
        float("inf"),
        "inf",
        "Infinity",
        "+inf",
        np.float32("inf"),
        Decimal("Infinity"),
        10**5000,
        "1e400",
    ],
    "an id": [uuid.UUID(int=5), str(uuid.UUID(int=5))],
}


@pytest.mark.parametrize("name", SAME)
def test_all_writings_of_a_value_have_one_text(name):
    assert len({canonical(each) for each in SAME[name]}) == 1
    assert canonical(SAME[name][0]) is not None


def test_different_values_have_different_texts():
    texts = [canonical(each[0]) for each in SAME.values()]
    others = [
        "Ann",
        "ann ",
        "",
        "-",
        "1 2",
        "0x1",
        "n1",
        "nan",
        "2024-13-01",
        "²",
        "١",
        -1,
        1.5,
        2**53 - 1,
    ]
    texts += [canonical(each) for each in others]
    assert len(set(texts)) == len(texts)
    assert None not in texts


class Odd(str):
    """A text that does not behave; and numbers that do not."""

    __slots__ = ()

    def __str__(self):
        raise RuntimeError


class OddNumber(float):
    def __float__(self):
        raise RuntimeError


class OddTime(dt.tzinfo):
    def utcoffset(self, _):
        raise RuntimeError


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            float("nan"),
            np.float32("nan"),
            Decimal("NaN"),
            Decimal("sNaN"),
            pd.NaT,
            pd.NA,
            np.datetime64("NaT"),
        ),
        *([1], (1,), {}, object(), 1j, OddNumber(1.5), NOON.replace(tzinfo=OddTime()), np.datetime64(2**62, "s")),
        *(dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))), dt.timedelta(1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_tells_nobody_apart_is_missing_and_never_raises(value):
    assert canonical(value) is None


def test_a_text_of_a_class_of_its_own_is_text():
    assert canonical(Odd("ann")) == "ann"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_the_same_in_all_types_that_hold_them(number):
    writings = [number, str(number), np.float64(number), Decimal(number), repr(number).upper()]
    assert len({canonical(each) for each in writings}) == 1


@given(st.integers())
def test_whole_numbers_are_the_same_in_all_types_that_hold_them(number):
    rounded = [float(number)] if abs(number) < 2**1000 else []
    writings = [number, str(number), f" {number}", f"{number}.0", Decimal(number), Fraction(number), *rounded]
    assert len({canonical(each) for each in writings}) == 1


@given(st.integers(-(2**53), 2**53), st.integers(-(2**53), 2**53))
def test_whole_numbers_that_floating_point_tells_apart_are_different(one, other):
    assert (canonical(one) == canonical(float(other))) == (one == other)


@given(st.text() | st.binary() | st.decimals() | st.fractions() | st.datetimes(timezones=st.timezones()))
def test_it_is_text_that_every_program_takes(value):
    text = canonical(value)
    assert text is None or text.encode().decode() == text


@given(st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=st.timezones()))
def test_times_are_the_same_by_instant(time):
    assert (
        canonical(time)
        == canonical(time.astimezone(dt.UTC))
        == canonical(np.datetime64(time.astimezone(dt.UTC).replace(tzinfo=None)))
    )
