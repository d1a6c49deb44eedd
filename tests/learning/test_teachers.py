"""Teachers: what happens inside one stays there, and moves one vote."""

import logging
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from targetcharge.errors import InvalidParameter
from targetcharge.learning.inputs import rehearse
from targetcharge.learning.teachers import (
    PrivateRecords,
    RandomChoices,
    ballot,
    count_votes,
    deal,
    encode,
    own_random_state,
    set_random_states,
)

CLASSES = np.array(["no", "so-so", "yes"])
REQUESTS = np.linspace(-1, 1, 7)[:, None]
IN_TURN = [0, 1, 2, 0, 1, 2, 0]


class Classifier(ClassifierMixin, BaseEstimator):
    """Predicts the class of the largest training feature."""

    def fit(self, features, y):
        self.answer_ = y[features[:, 0].argmax()]
        return self

    def predict(self, features):
        return np.full(len(features), self.answer_)


class FailsToFit(Classifier):
    def fit(self, features, *_):
        msg = f"I saw {features[0, 0]}"
        raise ValueError(msg)


class FailsToPredict(Classifier):
    def predict(self, *_):
        raise RuntimeError(self.answer_)


class Exits(Classifier):
    def fit(self, *_):
        raise SystemExit(3)


class WrongShape(Classifier):
    def predict(self, features):
        return np.full((len(features), 2), self.answer_)


class OfMixedTypes(Classifier):
    def predict(self, features):
        return np.array([self.answer_, 1, None] + [self.answer_] * (len(features) - 3), dtype=object)


class PartlyUnknown(Classifier):
    def predict(self, features):
        return np.where(np.arange(len(features)) < 5, "yes", "perhaps")


class Interrupted(Classifier):
    def fit(self, *_):
        raise KeyboardInterrupt


class Loud(Classifier):
    def fit(self, features, y):
        sys.stdout.write("printed\n")
        sys.stderr.write("printed to stderr\n")
        warnings.warn("warned", UserWarning, stacklevel=1)
        logging.getLogger("loud").critical("logged")
        return super().fit(features, y)


class Gambler(Classifier):
    """Draws from the shared generator, more often if its records are large."""

    def fit(self, features, y):
        check_random_state(None).random(int(abs(features).sum()))
        self.classes_ = np.unique(y)
        return self

    def predict(self, features):
        return check_random_state(None).choice(self.classes_, len(features))


def one_ballot(estimator, codes=(0, 1, 2)):
    codes = np.array(codes, np.intp)
    return ballot(estimator, np.arange(len(codes), dtype=float)[:, None], codes, REQUESTS, CLASSES, 1).tolist()


def test_a_teacher_votes_for_what_it_predicts():
    assert one_ballot(Classifier(), [0, 2, 1]) == [1] * 7
    assert one_ballot(Classifier(), [1, 0]) == [0] * 7


@pytest.mark.parametrize("estimator", [FailsToFit(), FailsToPredict(), Exits(), WrongShape(), OfMixedTypes()])
def test_a_teacher_that_fails_votes_in_turn(estimator):
    assert one_ballot(estimator) == IN_TURN


def test_what_is_no_class_is_voted_in_turn():
    assert one_ballot(PartlyUnknown()) == [2, 2, 2, 2, 2, IN_TURN[5], IN_TURN[6]]


def test_an_empty_part_votes_in_turn():
    assert one_ballot(Classifier(), []) == IN_TURN


def test_a_part_of_one_class_votes_for_it_unasked():
    assert one_ballot(FailsToFit(), [1, 1]) == [1] * 7
    assert one_ballot(FailsToFit(), [2]) == [2] * 7


def test_an_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        one_ballot(Interrupted())


def test_nothing_is_heard_of_a_teacher(capfd, caplog):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert one_ballot(Loud()) == [2] * 7
    assert heard == []
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    with pytest.warns(UserWarning, match="warned"):  # it is loud indeed, and the silence is over
        Loud().fit(np.zeros((1, 1)), CLASSES[:1])
    assert capfd.readouterr() == ("printed\n", "printed to stderr\n")
    assert [record.message for record in caplog.records] == ["logged"]


def blobs(records, generator):
    codes = generator.integers(3, size=records)
    return generator.normal(size=(records, 2)) + 2 * codes[:, None], codes


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_each_teacher_has_one_vote_on_each_request(n_jobs):
    features, codes = blobs(60, np.random.default_rng(0))
    private = PrivateRecords(features, codes, deal(60, 9, np.random.default_rng(0)))
    requests = features[:20]
    estimator = make_pipeline(StandardScaler(), RandomForestClassifier(3))
    votes = count_votes(estimator, private, requests, CLASSES, range(9), n_jobs=n_jobs)
    assert votes.dtype == np.int64
    assert (votes.sum(axis=1) == 9).all()
    apart = np.zeros_like(votes)
    for teacher in range(9):
        rows = private.part == teacher
        votes_of_one = ballot(estimator, features[rows], codes[rows], requests, CLASSES, teacher)
        apart[np.arange(20), votes_of_one] += 1
    assert (votes == apart).all()


