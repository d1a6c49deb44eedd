import enum
import math
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from targetcharge.outcomes import BOUNDARY, Side, UnpublishableError, publishable, same


class Colour(str, enum.Enum):  # noqa: UP042 - the older way, whose str() is not its text
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Loud(str):
    __slots__ = ()

    def __str__(self):
        return "another text"


class Seven(int):
    def __int__(self):
        return 7


class Shifted(float):
    def __float__(self):
        return 7.0


class Blob(bytes):
    def __bytes__(self):
        return b"another"


Point = namedtuple("Point", "x y")  # noqa: PYI024 - untyped ones must work too


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (2**200, 2**200),
        (1.5, 1.5),
        (-0.0, 0.0),
        (math.inf, math.inf),
        ("text", "text"),
        (b"bytes", b"bytes"),
        (Side.BELOW, Side.BELOW),
        (BOUNDARY, BOUNDARY),
        (np.int64(3), 3),
        (np.uint8(3), 3),
        (np.bool_(True), True),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.float64(-0.0), 0.0),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        (np.array(5), 5),
        (np.array([[1, 2], [3, 4]]), ((1, 2), (3, 4))),
        (np.array([-0.0, 1.0]), (0.0, 1.0)),
        (np.array([True]), (True,)),
        ([1, [2, ("a",)]], (1, (2, ("a",)))),
        ((), ()),
        (Point(1, [2]), (1, (2,))),
        (Level.HIGH, 3),
        (Colour.RED, "red"),
        (Loud("text"), "text"),
        (Seven(3), 3),
        (Shifted(3.0), 3.0),
        (Blob(b"x"), b"x"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_canonical_form(value, plain):
    found = publishable(value)
    assert same(found, plain)
    assert type(found) is type(plain)
    assert repr(found) == repr(plain)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        np.float64(math.nan),
        (1, math.nan),
        np.array([1.0, math.nan]),
        1j,
        {1},
        {"a": 1},
        object(),
        len,
        Decimal(1),
        Fraction(1, 2),
        bytearray(b"a"),
        np.datetime64("2020-01-01"),
        (1, [object()]),
        range(3),
        iter([1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_canonical_form_says_nothing(value):
    with pytest.raises(UnpublishableError) as caught:
        publishable(value)
    assert caught.value.args == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        ("below", Side.BELOW),
        ((1,), (True,)),
        ((1, (0,)), (1, (0.0,))),
        ((1,), (1, 1)),
    ],
)
def test_equal_to_python_but_not_alike(first, second):
    assert not same(first, second)
    assert not same(second, first)
    assert same(first, first)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, math.inf]),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from([*Side, BOUNDARY, Level.HIGH, Colour.RED, Loud("red"), np.int64(1), np.float32(1)]),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=6)


@given(VALUES)
def test_the_canonical_form_is_its_own(value):
    plain = publishable(value)
    again = publishable(plain)
    assert same(plain, again)
    assert repr(plain) == repr(again)
    hash(plain)


@given(st.tuples(VALUES, VALUES, VALUES))
def test_alike_is_an_equivalence_of_looks(values):
    first, second, third = map(publishable, values)
    assert same(first, first)
    assert same(first, second) == same(second, first) == (repr(first) == repr(second))
    assert not (same(first, second) and same(second, third)) or same(first, third)
