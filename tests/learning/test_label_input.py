"""Bad input to labelling: each is refused by name, nothing is charged or written, and no count is shown."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.learning.sure_votes import EPSILON, session_for, untouched
from tests.sessions.known_requests import requests_batch

import targetcharge as tc
from targetcharge.learning import LOW, Labels, label, recall
from targetcharge.mechanisms.algorithm import batch_algorithm

TEACHERS = 91_375
"""A number that is in no text by chance; nor are the counts below."""

COUNTS = [[80_243, 11_132], [24_681, 66_694], [0, 91_375]]
PRIVATE = ["80243", "80,243", "11132", "11,132", "24681", "24,681", "66694", "66,694"]
GOOD = np.array(COUNTS)


def told(given):
    """Return a text for a test's id, the same in every process."""
    return "a set" if isinstance(given, set) else re.sub(" at 0x[0-9a-f]+", "", repr(given))


@pytest.fixture(autouse=True)
def never_drawn_from(monkeypatch):
    """Whatever is refused is refused before the votes are drawn from."""

    def drawn(*_):
        raise AssertionError

    monkeypatch.setattr("targetcharge.learning.votes.Votes.rows", drawn)


def refused(words, votes=GOOD, session=None, error=tc.InvalidParameter, **more):
    """Label, and check how it was refused; return the error."""
    session = session or session_for("boundary", 5)
    options = {"teachers": TEACHERS, "epsilon": EPSILON, **more}
    with pytest.raises(error, match=words) as caught:
        label(votes, session, **options)
    assert untouched(session)
    for count in PRIVATE:
        assert count not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value


def changed(row, column, value, dtype=np.float64):
    votes = GOOD.astype(dtype)
    votes[row, column] = value
    return votes


# Votes.


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("by", [1, -1, 0.5, 10**5])
def test_a_row_that_does_not_sum_to_the_teachers_is_named(row, by):
    votes = changed(row, 1, GOOD[row, 1] + by)
    error = refused(f"votes is <ndarray>; .* row {row} ", votes)
    assert error.name == "votes"


def test_the_first_of_many_wrong_rows_is_named_also_far_down():
    votes = np.tile(GOOD, (300_000, 1))
    votes[[777_777, 800_000], 0] += 1
    refused(r"rows that sum to teachers=91375: row 777777 does not", votes)


@pytest.mark.parametrize("row", [0, 2])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1, "at least 0: row {} has a negative count"),
        (-0.5, "whole numbers: row {} has one that is not"),
        (10.5, "whole numbers: row {} has one that is not"),
        (float("nan"), "whole numbers: row {} has one that is not"),
        (float("inf"), "rows that sum to teachers=91375: row {} does not"),
        (float("-inf"), "at least 0: row {} has a negative count"),
        (1e300, "rows that sum to teachers=91375: row {} does not"),
        (2.0**63, "rows that sum to teachers=91375: row {} does not"),
    ],
)
def test_a_count_that_is_none_is_refused_and_its_row_named(row, value, words):
    refused(words.format(row), changed(row, 0, value))


def test_negative_counts_that_sum_up_are_refused():
    refused("row 1 has a negative count", [[91_375, 0], [91_376, -1]])
    refused("row 0 has a negative count", [[float("inf"), float("-inf")]])


@pytest.mark.parametrize(
    "votes",
    [
        [[2**64, 0]],
        np.array([[2**64 - 1, 91_376]], dtype=np.uint64),
        [[2**63 - 1, 2**63 - 1]],
        [[np.longdouble("1e4000"), 0]],
        [[10**400, 0]],
    ],
    ids=["object", "uint64", "int64", "longdouble", "huge"],
)
def test_huge_counts_are_refused(votes):
    refused("votes is <", votes)