def test_a_progress_bar_is_shown_if_wished(capsys):
    features, codes = blobs(20, np.random.default_rng(0))
    private = PrivateRecords(features, codes, deal(20, 4, np.random.default_rng(0)))
    count_votes(GaussianNB(), private, features, CLASSES, range(4), verbose=True)
    assert "training teachers" in capsys.readouterr().err
    count_votes(GaussianNB(), private, features, CLASSES, range(4))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "estimator",
    [GaussianNB(), RandomForestClassifier(2, random_state=0), RandomForestClassifier(2), Gambler(), FailsToFit()],
)
def test_a_replaced_record_moves_one_teacher_on_every_request(estimator):
    """Brute force over all records: each row of counts moves by one vote at most."""
    generator = np.random.default_rng(5)
    features, codes = blobs(24, generator)
    part = deal(24, 4, generator)
    requests = generator.normal(size=(30, 2)) * 3
    before = count_votes(estimator, PrivateRecords(features, codes, part), requests, CLASSES, range(4))
    moved = 0
    for place in range(24):
        others, other_codes = features.copy(), codes.copy()
        others[place], other_codes[place] = (50.0, -50.0), (codes[place] + 1) % 3
        after = count_votes(estimator, PrivateRecords(others, other_codes, part), requests, CLASSES, range(4))
        distance = abs(after - before).sum(axis=1)
        assert distance.max() <= 2
        moved += distance.sum()
    assert moved > 0 or isinstance(estimator, FailsToFit)


def test_teachers_that_share_random_numbers_would_move_together():
    """Why each has a stream of its own: what the first one draws depends on its records."""

    def second_teacher(first_record):
        shared = np.random.RandomState(0)
        shared.random(int(abs(first_record)))
        return shared.choice(3, 30)

    assert (second_teacher(5) != second_teacher(50)).any()


def test_the_global_generators_are_as_before():
    check_random_state(None).seed(7)
    expected = check_random_state(None).random(3).tolist()
    check_random_state(None).seed(7)
    with own_random_state(1):
        inside = check_random_state(None).random(3).tolist()
    assert check_random_state(None).random(3).tolist() == expected
    assert inside != expected
    check_random_state(None).seed(None)


def test_every_random_state_inside_an_estimator_is_set():
    estimator = make_pipeline(StandardScaler(), RandomForestClassifier(random_state=0))
    one, other = clone(estimator), clone(estimator)
    set_random_states(one, 1)
    set_random_states(other, 2)
    states = [each.get_params()["randomforestclassifier__random_state"] for each in (estimator, one, other)]
    assert len({*states}) == 3


def test_choices_follow_the_random_state():
    assert RandomChoices(3, 5).key == RandomChoices(3, 5).key != RandomChoices(4, 5).key
    assert RandomChoices(None, 5).key != RandomChoices(None, 5).key
    check_random_state(None).seed(0)
    first = RandomChoices(None, 5).key
    check_random_state(None).seed(0)
    assert RandomChoices(None, 5).key != first
    check_random_state(None).seed(None)
    with pytest.raises(InvalidParameter, match="random_state"):
        RandomChoices("seven", 5)


def test_labels_become_indices():
    assert encode(np.array(["yes", "no", "?"]), CLASSES).tolist() == [2, 0, -1]
    assert encode(np.array([1, 2, 3], np.uint8), np.array([1.0, 3.0])).tolist() == [0, -1, 1]
    assert encode(np.array([]), CLASSES).tolist() == []


def test_a_rehearsal_passes_a_classifier_and_changes_nothing():
    estimator = GaussianNB()
    assert rehearse("estimator", estimator, 3, CLASSES) is None
    assert not hasattr(estimator, "classes_")


@pytest.mark.parametrize(
    ("wrong", "said"), [(FailsToFit(), "ValueError: I saw 0."), (FailsToPredict(), "RuntimeError")]
)
def test_a_rehearsal_tells_what_an_estimator_said(wrong, said):
    with pytest.raises(InvalidParameter, match=said) as caught:
        rehearse("student", wrong, 3, CLASSES)
    assert caught.value.name == "student"
    assert isinstance(caught.value.__cause__, ValueError | RuntimeError)


def test_a_rehearsal_does_not_tell_how_many_records_there_are():
    """With units their number is private."""
    told = []
    for records in (17, 23):
        with pytest.raises(InvalidParameter, match="from made-up records of 3 columns") as caught:
            rehearse("estimator", FailsToPredict(), 3, CLASSES, records)
        told.append(str(caught.value).partition("it said")[0])
    assert told[0] == told[1]


@pytest.mark.parametrize("wrong", [PartlyUnknown(), WrongShape()])
def test_a_rehearsal_refuses_what_is_no_classifier(wrong):
    with pytest.raises(InvalidParameter, match="no class"):
        rehearse("estimator", wrong, 3, CLASSES)


@pytest.mark.parametrize("records", [None, 1, 2, 3, 4, 5, 10, 10**9])
def test_a_rehearsal_is_about_as_large_as_a_part(records):
    rehearse("estimator", GaussianNB(), 3, CLASSES, records)
    rehearse("estimator", KNeighborsClassifier(min(max(records or 30, 2), 30)), 3, CLASSES, records)
    with pytest.raises(InvalidParameter, match="n_neighbors"):
        rehearse("estimator", KNeighborsClassifier(min(max(records or 30, 2), 30) + 1), 3, CLASSES, records)
