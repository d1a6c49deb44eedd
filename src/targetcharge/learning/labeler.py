"""`PrivateLabeler`: from private data to a student that may be published, with scikit-learn's manners.

>>> from sklearn.datasets import make_blobs
>>> from sklearn.naive_bayes import GaussianNB
>>> import targetcharge as tc
>>> X, y = make_blobs(5_000, centers=[[0, 0], [9, 9]], random_state=0)
>>> labeler = PrivateLabeler(GaussianNB(), teachers=200, budget=tc.Budget(3.0, 1e-5), query_epsilon=0.1)
>>> labeler.fit(X[:4_000], y[:4_000], X_public=X[4_000:]).guarantee_
Budget(epsilon=3.0, delta=1e-05)
>>> float(labeler.score(X[4_000:], y[4_000:])) > 0.9
True
"""

from __future__ import annotations

import numbers
import warnings
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from targetcharge import checks
from targetcharge.accounting.budget import Budget, check_budget
from targetcharge.errors import BudgetSpent, InvalidParameter, warn_owner
from targetcharge.learning import inputs
from targetcharge.learning.labels import Labels, label, recall
from targetcharge.learning.student import MOST_ROUNDS, predictions, round_ends, taught
from targetcharge.learning.teachers import PrivateRecords, RandomChoices, count_votes, deal, deal_units
from targetcharge.learning.votes import CAUTION, Votes, target_of
from targetcharge.sessions import Session

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from targetcharge.learning.teachers import Features
    from targetcharge.sessions.reading import Reading

_MEMORY: Final = ":memory:"

_METERS: Final = {"boundary": "renyi", "prior": "exact", "twice": "exact", "plain": "exact"}
"""The meter that buys the most labels in each mode."""


def _student_has(name: str) -> Callable[[PrivateLabeler], bool]:
    def check(self: PrivateLabeler) -> bool:
        getattr(getattr(self, "student_", self._student), name)
        return True

    return check


