"""The helper that checks many cases in one test tells all that fail, and never passes for want of cases."""

import pytest
from tests.refusals import every


def is_positive(number):
    assert number > 0


def test_all_that_fail_are_told_at_once():
    with pytest.raises(AssertionError) as caught:
        every([1, -2, 3, -4], is_positive)
    assert "2 of 4 cases failed" in str(caught.value)
    assert [name in str(caught.value) for name in ("\n-2: ", "\n-4: ", "\n1: ")] == [True, True, False]


def test_a_case_that_raises_or_does_not_raise_is_told():
    def is_refused(value):
        with pytest.raises(ValueError, match="invalid literal"):
            int(value)

    every({"a word": "x", "nothing": ""}, is_refused)
    with pytest.raises(AssertionError, match=r"(?s)2 of 3 .*a number: .*DID NOT RAISE.*a list: .*TypeError"):
        every({"a word": "x", "a number": "5", "a list": []}, is_refused)


def test_a_tuple_is_several_arguments():
    with pytest.raises(AssertionError, match=r"1 of 2 cases failed:\s+\(3, 2\)"):
        every([(1, 2), (3, 2)], lambda low, high: is_positive(high - low))


def test_no_cases_are_no_success():
    with pytest.raises(AssertionError, match="no case"):
        every([], is_positive)
