"""`PrivateLabeler`: what it learns, what it keeps, what it refuses."""

import gc
import io
import pickle
from itertools import product

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import check_random_state, get_tags
from tests.learning.far_clusters import FEATURES, LABELS, NAMES, PLENTY, REQUESTS, TRUTH, clusters, make

import targetcharge as tc
from targetcharge.errors import InvalidParameter
from targetcharge.learning import label, labeler

MODES = {
    "boundary": {"budget": tc.Budget(3.0, 1e-5), "query_epsilon": 0.1, "teachers": 200},
    "prior": {"budget": tc.Budget(6.0, 1e-5), "query_epsilon": 0.1, "teachers": 200},
    "twice": {"budget": tc.Budget(3.0, 1e-5), "query_epsilon": 0.1, "teachers": 200},
    "plain": {"budget": tc.Budget(6.0, 1e-5), "query_epsilon": 0.1, "teachers": 200},
}


MECHANISMS = ("permute_and_flip", "exponential", "noisy_max")
PAIRS = [pair for pair in product(MODES, MECHANISMS) if pair != ("boundary", "noisy_max")]


@pytest.mark.parametrize(("mode", "mechanism"), PAIRS)
def test_a_student_learns_from_the_labels(mode, mechanism):
    features, labels = clusters(3_000)
    fitted = make(mode=mode, mechanism=mechanism, **MODES[mode]).fit(features, labels, REQUESTS)
    assert fitted.classes_.tolist() == NAMES.tolist()
    assert fitted.guarantee_ == MODES[mode]["budget"]
    assert fitted.unit_ == "one record, replaced"
    found = fitted.labels_
    assert found.classes == tuple(NAMES)
    assert np.mean(found.values == TRUTH[found.rows]) > 0.9
    assert fitted.score(*clusters(100)) > 0.9
    marked = {"boundary": found.boundary, "twice": found.boundary, "plain": ~found.unanswered}.get(mode, found.hit)
    assert len(found.hits) == marked.sum()
    if mode != "plain":
        assert found.complete
        assert len(found.hits) < 30


def test_a_prior_costs_less_than_all_labels():
    features, labels = clusters(3_000)
    requests, _ = clusters(500)
    fitted = make(mode="prior", **MODES["prior"]).fit(features, labels, requests)
    assert fitted.labels_.complete
    assert len(fitted.labels_.hits) < 20
    assert len(fitted.labels_.rows) == 500


def test_a_student_that_cannot_learn_from_a_few_labels_learns_later():
    """Five neighbours are more than the labels of the first rounds; the usual class is expected until then."""
    features, labels = clusters(3_000)
    model = make(mode="prior", student=KNeighborsClassifier(5), **MODES["prior"]).fit(features, labels, REQUESTS)
    assert model.labels_.complete
    assert model.score(REQUESTS, TRUTH) > 0.9


def test_the_budget_ends_it_cleanly():
    fitted = make(budget=tc.Budget(10.0, 1e-5))
    with pytest.warns(tc.BudgetWarning) as heard:
        fitted.fit(FEATURES, LABELS, REQUESTS)
    found = fitted.labels_
    why = f"stopped after {found.asked} of 60 public examples: {found.stopped}"
    learned = f"the student learned from the {len(found.rows)} that have a label"
    assert [(str(one.message), one.filename) for one in heard] == [(f"{why}; {learned}", __file__)]
    assert repr(fitted) == f"{clone(fitted)!r} ({why})"
    assert repr(found).endswith(f"; stopped: {found.stopped}>")
    assert "stopped" not in repr(clone(fitted))
    assert not found.complete
    assert isinstance(found.refusal, tc.BudgetSpent)
    assert found.stopped == str(found.refusal)
    assert 2 <= found.asked < len(REQUESTS)
    assert found.unanswered[found.asked :].all()
    assert not found.unanswered[: found.asked].any()


