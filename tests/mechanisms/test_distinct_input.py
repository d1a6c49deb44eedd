"""What counts as an element, what is refused and how, and distinct counts in sessions."""

import functools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import BufferedEntropy
from tests.refusals import every
from tests.sessions.scripted import opened

import targetcharge as tc
from targetcharge.mechanisms import distinct_count
from targetcharge.mechanisms.keyed_hash import KeyedHash, canonical

EPSILON = 0.5
MANY = range(20_000)
FEW = range(10)

bits = st.integers(-(2**70), 2**70)
plain = st.one_of(bits, st.booleans(), st.floats(allow_nan=False), st.text(max_size=3), st.binary(max_size=3))
close = st.sampled_from(
    [0, -0.0, False, 1, 1.0, True, -1, 255, 256, -128, 128, 0.1, 2.0**60, 2**60, 2**60 + 1, math.inf, -math.inf]
)
texts = st.sampled_from(["", b"", "1", b"1", "n1", "\ud800", "é", "e\u0301"])
elements = st.one_of(plain, close, texts)


def itself(data):
    return data


# Elements.


@given(elements, elements)
def test_two_elements_have_one_form_exactly_where_a_set_has_one(first, second):
    assert (canonical(first) == canonical(second)) == (first == second)


@given(st.one_of(st.integers(-(2**31), 2**31 - 1), st.floats(width=32, allow_nan=False), st.text(max_size=3)))
def test_numpys_scalars_are_what_they_hold(element):
    kinds = {int: np.int64, float: np.float32, str: np.str_}
    assert canonical(kinds[type(element)](element)) == canonical(element)


def test_missing_values_are_no_elements():
    assert all(canonical(missing) is None for missing in (None, math.nan, np.float32("nan")))
    assert [words.shape for words in KeyedHash(b"key").words([None, math.nan])] == [(0, 2)]


