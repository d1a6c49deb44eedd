"""Teachers and what they share: no arrays, no processes, no terminal, no random numbers, no thread's state."""

import ctypes
import logging
import os
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from tests.learning.far_clusters import FEATURES, LABELS, REQUESTS, make
from tests.refusals import every

from targetcharge.errors import InvalidParameter
from targetcharge.learning.inputs import rehearse
from targetcharge.learning.labels import Labels
from targetcharge.learning.student import predictions
from targetcharge.learning.teachers import (
    PrivateRecords,
    ballot,
    count_votes,
    deal,
    own_random_state,
    silence,
    switch_off_verbose,
)

TEACHERS = 8
CLASSES = np.array([0, 1])
DRAW = np.random.default_rng(0)
RECORDS = DRAW.normal(size=(160, 3))
CODES = (RECORDS[:, 0] + DRAW.normal(size=160) > 0).astype(np.intp)
PART = deal(160, TEACHERS, np.random.default_rng(1))
PUBLIC = DRAW.normal(size=(40, 3))


def add_in_place(table):
    table += table.max()
    return table


IN_PLACE = {
    "scaler": make_pipeline(StandardScaler(copy=False), LogisticRegression()),
    "function": make_pipeline(FunctionTransformer(add_in_place), LogisticRegression()),
}


def votes(estimator, records=RECORDS, n_jobs=None):
    return count_votes(
        estimator, PrivateRecords(records, CODES, PART), PUBLIC, CLASSES, range(TEACHERS), n_jobs=n_jobs
    )


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_teacher_that_works_in_place_moves_its_own_vote_only(name, n_jobs):
    """With two processes joblib sends several teachers at once, and what they share once."""
    records, requests = RECORDS.copy(), PUBLIC.copy()
    before = votes(IN_PLACE[name], records, n_jobs)
    assert (records == RECORDS).all()
    assert (requests == PUBLIC).all()  # which were given to the teachers
    records[np.flatnonzero(PART == 0)[0]] = 1e4
    moved = abs(votes(IN_PLACE[name], records, n_jobs) - before)
    assert moved.max() == 1
    assert moved.sum(axis=1).max() == 2
    apart = np.zeros_like(before)
    for teacher in range(TEACHERS):
        rows = teacher == PART
        alone = ballot(IN_PLACE[name], RECORDS[rows], CODES[rows], PUBLIC.copy(), CLASSES, teacher)
        apart[np.arange(40), alone] += 1
    assert (before == apart).all()