def test_noise_does_not_depend_on_the_random_state():
    drawn = []
    for _ in range(2):
        check_random_state(None).seed(0)
        fitted = make(budget=tc.Budget(1.0, 1e-5), query_epsilon=0.01, random_state=0).fit(
            FEATURES, LABELS, np.repeat(REQUESTS, 5, axis=0)
        )
        drawn.append(fitted.labels_.codes)
    check_random_state(None).seed(None)
    assert (drawn[0] != drawn[1]).any()


def votes_of(model, features, labels, units=None):
    """The votes that a fit would ask about."""
    model._check_parameters()
    private, requests, choices = model._read(features, labels, REQUESTS, units)
    return np.asarray(model._votes(private, requests, choices.seeds)), private.part


def test_parts_and_teachers_follow_the_random_state():
    wide, names = clusters(120, spread=6.0)
    tables = [votes_of(make(random_state=state), wide, names)[0] for state in (1, 1, 2, None, None)]
    assert (tables[0] == tables[1]).all()
    assert (tables[0] != tables[2]).any()
    assert (tables[3] != tables[4]).any()


def test_one_unit_moves_one_vote_on_each_request():
    """Brute force: every unit in turn is left out, or all its records are changed."""
    wide, names = clusters(60, spread=6.0)
    units = np.array([f"person {number}" for number in np.arange(60) // 4])
    model = make(teachers=5, random_state=3, classes=NAMES)
    before, _ = votes_of(model, wide, names, units)
    assert (before.sum(axis=1) == 5).all()
    moved = []
    for unit in np.unique(units):
        kept = units != unit
        moved.append(votes_of(model, wide[kept], names[kept], units[kept])[0] - before)
        changed = np.where(kept, names, np.roll(NAMES, 1)[np.searchsorted(NAMES, names)])
        moved.append(votes_of(model, wide, changed, units)[0] - before)
    distances = abs(np.array(moved)).sum(axis=2)
    assert distances.max() == 2


def test_units_stay_together():
    units = np.arange(len(FEATURES)) // 4
    model = make(teachers=7).fit(FEATURES, LABELS, REQUESTS, units=units)
    assert model.unit_ == "all records of one unit"
    _, part = votes_of(make(teachers=7), FEATURES, LABELS, units.tolist())
    assert all(len({*part[units == unit]}) == 1 for unit in range(100))


SECRET = 1234.56789
PATTERN = np.float64(SECRET).tobytes()


def reachable(thing):
    """All arrays that can be reached from an object, other than through types and modules."""
    seen, waiting, arrays = set(), [thing], []
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | type(gc)) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            arrays.append(one)
        waiting += gc.get_referents(one)
    return arrays


@pytest.mark.parametrize("mode", MODES)
def test_a_fitted_one_holds_only_what_is_published(mode):
    """The neighbours classifier keeps its training data, so a teacher anywhere would show."""
    secret = FEATURES.copy()
    secret[::40] = SECRET
    teacher = KNeighborsClassifier(1).fit(secret, LABELS)  # a careless caller trained it on everything
    assert PATTERN in pickle.dumps(teacher)
    options = MODES[mode] | {"teachers": 20, "budget": tc.Budget(20.0, 1e-5), "query_epsilon": 0.3}
    fitted = make(teacher, mode=mode, **options).fit(secret, LABELS, REQUESTS)
    kept = io.BytesIO()
    joblib.dump(fitted, kept)
    assert PATTERN not in kept.getvalue()
    assert PATTERN not in pickle.dumps(fitted)
    assert b"session" not in pickle.dumps(fitted).lower()
    back = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - made here
    assert (back.predict(REQUESTS) == fitted.predict(REQUESTS)).all()
    assert back.guarantee_ == fitted.guarantee_
    assert (back.labels_.codes == fitted.labels_.codes).all()
    fitted.estimator = None
    arrays = reachable(fitted)
    assert len(arrays) > 3
    assert not any(array.shape in {(len(REQUESTS), 3), (400, 2), (400,)} for array in arrays)


def test_charges_and_labels_are_on_the_ledger(tmp_path, monkeypatch):
    place = tmp_path / "ledger.db"
    with pytest.warns(tc.BudgetWarning, match="stopped after"):
        first = make(budget=tc.Budget(10.0, 1e-5), ledger=place).fit(FEATURES, LABELS, REQUESTS)
    assert 0 < len(first.labels_.hits) == first.labels_.asked < len(REQUESTS)
    with tc.Session(
        None, tc.Budget(10.0, 1e-5), 1.0, ledger=place, targets=[tc.Everything()], unit=first.unit_
    ) as session:
        assert session.meter.hits == len(first.labels_.hits)
        assert session.meter.hits_left == 0
    monkeypatch.setattr(labeler, "count_votes", lambda *_, **__: pytest.fail("nothing is left to ask for"))
    again = make(budget=tc.Budget(10.0, 1e-5), ledger=place)
    earlier = f"{first.labels_.asked} of 60 labels are from an earlier fit"
    with (
        pytest.warns(UserWarning, match=earlier),
        pytest.warns(tc.BudgetWarning, match="the budget was spent before"),
    ):
        again.fit(FEATURES, LABELS, REQUESTS)
    assert (again.labels_.codes == first.labels_.codes).all()
    assert again.labels_.stopped == "the budget was spent before"
    refusal = pickle.loads(pickle.dumps(again)).labels_.refusal  # noqa: S301 - made here
    assert (type(refusal), refusal.asked, refusal.left) == (tc.BudgetSpent, 1.0, 0.0)


def test_a_fit_that_is_complete_did_not_stop_even_where_nothing_is_left(tmp_path):
    options = {"mode": "plain", "budget": tc.Budget(3.0, 1e-5), "query_epsilon": 0.2, "ledger": tmp_path / "f.db"}
    first = make(**options).fit(FEATURES, LABELS, REQUESTS[:15])
    assert len(first.labels_.hits) == 15
    with pytest.warns(UserWarning, match="15 of 15 labels are from an earlier fit"):
        again = make(**options).fit(FEATURES, LABELS, REQUESTS[:15])
    for labels in (first.labels_, again.labels_):
        assert (labels.complete, labels.stopped, labels.refusal) == (True, "", None)


def interrupt(monkeypatch, after):
    """Let Ctrl-C come when so many requests are answered."""

    def label_some(votes, session, **options):
        if options["name"] == "rehearsal":
            return label(votes, session, **options)
        if options.get("prior") is not None:
            options["prior"] = options["prior"][:after]
        label(votes[:after], session, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(labeler, "label", label_some)


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupted_fit_keeps_its_labels_and_goes_on(mode, tmp_path, monkeypatch):
    after = 1 if mode == "prior" else 10
    options = MODES[mode] | {"mode": mode, "ledger": tmp_path / "ledger.db", "budget": tc.Budget(20.0, 1e-5)}
    features, labels = clusters(3_000)
    first = make(**options)
    with monkeypatch.context() as patched:
        interrupt(patched, after)
        with pytest.raises(KeyboardInterrupt):
            first.fit(features, labels, REQUESTS)
    assert first.labels_.asked == after
    assert len(first.labels_) == len(REQUESTS)
    with pytest.raises(NotFittedError):
        first.predict(REQUESTS)
    again = make(**options)
    with pytest.warns(UserWarning, match=f"{after} of 60 labels are from an earlier fit on this ledger"):
        again.fit(features, labels, REQUESTS)
    assert again.labels_.complete
    assert (again.labels_.codes[:after] == first.labels_.codes[:after]).all()


def test_other_requests_get_labels_of_their_own(tmp_path):
    options = {"budget": tc.Budget(200.0, 1e-5), "ledger": tmp_path / "ledger.db"}
    one = make(**options).fit(FEATURES, LABELS, REQUESTS[:5])
    other = make(**options).fit(FEATURES, LABELS, REQUESTS[::-1])
    assert (one.labels_.values == TRUTH[:5]).all()
    assert (other.labels_.values == TRUTH[::-1]).all()


def test_no_label_at_all_is_told_and_nothing_is_lost():
    model = make(threshold=1_000)
    with pytest.raises(InvalidParameter, match="none got a label") as caught:
        model.fit(FEATURES, LABELS, REQUESTS)
    assert caught.value.name == "threshold"
    assert model.labels_.low.all()
    with pytest.raises(NotFittedError):
        model.predict(REQUESTS)


def test_a_failed_fit_forgets_the_old_student():
    model = make().fit(FEATURES, LABELS, REQUESTS)
    with pytest.raises(InvalidParameter):
        model.set_params(teachers=0).fit(FEATURES, LABELS, REQUESTS)
    with pytest.raises(NotFittedError):
        model.predict(REQUESTS)


def test_labels_of_one_class_make_a_student_that_always_says_it():
    only = TRUTH == "mild"
    model = make()
    with pytest.warns(UserWarning, match="one class"):
        model.fit(FEATURES, LABELS, REQUESTS[only])
    assert isinstance(model.student_, DummyClassifier)
    assert set(model.predict(REQUESTS)) == {"mild"}
    assert model.predict_proba(REQUESTS)[0].tolist() == [0.0, 1.0, 0.0]


def test_probabilities_have_a_column_for_every_class():
    some = TRUTH != "mild"
    model = make(student=LogisticRegression()).fit(FEATURES, LABELS, REQUESTS[some])
    shares = model.predict_proba(REQUESTS)
    assert shares.shape == (len(REQUESTS), 3)
    assert (shares[:, 1] == 0).all()
    assert np.allclose(shares.sum(axis=1), 1)


def test_probabilities_are_there_if_the_student_has_them():
    assert hasattr(make(), "predict_proba")
    assert not hasattr(make(student=RidgeClassifier()), "predict_proba")
    assert not hasattr(make(RidgeClassifier()).fit(FEATURES, LABELS, REQUESTS), "predict_proba")


def test_parameters_are_scikit_learns():
    model = make(LogisticRegression(C=2.0))
    assert model.get_params()["estimator__C"] == 2.0
    model.set_params(estimator__C=3.0, teachers=9)
    copy = clone(model)
    assert (copy.estimator.C, copy.teachers, copy.budget) == (3.0, 9, PLENTY)
    assert is_classifier(model)
    tags = get_tags(model)
    assert tags.non_deterministic
    assert tags.target_tags.required


def test_columns_may_have_names():
    frame, public = (pd.DataFrame(table, columns=["a", "b"]) for table in (FEATURES, REQUESTS))
    model = make().fit(frame, pd.Series(LABELS), public, units=pd.Series(range(400)))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    assert model.predict(public).shape == (60,)
    with pytest.raises(InvalidParameter, match="same columns"):
        make().fit(frame, LABELS, public[["b", "a"]])


@pytest.mark.parametrize("names", [[3, 7], [False, True], [2.0, 5.0], ["a", "b"]])
def test_classes_may_be_whole_numbers_or_text(names):
    codes = np.arange(200) % 2
    features = codes[:, None] * 10.0 + np.random.default_rng(0).normal(size=(200, 1))
    model = make(classes=names).fit(features, np.array(names)[codes], features[:40])
    assert model.classes_.tolist() == names
    assert (model.predict(features) == np.array(names)[codes]).mean() > 0.9


def test_a_class_that_no_record_has_may_be_declared():
    model = make(classes=[*NAMES, "hot"]).fit(FEATURES, LABELS, REQUESTS)
    assert model.classes_.tolist() == ["cold", "hot", "mild", "warm"]
    assert model.labels_.classes == ("cold", "hot", "mild", "warm")


@pytest.mark.parametrize("verbose", [False, True])
def test_fit_is_quiet_unless_told_otherwise(verbose, capsys):
    make(verbose=verbose).fit(FEATURES, LABELS, REQUESTS)
    told = capsys.readouterr()
    assert told.out == ""
    assert ("training teachers" in told.err) is verbose