@pytest.mark.parametrize(
    "same",
    [
        np.array([1, 2, 300]),
        np.array([1, 2, 300], np.uint16),
        np.array([1, 2, 300, np.nan]),
        np.array([1, 2, None, 300], dtype=object),
        pd.Series([1, 2, 300]),
        pd.Series([1, 2, None, 300]),
        {1, 2, 300},
        {1: "a", 2: "b", 300: "c"},
        (number for number in (1, 2, 300)),
        np.ma.masked_array([1, 2, 9, 300], [False, False, True, False]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_all_kinds_of_collections_give_the_same_words(same):
    key = b"key"
    expected = np.concatenate(list(KeyedHash(key).words([1, 2, 300])))
    assert np.array_equal(np.concatenate(list(KeyedHash(key).words(same))), expected)


def test_words_hang_on_the_key():
    first, second = (np.concatenate(list(KeyedHash(key).words(range(100)))) for key in (b"one", b"two"))
    assert not np.any(first == second)


def test_long_columns_come_in_pieces():
    pieces = list(KeyedHash(b"key").words(np.arange(20_000)))
    assert len(pieces) > 1
    assert np.array_equal(
        np.concatenate(pieces), np.concatenate(list(KeyedHash(b"key").words(iter(range(20_000)))))
    )


PRIVATE = "patient 4711"
NO_ELEMENTS = [
    PRIVATE,
    PRIVATE.encode(),
    5,
    None,
    [PRIVATE, (1, 2)],
    [[PRIVATE]],
    [1j],
    [Fraction(1, 2)],
    [pd.NA],
    np.array([[1, 2], [3, 4]]),
    np.array(["2024-01-01"], "M8[D]"),
    np.array(5),
    pd.DataFrame({"name": [PRIVATE]}),
]


@pytest.mark.parametrize("data", NO_ELEMENTS, ids=lambda value: type(value).__name__)
def test_what_is_no_element_breaks_the_run_and_is_paid(data):
    algorithm = distinct_count(itself, EPSILON, threshold=10**6)
    with pytest.raises(TypeError) as broken:
        algorithm.run(data, BufferedEntropy(1))
    assert PRIVATE not in str(broken.value)
    session = opened(3, data=data, epsilon=EPSILON)
    with pytest.raises(tc.ComputationFailed) as failed:
        session.ask(algorithm)
    assert failed.value.__cause__ is failed.value.__context__ is None
    assert session.meter.hits == 1


# Parameters.

GOOD = {"elements": itself, "epsilon": 0.1, "threshold": 1000, "per_unit": 2, "buckets": 64}
BAD = {
    "elements": [None, 3, "column", [1, 2]],
    "epsilon": [0, -1.0, math.nan, math.inf, 10.1, "0.1", None, True, 4e-7],
    "threshold": [0, 0.5, -3, math.nan, math.inf, 2.0**54, "5", True],
    "per_unit": [0, -1, 1.0, 2.5, True, None, "1", 10**16],
    "buckets": [0, 15, -64, 64.0, True, "64", 2**20 + 1],
    "name": ["", "  ", 3],
}


def test_refused_by_name_and_value():
    def is_refused(name, value):
        with pytest.raises(tc.InvalidParameter) as refusal:
            distinct_count(**GOOD | {name: value})
        assert refusal.value.name == name
        assert refusal.value.value is value

    distinct_count(**GOOD)
    every([(name, value) for name, values in BAD.items() for value in values], is_refused)


def test_too_many_phantoms_are_refused_and_never_chosen():
    with pytest.raises(tc.InvalidParameter, match=r"an integer from 16 to 67, with 1,000,000 phantoms in each"):
        distinct_count(itself, 1e-6, buckets=1024)
    assert _buckets(1e-6) == 67
    assert _buckets(2.5e-7, threshold=10**15) == 16
    with pytest.raises(
        tc.InvalidParameter, match=r"epsilon is 0\.1; it must be at least 0\.25 at per_unit 1000000"
    ):
        distinct_count(itself, 0.1, per_unit=10**6)


def _buckets(epsilon, **options):
    """Return how many buckets were chosen, by how many words the phantoms take."""

    class Enough(Exception):  # noqa: N818 - it ends the run
        pass

    class First(BufferedEntropy):
        def words(self, count):
            raise Enough(count)

    with pytest.raises(Enough) as ended:
        distinct_count(itself, epsilon, **options).run([], First(1))
    return ended.value.args[0]


def test_buckets_fit_the_threshold():
    assert _buckets(0.1) == 1024
    assert _buckets(0.1, threshold=20_000) == 1000
    assert _buckets(0.1, threshold=20_000, per_unit=5) == 20_000 // (2 * 50)
    assert _buckets(0.1, threshold=10) == 64
    assert _buckets(1.0, threshold=10**9) == 2**14
    assert _buckets(1.0, threshold=10**9, buckets=100) == 100


def test_names_and_targets():
    assert distinct_count(len, 0.1).name == "distinct_count(len)"
    assert distinct_count(functools.partial(itself), 0.1, name="users").name == "users"
    assert distinct_count(itself, 0.1).default_target is None
    above = distinct_count(itself, 0.1, threshold=5)
    assert above.default_target == tc.NotPrior(None)
    assert above.supports(tc.Everything())
    assert not any(above.supports(target) for target in (tc.Boundary(), tc.Disagreement(), tc.Between(1, 2)))
    with pytest.raises(tc.NotAllowed):
        tc.boundary(above)


# In sessions.


def test_an_estimate_is_published_from_the_threshold_on_and_paid():
    session = opened(5, data=MANY, epsilon=EPSILON)
    hit = session.ask(distinct_count(itself, EPSILON, threshold=10_000))
    assert hit.hit
    assert 16_000 < hit.outcome < 24_000
    low, high = hit.interval
    assert 0 < low < hit.outcome < high
    assert hit.scale == 0
    miss = session.ask(distinct_count(itself, EPSILON, threshold=40_000))
    assert (miss.hit, miss.outcome, miss.price) == (False, None, 0)
    assert miss.interval[0] is None
    assert miss.interval[1] > 40_000
    assert session.meter.hits == 1


def test_questions_of_all_kinds():
    session = opened(9, data=MANY, epsilon=EPSILON)
    assert session.test(distinct_count(itself, EPSILON, threshold=10_000)).outcome is True
    assert session.test(distinct_count(lambda _: FEW, EPSILON, threshold=10_000)).outcome is False
    assert session.ask_prior(distinct_count(itself, EPSILON), 0).hit
    assert session.ask(distinct_count(itself, EPSILON), tc.Everything()).hit
    best = session.select([distinct_count(lambda _, n=n: range(n), EPSILON) for n in (10, 30_000, 10_000)], k=2)
    assert [answer.candidate for answer in best] == [1, 2]
    assert session.meter.hits == 5
    with pytest.raises(tc.InvalidParameter, match="has none of its own"):
        session.ask(distinct_count(itself, EPSILON))


def test_a_release_waits_for_its_condition_and_is_not_drawn_again():
    session = opened(5, data=MANY, epsilon=EPSILON)
    calls = []

    def counted(data):
        calls.append(1)
        return data

    release = session.release(distinct_count(counted, EPSILON), lambda count: count > 10**6)
    assert (release.released, release.outcome, release.interval) == (False, None, None)
    assert session.meter.hits == 0
    later = release.revise(lambda count: count > 10_000)
    assert later.released
    assert later.interval[0] < later.outcome < later.interval[1]
    assert (len(calls), session.meter.hits) == (1, 1)