class PrivateLabeler(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Label public examples by the vote of private teachers, within a budget, and learn a student from them.

    The private records are split into disjoint parts and a clone of `estimator` learns from each. These teachers
    vote on every public example, a private mechanism chooses its label, and the student learns from the labelled
    examples. Only the labels and what follows from them is kept: no teacher, no vote, no private record.

    What is protected: without `units` a record may be replaced by any other, and the number of records is public.
    With `units` the records of one unit may be changed, added or removed, all of them; that one unit takes the
    place of another is two such steps. Either way one teacher changes, so one vote on each example. The features
    of the public examples, all parameters and the set of classes are public.

    Each `fit` with a ledger in memory spends a budget of its own, each of a grid search or a cross-validation too.
    With a file as ledger all fits together spend one; a fit that was interrupted goes on where it stopped, and
    other public examples or settings get what is left. One ledger, one private dataset: the labels of an earlier
    fit with the same settings are taken again, with a warning, and the ledger cannot see that the data is another.

    What the guarantee needs of you:

    - Preprocessing belongs into the estimator: `make_pipeline(StandardScaler(), SVC())`. A scaler before the
      labeler sees all records and reaches every teacher: then there is no guarantee.
    - An estimator keeps nothing outside itself: no class attributes, no files. A pipeline's `memory` is refused.
    - With a fixed `random_state`, do not sort the records by value: positions are dealt, and a replaced record
      would shift others.
    - `score` on private data, and a choice of parameters by it, is not private.

    Parameters and data are checked and the estimators try themselves on made-up data before any training. A
    teacher that fails on its part says nothing, since that it failed depends on private data: it votes for the
    classes in turn. How long training takes is not protected.

    Attributes:
        classes_: the classes, sorted.
        labels_: what was published: a `Labels`.
        student_: the model that `predict` asks.
        guarantee_: the budget: what all that was published costs at most, however it went.
        unit_: whose privacy it is about, in words.
        n_features_in_: the number of columns.
        feature_names_in_: their names, if X has names that are text.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        student: BaseEstimator | None = None,
        *,
        teachers: int = 50,
        budget: Budget | None = None,
        query_epsilon: float = 0.1,
        mechanism: str = "permute_and_flip",
        mode: str = "boundary",
        threshold: float | None = None,
        threshold_epsilon: float | None = None,
        caution: float = CAUTION,
        classes: ArrayLike | None = None,
        ledger: str | os.PathLike[str] = ":memory:",
        rounds: int = 8,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        """Keep the parameters.

        Args:
            estimator: a classifier; each teacher is a clone of it, with a random state of its own.
            student: a classifier; None for a clone of the estimator.
            teachers: into how many parts the private data is split.
            budget: the `tc.Budget` of all labels together. There is no default: it is yours to choose.
            query_epsilon: the ε of one label.
            mechanism: "permute_and_flip", "exponential" or "noisy_max" (not with mode "boundary").
            mode: what costs: "boundary", labels that are too close to call (they are not given); "prior", labels
                that differ from what the student expects; "twice", labels on which two runs differ (they are not
                given); "plain", all labels.
            threshold: give no label if the noisy number of teachers who agree is below it.
            threshold_epsilon: the part of the query ε for that test; None for half.
            caution: of mode "boundary", as `label` has it: more gives fewer labels, and surer ones.
            classes: all there are, public. None takes those of y: then that no other class occurs among the
                private labels is public too.
            ledger: ":memory:", or the path of a file that keeps charges and labels: of one private dataset.
            rounds: of mode "prior": how often the student learns while labels come in.
            n_jobs: processes that train teachers, as in scikit-learn. A teacher itself begins no others.
            random_state: decides parts and the teachers' own randomness. The noise never depends on it.
            verbose: whether to show a progress bar.
        """
        self.estimator = estimator
        self.student = student
        self.teachers = teachers
        self.budget = budget
        self.query_epsilon = query_epsilon
        self.mechanism = mechanism
        self.mode = mode
        self.threshold = threshold
        self.threshold_epsilon = threshold_epsilon
        self.caution = caution
        self.classes = classes
        self.ledger = ledger
        self.rounds = rounds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,  # noqa: N803 - scikit-learn's name
        y: ArrayLike,
        X_public: ArrayLike | None = None,  # noqa: N803 - as X
        units: ArrayLike | None = None,
    ) -> Self:
        """Train teachers, label public examples and fit the student.

        Checks of the data are for the curator who holds it: that one of them fails may tell something about it.

        Args:
            X: features of the private records, finite numbers.
            y: their classes.
            X_public: features of the public examples, in the order in which labels are asked.
            units: to whom each record belongs: text or numbers; None if each stands for itself.

        Raises:
            InvalidParameter: before any training, if something is wrong; if a teacher ends its process; or if no
                example got a label at all.

        Warns:
            BudgetWarning: if the budget was spent before all examples were asked.
            UserWarning: if labels are from an earlier fit, or all of one class.
        """
        for learned in {"labels_", "student_"} & vars(self).keys():
            delattr(self, learned)
        self._check_parameters()
        private, requests, choices = self._read(X, y, X_public, units)
        self._rehearse(private, requests)
        name = self._name(requests)
        with self._open(self.ledger) as session:
            self.labels_ = self._known(session, name).resized(len(requests))
            if self.labels_.asked:
                msg = f"{self.labels_.asked} of {len(requests)} labels are from an earlier fit on this ledger;"
                msg = f"{msg} if the private data has changed since, use another ledger"
                warnings.warn(msg, UserWarning, stacklevel=2)
            spent_before = not session.meter.hits_left
            if not self.labels_.complete and spent_before:
                self.labels_ = replace(self.labels_, refusal=_spent_before(session.meter))
            elif not self.labels_.complete:
                votes = self._votes(private, requests, choices.seeds)
                try:
                    self.labels_ = self._label_all(votes, session, name, requests)
                except BaseException:  # Ctrl-C, say: what was published until then is not lost
                    self.labels_ = self._known(session, name).resized(len(requests))
                    raise
        self._check_labels(spent_before=spent_before)
        values = np.asarray(self.labels_.values).astype(self.classes_.dtype)
        self.student_ = taught(self._student, requests, self.labels_.rows, values)
        if self._stopped:
            learned = f"the student learned from the {len(self.labels_.rows):,} that have a label"
            warn_owner(f"{self._stopped}; {learned}")
        return self

    @property
    def _stopped(self) -> str:
        """Return how far the labels got where the budget ended them, and why; empty if it did not."""
        labels: Labels | None = getattr(self, "labels_", None)
        if labels is None or labels.refusal is None:
            return ""
        return f"stopped after {labels.asked:,} of {len(labels):,} public examples: {labels.stopped}"

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803 - scikit-learn's name
        """Return the parameters as scikit-learn does, and why a fit stopped early."""
        parameters: str = super().__repr__(N_CHAR_MAX)
        return parameters + (f" ({self._stopped})" if self._stopped else "")

    @property
    def _student(self) -> BaseEstimator:
        return self.estimator if self.student is None else self.student

    def _check_parameters(self) -> None:
        if self.budget is None:
            raise InvalidParameter(
                "budget", None, "a tc.Budget(epsilon, delta): what all labels may cost together"
            )
        self.guarantee_ = check_budget(self.budget)
        checks.positive_integer(self.teachers, "teachers")
        checks.flag(self.verbose, "verbose")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, numbers.Integral) or self.n_jobs == 0):
            raise InvalidParameter("n_jobs", self.n_jobs, "None or an integer other than 0")
        for name, given in (("estimator", self.estimator), ("student", self._student)):
            if isinstance(given, type) or not (hasattr(given, "fit") and hasattr(given, "predict")):
                raise InvalidParameter(name, given, "a classifier with fit and predict")
        inputs.check_no_cache(self.estimator)

    def _read(
        self, records: ArrayLike, y: ArrayLike, public: ArrayLike | None, units: ArrayLike | None
    ) -> tuple[PrivateRecords, Features, RandomChoices]:
        """Check the data and deal it into parts."""
        features = inputs.features(self, "X", records, reset=True)
        labels = inputs.labels(y, len(features), public=units is None)
        self.classes_ = inputs.classes_of(labels) if self.classes is None else inputs.public_classes(self.classes)
        codes = inputs.class_codes(labels, self.classes_)
        if len(features) < self.teachers:
            most = "the number of records" if units is not None else f"{len(features):,}, the number of records"
            raise InvalidParameter("teachers", self.teachers, f"at most {most}")
        if public is None:
            raise InvalidParameter("X_public", public, "given: the features of the examples to label")
        requests = inputs.features(self, "X_public", public, reset=False).copy()
        choices = RandomChoices(self.random_state, self.teachers)
        if units is None:
            self.unit_ = "one record, replaced"
            part = deal(len(features), self.teachers, choices.generator)
        else:
            self.unit_ = "all records of one unit"
            part = deal_units(inputs.unit_values(units, len(features), self.teachers), self.teachers, choices.key)
        return PrivateRecords(features, codes, part), requests, choices

    def _rehearse(self, private: PrivateRecords, requests: Features) -> None:
        """Ask about one made-up request on a budget of its own, and let the estimators learn from made-up data."""
        checks.choice(self.mode, "mode", tuple(_METERS))
        checks.integer(self.rounds, "rounds", 1, MOST_ROUNDS)
        made_up = np.zeros((1, len(self.classes_)), np.int64)
        made_up[0, 0] = self.teachers
        with self._open(_MEMORY) as session:
            prior = self.classes_[:1] if self.mode == "prior" else None
            label(Votes(made_up, self.teachers), session, prior=prior, name="rehearsal", **self._settings)
        size, columns = len(private.part) // self.teachers, requests.shape[1]
        inputs.rehearse("estimator", self.estimator, columns, self.classes_, size)
        if self.student is not None:
            inputs.rehearse("student", self.student, columns, self.classes_)

    def _open(self, ledger: str | os.PathLike[str]) -> Session:
        """Open the session that the mode needs."""
        return Session(
            None,
            self.guarantee_,
            self.query_epsilon,
            ledger=ledger,
            meter=_METERS[self.mode],
            targets=[target_of(self.mode, self.caution)],
            unit=self.unit_,
        )

    def _name(self, requests: Features) -> str:
        """Return what the ledger calls the labels of these requests by these teachers.

        All settings are part of it, so that no others get them. Private datasets are not, since they are secret.
        """
        real = [None if value is None else float(value) for value in (self.threshold, self.threshold_epsilon)]
        classes = tuple(self.classes_.tolist())
        settings = (classes, int(self.teachers), self.mechanism, self.mode, real, float(self.caution))
        text = f"{settings!r} {inputs.stable_text(self.estimator)} {inputs.stable_text(requests)}"
        return f"labels of requests {blake2b(text.encode(), digest_size=8).hexdigest()}"

    def _known(self, session: Session, name: str) -> Labels:
        """Return the labels that the ledger has under a name; of no request if there are none."""
        try:
            return recall(session, name)
        except InvalidParameter:
            return Labels.nothing(tuple(self.classes_.tolist()), 0)

    def _votes(self, private: PrivateRecords, requests: Features, seeds: tuple[int, ...]) -> Votes:
        counts = count_votes(
            self.estimator, private, requests, self.classes_, seeds, n_jobs=self.n_jobs, verbose=self.verbose
        )
        return Votes(counts, self.teachers)

    def _label_all(self, votes: Votes, session: Session, name: str, requests: Features) -> Labels:
        """Label the requests that have no answer yet, until the budget is spent; in rounds in mode "prior"."""
        labels = self._known(session, name)
        if self.mode != "prior":
            return label(votes, session, start=labels, name=name, **self._settings)
        for end in round_ends(len(votes), self.rounds):
            if end > labels.asked and labels.refusal is None:
                prior = predictions(self._student, requests, labels)[:end]
                labels = label(votes[:end], session, prior=prior, start=labels, name=name, **self._settings)
        return replace(labels.resized(len(votes)), refusal=labels.refusal)

    @property
    def _settings(self) -> dict[str, Any]:
        """Return what `label` takes from the parameters."""
        same = ("teachers", "mechanism", "mode", "caution", "threshold", "threshold_epsilon")
        settings = {name: getattr(self, name) for name in same}
        return {**settings, "epsilon": self.query_epsilon, "classes": tuple(self.classes_.tolist())}

    def _check_labels(self, *, spent_before: bool) -> None:
        """Refuse labels from which no student can learn, and say which parameter to change.

        Args:
            spent_before: whether the ledger's budget was spent when the fit began.
        """
        labels = self.labels_
        if len(labels.rows):
            return
        if spent_before:
            expected = "another: this ledger's budget is spent: start another ledger; budgets add up"
            raise InvalidParameter("ledger", self.ledger, expected)
        name, change = ("budget", "larger") if not labels.complete else ("query_epsilon", "larger")
        if labels.low.any():
            name, change = "threshold", "lower"
        expected = f"{change}: of {labels.asked} examples that were asked none got a label to learn from"
        raise InvalidParameter(name, getattr(self, name), f"{expected}. What was published is in labels_")

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:  # noqa: N803 - scikit-learn's name
        """Return the class that the student predicts for each row."""
        seen = self._seen(X)
        return np.asarray(self.student_.predict(seen))

    @available_if(_student_has("predict_proba"))  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:  # noqa: N803 - scikit-learn's name
        """Return the student's probability of each of `classes_`; 0 for a class that no label has."""
        seen = self._seen(X)
        known = np.asarray(self.student_.predict_proba(seen))
        shares = np.zeros((len(known), len(self.classes_)), known.dtype)
        shares[:, np.searchsorted(self.classes_, self.student_.classes_)] = known
        return shares

    def _seen(self, rows: ArrayLike) -> Features:
        check_is_fitted(self)
        # A copy: the student may work in place.
        checked: Features = validate_data(self, rows, reset=False, dtype=[np.float64, np.float32], copy=True)
        return checked

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a student."""
        return hasattr(self, "student_")

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: what is published, and the parameters, with untrained estimators."""
        state = dict(super().__getstate__())
        state["estimator"] = clone(self.estimator, safe=False)
        state["student"] = clone(self.student, safe=False)
        return state

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: the noise comes from the operating system, so no two fits are alike."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


def _spent_before(meter: Reading) -> BudgetSpent:
    """Return why nothing is asked of a session whose budget covers no further hit."""
    hit, left = meter.tariff.typical, max(0, meter.tariff.capacity - meter.totals.spent)
    return BudgetSpent("the budget was spent before", asked=hit.value, left=hit.value * (left / hit.grains))