@pytest.mark.parametrize(
    "votes",
    [
        None,
        5,
        "votes",
        [],
        [91_375, 0],
        [[[91_375, 0]]],
        [[80_243, 11_132], [91_375]],
        [["80243", "11132"]],
        [[True, False]],
        np.array([[80_243, 11_132]], dtype=object),
        np.array([[80_243 + 0j, 11_132]]),
        np.array([["2020-01-01", "2020-01-02"]], dtype="M8[D]"),
        [[None, 91_375]],
        {"cat": 80_243},
        object(),
    ],
    ids=told,
)
def test_anything_but_a_table_of_numbers_is_refused(votes):
    refused("votes is .* a table of counts", votes)


@pytest.mark.parametrize("columns", [0, 1, 2**16 - 1, 2**16])
def test_a_table_has_two_classes_or_more_and_not_too_many(columns):
    votes = np.zeros((3, columns), dtype=int)
    votes[:, :1] = 91_375
    refused(f"2 to 65,534 columns, one for each class, and this has {columns}", votes)


@pytest.mark.parametrize(
    "teachers", [True, 91_375.0, 0, -5, "91375", float("nan"), 10**6 + 1, 2**70, [91_375]], ids=told
)
def test_a_number_of_teachers_that_is_none_is_refused(teachers):
    refused("teachers is", teachers=teachers)


# Parameters of the computation.


@pytest.mark.parametrize(
    "epsilon", [0, 0.0, -0.1, float("nan"), float("inf"), 1.1, 10.5, 1e-10, "0.1", None, True, 1j], ids=told
)
def test_an_epsilon_out_of_range_is_refused(epsilon):
    refused("epsilon is", epsilon=epsilon)


def test_an_epsilon_above_one_is_refused_in_mode_boundary_only():
    refused("epsilon is 1.5; .* 1, the ε of one computation asked with Boundary", epsilon=1.5)
    labels = label(GOOD, session_for("plain", 5), teachers=TEACHERS, epsilon=1.5, mode="plain")
    assert (labels.asked, labels.stopped != "") == (
        0,
        True,
    )  # the budget does not cover it: the mode would not mind


@pytest.mark.parametrize("mode", ["Boundary", "", "wrapper", None, 3, ["boundary"], b"plain"], ids=told)
def test_an_unknown_mode_is_refused_with_the_choices(mode):
    refused("mode is .* one of 'boundary', 'prior', 'twice', 'plain'", mode=mode)


@pytest.mark.parametrize("mechanism", ["gnmax", "", None, 3, ["exponential"]], ids=told)
def test_an_unknown_mechanism_is_refused_with_the_choices(mechanism):
    refused(
        "mechanism is .* one of 'permute_and_flip', 'exponential', 'noisy_max'", mechanism=mechanism, mode="plain"
    )


def test_noisy_max_is_refused_in_mode_boundary():
    refused("take permute_and_flip", error=tc.NotAllowed, mechanism="noisy_max")


@pytest.mark.parametrize(
    "threshold", [float("nan"), float("inf"), -float("inf"), "100", True, 2.0**54, 10**400, 1j], ids=told
)
def test_a_threshold_that_is_no_number_is_refused(threshold):
    refused("threshold is", threshold=threshold)


@pytest.mark.parametrize(
    "share", [0, -0.01, EPSILON, 0.2, float("nan"), float("inf"), "0.05", True, 1e-12, EPSILON - 1e-12], ids=told
)
def test_a_part_for_the_test_that_is_none_is_refused(share):
    refused("threshold_epsilon is", threshold=100, threshold_epsilon=share)


def test_a_part_for_a_test_that_is_not_made_is_refused():
    refused("threshold_epsilon is 0.05; .* no threshold", threshold_epsilon=0.05)


# Priors.


def refused_prior(prior, words, **more):
    refused(f"prior is .*{words}", session=session_for("prior", 5), mode="prior", prior=prior, **more)


@pytest.mark.parametrize(
    "prior",
    [None, [], [0, 1], [0, 1, 1, 1], 0, [[0, 1, 1]], [[0], [1], [1]], [[0], [1, 2], []], "abc", {"a": 1}],
    ids=told,
)
def test_a_prior_has_a_class_for_each_request(prior):
    refused_prior(prior, "a class for each of the 3 requests")