@pytest.mark.parametrize("mode", ["plain", "prior"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_callers_arrays_are_left_alone(mode, n_jobs):
    features, requests, tried = FEATURES.copy(), REQUESTS.copy(), REQUESTS.copy()
    model = make(make_pipeline(StandardScaler(copy=False), GaussianNB()), mode=mode, n_jobs=n_jobs)
    model.fit(features, LABELS, requests)
    model.predict(tried)
    model.predict_proba(tried)
    assert (features == FEATURES).all()
    assert (requests == REQUESTS).all()
    assert (tried == REQUESTS).all()


def test_a_student_that_works_in_place_changes_no_request():
    requests = PUBLIC.copy()
    labels = Labels.nothing((0, 1), 20).with_codes(0, np.arange(20) % 2, np.arange(0))
    predictions(IN_PLACE["scaler"], requests, labels)
    assert (requests == PUBLIC).all()


class Prints(ClassifierMixin, BaseEstimator):
    """Writes past Python's own streams, and leaves some of it in buffers."""

    def fit(self, _, y):
        os.write(1, b"secret")
        os.write(2, b"secret")
        sys.__stdout__.write("secret")
        ctypes.CDLL(None).printf(b"secret")
        subprocess.run([sys.executable, "-c", "print('secret')"], check=True)
        self.classes_ = np.unique(y)
        return self

    def predict(self, features):
        return np.full(len(features), self.classes_[0])


LOUD = {
    "C": SVC(verbose=True),
    "pipeline": make_pipeline(StandardScaler(), SVC(verbose=True), verbose=True),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2, n_jobs=2, verbose=3),
    "search of the loud": GridSearchCV(SVC(verbose=True), {"C": [0.1, 1]}, cv=2, n_jobs=2, verbose=3),
    "descriptors": Prints(),
}


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_nothing_a_teacher_writes_reaches_the_terminal(n_jobs, capfd):
    def is_silent(loud):
        sys.stdout.write("before\n")
        ctypes.CDLL(None).printf(b"by C before\n")
        count_votes(loud, PrivateRecords(RECORDS, CODES, PART % 2), PUBLIC, CLASSES, range(2), n_jobs=n_jobs)
        ctypes.CDLL(None).fflush(None)
        sys.stdout.write("after\n")
        told = capfd.readouterr()
        assert sorted(told.out.split("\n")) == ["", "after", "before", "by C before"]
        assert told.err == ""

    get_reusable_executor().shutdown(wait=True)  # so that new processes write to this test's terminal
    every(LOUD, is_silent)


def test_a_rehearsal_is_silent_too(capfd):
    rehearse("estimator", LOUD["search of the loud"], 3, CLASSES)
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr() == ("", "")


def test_every_verbose_inside_an_estimator_is_switched_off():
    estimator = make_pipeline(
        StandardScaler(), GridSearchCV(SVC(verbose=True), {"C": [1]}, verbose=3), verbose=True
    )
    switch_off_verbose(estimator)
    found = {name: each for name, each in estimator.get_params().items() if name.endswith("verbose")}
    assert len(found) == 3
    assert not any(found.values())


def test_silence_without_a_terminal():
    """A service may have closed its standard streams."""
    program = (
        "import os; from targetcharge.learning.teachers import silence; os.close(1); os.close(2)\n"
        "with silence(): print('x')\n"
        "raise SystemExit(7)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7  # noqa: S603 - made here


def overlapping(manage):
    """Run two threads; the second begins within the first one's block and ends after it, unless kept out."""
    begun, within, left, log = threading.Event(), threading.Event(), threading.Event(), []

    def first():
        with manage(1):
            log.append("first enters")
            begun.set()
            within.wait(0.3)
            log.append("first leaves")
        left.set()

    def second():
        begun.wait()
        with manage(2):
            log.append("second enters")
            within.set()
            left.wait()

    threads = [threading.Thread(target=each) for each in (first, second)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return log


@contextmanager
def silenced(_):
    with silence():
        yield


@pytest.mark.parametrize("manage", [silenced, own_random_state])
def test_threads_take_turns(manage):
    assert overlapping(manage) == ["first enters", "first leaves", "second enters"]


def test_threads_leave_everything_as_it_was():
    """The second thread begins within the first one's block, and would put back what that one had changed."""
    before = (sys.stdout, sys.stderr, logging.root.manager.disable, warnings.filters[:], os.fstat(1), os.fstat(2))
    overlapping(silenced)
    after = (sys.stdout, sys.stderr, logging.root.manager.disable, warnings.filters[:], os.fstat(1), os.fstat(2))
    assert before[:4] == after[:4]
    assert [each.st_ino for each in before[4:]] == [each.st_ino for each in after[4:]]


class Gambler(ClassifierMixin, BaseEstimator):
    """Votes by NumPy's global numbers, and takes its time."""

    def fit(self, _, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, features):
        drawn = []
        for _ in features:
            drawn.append(check_random_state(None).choice(self.classes_))
            threading.Event().wait(0.0005)
        return np.array(drawn)


def test_two_fits_at_once_draw_as_each_alone():
    expected, found = votes(Gambler()), []
    threads = [threading.Thread(target=lambda: found.append(votes(Gambler()))) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 3
    assert all((each == expected).all() for each in found)


class Ends(ClassifierMixin, BaseEstimator):
    """Ends its process if a record is large."""

    def fit(self, features, y):
        if features.max() > 500:
            os._exit(3)
        self.classes_ = np.unique(y)
        return self

    def predict(self, features):
        return np.full(len(features), self.classes_[0])


def test_a_teacher_that_ends_its_process_is_told_without_context_and_costs_nothing(tmp_path):
    records, place = FEATURES.copy(), tmp_path / "ledger.db"
    records[3] = 1_000.0
    model = make(Ends(), n_jobs=2, ledger=place)
    with pytest.raises(InvalidParameter, match="one that does not end its process") as caught:
        model.fit(records, LABELS, REQUESTS)
    assert caught.value.name == "estimator"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert model.labels_.asked == 0
    with model._open(model.ledger) as session:
        assert session.meter.hits == 0
        assert len(session.transcript) == 0
    assert model.set_params(estimator=GaussianNB()).fit(FEATURES, LABELS, REQUESTS).labels_.complete
