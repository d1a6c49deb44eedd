"""What a ledger gives back: labels of the same public examples and settings only, and never without a word."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests.learning.far_clusters import FEATURES, LABELS, REQUESTS, make

import targetcharge as tc
from targetcharge.errors import InvalidParameter, LedgerError
from targetcharge.learning import label, labeler
from targetcharge.learning.inputs import stable_text
from targetcharge.learning.labeler import PrivateLabeler
from targetcharge.learning.votes import Votes

PUBLIC = np.arange(6.0).reshape(3, 2)


def name(estimator=None, requests=PUBLIC, classes=(0, 1), **changes):
    labeler = PrivateLabeler(LogisticRegression() if estimator is None else estimator, **changes)
    labeler.classes_ = np.array(classes)
    return labeler._name(requests)


@pytest.mark.parametrize(
    "changes",
    [
        {"teachers": 51},
        {"mechanism": "exponential"},
        {"mode": "prior"},
        {"threshold": 40},
        {"threshold": 40, "threshold_epsilon": 0.01},
        {"caution": 1.0},
        {"classes": (0, 2)},
        {"requests": PUBLIC[::-1]},
        {"requests": PUBLIC.astype(np.float32)},
        {"requests": PUBLIC.reshape(2, 3)},
        {"estimator": GaussianNB()},
        {"estimator": LogisticRegression(C=2.0)},
        {"estimator": make_pipeline(StandardScaler(), LogisticRegression())},
    ],
)
def test_another_setting_has_another_name(changes):
    assert name(**changes) != name()


@pytest.mark.parametrize(
    "changes",
    [
        {"teachers": np.int64(50)},
        {"caution": 2},
        {"requests": np.asfortranarray(PUBLIC)},
        {"estimator": LogisticRegression(C=np.float64(1.0), random_state=3, verbose=2)},
        {"rounds": 3},
    ],
)
def test_the_same_setting_has_the_same_name(changes):
    assert name(**changes) == name()


def test_names_look_into_estimators():
    def nested(**changes):
        return make_pipeline(StandardScaler(), GridSearchCV(RandomForestClassifier(**changes), {"max_depth": [1]}))

    assert stable_text(nested(max_depth=2)) == stable_text(
        nested(max_depth=2, random_state=1, n_jobs=2, verbose=1)
    )
    assert stable_text(nested(max_depth=2)) != stable_text(nested(max_depth=3))
    long = [GaussianNB(priors=np.full(5_000, 1 / 5_000)) for _ in range(2)]
    assert stable_text(long[0]) == stable_text(long[1])
    long[1].priors[2_500] = 0
    assert stable_text(long[0]) != stable_text(long[1])
    assert "0x" not in stable_text(FunctionTransformer(lambda table: table, kw_args={"one": object()}))
    assert stable_text(np.array([1, None], object)) == stable_text([1, None])


def test_names_are_the_same_in_every_process():
    program = (
        "from targetcharge.learning.inputs import stable_text;"
        "from sklearn.preprocessing import FunctionTransformer;"
        "print(stable_text(FunctionTransformer(print, kw_args={'sep': {'a', 'b', 'c'}, 'end': object()})))"
    )
    command = [sys.executable, "-c", program]
    told = {
        subprocess.check_output(command, env=os.environ | {"PYTHONHASHSEED": each})  # noqa: S603 - made here
        for each in ("1", "2")
    }
    assert len(told) == 1


def test_other_settings_get_labels_of_their_own(tmp_path):
    """The first teachers are wrong about everything; the second ones must not get their labels."""
    options = {"budget": tc.Budget(200.0, 1e-5), "ledger": tmp_path / "ledger.db"}
    wrong = np.roll(np.unique(LABELS), 1)[np.searchsorted(np.unique(LABELS), LABELS)]
    first = make(**options).fit(FEATURES, wrong, REQUESTS[:20])
    second = make(LogisticRegression(), **options).fit(FEATURES, LABELS, REQUESTS[:20])
    assert (first.labels_.values != second.labels_.values).all()


def test_labels_of_an_earlier_fit_come_with_a_warning(tmp_path):
    options = {"budget": tc.Budget(200.0, 1e-5), "ledger": tmp_path / "ledger.db"}
    first = make(**options).fit(FEATURES, LABELS, REQUESTS)
    again = make(**options)
    said = "60 of 60 labels are from an earlier fit on this ledger; if the private data has changed since"
    with pytest.warns(UserWarning, match=said) as heard:
        again.fit(FEATURES, LABELS, REQUESTS)
    assert heard[0].filename == __file__
    assert (again.labels_.codes == first.labels_.codes).all()


def test_a_spent_ledger_says_what_to_do(tmp_path):
    options = {"budget": tc.Budget(10.0, 1e-5), "ledger": tmp_path / "ledger.db"}
    with pytest.warns(tc.BudgetWarning, match="stopped after 10 of 60"):
        make(**options).fit(FEATURES, LABELS, REQUESTS)
    said = "this ledger's budget is spent: start another ledger; budgets add up"
    with pytest.raises(InvalidParameter, match=said) as caught:
        make(**options).fit(FEATURES, LABELS, REQUESTS[::-1])
    assert caught.value.name == "ledger"


def test_no_traceback_shows_votes(monkeypatch):
    def full(votes, session, **options):
        if options["name"] == "rehearsal":
            return label(votes, session, **options)
        msg = "disk full"
        raise LedgerError(msg)

    monkeypatch.setattr(labeler, "label", full)
    with pytest.raises(LedgerError) as caught:
        make(teachers=40).fit(FEATURES, LABELS, REQUESTS)
    shown, arrays = {}, []
    for frame in caught.traceback[1:]:
        shown |= {key: repr(value) for key, value in frame.locals.items() if key in {"votes", "private"}}
        arrays += [each for each in frame.locals.values() if isinstance(each, np.ndarray)]
    assert shown["votes"] == "<votes of 40 teachers on 60 requests, 3 classes>"
    assert "[" not in shown["private"]
    assert not any(each.shape == (len(REQUESTS), 3) for each in arrays)


def test_votes_are_a_table_for_numpy():
    votes = Votes(np.array([[3, 1], [0, 4]]), teachers=4)
    assert np.asarray(votes).tolist() == [[3, 1], [0, 4]]
    assert np.asarray(votes, float).dtype == float
    assert np.asarray(votes[:1]).tolist() == [[3, 1]]
    assert len(votes) == 2
    assert repr(votes) == "<votes of 4 teachers on 2 requests, 2 classes>"