@pytest.mark.parametrize(
    "prior",
    [
        [0, 1, 2],
        [0, 1, -1],
        [0, 1, 0.5],
        ["0", "1", "1"],
        [0, 1, float("nan")],
        [None] * 3,
        [LOW, 0, 1],
        [tc.BOUNDARY] * 3,
        [0, "a", None],
        np.array([0, None, "b"], dtype=object),
    ],
    ids=told,
)
def test_a_prior_that_is_no_class_is_refused(prior):
    refused_prior(prior, "one of the classes for each request")


def test_a_prior_that_cannot_be_a_class_is_refused():
    refused_prior(np.array([{}, {}, {}]), "a class for each")


@pytest.mark.parametrize("mode", ["boundary", "twice", "plain"])
def test_a_prior_in_another_mode_is_refused(mode):
    refused("prior is .* left out, unless mode is 'prior'", mode=mode, prior=[0, 0, 1])


# Classes, names, sessions.


@pytest.mark.parametrize(
    "classes",
    [
        [],
        ["a"],
        ["a", "b", "c"],
        ["a", "a"],
        [1, True],
        [1, 1.0],
        [0.0, -0.0],
        [LOW, "a"],
        ["a", tc.BOUNDARY],
        ["a", tc.UNCHANGED],
        "ab",
        b"ab",
        {"a", "b"},
        {"a": 1, "b": 2},
        [float("nan"), 1],
        [{}, 1],
        [object(), 1],
        3,
        0,
        -2,
        2.0,
        True,
    ],
    ids=told,
)
def test_classes_that_are_none_are_refused(classes):
    refused("classes is", classes=classes)


@pytest.mark.parametrize("name", ["", "  ", None, 5, b"labels", ["labels"]], ids=told)
def test_a_name_that_is_none_is_refused(name):
    refused("name is", name=name)


@pytest.mark.parametrize("session", ["session", object(), tc.Session], ids=told)
def test_anything_but_a_session_is_refused(session):
    with pytest.raises(tc.InvalidParameter, match="session is"):
        label(GOOD, session, teachers=TEACHERS, epsilon=EPSILON)
    with pytest.raises(tc.InvalidParameter, match="session is"):
        recall(session)


# Where to start.


@pytest.mark.parametrize(
    "start",
    [-1, 4, 10**20, True, False, 0.0, 1.5, float("nan"), "1", None, [0], np.array([0]), (0, 1)],
    ids=told,
)
def test_a_start_that_is_no_request_is_refused(start):
    refused(f"start is .* an integer from 0 to {len(GOOD)}", start=start)


def test_labels_of_other_classes_or_of_more_requests_are_no_start():
    for classes in [("a", "b"), (1, 0), (0, 1, 2), (0,)]:
        refused("start is <labels.* labels of these classes", start=Labels.nothing(classes, 3))
    asked = Labels.nothing((0, 1), 4).with_codes(0, np.array([0, 1, 1, 0]), np.array([0]))
    refused("start is <labels.* of at most 3 requests", start=asked)


# What to recall.


@pytest.mark.parametrize("name", ["other", "", None, 5, ["labels"]], ids=told)
def test_a_name_that_no_labels_have_is_not_recalled(name):
    session = session_for("plain", 5)
    with pytest.raises(tc.InvalidParameter, match=re.escape("the name of labels on this ledger")):
        recall(session, name)


def test_single_answers_and_other_batches_are_no_labels():
    session = session_for("plain", 5)
    session.ask(tc.private(EPSILON, name="labels")(lambda _: 1), tc.Everything())
    others = requests_batch(
        batch_algorithm("labels", EPSILON, tc.Everything()),
        ("x",),
        5,
        lambda _, __, first, last: (np.zeros(last - first, np.intp), np.zeros(last - first, bool)),
    )
    list(session.ask_batch(others))
    with pytest.raises(tc.InvalidParameter, match="the name of labels on this ledger"):
        recall(session)
