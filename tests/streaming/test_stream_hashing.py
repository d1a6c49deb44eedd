"""Hash polynomials against big integers, and their independence against its definition."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare
from tests.goodness import BufferedEntropy

from targetcharge.streaming import sketches
from targetcharge.streaming.sketches import PRIME, Polynomials

P = int(PRIME)
EXTREMES = [0, 1, 2, 2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**31 + 1, 2**60 - 1, 2**60, P // 2, P - 2, P - 1]
FIELD = st.sampled_from(EXTREMES) | st.integers(0, P - 1)
FAR = 1e-9


def horner(coefficients, item):
    value = 0
    for coefficient in coefficients:
        value = (value * item + coefficient) % P
    return value


@given(st.lists(FIELD, min_size=1, max_size=5), st.lists(FIELD, min_size=1, max_size=5))
def test_values_are_those_of_big_integers(coefficients, items):
    family = Polynomials(np.array(coefficients, dtype=np.uint64)[:, None])
    values = family(np.array(items, dtype=np.uint64))
    assert values[:, 0].tolist() == [horner(coefficients, item) for item in items]


def test_all_extremes_at_once():
    """All polynomials with four extreme coefficients, at all extreme items."""
    chosen = [0, 1, 2**31 - 1, 2**31, P - 2, P - 1]
    grid = np.array(np.meshgrid(*[np.array(chosen, dtype=np.uint64)] * 4)).reshape(4, -1)
    values = Polynomials(grid)(np.array(EXTREMES, dtype=np.uint64))
    expected = [[horner(column, item) for column in grid.T.tolist()] for item in EXTREMES]
    assert values.tolist() == expected


@given(
    st.lists(st.tuples(*[st.sampled_from([*EXTREMES, P, 2**61 - 1]) | st.integers(0, 2**61 - 1)] * 2), min_size=1)
)
def test_a_product_is_right_and_stays_below_the_bound_that_is_promised(pairs):
    left, right = np.array(pairs, dtype=np.uint64).T
    found = sketches._product(left, right).tolist()
    assert all(value % P == a * b % P for value, (a, b) in zip(found, pairs, strict=True))
    assert max(found) < 2**61 + 8


def test_shapes_and_equal_items():
    family = Polynomials.draw(BufferedEntropy(1), shape=(3, 2), independence=4)
    values = family(np.array([5, 6, 5], dtype=np.uint64))
    assert values.shape == (3, 3, 2)
    assert values[0].tolist() == values[2].tolist() != values[1].tolist()
    assert family(np.empty(0, dtype=np.uint64)).shape == (0, 3, 2)


def test_an_item_that_is_hashed_does_not_change():
    items = np.array([P - 1, 7], dtype=np.uint64)
    Polynomials.draw(BufferedEntropy(2), shape=(4,), independence=4)(items)
    assert items.tolist() == [P - 1, 7]


@pytest.mark.parametrize("independence", [2, 4])
def test_values_of_any_few_items_are_independent(independence):
    """Chi-square of the quarters in which the values lie, jointly, for items that a weak family would relate."""
    family = Polynomials.draw(BufferedEntropy(3), shape=(40_000,), independence=independence)
    items = np.array([0, 1, 2, 3, P - 1], dtype=np.uint64)
    quarters = (family(items) // np.uint64(2**59)).astype(np.intp)
    for chosen in combinations(range(len(items)), independence):
        joint = np.zeros(len(family.coefficients[0]), dtype=np.intp)
        for item in chosen:
            joint = 4 * joint + quarters[item]
        assert chisquare(np.bincount(joint, minlength=4**independence)).pvalue > FAR


def test_power_three_values_of_a_family_for_two_are_not_independent():
    family = Polynomials.draw(BufferedEntropy(4), shape=(40_000,), independence=2)
    quarters = (family(np.array([1, 2, 3], dtype=np.uint64)) // np.uint64(2**59)).astype(np.intp)
    joint = np.bincount(quarters[0] * 16 + quarters[1] * 4 + quarters[2], minlength=64)
    assert chisquare(joint).pvalue < FAR


@pytest.mark.parametrize("independence", [2, 4])
def test_every_bit_is_fair_and_uncorrelated_with_every_other(independence):
    """As signs of the second moment are: bits of one value, and of two items."""
    family = Polynomials.draw(BufferedEntropy(5), shape=(20_000,), independence=independence)
    values = family(np.array([1, 2], dtype=np.uint64)).astype("<u8")[..., None].view(np.uint8)
    bits = np.unpackbits(values, axis=-1, bitorder="little")[..., :61]
    signs = 2.0 * np.concatenate([bits[0], bits[1]], axis=1) - 1
    correlations = signs.T @ signs / np.sqrt(len(signs))
    upper = correlations[np.triu_indices(122, k=1)]
    assert chi2.sf((upper**2).sum(), len(upper)) > FAR
    assert chi2.sf((signs.sum(axis=0) ** 2).sum() / len(signs), 122) > FAR
