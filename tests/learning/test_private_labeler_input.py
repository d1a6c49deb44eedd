"""`PrivateLabeler` refuses wrong input before any training, and its errors have no values of the data."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.learning.far_clusters import FEATURES, LABELS, NAMES, REQUESTS, make

import targetcharge as tc
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.learning import labeler

SECRET = 1234.56789


@pytest.fixture
def untrained(monkeypatch):
    """Fail if any teacher is trained."""

    def count_votes(*_, **__):
        pytest.fail("teachers were trained")

    monkeypatch.setattr(labeler, "count_votes", count_votes)


WITH_NAN, WITH_INFINITY = FEATURES.copy(), FEATURES.copy()
WITH_NAN[3, 1], WITH_INFINITY[7, 0] = np.nan, np.inf
GOOD = {"X": FEATURES, "y": LABELS, "X_public": REQUESTS, "units": None}


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("X", WITH_NAN, "NaN"),
        ("X", WITH_INFINITY, "infinity"),
        ("X", FEATURES[:, 0], "two dimensions"),
        ("X", FEATURES[:0], r"0 sample\(s\)"),
        ("X", FEATURES[:, :0], r"0 feature\(s\)"),
        ("X", FEATURES + 1j, "Complex"),
        ("X", [["a", "b"]] * 400, "table of numbers"),
        ("y", LABELS[:-1], "as long as X: it has 399 labels and X has 400 rows"),
        ("y", None, "y to be passed"),
        ("y", np.full(400, "cold"), "one class"),
        ("y", np.linspace(0, 1, 400), "continuous"),
        ("y", np.where(LABELS == "cold", np.nan, 1.0), "missing values"),
        ("y", np.where(LABELS == "cold", None, LABELS), "missing values"),
        ("y", [None if each == "cold" else each for each in LABELS], "missing values"),
        ("y", [float("nan") if each == "cold" else each for each in LABELS], "missing values"),
        ("y", pd.Series(LABELS, dtype="string").replace("cold", pd.NA), "missing values"),
        ("y", np.stack([LABELS, LABELS]).T, "one column"),
        ("X_public", None, "given"),
        ("X_public", WITH_NAN, "NaN"),
        ("X_public", REQUESTS[:, :1], "of as many columns as X: it has 1 and X has 2"),
        ("X_public", REQUESTS[:0], r"0 sample\(s\)"),
        ("units", np.arange(399), "one value for each record"),
        ("units", "abc", "one value for each record"),
        ("units", 7, "one value for each record"),
    ],
)
@pytest.mark.usefixtures("untrained")
def test_bad_data_is_refused_before_any_training(name, given, said):
    with pytest.raises(InvalidParameter, match=said) as caught:
        make().fit(**(GOOD | {name: given}))
    assert caught.value.name == name


@pytest.mark.usefixtures("untrained")
def test_how_many_records_units_have_is_not_said():
    units = {"units": np.arange(400)}
    for given, teachers in ((GOOD | units | {"y": LABELS[:-1]}, 5), (GOOD | units, 401)):
        with pytest.raises(InvalidParameter) as caught:
            make(teachers=teachers).fit(**given)
        assert "400" not in str(caught.value)
        assert "399" not in str(caught.value)


@pytest.mark.usefixtures("untrained")
def test_records_without_units_are_too_few_for_teachers():
    with pytest.raises(InvalidParameter, match="at most the number of units"):
        make().fit(**GOOD | {"units": [None] * 400})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"budget": None}, "budget"),
        ({"budget": (1.0, 1e-5)}, "budget"),
        ({"budget": tc.Budget(0.001, 1e-5)}, "query_epsilon"),
        ({"teachers": 0}, "teachers"),
        ({"teachers": 2.5}, "teachers"),
        ({"teachers": 401}, "teachers"),
        ({"mode": "best"}, "mode"),
        ({"mechanism": "vote"}, "mechanism"),
        ({"query_epsilon": float("nan")}, "query_epsilon"),
        ({"query_epsilon": -1}, "query_epsilon"),
        ({"threshold": float("nan")}, "threshold"),
        ({"threshold_epsilon": 0.05}, "threshold_epsilon"),
        ({"threshold": 20, "threshold_epsilon": 2.0}, "threshold_epsilon"),
        ({"rounds": 0}, "rounds"),
        ({"rounds": 1000}, "rounds"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": "all"}, "n_jobs"),
        ({"verbose": "yes"}, "verbose"),
        ({"random_state": "seven"}, "random_state"),
        ({"ledger": ""}, "ledger"),
        ({"classes": ["cold", "mild"]}, "y"),
        ({"classes": ["cold"]}, "classes"),
        ({"classes": ["cold", "cold", "mild", "warm"]}, "classes"),
        ({"classes": ["cold", "mild", "warm", 1]}, "classes"),
        ({"classes": [[1, 2], [3, 4]]}, "classes"),
        ({"classes": [1.0, float("nan")]}, "classes"),
        ({"classes": 3}, "classes"),
        ({"estimator": GaussianNB}, "estimator"),
        ({"estimator": None}, "estimator"),
        ({"estimator": LogisticRegression(C=-1)}, "estimator"),
        ({"estimator": LinearRegression()}, "estimator"),
        ({"student": LogisticRegression(C=-1)}, "student"),
        ({"student": "svm"}, "student"),
        ({"estimator": make_pipeline(StandardScaler(), GaussianNB(), memory="cache")}, "estimator"),
        ({"estimator": BaggingClassifier(make_pipeline(GaussianNB(), memory="cache"))}, "estimator"),
        ({"estimator": KNeighborsClassifier(11)}, "estimator"),  # a part has ten records
    ],
)
@pytest.mark.usefixtures("untrained")
def test_bad_parameters_are_refused_before_any_training(changes, name):
    with pytest.raises(InvalidParameter) as caught:
        make().set_params(**changes).fit(FEATURES, LABELS, REQUESTS)
    assert caught.value.name == name


@pytest.mark.usefixtures("untrained")
def test_a_mechanism_that_cannot_tell_its_probabilities_is_refused_in_mode_boundary():
    with pytest.raises(NotAllowed, match="noisy_max"):
        make(mode="boundary", mechanism="noisy_max", query_epsilon=0.1).fit(FEATURES, LABELS, REQUESTS)


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("rounds", [0, -1, 61, 10**20, 2.5, True, "8", None])
def test_rounds_are_an_integer_from_1_to_60(rounds):
    with pytest.raises(InvalidParameter, match=r"rounds is .* an integer from 1 to 60"):
        make(rounds=rounds).fit(FEATURES, LABELS, REQUESTS)


@pytest.mark.usefixtures("untrained")
def test_a_cache_is_refused_by_its_name():
    nested = BaggingClassifier(make_pipeline(GaussianNB(), memory="cache"))
    with pytest.raises(InvalidParameter, match="keeps nothing outside itself: estimator__memory=None"):
        make(nested).fit(FEATURES, LABELS, REQUESTS)


@pytest.mark.usefixtures("untrained")
def test_fewer_units_than_teachers_are_refused():
    with pytest.raises(InvalidParameter, match="at most the number of units"):
        make(teachers=40).fit(FEATURES, LABELS, REQUESTS, units=np.arange(400) % 39)


def with_secret(table):
    table = np.asarray(table).astype(object)
    table[(5, *[0] * (table.ndim - 1))] = "secret"
    return table


@pytest.mark.parametrize(
    "changes",
    [
        {"X": with_secret(FEATURES)},
        {"X": with_secret(FEATURES[:, 0])},
        {"X": (FEATURES + SECRET)[:, 0]},
        {"X": FEATURES + SECRET * 1j},
        {"y": with_secret(LABELS)},
        {"y": np.where(LABELS == "cold", SECRET, 0.5)},
        {"units": [*["secret"] * 399, None]},
    ],
)
def test_errors_have_no_values_of_the_data(changes):
    with pytest.raises((InvalidParameter, TypeError)) as caught:
        make(classes=NAMES).fit(**(GOOD | changes))
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    told = f"{error} {vars(error)}"
    assert "secret" not in told
    assert "1234" not in told


def test_an_entry_that_is_no_number_at_all_is_a_type_error():
    table = FEATURES.astype(object)
    table[0, 0] = {"secret": 1}
    with pytest.raises(TypeError, match="X must be made of numbers") as caught:
        make().fit(table, LABELS, REQUESTS)
    assert "secret" not in str(caught.value)
